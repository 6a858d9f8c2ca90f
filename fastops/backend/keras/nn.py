"""Activations, convolutions, pooling, losses: `keras.src.backend.tensorflow.nn`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("nn"))

del names_of
