cimport cython
from cpython.object cimport PyObject

from fastops._install.replacement cimport Replacement


cdef enum:
    MAX_PARAMS = 12

# A function that answers calls. It returns `DECLINED` for a call that only the original handles.
ctypedef object (*answer_t)(Answer, PyObject* const*, Py_ssize_t, PyObject*)


@cython.final
cdef class Answer(Replacement):
    cdef answer_t answer
    cdef tuple names
    cdef tuple defaults

    cdef bint bind(self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   PyObject** values) except -1


cdef int register(str package, str name, answer_t answer) except -1
