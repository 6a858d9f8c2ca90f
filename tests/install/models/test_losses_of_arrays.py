"""Losses over NumPy arrays: their calls are replayed as with tensors, which Keras makes of them."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, outcome, probe


class Huber(keras.losses.Loss):
    """A loss as users write them."""

    def __init__(self, threshold=1.0, **options):
        self.threshold = threshold
        super().__init__(**options)

    def call(self, y_true, y_pred):
        error = y_true - y_pred
        linear = self.threshold * tf.abs(error) - self.threshold**2 / 2
        return tf.where(tf.abs(error) < self.threshold, tf.square(error) / 2, linear)


class OwnDtype(Huber):
    """A loss whose dtype is computed."""

    @property
    def dtype(self):
        return "float64"


LOSSES = {
    "mean squared error": keras.losses.MeanSquaredError,
    "Huber": lambda: keras.losses.Huber(reduction="sum"),
    "cosine": lambda: keras.losses.CosineSimilarity(reduction=None),
    "doubles": lambda: keras.losses.MeanAbsoluteError(dtype="float64"),
    "halves": lambda: keras.losses.MeanAbsoluteError(dtype="float16"),
    "of a user": Huber,
    "with a dtype of its own": OwnDtype,
}

LABELS = {
    "float32": lambda step: np.random.default_rng(step).normal(size=(4, 3)).astype(np.float32),
    "float64": lambda step: np.random.default_rng(step).normal(size=(4, 3)) * 1e30,
    "int64": lambda step: np.random.default_rng(step).integers(-(2**62), 2**62, (4, 3)),
    "uint8": lambda step: np.full((4, 3), 200 + step, np.uint8),
    "bool": lambda step: np.arange(12).reshape(4, 3) % 2 == step % 2,
    "strided": lambda step: np.full((3, 8), step, np.float32)[:, ::2].T,
    "infinite": lambda step: np.full((4, 3), [np.inf, np.nan, step], np.float32),
    "one column": lambda step: np.full((4, 1), step, np.float32),
    "empty": lambda step: np.zeros((0, 3), np.float32),
    "other shape": lambda step: np.zeros((5, 3), np.float32),
    "text": lambda step: np.array([["a", "b", "c"]] * 4),
    "objects": lambda step: np.array([[1, None, 2]] * 4),
    "scalar": lambda step: np.float32(step),
    "subclass": lambda step: np.ones((4, 3), np.float32).view(np.matrix),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_labels(loss, kind):
    def program():
        made = LOSSES[loss]()
        predicted = floats(4, 3)
        for step in range(CALLS):
            yield outcome(made, LABELS[kind](step), predicted)
            yield outcome(made, predicted, LABELS[kind](step))
            yield outcome(made, LABELS[kind](step), LABELS[kind](step))

    compare(program)


@pytest.mark.parametrize("loss", ["mean squared error", "of a user"])
@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
def test_calls_are_replayed(loss, kind):
    def program():
        made = LOSSES[loss]()
        probe(made)
        weights = tf.constant(0.5)
        for step in range(CALLS):
            yield made(LABELS[kind](step), floats(4, 3))
        for step in range(CALLS):
            yield made(LABELS[kind](step), floats(4, 3), weights)

    compare(program)


def test_gradients_and_changes_of_arrays():
    def program():
        made, dense = keras.losses.MeanSquaredError(), keras.layers.Dense(3)
        labels, weights = np.zeros((4, 3), np.float32), np.ones(4, np.float32)
        for step in range(CALLS):
            labels[step % 4] = step
            weights[step % 4] = step
            with tf.GradientTape() as tape:
                loss = made(labels, dense(floats(4, 3)))
            yield loss, tape.gradient(loss, dense.trainable_variables)
            yield outcome(made, labels, labels, weights)
            yield outcome(made, labels, labels, sample_weight=weights)
            yield outcome(made, y_true=labels, y_pred=labels)

    compare(program)


def test_sparse_labels():
    def program():
        for made in (
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            keras.losses.SparseCategoricalCrossentropy(ignore_class=0, reduction="none"),
        ):
            for step in range(CALLS):
                yield made(np.arange(4) * step % 3, floats(4, 3))

    compare(program)


def test_masks_and_policies():
    def program():
        made = keras.losses.MeanSquaredError()
        keras.config.set_dtype_policy("float32")
        for step in range(CALLS):
            predicted = floats(4, 3)
            predicted._keras_mask = tf.constant([True, False, True, step % 2 == 0])
            yield made(LABELS["float32"](step), predicted)

    compare(program)
