from cpython.object cimport PyObject, Py_TYPE

from fastops._core.tensors cimport host_tensor, rank_of
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport PyLong_AsLongLongAndOverflow, PyLong_Type
from fastops._tf.tensor cimport Tensor


cdef enum:
    MAX_RANK = 8

# Sets of dtypes, with one bit for each dtype.
cdef unsigned long long COMPLEX
cdef unsigned long long INTEGERS
cdef unsigned long long FLOATS
cdef unsigned long long NUMERIC
cdef unsigned long long VALUES  # NUMERIC and bool

cdef bint are_tensors(PyObject* values, Py_ssize_t least)
cdef object base_dtype(object value)
cdef object static_shape(object shape)


cdef inline int tensor_rank(PyObject* tensor) except -2:
    """Return the rank of an EagerTensor or a variable; -1 if it is unknown."""
    cdef const Tensor* value
    if IsEagerTensor(tensor):
        value = host_tensor(tensor)
        return -1 if value == NULL else rank_of(value)
    dims = (<object>tensor)._shape._dims
    return -1 if dims is None else <int>len(dims)


cdef inline bint is_int32(PyObject* value, long long* number) except -1:
    """Whether a value is a Python int that fits into 32 bits."""
    cdef int overflow = 0
    if Py_TYPE(<object>value) != &PyLong_Type:
        return False
    number[0] = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
    return overflow == 0 and -(1 << 31) <= number[0] < <long long>1 << 31
