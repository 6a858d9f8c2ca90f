"""Compiles for one TensorFlow: run by the interpreter of the environment that has Cython.

``INTERPRETER`` is one that finds the TensorFlow, ``RESULT`` the file to write: where the libraries
are, which of them are for this TensorFlow alone, and what it is known by.
"""

import json
import sys
from pathlib import Path

import setuptools
from fastops_build.command import BuildExtension, extensions
from fastops_build.compile import compile_all
from fastops_build.systems import LIBRARIES


class Compile(BuildExtension):
    """Compiles with the commands that setuptools has, and puts the result nowhere."""

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
    found = command.compiled.tensorflow
    order = {
        "libraries": {name: str(path) for name, path in command.compiled.libraries.items()},
        "readers": sorted(command.compiled.readers),
        "known_by": found.known_by,
        "interface": command.compiled.interface,
        "exporters": [str(found.directory / folder / name) for name, folder in LIBRARIES.items()],
    }
    Path(result).write_text(json.dumps(order, indent=1))


if __name__ == "__main__":
    main()
