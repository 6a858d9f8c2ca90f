"""What an object holds, directly and indirectly, that its methods may ask.

It is listed place by place, each after the place that it was found in: whoever compares the places
in their order may rely on one being there if those before it are as they were.
"""

import enum
import functools
import inspect
import re
import threading
import types
import weakref
from collections import deque

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.trackable import data_structures

from fastops._install.models.library import is_of_keras, is_own, is_pure
from fastops._install.replay.recording import MOST_BYTES, NotReplayableError

MOST_PLACES = 50_000

_ATOMS = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented)),
    *(range, slice, enum.Enum, np.dtype, np.generic, tf.DType, tf.TensorShape),
    *(types.CodeType, types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.GenericAlias, types.UnionType, re.Pattern, inspect.Signature, inspect.Parameter),
)
"""Classes of which nothing in an instance changes."""

_SEALED = (
    *(types.MappingProxyType, type(threading.Lock()), type(threading.RLock()), Function, tf.Graph),
    *(property, staticmethod, classmethod),
)
"""Classes whose instances no call asks for more than which they are."""

_WRAPPERS = (data_structures._DictWrapper, data_structures._TupleWrapper)
"""Classes of TensorFlow's whose instances are another object to all who ask."""

_PARTS = {
    types.MethodType: ("__self__", "__func__"),
    functools.partial: ("func", "args", "keywords"),
    **dict.fromkeys(_WRAPPERS, ("__wrapped__",)),
}
"""By class, attributes that make up an instance."""

_OF_CHECKPOINTS = "_self_"
"""With what the names of attributes begin that checkpoints alone ask."""


