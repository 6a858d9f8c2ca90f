"""Chooses the extension modules that were compiled for the running TensorFlow, or raises an error.

TensorFlow's C++ classes have no stable layout. An extension that was compiled for a different build
of TensorFlow would crash. Therefore no extension is loaded before the running build was found in
the table `fastops._build_info`. The build of fastops writes that table.

Modules that were compiled in place, from source, are in the folders of their sources and fit one
TensorFlow. A wheel has several builds of the modules that include TensorFlow's headers, each in its
own folder. A finder at the end of `sys.meta_path` imports them from the chosen folder.
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
# The libraries whose symbols the extensions need, and their folders in TensorFlow's package.
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
    """Return the description that identifies a build of TensorFlow, given the module."""
    try:
        flags = [flag for flag in tf.sysconfig.get_compile_flags() if not flag.startswith("-I")]
        flags += ["monolithic"] * bool(tf.sysconfig.MONOLITHIC_BUILD)
    except AttributeError:  # in an unknown version
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
    """Return the folder for a build of TensorFlow; raise ImportError if there is none.

    Parameters
    ----------
    running
        The result of `describe`.
    builds
        `fastops._build_info.BUILDS`: lists of such descriptions, by folder.
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
    """Return the versions in a table as a string such as ``2.19.0, 2.20.0``."""
    return ", ".join(build["version"] for known in builds.values() for build in known)


def _name(build):
    return f"{build['version']} ({build['build']})"


@contextmanager
def chosen():
    """Let the block import the modules for the running TensorFlow, and give it the version.

    Raise ImportError if there are none.
    """
    if not _in_main_interpreter():  # TensorFlow would hang or abort the process
        raise ImportError("fastops, like TensorFlow, runs in the main interpreter only")
    from fastops._core.garbage import importing  # not at the top: setup.py runs this file alone

    with importing():
        import tensorflow as tf

    try:
        from fastops._build_info import BUILDS
    except ImportError:
        raise ImportError(f"fastops is not compiled yet. Build it: {REBUILD}") from None
    running = describe(tf)
    if folder := choose(running, BUILDS):
        finder = Finder(os.path.join(PACKAGE, folder))
        if finder not in sys.meta_path:  # an import that failed may have added it
            sys.meta_path.append(finder)
    try:
        yield running["version"]
    except ImportError as error:
        path = error.path or ""  # the file that failed to load; error.name lacks the package
        if not path.startswith(PACKAGE) or not path.endswith(".so"):
            raise
        raise ImportError(
            f"fastops does not fit this TensorFlow {_name(running)}, though it was compiled for a "
            f"build of the same description: {error}. Build it again: {REBUILD}",
            name=error.name,
            path=path,
        ) from error


class Finder(NamedTuple):
    """Finds modules of this package in a folder, in the same subfolders as their sources.

    It is the last finder, so it does not slow down other imports.
    """

    folder: str

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a module, or None."""
        top, *parents = name.split(".")[:-1] or [None]
        if top != __name__.partition(".")[0]:
            return None
        return PathFinder.find_spec(name, [os.path.join(self.folder, *parents)])


def _in_main_interpreter():
    for name in ("_interpreters", "_xxsubinterpreters"):  # Python < 3.13 has only the second
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return interpreters.get_current() == interpreters.get_main()
    return True
