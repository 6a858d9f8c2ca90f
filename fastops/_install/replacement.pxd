from cpython.object cimport PyObject

from fastops._cpp.python cimport PyObject_Vectorcall
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._specialize.guards.names cimport Guard


cdef bint live  # whether replacements are active; otherwise they call their originals


cdef class Replacement:
    cdef vectorcall_t vectorcall
    cdef readonly object original
    cdef bint always  # active even while `live` is False: it is used directly, patched in nowhere
    cdef Guard guard                 # None if the replacement needs no guard
    cdef vectorcall_t while_holding  # handles calls while the guard holds; unused without a guard
    cdef object __weakref__


# Returns a replacement without further attributes, whose calls `call` handles.
cdef Replacement replacing(object original, vectorcall_t call)

cdef inline PyObject* call_original(Replacement self, PyObject* const* args, size_t nargsf,
                                    PyObject* keywords) except NULL:
    return PyObject_Vectorcall(<PyObject*>self.original, args, nargsf, keywords)


# Whether calls go to a function now.
cdef bint goes_to(Replacement self, vectorcall_t call) noexcept


# Sets the function that handles the calls.
cdef inline int take_calls(Replacement self, vectorcall_t call) noexcept:
    if self.guard is None:
        self.vectorcall = call
    else:
        self.while_holding = call
    return 0


# Makes instances of a class callable through their `vectorcall`, and lets classes bind them as
# methods.
cdef int enable(type kind) except -1
