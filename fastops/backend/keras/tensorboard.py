"""TensorBoard, all Keras's own: `keras.src.backend.tensorflow.tensorboard`."""

from fastops._backend.adapter.stand_ins import names_of

globals().update(names_of("tensorboard"))

del names_of
