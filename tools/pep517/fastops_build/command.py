"""What setuptools calls to build the extensions."""

import os
import sysconfig
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from .compile import PACKAGE, compile_all, sources

BUILD_INFO = '''"""Which TensorFlow the extensions were compiled against. Written by setup.py."""

TENSORFLOW_VERSION = {version!r}
TENSORFLOW_BUILD = {build!r}
COMPILER = {compiler!r}
'''


def extensions():
    """Return one extension for each Cython module of the package."""
    return [Extension(name, [str(source)], language="c++") for name, source in sources().items()]


class BuildExtension(build_ext):
    """Compiles with `compile_all`, and puts the result into the package all at once."""

    def build_extensions(self):
        self._libraries, self._tensorflow = compile_all(
            self.compiler.compiler_so_cxx, self.compiler.linker_so_cxx
        )
        self._put(Path(self.build_lib))

    def copy_extensions_to_source(self):
        for left in PACKAGE.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
            if ".".join(left.parts).partition(".cpython")[0] not in self._libraries:
                left.unlink()  # of a module that there was once
        self._put(Path())

    def _put(self, root):
        # Without this file the package says that it is not compiled: better than a part of it.
        info = root / PACKAGE / "_build_info.py"
        info.unlink(missing_ok=True)
        for name, library in self._libraries.items():
            _replace(root / self.get_ext_filename(name), library.read_bytes())
        text = BUILD_INFO.format(
            version=self._tensorflow.version,
            build=self._tensorflow.build,
            compiler=sysconfig.get_config_var("CXX"),
        )
        _replace(info, text.encode())


def _replace(path, content):
    """Write a file as a whole or not at all; a process that has the old one open keeps it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    incomplete = path.with_name(f".incomplete-{os.getpid()}-{path.name}")
    try:
        incomplete.write_bytes(content)
        incomplete.replace(path)
    finally:
        incomplete.unlink(missing_ok=True)
