"""Delays imports: ``python -m fastops`` must not import TensorFlow before its program does.

Then settings that a program makes before it imports TensorFlow, such as ``TF_ENABLE_ONEDNN_OPTS``,
have the same effect as in a plain run. Python imports the package before its ``__main__``, so the
package asks `is_due` whether to delay its own imports, too.
"""

import sys
from contextlib import nullcontext
from importlib.abc import MetaPathFinder

_NAMES = ("tensorflow", "fastops")
_FOLLOWED = (*_NAMES, "keras")  # Keras imports TensorFlow in the middle of its own import


def is_due():
    """Tell whether Python is about to run ``python -m fastops``."""
    if sys.argv[:1] != ["-m"]:  # `sys.argv` starts so until Python has found the module
        return False
    name = sys.orig_argv[-len(sys.argv)]
    return name == "fastops" or (name.startswith("-") and name.endswith("mfastops"))


def load():
    """End the delay: the next import of fastops imports the whole package."""
    if "fastops._api" not in sys.modules:
        for name in [name for name in sys.modules if name.partition(".")[0] == "fastops"]:
            del sys.modules[name]


def when_imported(action, around=nullcontext):
    """Run an action when TensorFlow or fastops has been imported; at once if one of them has been.

    Parameters
    ----------
    action : callable
        Called without arguments.
    around : callable, optional
        Makes a context manager, in which the import and the action run.

    Returns
    -------
    callable
        Cancels the action, if it has not run yet.
    """
    load()
    watch = _Watch(action, around)
    if any(name in sys.modules for name in _NAMES):
        action()
    else:
        sys.meta_path.insert(0, watch)
    return watch.stop


class _Watch(MetaPathFinder):
    """A finder that lets the other finders find modules, and runs the action after the import."""

    def __init__(self, action, around):
        self.action, self.around = action, around
        self.depth = 0  # number of nested imports: fastops imports TensorFlow

    def find_spec(self, name, path, target=None):
        if name not in _FOLLOWED:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (f.find_spec(name, path, target) for f in others)), None)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader):
        execute = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            with self.around():
                self.depth += 1
                try:
                    execute(module)
                finally:
                    self.depth -= 1
                arrived = not self.depth and any(name in sys.modules for name in _NAMES)
                if arrived and self in sys.meta_path:
                    self.stop()
                    self.action()

        loader.exec_module = exec_module

    def stop(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)
