from cpython.object cimport PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.dict cimport PyDict_CheckExact

from fastops._cpp.declarations cimport IsEagerTensor


cdef enum:  # what a value is to `tf.nest`
    UNSEEN
    LEAF
    COMPOSITE   # a leaf unless composite tensors are expanded
    LIST
    TUPLE
    NAMED       # a namedtuple
    DICT
    OTHER

cdef enum:  # an answer that is remembered
    UNKNOWN
    NO
    YES

# What is known of a class as it was at a version.
cdef struct Facts:
    PyTypeObject* kind
    unsigned int version
    unsigned char structure
    unsigned char usual
    unsigned char is_tensor
    unsigned char is_variable

# What is known of a class, or NULL where nothing can be: to be asked for again after any call.
cdef Facts* facts_of(PyTypeObject* kind)
# Forgets what classes' registration with abstract ones decides, if there was one since.
cdef int notice_registrations() except -1
# Whether a value's attributes are found in the usual way, and its class is what it says it is.
cdef bint is_usual(Facts* facts)
# Whether an instance has an attribute of its own that its class has not.
cdef bint has_own(PyObject* value, PyObject* name) except -1
cdef int look_up_structure(PyObject* value) except -1


cdef inline int structure_of(PyObject* value) except -1:
    """What a value is to `tf.nest`."""
    if IsEagerTensor(value):
        return LEAF
    if PyTuple_CheckExact(<object>value):
        return TUPLE
    if PyList_CheckExact(<object>value):
        return LIST
    if PyDict_CheckExact(<object>value):
        return DICT
    return look_up_structure(value)
