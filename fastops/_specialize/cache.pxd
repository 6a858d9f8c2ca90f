from cpython.object cimport PyObject


# A dict with a limit: beyond, the entry that was put in first goes. Threads may share it.
cdef class Cache:
    cdef readonly dict entries
    cdef readonly Py_ssize_t most

    # The value for a key, borrowed; null if there is none.
    cdef PyObject* find(self, key) except? NULL
    cdef object put(self, key, value)
