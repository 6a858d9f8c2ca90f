"""Layers that look words up in a table which they hold: calls are replayed."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, outcome, probe, told
from keras import layers as L  # noqa: N812

import fastops

WORDS = ["a", "b", "c", "dd"]
NUMBERS = [3, 5, 7, 11]
TEXT = tf.constant([["a", "c", "zz"], ["dd", "", "b"]])
IDS = tf.constant([[3, 11, 4], [5, -1, 0]], tf.int64)

LAYERS = {
    "StringLookup": (lambda **given: L.StringLookup(vocabulary=WORDS, **given), TEXT),
    "IntegerLookup": (lambda **given: L.IntegerLookup(vocabulary=NUMBERS, **given), IDS),
    "inverted": (
        lambda **given: L.StringLookup(vocabulary=WORDS, invert=True, **given),
        tf.constant([[0, 1, 9], [2, 4, 3]], tf.int64),
    ),
    "hashed": (
        lambda **given: L.StringLookup(vocabulary=WORDS, num_oov_indices=3, salt=[1, 2], **given),
        TEXT,
    ),
    "hashed numbers": (
        lambda **given: L.IntegerLookup(vocabulary=NUMBERS, num_oov_indices=3, **given),
        IDS,
    ),
}


@pytest.mark.parametrize("mask", [{}, {"mask_token": ""}], ids=["no mask", "mask"])
@pytest.mark.parametrize("name", LAYERS)
def test_lookups(name, mask):
    make, given = LAYERS[name]
    if mask and given.dtype == tf.int64:
        mask = {"mask_token": "none" if name == "inverted" else 0}

    def program():
        layer = make(**mask)
        probe(layer)
        for number in range(CALLS):
            yield words(layer(tf.roll(given, number, 0)))
            yield words(layer(given[0]))
            yield words(layer(given[0, number % 3]))

    compare(program)


@pytest.mark.parametrize("mode", ["one_hot", "multi_hot", "count", "tf_idf"])
def test_encoded_words(mode):
    options = {"idf_weights": [0.1, 0.2, 0.3, 0.4]} if mode == "tf_idf" else {}

    def program():
        layer = L.StringLookup(vocabulary=WORDS, output_mode=mode, **options)
        probe(layer)
        for number in range(CALLS):
            yield layer(tf.roll(TEXT, number, 0))

    compare(program)


def test_ragged_and_sparse_words():
    def program():
        layer = L.StringLookup(vocabulary=WORDS)
        probe(layer)
        for number in range(CALLS):
            ragged = tf.RaggedTensor.from_row_lengths(TEXT[number % 2], [1, 2])
            result = layer(ragged)
            yield type(result), result.dtype, result.values, result.row_splits
            result = layer(tf.sparse.from_dense(TEXT))
            yield type(result), result.indices, result.values, result.dense_shape

    compare(program)


def test_other_words_between_calls():
    """A layer gets another table with each vocabulary."""

    def program():
        layer = L.StringLookup(vocabulary=WORDS)
        probe(layer)
        for vocabulary in (WORDS, WORDS[::-1], ["zz", *WORDS], ["q"]):
            layer.set_vocabulary(vocabulary)
            for _ in range(CALLS):
                yield layer(TEXT)

    compare(program)


def test_adapted_layers():
    def program():
        layer = L.StringLookup()
        for number in range(3):
            layer.adapt(tf.data.Dataset.from_tensor_slices(WORDS[number:] * 2))
            probe(layer)
            for _ in range(CALLS):
                yield layer(TEXT)

    compare(program)


def test_unknown_words_that_are_no_words():
    """Without an index for unknown words, the values of the words decide whether a call fails."""

    def program():
        layer = L.StringLookup(vocabulary=WORDS, num_oov_indices=0)
        for number in range(2 * CALLS):
            yield outcome(layer, TEXT[0, :2])
            if number % 3 == 2:
                yield outcome(layer, TEXT)

    compare(program)


def test_arrays_and_lists():
    def program():
        layer = L.StringLookup(vocabulary=WORDS)
        for _ in range(CALLS):
            yield layer(np.array(WORDS))
            yield layer(WORDS)
            yield layer("dd")

    compare(program, replayed=None)


def test_models_with_lookups():
    def program():
        inputs = keras.Input((3,), dtype="string")
        x = L.Embedding(6, 4)(L.StringLookup(vocabulary=WORDS)(inputs))
        model = keras.Model(inputs, L.Dense(2)(L.GRU(3)(x)))
        probe(model)
        for number in range(CALLS):
            yield model(tf.roll(TEXT, number, 1))

    compare(program)


def test_vectors_of_texts():
    def program():
        layer = L.TextVectorization(vocabulary=WORDS, output_sequence_length=4)
        bags = L.TextVectorization(vocabulary=WORDS, output_mode="count")
        for number in range(2 * CALLS):
            texts = tf.constant(["a c zz", "", "dd B! a a", "b"])[: 1 + number % 4]
            yield layer(texts)
            yield bags(texts)

    compare(program, replayed=None)


def test_gradients_beside_lookups():
    def program():
        lookup, embed = L.StringLookup(vocabulary=WORDS), L.Embedding(6, 4)
        probe(lookup)
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(embed(lookup(TEXT)) ** 2)
            slices = tape.gradient(loss, embed.trainable_variables)[0]
            yield slices.values, slices.indices

    compare(program)


def test_tables_that_change():
    """A recording does not keep what was in the table."""

    @fastops.keras.replayable
    class Counted(keras.Layer):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)

        def call(self, x):
            return self.table.lookup(x), self.table.size()

    def program():
        layer = Counted()
        probe(layer)
        for number in range(2 * CALLS):
            yield layer(TEXT)
            if number % 3 == 2:
                layer.table.insert(TEXT[0, :1], tf.constant([number], tf.int64))
                layer.table.remove(TEXT[1, :1])

    compare(program)


def test_calls_that_write_to_a_table_are_not_replayed():
    @fastops.keras.replayable
    class Counting(keras.Layer):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

        def call(self, x):
            self.table.insert(x, self.table.lookup(x) + 1)
            return self.table.lookup(x)

    def program():
        layer = Counting()
        probe(layer)
        for _ in range(2 * CALLS):
            yield layer(TEXT)

    compare(program, replayed=False)


def test_tables_of_modules_are_not_replayed():
    """The guards do not cover a table that the layer does not hold."""
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(4, dtype=tf.int64)), -1
    )

    class Holder:
        held = table

    @fastops.keras.replayable
    class Reading(keras.Layer):
        def call(self, x):
            return Holder.held.lookup(x)

    def program():
        layer = Reading()
        for _ in range(2 * CALLS):
            yield layer(TEXT)

    compare(program)


def test_tables_die_with_their_layer():
    with fastops.accelerated():
        layer = L.StringLookup(vocabulary=WORDS)
        table = weakref.ref(layer.lookup_table)
        for _ in range(CALLS):
            layer(TEXT)
        assert told(layer)["replayed"]
        del layer
        gc.collect()
        assert table() is None


def test_objects_of_a_class_keep_their_tables():
    """Recordings that objects share have no table."""

    def program():
        for number in range(6):
            layer = L.StringLookup(vocabulary=WORDS[number % 3 :])
            for _ in range(CALLS):
                yield layer(TEXT)
            del layer
            gc.collect()
        yield L.Dense(2)(floats(1, 2)).shape

    compare(program)


def words(value):
    """Return a tensor of texts as a list, which can be compared."""
    return np.array(value.numpy()).tolist() if value.dtype == tf.string else value
