"""Replayed calls that a tape records as one record, and that walks expand if they have to.

Each program runs under TensorFlow and under `fastops.install`. The bytes must be the same,
whichever records the tape has.
"""

import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import assert_same, floats
from tensorflow.python.eager import backprop, imperative_grad

import fastops
from fastops._autodiff import walks

pytestmark = pytest.mark.usefixtures("fresh")

CALLS = 10
"""Calls of a program. After the first ones the model is replayed, and then the walk."""


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()
    walks.forget()


@pytest.fixture
def model():
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(8, activation="tanh"),
            layers.Dense(8, activation="silu"),
            layers.LayerNormalization(),
            layers.Dense(3),
        ]
    )
    for i, weight in enumerate(model.weights):
        weight.assign(floats(*weight.shape, seed=i))
    return model


def point(call):
    return tf.constant(floats(2, 4, seed=call))


def hold(program, *, whole=True, calls=CALLS):
    """Compare calls of a program, and check whether walks passed calls as one record.

    With `None` for `whole`, nothing is checked: calls of other functions may be recorded, too.

    Returns the numbers of calls that were passed as one record, and that were expanded.
    """
    wanted = [program(call) for call in range(calls)]
    fastops.install()
    walks.forget()
    before = walks.describe()
    for call, want in enumerate(wanted):
        assert_same(program(call), want)
    after = walks.describe()
    found = [after[name] - before[name] for name in ("calls", "expanded")]
    assert whole is None or (found[0] > 0) == whole, found
    return found


def slope(target_of, sources, **options):
    with tf.GradientTape(**options) as tape:
        target = target_of(tape)
    return tape.gradient(target, sources)


# ---------------------------------------------------------------------------------------------
# Terms from several places: the order of the sums
# ---------------------------------------------------------------------------------------------


def test_a_loss(model):
    weights = [weight.value for weight in model.trainable_weights]
    whole, expanded = hold(lambda call: slope(lambda _: tf.norm(model(point(call))), weights))
    assert whole >= CALLS - 6
    assert expanded <= 6


def test_a_penalty_and_a_second_call(model):
    weights = [weight.value for weight in model.trainable_weights]

    def loss(call):
        x = point(call)
        total = tf.norm(model(x)) + tf.norm(model(x * 0.5))
        for weight in weights:
            total += 1e-3 * tf.reduce_sum(weight * weight)
        return total

    whole, _ = hold(lambda call: slope(lambda _: loss(call), weights))
    assert whole >= 2


def test_the_input_is_used_elsewhere(model):
    def program(call):
        x = point(call)

        def target(tape):
            tape.watch(x)
            y = tf.sin(x)
            return tf.reduce_sum(model(y)) * tf.reduce_sum(y) + tf.reduce_sum(model(y + x))

        return slope(target, x)

    hold(program)


def test_the_output_is_used_twice(model):
    weights = [weight.value for weight in model.trainable_weights]

    def program(call):
        x = point(call)

        def target(_):
            y = model(x)
            return tf.reduce_sum(y * tf.tanh(y) + model(tf.concat([y, y[:, :1]], 1)))

        return slope(target, weights)

    hold(program)


def test_sources_that_are_results(model):
    def program(call):
        x = point(call)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)
            z = tf.reduce_sum(tf.exp(y))
        return tape.gradient(z, [y, x, z])

    hold(program)


# ---------------------------------------------------------------------------------------------
# What is watched
# ---------------------------------------------------------------------------------------------


def test_some_variables_are_watched(model):
    weights = [weight.value for weight in model.trainable_weights]

    def program(call, watched):
        def target(tape):
            for weight in watched:
                tape.watch(weight)
            return tf.norm(model(point(call)))

        return slope(target, weights, watch_accessed_variables=False)

    for watched in (weights[:1], weights[2:3], weights[-1:], weights):
        hold(lambda call, watched=watched: program(call, watched))


def test_nothing_is_watched(model):
    def program(call):
        def target(tape):
            y = model(point(call))
            tape.watch(y)
            return tf.norm(y)

        return slope(target, model.trainable_weights[0].value, watch_accessed_variables=False)

    hold(program, whole=None)


