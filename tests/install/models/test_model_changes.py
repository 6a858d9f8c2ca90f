"""A change between two calls is seen by the second."""

import contextlib
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.changes import (
    add_a_layer,
    another_activation,
    another_class,
    another_dict,
    assign,
    call_of_an_instance,
    compiled,
    first,
    fitted,
    freeze,
    kernel_regularizer,
    no_activation,
    no_bias,
    regularize,
    remove_a_layer,
    set_weights,
    state_of_the_instance,
)
from install.models.keras_programs import (
    CALLS,
    LOST_MASK,
    MODELS,
    attention,
    compare,
    convolutional,
    floats,
    functional,
    lstm,
    noisy,
    outcome,
    perceptron,
    probe,
    told,
)
from keras import layers as L  # noqa: N812
from keras.src.backend.common.masking import set_keras_mask

import fastops
from fastops._install.moved import running_name

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def assign_behind_keras(model):
    first(model).kernel.value.assign_add(tf.ones_like(first(model).kernel))


def replace_the_variable(model):
    vars(first(model))["_kernel"] = keras.Variable(np.ones((4, 8), np.float32))


def replace_the_value(model):
    first(model).kernel._value = tf.Variable(tf.ones((4, 8)))


def freeze_a_variable(model):
    first(model).kernel.trainable = False


def kernel_scaled(model):
    first(model).kernel_scale = 3.0
    first(model)._kernel = first(model)._kernel + 1.0


def another_input_spec(model):
    first(model).input_spec = keras.layers.InputSpec(ndim=3)


def quantize(model):
    first(model).quantize("int8")


def lora(model):
    first(model).enable_lora(2)
    first(model).lora_kernel_b.assign(np.ones((2, 8), np.float32))


def half(model):
    first(model).dtype_policy = "mixed_float16"


def half_of_all(model):
    keras.config.set_dtype_policy("mixed_float16")


def add_a_loss(model):
    model._losses.append(tf.constant(1.0))


def floatx(model):
    keras.config.set_floatx("float64")


def channels_first(model):
    keras.config.set_image_data_format("channels_first")


def epsilon(model):
    keras.config.set_epsilon(0.1)


CHANGES = [
    *(assign, set_weights, assign_behind_keras, replace_the_variable, replace_the_value, freeze),
    *(freeze_a_variable, add_a_layer, remove_a_layer, another_activation, no_bias, no_activation),
    *(call_of_an_instance, kernel_scaled, another_input_spec, quantize, lora, half, half_of_all),
    *(add_a_loss, regularize, kernel_regularizer, compiled, fitted, state_of_the_instance),
    *(another_dict, another_class, floatx, channels_first, epsilon),
]


@contextlib.contextmanager
def settings():
    """Restore Keras's settings after the test."""
    before = (
        *(keras.config.floatx(), keras.config.image_data_format(), keras.config.epsilon()),
        keras.config.dtype_policy(),
    )
    try:
        yield
    finally:
        keras.config.set_floatx(before[0])
        keras.config.set_image_data_format(before[1])
        keras.config.set_epsilon(before[2])
        keras.config.set_dtype_policy(before[3])


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changes(change):
    def program():
        with settings():
            model, x = perceptron()
            probe(model)
            for _ in range(CALLS):
                yield model(x)
            change(model)
            for _ in range(CALLS):
                with tf.GradientTape() as tape:
                    y = outcome(model, x)
                    z = tf.reduce_sum(model(x)) if y[0] in ("float32", "float16") else x
                yield y
                yield tape.gradient(z, [v.value for v in model.trainable_variables])
                yield outcome(lambda: model.losses)

    compare(program)


def test_changes_that_are_undone():
    def program():
        model, x = perceptron()
        probe(model)
        for number in range(40):
            model.trainable = number % 2 == 0
            with tf.GradientTape() as tape:
                y = model(x)
            yield y
            yield len(tape.watched_variables())

    compare(program)


@LOST_MASK
@pytest.mark.parametrize(
    "make",
    [convolutional, lstm, attention, noisy, functional, MODELS["masked"], MODELS["normalized"]],
)
def test_all_attributes_of_layers_are_seen(make):
    """No call is replayed after a change of a number or flag of a layer."""
    with fastops.accelerated():
        model, x = make()
        for _ in range(CALLS):
            model(x)
        replayed = told(model)["replayed"]
        assert replayed > 0
        for layer in model.layers[:3]:
            for name, value in list(vars(layer).items()):
                if type(value) not in (bool, int, float) or name in ("_called", "built"):
                    continue
                if name.startswith("_self_"):  # an attribute of TensorFlow for checkpoints
                    continue
                vars(layer)[name] = not value if type(value) is bool else value + 1
                outcome(model, x)
                vars(layer)[name] = value
        assert told(model)["replayed"] == replayed


def test_calls_with_other_settings_are_recorded_again():
    with settings(), fastops.accelerated():
        model, x = perceptron()
        for _ in range(CALLS):
            model(x)
        keras.config.set_epsilon(0.5)
        replayed = told(model)["replayed"]
        for _ in range(3 * CALLS):
            model(x)
        assert told(model)["replayed"] > replayed


def test_moving_averages():
    def program():
        model, x = convolutional()
        probe(model)
        for number in range(3 * CALLS):
            yield model(x, training=number % 2 == 0)
            if number == CALLS:
                model.layers[1].momentum = 0.5
            if number == 2 * CALLS:
                model.layers[1].moving_mean.assign(tf.ones(4))
        yield model.variables

    compare(program)


def test_seed_generators():
    def program():
        model, x = noisy()
        for number in range(3 * CALLS):
            yield model(x, training=True)
            if number == CALLS:
                model.layers[1].seed_generator.state.assign([1, 2])
            if number == CALLS + 3:
                model.layers[1].rate = 0.1
            if number == 2 * CALLS:
                vars(model.layers[1])["seed_generator"] = keras.random.SeedGenerator(5)

    compare(program)


