# distutils: language = c++
"""Objects of a library that each hold a variable, and that TensorFlow makes a tensor of by it.

Those of Keras are such; who knows the library names their class.
"""

from cpython.object cimport PyTypeObject


cdef PyTypeObject* holder_type = NULL
cdef held_t _tell = NULL


cdef int set_holder(object kind, held_t tell) except -1:
    global holder_type, _tell
    _tell = tell
    holder_type = <PyTypeObject*>kind
    return 0


cdef object held(object holder):
    return _tell(holder)
