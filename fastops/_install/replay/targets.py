"""Which functions of the running TensorFlow are replayed."""

from functools import cache, partial

import tensorflow as tf
from tensorflow.python.ops.numpy_ops import np_dtypes
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.trackable.data_structures import ListWrapper

from fastops._install.lookups import is_upstream
from fastops._install.replay.functions import FUNCTIONS, METHODS, OBJECTS
from fastops._install.replay.replay import Replayed
from fastops._install.target import Target, generated, handlers, resolve
from fastops._plans.caller import know_objects

_OF_NUMPY = (np_dtypes, "_prefer_float32"), (np_dtypes, "_allow_float64")

SETTINGS = {"tf.experimental.numpy": _OF_NUMPY, "tf.experimental.numpy.random": _OF_NUMPY}
"""By namespace, what functions ask beside their arguments and the context."""


def functions():
    """Return what `everywhere` takes."""
    found = {}
    for namespace, names in FUNCTIONS.items():
        settings = SETTINGS.get(namespace, ())
        make = partial(_stand_in, settings=settings)
        for name in names.split():
            title = f"{namespace}.{name}"
            try:
                holder, attribute = resolve(title)
                original = vars(holder)[attribute]
            except (AttributeError, KeyError):
                continue  # of another TensorFlow
            if is_upstream(original):
                found.setdefault(id(original), ("replayed", title, make))
    return found


def methods():
    """Yield a target for each method."""
    know_objects(dict(_objects()))
    for title, names in METHODS.items():
        kind = _class(title)
        for name in names.split():
            holder = next((base for base in kind.__mro__ if name in vars(base)), None)
            if holder is not None and is_upstream(vars(holder)[name]):
                yield Target("replayed", f"{title}.{name}", holder, name, _stand_in)


def _objects():
    """Yield the classes of `OBJECTS`, each with the names as a set."""
    for title, names in OBJECTS.items():
        yield _class(title), frozenset(names.split())
    yield ListWrapper, frozenset()  # what a list becomes as an attribute of theirs


def _class(title):
    found = getattr(*resolve(title))
    return ResourceVariable if found is tf.Variable else found  # which eager programs make by it


@cache
def _stand_in(original, settings=()):
    """Return one replacement for ever: what it knows lasts from one installation to the next."""
    return Replayed(original, generated, handlers(original), settings)
