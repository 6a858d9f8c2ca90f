"""Recurrent layers that go on from a state and return it: calls are replayed."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import (
    CALLS,
    LOST_MASK,
    compare,
    floats,
    outcome,
    plain,
    probe,
    told,
)
from keras import layers as L  # noqa: N812

import fastops

GIVES = {"return_sequences": True, "return_state": True}

LAYERS = {
    "SimpleRNN": lambda **given: L.SimpleRNN(3, **given),
    "GRU": lambda **given: L.GRU(3, **given),
    "GRU, reset before": lambda **given: L.GRU(3, reset_after=False, **given),
    "LSTM": lambda **given: L.LSTM(3, **given),
    "RNN of a cell": lambda **given: L.RNN(L.GRUCell(3), **given),
    "RNN of cells": lambda **given: L.RNN([L.GRUCell(3), L.LSTMCell(2)], **given),
    "Bidirectional GRU": lambda **given: L.Bidirectional(L.GRU(3, **given)),
    "Bidirectional LSTM": lambda **given: L.Bidirectional(L.LSTM(3, **given)),
}
"""By name, a function that makes a layer. Its state may be a tensor, a list, or nested."""


def steps(layer, number, *, form=list, sequences=True, **given):
    """Yield the results of calls that go on from the state of the call before."""
    states = None
    for seed in range(number):
        output, *states = layer(floats(2, 4, 3, seed=seed), initial_state=states, **given)
        yield output
        yield states
        states = form(states)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_that_go_on_from_a_state(name):
    def program():
        layer = LAYERS[name](**GIVES)
        probe(layer)
        yield from steps(layer, 2 * CALLS)
        yield layer.variables

    compare(program, native=True)


@pytest.mark.parametrize("name", ["SimpleRNN", "GRU", "LSTM"])
@pytest.mark.parametrize(
    "options",
    [
        {"return_state": True},
        {"go_backwards": True, **GIVES},
        {"unroll": True, **GIVES},
        {"zero_output_for_mask": True, **GIVES},
        {"dtype": "float64", **GIVES},
        {"dtype": "mixed_bfloat16", **GIVES},
        {"use_bias": False, "activation": "relu", **GIVES},
    ],
    ids=repr,
)
def test_options_of_layers(name, options):
    def program():
        layer = LAYERS[name](**options)
        probe(layer)
        yield from steps(layer, CALLS, training=False)

    compare(program, native=True)


@pytest.mark.parametrize("name", ["GRU", "LSTM", "Bidirectional GRU"])
def test_states_in_other_forms(name):
    """A list and a tuple of states are different arguments; so are no states, and a single one."""

    def program():
        layer = LAYERS[name](**GIVES)
        probe(layer)
        for form in (list, tuple, list):
            yield from steps(layer, CALLS, form=form)
        if name == "GRU":
            yield from steps(layer, CALLS, form=lambda states: states[0])

    compare(program)


@LOST_MASK
def test_masks_and_states():
    def program():
        layer = L.GRU(3, **GIVES)
        probe(layer)
        masks = [[[True, True, False, True], [True, False, False, False]], [[True] * 4] * 2]
        for mask in masks:
            yield from steps(layer, CALLS, mask=tf.constant(mask))

    compare(program)


@LOST_MASK
def test_embedded_masks_and_states():
    def program():
        embed, layer = L.Embedding(9, 3, mask_zero=True), L.LSTM(3, **GIVES)
        probe(layer)
        states = None
        for number in range(2 * CALLS):
            ids = tf.constant([[1, 2, 3, 0], [number % 9, 0, 0, 8]])
            output, *states = layer(embed(ids), initial_state=states)
            yield output
            yield states

    compare(program)


def test_changes_between_calls():
    """Weights, batch sizes, lengths and dtypes of states."""

    def program():
        layer = L.GRU(3, **GIVES)
        probe(layer)
        yield from steps(layer, CALLS)
        layer.set_weights([weight + 0.25 for weight in layer.get_weights()])
        yield from steps(layer, 2)
        layer.cell.kernel.assign(layer.cell.kernel * 2.0)
        yield from steps(layer, 2)
        for batch, length in ((3, 4), (2, 6), (1, 1), (2, 4)):
            states = tf.zeros((batch, 3))
            for seed in range(CALLS):
                output, states = layer(floats(batch, length, 3, seed=seed), initial_state=states)
                yield output
                yield states
        for dtype in ("float64", "float16", "float32"):
            for seed in range(CALLS):
                states = tf.cast(floats(2, 3, seed=seed), dtype)
                yield layer(floats(2, 4, 3, seed=seed), initial_state=states)
        layer.cell.recurrent_activation = keras.activations.tanh
        yield from steps(layer, CALLS)

    compare(program)


def test_errors_are_those_of_keras():
    def program():
        layer = L.GRU(3, **GIVES)
        layer(floats(2, 4, 3))
        for states in (tf.zeros((5, 3)), [tf.zeros((2, 7))], "a", [tf.zeros((2, 3))] * 2):
            for _ in range(CALLS):
                yield outcome(layer, floats(2, 4, 3), initial_state=states)
        yield from steps(layer, CALLS)

    compare(program)


@pytest.mark.parametrize("name", ["GRU", "LSTM", "Bidirectional GRU", "RNN of cells"])
def test_gradients_through_states(name):
    def program():
        layer = LAYERS[name](**GIVES)
        probe(layer)
        x = floats(2, 4, 3)
        _, *states = layer(x)
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                tape.watch([x, states])
                output, *ends = layer(x, initial_state=states, training=True)
                again, *ends = layer(x, initial_state=ends, training=True)
                loss = tf.reduce_sum(output * again) + tf.add_n(
                    [tf.reduce_sum(end**2) for end in tf.nest.flatten(ends)]
                )
            yield tape.gradient(loss, [x, states, layer.trainable_variables])

    compare(program)


def test_dropout_of_states():
    def program():
        layer = L.LSTM(3, dropout=0.4, recurrent_dropout=0.3, **GIVES)
        for training in (True, False):
            yield from steps(layer, CALLS, training=training)

    compare(program, replayed=None)


def test_stateful_layers():
    def program():
        layer = L.GRU(3, stateful=True, **GIVES)
        for number in range(2 * CALLS):
            states = tf.ones((2, 3)) if number % 3 == 2 else None
            yield layer(floats(2, 4, 3, seed=number), initial_state=states)
            if number == CALLS:
                layer.reset_state()
            yield layer.states

    compare(program, replayed=None)


def test_layers_inside_a_model_of_a_user():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.embed = L.Embedding(9, 4)
            self.gru = L.GRU(5, **GIVES)
            self.dense = L.Dense(9)

        def call(self, inputs, states=None, return_state=False, training=False):
            x = self.embed(inputs, training=training)
            x, states = self.gru(x, initial_state=states, training=training)
            x = self.dense(x, training=training)
            return (x, states) if return_state else x

    def program():
        model, states = Model(), None
        for number in range(2 * CALLS):
            ids = tf.constant([[number % 9]])
            x, states = model(inputs=ids, states=states, return_state=True)
            if not number:
                probe(model)
            yield x
            yield states
            yield model(tf.constant([[1, 2, 3]]))

    compare(program, native=True)


def test_variables_that_were_made_in_a_trace():
    """A model may be called in a traced function first, as in most training loops."""

    def program():
        layer = L.GRU(3, **GIVES)
        model = keras.Sequential([L.Dense(3), layer])
        optimizer = keras.optimizers.Adam(0.1)

        @tf.function
        def train(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(x)[0] ** 2)
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return loss

        for number in range(3):
            yield train(floats(2, 4, 3, seed=number))
            if not number:
                probe(layer)
                probe(model)
            yield from steps(layer, CALLS)
            for seed in range(CALLS):
                yield model(floats(2, 4, 3, seed=seed))
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(model(floats(2, 4, 3, seed=seed))[0])
                yield tape.gradient(loss, model.trainable_variables)
            layer.cell.kernel.assign_add(layer.cell.kernel * 0.5)
        yield model.variables

    compare(program)


def test_eager_steps_on_variables_that_were_made_in_a_trace():
    def program():
        model = keras.Sequential([L.Embedding(9, 3), L.LSTM(3), L.Dense(1)])
        optimizer = keras.optimizers.Adam(0.1)
        tf.function(model)(tf.constant([[1, 2]]))
        probe(optimizer, "apply")
        for number in range(2 * CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(tf.constant([[number % 9, 2], [3, 4]])) ** 2)
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            yield loss
        yield model.variables

    compare(program)


def test_threads():
    def go_on(layer, seed, results):
        states, given = None, []
        for number in range(3 * CALLS):
            x = floats(2, 4, 3, seed=seed + number)
            output, *states = layer(x, initial_state=states)
            given += [plain(output), plain(states)]
        results[seed] = given

    layer = L.LSTM(3, **GIVES)
    layer(floats(2, 4, 3))
    seeds = range(0, 400, 100)
    expected, results = {}, {}
    for seed in seeds:
        go_on(layer, seed, expected)
    with fastops.accelerated():
        go_on(layer, 0, {})
        threads = [threading.Thread(target=go_on, args=(layer, seed, results)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told(layer)["replayed"]
    assert results == expected


def test_arrays_as_states():
    def program():
        layer = L.GRU(3, **GIVES)
        for seed in range(CALLS):
            states = np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)
            yield layer(floats(2, 4, 3, seed=seed), initial_state=states)
            yield layer(np.ones((2, 4, 3), np.float32), initial_state=tf.constant(states))

    compare(program, replayed=None)
