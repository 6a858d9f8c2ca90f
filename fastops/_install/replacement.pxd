from cpython.object cimport PyObject

from fastops._cpp.python cimport PyObject_Vectorcall
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._specialize.guards.names cimport Guard


cdef bint live  # whether replacements do anything but call what they replace


cdef class Replacement:
    cdef vectorcall_t vectorcall
    cdef readonly object original
    cdef bint always  # works whether anything is installed or not: it is in nobody's place
    cdef Guard guard                 # None for one that depends on nothing
    cdef vectorcall_t while_holding  # takes the calls while the guard holds; unused without one
    cdef object __weakref__


# One that knows nothing but its original.
cdef Replacement replacing(object original, vectorcall_t call)

cdef inline PyObject* call_original(Replacement self, PyObject* const* args, size_t nargsf,
                                    PyObject* keywords) except NULL:
    return PyObject_Vectorcall(<PyObject*>self.original, args, nargsf, keywords)


# Sets what takes the calls.
cdef inline int take_calls(Replacement self, vectorcall_t call) noexcept:
    if self.guard is None:
        self.vectorcall = call
    else:
        self.while_holding = call
    return 0


# Makes instances of a class callable through their `vectorcall`, and methods in classes.
cdef int enable(type kind) except -1
