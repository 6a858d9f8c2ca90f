from cpython.object cimport PyObject

from fastops._dispatch cimport Op, vectorcall_t

cdef extern from "Python.h":
    PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*)


cdef bint live  # whether replacements do anything but call what they replace


cdef class Replacement:
    cdef vectorcall_t vectorcall
    cdef readonly object original
    cdef object __weakref__


cdef class Generated(Replacement):
    cdef readonly Op op
    cdef bint keyword_only


cdef class Call:
    cdef Op op
    cdef tuple names
    cdef object run(self, tuple arguments)


cdef inline PyObject* call_original(Replacement self, PyObject* const* args, size_t nargsf,
                                    PyObject* keywords) except NULL:
    return PyObject_Vectorcall(<PyObject*>self.original, args, nargsf, keywords)


cdef int tensor_dtype(PyObject* value) except -1
cdef bint promotes_no_dtypes() except -1
cdef unsigned long long dtype_bits(dtypes) except? 0
cdef bint load(Op op) noexcept
cdef int enable(type kind) except -1
