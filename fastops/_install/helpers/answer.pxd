cimport cython
from cpython.object cimport PyObject

from fastops._install.replacement cimport Replacement


cdef enum:
    MAX_PARAMS = 12

# Returned in place of an answer: fall back to TensorFlow's own function.
cdef object PASS

ctypedef object (*answer_t)(Answer, PyObject* const*, Py_ssize_t, PyObject*)


@cython.final
cdef class Answer(Replacement):
    cdef answer_t answer
    cdef tuple names
    cdef tuple defaults

    cdef bint bind(self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   PyObject** values) except -1


cdef int register(str name, answer_t answer) except -1
