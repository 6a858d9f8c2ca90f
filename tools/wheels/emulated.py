"""Emulated machines for aarch64, each with a release of TensorFlow: see `tools.aarch64`."""

from tools.aarch64 import PYTHON as PYTHON
from tools.aarch64 import FailedError as FailedError
from tools.aarch64.machine import Machine

from . import NUMPY

SLOWEST = 300
"""The time limit of pip and the first call together, in seconds."""


def machine(folder, release, say):
    """Return a machine with TensorFlow, NumPy and pip, which `make` sets up."""
    return Machine(folder, say=say, requirements=[f"tensorflow=={release}", NUMPY, "pip"])


def suffix(version):
    """Return the suffix of file names of extensions."""
    return f".cpython-{version.replace('.', '')}-aarch64-linux-gnu.so"
