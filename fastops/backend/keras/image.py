"""Images: `keras.src.backend.tensorflow.image`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("image"))

del names_of
