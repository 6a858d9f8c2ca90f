"""Caches by signature, with a limit."""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject


@cython.final
cdef class Cache:
    """A dict with a limit: beyond, the entry that was put in first goes.

    Parameters
    ----------
    most : int
        How many entries are kept.
    """

    def __init__(self, Py_ssize_t most):
        self.entries, self.most = {}, most

    def __len__(self):
        return len(self.entries)

    cdef PyObject* find(self, key) except? NULL:
        return PyDict_GetItem(self.entries, key)

    cdef object put(self, key, value):
        """Keep a value, and return the one that is kept: another thread's, if that came first."""
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
        """Keep a value in the place of another one."""
        while len(self.entries) >= self.most and key not in self.entries:
            self.entries.pop(next(iter(self.entries), None), None)
        self.entries[key] = value

    def drop(self, key):
        """Let go of a key, if it is there."""
        self.entries.pop(key, None)

    def clear(self):
        """Let go of all."""
        self.entries.clear()

    def values(self):
        """Return the values, in the order in which they were put in."""
        return list(self.entries.values())
