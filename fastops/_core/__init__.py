"""The parts of fastops that calls of ops use, apart from the dispatcher itself.

They are: the record of an op and its sources (OpDef, tables, docstrings), the encoding of
attributes, the conversion of values, the settings of threads, measuring, TensorFlow's own
functions, and errors. This package does not know `Op`. Elsewhere in fastops it imports only from
`_tf` and `_cpp`.
"""
