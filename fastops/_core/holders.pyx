# distutils: language = c++
"""Holders: objects of a library that hold a `tf.Variable` and convert to a tensor through it.

Keras variables are holders. The code that supports the library sets the class with `set_holder`.
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