def test_the_input_is_watched_after_the_call(model):
    """Then the call, which has run before, has no gradient."""

    def program(call):
        x = point(call)

        def target(tape):
            y = model(x)
            tape.watch(x)
            return tf.norm(y) + tf.norm(model(x))

        return slope(target, [x, *(weight.value for weight in model.trainable_weights)])

    hold(program)


@pytest.mark.parametrize("accessed", [True, False])
def test_unconnected_sources(model, accessed):
    def program(call):
        x, other = point(call), point(call + 1)
        with tf.GradientTape(watch_accessed_variables=accessed) as tape:
            tape.watch([x, other])
            y = tf.norm(model(x))
        return tape.gradient(y, [other, x], unconnected_gradients="zero")

    hold(program, whole=False)


# ---------------------------------------------------------------------------------------------
# Walks that need the records of the ops
# ---------------------------------------------------------------------------------------------


def test_several_targets(model):
    weights = [weight.value for weight in model.trainable_weights]

    def program(call):
        with tf.GradientTape() as tape:
            y = model(point(call))
            targets = [y, tf.norm(y), tf.norm(model(point(call + 1)))]
        return tape.gradient(targets, weights)

    _, expanded = hold(program, whole=False)
    assert expanded > 0


def test_a_tape_around_the_walk(model):
    """A later tape watches what the first one has recorded."""

    def program(call):
        x, weight = point(call), model.trainable_weights[0].value
        with tf.GradientTape() as first:
            first.watch(x)
            y = model(x)
            z = tf.reduce_sum(y * y)
        with tf.GradientTape() as second:
            second.watch([y, x])
            slopes = first.gradient(z, weight)
        return second.gradient(slopes, [y, x])

    hold(program, whole=None)


def test_nested_tapes(model):
    def program(call):
        x = point(call)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.norm(model(x))
            found = inner.gradient(y, x)
        return outer.gradient(found, [x, model.trainable_weights[0].value])

    hold(program, whole=None)


def test_a_persistent_tape(model):
    def program(call):
        with tf.GradientTape(persistent=True) as tape:
            y = model(point(call))
        weight = model.trainable_weights[0].value
        return [tape.gradient(y, weight), tape.gradient(y[0], weight), tape.gradient(y, weight)]

    hold(program, whole=False)


def test_a_jacobian(model):
    def program(call):
        x = point(call)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)
        return tape.jacobian(y, x)

    hold(program, whole=False)


def test_functions_that_make_their_own_tapes(model):
    """They call TensorFlow's walk of the runtime, and no method of `tf.GradientTape`."""
    weight = model.trainable_weights[0].value

    def program(call):
        value_and_gradients = backprop.implicit_val_and_grad(lambda: tf.norm(model(point(call))))
        value, pairs = value_and_gradients()
        return [value, *(gradient for gradient, _ in pairs)], len(pairs), weight.shape

    before = walks.describe()["expanded"]
    hold(program, whole=False)
    assert walks.describe()["expanded"] > before


def test_a_walk_that_expands_nothing(model):
    """A caller who has kept TensorFlow's function of the runtime gets gradients, too."""
    weights = [weight.value for weight in model.trainable_weights]
    walk = imperative_grad.pywrap_tfe.TFE_Py_TapeGradient

    def program(call, direct):
        x = point(call)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)
            z = tf.reduce_sum(tf.tanh(y))
        sources = [x, *(weight.handle for weight in weights), weights[0].handle]
        if not direct:
            return tape.gradient(z, sources[:-1])
        return walk(tape._tape._tape, [z], sources, None, sources, "none")

    wanted = program(0, False)
    fastops.install()
    before = walks.describe()["expanded"]
    for _ in range(CALLS):
        *found, again = program(0, True)
        assert_same(again, found[1])
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    assert walks.describe()["expanded"] == before


