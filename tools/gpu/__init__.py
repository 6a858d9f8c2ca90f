"""Carries fastops to a machine with an NVIDIA GPU, and proves it there: see README.md beside this.

``pack`` makes pieces here, where there is a network and no GPU; ``assemble`` puts them together
there, with nothing but Python; ``prove`` runs there what is to hold. What is imported here has to
be there as well: the modules of the last two have what they need beyond Python's own library
imported where it is needed.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "gpu"

PYTHON = "3.12"
TENSORFLOW = "2.21.0"

LARGEST_PIECE = 55 << 20
"""Bytes of a piece: what carries them takes no more than 60 MiB."""
