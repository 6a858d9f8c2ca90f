"""Run a command in a build of another kind: ``debug``, ``asan`` or ``profile``.

    python tools/variant.py asan                              # the tests of `make asan` python
    tools/variant.py debug gdb --args python prog.py

The build is made in a copy of the checkout, build/<kind>/, where the command also runs. So the
ordinary build is not changed. See docs/debugging.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_COPIED = shutil.ignore_patterns(
    *("build", "dist", "results", "*.egg-info", "*.so", "_build_info.py", "__pycache__"),
    *(".git", ".venv*", ".*cache", ".hypothesis", ".benchmarks"),
)
# Tests of dispatch, plans and hazards, in which no sanitizer may find an error.
TESTS = ("tests/dispatch", "tests/plans", "tests/graphs", "tests/hazards")
# AddressSanitizer delays the release of memory, so tests that measure memory are left out.
NOT_WITH_ASAN = (
    "tests/hazards/test_functions.py::test_memory",
    "tests/hazards/test_memory.py::test_memory",
    "tests/graphs/test_graph.py::test_variables_that_are_destroyed_leave_no_memory",
)
SUPPRESSIONS = ROOT / "tools" / "suppressions"


def copy(place):
    """Update a copy of the checkout; compiled files in it stay."""
    place.mkdir(parents=True, exist_ok=True)
    for path in place.iterdir():
        if path.is_dir() and path.name != "build":
            shutil.rmtree(path)
    shutil.copytree(ROOT, place, ignore=NOT_COPIED, dirs_exist_ok=True)


def environment(kind, place):
    """Return the environment variables for making and using the build in a folder."""
    variables = {
        **os.environ,
        "FASTOPS_BUILD": kind,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(place), str(place / "tests")]),
    }
    if kind == "asan":
        variables |= {
            # Python is not linked to it, and it looks up C++ functions when it is loaded.
            "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so')}",
            # Python and TensorFlow do not free all memory at exit.
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:"
            f"suppressions={SUPPRESSIONS / 'asan.txt'}",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:"
            f"suppressions={SUPPRESSIONS / 'ubsan.txt'}",
        }
    return variables


def library(name):
    """Return the path of one of the compiler's libraries."""
    command = [os.environ.get("CXX", "g++"), f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["debug", "asan", "profile"])
    parser.add_argument("command", nargs=argparse.REMAINDER, help="default: the tests")
    arguments = parser.parse_args()
    place = ROOT / "build" / arguments.kind
    copy(place)
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    plain = {**os.environ, "FASTOPS_BUILD": arguments.kind}
    if status := subprocess.run(build, cwd=place, env=plain).returncode:
        sys.exit(status)
    left_out = [f"--deselect={test}" for test in NOT_WITH_ASAN if arguments.kind == "asan"]
    pytest = ["python", "-m", "pytest", "--numprocesses=auto", "--dist=worksteal"]
    command = arguments.command or [*pytest, *TESTS, *left_out]
    sys.exit(subprocess.run(command, cwd=place, env=environment(arguments.kind, place)).returncode)


if __name__ == "__main__":
    main()
