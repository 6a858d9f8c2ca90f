"""Builds the extensions, by what is in tools/pep517; everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent / "tools" / "pep517"))

from fastops_build.command import BuildExtension, extensions  # noqa: E402  (found there)

setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtension})
