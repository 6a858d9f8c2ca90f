"""`tf.scan`, folds and `tf.map_fn` in eager mode: the function is called in a plain loop."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from calls import outcome
from support import Failure, assert_same, floats

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant(floats(5, 3))
OTHER = tf.constant(floats(5, 3, seed=1))
INTS = tf.constant([1, 2, 3, 4, 5])
START = tf.constant(floats(3, seed=2))
SCALE = tf.constant(floats(3, seed=3))
VARIABLE = tf.Variable(floats(3, seed=4))
COUNT = 2
NOTES = []


def used(name):
    kinds = fastops.stats().kinds.get(f"tf.{name}")
    return 0 if kinds is None else kinds.copied


def in_both(run, name, expected):
    """Compare the outcomes of a run with TensorFlow's, and the number of plain loops."""

    def noted():
        NOTES.clear()
        return outcome(run, (), {}), list(NOTES)

    want = noted()
    with fastops.accelerated():
        for _ in range(3):
            before = used(name)
            assert_same(noted(), want)
            assert used(name) - before == expected
    return want[0]


def gradients(run):
    """Return a run that also returns gradients, and the names of the watched variables."""

    def taped():
        with tf.GradientTape() as tape:
            tape.watch([X, START])
            results = run()
        loss = [y * 2.0 for y in tf.nest.flatten(results) if y.dtype.is_floating]
        watched = [variable.name for variable in tape.watched_variables()]
        return results, tape.gradient(loss, [X, START, VARIABLE]), watched

    return taped


# ---------------------------------------------------------------------------------------------
# tf.scan and folds
# ---------------------------------------------------------------------------------------------


def noting(a, x):
    NOTES.append([float(y) for y in tf.nest.flatten(a)[0]])
    return a + x


LOOPS = {
    "sum": (lambda a, x: a + tf.tanh(x), X, {}),
    "start": (lambda a, x: a * x, X, {"initializer": START}),
    "variable": (lambda a, x: a * x + VARIABLE, X, {}),
    "pair": (lambda a, x: (a[0] + x[0], a[1] * x[1]), (X, OTHER), {}),
    "list": (lambda a, x: [a[0] + x[0], a[1] * x[1]], [X, OTHER], {}),
    "start of a pair": (lambda a, x: (a[1] + x, a[0]), X, {"initializer": (START, SCALE)}),
    "pair of elements": (lambda a, x: a + x[0] * x[1], (X, OTHER), {"initializer": START}),
    "ints": (lambda a, x: a * x, INTS, {}),
    "one": (lambda a, x: a * x, X[:1], {}),
    "named": (lambda a, x: a * x, X, {"name": "named"}),
    "noting": (noting, X, {}),
    "branch": (lambda a, x: a + x if x[0] > 0.0 else a - x, X, {}),
    "argument": (lambda a, x: a, X, {}),
    "element": (lambda a, x: x, X, {}),
}
"""Calls that take the plain loop: the function, the elements and other arguments."""


@pytest.mark.parametrize("name", ["scan", "foldl", "foldr"])
@pytest.mark.parametrize("case", LOOPS)
def test_plain_loops(name, case):
    function, elems, options = LOOPS[case]
    for more in [{}, {"reverse": True}] if name == "scan" else [{}]:

        def run(more=more):
            return getattr(tf, name)(function, elems, **options, **more)

        assert not isinstance(in_both(run, name, 1), Failure)
        if case != "noting":
            in_both(gradients(run), name, 1)


def changing(results):
    """Return a function whose second result is another one."""
    calls = []

    def function(a, x):
        calls.append(1)
        NOTES.append(len(calls))
        if len(calls) % 4 == 2:
            return results(a, x)
        return a + x

    return function


UNUSUAL = {
    "a number": lambda a, x: 3.0,
    "an array": lambda a, x: np.ones(3, np.float32),
    "another dtype": lambda a, x: tf.cast(x, tf.float64),
    "another shape": lambda a, x: x[:2],
    "a list": lambda a, x: [a],
    "none": lambda a, x: None,
    "a variable": lambda a, x: VARIABLE,
    "an error": lambda a, x: tf.reshape(x, [7]),
}


@pytest.mark.parametrize("name", ["scan", "foldl", "foldr"])
@pytest.mark.parametrize("case", UNUSUAL)
def test_unusual_results(name, case):
    """TensorFlow goes on after an unusual result. The calls that were made are not made again."""

    def run():
        return getattr(tf, name)(changing(UNUSUAL[case]), X)

    def noted():
        NOTES.clear()
        return outcome(run, (), {}), list(NOTES)

    want = noted()
    with fastops.accelerated():
        for _ in range(2):
            assert_same(noted(), want)


