"""Updates of variables under the default distribution strategy."""

import functools

import pytest
import tensorflow as tf
from calls import frames, in_both, outcome
from support import Failure
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.framework import ops

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

LAYERS = ["helpers"]


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()


def shown(value):
    if isinstance(value, Failure):
        return value.kind, value.message
    if isinstance(value, (list, tuple)):
        return type(value), [shown(item) for item in value]
    return value.numpy().tolist() if isinstance(value, (tf.Tensor, tf.Variable)) else value


def state():
    """Return the state that an update changes while it runs."""
    stack = ops.get_default_graph()._variable_creator_stack
    return (
        [priority for priority, _ in stack],
        ag_ctx.control_status_ctx().status,
        len(ag_ctx._control_ctx()),
        shown(distribute_lib.get_update_replica_id()),
        tf.distribute.has_strategy(),
        tf.distribute.in_cross_replica_context(),
    )


class Callable:
    def __call__(self, variable, *args, **kwargs):
        return shown(variable), args, kwargs, state()

    def method(self, variable, *args, **kwargs):
        return shown(variable), args, kwargs, state()


def plain(variable, *args, **kwargs):
    return shown(variable), args, kwargs, state()


@functools.wraps(plain)
def wrapped(*args, **kwargs):
    return plain(*args, **kwargs)


def attributed(variable):
    return shown(variable), state()


attributed.attribute = 5


def make(variable):
    """Make a variable in the scope of a strategy."""
    made = tf.Variable(variable + 1.0)
    return made.numpy(), made._distribute_strategy is None, state()


def failing(variable):
    raise ValueError(state())


def leaving(variable):
    ops.get_default_graph()._variable_creator_stack = []


def assign(variable, by=1.0):
    return variable.assign_add(by)


def nested(variable):
    inner = tf.distribute.get_strategy().extended.update(variable, plain, args=(2,))
    return inner, state()


FUNCTIONS = (plain, wrapped, attributed, make, failing, assign, nested, Callable(), tf.identity)
FUNCTIONS += (Callable().method, lambda variable: None, lambda variable: [variable, (1,)], None)
FUNCTIONS += (tf.autograph.experimental.do_not_convert(plain), leaving)
OPTIONS = (
    *({}, {"args": (1,)}, {"args": [1, 2]}, {"kwargs": {"a": 1}}, {"kwargs": {}}, {"kwargs": None}),
    *({"group": False}, {"args": (1,), "kwargs": {"b": 2}, "group": False}, {"group": 1}),
    *({"args": None}, {"args": "xy"}, {"odd": 1}, {"kwargs": [("a", 1)]}, {"kwargs": {1: 2}}),
)


def described(function, variable, options):
    extended = tf.distribute.get_strategy().extended
    result = shown(outcome(extended.update, (variable, function), options))
    left = state()
    ops.get_default_graph()._variable_creator_stack = []
    return result, left, variable.numpy()


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_updates(number):
    def run():
        variable = tf.Variable(3.0)
        return [described(FUNCTIONS[number], variable, options) for options in OPTIONS]

    want, got = in_both(run, only=LAYERS)
    assert want == got


def scopes():
    """Enter scopes that affect an update."""
    yield tf.variable_creator_scope(lambda creator, **kwargs: creator(**kwargs))
    yield ag_ctx.ControlStatusCtx(ag_ctx.Status.DISABLED)
    yield ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)
    yield ag_ctx.ControlStatusCtx(ag_ctx.Status.UNSPECIFIED)
    yield distribute_lib.UpdateContext(7)
    yield tf.init_scope()
    yield tf.distribute.OneDeviceStrategy("/cpu:0").scope()
    yield tf.GradientTape()


def test_updates_within_scopes():
    def run():
        seen, before = [], state()
        for scope in scopes():
            with scope:
                variable = tf.Variable(3.0)
                extended = tf.distribute.get_strategy().extended
                for function in (plain, make, failing):
                    seen.append(
                        (shown(outcome(extended.update, (variable, function), {})), state())
                    )
            assert state() == before
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_updates_in_functions():
    variable = tf.Variable(3.0)
    extended = tf.distribute.get_strategy().extended

    def run():
        @tf.function
        def step(by):
            if by > 0:
                return extended.update(variable, assign, args=(by,))
            return variable.assign(0.0)

        variable.assign(3.0)
        return [step(tf.constant(by)).numpy() for by in (1.0, -1.0, 2.0)]

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_updates_enter_no_python():
    variable = tf.Variable(3.0)
    extended = tf.distribute.get_strategy().extended
    extended.update(variable, assign)
    theirs = {"update", "tf_convert", "scope", "_update", "_update_non_slot"}
    with fastops.accelerated(only=LAYERS):
        entered = set(frames(lambda: extended.update(variable, lambda v: None), (), {}))
    assert not entered & theirs
    assert theirs <= set(frames(lambda: extended.update(variable, lambda v: None), (), {}))


def test_a_patched_method_is_called(monkeypatch):
    extended = tf.distribute.get_strategy().extended
    with fastops.accelerated(only=LAYERS):
        monkeypatch.setattr(type(extended), "_update", lambda self, *args: "mock")
        assert extended.update(tf.Variable(1.0), assign) == "mock"
