from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef extern from "changes.h" namespace "fastops":
    const uint64_t* ChangesOf(PyObject*)