OTHERS = {
    "nothing": lambda loop: loop(lambda a, x: a + x, X[:0]),
    "scalar": lambda loop: loop(lambda a, x: a + x, X[0, 0]),
    "other lengths": lambda loop: loop(lambda a, x: a, (X, X[:2])),
    "array": lambda loop: loop(lambda a, x: a + x, np.ones((3, 2), np.float32)),
    "nested": lambda loop: loop(lambda a, x: a, (X, (X, X))),
    "a variable": lambda loop: loop(lambda a, x: a + x, VARIABLE),
    "a variable to start": lambda loop: loop(lambda a, x: a + x, X, initializer=VARIABLE),
    "no function": lambda loop: loop(3, X),
    "no back_prop": lambda loop: loop(lambda a, x: a + x, X, back_prop=False),
    "ragged": lambda loop: loop(lambda a, x: a, tf.ragged.constant([[1], [2, 3]])),
    "in a function": lambda loop: tf.function(lambda: loop(lambda a, x: a + x, X))(),
}


@pytest.mark.parametrize("name", ["scan", "foldl", "foldr"])
@pytest.mark.parametrize("case", OTHERS)
def test_other_loops_are_tensorflows(name, case):
    in_both(lambda: OTHERS[case](getattr(tf, name)), name, 0)


@pytest.mark.parametrize("start", [0.0, 3, True, np.float32(2.0), np.ones(3, np.float32), [0.0]])
def test_starts_that_are_numbers(start):
    for name in ("scan", "foldl", "foldr"):

        def run(name=name):
            return getattr(tf, name)(lambda a, x: a + x, X, initializer=start)

        want = outcome(run, (), {})
        with fastops.accelerated():
            assert_same(outcome(run, (), {}), want)


def test_names_of_variables():
    def run():
        names = []

        def function(a, x):
            names.append(tf.Variable(1.0, name="made").name)
            return a + x

        return tf.scan(function, X, name="named"), names

    in_both(run, "scan", 1)


def test_random_numbers_are_drawn_in_order():
    def run():
        tf.random.set_seed(3)
        return tf.scan(lambda a, x: a + tf.random.normal([3]), X), tf.random.normal([2])

    in_both(run, "scan", 1)


# ---------------------------------------------------------------------------------------------
# tf.map_fn
# ---------------------------------------------------------------------------------------------


def scaled(scale):
    return lambda x: x * scale


MAPS = {
    "ops": (lambda x: tf.tanh(x) * 2.0, X, {}),
    "slice": (lambda x: x[:COUNT], X, {}),
    "global": (lambda x: x * SCALE, X, {}),
    "variable": (lambda x: x * VARIABLE, X, {}),
    "closure": (scaled(2.0), X, {}),
    "closure of a tensor": (scaled(SCALE), X, {}),
    "signature": (lambda x: tf.cast(x > 0.0, tf.int32), X, {"fn_output_signature": tf.int32}),
    "pair": (lambda p: (p[0] + p[1], p[0]), (X, OTHER), {}),
    "pair of results": (
        lambda x: (x, tf.argmax(x)),
        *(X, {"fn_output_signature": (tf.float32, tf.int64)}),
    ),
    "ints": (lambda x: x * 2, INTS, {}),
    "statements": (lambda x: (x, [x, x])[1][0], X, {}),
    "default": (lambda x, scale=3.0: x * scale, X, {}),
    "default element": (lambda x=None: x * 2.0, X, {}),
    "named": (lambda x: x, X, {"name": "named"}),
}
"""Calls that take the plain loop from the third call on."""


def map_in_both(run, expected):
    """Compare outcomes of six calls, and the number of plain loops."""
    wants = [outcome(run, (), {}) for _ in range(6)]
    with fastops.accelerated():
        before = used("map_fn")
        assert_same([outcome(run, (), {}) for _ in range(6)], wants)
        assert used("map_fn") - before == expected
    return wants[0]


@pytest.mark.parametrize("case", MAPS)
def test_plain_maps(case):
    function, elems, options = MAPS[case]

    def run():
        return tf.map_fn(function, elems, **options)

    assert not isinstance(map_in_both(run, 4), Failure)
    wants = [outcome(gradients(run), (), {}) for _ in range(6)]
    with fastops.accelerated():  # which changes a class of TensorFlow, so a proof may be made again
        assert_same([outcome(gradients(run), (), {}) for _ in range(6)], wants)
        assert used("map_fn") >= 4 + 5


def statements(x):
    if tf.reduce_sum(x) > 0.0:
        return x
    return -x


