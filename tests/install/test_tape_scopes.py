"""Entering and leaving a `tf.GradientTape`, and what is left of it after `gradient`."""

import threading

import pytest
import tensorflow as tf
from calls import frames, outcome
from support import assert_same, floats
from tensorflow.python.eager import backprop

import fastops

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant(floats(3))
VARIABLE = tf.Variable(floats(3, seed=1))


class Mine(tf.GradientTape):
    """A tape of a user."""

    entered = 0

    def __enter__(self):
        self.entered += 1
        return super().__enter__()


def state(tape):
    """Return the attributes of a tape, as values that can be compared."""
    held = dict(vars(tape))
    held["_tape"] = type(held["_tape"]).__name__
    held["_watched_variables"] = [v is VARIABLE for v in tape._watched_variables]
    return [[name, held[name]] for name in held]


def once(**options):
    with tf.GradientTape(**options) as tape:
        inside = state(tape)
        y = X * VARIABLE
    left = state(tape)
    return inside, left, tape.gradient(y, VARIABLE), state(tape)


def watched_variables():
    with tf.GradientTape() as tape:
        y = X * VARIABLE
        inside = [v is VARIABLE for v in tape.watched_variables()]
    tape.gradient(y, VARIABLE)
    return inside, [v is VARIABLE for v in tape.watched_variables()]


def entered_twice():
    tape = tf.GradientTape()
    with tape:
        failure = outcome(tape.__enter__, (), {})
        y = X * VARIABLE
    return failure, state(tape), tape.gradient(y, VARIABLE)


def entered_again():
    tape = tf.GradientTape(persistent=True)
    with tape:
        y = X * VARIABLE
    with tape:
        z = y * VARIABLE
    return tape.gradient(z, VARIABLE), tape.gradient(y, VARIABLE), state(tape)


def left_twice():
    tape = tf.GradientTape()
    tape.__enter__()
    results = [tape.__exit__(None, None, None), tape.__exit__(None, None, None)]
    return results, state(tape)


def left_by_an_error():
    tape = tf.GradientTape()

    def failing():
        with tape:
            X * VARIABLE
            raise ValueError("inside")

    failure = outcome(failing, (), {})
    return failure, state(tape), (X * VARIABLE).shape.as_list()


def stopped():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = X * X
        with tape.stop_recording():
            inside = state(tape)
            z = X * 3.0
        w = y * z
    return inside, tape.gradient(w, X)


def reset():
    with tf.GradientTape() as tape:
        tape.watch(X)
        X * X
        tape.reset()
        tape.watch(X)
        y = X * 2.0
    return tape.gradient(y, X), state(tape)


def nested():
    with tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape() as inner:
            inner.watch(X)
            y = tf.sin(X) * X
        slope = inner.gradient(y, X)
    return outer.gradient(slope, X)


def left_in_another_order():
    one, other = tf.GradientTape(), tf.GradientTape()
    one.__enter__()
    other.__enter__()
    one.watch(X)
    other.watch(X)
    y = X * X
    one.__exit__(None, None, None)
    z = y * X
    other.__exit__(None, None, None)
    return one.gradient(y, X), other.gradient(z, X)


def gradient_while_recording():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = X * X
        slope = tape.gradient(y, X)
        return slope, state(tape)


def of_a_user():
    with Mine() as tape:
        tape.watch(X)
        y = X * X
    return tape.entered, tape.gradient(y, X)


def wrong_calls():
    tape = tf.GradientTape()
    calls = [(tape.__enter__, (1,)), (tape.__exit__, ()), (tf.GradientTape.__enter__, ())]
    return [outcome(function, given, {}).kind for function, given in calls], state(tape)


RUNS = {
    "plain": once,
    "persistent": lambda: once(persistent=True),
    "not watching": lambda: once(watch_accessed_variables=False),
    "other truth values": lambda: once(persistent=1, watch_accessed_variables=0),
    **{
        run.__name__: run
        for run in (
            *(watched_variables, entered_twice, entered_again, left_twice, left_by_an_error),
            *(stopped, reset, nested, left_in_another_order, gradient_while_recording),
            *(of_a_user, wrong_calls),
        )
    },
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("verify", [None, "raise"])
def test_states_and_gradients(run, verify):
    want = run()
    with fastops.accelerated(verify=verify):
        for _ in range(4):
            got = run()
            if verify is None:
                assert_same(got, want)


def test_scopes_enter_no_python():
    def scope():
        with tf.GradientTape():
            pass

    with fastops.accelerated():
        assert frames(scope, (), {}) == ["__init__"]


def test_a_patched_method_is_called(monkeypatch):
    calls, push = [], backprop.GradientTape._push_tape

    def patched(self):
        calls.append(self)
        push(self)

    with fastops.accelerated():
        monkeypatch.setattr(backprop.GradientTape, "_push_tape", patched)
        with tf.GradientTape() as tape:
            pass
    assert calls == [tape]


def test_tapes_belong_to_threads():
    """A tape of one thread does not record what others run."""
    slopes = []

    def work(number):
        for _ in range(50):
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = X * float(number)
            slopes.append((number, tape.gradient(y, X).numpy().tolist()))

    with fastops.accelerated():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(slopes) == 200
    assert all(slope == [float(number)] * 3 for number, slope in slopes)
