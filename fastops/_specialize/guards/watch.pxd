from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from fastops._specialize.guards.condition cimport Condition
from fastops._specialize.guards.names cimport Guard


cdef enum Kind:
    INSTANCE
    CLASS
    DICT
    LIST
    SET
    CELL
    REFERENCE
    ARRAY
    TUPLE
    FUNCTION
    PARTS
    ORDER
    HANDLERS
    VALUE
    PROXY
    ATTRIBUTES
    REGISTRY

cdef struct Place:
    Kind kind
    int content             # index in `contents`
    size_t first, last      # range in `values`
    PyObject* at
    PyTypeObject* type
    PyObject* part          # the dict of an instance
    uint64_t version


cdef class Watch(Condition):
    cdef vector[Place] places
    cdef vector[PyObject*] values   # the recorded objects
    cdef list contents              # names, and contents of arrays
    cdef list kept                  # objects that do not change, kept alive
    cdef set constants              # addresses of those that equal ones may replace; or None
    cdef list owners                # for each place the identity of the object that it describes
    cdef object path_of             # returns the path to the object with an identity
    cdef size_t failed              # the place that was compared last

    cdef bint has_any(self, set identities) except -1
    cdef bint is_same(self) except -1
    cdef bint same_value_at(self, size_t v, PyObject* now) except -1
    cdef bint same_items(self, Place* place) except -1
    cdef bint same_elements(self, Place* place, PyObject** now, Py_ssize_t count) except -1
    cdef bint same_parts(self, Place* place) except -1
    cdef bint same_handlers(self, Place* place) except -1
    cdef bint same_set(self, Place* place) except -1
    cdef bint same_array(self, Place* place) except -1
    cdef bint same_value(self, Place* place) except -1
    cdef bint same_attributes(self, Place* place) except -1


cdef class Globals(Condition):
    cdef list modules
    cdef list names
    cdef vector[uint64_t] versions
    cdef Guard guard                # of the functions and classes that the code names

    cdef bint has_any(self, set identities) except -1


# Whether two values that never change are the same, bit by bit. False for values of other types.
cdef bint is_equal(object one, object other) except -1
# Whether two names of a dict are the same.
cdef bint same_name(object left, object right)
# Sets the five parts of a function, borrowed: code, closure, defaults, keyword defaults, dict.
cdef void parts_of_function(PyObject* function, PyObject** parts) noexcept
# The dict behind a view of it, borrowed.
cdef PyObject* mapping_of(object proxy)
# The content of a cell, borrowed; `places.MISSING` if the variable has no value.
cdef PyObject* content_of(object cell)
