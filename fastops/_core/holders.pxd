from cpython.object cimport PyObject, PyTypeObject, Py_TYPE

# Returns the `tf.Variable` that a holder has in this thread now. Returns None if TensorFlow would
# not convert the holder by reading the variable alone.
ctypedef object (*held_t)(object holder)

cdef PyTypeObject* holder_type

# Sets the class of holders, and the function that returns the variable of a holder.
cdef int set_holder(object kind, held_t tell) except -1
cdef object held(object holder)


cdef inline bint is_holder(PyObject* value) noexcept:
    return Py_TYPE(<object>value) == holder_type
