"""The modules of functions, and the names of `core`, in one package, as in Keras since 3.16."""

from fastops._backend.adapter.stand_ins import names_of
from fastops.backend.keras import core, image, linalg, math, nn, numpy

__all__ = ["core", "image", "linalg", "math", "nn", "numpy"]

_names = names_of("core")
globals().update(_names)
__all__ += sorted({*_names} - {*__all__})

del names_of
