"""Programs that end before recordings and plans could pay.

`python -m fastops_bench.short_programs NAME` runs one of them, and prints a digest of its results.
Programs that change something between calls are named after what changes.
"""

import hashlib
import sys

import keras
import numpy as np
import tensorflow as tf


def draws(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def sequential():
    return keras.Sequential(
        [
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


def fresh_models(calls, models=10):
    """Make models, and call each a few times."""
    x = tf.constant(draws(8, 32))
    for _ in range(models):
        model = sequential()
        for _ in range(calls):
            y = model(x)
        yield y


def one_function_many_shapes():
    """Trace a function for 40 shapes, and call it 12 times for each."""

    @tf.function
    def f(x):
        return tf.reduce_sum(tf.nn.relu(x @ tf.transpose(x)) + 1.0, axis=0)

    for rows in range(1, 41):
        x = tf.constant(draws(rows, 8))
        for _ in range(12):
            y = f(x)
        yield y


def many_functions():
    """Trace 20 functions, and call each of them three times."""
    x = tf.constant(draws(4, 4))
    for number in range(20):

        @tf.function
        def f(x, by=float(number)):
            return tf.reduce_mean(tf.tanh(x) * by + x, axis=-1)

        for _ in range(3):
            y = f(x)
        yield y


def made_called_compiled_trained(models=25):
    """Make a model, call it four times, compile it, train it four times; repeat."""
    x, y = draws(8, 32), draws(8, 10, seed=1)
    for _ in range(models):
        model = sequential()
        for _ in range(4):
            model(x)
        model.compile("sgd", "mse")
        for _ in range(4):
            loss = model.train_on_batch(x, y)
        yield loss


def changing(change, calls=60):
    """Call a model many times, and change something of it each time."""
    x = tf.constant(draws(8, 32))
    model = sequential()
    for number in range(calls):
        y = model(x)
        change(model, number)
    yield y


def an_attribute(model, number):
    model.note = number


def trainable(model, number):
    model.layers[0].trainable = number % 2 == 0


def an_activation(model, number):
    model.layers[1].activation = (keras.activations.relu, keras.activations.tanh)[number % 2]


def a_list(model, number):
    model.layers[0].history = [*getattr(model.layers[0], "history", []), number]


def weights(model, number):
    model.layers[0].kernel.assign(model.layers[0].kernel * 0.5)


def sizes():
    """Call a model with another number of rows each time."""
    model = sequential()
    for rows in range(1, 60):
        yield model(tf.constant(draws(rows, 32)))


def optimizer_rate():
    """Make steps of an optimizer with another rate each time."""
    model = sequential()
    x = tf.constant(draws(8, 32))
    model(x)
    optimizer = keras.optimizers.Adam()
    for step in range(40):
        optimizer.learning_rate = 1e-3 / (step + 1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        yield loss


def unrolled_cells():
    """Unroll a recurrent cell by hand, eagerly, for a few sequences."""
    cell = keras.layers.LSTMCell(16)
    for number in range(4):
        xs = tf.constant(draws(4, 20, 8, seed=number))
        state = cell.get_initial_state(batch_size=4)
        for step in range(20):
            y, state = cell(xs[:, step], state)
        yield y


def mobile_net():
    """Train MobileNetV2 on 15 batches."""
    keras.utils.set_random_seed(0)
    model = keras.applications.MobileNetV2(input_shape=(32, 32, 3), weights=None, classes=10)
    model.compile("adam", "sparse_categorical_crossentropy")
    x, y = draws(4, 32, 32, 3), np.arange(4)
    for _ in range(15):
        yield model.train_on_batch(x, y)


PROGRAMS = {
    "fresh models, 4 calls": lambda: fresh_models(4),
    "fresh models, 8 calls": lambda: fresh_models(8),
    "one function, 40 shapes": one_function_many_shapes,
    "20 functions, 3 calls": many_functions,
    "made, called, compiled, trained": made_called_compiled_trained,
    "unrolled cells": unrolled_cells,
    "MobileNetV2, 15 steps": mobile_net,
    "changes an attribute": lambda: changing(an_attribute),
    "changes trainable": lambda: changing(trainable),
    "changes an activation": lambda: changing(an_activation),
    "changes a list": lambda: changing(a_list),
    "changes weights": lambda: changing(weights),
    "changes sizes": sizes,
    "changes a rate": optimizer_rate,
}
"""Generators of the programs' results, by name."""


def main():
    keras.utils.set_random_seed(1)
    digest = hashlib.sha256()
    for value in PROGRAMS[sys.argv[1]]():
        digest.update(np.asarray(value).tobytes())
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
