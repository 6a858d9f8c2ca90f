"""Unchanged programs under `install`, with a device that comes before the host."""

import keras
import numpy as np
import plugged
import tensorflow as tf
from apart import within
from plugged import FIRST_DEVICE, SECOND_DEVICE, TYPE, there, unchanged
from support import assert_same, floats

import fastops


def ways(seen):
    """Return the reasons why calls were not direct."""
    return set(seen.reasons)


@within("plugged_in")
def test_operators_and_public_functions(device):
    x = tf.constant(floats(3, 4))
    assert x.device.endswith(FIRST_DEVICE)

    def program():
        y = 1.0 - x * 2.0 + x @ tf.transpose(x) @ x
        return (
            y,
            x[1],
            x[:, 1:3],
            y > 0.0,
            tf.reduce_sum(y, axis=1, keepdims=True),
            tf.reduce_mean(x),
            tf.concat([x, y], 0),
            tf.stack([x, y]),
            tf.unstack(x),
            tf.where(x > 0.0, x, 0.0),
            tf.cast(x, tf.float64),
            tf.reshape(x, [-1]),
            tf.expand_dims(x, 1),
            tf.nn.softmax(tf.nn.relu(x)),
            tf.gather(x, [2, 0]),
            tf.zeros_like(x),
            tf.ones([2, 2]),
            tf.constant([1.0, 2.0]),
            tf.constant([1, 2]),
            tf.shape(x),
            tf.range(5),
            tf.linspace(0.0, 1.0, 3),
            tf.clip_by_value(x, -0.5, 0.5),
            tf.convert_to_tensor(floats(2)),
            list(x),
            float(tf.reduce_sum(x)),
            x.numpy(),
        )

    for scope in (None, FIRST_DEVICE, SECOND_DEVICE, "CPU:0"):
        with tf.device(scope):
            want, seen = unchanged(device, program)
        assert seen.direct > 0
        if scope != "CPU:0":
            assert want[0].device.endswith(scope or FIRST_DEVICE)
            assert ways(seen) <= {"input_device", "device", "op"}, seen


@within("plugged_in")
def test_a_step_of_training_by_hand(device):
    check_training_by_hand(device)


@within("pooled")
def test_a_step_of_training_by_hand_with_a_pool(device):
    check_training_by_hand(device)


def check_training_by_hand(device):
    for number in range(2):

        def program(number=number):
            with tf.device(f"{TYPE}:{number}"):
                x, y = tf.constant(floats(8, 3)), tf.constant(floats(8, 2))
                w, b = tf.Variable(floats(3, 2)), tf.Variable(tf.zeros([2]))
                for _ in range(4):
                    with tf.GradientTape() as tape:
                        loss = tf.reduce_mean(tf.square(tf.tanh(x @ w + b) - y))
                    for variable, gradient in zip((w, b), tape.gradient(loss, (w, b)), strict=True):
                        variable.assign_sub(0.1 * gradient)
                return loss, w.read_value(), b.read_value(), w.device

        want, seen = unchanged(device, program)
        assert want[0].device.endswith(f"{TYPE}:{number}")
        assert want[3].endswith(f"{TYPE}:{number}")
        assert seen.direct > seen.capi, seen
        assert ways(seen) <= {"input_device", "device", "op"}, seen


@within("plugged_in")
def test_traced_functions(device):
    """`tf.function` and `fastops.function` give the same, on tapes and without."""
    (x,) = there(floats(3, 3))
    variable = tf.Variable(floats(3))

    def body(a):
        for i in range(2):
            a = tf.tanh(a @ a) + variable * float(i)
        return tf.reduce_sum(a), a

    traced = tf.function(body)
    assert_same(fastops.function(body)(x), traced(x))

    def program():
        with tf.GradientTape() as tape:
            loss, value = traced(x)
        return loss, value, tape.gradient(loss, variable), traced(value)

    want, _ = unchanged(device, program)
    assert want[1].device.endswith(FIRST_DEVICE)
    ours = fastops.function(body)
    for _ in range(4):
        assert_same(ours(x), traced(x))
    (seen,) = fastops.stats().functions.values()
    assert seen.plan > 0, seen


