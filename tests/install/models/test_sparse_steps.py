"""Replayed steps of optimizers, with gradients of rows, and on TensorFlow's own variables."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, probe

O = keras.optimizers  # noqa: E741

OPTIMIZERS = {
    "SGD": lambda: O.SGD(0.5),
    "SGD, momentum": lambda: O.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: O.Adam(0.01),
    "AdamW": lambda: O.AdamW(0.01),
    "Adagrad": lambda: O.Adagrad(0.1),
    "Adadelta": lambda: O.Adadelta(0.1),
    "Adafactor": lambda: O.Adafactor(0.01),
    "Adamax": lambda: O.Adamax(0.01),
    "Ftrl": lambda: O.Ftrl(0.1),
    "Lion": lambda: O.Lion(0.01),
    "Nadam": lambda: O.Nadam(0.01),
    "RMSprop": lambda: O.RMSprop(0.01),
    "RMSprop, momentum": lambda: O.RMSprop(0.01, momentum=0.9),
    "Adam, clipped": lambda: O.Adam(0.01, clipnorm=0.5),
    "SGD, clipped": lambda: O.SGD(0.1, global_clipnorm=0.5),
    "SGD, schedule": lambda: O.SGD(O.schedules.ExponentialDecay(0.1, 3, 0.5)),
}

KINDS = {"Keras's variables": keras.Variable, "TensorFlow's variables": tf.Variable}


def training(optimizer, variables, batches):
    """Yield the losses of steps with an embedding, and the variables."""
    table, weights = plain = [getattr(variable, "_value", variable) for variable in variables]
    for number in batches:
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, tf.constant([number % 5, 2, 2, 4]))
            loss = tf.reduce_sum((rows @ weights) ** 2)
        grads = tape.gradient(loss, plain)
        assert isinstance(grads[0], tf.IndexedSlices)
        optimizer.apply_gradients(zip(grads, variables, strict=True))
        yield loss
        yield [np.asarray(variable) for variable in (*plain, *optimizer.variables)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_with_gradients_of_rows(name, kind):
    def program():
        optimizer = OPTIMIZERS[name]()
        variables = [KINDS[kind](floats(5, 3)), KINDS[kind](floats(3, 2, seed=1))]
        probe(optimizer, "apply")
        yield from training(optimizer, variables, range(2 * CALLS))

    # Keras reads whether a divisor has zeros or NaNs after it has assigned to an accumulator.
    # Adagrad adds rows to its accumulator in place, so that no replay can compare this before.
    compare(program, replayed=name != "Adagrad")


def test_steps_with_two_gradients_of_rows():
    def program():
        optimizer = O.Adam(0.1)
        variables = [tf.Variable(floats(5, 3)), tf.Variable(floats(4, 2, seed=1))]
        probe(optimizer, "apply")
        for number in range(2 * CALLS):
            grads = [
                tf.IndexedSlices(
                    floats(2, 3, seed=number), tf.constant([1, number % 5]), tf.constant([5, 3])
                ),
                tf.IndexedSlices(
                    floats(3, 2, seed=number), tf.constant([1, 1, number % 4]), tf.constant([4, 2])
                ),
            ]
            optimizer.apply_gradients(zip(grads, variables, strict=True))
            yield variables

    compare(program)


def test_steps_on_dense_gradients_of_tensorflows_variables():
    def program():
        optimizer = O.Adam(0.1)
        variables = [tf.Variable(floats(3, 2)), tf.Variable(floats(2, seed=1))]
        probe(optimizer, "apply")
        for number in range(2 * CALLS):
            grads = [floats(3, 2, seed=number), floats(2, seed=number)]
            if number == CALLS:
                variables[0].assign(variables[0] * 0.5)
            optimizer.apply_gradients(zip(grads, variables, strict=True))
            yield variables
            yield optimizer.variables

    compare(program, native=True)


def test_numbers_of_rows_and_kinds_of_gradients_may_differ():
    def program():
        optimizer = O.SGD(0.1)
        variable = tf.Variable(floats(5, 2))
        for number in range(3 * CALLS):
            rows = [number % 5, 1, 1][: 1 + number % 3]
            grad = tf.IndexedSlices(floats(len(rows), 2, seed=number), tf.constant(rows), [5, 2])
            if number % 4 == 3:
                grad = tf.convert_to_tensor(grad)
            optimizer.apply_gradients([(grad, variable)])
            yield variable

    compare(program)


FUNCTIONS = {
    "clip_by_norm": lambda slices: tf.clip_by_norm(slices, 0.5),
    "clip_by_global_norm": lambda slices: tf.clip_by_global_norm([slices, slices], 0.5),
    "global_norm": lambda slices: tf.linalg.global_norm([slices]),
    "scalar_mul": lambda slices: tf.math.scalar_mul(0.5, slices),
    "multiply": lambda slices: keras.ops.multiply(slices, 0.5),
    "cast": lambda slices: tf.cast(slices, tf.float64),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_rows(name):
    def program():
        for number in range(CALLS):
            slices = tf.IndexedSlices(floats(2, 3, seed=number), tf.constant([1, 4]))
            result = FUNCTIONS[name](slices)
            for part in tf.nest.flatten(result, expand_composites=True):
                yield part
            for part in tf.nest.flatten(result):
                yield type(part)
                yield getattr(part, "indices", None) is slices.indices
            yield slices.values

    compare(program)


def test_other_variables_and_mixed_lists():
    def program():
        optimizer = O.SGD(0.1)
        variables = [tf.Variable(floats(2)), tf.Variable(floats(2, seed=1))]
        optimizer.build(variables)
        for number in range(3 * CALLS):
            chosen = [variables[number % 2]] if number % 3 else variables[::-1]
            grads = [floats(2, seed=number)] * len(chosen)
            optimizer.apply_gradients(zip(grads, chosen, strict=True))
            yield variables

    compare(program)


def test_variables_that_are_given_twice_or_replaced():
    def program():
        for number in range(CALLS):
            optimizer = O.SGD(0.1)
            variable = tf.Variable(floats(2, seed=number))
            for _ in range(CALLS):
                optimizer.apply([floats(2)], [variable])
                optimizer.apply((floats(2),), (variable,))
            yield variable
            del variable

    compare(program)


def test_constraints_and_warnings():
    def program():
        optimizer = O.SGD(0.1)
        variables = [
            tf.Variable(floats(2), constraint=lambda x: tf.clip_by_value(x, -0.1, 0.1)),
            tf.Variable(floats(2)),
        ]
        for _ in range(2 * CALLS):
            optimizer.apply([floats(2), floats(2, seed=1)], variables)
            yield variables

    compare(program)
