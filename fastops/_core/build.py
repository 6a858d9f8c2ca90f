"""Chooses what was compiled for the running TensorFlow, or refuses.

TensorFlow's C++ classes have no stable layout: with another build an extension would crash rather
than fail. So none is loaded before TensorFlow has said which build it is, and that is in the table
`fastops._build_info`, which is written by the build of fastops.

Modules that were compiled in place, from source, stand beside their sources and fit one TensorFlow.
A wheel has several builds of the modules that read TensorFlow's headers, each in a folder of its
own, and one is found there by a finder that Python asks after all others.
"""

import importlib
import os
import sys
from contextlib import contextmanager
from importlib.machinery import PathFinder
from typing import NamedTuple

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = "pip install --no-binary fastops --force-reinstall --no-deps fastops"
REBUILD = f"{BUILD}  (in a checkout: pip install --editable .)"
# What defines the symbols that the extensions ask for, and where it is in TensorFlow's package.
LIBRARIES = {
    "libtensorflow_framework.so.2": "",
    "libtensorflow_cc.so.2": "",
    "lib_pywrap_tensorflow_common.so": "python",
}
TITLES = {
    "version": "its version",
    "build": "its commit",
    "compiler": "its compiler",
    "flags": "its flags",
    "libraries": "its libraries",
}


def describe(tf):
    """Return what a build of TensorFlow is known by, given the module."""
    try:
        flags = [flag for flag in tf.sysconfig.get_compile_flags() if not flag.startswith("-I")]
        flags += ["monolithic"] * bool(tf.sysconfig.MONOLITHIC_BUILD)
    except AttributeError:  # in a version of which nothing is known
        flags = ["unknown"]
    package = os.path.dirname(tf.__file__)
    return {
        "version": tf.version.VERSION,
        "build": tf.version.GIT_VERSION,
        "compiler": getattr(tf.version, "COMPILER_VERSION", "unknown"),
        "flags": " ".join(flags),
        "libraries": " ".join(
            name
            for name, folder in LIBRARIES.items()
            if os.path.exists(os.path.join(package, folder, name))
        ),
    }


def choose(running, builds):
    """Return the folder of a table that has a build of TensorFlow; raise ImportError if none has.

    Parameters
    ----------
    running
        What `describe` returns.
    builds
        `fastops._build_info.BUILDS`: lists of such descriptions by folders.
    """
    for folder, known in builds.items():
        if running in known:
            return folder
    every = [build for known in builds.values() for build in known]
    here = f"TensorFlow {_name(running)}"
    if like := next((build for build in every if _name(build) == _name(running)), None):
        other = "; ".join(
            f"{TITLES[what]}: {running[what]!r} rather than {like[what]!r}"
            for what in running
            if running[what] != like[what]
        )
        raise ImportError(
            f"fastops was compiled for another build of {here} than this one. What differs is "
            f"{other}. Build it for this one: {REBUILD}"
        )
    if len(every) == 1:
        raise ImportError(
            f"fastops was compiled for TensorFlow {_name(every[0])}, but this is {here}. Build it "
            f"again: {REBUILD}"
        )
    raise ImportError(
        f"this wheel of fastops is for TensorFlow {versions(builds)} as published, but this is "
        f"{here}. Install one of those, or build fastops for this one from source: {BUILD}"
    )


def versions(builds):
    """Return the versions that a table has, as a text such as ``2.19.0, 2.20.0``."""
    return ", ".join(build["version"] for known in builds.values() for build in known)


def _name(build):
    return f"{build['version']} ({build['build']})"


@contextmanager
def chosen():
    """Have the block import what fits the running TensorFlow; raise ImportError if nothing does."""
    if not _in_main_interpreter():  # TensorFlow would hang or abort the process
        raise ImportError("fastops, like TensorFlow, runs in the main interpreter only")
    from fastops._core.garbage import importing  # here: setup.py runs this file by itself

    with importing():
        import tensorflow as tf

    try:
        from fastops._build_info import BUILDS
    except ImportError:
        raise ImportError(f"fastops is not compiled yet. Build it: {REBUILD}") from None
    running = describe(tf)
    if folder := choose(running, BUILDS):
        finder = Finder(os.path.join(PACKAGE, folder))
        if finder not in sys.meta_path:  # from an import that failed later
            sys.meta_path.append(finder)
    try:
        yield
    except ImportError as error:
        path = error.path or ""  # of what could not be loaded; its name is without the package
        if not path.startswith(PACKAGE) or not path.endswith(".so"):
            raise
        raise ImportError(
            f"fastops does not fit this TensorFlow {_name(running)}, though it was compiled for "
            f"one that calls itself the same: {error}. Build it again: {REBUILD}",
            name=error.name,
            path=path,
        ) from error


class Finder(NamedTuple):
    """Finds modules of this package that are in a folder, in the same subfolders as their sources.

    Being last among Python's finders it costs other imports nothing.
    """

    folder: str

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a module, or None."""
        top, *parents = name.split(".")[:-1] or [None]
        if top != __name__.partition(".")[0]:
            return None
        return PathFinder.find_spec(name, [os.path.join(self.folder, *parents)])


def _in_main_interpreter():
    for name in ("_interpreters", "_xxsubinterpreters"):  # before Python 3.13, the second
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return interpreters.get_current() == interpreters.get_main()
    return True
