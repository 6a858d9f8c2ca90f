r"""Compile the extensions for another processor, and look up their symbols in its TensorFlow.

Nothing is run. So no such machine is needed, only a cross compiler and TensorFlow's wheel for that
processor::

    python -m pip download --no-deps --only-binary :all: --dest wheels \
        --platform manylinux_2_27_aarch64 'tensorflow==2.21.*'
    python tools/cross.py wheels/*.whl

Wheels for macOS work, too. Since there is no compiler for macOS here, the sources are compiled for
Linux on the same processor, with the wheel's headers and without oneDNN, which macOS does not have.
Their symbols are looked up in the wheel's libraries, ignoring the different namespaces of the two
C++ libraries.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.pep517.fastops_build import compile as building  # noqa: E402
from tools.pep517.fastops_build import systems  # noqa: E402
from tools.pep517.fastops_build.translate import translate  # noqa: E402
from tools.pep517.fastops_build.variants import VARIANTS  # noqa: E402

WANTED = re.compile(
    r"tensorflow/(include/.*|libtensorflow_(cc|framework)\.[^/]*|python/lib_pywrap_[^/]*common\.[^/]*)"
)

# Other symbols are defined by Python and by the compiler's own libraries.
ELSEWHERE = re.compile(
    r"_?(_?Py|__cxa_|__gxx_personality|__cxxabi|__stack_chk|_Unwind_|__dso_handle|__tls_get_addr"
    r"|__errno_location|__assert_fail|_GLOBAL_OFFSET_TABLE_|__aarch64_|__gmon_start__)"
)


def unpack(wheel, place):
    """Unpack the headers and libraries of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            if WANTED.fullmatch(name):
                opened.extract(name, place)
    return place / "tensorflow"


