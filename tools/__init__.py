"""The generator of `fastops.gen`: snapshot, load, model, render, write."""

import importlib
import sys
import types
from pathlib import Path

try:
    importlib.import_module("fastops")
except Exception:
    # The generator uses two modules of fastops that use nothing else of the package. They must work
    # even if the package does not: before it is compiled, or if generated files are missing or
    # broken.
    bare = sys.modules["fastops"] = types.ModuleType("fastops")
    bare.__path__ = [str(Path(__file__).parents[1] / "fastops")]
