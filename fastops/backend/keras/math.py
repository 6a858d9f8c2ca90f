"""Segments, Fourier transforms, special functions: `keras.src.backend.tensorflow.math`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("math"))

del names_of