def command(compiler, package, *, macos):
    """Return the compiler's command for a module."""
    include = package / "include"
    macros = subprocess.run(
        [*shlex.split(compiler), "-dM", "-E", "-x", "c++", os.devnull],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    defines = [
        define for define in systems.defines(macros) if not (macos and define == "-DINTEL_MKL")
    ]
    onednn = [f"-isystem{include / place}" for place in systems.ONEDNN_HEADERS]
    return [
        *(*shlex.split(compiler), "-std=c++17", "-O1", "-fPIC", f"-isystem{include}", *onednn),
        *(f"-isystem{np.get_include()}", "-D_GLIBCXX_USE_CXX11_ABI=1", *defines),
        *("-DEIGEN_MAX_ALIGN_BYTES=64", "-fvisibility=hidden", "-Wall", "-Wno-sign-compare"),
        *("-Wno-unused-function", "-Wno-cpp", f"-I{building.HELPERS / 'shim'}"),
        *(f"-I{building.HELPERS}", f"-I{sysconfig.get_path('include')}", *building.TRACES),
    ]


def compile_modules(names, how, place, build=None):
    """Compile modules; return the compiler's messages for those that fail.

    Parameters
    ----------
    build : Path, optional
        A folder in which a build has translated the modules.
    """
    sources = {name: str(path) for name, path in building.sources().items() if name in names}
    targets = [(name, path, place / f"{name}.cpp") for name, path in sources.items()]
    made = {name: sorted(build.glob(f"{name}.*.cpp")) for name in sources} if build else {}
    for name, _, target in targets:
        if made.get(name):
            shutil.copy(made[name][-1], target)
    waiting = [(name, path, str(made)) for name, path, made in targets if not made.exists()]
    list(translate(waiting, VARIANTS["release"].directives) if waiting else ())
    headers = place / "headers.h"
    headers.write_text(f'#include "Python.h"\n#include "{building.DEFINITIONS}"\n')
    ahead = subprocess.run(
        [*how, "-x", "c++-header", headers, "-o", f"{headers}.gch"], capture_output=True, text=True
    )
    if ahead.returncode:
        return {building.DEFINITIONS: ahead.stderr}

    def one(target):
        name, path, made = target
        reads = f'"{building.DEFINITIONS}"' in Path(path).read_text()
        first = ("-include", str(headers)) if reads else ()
        done = subprocess.run(
            [*how, *first, "-c", made, "-o", place / f"{name}.o"], capture_output=True, text=True
        )
        return name, done.stderr if done.returncode else ""

    with ThreadPoolExecutor(building.jobs()) as pool:
        return {name: text for name, text in pool.map(one, targets) if text}


def symbols(files, *options):
    """Return the names that files define or use, as nm lists them."""
    nm = ["llvm-nm", "--format=posix", *options, *map(str, files)]
    listed = subprocess.run(nm, check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in listed.splitlines())
    return {(parts[0], parts[1]) for parts in fields if len(parts) > 1}


def called(objects):
    """Return the symbols that objects use and do not define, without those that may be missing."""
    found = symbols(objects)
    defined = {name for name, kind in found if kind not in "Uwv"}
    used = {name for name, kind in found if kind == "U"}
    return {name for name in used - defined if not ELSEWHERE.match(name)}


def plain(names):
    """Return names without the namespaces of C++ libraries, and without Mach-O's underscore."""
    text = "\n".join(sorted(names))
    shown = subprocess.run(["c++filt"], input=text, check=True, capture_output=True, text=True)
    # An int64_t is a long on Linux, and a long long on macOS.
    told_apart = r"(?<=std::)__(cxx11|1)::|\[abi:cxx11\]|long (?=long)"
    return {re.sub(told_apart, "", name) for name in shown.stdout.splitlines()}


def missing(objects, libraries, *, macos):
    """Return the symbols of objects that no library, nor the compiler's own, defines."""
    used = called(objects)
    exported = set()
    for library in libraries:
        kind = () if macos else ("--dynamic",)
        exported |= {name for name, _ in symbols([library], "--defined-only", *kind)}
    if macos:
        exported = {name.removeprefix("_") for name in exported}
        lacking = plain(used) - plain(exported)
    else:
        lacking = used - {name.partition("@")[0] for name in exported}
        lacking = plain(lacking)
    return sorted(name for name in lacking if not is_standard(name))


def is_standard(name):
    """Tell whether a name belongs to the C or C++ library."""
    stem = re.match(r"(typeinfo for |vtable for |VTT for )?(.*)", name)[2]
    own = ("std::", "operator new", "operator delete", "__cxx", "__gnu_cxx::")
    return stem.startswith(own) or re.fullmatch(r"[a-z0-9_]+", stem) is not None


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="tools/cross.py", description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="TensorFlow's wheel, or a folder with its content")
    parser.add_argument("modules", nargs="*", help="such as fastops._dispatch; default: all")
    parser.add_argument("--build", type=Path, help="a folder of build/ with translated modules")
    parser.add_argument("--compiler", default="aarch64-linux-gnu-g++")
    options = parser.parse_args(argv)
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        packed = options.wheel.is_file()
        package = unpack(options.wheel, place) if packed else options.wheel / "tensorflow"
        libraries = [
            *package.glob("libtensorflow*.2*"), *package.glob("python/lib_pywrap_*common*")
        ]  # fmt: skip
        macos = any(library.suffix == ".dylib" for library in libraries)
        names = options.modules or building.sources()
        failures = compile_modules(
            names, command(options.compiler, package, macos=macos), place, options.build
        )
        for name, text in failures.items():
            print(f"{name} is not compiled:\n{text}")
        lacking = missing(sorted(place.glob("*.o")), libraries, macos=macos)
        print(f"{len(names) - len(failures)} of {len(names)} modules are compiled")
        shown = ", ".join(library.name for library in libraries)
        print(f"{len(lacking)} symbols are missing in {shown}")
        print("".join(f"  {name}\n" for name in lacking), end="")
    return 1 if failures or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
