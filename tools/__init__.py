"""The generator of `fastops.gen`: snapshot, load, model, render, write."""

import importlib
import sys
import types
from pathlib import Path

try:
    importlib.import_module("fastops")
except Exception:
    # The generator needs two modules of fastops that need nothing else of it. They must also work
    # where the package does not: before it is compiled, or with nothing or rubbish generated.
    bare = sys.modules["fastops"] = types.ModuleType("fastops")
    bare.__path__ = [str(Path(__file__).parents[1] / "fastops")]
