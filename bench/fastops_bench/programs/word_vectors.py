"""Word vectors by skip-grams (Mikolov et al., 2013), with a sampled softmax, in eager mode."""

import keras
import numpy as np
import tensorflow as tf

from fastops_bench.programs import data
from fastops_bench.programs.shared import Times, options

EMBEDDING_SIZE, NUM_SAMPLED, BATCH = 64, 32, 128


def main():
    args = options("Word vectors.", steps=4000, lap=50)
    tf.random.set_seed(args.seed)
    corpus, rng = data.corpus(50_000, args.seed), np.random.default_rng(args.seed)
    times = Times("step")
    with tf.device("/CPU:0"):
        embedding = tf.Variable(tf.random.normal([data.VOCABULARY, EMBEDDING_SIZE]))
        softmax_weights = tf.Variable(tf.random.truncated_normal([data.VOCABULARY, EMBEDDING_SIZE]))
        softmax_biases = tf.Variable(tf.zeros([data.VOCABULARY]))
    variables = [embedding, softmax_weights, softmax_biases]
    optimizer = keras.optimizers.SGD(0.5)

    def get_embedding(x):
        with tf.device("/CPU:0"):
            return tf.nn.embedding_lookup(embedding, x)

    def sampled_loss(x_embed, y):
        with tf.device("/CPU:0"):
            return tf.reduce_mean(
                tf.nn.sampled_softmax_loss(
                    weights=softmax_weights,
                    biases=softmax_biases,
                    labels=y,
                    inputs=x_embed,
                    num_sampled=NUM_SAMPLED,
                    num_classes=data.VOCABULARY,
                )
            )

    def evaluate(x_embed):
        """Compute the cosine similarity of some words and all words."""
        with tf.device("/CPU:0"):
            x_embed_norm = x_embed / tf.sqrt(tf.reduce_sum(tf.square(x_embed), 1, keepdims=True))
            embedding_norm = embedding / tf.sqrt(
                tf.reduce_sum(tf.square(embedding), 1, keepdims=True)
            )
            return tf.matmul(x_embed_norm, embedding_norm, transpose_b=True)

    def run_optimization(x, y):
        with tf.device("/CPU:0"), tf.GradientTape() as tape:
            loss = sampled_loss(get_embedding(x), y)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    x_test = np.array([0, 1, 100, 200, 500, 900])
    losses, nearest = [], []
    for step in range(1, args.steps + 1):
        batch_x, batch_y = data.neighbors(corpus, BATCH, rng)
        batch_x, batch_y = batch_x.astype(np.int32), batch_y.reshape(BATCH, 1)
        losses.append(float(run_optimization(batch_x, batch_y)))
        if step % args.lap == 0:
            similarity = evaluate(get_embedding(x_test))
            nearest.append(tf.math.top_k(similarity, k=6).indices.numpy())
            times.lap(args.lap)
    times.report(losses, [*(variable.numpy() for variable in variables), *nearest])


if __name__ == "__main__":
    main()
