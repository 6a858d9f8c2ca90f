"""Objects that checkpoints save, all Keras's own: `keras.src.backend.tensorflow.trackable`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("trackable"))

del names_of
