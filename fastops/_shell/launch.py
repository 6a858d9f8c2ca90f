"""``python -m fastops`` imports neither TensorFlow nor fastops before its program does.

What a program sets before it imports TensorFlow (``TF_ENABLE_ONEDNN_OPTS``, say) then counts as in
a plain run. Python imports the package before ``__main__``, so the package asks here.
"""

import sys
from contextlib import nullcontext
from importlib.abc import MetaPathFinder

_NAMES = ("tensorflow", "fastops")
_FOLLOWED = (*_NAMES, "keras")  # which imports TensorFlow half way


def is_due():
    """Tell whether Python is about to run ``python -m fastops``."""
    if sys.argv[:1] != ["-m"]:  # that it is until Python has found the module
        return False
    name = sys.orig_argv[-len(sys.argv)]
    return name == "fastops" or (name.startswith("-") and name.endswith("mfastops"))


def load():
    """Import what `is_due` has put off, or make the program's first import of it do so."""
    if "fastops._api" not in sys.modules:
        for name in [name for name in sys.modules if name.partition(".")[0] == "fastops"]:
            del sys.modules[name]


def when_imported(action, around=nullcontext):
    """Run an action as soon as TensorFlow or fastops is imported, at once if either is.

    Parameters
    ----------
    action : callable
        Called without arguments.
    around : callable, optional
        Makes a context manager, in which the import takes place, and the action.

    Returns
    -------
    callable
        Takes that back, if it has not happened yet.
    """
    load()
    watch = _Watch(action, around)
    if any(name in sys.modules for name in _NAMES):
        action()
    else:
        sys.meta_path.insert(0, watch)
    return watch.stop


class _Watch(MetaPathFinder):
    """Finds what the other finders find, and hears when its import is done."""

    def __init__(self, action, around):
        self.action, self.around = action, around
        self.depth = 0  # of imports under way: fastops imports TensorFlow

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
