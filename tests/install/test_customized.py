"""Calls of functions of `tf.custom_gradient` in eager mode, without TensorFlow's Python."""

import functools
import gc
import sys
import threading
import weakref
from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf
from support import Failure, assert_same, floats

import fastops
from fastops._autodiff.rules import RULES

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant(floats(3, 4))
Y = tf.constant(floats(3, 4, seed=2))
VARIABLE = tf.Variable(2.0, name="scale")
FROZEN = tf.Variable(3.0, trainable=False)
Pair = namedtuple("Pair", "first second")


@tf.custom_gradient
def negated(x):
    return x * 2.0, lambda dy: -dy


@tf.custom_gradient
def of_two(x, y):
    def gradient(dy):
        return dy * y, None

    return x * y, gradient


@tf.custom_gradient
def of_results(x):
    def gradient(first, second):
        return first + 2.0 * second

    return (x * 2.0, x * 3.0), gradient


@tf.custom_gradient
def of_structures(pair):
    def gradient(a, b):
        return [a * 2.0, b]

    return {"b": pair.first, "a": [pair.second * 2.0]}, gradient


@tf.custom_gradient
def of_options(x, *, scale, mode="plain"):
    return x * scale, lambda dy: dy * (5.0 if mode == "plain" else scale)


@tf.custom_gradient
def of_variables(x):
    def gradient(dy, variables=None):
        return dy * 7.0, [tf.reduce_sum(dy) for _ in variables]

    return x * VARIABLE * FROZEN, gradient


@tf.custom_gradient
def of_keywords(x):
    def gradient(dy, **options):
        return dy, [tf.ones([]) for _ in options["variables"]]

    return x * VARIABLE, gradient


@tf.custom_gradient
def of_a_given_variable(x, variable):
    return x * variable, lambda dy: (dy, tf.constant(11.0))


@tf.custom_gradient
def of_slices(x):
    def gradient(dy):
        return tf.IndexedSlices(dy[:1], tf.constant([1]), tf.constant([3, 4]))

    return x * 1.0, gradient


@tf.custom_gradient
def of_ragged(x):
    return x.with_values(x.values * 2.0), lambda dy: dy.with_values(dy.values * 3.0)


@tf.custom_gradient
def of_anything(x, text, number, array):
    return x * number, lambda dy: (dy, None, tf.constant(1.0), None)


@tf.custom_gradient
def of_nothing():
    return tf.constant(1.0), lambda dy: []


@tf.custom_gradient
def nested(x):
    return negated(x) + 1.0, lambda dy: negated(dy) * x


@tf.recompute_grad
def recomputed(x):
    return tf.sin(x) * VARIABLE


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    @tf.custom_gradient
    def method(self, x):
        return x * self.scale, lambda dy: dy * self.scale * 2.0


class Slope:
    """A gradient function that is an object."""

    def __call__(self, dy):
        return dy * 4.0


CALLS = {
    "one": lambda: negated(X),
    "two": lambda: of_two(X, Y),
    "results": lambda: of_results(X),
    "structures": lambda: of_structures(Pair(X, Y)),
    "a list": lambda: tf.custom_gradient(lambda x: (x[0] * x[1], lambda dy: [dy, dy]))([X, Y]),
    "options": lambda: of_options(X, scale=tf.constant(2.0)),
    "another option": lambda: of_options(X, scale=2.0, mode="other"),
    "variables": lambda: of_variables(X),
    "keywords": lambda: of_keywords(X),
    "a variable": lambda: of_a_given_variable(X, VARIABLE),
    "slices": lambda: of_slices(X),
    "anything": lambda: of_anything(X, "text", 3.0, np.ones(2)),
    "an array": lambda: negated(np.ones(3, np.float32)),
    "a number": lambda: negated(3.0),
    "nothing": of_nothing,
    "nested": lambda: nested(X),
    "twice": lambda: negated(negated(X)),
    "a method": lambda: Scaled(3.0).method(X),
    "an object": lambda: tf.custom_gradient(lambda x: (x * 1.0, Slope()))(X),
    "partial": lambda: tf.custom_gradient(lambda x: (x, functools.partial(tf.multiply, 2.0)))(X),
    "a number as the result": lambda: tf.custom_gradient(lambda x: (2.0, lambda dy: dy))(X),
    "the argument": lambda: tf.custom_gradient(lambda x: (x, lambda dy: dy))(X),
    "a list of both": lambda: tf.custom_gradient(lambda x: [x * 1.0, lambda dy: dy])(X),
    "recomputed": lambda: recomputed(X),
}


