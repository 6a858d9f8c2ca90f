"""`tf.autodiff.ForwardAccumulator`: traces of products are found by keys, and run as plans."""

import threading

import pytest
import tensorflow as tf
from calls import outcome
from support import assert_same, floats
from tensorflow.python.eager import forwardprop

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

INPUTS = [tf.constant(floats(3, 4, seed=seed)) for seed in range(1, 4)]
TANGENT = tf.constant(floats(3, 4, seed=5))
SQUARES = [tf.constant(floats(4, 4, seed=seed)) for seed in range(6, 9)]
IMAGE = tf.constant(floats(1, 6, 6, 2, seed=9))
FILTERS = tf.constant(floats(3, 3, 2, 4, seed=10))
VARIABLE = tf.Variable(floats(4, 4, seed=11))


def used():
    kinds = fastops.stats().kinds.get("tf.autodiff.ForwardAccumulator")
    return 0 if kinds is None else kinds.copied


def product(function, x, tangent=None):
    with tf.autodiff.ForwardAccumulator(x, tf.cos(x) if tangent is None else tangent) as forward:
        y = function(x)
    return y, forward.jvp(y)


def nested(function, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as outer:
        with tf.autodiff.ForwardAccumulator(x, tf.cos(x)) as inner:
            y = function(x)
        first = inner.jvp(y)
    return first, outer.jvp(first)


def over_gradient(function, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        gradient = tape.gradient(y, x)
    return gradient, forward.jvp(gradient)


def under_tape(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, tangent = product(function, x)
    return tangent, tape.gradient(tangent, x)


FUNCTIONS = {
    "tanh": tf.tanh,
    "network": lambda x: tf.nn.softmax(tf.nn.relu(x @ VARIABLE) * x),
    "sums": lambda x: tf.reduce_sum(x * x, axis=1) + tf.reduce_mean(x, axis=-1),
    "shapes": lambda x: tf.concat([tf.transpose(x), tf.reshape(x, [4, 3])], 1)[:2],
    "choice": lambda x: tf.where(x > 0.0, tf.sin(x), x * 2.0),
    "several results": lambda x: tf.stack(tf.split(x * x, 2, axis=1)),
    "gathered": lambda x: tf.gather(x, [2, 0, 2], axis=0) ** 2.0,
    "double": lambda x: tf.cast(x, tf.float64) / 3.0,
    "integers": lambda x: tf.cast(x * 10.0, tf.int32),
}
WAYS = {
    "product": product, "nested": nested, "over gradient": over_gradient, "under tape": under_tape,
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_products(name, way):
    function, call = FUNCTIONS[name], WAYS[way]
    wants = [outcome(call, (function, x), {}) for x in INPUTS]
    with fastops.accelerated():
        for _ in range(4):
            before = used()
            for x, want in zip(INPUTS, wants, strict=True):
                assert_same(outcome(call, (function, x), {}), want)
        assert used() > before


def test_attributes_in_lists():
    def call(x):
        padding = [[0, 0], [1, 1], [0, 0], [0, 0]]
        return tf.nn.conv2d(x, FILTERS, strides=[1, 2, 2, 1], padding=padding)

    want = product(call, IMAGE)
    with fastops.accelerated():
        for _ in range(4):
            before = used()
            assert_same(product(call, IMAGE), want)
        assert used() == before + 1


def test_variables():
    def call(x):
        with tf.autodiff.ForwardAccumulator(VARIABLE, SQUARES[0]) as forward:
            y = tf.tanh(x @ VARIABLE) * VARIABLE
        return forward.jvp(y)

    wants = [call(x) for x in SQUARES]
    with fastops.accelerated():
        for _ in range(4):
            before = used()
            for x, want in zip(SQUARES, wants, strict=True):
                assert_same(call(x), want)
        assert used() - before >= 3 * 3


def test_shapes_dtypes_and_attributes_are_parts_of_the_key():
    calls = [
        (tf.tanh, INPUTS[0]),
        (tf.tanh, SQUARES[0]),
        (tf.tanh, tf.cast(INPUTS[0], tf.float64)),
        (lambda x: tf.matmul(x, x, transpose_a=True), INPUTS[0]),
        (lambda x: tf.matmul(x, x, transpose_b=True), INPUTS[0]),
        (lambda x: tf.matmul(x, x, transpose_b=True), SQUARES[0]),
        (lambda x: tf.matmul(x, x), SQUARES[0]),
        (lambda x: tf.reduce_sum(x, 0, keepdims=True), SQUARES[0]),
        (lambda x: tf.reduce_sum(x, 0), SQUARES[0]),
    ]
    wants = [product(*call) for call in calls]
    with fastops.accelerated():
        for _ in range(4):
            for call, want in zip(calls, wants, strict=True):
                assert_same(product(*call), want)
        assert used() > 0


def test_plans_run_products():
    """A call that nothing records runs as a plan, without TensorFlow's executor."""
    want = product(tf.tanh, INPUTS[0])
    with fastops.accelerated():
        for _ in range(4):
            assert_same(product(tf.tanh, INPUTS[0]), want)
        with fastops.profile() as profile:
            assert_same(product(tf.tanh, INPUTS[0]), want)
        (function,) = profile.functions
        assert "_jvp_exact_shapes" in function.name
        assert (function.executor, function.calls) == ("plan", 1)


def test_shapes_beyond_tensorflows_limit(monkeypatch):
    """From then on TensorFlow generalizes shapes, and the stand-in leaves the calls to it."""
    monkeypatch.setitem(forwardprop._TRACE_COUNT, "Sinh", forwardprop._TRACE_COUNT_LIMIT)
    want = product(tf.sinh, INPUTS[0])
    with fastops.accelerated():
        before = used()
        for _ in range(3):
            assert_same(product(tf.sinh, INPUTS[0]), want)
        assert used() == before


def test_kernels_that_fail():
    x = tf.zeros([4, 4])
    want = outcome(product, (tf.linalg.inv, x), {})
    with fastops.accelerated():
        for _ in range(3):
            for square in SQUARES:
                product(tf.linalg.inv, square + 5.0 * tf.eye(4))
        assert_same(outcome(product, (tf.linalg.inv, x), {}), want)


def test_replaced_functions(monkeypatch):
    """A function that a program puts in the place of TensorFlow's runs."""
    want = product(tf.tanh, INPUTS[0])
    seen = []
    with fastops.accelerated():
        for _ in range(3):
            assert_same(product(tf.tanh, INPUTS[0]), want)
        module = forwardprop.tracing_compilation
        call = module.call_function

        def counted(*args, **kwargs):
            seen.append(args)
            return call(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(module, "call_function", counted)
            assert_same(product(tf.tanh, INPUTS[0]), want)
        assert seen


def test_threads():
    wants = [product(FUNCTIONS["network"], x) for x in INPUTS]
    problems = []

    def work():
        try:
            for _ in range(20):
                for x, want in zip(INPUTS, wants, strict=True):
                    assert_same(product(FUNCTIONS["network"], x), want)
        except BaseException as problem:
            problems.append(problem)

    with fastops.accelerated():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems
