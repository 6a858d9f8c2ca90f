"""The base of optimizers, Keras's own: `keras.src.backend.tensorflow.optimizer`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("optimizer"))

del names_of
