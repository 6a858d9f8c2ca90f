"""The trainer, Keras's own: `keras.src.backend.tensorflow.trainer`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("trainer"))

del names_of
