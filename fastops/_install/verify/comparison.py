"""Compares results of fastops and TensorFlow to the last bit, and finds the first difference."""

import re
import types
from dataclasses import is_dataclass

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.core import _FallbackException as FallbackException
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, _UnreadVariable

MOST_DEPTH = 8
"""How deep objects are compared. Values below that are taken to be the same."""

_OPAQUE = frozenset({tf.resource, tf.variant})
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MARKS = ("_keras_mask",)
_KEPT = (
    *(type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc),
    BaseResourceVariable,
)


def difference(one, other, where="result", depth=0):
    """Return how fastops's result differs from TensorFlow's; `None` if it does not.

    Parameters
    ----------
    one, other : object
        The result of fastops, and that of TensorFlow.
    where : str
        The name of the compared value, for the message.
    depth : int
        How many objects the value is nested in.
    """
    if one is other or depth > MOST_DEPTH:
        return None
    if type(one) is not type(other):
        return f"{where}: {_shown(one)}, not {_shown(other)}"
    if isinstance(one, EagerTensor):
        return _of_tensors(one, other, where)
    if isinstance(one, np.ndarray | np.generic):
        return of_arrays(one, other, where)
    if isinstance(one, float | complex):
        return of_arrays(np.asarray(one), np.asarray(other), where)
    if isinstance(one, list | tuple):
        return _of_sequences(one, other, where, depth)
    if isinstance(one, dict):
        if list(one) != list(other):
            return f"{where}: the keys {list(one)!r}, not {list(other)!r}"
        return _first(one, other, one, where, depth, "{}[{!r}]")
    if isinstance(one, _UnreadVariable):
        one, other = (_value_of(variable) for variable in (one, other))
        return _of_tensors(one, other, where)
    if isinstance(one, _KEPT):
        return f"{where}: {_shown(one)}, not {_shown(other)}"
    if isinstance(one, tf.IndexedSlices):
        parts = [(value.values, value.indices, value.dense_shape) for value in (one, other)]
        return difference(*parts, where, depth + 1)
    if isinstance(one, CompositeTensor):
        specs = one._type_spec, other._type_spec
        if specs[0] != specs[1]:
            return f"{where}: {specs[0]}, not {specs[1]}"
        parts = (tf.nest.flatten(value, expand_composites=True) for value in (one, other))
        return difference(*parts, where, depth + 1)
    return _of_objects(one, other, where, depth)


def difference_of_errors(one, other):
    """Return how two exceptions differ; `None` if they do not.

    An argument `None` stands for a call that returned.
    """
    if one is None and other is None:
        return None
    if one is None and isinstance(other, FallbackException):
        return None  # TensorFlow catches this exception, and continues in a slower function
    told = [None if error is None else (type(error), _text(error)) for error in (one, other)]
    if told[0] == told[1]:
        return None
    shown = ["no exception" if error is None else repr(error)[:400] for error in (one, other)]
    return f"exception: {shown[0]}, not {shown[1]}"


def of_arrays(one, other, where):
    """Return how two arrays or NumPy scalars differ; `None` if they do not."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{where}: {one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
    if one.dtype == object:
        equal = np.asarray([a == b for a, b in zip(one.flat, other.flat, strict=True)], bool)
        differs = ~equal.reshape(one.shape)
    elif one.tobytes() == other.tobytes():
        return None
    else:
        size = one.dtype.itemsize
        parts = [np.frombuffer(a.tobytes(), np.uint8).reshape(-1, size) for a in (one, other)]
        differs = (parts[0] != parts[1]).any(axis=1).reshape(one.shape)
    if not differs.any():
        return None
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    at = f" at {list(place)}" if place else ""
    return (
        f"{where}: {np.count_nonzero(differs)} of {differs.size} elements differ, the first{at}: "
        f"{_bits(one[place])}, not {_bits(other[place])}"
    )


def _bits(value):
    array = np.asarray(value)
    if array.dtype == object:
        return repr(value)[:200]
    return f"{value!s} (0x{array.tobytes()[::-1].hex()})"


def _of_tensors(one, other, where):
    if one.dtype != other.dtype or one.shape.as_list() != other.shape.as_list():
        told = [f"{value.dtype.name}{value.shape.as_list()}" for value in (one, other)]
        return f"{where}: {told[0]}, not {told[1]}"
    if one.device != other.device:
        return f"{where}: on {one.device}, not on {other.device}"
    if one.dtype not in _OPAQUE:
        found = of_arrays(np.asarray(one.numpy()), np.asarray(other.numpy()), where)
        if found is not None:
            return found
    for mark in _MARKS:
        marks = [vars(value).get(mark, "nothing") for value in (one, other)]
        found = difference(*marks, f"{where}.{mark}")
        if found is not None:
            return found
    return None


def _of_sequences(one, other, where, depth):
    if len(one) != len(other):
        return f"{where}: {len(one)} items, not {len(other)}"
    return _first(one, other, range(len(one)), where, depth, "{}[{}]")


def _of_objects(one, other, where, depth):
    try:
        if bool(one == other) or (one != one and other != other):
            return None
    except Exception:  # they have no `==`: compare their attributes
        pass
    held = [_held(value) for value in (one, other)]
    if isinstance(one, types.MethodType):
        held = [{"__func__": value.__func__, "__self__": value.__self__} for value in (one, other)]
    if held[0] is None:
        plain = isinstance(one, str | bytes | int | type(None) | set | frozenset)
        return f"{where}: {_shown(one)}, not {_shown(other)}" if plain else None
    if held[0].keys() != held[1].keys():
        told = [sorted(names) for names in held]
        return f"{where}: the attributes {told[0]}, not {told[1]}"
    return _first(*held, held[0], where, depth, "{}.{}")


def _held(value):
    """Return the attributes of an object; `None` if it has none that can be listed."""
    if is_dataclass(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    try:
        return dict(vars(value))
    except TypeError:
        slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
        return {name: getattr(value, name) for name in slots if hasattr(value, name)} or None


def _first(one, other, keys, where, depth, text):
    """Return the first difference between the items at these keys."""
    for key in keys:
        found = difference(one[key], other[key], text.format(where, key), depth + 1)
        if found is not None:
            return found
    return None


def _value_of(variable):
    return gen_resource_variable_ops.read_variable_op(variable._handle, variable._dtype)


def _text(error):
    return _ADDRESS.sub("0x", str(error))


def _shown(value):
    return f"{type(value).__name__} {value!r}"[:200]
