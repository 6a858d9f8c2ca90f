# distutils: language = c++
"""Checks of arguments for lowerings: whether they are tensors, their static shape and dtype."""

from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._cpp.declarations cimport IsEagerTensor
from fastops._install.intercept cimport DTYPES, dtype_bits

from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.tensor_shape import TensorShape


cdef object _DType = _dtypes.DType

COMPLEX = dtype_bits([_dtypes.complex64, _dtypes.complex128])
INTEGERS = dtype_bits(
    getattr(_dtypes, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)
FLOATS = dtype_bits([_dtypes.bfloat16, _dtypes.float16, _dtypes.float32, _dtypes.float64])
NUMERIC = COMPLEX | INTEGERS | FLOATS
VALUES = NUMERIC | dtype_bits([_dtypes.bool])


cdef bint are_tensors(PyObject* values, Py_ssize_t least):
    """Whether a value is a list or tuple of at least `least` eager tensors."""
    cdef Py_ssize_t i
    if PyList_CheckExact(<object>values):
        if PyList_GET_SIZE(<object>values) < least:
            return False
        for i in range(PyList_GET_SIZE(<object>values)):
            if not IsEagerTensor(PyList_GET_ITEM(<object>values, i)):
                return False
        return True
    if not PyTuple_CheckExact(<object>values) or PyTuple_GET_SIZE(<object>values) < least:
        return False
    for i in range(PyTuple_GET_SIZE(<object>values)):
        if not IsEagerTensor(PyTuple_GET_ITEM(<object>values, i)):
            return False
    return True


cdef object base_dtype(object value):
    """Return the `tf.DType` that a value stands for. Raise TypeError if there is none."""
    if type(value) is not _DType:
        value = _dtypes.as_dtype(value)
    return value if value._type_enum < DTYPES else value.base_dtype


cdef object static_shape(object shape):
    """Return a static shape as a tuple of 32-bit ints; None for any other value."""
    cdef long long number
    if type(shape) is TensorShape:
        shape = (<object>shape)._dims
    if type(shape) is not tuple and type(shape) is not list or len(shape) > MAX_RANK:
        return None
    for size in shape:
        if not is_int32(<PyObject*>size, &number) or number < 0:
            return None
    return tuple(shape)
