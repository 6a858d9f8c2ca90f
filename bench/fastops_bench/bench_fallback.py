"""The cost of a call that falls back, compared with TensorFlow's own function."""

from contextlib import contextmanager, nullcontext

import pytest
import tensorflow as tf
from pytest_fastops.race import Arm
from tensorflow.python.framework import op_callbacks

import fastops

QUEUE = tf.queue.FIFOQueue(8, tf.float32)
NAMES = {
    "ops": fastops.raw_ops,
    "raw_ops": tf.raw_ops,
    "x": tf.constant(1.5),
    "shape": tf.constant([4]),
    "float32": tf.float32,
    "queue": QUEUE.queue_ref,
}


@contextmanager
def op_callback():
    """Register an op callback, as debuggers do."""

    def ignore(*args, **kwargs):
        return None

    op_callbacks.add_op_callback(ignore)
    yield
    op_callbacks.remove_op_callback(ignore)


CASES = {
    "a list of strings": ("Add(x=['a', 'b'], y=['c', 'd'])", nullcontext),
    "an op with state": (
        "RandomUniform(shape=shape, dtype=float32, seed=1)",
        nullcontext,
    ),
    "a queue": ("QueueSizeV2(handle=queue)", nullcontext),
    "in a graph": ("AddV2(x=1.0, y=2.0)", lambda: tf.Graph().as_default()),
    "with an op callback": ("AddV2(x=x, y=x)", op_callback),
    'path="tensorflow"': ("AddV2(x=x, y=x)", lambda: fastops.options(path="tensorflow")),
}


@pytest.mark.parametrize("label", CASES)
def test_fallback(label, race):
    call, scope = CASES[label]
    arms = [
        Arm("fastops", f"ops.{call}", NAMES, scope),
        Arm("raw_ops", f"raw_ops.{call}", NAMES, scope),
    ]
    race("fallback", label, arms)
