"""Cases of traced functions: what is known about the calls of each signature, and the state."""

import pytest
import tensorflow as tf
from support import assert_same

import fastops
from fastops._specialize import policy

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant([1.0, 2.0])


@pytest.fixture(autouse=True)
def installed():
    with fastops.accelerated(functions=True):
        yield


@pytest.fixture
def share():
    """Return a function that sets the share of the expected cost that calls must have cost."""
    before = policy.share()
    yield policy.set_share
    policy.set_share(before)


def doubled(x):
    return x * 2.0


def unplanned(x):
    with tf.control_dependencies([tf.random.uniform([], seed=1)]):
        return tf.identity(x)


def described(function):
    return {row["arguments"]: row["state"] for row in function._fastops_caller.describe()}


def taped(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = function(x)
    return result, tape.gradient(result, x)


@pytest.mark.parametrize(("python", "last"), [(doubled, "active"), (unplanned, "refused")])
def test_states(python, last, share):
    function = tf.function(python)
    share(1e18)
    function(X)
    ((arguments, state),) = described(function).items()
    assert "float32[2]" in arguments
    assert state == "waiting"
    (row,) = function._fastops_caller.describe()
    assert (row["executor"], row["reason"]) == ("tensorflow", "a plan would not pay yet")
    assert function._fastops_caller.known_cases() == []
    share(0)
    function(X)
    ((arguments, state),) = described(function).items()
    assert arguments == str(function.get_concrete_function(X).function_type)
    assert state == last


def test_calls_in_tapes_and_others_have_one_case(share):
    """Binding the arguments for a tape makes no plan."""
    function = tf.function(doubled)
    share(0)
    for _ in range(3):
        for got, want in zip(taped(function, X), (X * 2.0, [2.0, 2.0]), strict=True):
            assert_same(got, tf.constant(want))
    assert [*described(function).values()] == ["recorded"]
    (row,) = function._fastops_caller.describe()
    assert row["reason"] == "a tape or an accumulator records"
    function(X)
    function(X)
    assert [*described(function).values()] == ["active"]
    planned = function._fastops_caller.planned
    assert_same(function(X), X * 2.0)
    taped(function, X)
    assert function._fastops_caller.planned == planned + 1


def test_new_signatures_do_not_replace_plans(share):
    """If there are too many signatures, those without a plan are dropped first."""
    function = tf.function(doubled, input_signature=[tf.TensorSpec([None])])
    share(0)
    function(X)
    function(X)
    share(1e18)
    for length in range(3, policy.MAX_FUNCTION_SIGNATURES + 10):
        function(tf.ones([length]))
    states = [*described(function).values()]
    assert len(states) == policy.MAX_FUNCTION_SIGNATURES
    assert states.count("active") == 1
    planned = function._fastops_caller.planned
    assert_same(function(X), X * 2.0)
    assert function._fastops_caller.planned == planned + 1
