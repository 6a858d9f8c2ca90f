# distutils: language = c++
"""Answers for functions that convert values to arrays of NumPy, or describe tensors like arrays.

TensorFlow's function for conversions parses NumPy's version in each call, which takes 10 us. Each
value that a function of `tf.numpy_function` or `tf.py_function` returns is converted by it.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None
from fastops._install.answer cimport MAX_PARAMS, Answer, register

import numpy as np
from tensorflow.python.framework.ops import EagerTensor


cdef str _version = np.__version__
cdef object _NumpyVersion = np.lib.NumpyVersion
cdef bint _copies_are_options = _NumpyVersion(_version) >= "2.0.0.dev0"

cdef frozenset _PLAIN = frozenset(
    [np.ndarray, EagerTensor, list, tuple, bool, int, float, complex, str, bytes]
)


cdef object _as_array(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # values, dtype=None, order=None, copy=None
    cdef PyObject* given[MAX_PARAMS]
    if (
        not self.bind(args, n, keywords, given)
        or np.__version__ is not _version
        or np.lib.NumpyVersion is not _NumpyVersion
    ):
        return DECLINED
    values, dtype = <object>given[0], <object>given[1]
    order, copy = <object>given[2], <object>given[3]
    if type(values) not in _PLAIN and not isinstance(values, np.generic):
        return DECLINED
    try:
        if not _copies_are_options:
            return np.asarray(values, dtype=dtype, order=order)
        if dtype is not None and np.issubdtype(dtype, np.number):
            array = np.asarray(values, order=order, copy=copy)
            if array.dtype.kind == "c" and np.dtype(dtype).kind != "c":
                return DECLINED  # NumPy's warning names a line of TensorFlow's function
            return array.astype(dtype, copy=copy)
        return np.asarray(values, dtype=dtype, order=order, copy=copy)
    except Exception:  # the error of TensorFlow's function has its frames in the traceback
        return DECLINED


cdef object _ndim(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # a
    if n != 1 or keywords != NULL or not IsEagerTensor(args[0]):
        return DECLINED
    return len((<object>args[0])._shape_tuple())


cdef object _shape(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # a
    if n != 1 or keywords != NULL or not IsEagerTensor(args[0]):
        return DECLINED
    return (<object>args[0]).shape


cdef object _size(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # x, axis=None
    cdef PyObject* given[MAX_PARAMS]
    if (
        not self.bind(args, n, keywords, given)
        or given[1] != Py_None
        or not IsEagerTensor(given[0])
    ):
        return DECLINED
    return np.int64((<object>given[0])._num_elements())


register("helpers", "np_array_ops.ndim", _ndim)
register("helpers", "np_array_ops.shape", _shape)
register("helpers", "np_array_ops.size", _size)
register("helpers", "numpy_compat.np_asarray", _as_array)
