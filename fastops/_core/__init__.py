"""What a call needs and is not on its path.

The record of an op and what it is made of (OpDef, tables, docstrings), the encoding of attributes,
the conversion of values, the settings of threads, measuring, TensorFlow's own path, errors. Nothing
here knows of `Op`, and nothing outside of `_tf` and `_cpp` is imported from elsewhere in fastops.
"""
