from cpython.object cimport PyObject, PyTypeObject, Py_TYPE

# What an object holds in this thread now: a `tf.Variable`, or None where that is not all that
# TensorFlow would make a tensor of.
ctypedef object (*held_t)(object holder)

cdef PyTypeObject* holder_type

# Names the class of the objects, of which each holds a variable, and what tells which.
cdef int set_holder(object kind, held_t tell) except -1
cdef object held(object holder)


cdef inline bint is_holder(PyObject* value) noexcept:
    return Py_TYPE(<object>value) == holder_type
