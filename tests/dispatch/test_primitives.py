"""Ops on images that run oneDNN's primitives without TensorFlow's kernels give the same bytes."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Barrier

import pytest
import tensorflow as tf
from support import assert_same, assert_same_bits, floats, has_primitives, special, took

import fastops
from fastops._reports import counters

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

POOLING = {"MaxPool": "input", "AvgPool": "value"}


def primitive_runs(op):
    return sum(key["primitive_runs"] for key in counters.cached_keys(op))


def assert_runs_primitive(op_name, draw_inputs, seeds=6, outputs=1, **attrs):
    """Compare calls with TensorFlow's; assert that all but the first three ran only the primitive.

    TensorFlow makes the first call, and the next two run the kernel, whose primitive is learned
    from them. Only the first `outputs` outputs are compared: outputs that exist only for gradients
    may be undefined.
    """
    op, plain = getattr(fastops.raw_ops, op_name), getattr(tf.raw_ops, op_name)
    with fastops.options(threads="caller"):
        for seed in range(seeds):
            inputs = {name: tf.constant(value) for name, value in draw_inputs(seed).items()}
            got, _ = took(op, **inputs, **attrs)
            want = plain(**inputs, **attrs)
            pairs = zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True)
            for one, other in islice(pairs, outputs):
                assert tf.io.serialize_tensor(one) == tf.io.serialize_tensor(other)
    assert primitive_runs(op) == (seeds - 3 if has_primitives() else 0)


@pytest.mark.parametrize("op_name", POOLING)
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(
    ("shape", "window", "strides"),
    [
        ((1, 8, 8, 8), (2, 2), (2, 2)),
        ((2, 7, 5, 3), (3, 2), (1, 2)),
        ((3, 9, 4, 17), (2, 4), (3, 1)),
        ((1, 5, 6, 1), (5, 6), (1, 1)),
        ((2, 3, 3, 4), (1, 1), (2, 2)),  # the windows do not cover all elements
    ],
    ids=str,
)
def test_pooling(op_name, padding, shape, window, strides):
    attrs = {"ksize": [1, *window, 1], "strides": [1, *strides, 1], "padding": padding}

    def draw(seed):
        return {POOLING[op_name]: (floats if seed % 2 else special)(*shape, seed=seed)}

    assert_runs_primitive(op_name, draw, seeds=12, **attrs)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(
    ("image", "filters", "strides", "dilations"),
    [
        ((8, 8, 8), (3, 3, 8), (1, 1), (1, 1)),
        ((9, 7, 3), (2, 4, 17), (2, 1), (1, 1)),
        ((9, 7, 3), (3, 2, 5), (1, 1), (2, 3)),
        ((5, 6, 1), (5, 6, 1), (1, 1), (1, 1)),
        ((4, 4, 16), (1, 1, 32), (3, 2), (1, 1)),
    ],
    ids=str,
)
def test_convolution(padding, image, filters, strides, dilations):
    *window, results = filters
    attrs = {
        "strides": [1, *strides, 1],
        "dilations": [1, *dilations, 1],
        "padding": padding,
    }

    def draw(seed):
        return {
            "input": (special if seed > 4 else floats)(1, *image, seed=seed),
            "filter": floats(*window, image[-1], results, seed=seed + 10),
        }

    assert_runs_primitive("Conv2D", draw, **attrs)


@pytest.mark.parametrize("shape", [(1, 4, 4, 3), (2, 5, 3, 16), (3, 1, 1, 37)], ids=str)
@pytest.mark.parametrize("epsilon", [1e-4, 0.5])
def test_batch_normalization(shape, epsilon):
    def draw(seed):
        draws = special if seed > 4 else floats
        named = {
            name: draws(shape[-1], seed=seed + place)
            for place, name in enumerate(["scale", "offset", "mean"], 1)
        }
        variance = abs(floats(shape[-1], seed=seed + 4))
        return {"x": draws(*shape, seed=seed), **named, "variance": variance}

    assert_runs_primitive("FusedBatchNormV3", draw, outputs=3, epsilon=epsilon, is_training=False)


@pytest.mark.parametrize(
    "shape", [(7,), (4, 10), (2, 3, 33), (2, 1, 3, 5), (1, 2, 3, 2, 2)], ids=str
)
def test_softmax(shape):
    assert_runs_primitive(
        "Softmax", lambda seed: {"logits": (floats, special)[seed > 4](*shape, seed=seed)}
    )


def test_calls_that_do_not_show_the_order_are_not_learned_from():
    """With a filter of zeros, the result does not show the order in which it is read."""
    shape = (3, 3, 8, 8)

    def draw(seed):
        filters = tf.zeros(shape) if seed < 4 else floats(*shape, seed=seed)
        return {"input": floats(1, 8, 8, 8, seed=seed), "filter": filters}

    op, attrs = fastops.raw_ops.Conv2D, {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with fastops.options(threads="caller"):
        for seed, runs in enumerate([0, 0, 0, 0, 0, 1, 2]):
            inputs = {name: tf.constant(value) for name, value in draw(seed).items()}
            assert_same_bits(op(**inputs, **attrs), tf.raw_ops.Conv2D(**inputs, **attrs))
            assert primitive_runs(op) == (runs if has_primitives() else 0)


@pytest.mark.parametrize("constant_first", [False, True])
def test_primitives_of_constant_weights(constant_first):
    """Primitives of constant weights reorder them, and share a key with other primitives."""
    image = tf.constant(floats(1, 6, 6, 8))
    filters = [tf.constant(floats(3, 3, 8, 24, seed=seed)) for seed in range(2)]
    constant = filters[0].numpy()

    @tf.function
    def traced(x):
        return tf.nn.conv2d(x, constant, 1, "SAME")

    planned = fastops.function(traced, executor="plan")
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    wanted = [tf.raw_ops.Conv2D(input=image, filter=each, **attrs) for each in filters]
    want = traced(image)

    def eager(times=5):
        for _ in range(times):
            for each, result in zip(filters, wanted, strict=True):
                got = fastops.raw_ops.Conv2D(input=image, filter=each, **attrs)
                assert_same_bits(got, result)

    def of_constant(times=3):
        for _ in range(times):
            assert_same_bits(planned(image), want)

    with fastops.options(threads="caller"):
        turns = [of_constant, eager] if constant_first else [eager, of_constant]
        for turn in turns:
            turn()
        for order in (turns, turns[::-1]):
            with ThreadPoolExecutor(1) as thread:  # a new thread has its own primitives
                for turn in (*order, *order):
                    thread.submit(turn).result()


def test_each_thread_makes_and_compares_its_own_primitive():
    image, filters = tf.constant(floats(1, 6, 6, 4)), tf.constant(floats(2, 2, 4, 4))
    op = fastops.raw_ops.Conv2D
    want = tf.raw_ops.Conv2D(input=image, filter=filters, strides=[1, 1, 1, 1], padding="VALID")

    def call(times=4):
        with fastops.options(threads="caller"):
            for _ in range(times):
                got = op(input=image, filter=filters, strides=[1, 1, 1, 1], padding="VALID")
                assert_same_bits(got, want)

    call()
    seen = [primitive_runs(op)]
    with ThreadPoolExecutor(1) as thread:
        thread.submit(call).result()
    seen.append(primitive_runs(op))
    # The first call of a thread makes its primitive, and compares the result with the kernel's.
    assert seen == ([1, 4] if has_primitives() else [0, 0])


def test_threads_at_once():
    image, op = tf.constant(floats(2, 8, 8, 4)), fastops.raw_ops.MaxPool
    attrs = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    want = tf.raw_ops.MaxPool(input=image, **attrs)
    count, times = 4, 200
    barrier = Barrier(count)

    def call():
        barrier.wait(60)
        with fastops.options(threads="caller"):
            for _ in range(times):
                assert_same_bits(op(input=image, **attrs), want)

    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(call) for _ in range(count)]:
            done.result()
    # The counter may miss calls that run at once.
    assert (primitive_runs(op) > times / 2) == has_primitives()


@pytest.mark.parametrize("used", [True, False], ids=["used", "unused"])
def test_more_primitives_than_the_cache_holds(used):
    """TensorFlow deletes the primitive that was not looked up for the longest time."""
    op, attrs = fastops.raw_ops.AvgPool, {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1]}
    attrs["padding"] = "VALID"
    image = tf.constant(floats(1, 5, 5, 3))
    others = [tf.zeros([1, 2, 2, channels]) for channels in range(1, 1500)]

    def call(times=1):
        before = primitive_runs(op)
        with fastops.options(threads="caller"):
            for _ in range(times):
                assert_same_bits(op(value=image, **attrs), want)
        return primitive_runs(op) - before if has_primitives() else None

    def run():
        runs = [call(6)]
        for number, other in enumerate(others):
            tf.raw_ops.AvgPool(value=other, **attrs)
            if used and number % 500 == 0:
                runs.append(call())
        return [*runs, call(), call()]

    want = tf.raw_ops.AvgPool(value=image, **attrs)
    with ThreadPoolExecutor(1) as thread:  # has its own cache
        runs = thread.submit(run).result()
    if has_primitives():
        assert runs == ([3, 1, 1, 1, 1, 1] if used else [3, 0, 1])


@pytest.mark.parametrize("threads", ["caller", "pool", "auto"])
def test_gradients_in_a_plan(threads):
    """The gradient of oneDNN's max pooling reads the workspace written by the forward pass."""
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
    # With "auto", calls of the first kind are timed in both kinds of threads.
    if has_primitives() and threads == "caller":
        assert case.runner.plan.primitive_runs() == 3 * 6


def test_a_network_in_a_plan():
    filters = [tf.Variable(floats(3, 3, 4, 4, seed=seed)) for seed in range(4)]
    biases = [tf.Variable(floats(4, seed=seed)) for seed in range(4)]
    moving = [tf.Variable(abs(floats(4, seed=seed))) for seed in range(4)]

    @tf.function
    def network(x):
        for each, bias, activation in zip(
            filters, biases, [tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.identity], strict=True
        ):
            x = activation(tf.nn.bias_add(tf.nn.conv2d(x, each, 1, "SAME"), bias))
        x = tf.nn.softmax(tf.math.cos(x))  # in place
        return tf.compat.v1.nn.fused_batch_norm(
            tf.math.sin(x), *moving, is_training=False, epsilon=1e-3
        )[0]

    planned = fastops.function(network, executor="plan")
    with fastops.options(threads="caller"):
        for seed in range(8):
            x = tf.constant(floats(1, 6, 6, 4, seed=seed))
            assert_same_bits(planned(x), network(x))
    (case,) = planned.known_cases()
    if has_primitives():
        assert case.runner.plan.primitive_runs() == 6 * 6
