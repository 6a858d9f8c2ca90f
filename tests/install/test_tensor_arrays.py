"""`tf.TensorArray` in eager mode, and the objects that its `write` returns."""

import copy
import gc
import logging
import re
import weakref

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, outcome
from support import assert_same, floats
from tensorflow.python.util import tf_should_use

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant(floats(3))
OTHER = tf.constant(floats(3, seed=1))
ROWS = tf.constant(floats(4, 3))
WIDE = tf.constant(floats(4, seed=2))
VARIABLE = tf.Variable(floats(3, seed=3))
ONE = tf.constant(1)


@pytest.fixture(autouse=True)
def no_messages():
    """Keep messages about unused results out of the output."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def state(array):
    """Return what an array holds, as a list that can be compared."""
    held = {**vars(array._implementation), "parent": array._implementation.parent() is array}
    held["_element_shape"] = str(held["_element_shape"])
    return [[name, held[name]] for name in sorted(held)]


def steps(*calls, size=4, **options):
    """Return a run that makes an array and calls its methods, and returns all outcomes."""

    def run():
        made = outcome(tf.TensorArray, (tf.float32,), {"size": size, **options})
        if not isinstance(made, tf.TensorArray):
            return made
        outcomes = [state(made)]
        for name, *args in calls:
            result = outcome(getattr(made, name), args, {})
            if isinstance(result, tf.TensorArray):
                result = type(result).__name__, result.flow is made.flow
            outcomes.append((result, state(made)))
        return outcomes

    return run


SIZES = [0, 3, ONE, np.int32(2), np.int64(2), True, -1, 2.0, None, "3", tf.constant([1]), VARIABLE]
INDICES = [0, 3, ONE, tf.constant(2, tf.int64), np.int32(1), np.int64(0), True, False]
WRONG = [
    -1,
    4,
    1 << 40,
    1 << 70,
    -(1 << 70),
    1.0,
    None,
    "0",
    tf.constant(-1),
    tf.constant([1]),
    tf.constant(1.0),
]
VALUES = {
    "tensor": X,
    "array": floats(3),
    "list": [1.0, 2.0, 3.0],
    "number": 1.0,
    "variable": VARIABLE,
    "wide": WIDE,
    "double": tf.cast(X, tf.float64),
    "ints": tf.constant([1, 2, 3]),
    "strings": tf.constant(["a", "b", "c"]),
    "None": None,
    "scalar": tf.constant(1.0),
    "empty": tf.zeros([0]),
}
SHAPES = {
    "unknown": {},
    "known": {"element_shape": [3]},
    "partly known": {"element_shape": [None]},
    "of another rank": {"element_shape": tf.TensorShape([3, 1])},
    "not inferred": {"infer_shape": False},
    "known, not inferred": {"infer_shape": False, "element_shape": [3]},
}

RUNS = {
    **{f"size {size!r}": steps(("size",), size=size) for size in SIZES},
    **{
        f"index {index!r}": steps(
            ("write", 0, X), ("write", index, OTHER), ("read", index), ("read", index)
        )
        for index in (*INDICES, *WRONG)
    },
    **{
        f"{index!r} beyond the end": steps(("write", index, X), ("stack",), dynamic_size=True)
        for index in (4, 6, tf.constant(5), np.int32(4))
    },
    **{
        f"{value}, {shape}": steps(
            ("write", 0, X), ("write", 1, VALUES[value]), ("stack",), ("write", 1, X), **options
        )
        for value in VALUES
        for shape, options in SHAPES.items()
    },
    **{f"{value} first": steps(("write", 0, VALUES[value]), ("write", 1, X)) for value in VALUES},
    "reads": steps(("unstack", ROWS), ("read", 0), ("read", 3), ("read", 0), ("stack",)),
    "reads again": steps(("unstack", ROWS), *[("read", 1)] * 3, clear_after_read=False),
    "reads of nothing": steps(("read", 0), ("write", 1, X), ("read", 0), ("read", 3)),
    "unstack of too many rows": steps(("unstack", ROWS), ("read", 0), size=3),
    "unstack of more rows": steps(("unstack", ROWS), ("stack",), size=3, dynamic_size=True),
    "unstack of fewer rows": steps(("unstack", ROWS[:2]), ("write", 3, X), ("stack",)),
    "unstack of an array": steps(("unstack", floats(4, 3)), ("read", 2)),
    "unstack of a scalar": steps(("unstack", tf.constant(1.0)), ("read", 0)),
    "unstack of another dtype": steps(("unstack", tf.ones([4, 2], tf.int32)), ("read", 0)),
    "unstack with a name": steps(("unstack", ROWS, "u"), ("read", 0)),
    "a stack with gaps": steps(("write", 1, X), ("stack",), ("stack",)),
    "a stack of nothing": steps(("stack",), ("write", 0, X), size=0, element_shape=[3]),
    "names": steps(("write", 0, X, "w"), ("read", 0, "r"), ("stack", "s")),
    "scatter": steps(("scatter", [1, 0], ROWS[:2]), ("gather", [0, 1]), ("concat",)),
    "split": steps(("split", ROWS, [1, 1, 2, 0]), ("read", 2)),
    "closed": steps(("write", 0, X), ("close",), ("write", 0, X), ("read", 0), ("stack",)),
    "too few arguments": steps(("write",), ("write", 0), ("read",)),
    "too many arguments": steps(("write", 0, X, "n", 1), ("read", 0, "n", 1), ("stack", "n", 1)),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_states_and_errors(run):
    want = run()
    with fastops.accelerated():
        for _ in range(2):
            assert_same(run(), want)


def loop():
    array = tf.TensorArray(tf.float32, size=4)
    for i in range(4):
        array = array.write(i, X)
    return array.stack()


def rows():
    array = tf.TensorArray(tf.float32, size=4, clear_after_read=False).unstack(ROWS)
    return [array.read(i) for i in range(4)]


def tensor_loop():
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(4):
        array = array.write(i, X)
    return [array.read(i) for i in tf.range(4)]


@pytest.mark.parametrize("run", [loop, rows, tensor_loop])
def test_loops_enter_no_python(run):
    want = run()
    with fastops.accelerated():
        assert_same(run(), want)
        entered = frames(run, (), {})
    assert {*entered} <= {"as_shape", "shape", "numpy", "_numpy"}


def test_gradients_through_an_array():
    def run():
        with tf.GradientTape() as tape:
            tape.watch([X, ROWS])
            array = tf.TensorArray(tf.float32, size=4, clear_after_read=False).unstack(ROWS)
            for i in range(1, 4):
                array = array.write(i, array.read(i - 1) * array.read(i) + X)
            y = array.stack()
        return y, tape.gradient(y, [X, ROWS])

    want = run()
    with fastops.accelerated():
        for _ in range(5):
            assert_same(run(), want)


@pytest.mark.parametrize("run", [loop, rows, tensor_loop])
def test_verification_makes_writes_once(run):
    want = run()
    with fastops.accelerated(verify="raise"):
        for _ in range(3):
            assert_same(run(), want)


# ---------------------------------------------------------------------------------------------
# Results that nobody uses
# ---------------------------------------------------------------------------------------------


def messages(run):
    """Return the messages that TensorFlow logs, without addresses."""
    logger, texts = tf.get_logger(), []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(re.sub("0x[0-9a-f]+", "0x", record.getMessage()))
    level = logger.level
    logger.setLevel(logging.ERROR)
    logger.addHandler(handler)
    try:
        run()
        gc.collect()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return texts


ARRAY = tf.TensorArray(tf.float32, size=4)


def unused():
    ARRAY.write(0, X)


def unused_in_a_comprehension():
    return [ARRAY.write(i, X) for i in range(2)] and None


def dropped_later():
    kept = ARRAY.write(0, X)
    line = 1
    line += 1
    del kept


def by_keyword():
    ARRAY.write(
        value=X,
        index=0,
    )


def used():
    ARRAY.write(0, X).mark_used()
    ARRAY.write(1, X).flow  # noqa: B018


def given_an_attribute():
    ARRAY.write(0, X).mark = 1


def failing():
    with pytest.raises(tf.errors.OutOfRangeError):
        ARRAY.write(9, X)


SPEAKING = [unused, unused_in_a_comprehension, dropped_later, by_keyword, given_an_attribute]


@pytest.mark.quick  # Python's module for tracebacks differs between versions
@pytest.mark.parametrize("run", [*SPEAKING, used, failing])
def test_messages_about_unused_results(run):
    def call():  # from the same line in all runs, because messages have the stack
        return messages(run)

    runs = []
    for installed in (False, True):
        if installed:
            fastops.install()
        try:
            runs.append(call())
        finally:
            fastops.uninstall()
    assert runs[0] == runs[1]
    assert bool(runs[0]) == (run in SPEAKING)
    assert all("test_tensor_arrays.py" in text for text in runs[0])


@pytest.mark.quick
def test_wrappers():
    def facts():
        array = tf.TensorArray(tf.float32, size=4)
        wrapper = array.write(0, X)
        again = wrapper.write(1, OTHER)
        wrapper.mark = 5
        copied = copy.copy(wrapper)
        facts = {
            "class": type(wrapper).__name__,
            "kind": type(wrapper) is tf_should_use._WRAPPERS[tf.TensorArray],
            "isinstance": isinstance(wrapper, tf.TensorArray),
            "wraps": wrapper.__class__ is tf.TensorArray,
            "attribute": array.mark,
            "same": again.flow is array.flow,
            "equal": wrapper == again,
            "hash": hash(wrapper) == hash(again),
            "weak": weakref.ref(wrapper)() is wrapper,
            "missing": outcome(getattr, (wrapper, "nothing"), {}),
            "copy": (type(copied).__name__, copied.write(2, X) is None),
            "state": state(array),
            "helper": sorted(vars(object.__getattribute__(again, "_tf_should_use_helper"))),
        }
        return list(facts.items())

    want = facts()
    with fastops.accelerated():
        assert_same(facts(), want)


def test_a_used_result_keeps_no_frame():
    with fastops.accelerated():
        wrapper = ARRAY.write(0, X)
        helper = object.__getattribute__(wrapper, "_tf_should_use_helper")
        assert helper._stack_frame.f_back.f_code.co_name == "test_a_used_result_keeps_no_frame"
        assert not helper._sated
        assert wrapper.dtype == tf.float32
        assert helper._sated
        assert helper._stack_frame is None


def test_an_array_is_freed_with_its_tensors():
    def run():
        array = tf.TensorArray(tf.float32, size=1)
        tensor = tf.identity(X)
        array = array.write(0, tensor)
        return weakref.ref(tensor), weakref.ref(array), weakref.ref(array._implementation)

    with fastops.accelerated():
        references = run()
        gc.collect()
        assert [reference() for reference in references] == [None] * 3


# ---------------------------------------------------------------------------------------------
# Calls that are left to TensorFlow
# ---------------------------------------------------------------------------------------------


class Mine(tf.TensorArray):
    """An array of a user."""

    def stack(self, name=None):
        return super().stack(name) * 2.0


def test_subclasses():
    def run():
        array = Mine(tf.float32, 2)
        array = array.write(0, X).write(1, OTHER)
        return type(array).__name__, array.stack(), array.read(0)

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


def test_traced_functions():
    kinds = []

    @tf.function
    def traced(n):
        array = tf.TensorArray(tf.float32, size=n)
        for i in tf.range(n):
            array = array.write(i, X)
        with tf.init_scope():
            inner = tf.TensorArray(tf.float32, size=1)
            kinds.append(type(inner.write(0, X)).__name__)
        return array.stack()

    want = traced(tf.constant(3))
    with fastops.accelerated(functions=True):
        traced = tf.function(traced.python_function)
        assert_same(traced(tf.constant(3)), want)
    assert kinds[0] == kinds[1]


def test_uninstall_restores_the_class_of_results():
    kind = tf_should_use._WRAPPERS
    with fastops.accelerated():
        assert type(kind[tf.TensorArray].__getattribute__).__name__ == "Answer"
    assert kind[tf.TensorArray].__getattribute__ is tf_should_use._new__getattribute__