def raising(x):
    raise KeyError("no")


def makes(gradient):
    return lambda: tf.custom_gradient(lambda x: (x * VARIABLE * x, gradient))(X)


def returns(*results):
    return lambda: tf.custom_gradient(lambda x: (x * 1.0, lambda dy: list(results)))(X)


ERRORS = {
    "raises": lambda: tf.custom_gradient(raising)(X),
    "one tensor": lambda: tf.custom_gradient(lambda x: 3)(X),
    "a triple": lambda: tf.custom_gradient(lambda x: (x, x, x))(X),
    "a list of one": lambda: tf.custom_gradient(lambda x: [x])(X),
    "no gradient function": lambda: tf.custom_gradient(lambda x: (x, None))(X),
    "no name": lambda: tf.custom_gradient(functools.partial(lambda x: (x, lambda dy: dy)))(X),
    "wrong arguments": lambda: negated(X, X),
    "takes no variables": makes(lambda dy: dy),
    "too few variables": makes(lambda dy, variables: (dy, [])),
    "no pair": makes(lambda dy, variables: 3),
    "a tuple of variables": makes(lambda dy, variables: (dy, (tf.ones([]),))),
    "too many gradients": returns(X, X),
    "no gradients": returns(),
    "fails": lambda: tf.custom_gradient(lambda x: (x * 1.0, raising))(X),
}


def ended(call, persistent=False):
    """Return the results and gradients of a call, or its exception."""
    try:
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch([X, Y])
            result = call()
        flat = [y for y in tf.nest.flatten(result) if y is not None]
        watched = [variable.name for variable in tape.watched_variables()]
        sources = [X, Y, VARIABLE]
        slopes = [tape.gradient(flat, sources) for _ in range(1 + persistent)]
        return (
            result,
            watched,
            [
                tf.convert_to_tensor(slope) if isinstance(slope, tf.IndexedSlices) else slope
                for slope in tf.nest.flatten(slopes)
            ],
        )
    except Exception as error:
        return Failure(type(error), str(error))


def steps(run):
    """Return what a run returns, and how often TensorFlow's Python has run for custom gradients."""
    seen = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name in ("_eager_mode_decorator", "actual_grad_fn"):
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        return run(), len(seen)
    finally:
        sys.setprofile(None)


def assert_same_ends(run):
    """Assert that a run ends as in TensorFlow, each time, without TensorFlow's Python."""
    want, count = steps(run)
    assert count
    with fastops.accelerated():
        for _ in range(3):
            got, count = steps(run)
            assert_same(got, want)
            assert count == 0
    return want


@pytest.mark.parametrize("persistent", [False, True], ids=["once", "persistent"])
@pytest.mark.parametrize("name", CALLS)
def test_call_is_that_of_tensorflow(name, persistent):
    assert not isinstance(assert_same_ends(lambda: ended(CALLS[name], persistent)), Failure)


@pytest.mark.parametrize("name", ERRORS)
def test_error_is_that_of_tensorflow(name):
    assert isinstance(assert_same_ends(lambda: ended(ERRORS[name])), Failure)


def test_composite_tensors():
    ragged = tf.RaggedTensor.from_row_splits(X, [0, 1, 3])

    def run():
        with tf.GradientTape() as tape:
            tape.watch(ragged)
            result = of_ragged(ragged)
        return tf.nest.flatten([result, tape.gradient(result, ragged)], expand_composites=True)

    assert_same_ends(run)


@pytest.mark.parametrize("name", ["one", "two", "nested", "twice"])
def test_second_derivatives(name):
    def run():
        with tf.GradientTape() as outer:
            outer.watch(X)
            with tf.GradientTape() as inner:
                inner.watch(X)
                result = tf.sin(CALLS[name]())
            slope = inner.gradient(result, X)
        return slope, outer.gradient(slope, X)

    assert_same_ends(run)


@pytest.mark.parametrize("name", ["one", "two", "nested", "twice"])
def test_accumulators(name):
    def run():
        with tf.autodiff.ForwardAccumulator(X, Y) as accumulator:
            result = CALLS[name]()
        return result, accumulator.jvp(result)

    assert_same_ends(run)