@within("plugged_in")
def test_functions_that_loop_and_branch(device):
    (x,) = there(floats(4))

    @tf.function
    def body(a):
        total = tf.zeros_like(a)
        for i in tf.range(5):
            if tf.reduce_sum(total) < 100.0:
                total += a * tf.cast(i, tf.float32)
        return total

    unchanged(device, lambda: (body(x), body(x + 1.0)))


@within("plugged_in")
def test_optimizers(device):
    x, y = there(floats(8, 3), floats(8, 2))
    for make in (
        lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        lambda: keras.optimizers.Adam(0.01),
    ):

        def program(make=make):
            w, optimizer = keras.Variable(floats(3, 2)), make()
            for _ in range(4):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(x @ w.value - y))
                optimizer.apply([tape.gradient(loss, w.value)], [w])
            return (
                loss,
                w.value.read_value(),
                [variable.numpy() for variable in optimizer.variables],
            )

        unchanged(device, program, tries=True)


@within("plugged_in")
def test_models(device):
    """A model that is called and trained has the same weights and predictions."""
    x, y = floats(16, 3), floats(16, 2)

    def program():
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [keras.Input([3]), keras.layers.Dense(4, "tanh"), keras.layers.Dense(2)]
        )
        for i, weight in enumerate(model.weights):
            weight.assign(floats(*weight.shape, seed=i))
        # XLA does not support the test device.
        model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
        history = model.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False)
        answers = model(x[:2]), model.predict(x, verbose=0), model.train_on_batch(x, y)
        return answers, history.history["loss"], model.get_weights(), model.weights[0].value.device

    want, _ = unchanged(device, program, tries=True)
    assert want[-1].endswith(FIRST_DEVICE)


@within("plugged_in")
def test_random_numbers(device):
    """Seeded sequences continue on all paths; stateless calls depend only on their seed."""

    def program():
        tf.random.set_seed(3)
        return (
            [tf.random.uniform([3]) for _ in range(3)],
            tf.random.normal([3], seed=5),
            tf.random.stateless_uniform([3], [1, 2]),
        )

    unchanged(device, program)


@within("plugged_in")
def test_data_and_structures(device):
    """Values from other parts of TensorFlow: datasets, ragged and sparse tensors."""

    def program():
        data = tf.data.Dataset.from_tensor_slices(floats(6, 2)).map(lambda a: a * 2.0).batch(4)
        ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
        sparse = tf.sparse.from_dense([[0.0, 1.0], [2.0, 0.0]])
        return (
            list(data),
            (ragged * 2.0).flat_values,
            tf.sparse.to_dense(sparse),
            tf.map_fn(lambda a: a + 1.0, tf.constant(floats(3, 2))),
            tf.vectorized_map(lambda a: a * a, tf.constant(floats(3, 2))),
        )

    unchanged(device, program)


@within("plugged_in")
def test_memory_is_released(device):
    """A program leaves no more memory in use on the device under `install` than without."""
    (x,) = there(floats(16, 16))
    variable = tf.Variable(floats(16))

    def program():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.relu(x @ x + variable))
        variable.assign_sub(0.01 * tape.gradient(loss, variable))

    def left(function):
        for _ in range(20):
            function()
        device.synchronize()
        before = device.live()
        for _ in range(50):
            function()
        device.synchronize()
        return device.live() - before

    assert left(program) == 0
    with fastops.accelerated():
        assert left(program) == 0


@within("plugged_in")
def test_stats_and_explain_report_the_paths(device):
    """`stats` and `explain` report the paths of calls and the reasons."""
    (x,) = there(floats(3))
    fastops.ops.exp(x=x)
    fastops.reset_stats()
    for _ in range(5):
        fastops.ops.exp(x=x)
    seen = fastops.stats()
    path, _, reason = plugged.THERE.partition(":")
    assert getattr(seen, path) == 5, seen
    assert seen.reasons == ({reason: 5} if reason else {}), seen
    report = str(fastops.explain(lambda: fastops.ops.exp(x=x)))
    assert "Exp" in report
    np.testing.assert_allclose(fastops.ops.exp(x=x), np.exp(floats(3)), rtol=1e-6)
