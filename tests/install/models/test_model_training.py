"""Losses, metrics, optimizers and training steps: results are the same, and calls are replayed."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import (
    CALLS,
    Subclassed,
    compare,
    floats,
    functional,
    outcome,
    perceptron,
    probe,
)
from keras import layers as L  # noqa: N812

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def public(module, base):
    """Return the classes of Keras in a module that need no arguments."""
    classes = {}
    for kind in vars(module).values():
        if inspect.isclass(kind) and issubclass(kind, base) and kind is not base:
            classes[kind.__name__] = kind
    return classes


LOSSES = public(keras.losses, keras.losses.Loss)
ODD_LOSSES = {"CTC", "CategoricalGeneralizedCrossEntropy", "Dice", "Tversky", "Circle"}
METRICS = public(keras.metrics, keras.metrics.Metric)
ARGUMENTS = {
    "IoU": {"num_classes": 3, "target_class_ids": [0]},
    "BinaryIoU": {"target_class_ids": [0]},
    "MeanIoU": {"num_classes": 3},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0]},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "MeanMetricWrapper": {"fn": keras.losses.mean_squared_error},
    "MeanRelativeError": {"normalizer": [1.0, 2.0, 3.0]},
}
SPARSE = {
    *("SparseCategoricalCrossentropy", "SparseCategoricalAccuracy"),
    "SparseCategoricalFocalCrossentropy",  # since Keras 3.16
    "SparseTopKCategoricalAccuracy",
}
SPECIAL = {"Mean", "Sum", "MeanIoU", "IoU", "BinaryIoU", "MeanTensor"}


def targets(name, number):
    """Return true and predicted values that suit a loss or metric."""
    y_pred = tf.nn.softmax(floats(4, 3, seed=number))
    if name in SPARSE:
        return tf.constant([number % 3, 1, 2, 0]), y_pred
    return tf.one_hot([number % 3, 1, 2, 0], 3), y_pred


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"CTC", "LossFunctionWrapper"}))
def test_losses(name):
    def program():
        loss = LOSSES[name]()
        if "__call__" not in vars(LOSSES[name]):
            probe(loss)
        for number in range(CALLS):
            y_true, y_pred = targets(name, number)
            with tf.GradientTape() as tape:
                tape.watch(y_pred)
                value = tf.constant(0.0)
                if name not in ("Circle", "CategoricalGeneralizedCrossEntropy"):
                    value = loss(y_true, y_pred)
            yield value
            yield tape.gradient(value, y_pred)
            yield outcome(loss, y_true, y_pred)
            yield outcome(loss, y_true, y_pred, sample_weight=tf.constant([1.0, 2.0, 0.0, 1.0]))
            yield outcome(loss, y_true.numpy(), y_pred.numpy())

    compare(program, replayed=None if name in ODD_LOSSES else True)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_metrics(name):
    def program():
        metric = METRICS[name](**ARGUMENTS.get(name, {}))
        for number in range(CALLS + 1):
            y_true, y_pred = targets(name, number)
            if name in ("Mean", "Sum"):
                yield outcome(metric.update_state, y_pred)
            elif "IoU" in name and "OneHot" not in name:
                values = tf.constant([0, 1, 1, 0])
                yield outcome(metric.update_state, values, values[::-1])
            else:
                yield outcome(metric.update_state, y_true, y_pred)
            yield outcome(metric.result)
            if number % 5 == 4:
                metric.reset_state()
            yield metric.variables
        probe(metric, "result")

    compare(program, replayed=None)


@pytest.mark.parametrize("name", ["Mean", "MeanSquaredError", "CategoricalAccuracy"])
def test_metrics_are_replayed(name):
    def program():
        metric = METRICS[name]()
        for method in ("update_state", "result"):
            probe(metric, method)
        for number in range(2 * CALLS):
            args = targets(name, number)
            metric.update_state(*args[1:] if name == "Mean" else args)
            yield metric.result()
            yield metric.variables

    compare(program)


def test_metrics_that_build_graphs_are_not_replayed():
    def program():
        metric = keras.metrics.AUC(multi_label=True, num_labels=3)  # it calls `tf.vectorized_map`
        probe(metric, "update_state")
        for number in range(CALLS):
            y_true, y_pred = targets("AUC", number)
            yield outcome(metric.update_state, y_true, y_pred)
            yield metric.variables
            yield metric.result()

    compare(program, replayed=False)


OPTIMIZERS = public(keras.optimizers, keras.optimizers.Optimizer)
VARIANTS = [
    ("Adam", {}),
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("AdamW", {"weight_decay": 0.1}),
    ("Adam", {"clipnorm": 0.1}),
    ("Adam", {"clipvalue": 0.1}),
    ("Adam", {"global_clipnorm": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("Adam", {"learning_rate": keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)}),
    ("Adam", {"learning_rate": keras.optimizers.schedules.CosineDecay(0.1, 5)}),
    ("Adam", {"use_ema": True, "ema_overwrite_frequency": 3}),
    ("Adam", {"gradient_accumulation_steps": 2}),
    ("Adam", {"loss_scale_factor": 2.0}),
    *((name, {}) for name in sorted(OPTIMIZERS) if name not in ("Adam", "SGD")),
]
LEFT = {"use_ema", "gradient_accumulation_steps"}
"""Optimizers that read values after they have assigned some; these fall back to Keras."""


@pytest.mark.parametrize(
    ("name", "arguments"),
    VARIANTS,
    ids=lambda case: case if isinstance(case, str) else " ".join(case),
)
def test_optimizers(name, arguments):
    def program():
        model, x = perceptron()
        if name == "LossScaleOptimizer":
            optimizer = OPTIMIZERS[name](keras.optimizers.SGD())
        elif name == "MultiOptimizer":
            return
        else:
            optimizer = OPTIMIZERS[name](**arguments)
        if name not in ("LossScaleOptimizer", "Muon", "ScheduleFreeAdamW", "Lamb", "Adafactor"):
            probe(optimizer, "apply")
        for _ in range(CALLS + 1):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x) ** 2)
            slopes = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            yield loss
        yield model.variables
        yield optimizer.variables

    left = LEFT & arguments.keys()
    compare(program, replayed=None if left else True, native=not left)


def test_a_step_of_ten_thousand_ops():
    def program():
        variables = [keras.Variable(floats(2, seed=number)) for number in range(300)]
        optimizer = keras.optimizers.Adam(0.1)
        optimizer.build(variables)
        probe(optimizer, "apply")
        for _ in range(CALLS):
            optimizer.apply(variables, variables)
            yield variables[0], variables[-1]
        yield optimizer.variables

    compare(program, native=True)


def test_learning_rates_that_change():
    def program():
        model, x = perceptron()
        optimizer = keras.optimizers.Adam(0.1)
        probe(optimizer, "apply")
        for number in range(3 * CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x) ** 2)
            if number == CALLS:
                optimizer.learning_rate = 0.01
            if number == CALLS + 2:
                optimizer.beta_1 = 0.5
            if number == 2 * CALLS:
                model.layers[0].trainable = False
            optimizer.apply_gradients(
                (slope, variable)
                for slope, variable in zip(
                    tape.gradient(loss, model.trainable_variables),
                    model.trainable_variables,
                    strict=True,
                )
            )
            yield model.variables
        yield optimizer.variables

    compare(program)


def test_gradients_that_are_missing_and_constraints():
    def program():
        layer = L.Dense(3, kernel_constraint="non_neg")
        layer.build((None, 4))
        optimizer = keras.optimizers.SGD(0.1)
        for number in range(2 * CALLS):
            slopes = [floats(4, 3, seed=number), None if number % 2 else tf.ones(3)]
            yield outcome(optimizer.apply, slopes, layer.trainable_variables)
            yield layer.variables
        yield outcome(optimizer.apply, [tf.ones(3)], [keras.Variable(tf.ones(3))])
        yield outcome(optimizer.apply, slopes[:1])

    compare(program, replayed=None)


@pytest.mark.parametrize(
    ("make", "optimizer"), [(perceptron, "adam"), (functional, "sgd"), (functional, "adamw")]
)
def test_loops(make, optimizer):
    def program():
        model, x = make()
        loss = keras.losses.MeanSquaredError()
        metric = keras.metrics.Mean()
        chosen = keras.optimizers.get(optimizer)
        for instance in (model, loss):
            probe(instance)
        for number in range(2 * CALLS):
            with tf.GradientTape() as tape:
                y = model(x + float(number), training=True)
                value = loss(tf.zeros((2, 3)), y[0] if isinstance(y, list) else y)
            slopes = tape.gradient(value, model.trainable_variables)
            chosen.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            metric.update_state(value)
            yield metric.result()
        yield model.variables

    compare(program)


@pytest.mark.parametrize(
    ("kind", "eagerly"),
    [("sequential", True), ("functional", True), ("subclassed", True), ("functional", False)],
)
def test_fit(kind, eagerly):
    def program():
        x, y = np.asarray(floats(24, 4)), np.arange(24) % 3
        if kind == "subclassed":
            model, y = Subclassed(), y % 2
        elif kind == "functional":
            inputs = keras.Input((4,))
            model = keras.Model(inputs, L.Dense(3)(L.Dropout(0.2)(L.Dense(8)(inputs))))
        else:
            model, _ = perceptron()
        model.compile(
            "adam",
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            run_eagerly=eagerly,
        )
        if eagerly and kind != "subclassed":
            probe(model, "train_step")
        history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y))
        yield {name: [float(value) for value in values] for name, values in history.history.items()}
        yield model.evaluate(x, y, verbose=0)
        yield model.predict(x, verbose=0)
        yield model.train_on_batch(x[:8], y[:8])
        yield model.variables
        yield model.optimizer.variables

    compare(program)


def test_weights_of_samples_and_classes():
    def program():
        x, y = np.asarray(floats(24, 4)), np.asarray(floats(24, 3, seed=1))
        model, _ = perceptron()
        model.compile("sgd", "mse", weighted_metrics=["mae"], run_eagerly=True)
        weights = np.linspace(0, 1, 24)
        probe(model, "train_step")
        history = model.fit(x, y, sample_weight=weights, batch_size=4, epochs=2, verbose=0)
        yield {name: [float(value) for value in values] for name, values in history.history.items()}
        yield model.variables

    compare(program)


def test_steps_of_users():
    class Model(keras.Sequential):
        steps = 0

        def train_step(self, data):
            type(self).steps += 1
            return super().train_step(data)

    def program():
        Model.steps = 0
        model = Model([keras.Input((4,)), L.Dense(3)])
        model.compile("sgd", "mse", run_eagerly=True)
        model.fit(np.ones((16, 4)), np.ones((16, 3)), batch_size=2, verbose=0)
        yield Model.steps
        yield model.variables

    compare(program)


def test_callbacks_see_the_same():
    def program():
        seen = []
        model, _ = perceptron()
        model.compile("sgd", "mse", run_eagerly=True)
        callback = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: seen.append((batch, float(logs["loss"])))
        )
        rates = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (1 + epoch))
        x, y = np.asarray(floats(12, 4)), np.asarray(floats(12, 3, seed=1))
        model.fit(x, y, batch_size=2, epochs=3, verbose=0, callbacks=[callback, rates])
        yield seen
        yield model.variables

    compare(program)