def test_gradients_that_are_not_connected():
    """A gradient function gets zeros for results that the target does not use."""
    seen = []

    @tf.custom_gradient
    def function(x):
        def gradient(*slopes):
            seen.append(slopes)
            return slopes[0]

        return [x * 2.0, x * 3.0], gradient

    def run():
        seen.clear()
        with tf.GradientTape() as tape:
            tape.watch(X)
            first, _ = function(X)
        return tape.gradient(first, X), list(seen[0])

    assert_same_ends(run)


@pytest.mark.parametrize("name", CALLS)
def test_no_tape(name):
    assert_same_ends(CALLS[name])


def test_function_of_tensorflow_is_left_to_it():
    traced = tf.function(lambda x: negated(x))
    with fastops.accelerated():
        assert_same(traced(X), X * 2.0)


def test_records_keep_what_tensorflow_keeps():
    """The result of the function lives as long as in TensorFlow, the record dies with its tape."""

    def run():
        kept = []

        @tf.custom_gradient
        def function(x):
            y = x * 2.0
            kept.append(weakref.ref(y))
            return y, lambda dy: dy

        with tf.GradientTape() as tape:
            tape.watch(X)
            function(X)
        gc.collect()
        alive = kept[0]() is not None
        del tape, function
        gc.collect()
        return alive, kept[0]() is None

    want = run()
    with fastops.accelerated():
        assert run() == want
    assert want[1]


def test_variables_of_a_failed_call_are_forgotten():
    """The watcher of variables ends with the call."""

    @tf.custom_gradient
    def failing(x):
        raise KeyError(float(VARIABLE * x))

    def run():
        with pytest.raises(KeyError):
            failing(tf.constant(2.0))
        return ended(CALLS["variables"])

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


def test_threads():
    want = ended(CALLS["nested"])
    results = []

    def work():
        for _ in range(50):
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = nested(X)
            results.append((y, tape.gradient(y, X)))

    with fastops.accelerated():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 200
    for y, slope in results:
        assert_same((y, slope), (want[0], want[2][0]))


def odd(function):
    """Return what gradients of another shape or dtype than their tensors lead to, or the error."""
    return {
        name: ended(lambda make=make: make(function))
        for name, make in {
            "flat": lambda f: f(
                tf.custom_gradient(lambda x: (x, lambda d: tf.reshape(d, [-1])))(X)
            ),
            "under": lambda f: tf.custom_gradient(lambda x: (x, lambda d: tf.reshape(d, [-1])))(
                f(X)
            ),
            "text": lambda f: tf.custom_gradient(lambda x: (x, lambda d: tf.constant("a")))(f(X)),
            "one": lambda f: tf.custom_gradient(lambda x: (x, lambda d: tf.constant(1.0)))(f(X)),
        }.items()
    }


ODD = {
    "divide": lambda x: x / 3.0,
    "add": lambda x: x + 1.0,
    "bias": lambda x: tf.nn.bias_add(x, [1.0, 2.0, 3.0, 4.0]),
    "where": lambda x: tf.where(x > 0.0, x, 0.0),
    "maximum": lambda x: tf.maximum(x, 0.0),
    "product": lambda x: x @ tf.ones([4, 4]),
    "sum": lambda x: tf.reduce_sum(x, 1, keepdims=True),
}


@pytest.mark.parametrize("name", ODD)
def test_gradients_of_other_shapes_fail_as_in_tensorflow(name):
    want = odd(ODD[name])
    with fastops.accelerated():
        for _ in range(3):
            assert_same(odd(ODD[name]), want)


SEEDS = {
    "flat": tf.ones([12]),
    "row": tf.ones([4]),
    "text": tf.constant("a"),
    "double": tf.ones([3, 4], tf.float64),
    "truth": tf.ones([3, 4], tf.bool),
    "one": tf.constant(1.0),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ODD)
def test_seeds_of_other_shapes_fail_as_in_tensorflow(name, seed):
    def run():
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = ODD[name](X)
        try:
            return tape.gradient(y, X, output_gradients=SEEDS[seed])
        except Exception as error:
            return Failure(type(error), str(error))

    want = run()
    with fastops.accelerated():
        for _ in range(3):
            assert_same(run(), want)
        count = RULES["Mul"].taken
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = X * 2.0
        tape.gradient(y, X, output_gradients=X)
        assert RULES["Mul"].taken > count  # the rules run again
