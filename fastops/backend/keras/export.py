"""Export, all Keras's own: `keras.src.backend.tensorflow.export`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("export"))

del names_of
