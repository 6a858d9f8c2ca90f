"""Devices, all Keras's own: `keras.src.backend.tensorflow.distribution_lib`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("distribution_lib"))

del names_of
