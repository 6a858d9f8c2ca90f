"""Stand-ins for functions of Keras's TensorFlow backend.

A stand-in records and replays the ops of Keras's own function (`fastops._install.replay`). If the
function runs only one op on plain arguments, the stand-in calls this op directly
(`fastops._install.keras`). So results are those of Keras's ops. All unusual calls fall back to
Keras's function: symbolic values, graphs, wrong arguments.
"""

import functools
import importlib
import inspect
from types import FunctionType, ModuleType

import keras
import numpy as np
import tensorflow as tf

from fastops._backend import below
from fastops._backend.adapter.draws import drawing
from fastops._backend.adapter.settings import ASKED, SettingsCache
from fastops._backend.adapter.table import (
    ARRAYS_AS_THEY_ARE,
    NATIVE,
    READ,
    VARIABLES_AS_THEY_ARE,
)
from fastops._install import restated
from fastops._install.handlers import handlers
from fastops._install.keras.functions import FUNCTIONS
from fastops._install.keras.targets import source
from fastops._install.moved import running_name
from fastops._install.public.targets import of_functions
from fastops._install.replacement import standing_alone
from fastops._install.replay.replayed import Replayed
from fastops._install.target import generated

BACKEND = "keras.src.backend.tensorflow"
"""The package of Keras's TensorFlow backend."""

_SRC = source()
if _SRC is None:
    raise ImportError(f"Keras runs on {keras.config.backend()}, and this is for 'tensorflow'")

_Variable = _SRC.backend.Variable

_NUMBERS = frozenset("biufc")
"""Kinds of dtypes of arrays that `tf.convert_to_tensor` keeps."""


def names_of(module):
    """Return the attributes of a module of Keras's backend, with stand-ins for its functions.

    Parameters
    ----------
    module : str
        The name of the module, such as ``"numpy"``; empty for the package itself.

    Returns
    -------
    dict of str to object
        The attributes by name, without Python's own attributes and without modules.
    """
    return {
        name: _instead().get(id(_original(value)), value)
        for name, value in vars(_module(module)).items()
        if not name.startswith("__") and type(value) is not ModuleType
    }


@functools.cache
def _instead():
    """Return the stand-ins by the identity of Keras's function, which may have several names."""
    stand_ins = {}
    for module, names in NATIVE.items():
        held = vars(_module(module))
        for name in names.split():
            function = _original(held.get(name))  # other versions of Keras may not have it
            if type(function) is FunctionType and id(function) not in stand_ins:
                stand_ins[id(function)] = (drawing if module == "random" else _stand_in)(
                    function, _replayed
                )
    return stand_ins


def _module(name):
    return importlib.import_module(running_name(f"{BACKEND}.{name}".rstrip(".")))


def _original(function):
    """Return the function that a stand-in of `install` replaces; any other function itself."""
    return getattr(function, "original", function)


def _stand_in(function, replay):
    """Return the stand-in for a function of Keras that draws no random numbers."""
    read = _Read(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        return read.call(args, kwargs)

    read.again = stand_in = replay(function, call)
    lowered = _lowerings().get(id(function))
    if lowered is not None:
        _, title, make = lowered
        if restated.objection("keras", title, function) is None:
            read.again = stand_in = standing_alone(make(stand_in))
    return stand_in


def _replayed(function, original=None):
    """Return a function that records and replays `original`, by default Keras's function."""
    original = original or _as_set(function)
    return Replayed(original, generated, handlers(function), ASKED, always=True)


def _as_set(function):
    """Return a function that makes the calls which have no recording for the current settings.

    A signature is recorded under the settings of its first calls. Other settings have their own
    recordings.
    """
    others = SettingsCache(lambda: _replayed(function, function))

    @functools.wraps(function)
    def call(*args, **kwargs):
        return (others.now() or function)(*args, **kwargs)

    return call


@functools.cache
def _lowerings():
    return of_functions("keras", FUNCTIONS)


class _Read:
    """Makes the calls of a function that are not replayed.

    A call with Keras variables or arrays is made with tensors of their values instead: there may be
    a recording for this call. All other calls fall back to Keras.

    Parameters
    ----------
    function : callable
        Keras's own function.

    Attributes
    ----------
    again : callable
        Makes the call with tensors.
    """

    def __init__(self, function):
        name = function.__name__
        self._function = _as_set(function)
        self._holders = {list, tuple}
        if name not in VARIABLES_AS_THEY_ARE:
            self._holders.add(_Variable)
        if name not in ARRAYS_AS_THEY_ARE or name == "convert_to_tensor":
            self._holders.add(np.ndarray)
        self._converts = name == "convert_to_tensor"
        self._names = list(inspect.signature(function).parameters)
        self.again = function

    def call(self, args, kwargs):
        """Make a call."""
        if self._may_read(args, kwargs):
            if self._converts and len(args) == 1 and not kwargs and type(args[0]) is np.ndarray:
                return below.convert_to_tensor(args[0])
            names = [*self._names[: len(args)], *[""] * (len(args) - len(self._names))]
            read = [self._read(*argument) for argument in zip(names, args, strict=True)]
            named = {name: self._read(name, value) for name, value in kwargs.items()}
            given = [*args, *kwargs.values()]
            new = [*read, *named.values()]
            if any(before is not after for before, after in zip(given, new, strict=True)):
                try:
                    result = self.again(*read, **named)
                except Exception:
                    return self._function(*args, **kwargs)  # its error is about the user's values
                # A function that returns its argument must return the variable, not the tensor.
                if not any(result is value for value in new):
                    return result
        return self._function(*args, **kwargs)

    def _may_read(self, args, kwargs):
        """Tell whether an argument may be replaced by a tensor that the call would read from it."""
        return (
            not (
                self._holders.isdisjoint(map(type, args))
                and self._holders.isdisjoint(map(type, kwargs.values()))
            )
            and tf.executing_eagerly()
            and not _SRC.backend.in_stateless_scope()
            and _SRC.backend.get_autocast_scope() is None
        )

    def _read(self, name, value):
        """Return a tensor of the value of a variable or array; any other value itself."""
        kind = type(value)
        if kind is list or kind is tuple:
            items = [self._read(name, item) for item in value]
            same = all(item is other for item, other in zip(items, value, strict=True))
            return value if same else kind(items)
        if kind not in self._holders:
            return value
        if kind is np.ndarray:
            known = name in READ and not self._converts and value.dtype.kind in _NUMBERS
            return below.convert_to_tensor(value) if known else value
        return value if value._value is None else below.convert_to_tensor(value._value)
