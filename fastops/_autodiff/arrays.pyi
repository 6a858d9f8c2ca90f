# Its rules are in the table of `rules`; it has no names for Python.
