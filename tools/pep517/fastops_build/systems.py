"""Differences between the systems for which TensorFlow has wheels.

The tests run on Linux on x86-64. On Linux on aarch64 they were run under emulation only, by
`make aarch64`, and on macOS on arm64 never. These have the same headers and symbols, which
`tools/cross.py` checks.
"""

import os
import platform
import runpy
import sys
from contextlib import suppress
from pathlib import Path

MACOS = sys.platform == "darwin"

# This file of the package lists the libraries whose symbols the extension modules need.
CORE = Path(__file__).resolve().parents[3] / "fastops" / "_core"
KNOWN_BY = str(CORE / "build.py")
LIBRARIES = runpy.run_path(KNOWN_BY)["LIBRARIES"]
# The supported versions. This file is run alone, because importing fastops needs a build.
SUPPORTED = runpy.run_path(str(CORE / "supported.py"))

# The folders of oneDNN's headers in wheels, below TensorFlow's headers. A wheel has one of them:
# the first one in older wheels for x86-64, the second one in newer ones, the last one on aarch64.
ONEDNN_HEADERS = (
    *("external/onednn/include", "external/onednn_async/include"),
    "external/mkl_dnn_acl_compatible/include",
)


def unsupported():
    """Return why fastops does not run on this system, or `None`."""
    machine = platform.machine()
    if (sys.platform, machine) in (
        *(("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")),
    ):
        return None
    return (
        f"fastops runs on Linux and macOS, on x86-64 and 64-bit ARM, and not on {sys.platform} on "
        f"{machine}: TensorFlow's wheels there lack functions that fastops calls."
    )


def distribution(versions):
    """Return the requirement of a TensorFlow for CPUs only, which has its own name on x86-64."""
    name = "tensorflow-cpu" if platform.machine() == "x86_64" else "tensorflow"
    return f"{name}{versions}"


def defines(compiler):
    """Return the options for the macros that TensorFlow was compiled with.

    NDEBUG changes the layout of structs. By __ARM_ACLE, which Clang defines and GCC may not, some
    versions of Abseil choose their hash function, and so the places of elements in hash tables.

    Parameters
    ----------
    compiler
        The macros that the compiler defines, as `needs.compiler` returns them.
    """
    onednn = () if MACOS else ("-DINTEL_MKL",)
    other = "__aarch64__" in compiler and "__ARM_ACLE" not in compiler
    arm = ("-D__ARM_ACLE=200",) if other else ()
    return ("-DNDEBUG", *onednn, *arm, "-DEIGEN_USE_THREADS", "-DPY_SSIZE_T_CLEAN")


def needed_libraries():
    """Return the libraries that a module lists as needed.

    On macOS there are none: by Python's default options, the linker leaves undefined symbols to the
    loader, and TensorFlow, which is imported before, has loaded its libraries by then.
    """
    return () if MACOS else tuple(LIBRARIES)


# The files with the memory limit of a container on Linux, for both versions of control groups.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory():
    """Return the bytes of memory of this machine, or the limit of its container."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in LIMITS:
        with suppress(OSError, ValueError):  # there is no such file, or its content is "max"
            size = min(size, int(Path(place).read_text()))
    return size


def processors():
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
