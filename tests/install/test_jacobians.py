"""`tape.jacobian` and `tape.batch_jacobian`: traces of earlier calls are used again."""

import gc
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from calls import outcome
from support import Failure, assert_same, floats
from tensorflow.python.framework import ops
from tensorflow.python.ops import math_grad

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

INPUTS = [tf.constant(floats(3, 4, seed=seed)) for seed in range(1, 4)]
LARGE = [tf.constant(floats(30, 7, seed=seed)) for seed in range(6, 9)]
SQUARES = [tf.constant(floats(4, 4, seed=seed)) for seed in range(10, 13)]
MATRIX = tf.constant(floats(4, 5, seed=20))
VARIABLE = tf.Variable(floats(4, 4, seed=21))
BIAS = tf.Variable(floats(4, seed=22))
TABLE = tf.Variable(floats(6, 4, seed=23))
ROWS = tf.constant([0, 5, 0, 2])


def used(name="jacobian"):
    kinds = fastops.stats().kinds.get(f"tf.GradientTape.{name}")
    return 0 if kinds is None else kinds.copied


def jacobian(function, x, sources=None, persistent=False, **options):
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x if sources is None else sources, **options)


def batch_jacobian(function, x, **options):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.batch_jacobian(y, x, **options)


def network(x):
    hidden = tf.nn.relu(x @ VARIABLE + BIAS)
    return tf.nn.softmax(tf.tanh(hidden @ VARIABLE) @ MATRIX)


FUNCTIONS = {
    "tanh": tf.tanh,
    "quotient": lambda x: x / (1.5 + tf.square(x)),
    "power": lambda x: tf.pow(x, 3.0) + tf.abs(x) ** 1.7,
    "power of a tensor": lambda x: tf.abs(x) ** x,
    "relu": lambda x: tf.nn.relu(x) * x,
    "choice": lambda x: tf.where(x > 0.1, x * x, tf.sin(x)),
    "network": network,
    "sum": lambda x: tf.reduce_sum(x * x, axis=1),
    "scalar": lambda x: tf.reduce_mean(tf.exp(x)),
    "maximum": lambda x: tf.reduce_max(x * x, axis=0),
    "shapes": lambda x: tf.concat([tf.transpose(x), tf.reshape(x, [x.shape[1], -1]) * 2.0], 0),
    "slices": lambda x: tf.stack([x[0] * x[1], x[1] - x[2]]),
    "broadcast": lambda x: x * tf.reduce_sum(x, 0) - x[:1],
    "norm": lambda x: tf.nn.l2_normalize(x, axis=-1),
    "silu": lambda x: tf.nn.silu(x),  # looked up under `install`
    "double": lambda x: tf.cast(x, tf.float64) ** 2,
    "linear": lambda x: 2.0 * x + 1.0,
    "used often": lambda x: x * x + x * tf.tanh(x) + x,
    "split": lambda x: tf.split(x * x, [1, x.shape[1] - 1], axis=1)[1],
    "loss": lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x * 2.0), x),
    "cumulated": lambda x: tf.cumsum(x * x, axis=1),
    "gathered": lambda x: tf.gather(x * x, [0, 2, 0]),
    "einsum": lambda x: tf.einsum("ij,kj->ik", x, tf.sin(x)),
}


