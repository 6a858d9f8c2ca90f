"""What differs between the systems that TensorFlow has wheels for.

Linux on x86-64 is what the tests run on. Linux on aarch64 and macOS on arm64 have the same headers
and symbols (`tools/cross.py` looks), and were never run.
"""

import os
import platform
import runpy
import sys
from contextlib import suppress
from pathlib import Path

MACOS = sys.platform == "darwin"

# Which libraries define the symbols that the modules call stands where an import looks for them.
KNOWN_BY = str(Path(__file__).resolve().parents[3] / "fastops" / "_core" / "build.py")
LIBRARIES = runpy.run_path(KNOWN_BY)["LIBRARIES"]

# Where wheels have oneDNN's headers, below TensorFlow's.
ONEDNN_HEADERS = ("external/onednn/include", "external/mkl_dnn_acl_compatible/include")


def unsupported():
    """Return why fastops does not run on this system, or `None`."""
    machine = platform.machine()
    if (sys.platform, machine) in (
        *(("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")),
    ):
        return None
    return (
        f"fastops runs on Linux and macOS, on x86-64 and 64-bit ARM, and not on {sys.platform} on "
        f"{machine}: TensorFlow's wheels there lack what it calls."
    )


def distribution(versions):
    """Return the requirement of a TensorFlow for hosts alone, which has its own name on x86-64."""
    name = "tensorflow-cpu" if platform.machine() == "x86_64" else "tensorflow"
    return f"{name}{versions}"


def defines():
    """Return what TensorFlow was compiled with: without NDEBUG its structs have another layout."""
    onednn = () if MACOS else ("-DINTEL_MKL",)
    return ("-DNDEBUG", *onednn, "-DEIGEN_USE_THREADS", "-DPY_SSIZE_T_CLEAN")


def needed_libraries():
    """Return the libraries that a module names as needed.

    On macOS none: Python's own command has the linker leave to the loader what is not defined, and
    TensorFlow, which is imported before, has its libraries loaded by then.
    """
    return () if MACOS else tuple(LIBRARIES)


# Where Linux says what a container may use, in the two versions of its control groups.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory():
    """Return the bytes of memory of this machine, or those that its container may use."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in LIMITS:
        with suppress(OSError, ValueError):  # there is none, or it is "max"
            found = min(found, int(Path(place).read_text()))
    return found


def processors():
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
