"""Run the tests for Linux on aarch64 on another processor, emulated: ``make aarch64``.

The emulator is QEMU's ``qemu-aarch64``, which translates one process and passes its system calls to
the host. Debian's CPython for arm64 and its libraries are unpacked into a folder, and TensorFlow's
wheel for aarch64 into an environment there. The extensions are compiled by a cross compiler.

An emulated run shows whether fastops computes the same as TensorFlow there. It shows nothing about
speed, and little about the order of memory accesses: on x86-64 QEMU's threads see each other's
writes in order, as a real processor for aarch64 would not. See `docs/compatibility.md`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "aarch64"
RESULTS = Path(__file__).with_name("results.json")

PYTHON = "3.11"
"""The version of CPython in Debian 12."""

PROCESSOR = "neoverse-n1"
"""The emulated processor: that of Graviton 2 and Ampere Altra."""

PACKAGES = (f"python{PYTHON}", f"libpython{PYTHON}-dev", "libstdc++6", "libgomp1")
"""Debian's packages for arm64. apt adds what they depend on."""

PROGRAMS = {"qemu-aarch64": "qemu-user", "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu"}
"""The programs that must be installed, and Debian's packages that have them."""

GLIBC = range(17, 37)
"""The minor versions of glibc 2 whose wheels run with Debian 12."""


class FailedError(Exception):
    """A step has failed; the message is the reason in one line."""
