# distutils: language = c++
"""Answer for the function by which TensorFlow converts values to arrays of NumPy.

TensorFlow's function parses NumPy's version in each call, which takes 10 us. Each value that a
function of `tf.numpy_function` or `tf.py_function` returns is converted by it.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
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
            return np.asarray(values, order=order, copy=copy).astype(dtype, copy=copy)
        return np.asarray(values, dtype=dtype, order=order, copy=copy)
    except Exception:  # the error of TensorFlow's function has its frames in the traceback
        return DECLINED


register("helpers", "numpy_compat.np_asarray", _as_array)
