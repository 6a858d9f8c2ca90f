# For other modules in Cython; it has no names for Python.
