"""Sparse tensors, all Keras's own: `keras.src.backend.tensorflow.sparse`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("sparse"))

del names_of
