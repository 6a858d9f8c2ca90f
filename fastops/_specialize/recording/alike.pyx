# distutils: language = c++
"""Compares two values bit by bit: recordings and their parts, results, fetched arrays."""

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM

from fastops._core.tensors cimport host_tensor, same_bytes
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._tf.tensor cimport Tensor

from dataclasses import is_dataclass as _is_dataclass

import numpy as np
import tensorflow as _tf

cdef object _Variable = _tf.Variable

cdef tuple _ARRAYS = (np.ndarray, np.generic)

# By class: whether it is a class of variables, and whether it is a dataclass.
cdef dict _kinds = {}
cdef frozenset _NUMBERS = frozenset([bool, int, str, bytes, type(None), range])


def alike(left, right):
    """Tell whether two values are equal bit by bit.

    They may be recordings or parts of these, tensors, NumPy's arrays and scalars, and lists, tuples
    and dicts of these. Two variables are never alike.
    """
    return _alike(left, right)


cdef bint _alike(object left, object right) except -1:
    cdef const Tensor* tensor
    cdef const Tensor* other_tensor
    cdef Py_ssize_t i
    kind = type(left)
    if kind is not type(right):
        return False
    if left is right:
        return True
    if kind in _NUMBERS:
        return left == right
    if kind is float:  # zeros differ by their sign
        return repr(left) == repr(right)
    if IsEagerTensor(<PyObject*>left):
        tensor, other_tensor = host_tensor(<PyObject*>left), host_tensor(<PyObject*>right)
        if tensor != NULL and other_tensor != NULL:
            return same_bytes(tensor, other_tensor)
        return _bytes(left) == _bytes(right)
    if kind is list:
        if len(<list>left) != len(<list>right):
            return False
        for i in range(len(<list>left)):
            if not _alike(<object>PyList_GET_ITEM(left, i), <object>PyList_GET_ITEM(right, i)):
                return False
        return True
    if kind is tuple:
        if len(<tuple>left) != len(<tuple>right):
            return False
        for i in range(len(<tuple>left)):
            if not _alike(<object>PyTuple_GET_ITEM(left, i), <object>PyTuple_GET_ITEM(right, i)):
                return False
        return True
    if kind is dict:
        return _same_items(left, right)
    traits = _kinds.get(kind)
    if traits is None:
        traits = _kinds[kind] = (issubclass(kind, _Variable), _is_dataclass(kind))
    if traits[0]:
        return False  # these are two different variables
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all([_alike(a, b) for a, b in zip(left, right)])
    if isinstance(left, dict):
        return _same_items(dict(left), dict(right))
    if traits[1]:
        return _same_items(vars(left), vars(right))
    if isinstance(left, _ARRAYS):
        return (left.dtype, left.shape) == (right.dtype, right.shape) and (
            left.tolist() == right.tolist() if left.dtype == object
            else left.tobytes() == right.tobytes()
        )
    return bool(left == right) or (left != left and right != right)


cdef bint _same_items(dict left, dict right) except -1:
    """Whether two dicts have the same keys in the same order, and values that are alike."""
    if len(left) != len(right) or list(left) != list(right):
        return False
    for a, b in zip(left.values(), right.values()):
        if not _alike(a, b):
            return False
    return True


cdef object _bytes(tensor):
    value = tensor.numpy()
    if tensor.dtype == _tf.string:
        elements = value if type(value) is bytes else value.tolist()  # a scalar is no array
    else:
        elements = value.tobytes()
    return tensor.dtype, tuple(tensor.shape), elements
