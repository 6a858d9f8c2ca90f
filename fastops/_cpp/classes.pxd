from cpython.object cimport PyObject, PyTypeObject
from libcpp cimport bool


cdef extern from "classes.h" namespace "fastops":
    unsigned int ClassVersion(PyTypeObject*)
    bool LooksUpAsClasses(PyTypeObject*)
    bool LooksUpGenerically(PyTypeObject*)
    PyObject* GenericAttribute(PyObject*, PyObject*) except? NULL
