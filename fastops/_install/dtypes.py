"""Groups of dtypes, as strings of names that are separated by blanks."""

import tensorflow as tf

FLOATS = "bfloat16 float16 float32 float64"
COMPLEX = "complex64 complex128"
SIGNED = "int8 int16 int32 int64"
UNSIGNED = "uint8 uint16 uint32 uint64"
INTS = f"{SIGNED} {UNSIGNED}"
REAL = f"{FLOATS} {INTS}"
NUMERIC = f"{REAL} {COMPLEX}"


def parse(names):
    """Return the dtypes with these names."""
    return [tf.as_dtype(name) for name in names.split()]
