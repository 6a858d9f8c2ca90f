"""Linear algebra: `keras.src.backend.tensorflow.linalg`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("linalg"))

del names_of
