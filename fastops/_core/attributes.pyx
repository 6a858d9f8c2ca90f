# distutils: language = c++
"""Attribute values. They are encoded once and compared on every call."""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp
from cpython.object cimport Py_TYPE
from libcpp.string cimport string

from fastops._tf.protos cimport DT_INVALID, AttrList, AttrValue, DataType, TensorShapeProto

cdef extern from "definitions.h":
    pass

import numpy as np
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto as _ShapeProto
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.tensor_shape import TensorShape

MISSING = object()
cdef object _DType = _dtypes.DType


@cython.final
cdef class _Sizes:
    """The sizes of a `TensorShape`.

    Keys store this class, because TensorFlow's tests report surviving `TensorShape`s as leaks.
    """

    cdef object sizes  # None for an unknown rank

    def __init__(self, shape):
        self.sizes = shape._dims

    def __repr__(self):
        return repr(TensorShape(self.sizes))


cdef bint is_constant(object value) noexcept:
    """Whether the value of this object can never change."""
    return not isinstance(value, (list, tuple, _ShapeProto))


cdef bint is_comparable(object value) except -1:
    """Whether `same` and `hash_of` support this kind of value."""
    cdef type kind = type(value)
    if (
        value is None
        or kind is bool
        or kind is int
        or kind is str
        or kind is float
        or kind is bytes
        or isinstance(value, _DType)
        or kind is TensorShape
        or kind is _ShapeProto
        or isinstance(value, (type, np.dtype))
    ):
        return True
    if kind is list or kind is tuple:
        for item in value:
            if not is_comparable(item):
                return False
        return True
    return False


@cython.boundscheck(True)  # another thread may shorten a list during the loop
cdef bint same(object stored, object given) except -1:
    """Whether two comparable values encode to the same attribute."""
    cdef type kind = type(stored)
    cdef double x, y
    cdef Py_ssize_t i
    if kind is _Sizes:  # == is false for partly unknown shapes
        return type(given) is TensorShape and (<_Sizes>stored).sizes == given._dims
    if kind is not type(given):
        return False
    if kind is list or kind is tuple:  # a tuple may hold lists
        if len(stored) != len(given):
            return False
        for i in range(len(stored)):
            if not same(stored[i], given[i]):
                return False
        return True
    if stored is given:
        return True
    if kind is float:  # compare bits: 0.0 differs from -0.0, NaN equals NaN
        x = stored
        y = given
        return memcmp(&x, &y, sizeof(double)) == 0
    if (
        kind is int or kind is str or kind is bytes or kind is _ShapeProto
        or isinstance(stored, np.dtype)
    ):
        return stored == given
    return False  # None, bool, DType and classes are equal only if they are the same object


cdef uint64_t hash_of(object value) except? 0:
    cdef uint64_t state = <uint64_t><size_t>Py_TYPE(value)
    if isinstance(value, (list, tuple)):
        for item in value:
            state = mix(state, hash_of(item))
        return state
    if type(value) is TensorShape:
        value = value._dims
    elif type(value) is _ShapeProto:
        value = value.SerializeToString(deterministic=True)
    elif isinstance(value, _DType):
        value = value._type_enum
    return mix(state, <uint64_t>hash(value))


cdef object snapshot(object value):
    """Returns a copy that does not change when the caller changes the value."""
    if isinstance(value, (list, tuple)):
        return type(value)([snapshot(item) for item in value])
    if type(value) is _ShapeProto:
        copy = _ShapeProto()
        copy.CopyFrom(value)
        return copy
    return _Sizes(value) if type(value) is TensorShape else value


cdef object restored(object value):
    if isinstance(value, (list, tuple)):
        return type(value)([restored(item) for item in value])
    return TensorShape((<_Sizes>value).sizes) if type(value) is _Sizes else value


cdef DataType data_type(object value) except? DT_INVALID:
    if not isinstance(value, _DType):
        value = _dtypes.as_dtype(value)
    return <DataType><int>value._type_enum


cdef string to_bytes(object value) except *:
    return value.encode() if isinstance(value, str) else value


cdef bint _encode_shape(object value, TensorShapeProto* proto) except -1:
    if value is None:
        proto.set_unknown_rank(True)
        return True
    if isinstance(value, _ShapeProto):
        for dim in value.dim:
            if dim.name:
                return False
        value = TensorShape(value)
    if isinstance(value, TensorShape):
        if value.rank is None:
            proto.set_unknown_rank(True)
            return True
        value = value.as_list()
    if not isinstance(value, (list, tuple)):
        return False
    for size in value:
        if size is not None and type(size) is not int:
            return False
        proto.add_dim().set_size(-1 if size is None else <int64_t>size)
    return True


cdef bint _encode_scalar(object value, str kind, AttrValue* out) except -1:
    """Encodes a value as TensorFlow does. Returns False for a value that is not supported here."""
    if kind == "int" and type(value) is int:
        out.set_i(value)
    elif kind == "float" and type(value) in (float, int):
        out.set_f(value)
    elif kind == "bool" and type(value) is bool:
        out.set_b(value)
    elif kind == "string" and type(value) in (str, bytes):
        out.set_s(to_bytes(value))
    elif kind == "type":
        out.set_type(data_type(value))
    elif kind == "shape":
        return _encode_shape(value, out.mutable_shape())
    else:
        return False
    return True


cdef bint _encode_item(object value, str kind, AttrList* out) except -1:
    if kind == "int" and type(value) is int:
        out.add_i(value)
    elif kind == "float" and type(value) in (float, int):
        out.add_f(value)
    elif kind == "bool" and type(value) is bool:
        out.add_b(value)
    elif kind == "string" and type(value) in (str, bytes):
        out.add_s(to_bytes(value))
    elif kind == "type":
        out.add_type(data_type(value))
    elif kind == "shape":
        return _encode_shape(value, out.add_shape())
    else:
        return False
    return True


cdef bint is_taken(object value, str kind) except -1:
    """Whether TensorFlow's dispatch call accepts an attribute's value without conversion.

    If not, TensorFlow runs the op through a different function, whose error messages differ.
    """
    if value is None:  # stands for the default of the OpDef
        return True
    if kind.startswith("list("):
        for item in value:
            if not is_taken(item, kind[5:len(kind) - 1]):
                return False
    elif kind == "float":
        return isinstance(value, float)
    elif kind == "int":
        return isinstance(value, int)
    elif kind == "bool":
        return isinstance(value, bool)
    elif kind == "type":
        return isinstance(value, int) or hasattr(value, "_type_enum")
    elif kind == "shape" and not isinstance(value, TensorShape):
        for item in value:
            if item is not None and not isinstance(item, int) and not hasattr(item, "_value"):
                return False
    return True


cdef bint encode(object value, str kind, AttrValue* out) except -1:
    if not kind.startswith("list("):
        return _encode_scalar(value, kind, out)
    if not isinstance(value, (list, tuple)):
        return False
    out.mutable_list()
    for item in value:
        if not _encode_item(item, kind[5:len(kind) - 1], out.mutable_list()):
            return False
    return True


cdef str shown(object value, object default):
    """Returns an attribute's value as text."""
    if value is MISSING:
        return f"{shown(default, None)} (default)"
    return value.name if isinstance(value, _DType) else repr(value)
