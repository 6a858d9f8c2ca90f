# Its answers are registered by name; it has no names for Python.
