"""Caches by signature, with a maximum number of entries."""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject


@cython.final
cdef class Cache:
    """A dict with a maximum number of entries: beyond it, the oldest entry is dropped.

    Parameters
    ----------
    most : int
        The maximum number of entries.
    """

    def __init__(self, Py_ssize_t most):
        self.entries, self.most = {}, most

    def __len__(self):
        return len(self.entries)

    cdef PyObject* find(self, key) except? NULL:
        return PyDict_GetItem(self.entries, key)

    cdef object put(self, key, value):
        """Add a value and return it. If the key exists, return the existing value instead."""
        while len(self.entries) >= self.most and key not in self.entries:
            self.entries.pop(next(iter(self.entries), None), None)
        return self.entries.setdefault(key, value)

    def get(self, key, default=None):
        """Return the value for a key, or the default."""
        return self.entries.get(key, default)

    def add(self, key, value):
        """Return `put` for Python code."""
        return self.put(key, value)

    def replace(self, key, value):
        """Set the value for a key, whether or not the key exists."""
        self.put(key, value)  # makes room if the key is new
        self.entries[key] = value

    def drop(self, key):
        """Remove a key, if it exists."""
        self.entries.pop(key, None)

    def clear(self):
        """Remove all entries."""
        self.entries.clear()

    def values(self):
        """Return the values, in the order in which their keys were added."""
        return list(self.entries.values())
