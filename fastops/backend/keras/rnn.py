"""Recurrent networks, all Keras's own: `keras.src.backend.tensorflow.rnn`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("rnn"))

del names_of
