"""`tf.vectorized_map` in eager mode: traces of functions that are shown to be pure are reused."""

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from calls import outcome
from support import Failure, assert_same, floats

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant(floats(6, 4))
OTHERS = [tf.constant(floats(6, 4, seed=seed)) for seed in range(1, 4)]
LARGE = [tf.constant(floats(60, 4, seed=seed)) for seed in range(4, 7)]
SMALL = tf.constant(floats(4, seed=7))
MATRIX = tf.constant(floats(200, 4, seed=8))
VARIABLE = tf.Variable(floats(4, 4, seed=9))
COUNT = 2
SCALES = {"scale": 2.0}


def used():
    kinds = fastops.stats().kinds.get("tf.vectorized_map")
    return 0 if kinds is None else kinds.copied


def helped(a):
    return tf.reduce_sum(a) * SMALL[0]


def scaled(scale):
    return lambda a: a * scale


def of_dict(a):
    return {"first": a, "rest": (tf.reduce_sum(a), [a[0]])}


def branching(a):
    if a.shape[0] > 3:
        return tf.tanh(a)
    return a


PURE = {
    "ops": lambda a: tf.tanh(a) * 2.0,
    "constants": lambda a: (a * SMALL) * 3.0 * SMALL,
    "matrix": lambda a: tf.linalg.matvec(MATRIX, a),
    "variable": lambda a: tf.linalg.matvec(VARIABLE, a),
    "outer": lambda a: tf.tensordot(a, a, 0),
    "structure": of_dict,
    "slice": lambda a: a[:COUNT],
    "constant": lambda a: tf.constant(3),
    "helper": lambda a: helped(a) + 1.0,
    "closure": scaled(3.0),
    "closure of a tensor": scaled(SMALL),
    "closure of a variable": scaled(VARIABLE),
    "closure of a function": (lambda act: lambda a: act(a))(tf.nn.relu),
    "branch": branching,
    "reshape": lambda a: tf.reshape(a, [2, 2]),
    "sort": lambda a: tf.sort(a),
    "double": lambda a: tf.cast(a, tf.float64),
    "none": lambda a: (a, None),
    "text": lambda a: "text",
    "loop": lambda a: tf.while_loop(
        lambda i, b: i < 3, lambda i, b: (i + 1, b * 2.0), [tf.constant(0), a]
    )[1],
}
"""Functions whose traces are used again."""


def mapped(function, elems):
    """Return the results, with lists of items in the places of dicts."""
    found = tf.vectorized_map(function, elems)
    return list(found.items()) if isinstance(found, dict) else found


def with_gradients(function, elems):
    with tf.GradientTape() as tape:
        tape.watch(elems)
        results = mapped(function, elems)
    loss = [y for y in tf.nest.flatten(results) if isinstance(y, tf.Tensor)]
    loss = [y for y in loss if y.dtype.is_floating]
    return results, tape.gradient(loss, [elems, VARIABLE])


@pytest.mark.parametrize("name", PURE)
def test_trace_is_used_again(name):
    function = PURE[name]
    calls = [X, X, *OTHERS, X, *LARGE, *LARGE, X[:0], X[:0], X[:0]]
    wants = [outcome(mapped, (function, elems), {}) for elems in calls]
    slopes = [with_gradients(function, elems) for elems in (*OTHERS, *LARGE)]
    with fastops.accelerated():
        for elems, want in zip(calls, wants, strict=True):
            assert_same(outcome(mapped, (function, elems), {}), want)
        assert used() >= 8
        before = used()
        for elems, want in zip((*OTHERS, *LARGE), slopes, strict=True):
            assert_same(with_gradients(function, elems), want)
        assert used() - before == 6


def test_structures_of_elements():
    functions = {
        "tuple": (lambda p: p[0] * p[1][0], lambda x: (x, [x + 1.0])),
        "dict": (lambda p: p["a"] + tf.cast(p["b"], tf.float32), lambda x: {"a": x, "b": INTS}),
        "broadcast": (lambda p: p[0] * p[1], lambda x: (x, x[:1])),
        "one tensor twice": (lambda p: p[0] - p[1], lambda x: (x, x)),
    }
    for function, elems_of in functions.values():
        wants = [tf.vectorized_map(function, elems_of(x)) for x in (X, *OTHERS)]
        with fastops.accelerated():
            before = used()
            for _ in range(3):
                for x, want in zip((X, *OTHERS), wants, strict=True):
                    assert_same(tf.vectorized_map(function, elems_of(x)), want)
            assert used() > before


INTS = tf.constant([[1, 2, 3, 4]] * 6)


def test_aliases_are_other_bodies():
    """A trace for one tensor that is given twice does not fit two tensors."""

    def function(pair):
        return pair[0] - pair[1]

    with fastops.accelerated():
        for _ in range(3):
            assert not np.any(tf.vectorized_map(function, (X, X)))
            assert np.any(tf.vectorized_map(function, (X, OTHERS[0])))


# ---------------------------------------------------------------------------------------------
# What a body depends on
# ---------------------------------------------------------------------------------------------


