from cpython.object cimport PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.dict cimport PyDict_CheckExact

from fastops._cpp.declarations cimport IsEagerTensor


cdef enum:  # kinds of values, as `tf.nest` sees them
    UNSEEN
    LEAF
    COMPOSITE   # a leaf unless composite tensors are expanded
    LIST
    TUPLE
    NAMED       # a namedtuple
    DICT
    OTHER

cdef enum:  # a cached answer
    UNKNOWN
    NO
    YES

# Cached facts about a class, for one version of it.
cdef struct Facts:
    PyTypeObject* kind
    unsigned int version
    unsigned char structure
    unsigned char usual
    unsigned char is_tensor
    unsigned char is_variable

# Returns the facts about a class, or NULL if the class has no version. The entry may be reused for
# another class, so call this again after any Python code has run.
cdef Facts* facts_of(PyTypeObject* kind)
# Drops facts that depend on registrations with abstract classes, if there are new registrations.
cdef int notice_registrations() except -1
# Whether instances have the usual attribute lookup, and do not override `__class__`.
cdef bint is_usual(Facts* facts)
# Whether an instance has an attribute of this name; its class must not have one.
cdef bint has_own(PyObject* value, PyObject* name) except -1
cdef int look_up_structure(PyObject* value) except -1


cdef inline int structure_of(PyObject* value) except -1:
    """Return the kind of a value, as `tf.nest` sees it."""
    if IsEagerTensor(value):
        return LEAF
    if PyTuple_CheckExact(<object>value):
        return TUPLE
    if PyList_CheckExact(<object>value):
        return LIST
    if PyDict_CheckExact(<object>value):
        return DICT
    return look_up_structure(value)