class Places:
    """What some objects hold.

    Parameters
    ----------
    roots : list of object
        Where to begin.
    unasked : dict of type to set of str
        By class, names of attributes for which nobody asks.

    Attributes
    ----------
    entries : list of tuple
        The kind of each place, as a text, and what `fastops._install.models.watch.Watch` asks of
        such a place.
    kept : list of object
        What stands in them and does not change.
    variables : dict of int to tf.Variable
        By the identity of the handle, those among them.
    seen : set of int
        The identities of all.

    Raises
    ------
    NotReplayableError
        If something is found of which nobody knows how it changes.
    """

    def __init__(self, roots, unasked):
        self.unasked = unasked
        self.entries = []
        self.kept = []
        self.variables = {}
        self.seen = set()
        self.alive = []  # while this is made: some of what is looked at is made by asking for it
        self.skipped = {}
        self.queue = deque(roots)
        while self.queue:
            self.visit(self.queue.popleft())
            if len(self.entries) > MOST_PLACES:
                raise NotReplayableError(f"{type(roots[0]).__name__} holds too much")

    def visit(self, value):
        """Take up an object."""
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        self.alive.append(value)
        kind = type(value)
        if isinstance(value, _ATOMS):
            self.kept.append(value)
        elif isinstance(value, type):
            self.visit_class(value)
        elif kind in _SEALED or isinstance(value, _SEALED):
            pass
        elif kind is types.FunctionType:
            self.visit_function(value)
        elif kind is types.BuiltinFunctionType:
            if not isinstance(value.__self__, types.ModuleType | None) or not is_pure(value):
                raise NotReplayableError(f"it holds {value.__name__}, which is no Python")
            self.kept.append(value)
        elif kind in _PARTS:
            parts = [getattr(value, name) for name in _PARTS[kind]]
            self.entries.append(("parts", value, _PARTS[kind], parts))
            self.queue.extend(parts)
        elif kind is types.CellType:
            self.visit_cell(value)
        elif isinstance(value, weakref.ref):
            referent = value()
            self.entries.append(("reference", value, referent))
            self.queue.append(referent)
        elif type(value) is EagerTensor or (
            kind is tuple and all(isinstance(one, _ATOMS) for one in value)
        ):
            self.kept.append(value)
        elif isinstance(value, np.ndarray):
            self.visit_array(value)
        else:
            self.visit_instance(value, kind)

    def visit_class(self, kind):
        """Take up a class: what it defines, and what containers of it hold."""
        self.entries.append(("class", kind))
        if is_own(kind.__module__) and not is_of_keras(kind.__module__):
            return
        for base in kind.__mro__:
            for name, value in vars(base).items():
                if type(value) in (dict, list, set) and not name.startswith("__"):
                    self.queue.append(value)

    def visit_function(self, function):
        """Take up what a function brings along."""
        parts = function.__closure__, function.__defaults__, function.__kwdefaults__
        self.kept.append(function.__code__)
        self.entries.append(("function", function, function.__code__, *parts))
        self.queue.extend(parts)

    def visit_cell(self, cell):
        """Take up the variable of an outer function."""
        try:
            content = cell.cell_contents
        except ValueError:  # not yet
            content = None
        self.entries.append(("cell", cell, content))
        self.queue.append(content)

    def visit_array(self, array):
        """Take up an array, which anybody may write to."""
        if array.nbytes > MOST_BYTES or array.dtype.hasobject:
            raise NotReplayableError("it holds a large array, which may be written to")
        self.entries.append(("array", array, array.dtype, array.shape, array.tobytes()))

    def visit_instance(self, value, kind):
        """Take up what an instance of any other class holds."""
        if isinstance(value, threading.local):
            raise NotReplayableError("it holds what each thread has for itself")
        attributes = _attributes(value, kind)
        if attributes is not None:
            self.queue.append(kind)
            self.entries.append(("instance", value, kind, attributes))
            self.visit_dict(attributes, self.skipped_of(kind))
        known = attributes is not None
        if isinstance(value, ResourceVariable):
            self.variables[id(value._handle)] = value
        if isinstance(value, dict):
            self.visit_dict(value, frozenset())
        elif isinstance(value, list):
            self.visit_row("list", value, list.__iter__(value))
        elif isinstance(value, deque):
            raise NotReplayableError("it holds a deque")
        elif isinstance(value, (set, frozenset)):
            kind = set if isinstance(value, set) else frozenset
            self.visit_row("set", value, kind.__iter__(value))
        elif isinstance(value, tuple):
            self.visit_row("tuple", value, tuple.__iter__(value))
        elif callable(value) and not (
            is_own(kind.__module__) or isinstance(kind.__call__, types.FunctionType)
        ):
            raise NotReplayableError(f"it holds a {kind.__name__}, whose calls are no Python")
        elif not known and kind is not object:
            raise NotReplayableError(f"it holds a {kind.__module__}.{kind.__name__}")

    def visit_row(self, kind, held, elements):
        """Take up a list, set or tuple: what it has itself, whatever its class tells."""
        elements = tuple(elements)
        self.entries.append((kind, held, elements))
        self.queue.extend(elements)

    def visit_dict(self, held, skipped):
        """Take up a dict."""
        items = {}
        for name, value in dict.items(held):
            if not isinstance(name, (str, int, float, bytes, type(None), enum.Enum, type)):
                raise NotReplayableError(f"it holds a dict with a {type(name).__name__} for a key")
            if name in skipped or (type(name) is str and name.startswith(_OF_CHECKPOINTS)):
                continue
            items[name] = value
        self.entries.append(("dict", held, items, skipped))
        self.queue.extend(items.values())

    def skipped_of(self, kind):
        """Return the names of attributes for which nobody asks, of instances of a class."""
        found = self.skipped.get(kind)
        if found is None:
            sets = [names for base, names in self.unasked.items() if issubclass(kind, base)]
            found = self.skipped[kind] = frozenset().union(*sets)
        return found


def _attributes(value, kind):
    """Return the very dict of an instance; None if it has none."""
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                raise NotReplayableError(f"it holds a {kind.__name__}, which has slots")
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if type(attributes) is dict else None


def globals_of(codes):
    """Return what some code may ask its modules, and modules in them.

    Parameters
    ----------
    codes : dict of tuple to dict
        The globals of each, by the code and their identity.

    Returns
    -------
    list of tuple
        The dict of a module, and by name what is asked of it.
    """
    found = {}
    for (code, _), namespace in codes.items():
        names = code.co_names
        modules = [namespace]
        passed = set()
        while modules:
            of = modules.pop()
            if id(of) in passed:
                continue
            passed.add(id(of))
            _, asked = found.setdefault(id(of), (of, {}))
            for name in names:
                if name in of:
                    asked[name] = value = of[name]
                    if isinstance(value, types.ModuleType) and is_own(value.__name__):
                        modules.append(vars(value))
    return [(of, asked) for of, asked in found.values() if asked]
