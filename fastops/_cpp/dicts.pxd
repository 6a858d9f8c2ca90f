from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef extern from "dicts.h" namespace "fastops":
    uint64_t DictVersion(PyObject*)
    PyObject* InstanceDict(PyObject*)
    PyObject* InstanceDictIfAny(PyObject*)
    object IterateSet(PyObject*)
    PyObject* Referent(PyObject*)
