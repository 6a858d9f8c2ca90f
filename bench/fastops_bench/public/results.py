"""Compare outcomes of calls: values bit by bit, dtypes, shapes, structure, exceptions."""

from contextlib import contextmanager

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor


@contextmanager
def seeded():
    """Make ops with state restart their sequences, only in this scope."""
    tf.random.set_seed(7)
    try:
        yield
    finally:
        tf.random.set_seed(None)


def outcome(code, names):
    """Evaluate a call, and return its result or exception as plain data for comparison."""
    try:
        return plain(eval(code, names))
    except Exception as error:
        return "raised", type(error).__name__, str(error)


def gradient(code, names):
    """Evaluate a call on a tape, and return its gradient with respect to all inputs as plain data.

    Returns `None` if its results cannot have a gradient.
    """
    sources = [value for value in names.values() if _is_differentiable(value)]
    try:
        with tf.GradientTape() as tape:
            tape.watch([source for source in sources if isinstance(source, tf.Tensor)])
            parts = tf.nest.flatten(eval(code, names), expand_composites=True)
            targets = [part for part in parts if _is_differentiable(part)]
        return plain(tape.gradient(targets, sources)) if targets else None
    except Exception as error:
        return "raised", type(error).__name__, str(error)


def _is_differentiable(value):
    if not isinstance(value, (tf.Tensor, tf.Variable)):
        return False
    return value.dtype.is_floating or value.dtype.is_complex


def plain(result):
    """Return a result as plain data: its tensors by dtype, shape and bytes."""
    if isinstance(result, (tf.Tensor, tf.Variable)):
        kind = "variable" if isinstance(result, tf.Variable) else "tensor"
        if result.dtype in (tf.resource, tf.variant):
            return kind, result.dtype.name, result.shape.as_list()
        # TensorFlow sets methods on some tensors: `tf.Variable.__getitem__` sets `assign`.
        beside = sorted(vars(result)) if kind == "tensor" else []
        return kind, result.dtype.name, plain(np.asarray(result.numpy())), beside
    if isinstance(result, np.ndarray):
        values = (
            result.tobytes() if result.dtype != object else [plain(each) for each in result.flat]
        )
        return "array", str(result.dtype), result.shape, values
    if isinstance(result, np.generic):
        return "scalar", plain(np.asarray(result))
    if isinstance(result, CompositeTensor):
        parts = tf.nest.flatten(result, expand_composites=True)
        return type(result).__name__, [plain(part) for part in parts]
    if isinstance(result, dict):
        return type(result).__name__, [(key, plain(value)) for key, value in result.items()]
    if isinstance(result, (list, tuple)):
        return type(result).__name__, [plain(item) for item in result]
    if isinstance(result, (int, float, complex, str, bytes, type(None), type)):
        return type(result).__name__, repr(result)
    if isinstance(result, (tf.TensorShape, tf.DType)):
        return type(result).__name__, str(result)
    return "object", type(result).__name__
