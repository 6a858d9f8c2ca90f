"""Which functions of the running TensorFlow are replayed."""

from types import FunctionType

from tensorflow.python.ops.numpy_ops import np_dtypes

from fastops._install.replay.functions import FUNCTIONS
from fastops._install.replay.replay import Replayed
from fastops._install.target import generated, handlers, resolve

_OF_NUMPY = (np_dtypes, "_prefer_float32"), (np_dtypes, "_allow_float64")

SETTINGS = {"tf.experimental.numpy": _OF_NUMPY, "tf.experimental.numpy.random": _OF_NUMPY}
"""By namespace, what functions ask beside their arguments and the context."""


def functions():
    """Return what `everywhere` takes."""
    found = {}
    for namespace, names in FUNCTIONS.items():
        settings = SETTINGS.get(namespace, ())

        def make(original, settings=settings):
            return Replayed(original, generated, handlers(original), settings)

        for name in names.split():
            title = f"{namespace}.{name}"
            try:
                holder, attribute = resolve(title)
                original = vars(holder)[attribute]
            except (AttributeError, KeyError):
                continue  # of another TensorFlow
            if type(original) is FunctionType:
                found.setdefault(id(original), ("replayed", title, make))
    return found
