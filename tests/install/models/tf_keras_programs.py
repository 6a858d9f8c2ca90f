"""Models of tf_keras for tests."""

import contextlib

import pytest
import tensorflow as tf
from install.models import keras_programs
from install.models.keras_programs import floats

from fastops._install import restated, targets

tf_keras = pytest.importorskip("tf_keras", reason="see the extra 'libraries'")

L = tf_keras.layers
OBJECTION = restated.changed(targets.RECORDINGS["tf_keras"])


def sequential(shape, *layers, dtype=None):
    return tf_keras.Sequential([tf_keras.Input(shape, dtype=dtype), *layers])


def perceptron():
    layers = L.Dense(8, activation="relu"), L.Dense(8, activation="gelu"), L.Dense(3)
    return sequential((4,), *layers), floats(2, 4)


def deferred():
    """Return a model that gets the shape of its inputs with the first call."""
    return tf_keras.Sequential([L.Dense(8, activation="tanh"), L.Dense(3)]), floats(2, 4)


def functional():
    inputs = tf_keras.Input((4,))
    x = L.Dense(8, activation="tanh")(inputs)
    x = L.LayerNormalization()(L.Add()([x, L.Dense(8)(inputs)]))
    return tf_keras.Model(inputs, [L.Dense(3, activation="softmax")(x), x]), floats(2, 4)


def operators():
    inputs = tf_keras.Input((4,))
    x = L.Dense(4)(inputs)
    return tf_keras.Model(inputs, L.Dense(2)(tf.nn.relu(x) * 2.0 + inputs)), floats(2, 4)


def inputs_by_name():
    a, b = tf_keras.Input((4,), name="a"), tf_keras.Input((4,), name="b")
    model = tf_keras.Model({"a": a, "b": b}, {"c": L.Dense(3)(L.Concatenate()([a, b])), "d": b})
    return model, {"a": floats(2, 4), "b": floats(2, 4, seed=1)}


def inputs_in_a_list():
    inputs = [tf_keras.Input((4,)), tf_keras.Input((4,))]
    return tf_keras.Model(inputs, L.Dense(3)(L.Multiply()(inputs))), [floats(2, 4), floats(2, 4)]


def convolutional():
    layers = [L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(), L.MaxPooling2D()]
    layers += [L.DepthwiseConv2D(2), L.ReLU(), L.GlobalAveragePooling2D(), L.Dense(3)]
    return sequential((8, 8, 2), *layers), floats(2, 8, 8, 2)


def lstm():
    return sequential((5, 3), L.LSTM(4), L.Dense(2)), floats(2, 5, 3)


def cells():
    cell = L.StackedRNNCells([L.GRUCell(4), L.LSTMCell(3)])
    return sequential((5, 3), L.RNN(cell), L.Dense(2)), floats(2, 5, 3)


def attention():
    inputs = tf_keras.Input((5, 8))
    x = L.LayerNormalization()(L.MultiHeadAttention(2, 4)(inputs, inputs) + inputs)
    return tf_keras.Model(inputs, L.Dense(2)(L.GlobalMaxPooling1D()(x))), floats(2, 5, 8)


def embedding():
    ids = tf.constant([[1, 2, 3, 0], [4, 0, 0, 8]])
    layers = L.Embedding(9, 4), L.GlobalAveragePooling1D(), L.Dense(2)
    return sequential((4,), *layers, dtype="int32"), ids


def masked():
    ids = tf.constant([[1, 2, 3, 0], [4, 0, 0, 8]])
    layers = L.Embedding(9, 4, mask_zero=True), L.Dense(3), L.GlobalAveragePooling1D(), L.Dense(2)
    return sequential((4,), *layers, dtype="int32"), ids


def mask_of_a_result():
    ids = tf.constant([[1, 2, 3, 0], [4, 0, 0, 8]])
    return sequential((4,), L.Embedding(9, 4, mask_zero=True), L.Dense(3), dtype="int32"), ids


def normalized():
    layers = [L.Normalization(mean=1.0, variance=2.0), L.GroupNormalization(2)]
    layers += [L.UnitNormalization(), L.Rescaling(0.5), L.PReLU(), L.LayerNormalization()]
    return sequential((4,), *layers), floats(2, 4)


def mixed():
    policy = tf_keras.mixed_precision.Policy("mixed_bfloat16")
    layers = [L.Dense(4, dtype=policy), L.LayerNormalization(dtype=policy)]
    return sequential((4,), *layers, L.Dense(2)), floats(2, 4)


def dropped():
    return sequential((4,), L.Dense(6), L.Dropout(0.5), L.Dense(2)), floats(2, 4)


def noisy():
    layers = L.GaussianNoise(0.1), L.SpatialDropout1D(0.3), L.GaussianDropout(0.2)
    return sequential((3, 4), *layers, L.Flatten()), floats(2, 3, 4)


def regularized():
    """Return a model with losses of its weights: a call does not add these."""
    return sequential((4,), L.Dense(6, kernel_regularizer="l2"), L.Dense(2)), floats(2, 4)


def nested():
    inner, x = perceptron()
    return sequential((4,), L.Dense(4, activation="swish"), inner, L.Dense(2)), x


MODELS = {
    make.__name__: make
    for make in (
        *(perceptron, deferred, functional, operators, inputs_by_name, inputs_in_a_list),
        *(convolutional, lstm, cells, attention, embedding, masked, mask_of_a_result, normalized),
        *(mixed, dropped, noisy, regularized, nested),
    )
}


class Subclassed(tf_keras.Model):
    """A model with a `call` of a user."""

    def __init__(self):
        super().__init__()
        self.hidden = L.Dense(8, activation="relu")
        self.dropout = L.Dropout(0.3)
        self.normalization = L.BatchNormalization()
        self.out = L.Dense(2)

    def call(self, x, training=False):
        x = self.dropout(self.hidden(x), training=training)
        return self.out(self.normalization(x))


def compare(program, **options):
    """Run a program with and without replays, as `keras_programs.compare` does."""

    def renamed():
        tf_keras.backend.reset_uids()
        yield from program()

    keras_programs.compare(renamed, **options)


@contextlib.contextmanager
def settings():
    """Restore tf_keras's settings after the test."""
    backend = tf_keras.backend
    before = backend.floatx(), backend.image_data_format(), backend.epsilon()
    policy = tf_keras.mixed_precision.global_policy()
    try:
        yield
    finally:
        backend.set_floatx(before[0])
        backend.set_image_data_format(before[1])
        backend.set_epsilon(before[2])
        tf_keras.mixed_precision.set_global_policy(policy)
