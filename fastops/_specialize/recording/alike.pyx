# distutils: language = c++
"""Compares two recordings bit by bit."""

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM

from fastops._core.tensors cimport host_tensor, same_bytes
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._tf.tensor cimport Tensor

from dataclasses import is_dataclass as _is_dataclass

import tensorflow as _tf

cdef object _Variable = _tf.Variable

# By class: whether it is a class of variables, and whether it is a dataclass.
cdef dict _kinds = {}
cdef frozenset _NUMBERS = frozenset([bool, int, str, bytes, type(None), range])


def alike(one, other):
    """Tell whether two recordings, or parts of them, are equal bit by bit."""
    return _alike(one, other)


cdef bint _alike(object one, object other) except -1:
    cdef const Tensor* tensor
    cdef const Tensor* other_tensor
    cdef Py_ssize_t i
    kind = type(one)
    if kind is not type(other):
        return False
    if one is other:
        return True
    if kind in _NUMBERS:
        return one == other
    if IsEagerTensor(<PyObject*>one):
        tensor, other_tensor = host_tensor(<PyObject*>one), host_tensor(<PyObject*>other)
        if tensor != NULL and other_tensor != NULL:
            return same_bytes(tensor, other_tensor)
        return _bytes(one) == _bytes(other)
    if kind is list:
        if len(<list>one) != len(<list>other):
            return False
        for i in range(len(<list>one)):
            if not _alike(<object>PyList_GET_ITEM(one, i), <object>PyList_GET_ITEM(other, i)):
                return False
        return True
    if kind is tuple:
        if len(<tuple>one) != len(<tuple>other):
            return False
        for i in range(len(<tuple>one)):
            if not _alike(<object>PyTuple_GET_ITEM(one, i), <object>PyTuple_GET_ITEM(other, i)):
                return False
        return True
    if kind is dict:
        return _same_items(one, other)
    found = _kinds.get(kind)
    if found is None:
        found = _kinds[kind] = (issubclass(kind, _Variable), _is_dataclass(kind))
    if found[0]:
        return False  # these are two different variables
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all([_alike(a, b) for a, b in zip(one, other)])
    if isinstance(one, dict):
        return _same_items(dict(one), dict(other))
    if found[1]:
        return _same_items(vars(one), vars(other))
    return bool(one == other) or (one != one and other != other)


cdef bint _same_items(dict one, dict other) except -1:
    """Whether two dicts have the same keys in the same order, and values that are alike."""
    if len(one) != len(other) or list(one) != list(other):
        return False
    for a, b in zip(one.values(), other.values()):
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
