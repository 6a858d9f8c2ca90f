"""Keras's own trainer, re-exported from `keras.src.backend.tensorflow.trainer`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("trainer"))

del names_of