def test_mocks():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            yield model(x)
        for target in (
            "keras.src.layers.core.dense.Dense.call",
            "keras.src.activations.activations.relu",
            "keras.src.ops.matmul",
            running_name("keras.src.backend.tensorflow.numpy.matmul"),
            "keras.src.models.sequential.Sequential.call",
            "keras.src.layers.layer.Layer._assert_input_compatibility",
        ):
            with mock.patch(target, side_effect=RuntimeError(target)) as patched:
                for _ in range(2):
                    yield outcome(model, x)
                yield patched.call_count
            yield model(x)

    compare(program)


def test_hooks_of_classes():
    def program():
        model, x = perceptron()
        for _ in range(CALLS):
            yield model(x)
        seen = []
        original = L.Dense.call
        L.Dense.call = lambda self, x: seen.append(self.name) or original(self, x)
        try:
            for _ in range(CALLS):
                yield model(x)
            yield len(seen)
        finally:
            L.Dense.call = original
        for _ in range(CALLS):
            yield model(x)

    compare(program)


def test_handlers_of_users():
    class Money(tf.experimental.ExtensionType):
        amount: tf.Tensor

    def program():
        model, x = perceptron()
        for _ in range(CALLS):
            yield model(x)
            yield outcome(model, Money(tf.ones((2, 4))))

    compare(program)


@pytest.mark.parametrize(
    "scope",
    [
        lambda: tf.device("CPU:0"),
        lambda: tf.distribute.OneDeviceStrategy("CPU:0").scope(),
        lambda: keras.StatelessScope(),
        lambda: keras.src.backend.common.variables.AutocastScope("float16"),
        lambda: keras.src.backend.common.variables.AutocastScope(None),
        lambda: keras.name_scope("outer"),
        lambda: tf.name_scope("outer"),
        lambda: keras.RematScope("full"),
        lambda: tf.GradientTape(persistent=True),
        lambda: tf.GradientTape().stop_recording() if False else contextlib.nullcontext(),
        lambda: keras.src.backend.common.symbolic_scope.SymbolicScope(),
        lambda: tf.control_dependencies([]),
        lambda: tf.init_scope(),
    ],
)
def test_scopes(scope):
    def program():
        model, x = functional()
        probe(model)
        for _ in range(CALLS):
            yield model(x)
        for _ in range(CALLS):
            with scope():
                yield outcome(model, x)
            yield outcome(model, x)

    compare(program)


def test_stopped_tapes():
    def program():
        model, x = perceptron()
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                with tape.stop_recording():
                    y = model(x)
                z = model(y @ tf.ones((3, 4)))
            yield z
            yield tape.gradient(z, model.trainable_variables)
            yield len(tape.watched_variables())

    compare(program)


def test_tapes_stay_stopped():
    def program():
        model, x = perceptron()
        factor = tf.Variable(2.0)
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                with tape.stop_recording():
                    y = model(x)
                    stopped = factor * 3.0
                z = factor * tf.reduce_sum(y) + stopped
            yield tape.gradient(z, factor)
            yield len(tape.watched_variables())

    compare(program, replayed=None)


def test_objects_that_cannot_be_inspected_are_not_recorded(monkeypatch):
    def fail(*_):
        raise RuntimeError("dictionary changed size during iteration")

    with fastops.accelerated():
        for part in ("visit_dict", "visit_function"):
            model, x = perceptron()
            want = model(x)
            with monkeypatch.context() as patch:
                patch.setattr(f"fastops._specialize.guards.places.Places.{part}", fail)
                for _ in range(CALLS):
                    assert np.array_equal(model(x), want)
            assert told(model)["replayed"] == 0
            assert any("RuntimeError" in why for why in told(model)["details"].values())


@LOST_MASK
def test_masks_that_users_set():
    def program():
        layer = L.LSTM(3)
        probe(layer)
        x = floats(2, 4, 3)
        for _ in range(CALLS):
            yield layer(x)
        set_keras_mask(x, tf.constant([[True, True, False, False]] * 2))
        for _ in range(CALLS):
            yield layer(x)

    compare(program)


def test_eager_functions_and_other_contexts():
    def program():
        model, x = perceptron()
        for _ in range(CALLS):
            yield model(x)
        tf.config.run_functions_eagerly(True)
        try:
            yield model(x)
        finally:
            tf.config.run_functions_eagerly(False)
        fastops.clear_cache()
        for _ in range(CALLS):
            yield model(x)

    compare(program)


def test_shared_layers_and_copies():
    def program():
        layer = L.Dense(4, activation="relu")
        first, other = (keras.Sequential([keras.Input((4,)), layer, L.Dense(n)]) for n in (2, 3))
        copied = keras.models.clone_model(first)
        copied.set_weights(first.get_weights())
        x = floats(2, 4)
        probe(first)
        probe(other)
        for number in range(2 * CALLS):
            yield first(x)
            yield other(x)
            yield copied(x)
            if number == CALLS:
                layer.kernel.assign(tf.ones((4, 4)))

    compare(program)


def test_saved_and_loaded(tmp_path):
    def program():
        model, x = functional()
        for _ in range(CALLS):
            yield model(x)
        model.save(tmp_path / "a.keras")
        loaded = keras.models.load_model(tmp_path / "a.keras")
        model.save_weights(tmp_path / "a.weights.h5")
        for weight in model.weights:
            weight.assign(weight * 0.0)
        yield model(x)
        model.load_weights(tmp_path / "a.weights.h5")
        for _ in range(CALLS):
            yield loaded(x)
            yield model(x)

    compare(program)
