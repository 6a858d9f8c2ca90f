"""Carry fastops to a machine with an NVIDIA GPU, and test it there. See README.md in this folder.

``pack`` makes pieces on a machine with a network and without a GPU. ``assemble`` puts them together
on the machine with the GPU, with only Python. ``prove`` runs the tests there. Modules of `assemble`
and `prove` import packages outside of Python's library only where they are used, since these may be
missing.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "gpu"

PYTHON = "3.12"
TENSORFLOW = "2.21.0"

LARGEST_PIECE = 55 << 20
"""The maximum size of a piece in bytes. The means of transport has a limit of 60 MiB."""
