from cpython.object cimport PyObject
from libcpp.vector cimport vector

from fastops._tf.status cimport Status


cdef extern from "declarations.h" namespace "fastops":
    # New reference. Null with a Python exception.
    ctypedef PyObject* (*Add)(PyObject* gradients) except NULL

    # Results are new references.
    cdef cppclass Backprop:
        Backprop(PyObject* tape, Add add)
        Status Run(const vector[PyObject*]& targets, const vector[PyObject*]& sources,
                   const vector[PyObject*]& seeds, vector[PyObject*]* result) except +
        size_t num_calls()
