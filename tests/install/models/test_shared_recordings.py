"""Objects that are made anew share recordings with earlier ones of equal contents."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import floats, plain, told
from support import assert_same

import fastops
from fastops._install.models.method import methods

METRICS = {
    "Mean": lambda: keras.metrics.Mean(),
    "MeanSquaredError": lambda: keras.metrics.MeanSquaredError(),
    "CategoricalAccuracy": lambda: keras.metrics.CategoricalAccuracy(),
    "AUC": lambda: keras.metrics.AUC(num_thresholds=5),
    "F1Score": lambda: keras.metrics.F1Score(),
}

LOSSES = {
    "MeanSquaredError": lambda: keras.losses.MeanSquaredError(),
    "Huber": lambda: keras.losses.Huber(delta=0.5),
    "CategoricalCrossentropy": lambda: keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
}


def given(number):
    y_true = tf.one_hot([number % 3, 1, 2, 0], 3)
    return y_true, tf.nn.softmax(3.0 * floats(4, 3, seed=number))


def recorded_calls():
    return sum(
        method.reasons.get("this call was used to make a recording", 0) for method in methods()
    )


@pytest.mark.parametrize("name", METRICS)
def test_metrics_of_each_epoch(name):
    def program(epochs):
        values = []
        for epoch in range(epochs):
            metric = METRICS[name]()
            for number in range(5):
                y_true, y_pred = given(number + epoch)
                arguments = [y_pred] if name == "Mean" else [y_true, y_pred]
                values.append(metric.update_state(*arguments))
            values.append(metric.result())
            values += [plain(variable) for variable in metric.variables]
        return metric, plain(values)

    _, want = program(8)
    with fastops.accelerated():
        metric, got = program(8)
        assert got == want
        builds = name == "F1Score"  # in the first call
        assert told(metric, "update_state")["replayed"] == 5 - builds
        before = recorded_calls()
        metric, got = program(8)
        assert got == want
        assert recorded_calls() <= before + 8 * builds
        assert told(metric, "update_state")["native"] == 5 - builds


@pytest.mark.parametrize("taped", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_each_step(name, taped):
    weights = tf.Variable(floats(3, 3, seed=9))

    def step(number):
        y_true, y_pred = given(number)
        with tf.GradientTape() as tape:
            loss = LOSSES[name]()
            value = loss(y_true, y_pred @ weights)
        gradient = tape.gradient(value, weights)
        values = [value, gradient] if taped else [loss(y_true, y_pred)]
        return plain(values), told(loss)["replayed"] if fastops.is_installed() else 0

    want = [step(number)[0] for number in range(8)]
    with fastops.accelerated():
        steps = [step(number) for number in range(8)]
        assert [values for values, _ in steps] == want
        assert steps[-1][1] == (1 if taped else 2)


def test_each_object_has_its_own_variables():
    with fastops.accelerated():
        for _ in range(3):
            metric = keras.metrics.Mean()
            for number in range(5):
                metric.update_state(floats(3, seed=number))
        before = recorded_calls()
        first, second = keras.metrics.Mean(), keras.metrics.Mean()
        for number in range(4):
            first.update_state([float(number)])
            second.update_state([10.0 * number])
            first.update_state([float(number)])
        assert (float(first.result()), float(second.result())) == (1.5, 15.0)
        assert float(metric.result()) != 1.5
        lists = recorded_calls() - before  # another signature
        third = keras.metrics.Mean()
        third.update_state(floats(3, seed=1))
        assert recorded_calls() == before + lists
        assert told(third, "update_state")["replayed"] == 1
        assert_same(third.result(), tf.reduce_mean(floats(3, seed=1)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            lambda: keras.losses.Huber(delta=1.0),
            lambda: keras.losses.Huber(delta=0.25),
        ),
        (
            lambda: keras.losses.MeanSquaredError(reduction="sum"),
            lambda: keras.losses.MeanSquaredError(),
        ),
        (
            lambda: keras.losses.MeanSquaredError(),
            lambda: keras.losses.MeanSquaredError(dtype="float64"),
        ),
        (
            lambda: keras.losses.CategoricalCrossentropy(),
            lambda: keras.losses.CategoricalCrossentropy(from_logits=True),
        ),
    ],
)
def test_other_contents_have_other_recordings(one, other):
    arguments = given(1)
    want = plain([one()(*arguments), other()(*arguments)])
    with fastops.accelerated():
        for _ in range(6):
            assert plain([one()(*arguments), other()(*arguments)]) == want
        first, second = one(), other()
        assert plain([first(*arguments), second(*arguments)]) == want
        assert (told(first)["replayed"], told(second)["replayed"]) == (1, 1)


def test_a_changed_object_is_not_shared():
    arguments = given(1)
    with fastops.accelerated():
        for _ in range(5):
            keras.losses.Huber()(*arguments)
        loss = keras.losses.Huber()
        loss._fn_kwargs["delta"] = 0.125
        want = keras.losses.Huber(delta=0.125)(*arguments)
        assert_same(loss(*arguments), want)


def test_a_changed_setting_is_noticed():
    arguments = given(1)
    stock = keras.losses.CategoricalCrossentropy()(*arguments)
    epsilon = keras.config.epsilon()
    keras.config.set_epsilon(0.3)
    other = keras.losses.CategoricalCrossentropy()(*arguments)
    keras.config.set_epsilon(epsilon)
    assert float(other) != float(stock)
    with fastops.accelerated():
        for _ in range(5):
            assert_same(keras.losses.CategoricalCrossentropy()(*arguments), stock)
        keras.config.set_epsilon(0.3)
        try:
            changed = keras.losses.CategoricalCrossentropy()(*arguments)
        finally:
            keras.config.set_epsilon(epsilon)
        assert_same(changed, other)
        assert_same(keras.losses.CategoricalCrossentropy()(*arguments), stock)


def test_functions_of_users_are_not_shared():
    def metric_of(factor):
        return keras.metrics.MeanMetricWrapper(lambda y, p: factor * (y - p))

    with fastops.accelerated():
        for factor in range(6):
            metric = metric_of(float(factor))
            for _ in range(4):
                metric.update_state(tf.constant([3.0]), tf.constant([1.0]))
            assert float(metric.result()) == 2.0 * factor


def test_calls_that_take_variables_are_not_shared():
    """A signature has the addresses of variables. The next object may hold them elsewhere."""
    variables = [keras.Variable([1.0, 2.0]), keras.Variable([3.0, 4.0])]

    def epoch(number):
        metric = keras.metrics.Mean()
        metric.first, metric.second = variables if number % 2 else variables[::-1]
        for _ in range(5):
            metric.update_state(variables[0])
        return float(metric.result())

    with fastops.accelerated():
        assert [epoch(number) for number in range(9)] == [1.5] * 9


def test_names_are_those_of_new_objects():
    def program():
        keras.backend.clear_session()
        names = []
        for _ in range(4):
            metric = keras.metrics.Mean()
            for _ in range(4):
                metric.update_state(tf.constant([1.0]))
            names += [metric.name, *(variable.path for variable in metric.variables)]
        return names

    want = program()
    with fastops.accelerated():
        assert program() == want


def test_dead_objects_leave_nothing():
    def metric():
        made = keras.metrics.Mean()
        for number in range(5):
            made.update_state(floats(3, seed=number))
        return weakref.ref(made), [weakref.ref(variable._value) for variable in made.variables]

    with fastops.accelerated():
        references = [metric() for _ in range(5)]
        gc.collect()
        for reference, variables in references:
            assert reference() is None
            assert all(variable() is None for variable in variables)


def test_steps_with_gradients_and_metrics_of_each_epoch():
    def program():
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, activation="softmax")])
        optimizer = keras.optimizers.SGD(0.1)
        told_of = []
        for _ in range(5):
            mean, accuracy = keras.metrics.Mean(), keras.metrics.CategoricalAccuracy()
            for number in range(4):
                y_true, x = given(number)
                with tf.GradientTape() as tape:
                    y_pred = model(x, training=True)
                    loss = keras.losses.CategoricalCrossentropy()(y_true, y_pred)
                gradients = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
                mean.update_state(loss)
                accuracy.update_state(y_true, y_pred)
            told_of += [mean.result(), accuracy.result()]
        return mean, plain(told_of + model.get_weights())

    _, want = program()
    with fastops.accelerated():
        mean, got = program()
        assert got == want
        assert told(mean, "update_state")["replayed"] == 4
    assert np.isfinite(float(mean.result()))
