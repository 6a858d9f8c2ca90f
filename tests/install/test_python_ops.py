"""`tf.py_function` in eager mode: the function is called without a kernel of TensorFlow's."""

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from support import Failure, assert_same, floats
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.eager import context
from tensorflow.python.ops import script_ops

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant(floats(3, 4))
INTS = tf.constant([1, 2])
VARIABLE = tf.Variable(2.0)


class Callable:
    def __call__(self, x):
        return x + 1.0


def apply(function, inputs, dtypes, **options):
    """Return a run of `tf.py_function`, without arguments."""
    return lambda: tf.py_function(function, inputs, dtypes, **options)


def surroundings(_):
    """Return what a function sees of its surroundings."""
    state = (
        context.context().device_name,
        tf.executing_eagerly(),
        ag_ctx.control_status_ctx().status.name,
        threading.current_thread().name,
    )
    return tf.constant([str(part) for part in state])


def numbers(a, b, c, d):
    return [a, b, c, d]


DIRECT = {
    "one": apply(lambda x: x + 1.0, [X], tf.float32),
    "named": apply(lambda x: x + 1.0, [X], tf.float32, name="named"),
    "several": apply(lambda x, i: (x * 2.0, i), (X, INTS), [tf.float32, tf.int32]),
    "too many": apply(lambda x: [x, x], [X], tf.float32),
    "a tuple of dtypes": apply(lambda x: [x], [X], (tf.float32,)),
    "no results": apply(lambda: None, [], []),
    "an argument": apply(lambda x: x, [X], tf.float32),
    "a number": apply(lambda x: 3, [X], tf.float32),
    "an array": apply(lambda x: np.arange(3), [X], tf.int64),
    "a variable": apply(lambda x: x * 2.0, [VARIABLE], tf.float32),
    "numbers": apply(
        numbers, [1, 2.0, True, np.float64(3)], [tf.int32, tf.float32, tf.bool, tf.float64]
    ),
    "array": apply(lambda x: x, [np.arange(3.0)], tf.float64),
    "strings": apply(lambda x: x, [tf.constant(["a", "bc"])], tf.string),
    "nothing": apply(lambda x: x, [X[:0]], tf.float32),
    "object": apply(Callable(), [X], tf.float32),
    "surroundings": apply(surroundings, [X], tf.string),
    "nested": apply(lambda x: tf.py_function(lambda y: y * 2.0, [x], tf.float32), [X], tf.float32),
}
"""Runs that take the direct path."""


def raising(error, *args):
    def inner(x):
        raise error(*args)

    def function(x):
        try:
            return 1 // 0
        except ZeroDivisionError:
            return inner(x)

    return function


ERRORS = {
    error.__name__: apply(raising(error, "no"), [X], tf.float32)
    for error in (
        *(ValueError, TypeError, StopIteration, MemoryError, NotImplementedError, KeyError),
        *(KeyboardInterrupt, SystemExit),
    )
} | {
    "of TensorFlow": apply(raising(tf.errors.OutOfRangeError, None, None, "no"), [X], tf.float32),
    "one too few": apply(lambda x: None, [X], tf.float32),
    "another dtype": apply(lambda x: x, [X], tf.int32),
    "another type": apply(lambda x: "text", [X], tf.float32),
    "a variable": apply(lambda x: VARIABLE, [X], tf.float32),
    "of an op": apply(lambda x: tf.reshape(x, [7]), [X], tf.float32, name="named"),
    "nested": apply(
        lambda x: tf.py_function(raising(ValueError, "no"), [x], tf.float32), [X], tf.float32
    ),
    "no function": apply(3, [X], tf.float32),
    "no dtype": apply(lambda x: x, [X], 3.5),
    "too many arguments": apply(lambda: None, [X], []),
}
"""Runs that raise."""

OTHERS = {
    "a tensor of inputs": apply(lambda *rows: rows[0], X, tf.float32),
    "ragged": apply(lambda x: x.to_tensor(), [tf.ragged.constant([[1], [2, 3]])], tf.int32),
    "a spec": apply(lambda x: x, [X], tf.TensorSpec([3, 4])),
    "in a function": tf.function(apply(lambda x: x + 1.0, [X], tf.float32)),
}
"""Runs that are left to TensorFlow."""


def ended(run):
    """Return what a run returns or raises, with the tokens that begin at 0."""
    script_ops._py_funcs._unique_id = 0
    try:
        return run()
    except BaseException as error:
        return Failure(type(error), str(error))


def direct_calls():
    stats = fastops.stats().ops.get("EagerPyFunc")
    return 0 if stats is None else stats.direct


def assert_direct(run, calls):
    """Assert that a run ends in the same way twice under `install`, with a number of calls."""
    want = ended(run)
    with fastops.accelerated():
        for _ in range(2):
            before = direct_calls()
            assert_same(ended(run), want)
            assert direct_calls() - before == calls
    return want


@pytest.mark.parametrize("name", DIRECT)
def test_function_is_called_directly(name):
    assert not isinstance(assert_direct(DIRECT[name], 1 + (name == "nested")), Failure)


@pytest.mark.parametrize("name", ERRORS)
def test_error_is_that_of_the_op(name):
    assert isinstance(assert_direct(ERRORS[name], 0), Failure)


