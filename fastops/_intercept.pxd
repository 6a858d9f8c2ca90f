from cpython.object cimport PyObject

from fastops._dispatch cimport Op, vectorcall_t


cdef class Replacement:
    cdef vectorcall_t vectorcall
    cdef readonly object original
    cdef object __weakref__


cdef class Call:
    cdef Op op
    cdef tuple names
    cdef object run(self, tuple arguments)


cdef bint is_live() noexcept
cdef bint promotes_dtypes() except -1
cdef PyObject* call_original(Replacement self, PyObject* const* args, size_t nargsf,
                             PyObject* keywords) except NULL
