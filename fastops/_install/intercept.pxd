from cpython.object cimport PyObject

from fastops._dispatch cimport Op
from fastops._install.replacement cimport Replacement

cdef enum:
    DTYPES = 64  # one bit for each dtype; TensorFlow's higher numbers are reference dtypes


cdef class Generated(Replacement):
    cdef readonly Op op
    cdef bint keyword_only


cdef int tensor_dtype(PyObject* value) except -1
cdef unsigned long long dtype_bits(dtypes) except? 0
cdef bint load(Op op) noexcept