def results(function, *steps, elems=X):
    """Return results of a function, with a step between any two of them, in both ways."""

    def run():
        found = [outcome(tf.vectorized_map, (function(), elems), {}) for _ in range(4)]
        for step in steps:
            step()
            found += [outcome(tf.vectorized_map, (function(), elems), {}) for _ in range(2)]
        return found

    return run


@pytest.mark.parametrize("value", [3.0, -0.0, SMALL, MATRIX[:4, 0], VARIABLE, [2.0], (1, 2.0)])
def test_closures_are_compared(value):
    def function(held):
        return lambda a: a * (held[-1] if isinstance(held, (list, tuple)) else held)

    both = [scaled, function][isinstance(value, (list, tuple))]
    wants = [tf.vectorized_map(both(x), X) for x in (value, 0.0, 5.0)]
    with fastops.accelerated():
        for _ in range(3):
            for x, want in zip((value, 0.0, 5.0), wants, strict=True):
                assert_same(tf.vectorized_map(both(x), X), want)


def test_cell_changes():
    scale = 2.0

    def function(a):
        return a * scale

    with fastops.accelerated():
        for scale in (2.0, 3.0, 2.0, 4.0) * 3:
            assert_same(tf.vectorized_map(function, X), X * scale)
        assert used() > 0


def test_changes_of_globals(monkeypatch):
    changes = {
        "COUNT": (lambda a: a[:COUNT], 3),
        "SMALL": (lambda a: a * SMALL, tf.constant(floats(4, seed=20))),
        "MATRIX": (lambda a: tf.linalg.matvec(MATRIX, a), MATRIX * 2.0),
        "helped": (lambda a: helped(a), lambda a: a * 5.0),
        "SCALES": (lambda a: a * SCALES["scale"], {"scale": 7.0}),
    }
    for name, (function, value) in changes.items():
        with fastops.accelerated(), monkeypatch.context() as patch:
            before = used()
            old = [tf.vectorized_map(function, X) for _ in range(4)]
            assert used() - before >= 2, name
            patch.setitem(globals(), name, value)
            new = [tf.vectorized_map(function, X) for _ in range(4)]
            patch.undo()
            again = [tf.vectorized_map(function, X) for _ in range(2)]
        with monkeypatch.context() as patch:
            assert_same(old + again, [tf.vectorized_map(function, X)] * 6)
            patch.setitem(globals(), name, value)
            assert_same(new, [tf.vectorized_map(function, X)] * 4)


def test_contents_of_globals(monkeypatch):
    def function(a):
        return a * SCALES["scale"]

    with fastops.accelerated():
        for scale in (2.0, 5.0, 2.0):
            monkeypatch.setitem(SCALES, "scale", scale)
            for _ in range(3):
                assert_same(tf.vectorized_map(function, X), X * scale)
        assert used() > 0


def test_replaced_functions_of_tensorflow(monkeypatch):
    def function(a):
        return tf.tanh(a)

    with fastops.accelerated():
        for _ in range(4):
            tf.vectorized_map(function, X)
        with monkeypatch.context() as patch:
            patch.setattr(tf, "tanh", tf.sin)
            for _ in range(3):
                assert_same(tf.vectorized_map(function, X), tf.sin(X))
        assert_same(tf.vectorized_map(function, X), tf.tanh(X))


def test_variable_is_read_in_each_call():
    variable = tf.Variable(2.0)
    with fastops.accelerated():
        for value in range(6):
            variable.assign(float(value))
            assert_same(tf.vectorized_map(lambda a: a * variable, X), X * float(value))
        assert used() == 4


@pytest.mark.parametrize("dtype", [tf.int32, tf.bool, tf.float64, tf.string])
def test_dtypes(dtype):
    first = tf.cast(X > 0.0, tf.int32)
    elems = [tf.as_string(first), tf.as_string(1 - first)]
    if dtype != tf.string:
        elems = [tf.cast(first, dtype), tf.cast(1 - first, dtype)]

    def function(a):
        return a, tf.reverse(a, [0])

    wants = [tf.vectorized_map(function, x) for x in elems]
    with fastops.accelerated():
        for _ in range(4):
            for x, want in zip(elems, wants, strict=True):
                assert_same(tf.vectorized_map(function, x), want)


def test_shapes_by_values():
    """The shapes in a trace may depend on the values of integers."""
    lengths = [tf.constant([[n]] * 3) for n in (2, 3, 2, 4)]

    def function(held):
        return lambda a: tf.zeros(held[0]) + tf.cast(a[0], tf.float32)

    wants = [outcome(tf.vectorized_map, (function(n), n), {}) for n in lengths]
    with fastops.accelerated():
        for _ in range(3):
            for n, want in zip(lengths, wants, strict=True):
                assert_same(outcome(tf.vectorized_map, (function(n), n), {}), want)


# ---------------------------------------------------------------------------------------------
# Functions that TensorFlow calls in each call
# ---------------------------------------------------------------------------------------------

NOTES = []


def noting(a):
    NOTES.append(1)
    return a


def printing(a):
    print(end="")
    return a


def made(a):
    return a + tf.Variable(1.0)


