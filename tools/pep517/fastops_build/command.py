"""The command with which setuptools builds the extensions."""

import os
import pprint
import sysconfig
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from .compile import PACKAGE, compile_all, sources

BUILD_INFO = '''"""Which TensorFlow the extensions were compiled for. Written by the build."""

COMPILER = {compiler!r}
# By folder of the extensions for a build; in a source build, this is the package ("").
BUILDS = {builds}
'''


def build_info(builds):
    """Return the text of ``fastops._build_info``, given builds of TensorFlow by folder.

    Parameters
    ----------
    builds
        For each folder, the properties by which `fastops._core.build` recognizes builds.
    """
    shown = pprint.pformat(builds, width=96, sort_dicts=False)
    return BUILD_INFO.format(compiler=sysconfig.get_config_var("CXX"), builds=shown)


def extensions():
    """Return an extension for each Cython module of the package."""
    return [Extension(name, [str(source)], language="c++") for name, source in sources().items()]


class BuildExtension(build_ext):
    """Compiles with `compile_all`, and then replaces all libraries in the package at once."""

    def build_extensions(self):
        self._compiled = compile_all(self.compiler.compiler_so_cxx, self.compiler.linker_so_cxx)
        self._put(Path(self.build_lib))

    def copy_extensions_to_source(self):
        for left in PACKAGE.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
            if ".".join(left.parts).partition(".cpython")[0] not in self._compiled.libraries:
                left.unlink()  # the library of a former module
        self._put(Path())

    def _put(self, root):
        put(self._compiled, root, sysconfig.get_config_var("EXT_SUFFIX"))


def put(compiled, root, suffix):
    """Replace all libraries in the package below a folder.

    Parameters
    ----------
    compiled
        The result of `compile_all`.
    suffix
        The suffix of file names of extensions.
    """
    # Without this file, the package reports that it is not compiled, which is better than running a
    # part of it.
    info = root / PACKAGE / "_build_info.py"
    info.unlink(missing_ok=True)
    for name, library in compiled.libraries.items():
        _replace(root / (name.replace(".", "/") + suffix), library.read_bytes())
    _replace(info, build_info({"": [compiled.tensorflow.known_by]}).encode())


def _replace(path, content):
    """Write a file completely or not at all. Processes that have the old file open keep it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    incomplete = path.with_name(f".incomplete-{os.getpid()}-{path.name}")
    try:
        incomplete.write_bytes(content)
        incomplete.replace(path)
    finally:
        incomplete.unlink(missing_ok=True)
