"""Random numbers by seeds: `keras.src.backend.tensorflow.random`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("random"))

del names_of