def negated(x):
    return tf.cast(not x[0] > 0.0, tf.float32) * x


def helper(x):
    return x * 2.0


def appending(x):
    NOTES.append(1)
    return x


def loop(x):
    for _ in range(2):
        x = x * 2.0
    return x


CONVERTED = {
    "branch": statements,
    "not": negated,
    "and": lambda x: x * tf.cast(x[0] > 0.0 and x[1] > 0.0, tf.float32),
    "helper": lambda x: helper(x),
    "builtin": lambda x: x * float(x[0]),
    "length": lambda x: x * len(x),
    "appending": appending,
    "loop": loop,
    "inner function": lambda x: tf.map_fn(lambda y: y * 2.0, x),
    "random": lambda x: x + tf.random.normal([3]),
    "dropout": lambda x: tf.nn.dropout(x, 0.5),
    "equal": lambda x: x * tf.cast(x == x[0], tf.float32),
    "assigning": lambda x: VARIABLE.assign(VARIABLE) * x,
    "array": scaled(np.ones(3, np.float32)),
    "object": (lambda held: lambda x: x * held.value)(type("Held", (), {"value": 2.0})()),
    "Keras": lambda x: tf.keras.activations.relu(x),
}


@pytest.mark.parametrize("case", CONVERTED)
def test_other_maps_are_tensorflows(case):
    def run():
        tf.random.set_seed(4)
        NOTES.clear()
        return tf.map_fn(CONVERTED[case], X), len(NOTES), tf.random.normal([2])

    map_in_both(run, 0)


FAILING = {
    "error": lambda x: tf.reshape(x, [7]),
    "dtype": lambda x: tf.cast(x, tf.float64),
    "structure": lambda x: [x],
    "none": lambda x: None,
}


@pytest.mark.parametrize("case", FAILING)
def test_errors_are_tensorflows(case):
    assert isinstance(map_in_both(lambda: tf.map_fn(FAILING[case], X), 0), Failure)


def test_shapes_by_values():
    def function(x):
        return x[: tf.cast(x[0], tf.int32)]

    for values in ([[1, 5], [1, 6]], [[1, 5], [2, 6]]):
        map_in_both(
            lambda v=values: tf.map_fn(function, tf.constant(v)), 4 if values[1][0] == 1 else 0
        )


def test_numbers_are_converted_by_tensorflow():
    map_in_both(lambda: tf.map_fn(lambda x: 3.0, X), 0)


def test_changes_of_globals(monkeypatch):
    def function(x):
        return tf.tanh(x) * SCALE

    with fastops.accelerated():
        for _ in range(4):
            tf.map_fn(function, X)
        assert used("map_fn") == 2
        monkeypatch.setitem(globals(), "SCALE", -SCALE)
        assert_same(tf.map_fn(function, X), tf.tanh(X) * SCALE)
        with monkeypatch.context() as patch:
            patch.setattr(tf, "tanh", statements)
            got = tf.map_fn(function, X)
    with monkeypatch.context() as patch:
        patch.setattr(tf, "tanh", statements)
        assert_same(got, tf.map_fn(function, X))


def test_new_closures():
    with fastops.accelerated():
        for scale in (2.0, 3.0, 2.0) * 3:
            assert_same(tf.map_fn(scaled(scale), X), X * scale)
        assert used("map_fn") > 0


@pytest.mark.parametrize(
    "run",
    [
        lambda: tf.map_fn(lambda x: x, X[:0]),
        lambda: tf.map_fn(lambda x: x, X[0, 0]),
        lambda: tf.map_fn(lambda x: x, [X, X[:2]]),
        lambda: tf.map_fn(lambda x: x, np.ones(3)),
        lambda: tf.map_fn(lambda x: x, X, fn_output_signature=tf.TensorSpec([3])),
        lambda: tf.map_fn(lambda x: x, X, parallel_iterations=1),
        lambda: tf.map_fn(lambda x: x, tf.ragged.constant([[1], [2, 3]])),
        lambda: tf.function(lambda: tf.map_fn(lambda x: x * 2.0, X))(),
        lambda: tf.map_fn(3, X),
    ],
)
def test_other_arguments(run):
    want = outcome(run, (), {})
    with fastops.accelerated():
        for _ in range(3):
            assert_same(outcome(run, (), {}), want)
        assert used("map_fn") == 0


def test_threads():
    found = {}

    def work(n):
        found[n] = [tf.map_fn(scaled(float(n)), X) for _ in range(10)]

    with fastops.accelerated():
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for n in range(4):
        assert_same(found[n], [X * float(n)] * 10)
