"""`tf.cond`, `tf.case` and `tf.switch_case` in eager calls."""

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, in_both, outcome
from support import assert_same
from tensorflow.python.framework import op_callbacks

import fastops

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X, Y, Z = tf.constant([1.0, 2.0]), tf.constant([3.0]), tf.constant(4)
YES, NO = tf.constant(True), tf.constant(False)


def x():
    return X * 2.0


def y():
    return [Y]


def nested():
    return [[(Y,)]]


def raises():
    raise ValueError("raised in a branch")


def stops():
    raise KeyboardInterrupt


PREDICATES = {
    "true": YES,
    "false": NO,
    "True": True,
    "False": False,
    "one element": tf.constant([True]),
    "two": tf.constant([True, False]),
    "none": tf.constant([], tf.bool),
    "a number": Z,
    "zero": tf.constant(0.0),
    "a text": tf.constant("a"),
    "1": 1,
    "array": np.array(False),
    "NumPy's": np.bool_(True),
    "variable": tf.Variable(False),
    "None": None,
    "empty list": [],
}


@pytest.mark.parametrize("name", PREDICATES)
def test_cond(name):
    pred = PREDICATES[name]

    def run():
        return [
            outcome(tf.cond, args, kwargs)
            for args, kwargs in (
                ((pred, x, y), {}),
                ((pred, y, nested), {"name": "given"}),
                ((), {"pred": pred, "true_fn": raises, "false_fn": x}),
                ((pred, x, raises), {}),
                ((pred, x), {}),
                ((pred, x, 3), {}),
                ((pred, None, x), {}),
                ((pred, tf.function(x), tf.function(x)), {}),
            )
        ]

    want, got = in_both(run)
    assert_same(got, want)


CASES = {
    "the first": ([(YES, x), (YES, y)], nested),
    "the second": ([(NO, x), (YES, y)], nested),
    "lists of lists": ([(NO, x), (NO, x), (YES, nested)], x),
    "neither": (((NO, x), (NO, y)), nested),
    "no default": ([(NO, x), (YES, y)], None),
    "none and no default": ([(NO, x)], None),
    "no pair": ([], x),
    "a dict": ({"a": x}, x),
    "lists for pairs": ([[YES, x]], x),
    "three in a pair": ([(YES, x, y)], x),
    "Python's": ([(True, x)], x),
    "a number": ([(Z, x)], x),
    "a number that no call reads": ([(YES, x), (Z, x)], x),
    "a vector": ([(tf.constant([True]), x)], x),
    "no function": ([(YES, 3)], x),
    "no function for a default": ([(YES, x)], 3),
    "an error": ([(YES, raises)], x),
}


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"exclusive": True}, {"name": "given"}])
@pytest.mark.parametrize("name", CASES)
def test_case(name, options):
    pairs, default = CASES[name]

    def run():
        return outcome(tf.case, (pairs,), {"default": default, **options})

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.int8, tf.uint8, tf.float32])
@pytest.mark.parametrize("index", [-1, 0, 1, 2, 5])
def test_switch_case(index, dtype):
    place = tf.cast(index, dtype)
    functions = [x, y, nested]

    def run():
        return [
            outcome(tf.switch_case, args, kwargs)
            for args, kwargs in (
                ((place, functions), {}),
                ((place, tuple(functions)), {"default": x}),
                ((place, dict(enumerate(functions))), {"default": x}),
                ((place, [(1, x), (0, y)]), {}),
                ((place, []), {"default": x}),
                ((place, [x, 3]), {}),
                ((place, [x]), {"default": 3}),
                ((place, [raises]), {"name": "given"}),
                ((index, functions), {}),
                ((place[None], functions), {}),
            )
        ]

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.parametrize(
    "call",
    [
        lambda fn: tf.cond(YES, fn, x),
        lambda fn: tf.case([(NO, x), (YES, fn)], x),
        lambda fn: tf.switch_case(tf.constant(1), [x, fn]),
    ],
    ids=["cond", "case", "switch_case"],
)
class TestBranch:
    """The branch that is taken is called once, with no other Python in between."""

    def test_is_called_once(self, call):
        calls = []

        def fails():
            calls.append(1)
            raise TypeError("raised in the branch")

        with fastops.accelerated():
            for _ in range(3):
                with pytest.raises(TypeError, match="raised in the branch"):
                    call(fails)
        assert len(calls) == 3

    def test_enters_no_python(self, call):
        def branch():
            return X

        with fastops.accelerated():
            for _ in range(3):
                call(branch)
            seen = frames(call, (branch,), {})
        assert [frame for frame in seen if not frame.endswith(("branch", "<lambda>"))] == []

    def test_may_stop_the_program(self, call):
        with fastops.accelerated(), pytest.raises(KeyboardInterrupt):
            call(stops)

    def test_is_seen_by_tapes(self, call):
        def run():
            with tf.GradientTape(persistent=True) as tape:
                tape.watch([X, Y])
                result = call(lambda: X * Y)
            return tape.gradient(result, [X, Y])

        want, got = in_both(run)
        assert_same(got, want)

    def test_is_traced_in_functions(self, call):
        def run():
            traced = tf.function(lambda: call(x)).get_concrete_function()
            return [node.op for node in traced.graph.as_graph_def().node], traced()

        want, got = in_both(run)
        assert_same(got, want)

    def test_runs_under_a_callback(self, call):
        """An op callback sees the ops of a condition, too."""
        heard = []

        def hear(op_type, *_, **__):
            heard.append(op_type)

        def run():
            heard.clear()
            op_callbacks.add_op_callback(hear)
            try:
                call(x)
            finally:
                op_callbacks.remove_op_callback(hear)
            return list(heard)

        want = run()
        with fastops.accelerated():
            assert run() == want


def test_a_condition_inside_of_a_replayed_function():
    """`tf.debugging.assert_near` branches on values while it is recorded."""

    def run():
        return [
            outcome(tf.debugging.assert_near, (X, X + delta), {"message": str(step)})
            for step, delta in enumerate([0.0, 0.0, 0.0, 1.0, 0.0, 1.0])
        ]

    want, got = in_both(run)
    assert_same(got, want)


def test_registered_dispatchers_are_called():
    class Mine(tf.experimental.ExtensionType):
        value: tf.Tensor

    with fastops.accelerated():

        @tf.experimental.dispatch_for_api(tf.cond, {"pred": Mine})
        def of_mine(pred, true_fn=None, false_fn=None, name=None):
            return "mine"

        try:
            assert tf.cond(Mine(YES), x, y) == "mine"
            assert_same(tf.cond(YES, x, y), X * 2.0)
        finally:
            tf.experimental.unregister_dispatch_for(of_mine)
