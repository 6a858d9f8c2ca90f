"""NumPy's functions: `keras.src.backend.tensorflow.numpy`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("numpy"))

del names_of
