"""The base of layers, Keras's own: `keras.src.backend.tensorflow.layer`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("layer"))

del names_of
