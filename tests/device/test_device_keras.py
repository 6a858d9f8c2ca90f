"""Keras's models under `install` with a device that comes before the host: replays run on it.

A replay gives the device the same work as Keras's own Python code, with no more copies.
"""

import threading

import keras
import numpy as np
import tensorflow as tf
from apart import within
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from plugged import FIRST_DEVICE, SECOND_DEVICE, here, places, there
from support import assert_same, assert_same_bits, floats
from tensorflow.python.eager import context

import fastops
from fastops._install.keras.batches import Batches
from fastops._install.models.method import methods

LAYER, APPLY = "Layer.__call__", "BaseOptimizer.apply"
SCOPE = "a device scope is open"


def perceptron(kind="sequential", seed=0):
    layers = [keras.layers.Dense(6, "relu"), keras.layers.Dense(5, "tanh"), keras.layers.Dense(2)]
    if kind == "sequential":
        model = keras.Sequential([keras.Input([3]), *layers])
    else:
        given = value = keras.Input([3])
        for layer in layers:
            value = layer(value)
        model = keras.Model(given, value)
    with_weights(model, seed)
    return model


def with_weights(model, seed=0):
    for i, weight in enumerate(model.weights):
        weight.assign(floats(*weight.shape, seed=seed + i))


def native_runs(subject):
    """Return how many replays of an object ran only kernels."""
    return sum(method.describe(subject)["native"] for method in methods())


def replayed(device, call, calls=8, name=LAYER):
    """Compare calls under `install` with Keras's own: bits, devices, kernels, and copies.

    All calls except for the first few must be replays. Returns the result of the call.
    """
    call()
    want, expected = device.work_of(call)
    with fastops.accelerated():
        for _ in range(4):  # these calls are recorded and tried on copies
            assert_same(call(), want)
        fastops.reset_stats()
        for _ in range(calls):
            got, work = device.work_of(call)
            assert_same(got, want)
            assert places(got) == places(want)
            assert work == expected, f"{work}, not {expected}"
        seen = fastops.stats().methods[name]
    assert (seen.replayed, seen.keras) == (calls, 0), seen
    return got


def left_to_keras(call, calls=8, name=LAYER):
    """Compare calls that must not be replayed with Keras's own; return the reasons."""
    want = call()
    with fastops.accelerated():
        fastops.reset_stats()
        for _ in range(calls):
            got = call()
            assert_same(got, want)
            assert places(got) == places(want)
        seen = fastops.stats().methods[name]
    assert seen.replayed == 0, seen
    return {fastops.REASONS[reason] for reason in seen.reasons}


@within("plugged_in")
def test_models(device):
    for kind in ("sequential", "functional"):
        model = perceptron(kind)
        for number in (1, 16):
            (x,) = there(floats(number, 3))
            got = replayed(device, lambda x=x, model=model: model(x))
            assert got.device.endswith(FIRST_DEVICE)
        assert native_runs(model) > 8


@within("pooled")
def test_models_with_a_pool(device):
    model = perceptron()
    (x,) = there(floats(4, 3))
    replayed(device, lambda: model(x))
    assert native_runs(model) > 4


@within("plugged_in")
def test_changes_between_two_calls(device):
    """Changes of weights, of trainability, and of the argument's device are seen."""
    model, other = perceptron(), perceptron(seed=7)
    (x,), (y,), (z,) = there(floats(2, 3)), here(floats(2, 3)), there(floats(2, 3), number=1)

    def change(i):
        if i == 1:
            model.layers[0].kernel.assign(floats(3, 6, seed=3))
        elif i == 2:
            model.set_weights(other.get_weights())
        elif i == 3:
            model.layers[1].trainable = False
        elif i == 4:
            with_weights(model, 11)

    def run():
        with_weights(model)
        model.layers[1].trainable = True
        answers = []
        for i in range(5):
            change(i)
            answers += [model(inputs) for inputs in (x, y, z, x, x)]
        return answers

    want = run()
    with fastops.accelerated():
        for _ in range(4):
            fastops.reset_stats()
            got = run()
            assert_same(got, want)
            assert places(got) == places(want)
        assert fastops.stats().methods[LAYER].replayed > 10