def assigning(a):
    VARIABLE.assign_add(tf.zeros_like(VARIABLE))
    return a


def raising(a):
    raise ValueError("no")


def failing(a):
    return tf.reshape(a, [3])


IMPURE = {
    "noting": noting,
    "printing": printing,
    "assigning": assigning,
    "raising": raising,
    "failing": failing,
    "seeded": lambda a: a + tf.random.uniform([4], seed=3),
    "stateful": lambda a: a + tf.random.normal([4]) * 0.0,
    "python": lambda a: tf.numpy_function(lambda b: b * 2.0, [a], tf.float32),
    "checked": lambda a: (tf.debugging.assert_less(a, 100.0), a)[1],
    "array": (lambda held: lambda a: a * held)(np.ones(4, np.float32)),
    "object": (lambda held: lambda a: a * held.value)(type("Held", (), {"value": 2.0})()),
}


@pytest.mark.parametrize("name", IMPURE)
def test_other_functions_are_traced(name):
    function = IMPURE[name]

    def run():
        tf.random.set_seed(5)
        NOTES.clear()
        found = [outcome(tf.vectorized_map, (function, X), {}) for _ in range(4)]
        return [_without_addresses(x) for x in found], len(NOTES)

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)
        assert used() == 0


def _without_addresses(value):
    """Return an outcome without the addresses, numbers and lines in the text of an error."""
    if isinstance(value, Failure):
        text = value.message.split("0x")[0].split("{{")[0].split(" defined at ")[0]
        return value._replace(message=text)
    return value


def test_seeds_of_stateless_ops():
    def function(a):
        return a + tf.random.stateless_normal([4], [1, 2])

    want = tf.vectorized_map(function, X)
    with fastops.accelerated():
        assert_same([tf.vectorized_map(function, X) for _ in range(4)], [want] * 4)


def test_surroundings():
    def function(a):
        return tf.tanh(a)

    def inside():
        return tf.function(lambda x: tf.vectorized_map(function, x))(X)

    def nested():
        return tf.vectorized_map(lambda a: tf.vectorized_map(function, a), X)

    def in_python():
        return tf.py_function(lambda x: tf.vectorized_map(function, x), [X], tf.float32)

    want = tf.vectorized_map(function, X)
    wants = [run() for run in (inside, nested, in_python)]
    with fastops.accelerated():
        for _ in range(4):
            assert_same(tf.vectorized_map(function, X), want)
            assert_same([run() for run in (inside, nested, in_python)], wants)
        tf.config.run_functions_eagerly(True)
        try:
            before = used()
            assert_same(tf.vectorized_map(function, X), want)
            assert used() == before
        finally:
            tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("options", [{"fallback_to_while_loop": False}, {"warn": False}])
def test_options(options):
    def function(a):
        return tf.tanh(a)

    want = tf.vectorized_map(function, X, **options)
    with fastops.accelerated():
        for _ in range(4):
            assert_same(tf.vectorized_map(function, X), want)
            assert_same(tf.vectorized_map(function, X, **options), want)
        assert used() == 4


@pytest.mark.parametrize("elems", [3.0, tf.constant(3.0), [], None, (X, X[:2])])
def test_other_elements(elems):
    def function(a):
        return a

    want = outcome(tf.vectorized_map, (function, elems), {})
    with fastops.accelerated():
        for _ in range(3):
            got = outcome(tf.vectorized_map, (function, elems), {})
            assert_same(_without_addresses(got), _without_addresses(want))


def test_error_of_a_trace_is_tensorflows():
    def function(a):
        return tf.gather(MATRIX, tf.cast(a[0], tf.int32))

    elems = [tf.constant(floats(3, 4)) * 0.0, tf.constant([[-900.0] * 4] * 3)]

    def run():
        return [
            _without_addresses(outcome(tf.vectorized_map, (function, elems[i]), {}))
            for i in (0, 0, 0, 1, 0)
        ]

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)
    assert isinstance(want[3], Failure)


def test_threads():
    wants = [tf.vectorized_map(scaled(float(n)), X) for n in range(4)]
    found = {}

    def work(n):
        found[n] = [tf.vectorized_map(scaled(float(n)), X) for _ in range(10)]

    with fastops.accelerated():
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for n, want in enumerate(wants):
        assert_same(found[n], [want] * 10)


def test_tensor_that_is_also_a_global():
    def function(a):
        return a * X[0]

    wants = [tf.vectorized_map(function, x) for x in (X, *OTHERS)]
    with fastops.accelerated():
        for _ in range(3):
            for x, want in zip((X, *OTHERS), wants, strict=True):
                assert_same(tf.vectorized_map(function, x), want)


def test_large_elements_are_not_kept_alive():
    """A trace keeps the tensors that it has captured, so there is none of large ones."""

    def program():
        large = tf.zeros([5, 1 << 20])
        result = tf.vectorized_map(lambda row: row[:2] + 1.0, large)
        return result, weakref.ref(large)

    want = program()[0]
    with fastops.accelerated():
        for _ in range(4):
            result, reference = program()
            assert_same(result, want)
            gc.collect()
            assert reference() is None
    assert used() == 0
