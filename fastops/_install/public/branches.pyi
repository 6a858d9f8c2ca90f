# Its lowerings are registered by name; it has no names for Python.
