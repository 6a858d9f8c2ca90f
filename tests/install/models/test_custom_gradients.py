"""Layers with custom gradients of users: calls are replayed, and gradient functions run anew."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, probe

import fastops

SEEN: list = []
SCALE = [1.0]
FACTOR = 1.0
DRAWN = np.random.default_rng(0)


@tf.custom_gradient
def softplus(x):
    exp = tf.exp(x)

    def gradient(upstream):
        return upstream / (1 + 1 / exp)

    return tf.math.log(exp + 1), gradient


@tf.custom_gradient
def straight_through(x):
    return tf.round(x), lambda upstream: upstream


@tf.custom_gradient
def reversed_gradient(x):
    def gradient(upstream, strength=0.5):
        return -strength * upstream

    return tf.identity(x), gradient


@tf.custom_gradient
def clipped(x):
    return tf.identity(x), lambda upstream: tf.clip_by_value(upstream, -0.01, 0.01)


@tf.custom_gradient
def of_second_order(x):
    @tf.custom_gradient
    def gradient(upstream):
        return upstream * 5.0 * x, lambda upstream: upstream * 7.0

    return x * x, gradient


@tf.custom_gradient
def noting(x):
    def gradient(upstream):
        SEEN.append(upstream.shape)
        return upstream * 2.0

    return x * 1.0, gradient


@tf.custom_gradient
def by_contents(x):
    return x * 1.0, lambda upstream: upstream * SCALE[0]


@tf.custom_gradient
def by_a_global(x):
    return x * 1.0, lambda upstream: upstream * FACTOR


@tf.custom_gradient
def drawing(x):
    return x * 1.0, lambda upstream: upstream * DRAWN.random()


@tf.custom_gradient
def counting(x):
    calls = 0

    def count():
        nonlocal calls
        calls += 1
        return float(calls)

    return x * 1.0, lambda upstream: upstream * count()


@tf.custom_gradient
def appending(x):
    parts = [x * 2.0]

    def gradient(upstream):
        parts.append(upstream)
        return upstream * parts[0] * float(len(parts))

    return x * 1.0, gradient


@tf.custom_gradient
def with_a_list_as_default(x):
    def gradient(upstream, held=[3.0]):  # noqa: B006
        held[0] += 1.0
        return upstream * held[0]

    return x * 1.0, gradient


@tf.custom_gradient
def failing(x):
    def gradient(upstream):
        raise ValueError("no gradient")

    return x * 1.0, gradient


REPLAYED = [softplus, straight_through, reversed_gradient, clipped, noting]
REPLAYED += [by_contents, by_a_global, drawing]
OTHERS = [of_second_order, counting, appending, with_a_list_as_default]


def name_of(function):
    return function.__name__


@pytest.mark.parametrize("function", [*REPLAYED, *OTHERS], ids=name_of)
def test_gradients(function):
    def program():
        global DRAWN, FACTOR
        SEEN.clear()
        DRAWN = np.random.default_rng(0)
        layer, x = keras.layers.Dense(4, activation=function), floats(3, 5)
        if function in REPLAYED:
            probe(layer)
        for step in range(4 * CALLS):
            SCALE[0], FACTOR = float(step), float(step % 5)
            with tf.GradientTape(persistent=True) as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.reduce_sum(layer(x) * (1.0 + step))
                slopes = tape.gradient(y, [x, *layer.trainable_variables])
                whole = tf.reduce_sum(slopes[0] ** 2)
            yield y, slopes, outer.gradient(whole, x), outer.gradient(whole, x), len(SEEN)

    compare(program)


def test_errors_of_gradient_functions():
    layer, x = keras.layers.Dense(4, activation=failing), floats(3, 5)
    with fastops.accelerated():
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x)
            with pytest.raises(ValueError, match="no gradient"):
                tape.gradient(y, x)
            layer(x)


def test_another_function_in_its_place():
    original = reversed_gradient._f

    def program():
        reversed_gradient._f = original
        layer, x = keras.layers.Dense(4, activation=softplus), floats(3, 5)
        probe(layer)
        for step in range(3 * CALLS):
            if step == CALLS:
                layer.activation = reversed_gradient
            elif step == 2 * CALLS:
                reversed_gradient._f = clipped._f
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x)
            yield y, tape.gradient(y, x)

    try:
        compare(program)
    finally:
        reversed_gradient._f = original


def test_steps_in_a_user_model():
    class Domain(keras.Model):
        def __init__(self):
            super().__init__()
            self.features = keras.layers.Dense(8, activation=softplus)
            self.head = keras.layers.Dense(1)

        def call(self, x):
            return self.head(reversed_gradient(self.features(x)))

    def program():
        model, x = Domain(), floats(4, 3)
        optimizer = keras.optimizers.Adam(0.01)
        probe(model)
        for _ in range(3 * CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x)))
            slopes = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            yield loss, slopes
        yield model.trainable_variables

    compare(program)
