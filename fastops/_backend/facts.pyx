# distutils: language = c++
"""Fast access to facts about tensors: rank, sizes, dtype.

The facts of a tensor on the host come from the tensor itself. For other values they come from
TensorFlow's Python attributes.
"""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.ref cimport Py_INCREF

from fastops._core.tensors cimport dtype_of, host_tensor, num_elements, rank_of, size_of
from fastops._core.tensors cimport same_sizes as _same_sizes
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._install.intercept cimport DTYPES
from fastops._situation cimport IN_ORDER, ONLY_HOST, missing
from fastops._tf.eager cimport recording
from fastops._tf.tensor cimport Tensor

import numpy as np

from tensorflow.python.framework import dtypes as _dtypes


cdef type _ndarray = np.ndarray
cdef list _dtypes_by_number = [None] * DTYPES
for _number, _one in _dtypes._INTERN_TABLE.items():
    if _number < DTYPES:
        _dtypes_by_number[_number] = _one
cdef list _names_by_number = [None if kind is None else kind.name for kind in _dtypes_by_number]


def ndim(x):
    """Return the number of axes."""
    cdef const Tensor* tensor = host_tensor(<PyObject*>x)
    return x.shape.rank if tensor == NULL else rank_of(tensor)


cdef tuple _sizes(const Tensor* tensor):
    cdef int i, rank = rank_of(tensor)
    cdef object size
    cdef tuple sizes = PyTuple_New(rank)
    for i in range(rank):
        size = size_of(tensor, i)
        Py_INCREF(size)
        PyTuple_SET_ITEM(sizes, i, size)
    return sizes


def int_shape(x):
    """Return the sizes as a tuple."""
    cdef const Tensor* tensor = host_tensor(<PyObject*>x)
    if tensor != NULL:
        return _sizes(tensor)
    try:
        shape = x.shape
        return shape if isinstance(shape, tuple) else tuple(shape.as_list())
    except ValueError:
        return None


def count_params(x):
    """Return the number of elements."""
    cdef const Tensor* tensor = host_tensor(<PyObject*>x)
    if tensor == NULL:
        return np.prod(x.shape.as_list())
    if rank_of(tensor) == 0:
        return np.float64(1.0)  # NumPy's product of no sizes is a float
    return np.int64(num_elements(tensor))


def base_dtype(x):
    """Return the dtype; for a reference, the dtype of the variable."""
    cdef const Tensor* tensor = host_tensor(<PyObject*>x)
    return x.dtype.base_dtype if tensor == NULL else _dtypes_by_number[<int>dtype_of(tensor)]


def dtype(x):
    """Return the name of the dtype."""
    cdef const Tensor* tensor = host_tensor(<PyObject*>x)
    return x.dtype.base_dtype.name if tensor == NULL else _names_by_number[<int>dtype_of(tensor)]


def is_plain(x):
    """Tell whether a value is plain: a computed eager tensor in the host's memory."""
    return host_tensor(<PyObject*>x) != NULL


def are_plain(*values):
    """Tell whether all values are plain or None."""
    for value in values:
        if value is not None and host_tensor(<PyObject*>value) == NULL:
            return False
    return True


def on_host():
    """Tell whether this thread runs ops eagerly on the host, and nothing observes it."""
    return not missing(IN_ORDER | ONLY_HOST)


def attribute(x, str name):
    """Return an attribute that was set on a tensor, or None, without raising."""
    if IsEagerTensor(<PyObject*>x):
        return (<dict>x.__dict__).get(name)
    return getattr(x, name, None)


def is_recorded():
    """Tell whether a gradient tape or a forward accumulator records the ops of this thread."""
    return recording()


def same_sizes(x, y):
    """Tell whether two tensors have the same sizes; False if one of them is not plain."""
    cdef const Tensor* first = host_tensor(<PyObject*>x)
    cdef const Tensor* second = host_tensor(<PyObject*>y)
    return first != NULL and second != NULL and _same_sizes(first, second)


def numpy_of(x):
    """Return a copy of a tensor's value, like its method `numpy`; None if it is not plain."""
    if host_tensor(<PyObject*>x) == NULL:
        return None
    value = x._numpy_internal()
    return value.copy() if isinstance(value, _ndarray) else value
