"""Find interpreters of Python, and make environments with them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import BUILDER, CHECKERS, WORK, numpy

NO_COMPILER = WORK / "bin"


def find_python(version):
    """Return the path of an interpreter of a version; exit if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"{version}.*/bin/python3"), reverse=True),
    ]
    ask = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", ask], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.split()[0] == version:
            return done.stdout.split()[1]
    sys.exit(f"no CPython {version} is found on the path, or among pyenv's")


def environment(name, python, *requirements):
    """Make an environment in the work folder, if necessary; return its interpreter.

    Parameters
    ----------
    name
        The name of its folder.
    python
        The interpreter to make it with.
    *requirements
        The requirements that pip installs into it.
    """
    folder = WORK / name
    complete = folder / "complete"
    text = "\n".join([python, *requirements])
    if not complete.exists() or complete.read_text() != text:
        run([python, "-m", "venv", "--clear", folder])
        if requirements:
            pip(folder / "bin" / "python", "install", *requirements)
        complete.write_text(text)
    return folder / "bin" / "python"


def builder(python, version):
    """Make the environment with the packages for compiling."""
    return environment(f"{version}/builder", python, *BUILDER)


def checkers(python):
    """Make the environment of the tools that inspect wheels."""
    return environment("checkers", python, *CHECKERS)


def tensorflow(python, version, requirement):
    """Make an environment with TensorFlow and its requirements."""
    return environment(f"{version}/{requirement}", python, requirement, numpy(version))


def suffix(interpreter):
    """Return the suffix of file names of extensions."""
    ask = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
    return run([interpreter, "-c", ask]).strip()


def pip(interpreter, *arguments, **options):
    """Run pip in an environment."""
    quietly = ("--disable-pip-version-check", "--no-input", "--quiet")
    run([interpreter, "-m", "pip", *quietly, *arguments], **options)


def run(command, show=False, **options):
    """Run a command and return its output, or show it; exit if the command fails."""
    if not show:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([*map(str, command)], text=True, **options)
    if done.returncode != 0:
        shown = " ".join(map(str, command))
        sys.exit(f"{done.stdout or ''}\n{shown} ended with status {done.returncode}")
    return done.stdout


def without_compiler():
    """Return environment variables without a compiler on the path, and without a checkout."""
    NO_COMPILER.mkdir(parents=True, exist_ok=True)
    variables = {"PATH": str(NO_COMPILER), "TF_CPP_MIN_LOG_LEVEL": "3", "HOME": str(WORK)}
    kept = ("PIP_", "SSL_", "LANG", "LC_", "OPENBLAS_", "REQUESTS_")
    return variables | {k: v for k, v in os.environ.items() if k.startswith(kept)}
