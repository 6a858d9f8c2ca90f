"""The requirements of a build, and one-line instructions if they are missing."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

from . import systems

ROOT = Path(__file__).resolve().parents[3]
PYPROJECT = ROOT / "pyproject.toml"

# An import compares the properties that a build has stored.
DESCRIBE_TENSORFLOW = f"""
import json, numpy, runpy, tensorflow as tf
build = runpy.run_path({systems.KNOWN_BY!r})
flags = [*tf.sysconfig.get_compile_flags(), "-I" + numpy.get_include()]
print(json.dumps([tf.__file__, build["describe"](tf), flags]))
"""
# A folder without an __init__.py (a namespace package) does not count as TensorFlow.
FIND_TENSORFLOW = """
import importlib.util, sys
spec = importlib.util.find_spec("tensorflow")
sys.exit(spec is None or spec.origin is None)
"""
INSTALL_TENSORFLOW = "Install one, then fastops: pip install '{}'"
SMALLEST_MODULE = """
#include <Python.h>
#if __cplusplus < 201703L
#error C++17
#endif
"""


class TensorFlow(NamedTuple):
    """The installed TensorFlow."""

    directory: Path
    known_by: dict
    flags: list


def python(code):
    """Return the command that runs code in a new process, with this one's `sys.path`.

    The code itself sets the path, because in pip's build environments, Python's start-up removes
    the environment's own folders from PYTHONPATH.
    """
    path = [os.path.abspath(place) for place in sys.path]
    return [sys.executable, "-c", f"import sys; sys.path[1:] = {path!r}\n{code}"]


def _in_this_build(code):
    return python(code), {**os.environ}


def _outside_of_this_build(code):
    """Run code in the interpreter without the variables by which pip isolates a build.

    pip builds with the interpreter for which it installs. Without the variables, it finds the
    installed packages.
    """
    isolating = ("PYTHONPATH", "PYTHONNOUSERSITE")
    environment = {name: value for name, value in os.environ.items() if name not in isolating}
    return [sys.executable, "-c", code], environment


def _find_tensorflow():
    """Return a function that starts processes that can import TensorFlow, or `None`."""
    for start in (_in_this_build, _outside_of_this_build):
        command, environment = start(FIND_TENSORFLOW)
        if subprocess.run(command, env=environment).returncode == 0:
            return start
    return None


def has_tensorflow():
    """Tell whether a TensorFlow is installed that this build can use."""
    return _find_tensorflow() is not None


def supported_tensorflow():
    """Return the versions of TensorFlow that are supported, such as ``>=2.19,<2.22``."""
    return systems.SUPPORTED["specifier"]()


def tensorflow(interpreter=sys.executable):
    """Describe the TensorFlow that an import finds; exit if there is no suitable one."""
    versions = supported_tensorflow()
    if interpreter != sys.executable:  # another environment's interpreter, which finds its packages
        command, environment = [interpreter, "-c", DESCRIBE_TENSORFLOW], {**os.environ}
    else:
        start = _find_tensorflow() or _in_this_build  # its error says what is missing
        command, environment = start(DESCRIBE_TENSORFLOW)
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        sys.exit(
            "fastops is compiled against the installed TensorFlow, and none can be imported "
            f"({reason}). {INSTALL_TENSORFLOW.format(systems.distribution(versions))}"
        )
    file, known_by, flags = json.loads(done.stdout.splitlines()[-1])
    version = known_by["version"]
    if not (systems.SUPPORTED["is_supported"](version) or os.environ.get("FASTOPS_ANY_TENSORFLOW")):
        sys.exit(
            f"fastops supports TensorFlow {versions}, and {version} is installed. "
            f"{INSTALL_TENSORFLOW.format(systems.distribution(versions))}"
        )
    there = known_by["libraries"].split()
    if lacking := [name for name in systems.needed_libraries() if name not in there]:
        sys.exit(
            f"fastops needs what is in {lacking[0]}, and TensorFlow {version} is installed without "
            "it: of 2.19 only tensorflow-cpu has it. "
            f"{INSTALL_TENSORFLOW.format(systems.distribution(versions))}"
        )
    package = Path(file).parent
    # TensorFlow's headers include oneDNN's headers, whose folder has to be added.
    headers = (package / "include" / place for place in systems.ONEDNN_HEADERS)
    flags += [f"-I{place}" for place in headers if place.is_dir()]
    return TensorFlow(package, known_by, flags)


def compiler():
    """Return the macros that identify the compiler; exit if there is no suitable one."""
    if reason := systems.unsupported():
        sys.exit(reason)
    command = shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")
    if not command or shutil.which(command[0]) is None:
        sys.exit(
            f"fastops needs a compiler for C++17, and {' '.join(command)!r} is not found. Install "
            "one (apt install g++, dnf install gcc-c++), or name yours: CXX=clang++ pip install ..."
        )
    include = sysconfig.get_path("include")
    done = subprocess.run(
        [*command, "-std=c++17", "-I", include, "-dM", "-E", "-x", "c++", "-"],
        input=SMALLEST_MODULE,
        capture_output=True,
        text=True,
    )
    if "Python.h" in done.stderr:
        sys.exit(
            f"fastops needs Python's headers, and there are none in {include}. Install them: "
            "apt install python3-dev, dnf install python3-devel"
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        sys.exit(
            f"fastops needs a compiler for C++17, and {' '.join(command)!r} cannot compile it "
            f"({reason}). Name another one: CXX=g++-12 pip install ..."
        )
    return done.stdout
