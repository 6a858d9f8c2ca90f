"""Pooling by oneDNN's primitives, without their kernels: the same bytes."""

import pytest
import tensorflow as tf
from support import assert_same, floats, special, took
from tensorflow.python.util._pywrap_util_port import IsMklEnabled

import fastops
from fastops._reports import counters

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

INPUTS = {"MaxPool": "input", "AvgPool": "value"}


def held_runs(op):
    return sum(key["held_runs"] for key in counters.cached_keys(op))


@pytest.mark.parametrize("op_name", INPUTS)
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(
    ("shape", "window", "strides"),
    [
        ((1, 8, 8, 8), (2, 2), (2, 2)),
        ((2, 7, 5, 3), (3, 2), (1, 2)),
        ((3, 9, 4, 17), (2, 4), (3, 1)),
        ((1, 5, 6, 1), (5, 6), (1, 1)),
        ((2, 3, 3, 4), (1, 1), (2, 2)),  # windows beside which elements are left out
    ],
    ids=str,
)
def test_the_same_bytes(op_name, padding, shape, window, strides):
    op, plain = getattr(fastops.raw_ops, op_name), getattr(tf.raw_ops, op_name)
    attrs = {"ksize": [1, *window, 1], "strides": [1, *strides, 1], "padding": padding}
    with fastops.options(threads="caller"):
        for draw in (floats, special):
            for seed in range(6):
                x = {INPUTS[op_name]: tf.constant(draw(*shape, seed=seed))}
                got, _ = took(op, **x, **attrs)
                want = plain(**x, **attrs)
                assert tf.io.serialize_tensor(got) == tf.io.serialize_tensor(want)
    # TensorFlow makes the first call, and two are looked at.
    assert held_runs(op) == (9 if IsMklEnabled() else 0)


@pytest.mark.parametrize("threads", ["caller", "pool", "auto"])
def test_gradients_in_a_plan(threads):
    """The gradient of oneDNN's max pooling takes what the forward pass left in its workspace."""
    weights = tf.Variable(floats(32, 5))
    bias = tf.Variable(floats(5))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            hidden = tf.nn.avg_pool2d(tf.nn.max_pool2d(x, 2, 2, "VALID"), 2, 2, "SAME")
            y = tf.nn.relu(tf.reshape(hidden, [-1, 32]) @ weights + bias)
        return y, tape.gradient(y, [x, weights, bias])

    planned = fastops.function(step, executor="plan")
    with fastops.options(threads=threads):
        for seed in range(8):
            x = tf.constant(floats(2, 8, 8, 8, seed=seed))
            assert_same(planned(x), step(x))
    (case,) = planned.known_cases()
    # With "auto", calls of the first kind are trials.
    if IsMklEnabled() and threads == "caller":
        assert case.runner.plan.held_runs() == 3 * 6
