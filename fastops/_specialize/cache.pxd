from cpython.object cimport PyObject


# A dict with a maximum number of entries: beyond it, the oldest entry is dropped. Threads may share
# it.
cdef class Cache:
    cdef readonly dict entries
    cdef readonly Py_ssize_t most

    # The value for a key, borrowed; null if there is none.
    cdef PyObject* find(self, key) except? NULL
    cdef object put(self, key, value)
