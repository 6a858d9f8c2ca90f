"""Python functions by their code and by what their cells hold.

A function with a custom gradient makes its gradient function anew in each call. A replay of the
call makes the function from a `Closure`, with its own tensors in the cells.
"""

import dis
import sys
import types

import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from fastops._core import bytecode
from fastops._specialize.cache import Cache
from fastops._specialize.libraries import is_own
from fastops._specialize.policy import MAX_CLOSURES, MAX_PLAIN_DEPTH

_ATOMS = (bool, int, float, complex, str, bytes, type(None))
_STORES = {"STORE_DEREF", "DELETE_DEREF"}

_closures = Cache(MAX_CLOSURES)
"""The closures, by what they consist of."""


class NotClosedError(Exception):
    """A function depends on an object of another kind than those that closures know."""


class TensorPlace(int):
    """Stands for a tensor in a closure: its index among the tensors."""


class PackedFunction:
    """Stands for a function in a closure.

    Parameters
    ----------
    code : code
        The code.
    namespace : dict
        The globals.
    defaults : tuple or None
        The packed default values.
    cells : tuple or None
        What the cells hold, packed.
    """

    __slots__ = ("cells", "code", "defaults", "namespace")

    def __init__(self, code, namespace, defaults, cells):
        self.code, self.namespace = code, namespace
        self.defaults, self.cells = defaults, cells


class Closure:
    """A function without its tensors. Functions with the same code and values have the same one.

    Parameters
    ----------
    packed : PackedFunction
        The function.

    Attributes
    ----------
    of_users : bool
        Whether one of the functions is not from a known library.
    """

    def __init__(self, packed):
        self._packed = packed
        self.of_users = _is_of_users(packed)

    def made(self, tensors):
        """Return a function.

        Parameters
        ----------
        tensors : list of EagerTensor
            Its tensors.
        """
        return _filled(self._packed, tensors)


def _is_of_users(packed):
    if type(packed) is PackedFunction:
        parts = (packed.defaults, packed.cells)
        return not is_own(packed.namespace["__name__"]) or any(map(_is_of_users, parts))
    return type(packed) in (list, tuple) and any(map(_is_of_users, packed))


def _filled(packed, tensors):
    if type(packed) is TensorPlace:
        return tensors[packed]
    if type(packed) is PackedFunction:
        cells = [types.CellType(_filled(item, tensors)) for item in packed.cells or ()]
        return types.FunctionType(
            packed.code,
            packed.namespace,
            None,
            _filled(packed.defaults, tensors),
            tuple(cells) if cells else None,
        )
    if type(packed) in (list, tuple):
        return type(packed)([_filled(item, tensors) for item in packed])
    return packed


def closure_of(function):
    """Return the `Closure` of a function, and its tensors.

    Parameters
    ----------
    function : function
        A function that no longer changes what its cells hold. A user's function is made by code
        that is shown to be pure: no other function that it makes outlives the call.

    Returns
    -------
    Closure
    list of EagerTensor
        Each tensor once.

    Raises
    ------
    NotClosedError
        If the function depends on an object that may change.
    """
    tensors = []
    key, packed = _packed(function, tensors, 0)
    if type(packed) is not PackedFunction:
        raise NotClosedError
    closure = _closures.get(key)
    if closure is None:
        closure = _closures.add(key, Closure(packed))
    return closure, tensors


def _packed(value, tensors, depth):
    """Return the key of a value, and the value with stand-ins for functions and tensors."""
    kind = type(value)
    if depth > MAX_PLAIN_DEPTH:
        raise NotClosedError
    if kind is EagerTensor:
        index = next((i for i, tensor in enumerate(tensors) if tensor is value), len(tensors))
        if index == len(tensors):
            tensors.append(value)
        return (TensorPlace, index), TensorPlace(index)
    if kind is types.FunctionType:
        return _packed_function(value, tensors, depth)
    if kind in (list, tuple):
        pairs = [_packed(item, tensors, depth + 1) for item in value]
        return (kind, *(key for key, _ in pairs)), kind([packed for _, packed in pairs])
    if kind in _ATOMS:
        return (kind, repr(value)), value
    if kind is tf.DType:
        return (kind, value), value
    raise NotClosedError


def _packed_function(function, tensors, depth):
    namespace, code = function.__globals__, function.__code__
    module = sys.modules.get(namespace.get("__name__"))
    if module is None or module.__dict__ is not namespace:
        raise NotClosedError
    if not is_own(module.__name__) and _has_lists((function.__defaults__, _held_by(function))):
        raise NotClosedError  # a list may change, and other code of the user may have it
    if function.__kwdefaults__ or vars(function) or stores_in_cells(code, code.co_freevars):
        raise NotClosedError
    defaults = _packed(function.__defaults__, tensors, depth + 1)
    cells = _packed(_held_by(function), tensors, depth + 1)
    key = (PackedFunction, code, id(namespace), defaults[0], cells[0])
    return key, PackedFunction(code, namespace, defaults[1], cells[1])


def _held_by(function):
    """Return what the cells of a function hold, as a tuple."""
    try:
        return tuple([cell.cell_contents for cell in function.__closure__ or ()])
    except ValueError:  # an empty cell
        raise NotClosedError from None


def _has_lists(value):
    """Tell whether a value is a list, or a tuple with lists."""
    return type(value) is list or (type(value) is tuple and any(map(_has_lists, value)))


def stores_in_cells(code, names):
    """Tell whether code assigns to one of its free variables."""
    if not bytecode.REVIEWED or any(
        instruction.opname in _STORES and instruction.argval in names
        for instruction in dis.get_instructions(code)
    ):
        return True
    return any(
        isinstance(const, types.CodeType) and stores_in_cells(const, names)
        for const in code.co_consts
    )
