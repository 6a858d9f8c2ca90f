"""Replays in scopes that choose what TensorFlow would choose anyway."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import frames
from install.models.keras_programs import CALLS, compare, functional, noisy, perceptron, probe, told
from support import assert_same, python

import fastops

HOST = "/job:localhost/replica:0/task:0/device:CPU:0"

SCOPES = {
    **{
        name: lambda name=name: tf.device(name)
        for name in (
            *("/CPU:0", "CPU:0", "/cpu:0", "cpu:0", "/device:CPU:0", "CPU", "/device:CPU:*", HOST),
            *(None, "", "/job:localhost", "/task:0"),
        )
    },
    "a device object": lambda: tf.device(tf.config.list_logical_devices("CPU")[0].name),
    "a name scope": lambda: tf.name_scope("outer"),
    "the default strategy": lambda: tf.distribute.get_strategy().scope(),
}


@pytest.mark.parametrize("name", SCOPES)
def test_calls_in_a_scope_are_replayed(name):
    """Recordings from outside of the scope are used in it, and the other way round."""
    scope = SCOPES[name]

    def program():
        model, x = functional()
        other, _ = functional()
        probe(model)
        probe(other)
        for _ in range(CALLS):
            yield model(x)
            with scope():
                yield other(x)
        for _ in range(CALLS):
            with scope():
                y = model(x)
            yield y
            yield [one.device for one in y], [one.backing_device for one in y]
            yield other(x)

    compare(program, native=True)
    with fastops.accelerated():
        model, x = perceptron()
        for _ in range(CALLS):
            model(x)
        replayed = told(model)["replayed"]
        with scope():
            model(x)
        assert told(model)["replayed"] == replayed + 1


def test_nested_scopes_and_soft_placement():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            yield model(x)
        with tf.device("/CPU:0"), tf.device(None):
            yield model(x).device
        with tf.device(None), tf.device("/CPU:0"), tf.device("/task:0"):
            yield model(x).device
        tf.config.set_soft_device_placement(False)
        try:
            for _ in range(CALLS):
                with tf.device("/CPU:0"):
                    yield model(x)
                yield model(x).device
        finally:
            tf.config.set_soft_device_placement(True)

    compare(program)


@pytest.mark.parametrize("name", ["/GPU:0", "/GPU:7", "/job:worker/task:1", "/device:XPU:0"])
@pytest.mark.parametrize("soft", [True, False])
def test_a_scope_of_a_device_that_is_not_there(name, soft):
    def program():
        model, x = perceptron()
        for _ in range(CALLS):
            yield model(x)
        tf.config.set_soft_device_placement(soft)
        try:
            for _ in range(3):
                with tf.device(name):
                    try:
                        yield model(x)
                    except Exception as error:
                        yield type(error).__name__
                        yield str(error)
        finally:
            tf.config.set_soft_device_placement(True)
        for _ in range(CALLS):
            yield model(x)

    compare(program)


def test_a_training_step_in_a_scope():
    def program():
        model, x = perceptron()
        optimizer, loss = keras.optimizers.Adam(0.1), keras.losses.MeanSquaredError()
        optimizer.build(model.trainable_variables)
        probe(model)
        probe(optimizer, "apply")
        for _ in range(CALLS):
            with tf.device("/CPU:0"):
                with tf.GradientTape() as tape:
                    value = loss(tf.ones((2, 3)), model(x))
                slopes = tape.gradient(value, model.trainable_variables)
                optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            yield value
            yield model.trainable_variables
            yield [one.value.device for one in model.trainable_variables]

    compare(program, native=True)


def test_functions_in_a_scope_are_replayed():
    x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1.0, 0.5], [2.0, 3.0]])
    want = tf.tensordot(x, y, 1)
    with fastops.accelerated():
        for _ in range(4):
            tf.tensordot(x, y, 1)
        with tf.device("/CPU:0"):
            assert_same(tf.tensordot(x, y, 1), want)
            assert not frames(tf.tensordot, (x, y, 1), {})


def test_random_numbers_in_a_scope():
    def program():
        tf.random.set_seed(5)
        model, x = noisy()
        for number in range(2 * CALLS):
            with tf.device("/CPU:0" if number % 3 else None):
                yield model(x, training=True)
                yield tf.random.uniform((2,), seed=3)
                yield tf.random.normal((2,))

    compare(program)


def test_names_of_variables_made_in_a_scope():
    def program():
        model, x = perceptron()
        probe(model)
        for number in range(CALLS):
            with tf.name_scope(f"outer{number}"), tf.device("/CPU:0"):
                yield model(x)
                variable = tf.Variable(1.0, name="inner")
                layer = keras.layers.Dense(2)
                layer(x)
            yield variable.name, variable.device
            yield [(weight.path, weight.value.name) for weight in layer.weights]

    compare(program)


def test_scopes_belong_to_a_thread():
    def program():
        model, x = perceptron()
        results = []

        def other():
            with tf.device("/CPU:0"):
                results.append(model(x))

        for _ in range(CALLS):
            with tf.device("/CPU:0"):
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
            yield model(x)
        yield results

    compare(program)


def test_fit_in_a_scope():
    def program():
        model, _ = perceptron()
        model.compile("sgd", "mse")
        data = np.ones((8, 4), np.float32), np.ones((8, 3), np.float32)
        with tf.device("/CPU:0"):
            for _ in range(3):
                yield model.fit(*data, batch_size=4, verbose=0, shuffle=False).history["loss"]
                yield model.predict(data[0], verbose=0)
        yield model.trainable_variables

    compare(program)


def test_a_scope_decides_if_there_are_two_devices():
    """In a process with two logical hosts, calls in a device scope are left to Keras."""
    printed = python("""
        import keras, tensorflow as tf, fastops
        hosts = tf.config.list_physical_devices("CPU")
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(hosts[0], two)
        layer, x = keras.layers.Dense(3, "tanh"), tf.ones((2, 4))
        layer(x)
        devices = {}
        for number in range(2):
            with tf.device(f"CPU:{number}"):
                devices[number] = layer(x).device
        with fastops.accelerated():
            for _ in range(8):
                layer(x)
            for number in range(2):
                fastops.reset_stats()
                with tf.device(f"CPU:{number}"):
                    assert layer(x).device == devices[number]
                seen = fastops.stats().methods["Layer.__call__"]
                assert (seen.replayed, seen.keras) == (0, 1), seen
                assert seen.reasons == {"device_scope": 1}, seen
        print("done")
    """)
    assert printed.strip() == "done"


def test_the_reason_of_another_scope():
    with fastops.accelerated():
        model, x = perceptron()
        for _ in range(CALLS):
            model(x)
        before = told(model)["replayed"]
        with tf.device("/GPU:0"):
            model(x)
        assert told(model)["replayed"] == before
