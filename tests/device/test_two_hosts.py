"""Two logical devices of the host, which share memory but have copies between them.

tests/hazards/test_context.py tests their scopes and the paths of single calls.
"""

import keras
import pytest
import tensorflow as tf
from apart import Process, within
from support import DIRECT, assert_same, assert_same_bits, floats, took
from tensorflow.python.eager import context

import fastops
from fastops import ops

PLACED = "capi:device"
INPUT = "capi:input_device"


@pytest.fixture(scope="module")
def two_hosts():
    """Yield a process with two logical CPUs."""
    process = Process(split)
    yield process
    process.end()


def split():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def unchanged(program):
    """Compare a program under `install` and without; return TensorFlow's result and `stats`."""
    for _ in range(2):
        want = program()
    with fastops.accelerated():
        for _ in range(3):
            assert_same(program(), want)
        fastops.reset_stats()
        assert_same(program(), want)
        return want, fastops.stats()


def on(number, value):
    with tf.device(f"CPU:{number}"):
        return tf.identity(value)


@within("two_hosts")
def test_programs_on_either_device():
    """On the first device calls are direct; on the second they take `capi` or TensorFlow's path."""
    for number in range(2):

        def program(number=number):
            with tf.device(f"CPU:{number}"):
                x, w = tf.constant(floats(4, 3)), tf.Variable(floats(3, 2))
                for _ in range(3):
                    with tf.GradientTape() as tape:
                        loss = tf.reduce_mean(tf.tanh(x @ w) ** 2.0)
                    w.assign_sub(0.1 * tape.gradient(loss, w))
                return loss, w.read_value(), tf.concat([x, x], 1), x[0], w.device

        want, seen = unchanged(program)
        assert want[0].device.endswith(f"CPU:{number}")
        assert want[-1].endswith(f"CPU:{number}")
        if number == 0:
            assert seen.direct > 0, seen
        else:
            assert seen.direct == 0, seen
            assert set(seen.reasons) <= {"device", "input_device", "op"}, seen


@within("two_hosts")
def test_programs_on_both_devices():
    def program():
        x, y = on(0, floats(3, 3)), on(1, floats(3, 3))
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            with tf.device("CPU:1"):
                product = x @ y
            total = tf.reduce_sum(product + x)
        return product, total, tape.gradient(total, [x, y])

    want, _ = unchanged(program)
    assert [value.device[-5:] for value in want[:2]] == ["CPU:1", "CPU:0"]


@within("two_hosts")
def test_functions():
    @tf.function
    def body(a, b):
        with tf.device("CPU:1"):
            c = tf.tanh(a @ b)
        return c, c + a

    for numbers in ((0, 0), (0, 1), (1, 1)):
        x, y = (on(number, floats(3, 3)) for number in numbers)
        unchanged(lambda x=x, y=y: body(x, y))
        ours = fastops.function(body.python_function)
        for _ in range(4):
            assert_same(ours(x, y), body(x, y))


@within("two_hosts")
def test_models():
    def program():
        with tf.device("CPU:1"):
            model = keras.Sequential([keras.Input([3]), keras.layers.Dense(2, "tanh")])
            for i, weight in enumerate(model.weights):
                weight.assign(floats(*weight.shape, seed=i))
            model.compile(keras.optimizers.Adam(0.1), "mse")
            model.fit(floats(8, 3), floats(8, 2), batch_size=4, verbose=0, shuffle=False)
            return model(floats(2, 3)), model.get_weights()

    want, _ = unchanged(program)
    assert want[0].device.endswith("CPU:1")


@pytest.fixture(scope="module")
def resetting():
    """Yield a process in which tests may reset TensorFlow's context."""
    process = Process(split)
    yield process
    process.end()


@within("resetting")
def test_contexts_with_other_devices():
    """A kernel made for the only CPU is not used for the first of two CPUs of a new context."""
    for split_again in (False, True, False):
        x = on(0, floats(3))
        for expected in (None, DIRECT):
            value, path = took(ops.exp, x=x)
            assert path == (expected or path)
        assert_same(value, tf.raw_ops.Exp(x=x))
        if len(tf.config.list_logical_devices("CPU")) == 2:
            with tf.device("CPU:1"):
                took(ops.exp, x=x)
                value, path = took(ops.exp, x=x)
            assert (value.device[-5:], path) == ("CPU:1", PLACED)
            assert took(ops.exp, x=on(1, floats(3)))[1] == INPUT
        assert_same_bits(value.numpy(), tf.raw_ops.Exp(x=x).numpy())
        context._reset_context()
        if split_again:
            split()


class Elsewhere(keras.layers.Layer):
    def call(self, x):
        with tf.device("CPU:1"):
            return x * 2.0


@within("two_hosts")
def test_a_layer_with_a_device_scope_in_its_call():
    """The call is not replayed: a replay would run all ops on the first device."""
    layer, x = fastops.keras.replay(Elsewhere()), on(0, floats(3))

    def program():
        made = [layer(x) for _ in range(4)]
        return made, [value.device for value in made]

    (_, places), _ = unchanged(program)
    assert all(place.endswith("CPU:1") for place in places)
