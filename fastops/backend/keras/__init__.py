"""The package of Keras 3's TensorFlow backend, its functions at the cost of their kernels.

Modules, names, parameters and results are those of `keras.src.backend.tensorflow` in the Keras that
is installed, which is imported. Modules that Keras 3.16 has moved into `ops` are there and here.
Results are the same to the last bit: a function here runs the same ops as Keras's function.
docs/keras_backend.md lists which functions fastops runs, which are Keras's own, and what else a
package that Keras loads as its backend would need.
"""

from fastops._backend.adapter.stand_ins import names_of
from fastops.backend.keras import (
    core,
    distribution_lib,
    export,
    image,
    layer,
    linalg,
    math,
    nn,
    numpy,
    ops,
    optimizer,
    random,
    rnn,
    sparse,
    tensorboard,
    trackable,
    trainer,
)

__all__ = [
    "core",
    "distribution_lib",
    "export",
    "image",
    "layer",
    "linalg",
    "math",
    "nn",
    "numpy",
    "ops",
    "optimizer",
    "random",
    "rnn",
    "sparse",
    "tensorboard",
    "trackable",
    "trainer",
]

_names = names_of("")
globals().update(_names)  # where `rnn` is a function, as it is in Keras 3.15
__all__ += sorted({*_names} - {*__all__})

del names_of
