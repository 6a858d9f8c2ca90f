"""A character-level recurrent network: traced training, and text generated eagerly."""

import keras
import numpy as np
import tensorflow as tf

from fastops_bench.programs import data
from fastops_bench.programs.shared import Times, options

SEQ_LENGTH, BATCH = 32, 32
EMBEDDING_DIM, RNN_UNITS = 32, 64


class MyModel(keras.Model):
    def __init__(self, vocab_size, embedding_dim, rnn_units):
        super().__init__()
        self.embedding = keras.layers.Embedding(vocab_size, embedding_dim)
        self.gru = keras.layers.GRU(rnn_units, return_sequences=True, return_state=True)
        self.dense = keras.layers.Dense(vocab_size)

    def call(self, inputs, states=None, return_state=False, training=False):
        x = self.embedding(inputs, training=training)
        x, states = self.gru(x, initial_state=states, training=training)
        x = self.dense(x, training=training)
        if return_state:
            return x, states
        return x


class OneStep:
    def __init__(self, model, chars_from_ids, ids_from_chars, temperature=1.0):
        self.temperature = temperature
        self.model = model
        self.chars_from_ids = chars_from_ids
        self.ids_from_chars = ids_from_chars
        # Never generate "[UNK]", which has the first id.
        self.prediction_mask = tf.one_hot(0, ids_from_chars.vocabulary_size(), on_value=-1e9)

    def generate_one_step(self, inputs, states=None):
        input_chars = tf.strings.unicode_split(inputs, "UTF-8")
        input_ids = self.ids_from_chars(input_chars).to_tensor()
        predicted_logits, states = self.model(inputs=input_ids, states=states, return_state=True)
        predicted_logits = predicted_logits[:, -1, :]
        predicted_logits = predicted_logits / self.temperature
        predicted_logits = predicted_logits + self.prediction_mask
        predicted_ids = tf.random.categorical(predicted_logits, num_samples=1)
        predicted_ids = tf.squeeze(predicted_ids, axis=-1)
        return self.chars_from_ids(predicted_ids), states


def split_input_target(sequence):
    return sequence[:-1], sequence[1:]


def main():
    args = options("A character-level recurrent network.", epochs=40, sentences=500, chars=60)
    keras.utils.set_random_seed(args.seed)
    text = data.text(args.sentences, args.seed)
    times = Times("step")
    vocab = sorted(set(text))
    ids_from_chars = keras.layers.StringLookup(vocabulary=vocab, mask_token=None)
    chars_from_ids = keras.layers.StringLookup(
        vocabulary=ids_from_chars.get_vocabulary(), invert=True, mask_token=None
    )
    all_ids = ids_from_chars(tf.strings.unicode_split(text, "UTF-8"))
    dataset = (
        tf.data.Dataset.from_tensor_slices(all_ids)
        .batch(SEQ_LENGTH + 1, drop_remainder=True)
        .map(split_input_target)
        .shuffle(10000)
        .batch(BATCH, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )
    model = MyModel(ids_from_chars.vocabulary_size(), EMBEDDING_DIM, RNN_UNITS)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(learning_rate=5e-3)

    @tf.function
    def train_step(inputs, labels):
        with tf.GradientTape() as tape:
            predictions = model(inputs, training=True)
            loss = loss_fn(labels, predictions)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    one_step = OneStep(model, chars_from_ids, ids_from_chars)
    losses, texts = [], []
    for _ in range(args.epochs):
        mean = keras.metrics.Mean()
        steps = 0
        for inputs, labels in dataset:
            loss = train_step(inputs, labels)
            mean.update_state(loss)
            steps += 1
        losses.append(float(mean.result()))

        states, next_char = None, tf.constant(["t"])
        result = [next_char]
        for _ in range(args.chars):
            next_char, states = one_step.generate_one_step(next_char, states=states)
            result.append(next_char)
        texts.append(tf.strings.join(result)[0].numpy())
        times.lap(steps)
    written = np.frombuffer(b"".join(texts), np.uint8)
    times.report(losses, [*model.get_weights(), written])


if __name__ == "__main__":
    main()