def test_uninstalled_before_the_walk(model):
    weights = [weight.value for weight in model.trainable_weights]

    def program(call, then=lambda: None):
        with tf.GradientTape() as tape:
            y = tf.norm(model(point(call)))
        then()
        return tape.gradient(y, weights)

    want = program(0)
    fastops.install()
    for _ in range(CALLS):
        program(0)
    found = program(0, fastops.uninstall)
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_errors(model):
    fastops.install()
    for call in range(CALLS):
        with tf.GradientTape() as tape:
            y = tf.norm(model(point(call)))
        tape.gradient(y, model.trainable_weights[0].value)
        with pytest.raises(RuntimeError, match="can only be used"):
            tape.gradient(y, model.trainable_weights[0].value)


def test_a_failing_gradient_function(monkeypatch):
    """The error comes from the record of one op of the call."""
    fastops.install()
    layer = keras.layers.Dense(3, activation="softsign")
    x = point(0)
    layer(x)
    for _ in range(CALLS):
        slope(lambda _: layer(x), layer.trainable_weights[0].value)

    def fails(op, grad):
        raise ArithmeticError("no gradient today")

    from tensorflow.python.framework import ops

    monkeypatch.setitem(ops._gradient_registry._registry["Softsign"], "type", fails)
    for _ in range(3):
        with pytest.raises(ArithmeticError, match="no gradient today"):
            slope(lambda _: layer(x), layer.trainable_weights[0].value)


# ---------------------------------------------------------------------------------------------
# Memory and threads
# ---------------------------------------------------------------------------------------------


def test_a_result_that_is_dropped_takes_its_record_along(model):
    """As in TensorFlow, unless a record keeps its own result: then only the end of the tape helps.

    The record of a call keeps no result of an op that Python has not seen.
    """
    fastops.install()
    for call in range(CALLS):
        x = point(call)
        held = weakref.ref(x)
        with tf.GradientTape():
            y = model(x)
            del x
            assert held() is not None  # the gradient of the first product needs it
            del y
            last = held()
    assert last is None


def test_a_dropped_tape_leaves_nothing(model):
    fastops.install()
    for call in range(CALLS):
        x = point(call)
        held = weakref.ref(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)
        del x, tape
        assert held() is None
        del y


def test_one_of_several_results_is_dropped():
    """The record stays for the other result."""
    x = keras.Input((4,))
    middle = keras.layers.Dense(3, activation="tanh")(x)
    model = keras.Model(x, [middle, keras.layers.Dense(2)(middle)])
    for i, weight in enumerate(model.weights):
        weight.assign(floats(*weight.shape, seed=i))
    weights = [weight.value for weight in model.trainable_weights]

    def program(call, kept):
        with tf.GradientTape() as tape:
            result = model(point(call))[kept]
            total = tf.norm(result) + tf.norm(result * result)
        return tape.gradient(total, weights)

    for kept in range(2):
        hold(lambda call, kept=kept: program(call, kept))
        hold(lambda call, kept=kept: [*program(call, kept), *program(call, 1 - kept)])
        fastops.uninstall()


def test_a_dropped_result_before_an_expansion():
    x = keras.Input((4,))
    middle = keras.layers.Dense(3, activation="tanh")(x)
    model = keras.Model(x, [middle, keras.layers.Dense(2)(middle)])
    weights = [weight.value for weight in model.trainable_weights]

    def program(call):
        with tf.GradientTape() as tape:
            result = model(point(call))[0]
            totals = [tf.norm(result), tf.reduce_sum(result * result)]
        return tape.gradient(totals, weights)

    hold(program, whole=False)


def test_threads(model):
    weights = [weight.value for weight in model.trainable_weights]

    def program(call):
        return slope(lambda _: tf.norm(model(point(call))) + tf.norm(model(point(call))), weights)

    wanted = [program(call) for call in range(4)]
    fastops.install()
    failures = []

    def work():
        try:
            for call in range(40):
                assert_same(program(call % 4), wanted[call % 4])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_stats(model):
    fastops.install()
    fastops.reset_stats()
    for call in range(20):
        slope(lambda _, call=call: tf.norm(model(point(call))), model.trainable_weights[0].value)
    found = fastops.stats().kinds["GradientTape: replayed calls"]
    assert found.copied > 0
