"""Repeated calls of `Session.run`, looked up by fetches and feeds without TensorFlow's handlers."""

import numpy as np
import tensorflow as tf

from fastops._graphs.shapes import dims_of, fits

_LEAVES = (tf.Tensor, tf.Operation, tf.SparseTensor, tf.IndexedSlices)


def key_of_call(fetches, feed_dict):
    """Return a key for calls with the same fetches and feeds; `None` if there is no stable key."""
    for feed in feed_dict or ():
        if type(feed) is not str and not isinstance(feed, tf.Tensor):
            return None
    try:
        return (_key_of(fetches), *map(_key_of, feed_dict or ()))
    except TypeError:
        return None


def _key_of(value):
    kind = type(value)
    if kind is str:
        return value
    if isinstance(value, _LEAVES):
        return id(value)
    if kind is list or isinstance(value, tuple):
        return (kind, *map(_key_of, value))
    if kind is dict:
        return (kind, *((type(name), name) for name in value), *map(_key_of, value.values()))
    raise TypeError(kind)


class SessionCall:
    """Runs calls of `Session.run` with the same fetches and feeds, which have plain types."""

    def __init__(self, fetches, handler, feeds, step):
        self.kept = feeds, tf.nest.flatten(fetches)  # keeps them alive, so that ids stay unique
        self.handler = handler
        self.step = step
        self.feeds = [(feed.dtype.as_numpy_dtype, dims_of(feed.shape)) for feed in feeds]

    def run(self, session, feed_dict):
        """Return the values of the fetches, or `None` if TensorFlow has to make the call."""
        values = []
        try:
            for value, (dtype, dims) in zip((feed_dict or {}).values(), self.feeds, strict=True):
                array = _array(value, dtype)
                if array is None or not fits(array.shape, dims):
                    return None
                values.append(array)
        except (TypeError, ValueError, OverflowError):
            return None  # let TensorFlow raise the error
        return self.step.run(session, values)


def _array(value, dtype):
    """Return a value as the array that TensorFlow feeds; `None` if TensorFlow has to convert it."""
    if type(value) is np.ndarray:
        return value if value.dtype == dtype else np.asarray(value, dtype)
    if type(value) in (float, bool, str, bytes, list) or isinstance(value, np.generic):
        return np.asarray(value, dtype)
    return None
