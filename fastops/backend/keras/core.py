"""Tensors, their conversion, control flow: `keras.src.backend.tensorflow.core`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("core"))

del names_of
