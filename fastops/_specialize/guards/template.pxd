from cpython.object cimport PyObject
from libcpp.vector cimport vector

from fastops._specialize.guards.watch cimport Place, Watch


# How a value of the object is compared with that of another object.
cdef enum Comparison:
    IDENTICAL  # the same object
    EQUAL      # a constant of the same value
    PART       # an object that is compared in turn
    OWN        # any object of the same type, such as a lock


cdef class ObjectTemplate:
    cdef vector[Place] places
    cdef vector[PyObject*] values        # in the places; null for a part
    cdef vector[Comparison] comparisons  # for each value
    cdef vector[int] numbers             # for each value, the number of the part; -1: no part
    cdef vector[int] owners              # for each place, the number of the part; -1: no part
    cdef vector[int] dicts               # for each place, the number of the dict of an instance
    cdef vector[PyObject*] namespaces    # for each place, the globals of a function
    cdef list kinds                      # for each part, its type
    cdef list contents, owner_ids, kept
    cdef dict paths                      # by identity of an owner

    # Compares the contents of an object. Returns the guard of its contents, and sets its parts.
    # None if they differ.
    cdef Watch bind(self, PyObject* root, vector[PyObject*]* parts)
    cdef bint read(self, size_t i, Watch watch, vector[PyObject*]* parts, list kept) except -1
    cdef bint compare(self, size_t v, PyObject* value, Watch watch, vector[PyObject*]* parts,
                      list kept) except -1
