"""When `install` makes a plan, tested with counted calls and a fake clock."""

import itertools

import pytest
import tensorflow as tf
from support import assert_same, floats

import fastops
from fastops._core.reasons import text_of
from fastops._plans import costs
from fastops._specialize import policy

X = tf.constant(floats(3))
CALL = 1000
"""The nanoseconds of a call by the fake clock, which advances whenever it is read."""

FIRST = text_of("signature_new")
EARLY = text_of("plan_not_due")


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    clock = itertools.count(0, CALL)
    policy.set_clock(lambda: next(clock))
    for estimate, per_unit in ((costs.MAKING, 1.0), (costs.BINDING, 1.0), (costs.SAVING, CALL)):
        monkeypatch.setattr(estimate, "per_unit", per_unit)
    fastops.install(only=["traced"])
    yield
    fastops.uninstall()
    policy.set_clock(None)


def set_bar(calls, nodes):
    """Set the bar so that a plan of so many nodes is made after that many calls and the first."""
    policy.set_share(calls * CALL / (nodes + costs.AROUND_PLAN))


def nodes_of(function, *args):
    return costs.num_nodes(function.get_concrete_function(*args).graph)


def calls_until_plan(function, *args, most=60):
    """Return how many calls of a signature run in TensorFlow before there is a plan."""
    want = function.python_function(*args)
    for count in range(most):
        caller = getattr(function, "_fastops_caller", None)
        before = caller.planned if caller is not None else 0
        assert_same(function(*args), want)
        if function._fastops_caller.planned > before:
            return count
    return None


def doubled(x):
    return x * 2.0


@pytest.mark.quick
@pytest.mark.parametrize("calls", [1, 5, 20])
def test_a_plan_is_made_when_calls_have_cost_a_share_of_its_estimate(calls):
    function = tf.function(doubled)
    set_bar(calls, nodes_of(function, X))
    assert calls_until_plan(function, X) == calls + 1  # the first call traces, and does not count
    assert function._fastops_caller.reasons == {FIRST: 1, EARLY: calls}


def test_a_larger_graph_waits_longer():
    def long(x):
        for _ in range(100):
            x = tf.tanh(x)
        return x

    short, function = tf.function(doubled), tf.function(long)
    few, many = nodes_of(short, X), nodes_of(function, X)
    set_bar(2, few)
    expected = 2 * (many + costs.AROUND_PLAN) / (few + costs.AROUND_PLAN)
    calls = calls_until_plan(function, X)
    assert expected <= calls - 1 < expected + 1


def test_a_call_that_is_half_kernels_waits_four_times_as_long():
    function = tf.function(doubled)
    nodes = nodes_of(function, X)
    costs.SAVING.per_unit = CALL / 2 / (nodes + costs.AROUND_CALL)
    set_bar(5, nodes)
    assert calls_until_plan(function, X) == 5 * 4 + 1


def test_loops_wait_no_longer_than_calls_that_are_half_kernels():
    """How often the nodes of a loop run is unknown, so their number says little about the share."""

    def function(x):
        return tf.while_loop(lambda i, y: i < 50, lambda i, y: (i + 1, tf.tanh(y)), [0, x])[1]

    looping = tf.function(function)
    nodes = nodes_of(looping, X)
    costs.SAVING.per_unit = CALL / 20 / (nodes + costs.AROUND_CALL)
    set_bar(5, nodes)
    assert calls_until_plan(looping, X) == 5 * 4 + 1


def test_each_shape_has_its_own_account():
    function = tf.function(doubled)
    set_bar(10, nodes_of(function, X))
    for length in range(1, 5):
        for _ in range(8):
            function(tf.ones([length]))
    assert function._fastops_caller.known_cases() == []
    assert function.experimental_get_tracing_count() == 4


def test_signatures_of_one_trace_share_an_account():
    function = tf.function(doubled, input_signature=[tf.TensorSpec([None])])
    set_bar(10, nodes_of(function))
    for length in range(1, 12):
        assert_same(function(tf.ones([length])), tf.ones([length]) * 2.0)
    (case,) = function._fastops_caller.known_cases()
    assert case.runner.plan is not None
    for _ in range(2):  # arguments of another shape only have to be bound
        policy.set_share(0.5)
        function(tf.ones([20]))
    assert len(function._fastops_caller.known_cases()) == 2
    assert function._fastops_caller.planned == 0
    function(tf.ones([20]))
    assert function._fastops_caller.planned == 1


def test_functions_that_cannot_be_planned_are_tried_less_and_less_often():
    def written(x):
        with tf.control_dependencies([tf.random.uniform([], seed=1)]):
            return tf.identity(x)

    function = tf.function(written)
    set_bar(4, nodes_of(function, X))
    cases = []
    for length in (1, 2, 5):
        for count in itertools.count(1):
            function(tf.ones([length]))
            if len(function._fastops_caller.known_cases()) > len(cases):
                cases.append(count)
                break
        costs.MAKING.per_unit = 1.0
    assert cases == [5, 9, 17]


def test_a_requested_plan_is_made_at_once():
    policy.set_share(1e9)
    function = fastops.function(doubled)
    for _ in range(3):
        assert_same(function(X), X * 2.0)
    assert (function.planned, function.reasons) == (2, {FIRST: 1})


def test_the_first_call_makes_no_plan():
    policy.set_share(0)
    function = tf.function(doubled)
    function(X)
    assert function._fastops_caller.known_cases() == []
    function(X)
    assert len(function._fastops_caller.known_cases()) == 1


def test_dropped_plans_need_a_full_account_again():
    function = tf.function(doubled)
    set_bar(5, nodes_of(function, X))
    assert calls_until_plan(function, X) == 6
    function._fastops_caller.reset()
    costs.MAKING.per_unit = 1.0
    assert calls_until_plan(function, X) == 6


def test_estimates_follow_measurements():
    function = tf.function(doubled)
    set_bar(3, nodes_of(function, X))
    costs.MAKING.per_unit = before = 2.0
    assert calls_until_plan(function, X) is not None
    assert costs.MAKING.per_unit > before, "by this clock, planning took as long as a call"


def test_nodes_of_called_functions_count():
    @tf.function
    def inner(x):
        return tf.tanh(x) + 1.0

    def outer(x):
        return inner(x) * 2.0

    alone, around = nodes_of(inner, X), nodes_of(tf.function(outer), X)
    assert around > alone
    assert costs.largest([]) == costs.UNKNOWN
    assert costs.largest([object()]) == costs.UNKNOWN
