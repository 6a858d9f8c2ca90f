"""Replayed calls in which Python reads values after assignments."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, probe, told
from keras import layers as L  # noqa: N812

import fastops
from fastops._core.reasons import text_of
from fastops._specialize.recording import recording

START = [1.0, 2.0, 3.0, 4.0]
X, Y = floats(2, 4), -floats(2, 4, seed=1)
STATE, MORE = tf.Variable(START), tf.Variable(START)


@pytest.fixture(autouse=True)
def start():
    reset()
    yield
    reset()


def reset():
    STATE.assign(START)
    MORE.assign(START)


def reads_the_variable(x):
    STATE.assign(STATE * 0.5 + tf.reduce_sum(x, axis=0))
    return x * 2.0 if tf.reduce_any(STATE < 0.0) else x + STATE


def reads_what_it_assigned(x):
    value = STATE * 0.5 + tf.reduce_sum(x, axis=0)
    STATE.assign(value)
    return x * 2.0 if tf.reduce_any(value < 0.0) else x + STATE


def assigns_an_argument(x):
    STATE.assign(x[0])
    return x * 2.0 if tf.reduce_all(STATE < 1.0) else x - STATE


def reads_twice(x):
    STATE.assign(STATE + x[0])
    first = tf.reduce_max(STATE) > 4.0
    y = x * 3.0 if first else x
    MORE.assign(MORE - STATE)
    if tf.reduce_any(MORE < -100.0):
        y += MORE
    MORE.assign_add(STATE)
    STATE.assign_sub(MORE * 0.125)
    return y + STATE


def assigns_twice(x):
    STATE.assign(STATE + x[0])
    STATE.assign(STATE * 0.5)
    return x * STATE if tf.reduce_any(STATE > 2.0) else x / STATE


def copies(x):
    STATE.assign(STATE + x[0])
    MORE.assign(STATE)
    STATE.assign(MORE * 0.5)
    return x * STATE if tf.reduce_any(MORE > 2.0) else x / MORE


def returns_what_it_read(x):
    value = STATE * 0.5 + x[0]
    STATE.assign(value)
    read = tf.convert_to_tensor(STATE)
    if tf.reduce_any(read > 3.0):
        return value, read
    return read, read


def reads_what_was_before(x):
    before = STATE * 1.0
    STATE.assign_add(x[0])
    return x * 2.0 if tf.reduce_any(before > 3.0) else x * STATE


DEFERRED = {
    function.__name__: function
    for function in (
        *(reads_the_variable, reads_what_it_assigned, assigns_an_argument, reads_twice),
        *(assigns_twice, copies, returns_what_it_read, reads_what_was_before),
    )
}


def reads_a_sum(x):
    STATE.assign_add(x[0])
    return x * 2.0 if tf.reduce_any(STATE > 3.0) else x


def reads_a_sum_of_another(x):
    MORE.assign_add(x[0])
    STATE.assign(MORE * 0.5)
    return x * 2.0 if tf.reduce_any(STATE > 3.0) else x


def draws(x):
    STATE.assign(STATE * 0.5 + tf.random.uniform([4]))
    return x * 2.0 if tf.reduce_any(STATE > 1.0) else x


REFUSED = {function.__name__: function for function in (reads_a_sum, reads_a_sum_of_another, draws)}


def calls(layer, inputs):
    for x in inputs:
        # The identities of the results, too: two names may stand for one tensor.
        result = layer(x)
        yield result
        yield [one is other for one in tf.nest.flatten(result) for other in tf.nest.flatten(result)]
        yield STATE, MORE


def program_of(function):
    def program():
        reset()
        layer = L.Lambda(function)
        probe(layer)
        yield from calls(layer, [X] * CALLS + [X * 0.5, Y, X, Y * 9.0] * CALLS)
        STATE.assign([float("nan"), -0.0, 1e38, 3.0])
        yield from calls(layer, [X, Y] * CALLS)

    return program


@pytest.mark.parametrize("name", DEFERRED)
def test_calls_are_replayed(name):
    compare(program_of(DEFERRED[name]), native=True)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compared_before_the_assignments_is_refused(name):
    compare(program_of(REFUSED[name]), replayed=False)
    with fastops.accelerated():
        layer = L.Lambda(REFUSED[name])
        for _ in range(3 * CALLS):
            layer(X)
        known = told(layer)
    assert text_of("read_after_effect") in known["reasons"], known


@pytest.mark.parametrize("name", DEFERRED)
def test_gradients_are_those_of_the_order_in_the_program(name):
    """What a tape records of a call is in its order: it is not replayed there."""

    def program():
        reset()
        layer = L.Lambda(DEFERRED[name])
        probe(layer)
        yield from calls(layer, [X] * 2 * CALLS)
        for x in [X, Y] * CALLS:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                loss = tf.reduce_sum(layer(x)[0] ** 2)
            yield tape.gradient(loss, x)
            yield tape.gradient(loss, [STATE, MORE])
            yield STATE, MORE
        yield from calls(layer, [X] * CALLS)

    compare(program)


def test_a_call_of_another_kind_assigns_once():
    """A replay whose value differs ends before the first assignment."""
    values = []

    def function(x):
        STATE.assign(STATE + x[0])
        return x * 2.0 if tf.reduce_any(STATE > 50.0) else x

    with fastops.accelerated():
        layer = L.Lambda(function)
        for _ in range(80):
            layer(tf.ones([2, 4]))
            values.append(STATE.numpy()[0])
        known = told(layer)
    assert values == [2.0 + number for number in range(80)]
    assert known["replayed"] > 60, known


def test_large_values_do_not_wait(monkeypatch):
    """All values that wait to be assigned would be in memory at once."""
    with fastops.accelerated():
        refused = L.Lambda(lambda x: reads_twice(x))
        monkeypatch.setattr(recording, "MAX_WAITING_BYTES", 31)  # two vectors of four floats
        for _ in range(3 * CALLS):
            refused(X)
        monkeypatch.undo()
        replayed = L.Lambda(lambda x: reads_twice(x))
        for _ in range(3 * CALLS):
            replayed(X)
        assert told(refused)["reasons"].get(text_of("assigns_large_values")), told(refused)
        assert told(replayed)["replayed"], told(replayed)


def test_an_error_comes_after_the_assignments():
    """An op that fails before a value that Python reads: the call assigns, then raises."""

    def function(x):
        STATE.assign(STATE + 1.0)
        rows = tf.gather(x[0], tf.cast(x[1], tf.int32))
        if tf.reduce_any(rows > 100.0):
            return rows
        return rows + STATE

    good = tf.constant([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0]])
    bad = tf.constant([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 9.0, 3.0]])

    def program():
        reset()
        layer = L.Lambda(function)
        probe(layer)
        for x in [good] * 2 * CALLS + [bad, good, bad]:
            try:
                yield layer(x)
            except (tf.errors.InvalidArgumentError, ValueError) as error:
                yield type(error).__name__
            yield STATE

    compare(program)


def test_steps_whose_divisors_get_zeros():
    """Keras divides rows by an accumulator in another way if it has a zero or NaN."""

    def program():
        optimizer = keras.optimizers.RMSprop(0.01)
        optimizer.epsilon = 0.0  # since Keras 3.16, the constructor refuses it
        variable = tf.Variable(floats(5, 2))
        probe(optimizer, "apply")
        for number in range(4 * CALLS):
            rows = [number % 5, (number + 1) % 5, (number + 2) % 5]
            values = floats(3, 2, seed=number)
            if number >= 2 * CALLS:
                rows, values = list(range(5)), floats(5, 2, seed=number)
            if number == 3 * CALLS:
                values = values * np.float32("nan")
            grad = tf.IndexedSlices(values, tf.constant(rows), tf.constant([5, 2]))
            optimizer.apply_gradients([(grad, variable)])
            yield variable
            yield optimizer.variables

    compare(program)
