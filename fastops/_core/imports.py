"""Actions after the imports of packages.

This module imports the standard library alone: it is in use before TensorFlow is imported.
"""

import sys
from contextlib import nullcontext
from importlib.abc import MetaPathFinder


class ImportFollower(MetaPathFinder):
    """Runs an action after each import of some modules.

    It is a finder that lets the other finders find the modules.

    Parameters
    ----------
    names : collection of str
        The full names of the modules.
    action : callable
        Called without arguments after an import that has not failed. Within an import of another
        one of these modules, it is called at the end of that import.
    around : callable, optional
        Makes a context manager, in which an import and the action run.
    """

    def __init__(self, names, action, around=nullcontext):
        self.names, self._action, self._around = tuple(names), action, around
        self._depth = 0  # number of nested imports

    def start(self):
        """Follow imports from now on."""
        sys.meta_path.insert(0, self)

    def stop(self):
        """Follow no further imports, and run the action no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path, target=None):
        """Return what the other finders find."""
        if name not in self.names:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (f.find_spec(name, path, target) for f in others)), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._follow(spec.loader)
        return spec

    def _follow(self, loader):
        execute = loader.exec_module

        def exec_module(module):
            if vars(loader).get("exec_module") is exec_module:  # not that of another follower
                del loader.exec_module
            with self._around():
                self._depth += 1
                try:
                    execute(module)
                finally:
                    self._depth -= 1
                if not self._depth and self in sys.meta_path:
                    self._action()

        loader.exec_module = exec_module


_PACKAGES = ("tensorflow", "fastops")
_FOLLOWED = (*_PACKAGES, "keras")  # Keras imports TensorFlow in the middle of its own import


def when_imported(action, around=nullcontext):
    """Run an action when TensorFlow or fastops has been imported; at once if one of them has been.

    Parameters
    ----------
    action : callable
        Called without arguments.
    around : callable, optional
        See `ImportFollower`.

    Returns
    -------
    callable
        Cancels the action, if it has not run yet.
    """

    def arrive():
        if any(name in sys.modules for name in _PACKAGES):
            follower.stop()
            action()

    follower = ImportFollower(_FOLLOWED, arrive, around)
    if any(name in sys.modules for name in _PACKAGES):
        action()
    else:
        follower.start()
    return follower.stop
