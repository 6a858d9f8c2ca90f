"""Compile the extensions for aarch64. The host's interpreter runs this in a copy of the checkout.

``INTERPRETER`` is the emulated interpreter, which can import TensorFlow. The environment variables
of `tools.aarch64.machine.Machine.cross` make `sysconfig` of this process answer as that of the
emulated Python would, so files get its suffix.
"""

import os
import shlex
import sys
import sysconfig
from pathlib import Path

from fastops_build.command import put
from fastops_build.compile import compile_all


def main():
    (interpreter,) = sys.argv[1:]
    compiler = [*shlex.split(os.environ["CXX"]), "-pthread"]
    compiled = compile_all([*compiler, "-fPIC"], [*compiler, "-shared"], interpreter)
    put(compiled, Path(), sysconfig.get_config_var("EXT_SUFFIX"))


if __name__ == "__main__":
    main()
