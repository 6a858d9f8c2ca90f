"""Replays under tapes run as kernels alone, and tapes record each op."""

import gc

import keras
import pytest
import tensorflow as tf
from calls import find
from support import assert_same, floats
from tensorflow.python.eager.record import VariableWatcher

import fastops
from fastops._install.models.method import methods
from fastops._install.replay.replayed import Replayed

pytestmark = pytest.mark.usefixtures("fresh")

CALLS = 16
"""The number of calls. After half of them, replays know their kernels."""

X = tf.constant(floats(3, 4))
L = keras.layers


def natively():
    return sum(method.describe()["native"] for method in methods())


def compare(program, at_least=CALLS // 2):
    """Compare a program with and without `install`. Some calls must run as kernels alone."""
    want = program()
    with fastops.accelerated():
        gc.collect()  # free models of other tests
        before = natively()
        got = program()
        assert natively() >= before + at_least
    assert_same(got, want)


def dense(activation):
    return keras.Sequential([keras.Input((4,)), L.Dense(5, activation=activation), L.Dense(2)])


def two_outputs():
    inputs = keras.Input((4,))
    hidden = L.Dense(6, activation="relu")(inputs)
    return keras.Model(inputs, [L.Dense(2)(hidden), L.Dense(1)(hidden), hidden])


def shared():
    layer = L.Dense(4, activation="tanh")
    return keras.Sequential([keras.Input((4,)), layer, layer, layer])


def normalized():
    return keras.Sequential([keras.Input((4,)), L.Dense(4), L.BatchNormalization(), L.Dense(1)])


MODELS = {
    **{name: lambda name=name: dense(name) for name in ("relu", "tanh", "sigmoid", "softplus")},
    **{name: lambda name=name: dense(name) for name in ("elu", "gelu", "softmax", "selu")},
    "two outputs": two_outputs,
    "a layer thrice": shared,
    "moving averages": normalized,
}


def made(name):
    keras.utils.set_random_seed(3)
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name):
    def program():
        model = made(name)
        found = []
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                tape.watch(X)
                results = tf.nest.flatten(model(X, training=True))
                loss = tf.add_n([tf.reduce_sum(result * result) for result in results])
            watched = [variable.shape for variable in tape.watched_variables()]
            found += [loss, watched, *tape.gradient(loss, [X, *model.trainable_variables])]
        return [*found, *model.get_weights()]

    compare(program)


def test_many_calls_of_one_tape():
    """Gradients of a weight are added up in the order of the calls."""

    def program():
        model = made("two outputs")
        results = []
        for turn in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model.weights[0] ** 2)
                for i in range(CALLS):
                    logits, value, hidden = model(X * float(i + turn))
                    loss += tf.reduce_sum(logits) if i % 2 else tf.reduce_sum(value)
                    loss += tf.reduce_sum(tf.stop_gradient(hidden) * hidden)
            results += tape.gradient(loss, model.trainable_variables)
        return results

    compare(program)


def test_gradients_of_gradients():
    def program():
        model = made("tanh")
        results = []
        for _ in range(CALLS):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    inner.watch(X)
                    loss = tf.reduce_sum(model(X) ** 3)
                slopes = inner.gradient(loss, [X, *model.trainable_variables])
                total = tf.add_n([tf.reduce_sum(slope * slope) for slope in slopes])
            results += outer.gradient(total, model.trainable_variables)
        return results

    compare(program)


def test_persistent_tapes_and_unconnected_outputs():
    def program():
        model = made("two outputs")
        results = []
        for _ in range(CALLS):
            with tf.GradientTape(persistent=True) as tape:
                logits, value, hidden = model(X)
            sources = [variable.value for variable in model.trainable_variables]
            for target in (logits, value, hidden, [value, logits]):
                for how in ("none", "zero"):
                    results += tape.gradient(target, sources, None, how)
            results.append(tape.jacobian(value, hidden, experimental_use_pfor=False))
        return results

    compare(program)


def test_tapes_that_are_stopped_or_watch_nothing():
    def program():
        model = made("relu")
        results = []
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                with tape.stop_recording():
                    unseen = model(X)
                seen = model(X)
            results += tape.gradient([unseen, seen], model.trainable_variables)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(model.weights[0].value)
                seen = model(X)
            results += tape.gradient(seen, model.trainable_variables)
            results.append(len(tape.watched_variables()))
        return results

    compare(program)


def test_forward_accumulators_within_tapes():
    """Calls are not recorded while a forward accumulator is active."""

    def program():
        model = made("tanh")
        results = []
        for _ in range(CALLS):
            with tf.GradientTape():
                model(X)
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
                    result = model(X)
                pushed = accumulator.jvp(result)
            results += [pushed, *tape.gradient(pushed, model.trainable_variables)]
        return results

    compare(program, CALLS + CALLS // 2)


def test_tapes_watch_the_variables_of_replays():
    def program():
        model = made("relu")
        results = []
        for _ in range(CALLS):
            with tf.GradientTape(), VariableWatcher() as watcher:
                model(X)
            results.append([variable.shape for variable in watcher.watched_variables()])
        return results

    compare(program)


@pytest.fixture
def moments():
    """Yield a new stand-in for `tf.nn.moments`, whose kernels are known under tapes."""
    with fastops.accelerated():
        stand_in = find("tf.nn.moments")
        function = Replayed(stand_in.original, stand_in.passed, (), stand_in.settings)
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                tape.watch(X)
                function(X, [0])
        assert function.describe()["native"] >= CALLS // 2
        yield function


def test_calls_with_and_without_tapes(moments):
    for _ in range(CALLS):
        before = moments.describe()["native"]
        assert_same(moments(X, [0]), moments.original(X, [0]))
    assert moments.describe()["native"] == before + 1


@pytest.mark.parametrize("options", [{"path": "capi"}, {"path": "tensorflow"}, {"onednn": "off"}])
def test_settings_of_the_thread(moments, options):
    before = moments.describe()["native"]
    with fastops.options(**options), tf.GradientTape() as tape:
        tape.watch(X)
        _, variance = moments(X, [0])
    assert moments.describe()["native"] == before
    with tf.GradientTape() as again:
        again.watch(X)
        _, want = moments.original(X, [0])
    assert_same(tape.gradient(variance, X), again.gradient(want, X))


def test_ops_are_counted_and_profiled(moments):
    fastops.reset_stats()
    with tf.GradientTape() as tape:
        tape.watch(X)
        moments(X, [0])
    counted = {name: counts.direct for name, counts in fastops.stats().ops.items()}
    before = moments.describe()["native"]
    with tf.GradientTape() as tape, fastops.profile() as profile:
        tape.watch(X)
        moments(X, [0])
    assert {name: counts.calls for name, counts in profile.ops.items()} == counted
    assert moments.describe()["native"] == before


def test_ops_without_a_gradient_under_an_accumulator():
    """The op has no gradient, and the error is the one of TensorFlow's own call."""
    image = tf.constant(floats(2, 2, 3))

    def shifted(x):
        return tf.raw_ops.AdjustHue(images=x, delta=0.1) + 1.0

    with fastops.accelerated():
        function = Replayed(shifted, find("tf.roll").passed)
        for _ in range(CALLS):
            with tf.GradientTape():
                function(image)
        assert function.describe()["native"] >= CALLS // 2
        errors = []
        for one in (function, shifted):
            with tf.autodiff.ForwardAccumulator(image, image), pytest.raises(LookupError) as caught:
                one(image)
            errors.append(str(caught.value))
    assert errors[0] == errors[1]
