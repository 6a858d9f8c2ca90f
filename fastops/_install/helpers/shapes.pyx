# distutils: language = c++
"""Answers for the constructor and the methods of `tf.TensorShape`.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact

from fastops._core.conversion cimport is_array
from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport Py_None
from fastops._install.answer cimport Answer, register

import numpy as np
from tensorflow.python.framework.tensor_shape import Dimension as _Dimension
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape


cdef object _new = object.__new__
cdef frozenset _integers = frozenset(
    (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
)


cdef bint _known(PyObject* const* args, Py_ssize_t n, PyObject* keywords) except -1:
    """Whether a method gets no arguments but a shape, of exactly the class `TensorShape`."""
    return n == 1 and keywords == NULL and type(<object>args[0]) is _TensorShape


cdef tuple _sizes(object dims):
    """Return the sizes of a shape as a tuple of ints and None; None to fall back to TensorFlow."""
    cdef list sizes = []
    if is_array(<PyObject*>dims):
        if dims.ndim != 1 or dims.dtype.type not in _integers:
            return None
        dims = dims.tolist()
    for size in dims:
        if type(size) is _Dimension:
            size = size._value
        elif size is not None:
            if type(size) in _integers:
                size = int(size)
            if not PyLong_CheckExact(size) or size < 0:
                return None
        sizes.append(size)
    return tuple(sizes)


cdef object _shape_of(tuple sizes):
    shape = _new(_TensorShape)
    shape._dims = sizes
    return shape


cdef object _make_shape(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, dims
    cdef PyObject* dims
    cdef tuple sizes
    if n != 2 or keywords != NULL:
        return DECLINED
    dims = args[1]
    if (
        PyTuple_CheckExact(<object>dims)
        or PyList_CheckExact(<object>dims)
        or is_array(dims)
    ):
        sizes = _sizes(<object>dims)
        if sizes is None:
            return DECLINED
        (<object>args[0])._dims = sizes
    elif dims == Py_None:
        (<object>args[0])._dims = None
    elif type(<object>dims) is _TensorShape:
        (<object>args[0])._dims = (<object>dims)._dims
    else:
        return DECLINED
    return None


cdef object _dimensions(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    cdef list made
    if n != 1 or keywords != NULL:
        return DECLINED
    sizes = (<object>args[0])._dims
    if sizes is None:
        return None
    if type(sizes) is not tuple:
        return DECLINED
    made = []
    for size in <tuple>sizes:
        if size is not None and (not PyLong_CheckExact(size) or size < 0):
            return DECLINED
        dimension = _new(_Dimension)
        dimension._value = size
        made.append(dimension)
    return made


cdef object _rank(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    if not _known(args, n, keywords):
        return DECLINED
    sizes = (<object>args[0])._dims
    return None if sizes is None else len(sizes)


cdef object _as_list(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    if not _known(args, n, keywords):
        return DECLINED
    sizes = (<object>args[0])._dims
    return DECLINED if sizes is None else list(sizes)


cdef object _is_fully_defined(Answer self, PyObject* const* args, Py_ssize_t n,
                              PyObject* keywords):
    # self
    if not _known(args, n, keywords):
        return DECLINED
    sizes = (<object>args[0])._dims
    return sizes is not None and None not in sizes


cdef object _num_elements(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    cdef object product = 1
    if not _known(args, n, keywords):
        return DECLINED
    sizes = (<object>args[0])._dims
    if sizes is None or None in sizes:
        return None
    for size in sizes:
        product = product * size
    return product


cdef object _concatenate(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, other
    cdef PyObject* other
    if n != 2 or not _known(args, 1, keywords):
        return DECLINED
    other = args[1]
    sizes = (<object>args[0])._dims
    if sizes is not None and type(sizes) is not tuple:  # a recording notes which sizes are read
        return DECLINED
    if type(<object>other) is _TensorShape:
        others = (<object>other)._dims
        if others is not None and type(others) is not tuple:
            return DECLINED
    elif PyTuple_CheckExact(<object>other) or PyList_CheckExact(<object>other):
        others = _sizes(<object>other)
        if others is None:
            return DECLINED
    else:
        return DECLINED
    return _shape_of(None if sizes is None or others is None else <tuple>sizes + <tuple>others)


register("helpers", "TensorShape.__init__", _make_shape)
register("helpers", "TensorShape.as_list", _as_list)
register("helpers", "TensorShape.concatenate", _concatenate)
register("helpers", "TensorShape.dims", _dimensions)
register("helpers", "TensorShape.is_fully_defined", _is_fully_defined)
register("helpers", "TensorShape.num_elements", _num_elements)
register("helpers", "TensorShape.rank", _rank)
