"""Which Python runs in a call: noted while it is made, by a profile function of this thread."""

import sys

import numpy as np

from fastops._install.models.library import is_own, is_pure

_OF_ABSTRACT_CLASSES = vars(sys.modules["_collections_abc"])  # which goes by another name

_TELLING_TENSORFLOW = frozenset({"tensorflow.python.eager.monitoring"})
"""Modules that measure times, of which TensorFlow's own monitoring is told."""


def _is_of_namedtuple(code, name):
    """Tell whether code is what `collections.namedtuple` makes for a class."""
    return code.co_name == "<lambda>" and str(name).startswith("namedtuple_")


def _draws(code, namespace):
    """Tell whether code names NumPy's random functions, whose calls no profile function sees."""
    for name in code.co_names:
        value = namespace.get(name)
        if value is np and "random" in code.co_names:
            return True
        for title in (getattr(value, "__name__", ""), getattr(value, "__module__", "")):
            if str(title).startswith("numpy.random"):
                return True
    return False


class Witness:
    """Notes the code that this thread runs between `start` and `stop`.

    Parameters
    ----------
    declared : dict of code to str
        Methods of users that are said to be pure, with their modules: so is what they call there.

    Attributes
    ----------
    codes : dict of code to dict
        With the globals of each.
    objection : str or None
        Why nothing can be known of the call.
    """

    def __init__(self, declared):
        self.declared = declared
        self.codes = {}
        self.objection = None

    def start(self):
        """Begin. False where somebody else has a profile function."""
        if sys.getprofile() is not None:
            return False
        sys.setprofile(self._see)
        return True

    def stop(self):
        """End."""
        if sys.getprofile() == self._see:
            sys.setprofile(None)
        else:
            self.objection = "it sets a profile function"

    def _see(self, frame, event, argument):
        try:
            if event == "call":
                code = frame.f_code
                if code not in self.codes:
                    self.codes[code] = namespace = frame.f_globals
                    name = namespace.get("__name__")
                    if namespace is _OF_ABSTRACT_CLASSES or _is_of_namedtuple(code, name):
                        return
                    module = sys.modules.get(name)
                    known = module is not None and vars(module) is namespace
                    if known and is_own(name):
                        return
                    if not self._is_declared(frame, name):
                        self._object(f"it runs {code.co_name}, of {name}")
                    elif _draws(code, namespace):
                        self._object("it draws random numbers by NumPy")
            elif event == "c_call" and not is_pure(argument):
                if frame.f_globals.get("__name__") in _TELLING_TENSORFLOW:
                    return
                self._object(f"it calls {argument.__name__}")
        except Exception as error:
            self._object(f"what it runs could not be noted: {error!r}")

    def _is_declared(self, frame, name):
        """Tell whether code is a declared method, or called by one of its module."""
        while frame is not None and self.declared:
            if self.declared.get(frame.f_code) == name:
                return True
            frame = frame.f_back
        return False

    def _object(self, why):
        if self.objection is None:
            self.objection = why