@pytest.mark.parametrize("name", OTHERS)
def test_other_calls_are_left_to_tensorflow(name):
    assert_direct(OTHERS[name], 0)


@pytest.mark.parametrize("name", ["one", "another dtype", "ValueError"])
def test_function_is_called_once(name):
    calls = []

    def function(x):
        calls.append(x is X)
        if name == "ValueError":
            raise ValueError
        return x if name == "one" else tf.constant(1)

    assert_direct(apply(function, [X], tf.float32), name == "one")
    assert calls == [False] * 3  # TensorFlow makes new tensors of the arguments


def test_result_is_a_new_tensor():
    kept = []

    def run():
        y = tf.py_function(lambda x: kept.append(x) or x, [X], tf.float32)
        return y is X or y is kept[-1]

    assert assert_direct(run, 1) is False


# ---------------------------------------------------------------------------------------------
# Tapes
# ---------------------------------------------------------------------------------------------


def gradient(function, inputs, dtypes, **options):
    """Return a run that returns the results, the gradients and the watched variables."""

    def run():
        with tf.GradientTape(**options) as tape:
            tape.watch(X)
            results = tf.py_function(function, inputs, dtypes)
            loss = tf.nest.map_structure(lambda y: y * 2, results)
        slopes = tape.gradient(loss, [X, VARIABLE])
        return results, slopes, [variable.name for variable in tape.watched_variables()]

    return run


def twice(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    return tape.gradient(y, x)


TAPED = {
    "one": gradient(lambda x: x * x, [X], tf.float32),
    "variable inside": gradient(lambda x: x * x * VARIABLE, [X], tf.float32),
    "variable": gradient(lambda x, v: x * v, [X, VARIABLE], tf.float32),
    "outer tensor": gradient(lambda: X * X, [], tf.float32),
    "ints": gradient(lambda x, i: [x * x, i], [X, INTS], [tf.float32, tf.int32]),
    "unconnected": gradient(lambda x: tf.constant(1.0), [X], tf.float32),
    "persistent": gradient(lambda x: x * x, [X], tf.float32, persistent=True),
    "tape inside": gradient(twice, [X], tf.float32),
}


@pytest.mark.parametrize("name", TAPED)
def test_gradients(name):
    ended(TAPED[name])
    with_gradient = name != "outer tensor"
    assert_direct(TAPED[name], 1 + with_gradient)
    with fastops.accelerated():
        wants = [ended(TAPED[name]) for _ in range(6)]
    assert_same(wants, [ended(TAPED[name])] * 6)


@pytest.mark.parametrize("name", ["persistent", "second", "forward", "function", "raises"])
def test_unusual_gradients(name):
    def run():
        with tf.GradientTape() as outer, tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            outer.watch(X)
            if name == "raises":
                return tf.py_function(raising(ValueError, "no"), [X], tf.float32)
            y = tf.py_function(lambda x: x * x * x, [X], tf.float32)
        first = tape.gradient(y, X)
        if name == "persistent":
            return first, tape.gradient(y, X)
        return y, first, outer.gradient(first, X)

    def forward():
        with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
            y = tf.py_function(lambda x: x * x * x, [X], tf.float32)
        return y, accumulator.jvp(y)

    def function():
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.py_function(lambda x: x * x * x, [X], tf.float32)
        gc.collect()
        return tf.function(lambda: tape.gradient(y, X))()

    run = {"forward": forward, "function": function}.get(name, run)
    want = ended(run)
    with fastops.accelerated():
        assert_same([ended(run), ended(run)], [want] * 2)
    assert isinstance(want, Failure) is (name in ("persistent", "raises"))


# ---------------------------------------------------------------------------------------------
# Surroundings
# ---------------------------------------------------------------------------------------------


def test_functions_are_not_kept():
    class Held:
        pass

    held = Held()
    reference = weakref.ref(held)
    with fastops.accelerated():
        tf.py_function(lambda x, held=held: x, [X], tf.float32)
        del held
        gc.collect()
        assert reference() is None


def test_replaced_parts_are_called(monkeypatch):
    seen = []
    original = script_ops.gen_script_ops.eager_py_func

    def replaced(*args, **kwargs):
        seen.append(kwargs["name"])
        return original(*args, **kwargs)

    monkeypatch.setattr(script_ops.gen_script_ops, "eager_py_func", replaced)
    with fastops.accelerated():
        assert_same(tf.py_function(lambda x: x, [X], tf.float32, name="named"), X)
    assert seen == ["named"]


def test_observed_calls_run_the_op():
    seen = []

    def callback(op_type, *_, **__):
        seen.append(op_type)

    with fastops.accelerated():
        context.context().add_op_callback(callback)
        try:
            tf.py_function(lambda x: x, [X], tf.float32)
        finally:
            context.context().remove_op_callback(callback)
    assert b"EagerPyFunc" in seen or "EagerPyFunc" in seen


def test_threads():
    results = {}

    def work(number):
        results[number] = [
            tf.py_function(lambda x, i=i: x + number + i, [1.0], tf.float32).numpy()
            for i in range(50)
        ]

    with fastops.accelerated():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {n: [1.0 + n + i for i in range(50)] for n in range(4)}
