from cpython.object cimport PyObject, PyTypeObject

ctypedef PyObject* (*vectorcall_t)(PyObject*, PyObject* const*, size_t, PyObject*)

cdef extern from "vectorcall.h" namespace "fastops":
    void EnableVectorcall(PyTypeObject* type, Py_ssize_t offset)
