"""Compile for one TensorFlow. The interpreter of the environment with Cython runs this.

``INTERPRETER`` is an interpreter that can import the TensorFlow. ``RESULT`` is the file to write,
with the paths of the libraries, which of them only fit this TensorFlow, and the properties by which
it is recognized.
"""

import json
import sys
from pathlib import Path

import setuptools
from fastops_build.command import BuildExtension, extensions
from fastops_build.compile import compile_all
from fastops_build.systems import LIBRARIES


class Compile(BuildExtension):
    """Compiles with the commands of setuptools, without copying the results."""

    interpreter = None

    def build_extensions(self):
        self.compiled = compile_all(
            self.compiler.compiler_so_cxx, self.compiler.linker_so_cxx, self.interpreter
        )


def main():
    interpreter, result = sys.argv[1:]
    command = Compile(setuptools.Distribution({"ext_modules": extensions()}))
    command.interpreter = interpreter
    command.ensure_finalized()
    command.run()
    tensorflow = command.compiled.tensorflow
    order = {
        "libraries": {name: str(path) for name, path in command.compiled.libraries.items()},
        "readers": sorted(command.compiled.readers),
        "known_by": tensorflow.known_by,
        "interface": command.compiled.interface,
        "exporters": [
            str(tensorflow.directory / folder / name) for name, folder in LIBRARIES.items()
        ],
    }
    Path(result).write_text(json.dumps(order, indent=1))


if __name__ == "__main__":
    main()
