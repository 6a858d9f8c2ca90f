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

from fastops._install.lazy import LazyIterator
from fastops._specialize.policy import MAX_COMPARED_DEPTH

_OPAQUE = frozenset({tf.resource, tf.variant})
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MARKS = ("_keras_mask",)
_KEPT = (
    *(type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc),
    BaseResourceVariable,
)


def difference(ours, theirs, where="result", depth=0):
    """Return how fastops's result differs from TensorFlow's; `None` if it does not.

    Parameters
    ----------
    ours, theirs : object
        The result of fastops, and that of TensorFlow.
    where : str
        The name of the compared value, for the message.
    depth : int
        How many objects the value is nested in.
    """
    if ours is theirs or depth > MAX_COMPARED_DEPTH:  # deeper values are taken to be equal
        return None
    if not _same_class(ours, theirs):
        return f"{where}: {_shown(ours)}, not {_shown(theirs)}"
    if isinstance(ours, EagerTensor):
        return _of_tensors(ours, theirs, where)
    if isinstance(ours, np.ndarray | np.generic):
        return of_arrays(ours, theirs, where)
    if isinstance(ours, float | complex):
        return of_arrays(np.asarray(ours), np.asarray(theirs), where)
    if isinstance(ours, list | tuple):
        return _of_sequences(ours, theirs, where, depth)
    if isinstance(ours, dict):
        if list(ours) != list(theirs):
            return f"{where}: the keys {list(ours)!r}, not {list(theirs)!r}"
        return _first(ours, theirs, ours, where, depth, "{}[{!r}]")
    if isinstance(ours, _UnreadVariable):
        ours, theirs = (_value_of(variable) for variable in (ours, theirs))
        return _of_tensors(ours, theirs, where)
    if isinstance(ours, _KEPT):
        return f"{where}: {_shown(ours)}, not {_shown(theirs)}"
    if isinstance(ours, tf.IndexedSlices):
        parts = [(value.values, value.indices, value.dense_shape) for value in (ours, theirs)]
        return difference(*parts, where, depth + 1)
    if isinstance(ours, CompositeTensor):
        specs = ours._type_spec, theirs._type_spec
        if specs[0] != specs[1]:
            return f"{where}: {specs[0]}, not {specs[1]}"
        parts = (tf.nest.flatten(value, expand_composites=True) for value in (ours, theirs))
        return difference(*parts, where, depth + 1)
    return _of_objects(ours, theirs, where, depth)


def _same_class(ours, theirs):
    kind = type(theirs)
    return type(ours) is kind or (isinstance(ours, LazyIterator) and issubclass(type(ours), kind))


def difference_of_errors(ours, theirs):
    """Return how two exceptions differ; `None` if they do not.

    An argument `None` stands for a call that returned.
    """
    if ours is None and theirs is None:
        return None
    if ours is None and isinstance(theirs, FallbackException):
        return None  # TensorFlow catches this exception, and continues in a slower function
    told = [None if error is None else (type(error), _text(error)) for error in (ours, theirs)]
    if told[0] == told[1]:
        return None
    shown = ["no exception" if error is None else repr(error)[:400] for error in (ours, theirs)]
    return f"exception: {shown[0]}, not {shown[1]}"


def of_arrays(ours, theirs, where):
    """Return how two arrays or NumPy scalars differ; `None` if they do not."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{where}: {ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    if ours.dtype == object:
        equal = np.asarray([a == b for a, b in zip(ours.flat, theirs.flat, strict=True)], bool)
        differs = ~equal.reshape(ours.shape)
    elif ours.tobytes() == theirs.tobytes():
        return None
    else:
        size = ours.dtype.itemsize
        parts = [np.frombuffer(a.tobytes(), np.uint8).reshape(-1, size) for a in (ours, theirs)]
        differs = (parts[0] != parts[1]).any(axis=1).reshape(ours.shape)
    if not differs.any():
        return None
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    at = f" at {list(index)}" if index else ""
    return (
        f"{where}: {np.count_nonzero(differs)} of {differs.size} elements differ, the first{at}: "
        f"{_bits(ours[index])}, not {_bits(theirs[index])}"
    )


def _bits(value):
    array = np.asarray(value)
    if array.dtype == object:
        return repr(value)[:200]
    return f"{value!s} (0x{array.tobytes()[::-1].hex()})"


def _of_tensors(ours, theirs, where):
    if ours.dtype != theirs.dtype or ours.shape.as_list() != theirs.shape.as_list():
        told = [f"{value.dtype.name}{value.shape.as_list()}" for value in (ours, theirs)]
        return f"{where}: {told[0]}, not {told[1]}"
    if ours.device != theirs.device:
        return f"{where}: on {ours.device}, not on {theirs.device}"
    if ours.dtype not in _OPAQUE:
        text = of_arrays(np.asarray(ours.numpy()), np.asarray(theirs.numpy()), where)
        if text is not None:
            return text
    for mark in _MARKS:
        marks = [vars(value).get(mark, "nothing") for value in (ours, theirs)]
        text = difference(*marks, f"{where}.{mark}")
        if text is not None:
            return text
    return None


def _of_sequences(ours, theirs, where, depth):
    if len(ours) != len(theirs):
        return f"{where}: {len(ours)} items, not {len(theirs)}"
    return _first(ours, theirs, range(len(ours)), where, depth, "{}[{}]")


def _of_objects(ours, theirs, where, depth):
    try:
        if bool(ours == theirs) or (ours != ours and theirs != theirs):
            return None
    except Exception:  # they have no `==`: compare their attributes
        pass
    held = [_held(value) for value in (ours, theirs)]
    if isinstance(ours, types.MethodType):
        held = [
            {"__func__": value.__func__, "__self__": value.__self__} for value in (ours, theirs)
        ]
    if held[0] is None:
        plain = isinstance(ours, str | bytes | int | type(None) | set | frozenset)
        return f"{where}: {_shown(ours)}, not {_shown(theirs)}" if plain else None
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


def _first(ours, theirs, keys, where, depth, text):
    """Return the first difference between the items at these keys."""
    for key in keys:
        told = difference(ours[key], theirs[key], text.format(where, key), depth + 1)
        if told is not None:
            return told
    return None


def _value_of(variable):
    return gen_resource_variable_ops.read_variable_op(variable._handle, variable._dtype)


def _text(error):
    return _ADDRESS.sub("0x", str(error))


def _shown(value):
    return f"{type(value).__name__} {value!r}"[:200]