@within("plugged_in")
def test_models_on_the_second_device(device):
    """Ops run on the device of the variables, and so do replays."""
    with tf.device(SECOND_DEVICE):
        model = perceptron()
    (x,) = there(floats(2, 3), number=1)
    want = model(x)
    with fastops.accelerated():
        for _ in range(8):
            got = model(x)
            assert_same(got, want)
            assert places(got) == places(want)
        assert fastops.stats().methods[LAYER].replayed > 0


@within("plugged_in")
def test_device_scopes(device):
    """In a device scope Keras's own code runs; recordings from outside are not used."""
    model = perceptron()
    (x,) = there(floats(2, 3))
    replayed(device, lambda: model(x))

    def scoped(scope):
        with tf.device(scope):
            return model(x)

    for scope in ("CPU:0", FIRST_DEVICE, SECOND_DEVICE):
        assert SCOPE in left_to_keras(lambda scope=scope: scoped(scope))
    replayed(device, lambda: model(x))


class Scoped(keras.layers.Layer):
    def call(self, x):
        with tf.device("CPU:0"):
            y = x * 2.0
        return y + 1.0


class Deciding(keras.layers.Layer):
    def call(self, x):
        return x * 2.0 if float(tf.reduce_sum(x)) > 0.0 else x * 3.0


class Counting(keras.layers.Layer):
    def call(self, x):
        return x * 2.0, tf.constant([1, 2])


@within("plugged_in")
def test_layers_that_only_keras_can_call(device):
    (x,), (y,) = there(floats(3)), there(-np.abs(floats(3)))
    for kind, reason in (
        (Scoped, "an op runs in a device scope, and the process has several devices"),
        (Deciding, "Python reads the value of a tensor on a device other than the host"),
        (Counting, "the call returns a constant, whose device cannot be reproduced"),
    ):
        layer = fastops.keras.replay(kind())
        reasons = left_to_keras(lambda layer=layer: (layer(x), layer(y)))
        assert reason in reasons, reasons


@within("plugged_in")
def test_steps_of_training(device):
    """Gradients, weights and optimizer states are the same in each step."""
    for make in (
        lambda: keras.optimizers.SGD(0.1),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        lambda: keras.optimizers.Adam(0.01, clipnorm=1.0),
        lambda: keras.optimizers.RMSprop(0.01),
        lambda: keras.optimizers.AdamW(0.01),
    ):
        check_training(make)


