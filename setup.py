"""Builds the extension against the installed TensorFlow; everything else is in pyproject.toml."""

import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    import numpy
    import tensorflow as tf
except ImportError as error:
    sys.exit(
        "fastops is compiled against the installed TensorFlow, and none can be imported "
        f"({error}). Install one first (pip install tensorflow-cpu), then: "
        "pip install --no-build-isolation ."
    )

HERE = Path(__file__).parent
TENSORFLOW = Path(tf.__file__).parent


def tensorflow_flags():
    """Return the wheel's flags; without NDEBUG some of its structs have another layout."""
    return [
        # As system headers: their warnings are not ours.
        *(flag.replace("-I", "-isystem", 1) for flag in tf.sysconfig.get_compile_flags()),
        "-DNDEBUG",
        "-DINTEL_MKL",
        "-fvisibility=hidden",
        "-O2",
        "-g0",
        "-Wall",
        "-Wno-sign-compare",
        "-Wno-unused-function",
        "-Wno-cpp",
    ]


def libraries():
    """Name the shared objects of the wheel that hold what the extension calls."""
    return [
        f"-L{TENSORFLOW}",
        f"-L{TENSORFLOW / 'python'}",
        "-l:libtensorflow_framework.so.2",
        "-l:libtensorflow_cc.so.2",
        "-l:lib_pywrap_tensorflow_common.so",
    ]


class BuildExtension(build_ext):
    """Also writes down which TensorFlow the extension belongs to."""

    def run(self):
        super().run()
        text = (
            '"""Which TensorFlow the extension was compiled against. Written by setup.py."""\n\n'
            f"TENSORFLOW_VERSION = {tf.version.VERSION!r}\n"
            f"TENSORFLOW_BUILD = {tf.version.GIT_VERSION!r}\n"
            f"COMPILER = {sysconfig.get_config_var('CXX')!r}\n"
        )
        package = Path(self.get_ext_fullpath("fastops._dispatch")).parent
        package.mkdir(parents=True, exist_ok=True)
        (package / "_build_info.py").write_text(text)


def modules():
    """Return the modules to compile, by their names."""
    sources = sorted(path.relative_to(HERE) for path in HERE.glob("fastops/**/*.pyx"))
    return {".".join(source.with_suffix("").parts): str(source) for source in sources}


extensions = [
    Extension(
        name,
        [source],
        include_dirs=["fastops/_cpp", "fastops/_cpp/shim", numpy.get_include()],
        depends=[str(path) for path in sorted(HERE.glob("fastops/_cpp/**/*.h"))],
        extra_compile_args=tensorflow_flags(),
        extra_link_args=libraries(),
        language="c++",
    )
    for name, source in modules().items()
]

setup(
    ext_modules=cythonize(
        extensions,
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": False,
        },
    ),
    cmdclass={"build_ext": BuildExtension},
)