WITH_LARGE = {"tanh", "quotient", "choice", "broadcast", "loss"}
"""Functions for which tensors are tested that TensorFlow does not put into the trace."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_trace_is_used_again(name):
    function = FUNCTIONS[name]
    inputs = [*INPUTS, *LARGE] if name in WITH_LARGE else INPUTS
    wants = [jacobian(function, x) for x in inputs]
    with fastops.accelerated():
        for x, want in zip(inputs * 2, wants * 2, strict=True):
            assert_same(jacobian(function, x), want)
        before = used()
        for x, want in zip(inputs, wants, strict=True):
            assert_same(jacobian(function, x), want)
        assert used() - before == len(inputs)


SQUARE = {
    "product": lambda x: tf.tanh(x @ x),
    "inverse": lambda x: tf.linalg.inv(x + 5.0 * tf.eye(4)),
    "cholesky": lambda x: tf.linalg.cholesky(x @ tf.transpose(x) + tf.eye(4)),
    "solve": lambda x: tf.linalg.solve(x + 5.0 * tf.eye(4), x),
    "determinant": tf.linalg.det,
    "diagonal": lambda x: tf.linalg.diag_part(x * x),
    "triangle": lambda x: tf.linalg.band_part(x * x, -1, 0),
}


@pytest.mark.parametrize("name", SQUARE)
def test_functions_of_matrices(name):
    function = SQUARE[name]
    wants = [jacobian(function, x) for x in SQUARES]
    with fastops.accelerated():
        for x, want in zip(SQUARES * 2, wants * 2, strict=True):
            assert_same(jacobian(function, x), want)
        before = used()
        for x, want in zip(SQUARES, wants, strict=True):
            assert_same(jacobian(function, x), want)
        assert used() - before == len(SQUARES)


BY_ITEM = ["tanh", "choice", "network", "norm", "loss of rows", "linear"]


@pytest.mark.parametrize("name", BY_ITEM)
def test_batch_jacobians(name):
    function = FUNCTIONS.get(name, lambda x: tf.reduce_sum(x * x * x, 1, keepdims=True))
    wants = [batch_jacobian(function, x) for x in INPUTS]
    with fastops.accelerated():
        for x, want in zip(INPUTS * 2, wants * 2, strict=True):
            assert_same(batch_jacobian(function, x), want)
        before = used("batch_jacobian")
        for x, want in zip(INPUTS, wants, strict=True):
            assert_same(batch_jacobian(function, x), want)
        assert used("batch_jacobian") - before == len(INPUTS)


def assert_results(call, arguments, times=None):
    """Compare results with those without fastops, in rounds.

    `times`: how often a traced jacobian must run for each argument in the last round.
    """
    wants = [outcome(call, (argument,), {}) for argument in arguments]
    with fastops.accelerated():
        for _ in range(3):
            before = used()
            for argument, want in zip(arguments, wants, strict=True):
                assert_same(outcome(call, (argument,), {}), want)
        if times is not None:
            assert used() - before == times * len(arguments)
    return wants


def test_sources():
    other = tf.constant(floats(3, 4, seed=30))

    def call(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, other])
            y = network(x * x) + tf.reduce_sum(x * other)
        everything = {"x": x, "more": [VARIABLE, (BIAS, other)]}
        return [
            tf.nest.flatten(tape.jacobian(y, source))
            for source in (x, [x], (VARIABLE, x), [BIAS], everything, [TABLE, x])
        ]

    assert_results(call, INPUTS, times=6)


def test_sources_that_are_not_connected():
    other = tf.constant(1.0)

    def call(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, other])
            y = tf.tanh(x)
        return [
            tape.jacobian(y, [x, other]),
            tape.jacobian(y, [x, other], unconnected_gradients="zero"),
            tape.jacobian(y, [other], unconnected_gradients=tf.UnconnectedGradients.ZERO),
            tape.jacobian(y, other),
            tape.batch_jacobian(y, INPUTS[0]),
        ]

    assert_results(call, INPUTS[1:])


def test_integers_of_a_tape_are_compared():
    def call(rows):
        return jacobian(lambda x: tf.tanh(tf.gather(x * x, rows)), INPUTS[0])

    choices = [tf.constant([i, 2 - i, i, i]) for i in range(3)]
    wants = [call(rows) for rows in choices]
    with fastops.accelerated():
        for _ in range(4):
            assert_same(call(choices[0]), wants[0])
        before = used()
        assert before >= 1
        for rows, want in zip(choices, wants, strict=True):
            assert_same(call(rows), want)
        assert_same(call(choices[0]), wants[0])
        assert used() > before


def test_axes_are_compared():
    """The gradient function of a sum reads the axes while it is traced."""

    def call(axis):
        return jacobian(lambda x: tf.reduce_sum(x * x, axis=tf.constant(axis)), SQUARES[0])

    wants = [call(0), call(1)]
    with fastops.accelerated():
        for _ in range(6):
            assert_same(call(0), wants[0])
        before = used()
        assert before > 0
        assert_same(call(1), wants[1])
        assert used() == before
        assert_same(call(0), wants[0])
        assert used() == before + 1


def test_options_are_a_part_of_the_key():
    other = tf.constant(1.0)

    def call(unconnected):
        with tf.GradientTape() as tape:
            tape.watch([INPUTS[0], other])
            y = tf.tanh(INPUTS[0])
        return tape.jacobian(y, [INPUTS[0], other], unconnected_gradients=unconnected)

    wants = {unconnected: call(unconnected) for unconnected in ("none", "zero")}
    with fastops.accelerated():
        for _ in range(6):
            assert_same(call("none"), wants["none"])
        before = used()
        assert before > 0
        assert_same(call("zero"), wants["zero"])
        assert used() == before


def test_custom_gradients_of_libraries():
    """What their closures hold is a part of the records."""
    x = INPUTS[0]
    betas = [0.5, 1.5, tf.constant(0.5), tf.constant(2.5), 0.5]
    assert_results(lambda beta: jacobian(lambda x: tf.nn.silu(x, beta), x), betas * 2, times=1)


def test_special_values():
    """Zeros, ones, infinities and NaN are no other case for TensorFlow."""
    values = (0.0, 1.0, 2.0, -1.0, -0.0, np.inf, np.nan)
    inputs = [tf.fill([3, 4], np.float32(value)) for value in values]
    for name in ("power of a tensor", "network", "norm"):
        assert_results(lambda x, f=FUNCTIONS[name]: jacobian(f, x), inputs)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (2, 0)], ids=str)
def test_shapes(shape):
    inputs = [tf.constant(floats(*shape, seed=seed)) for seed in range(3)]
    assert_results(lambda x: jacobian(lambda x: tf.tanh(x) * x, x), inputs)
    assert_results(lambda x: batch_jacobian(lambda x: tf.tanh(x) * x, x), inputs)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64"])
def test_dtypes(dtype):
    inputs = [tf.cast(x, dtype) for x in INPUTS]
    assert_results(lambda x: jacobian(lambda x: x * x + tf.tanh(x), x), inputs, times=1)


def test_dtype_and_shape_are_a_part_of_the_key():
    kinds = [INPUTS[0], tf.cast(INPUTS[0], tf.float64), tf.transpose(INPUTS[0]), INPUTS[0][:2]]
    assert_results(lambda x: jacobian(tf.tanh, x), kinds * 2, times=1)


# ---------------------------------------------------------------------------------------------
# The tape
# ---------------------------------------------------------------------------------------------


def test_tapes_are_used_up():
    def call(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(x @ VARIABLE)
        first = tape.jacobian(y, x)
        (watched,) = tape.watched_variables()
        return first, watched is VARIABLE, outcome(tape.jacobian, (y, x), {})

    wants = assert_results(call, INPUTS, times=1)
    assert isinstance(wants[0][2], Failure)


def test_persistent_tapes():
    def call(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.tanh(x @ VARIABLE)
            z = y * y
        return (
            *(tape.jacobian(y, x), tape.gradient(z, x), tape.jacobian(z, [x, VARIABLE])),
            *(tape.jacobian(y, x), tape.batch_jacobian(z, x), tape.gradient(y, VARIABLE)),
        )

    assert_results(call, INPUTS)


def test_calls_within_tapes():
    def call(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(x)
                y = tf.tanh(x) * x
                within = inner.jacobian(y, x)
            first = inner.jacobian(y, x)
        return within, first, outer.gradient(first, x), outer.jacobian(first, x)

    assert_results(call, INPUTS[:3])


def test_calls_in_functions():
    @tf.function
    def call(x):
        return jacobian(tf.tanh, x)

    assert_results(call, INPUTS[:2], times=0)


def test_calls_under_an_accumulator():
    def call(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = jacobian(lambda x: x * x, x)
        return y, accumulator.jvp(y)

    assert_results(call, INPUTS[:3], times=0)


@pytest.mark.parametrize(
    "options",
    [{"parallel_iterations": 4}, {"experimental_use_pfor": False}],
    ids=["iterations", "loop"],
)
def test_options(options):
    def call(x):
        return jacobian(lambda x: x * x, x, persistent=True, **options)

    assert_results(call, INPUTS[:3], times=0)


def test_errors():
    x = INPUTS[0]

    def call(arguments):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        target, source = arguments
        return tape.batch_jacobian(y if target is None else target, x if source is None else source)

    wants = assert_results(
        call,
        [(x[0], None), (None, x[0]), (None, x[:2]), (None, "text"), (5, None), (None, None)],
    )
    assert all(isinstance(want, Failure) for want in wants[:5])


def test_kernels_that_fail():
    """An error has TensorFlow's text, with the names of the call's own trace."""
    singular = tf.zeros([4, 4])
    calls = [*SQUARES, singular, *SQUARES]

    def call(x):
        try:
            return jacobian(lambda x: tf.linalg.inv(x) @ x, x)
        except tf.errors.InvalidArgumentError as error:
            return error.message

    assert_results(call, calls)


# ---------------------------------------------------------------------------------------------
# What is left to TensorFlow
# ---------------------------------------------------------------------------------------------


def test_gradient_functions_of_users():
    """They may return something else in each call."""
    factors = []

    @tf.custom_gradient
    def scaled(x):
        factor = float(len(factors))
        return x * 1.0, lambda grad: grad * factor

    def call(x):
        return jacobian(scaled, x)

    with fastops.accelerated():
        for i in range(6):
            assert_same(call(INPUTS[0])[0, 0, 0, 0], tf.constant(float(i)))
            factors.append(i)
        assert used() == 0
        reasons = fastops.stats().kinds["tf.GradientTape.jacobian"].reasons
        assert reasons["jacobian_walk"] > 0


def test_registered_gradients_are_guarded(monkeypatch):
    registered = ops._gradient_registry._registry["Tanh"]
    x = INPUTS[0]
    with fastops.accelerated():
        for _ in range(5):
            want = jacobian(tf.tanh, x)
        assert used() == 2
        with monkeypatch.context() as patch:
            patch.setitem(registered, "type", lambda op, grad: grad * 7.0)
            assert_same(jacobian(tf.tanh, x)[0, 0, 0, 0], tf.constant(7.0))
        assert used() == 2
        assert_same(jacobian(tf.tanh, x), want)
        assert used() == 3


def test_names_are_guarded(monkeypatch):
    """A function that a program replaces runs."""
    x = INPUTS[0]
    with fastops.accelerated():
        for _ in range(4):
            want = jacobian(tf.sin, x)
        before = used()
        with monkeypatch.context() as patch:
            patch.setattr(math_grad.math_ops, "cos", lambda x: x * 0.0 + 3.0)
            assert_same(jacobian(tf.sin, x)[0, 0, 0, 0], tf.constant(3.0))
        assert used() == before
        assert_same(jacobian(tf.sin, x), want)
        assert used() == before + 1


def test_collections_call_functions_of_users():
    """A collection in the middle of a trace says nothing about the trace."""

    def note(phase, info):
        pass

    threshold = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(50)
    try:
        with fastops.accelerated():
            for _ in range(6):
                jacobian(tf.tanh, INPUTS[0])
            assert used() > 0
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(note)


def test_a_profile_function_of_the_program():
    seen = []
    x = INPUTS[0]
    with fastops.accelerated():
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        try:
            for _ in range(4):
                jacobian(tf.tanh, x)
        finally:
            sys.setprofile(None)
        assert seen
        assert used() == 0


def test_traces_are_forgotten():
    x = INPUTS[0]
    with fastops.accelerated():
        for _ in range(4):
            want = jacobian(tf.tanh, x)
        before = used()
        assert before == 1
        fastops.clear_cache()
        for _ in range(3):
            assert_same(jacobian(tf.tanh, x), want)
        assert used() == before
        assert_same(jacobian(tf.tanh, x), want)
        assert used() == before + 1


def test_warnings_are_given_each_time(caplog):
    """TensorFlow warns about slices that become dense while it traces."""

    def call():
        with tf.GradientTape() as tape:
            y = tf.gather(TABLE, ROWS) * 2.0
        return tape.jacobian(y, TABLE)

    want = call()
    with fastops.accelerated():
        for _ in range(5):
            caplog.clear()
            assert_same(call(), want)
            assert "IndexedSlices" in caplog.text
        assert used() == 0
        reasons = fastops.stats().kinds["tf.GradientTape.jacobian"].reasons
        assert reasons["jacobian_unusable"] > 0


def test_threads():
    wants = [jacobian(network, x) for x in INPUTS]
    problems = []

    def work():
        try:
            for _ in range(6):
                for x, want in zip(INPUTS, wants, strict=True):
                    assert_same(jacobian(network, x), want)
        except BaseException as problem:
            problems.append(problem)

    with fastops.accelerated():
        # Threads that trace at the same time may keep each other from learning: learn before.
        for x, want in zip(2 * INPUTS, 2 * wants, strict=True):
            assert_same(jacobian(network, x), want)
        before = used()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems
        assert used() > before