def check_training(make):
    x, y = there(floats(8, 3), floats(8, 2))

    def train():
        model, optimizer, loss = perceptron(), make(), keras.losses.MeanSquaredError()
        losses = []
        for _ in range(10):
            with tf.GradientTape() as tape:
                error = loss(y, model(x))
            gradients = tape.gradient(error, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            losses.append(error)
        held = [variable.numpy() for variable in optimizer.variables]
        where = [variable.value.device for variable in optimizer.variables]
        return losses, gradients, model.get_weights(), held, where

    want = train()
    with fastops.accelerated():
        assert_same(train(), want)
        seen = fastops.stats().methods
    assert seen[LAYER].replayed >= 5
    assert seen[APPLY].replayed >= 5
    assert all(place.endswith(FIRST_DEVICE) for place in want[-1])


@within("plugged_in")
def test_batches_of_arrays(device):
    """Arrays are cut on the host, as in Keras's pipeline, for eager loops and for graphs."""
    x, y = floats(10, 3), np.arange(10)
    take = tf.function(lambda iterator: iterator.get_next())

    def batches(shuffle, begin=0):
        tf.random.set_seed(5)
        adapter = ArrayDataAdapter(x, y, batch_size=4, shuffle=shuffle)
        data = adapter.get_tf_dataset()
        ours.append(isinstance(data, Batches))
        iterator = iter(data)
        return [*data, *[next(iterator) for _ in range(begin)], *[take(iterator) for _ in range(2)]]

    cases = [(shuffle, begin) for shuffle in (False, True) for begin in (0, 1)]
    ours = []
    wants = [batches(*case) for case in cases]
    assert places(wants[0][0])[0][0].endswith("CPU:0"), places(wants)
    with fastops.accelerated(models=True):
        for _ in range(2):
            ours.clear()
            for case, want in zip(cases, wants, strict=True):
                got = batches(*case)
                assert_same(got, want)
                assert places(got) == places(want)
        assert ours == [True] * 4, ours
    tf.random.set_seed(None)


@within("plugged_in")
def test_loops_of_keras(device):
    """`fit` with arrays, eager and compiled, shuffled with a seed, gives the same weights."""
    x, y = floats(10, 3), floats(10, 2, seed=1)

    def program(eagerly):
        keras.utils.set_random_seed(1)
        model = perceptron()
        model.compile("adam", "mse", metrics=["mae"], run_eagerly=eagerly, jit_compile=False)
        history = model.fit(x, y, 4, epochs=3, verbose=0).history
        tested = model.evaluate(x, y, batch_size=4, verbose=0)
        return history, tested, model.predict(x, batch_size=4, verbose=0), model.get_weights()

    for eagerly in (True, False):
        want = program(eagerly)
        with fastops.accelerated(models=True, functions=not eagerly):
            for _ in range(2):
                assert_same(program(eagerly), want)
    tf.random.set_seed(None)


@within("plugged_in")
def test_gradients_of_gradients(device):
    model = perceptron()
    (x,) = there(floats(4, 3))

    def second():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                value = tf.reduce_sum(tf.tanh(model(x)))
            first = inner.gradient(value, x)
        return first, outer.gradient(first, [x, *model.trainable_variables])

    want = second()
    with fastops.accelerated():
        for _ in range(8):
            assert_same(second(), want)
        assert fastops.stats().methods[LAYER].replayed >= 4


@within("plugged_in")
def test_dropout_draws_the_same_numbers(device):
    (x,) = there(floats(4, 3))

    def draws():
        model = keras.Sequential([keras.Input([3]), keras.layers.Dropout(0.5, seed=3)])
        return [model(x, training=True) for _ in range(8)]

    want = draws()
    with fastops.accelerated():
        assert_same(draws(), want)


@within("plugged_in")
def test_public_functions(device):
    """TensorFlow's own functions are replayed, without a tape and on a tape."""
    (x,) = there(floats(4, 3))

    def moments():
        with tf.GradientTape() as tape:
            tape.watch(x)
            mean, variance = tf.nn.moments(x, [0])
            value = tf.reduce_sum(tf.math.xlogy(variance + 1.0, tf.abs(mean) + 1.0))
        return mean, variance, value, tape.gradient(value, x), tf.linalg.normalize(x, axis=1)

    want = moments()
    with fastops.accelerated():
        for _ in range(8):
            got = moments()
            assert_same(got, want)
            assert places(got) == places(want)


@within("plugged_in")
def test_replays_do_not_wait_for_the_device(device):
    """A replay gives its work to the device and returns without waiting for the results."""
    model = perceptron()
    (x,) = there(floats(2, 3))
    want = replayed(device, lambda: model(x)).numpy()
    with fastops.accelerated():
        for _ in range(4):
            model(x)
        before = native_runs(model)
        with device.held():
            got = [model(x) for _ in range(3)]
        assert native_runs(model) == before + 3
    for value in got:
        assert_same_bits(value.numpy(), want)


@within("plugged_in")
def test_memory_is_released(device):
    """Memory of models, and of arguments that are dropped before they are read, is released."""

    def program():
        model = perceptron()
        (x,) = there(floats(2, 3))
        for _ in range(20):
            value = model(x)
            (x,) = there(floats(2, 3))
        return value

    device.delay(200)
    with fastops.accelerated():
        want = program().numpy()
        keras.utils.clear_session()
        device.synchronize()
        live = device.live()
        assert_same_bits(program().numpy(), want)
        keras.utils.clear_session()
        device.synchronize()
        assert device.live() <= live
    device.delay(60)


@within("plugged_in")
def test_threads(device):
    model = perceptron()
    (x,) = there(floats(2, 3))
    want = model(x).numpy()
    problems = []

    def work():
        for _ in range(100):
            value = model(x).numpy()
            if value.tobytes() != want.tobytes():
                problems.append(value)

    with fastops.accelerated():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert fastops.stats().methods[LAYER].replayed > 200
    assert not problems


@within("resetting")
def test_recordings_are_dropped_with_their_context(device):
    for _ in range(3):
        model = perceptron()
        (x,) = there(floats(2, 3))
        replayed(device, lambda model=model, x=x: model(x))
        del model, x
        keras.utils.clear_session()
        context._reset_context()
        context._context_handle = None
