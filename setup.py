"""Build the extensions with tools/pep517. All other settings are in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent / "tools" / "pep517"))

from fastops_build.command import BuildExtension, extensions

setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtension})
