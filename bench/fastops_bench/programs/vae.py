"""A variational autoencoder (Kingma and Welling, 2014) of small images, trained eagerly."""

import keras
import tensorflow as tf
from keras import layers

from fastops_bench.programs.data import SIDE, images
from fastops_bench.programs.shared import Times, options

LATENT, BATCH = 4, 64


class VAE(keras.Model):
    def __init__(self, latent_dim):
        super().__init__()
        self.latent_dim = latent_dim
        self.encoder = keras.Sequential(
            [
                keras.Input((SIDE * SIDE,)),
                layers.Dense(128, activation="relu"),
                layers.Dense(64, activation="relu"),
                layers.Dense(latent_dim + latent_dim),
            ]
        )
        self.decoder = keras.Sequential(
            [
                keras.Input((latent_dim,)),
                layers.Dense(64, activation="relu"),
                layers.Dense(128, activation="relu"),
                layers.Dense(SIDE * SIDE),
            ]
        )

    def encode(self, x):
        mean, logvar = tf.split(self.encoder(x), num_or_size_splits=2, axis=1)
        return mean, logvar

    def reparameterize(self, mean, logvar):
        eps = tf.random.normal(shape=mean.shape)
        return eps * tf.exp(logvar * 0.5) + mean

    def decode(self, z, apply_sigmoid=False):
        logits = self.decoder(z)
        if apply_sigmoid:
            return tf.sigmoid(logits)
        return logits


def compute_loss(model, x):
    mean, logvar = model.encode(x)
    z = model.reparameterize(mean, logvar)
    logits = model.decode(z)
    cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=x)
    reconstruction = tf.reduce_sum(cross_entropy, axis=1)
    divergence = -0.5 * tf.reduce_sum(1 + logvar - tf.square(mean) - tf.exp(logvar), axis=1)
    return tf.reduce_mean(reconstruction + divergence)


def train_step(model, x, optimizer):
    with tf.GradientTape() as tape:
        loss = compute_loss(model, x)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def main():
    args = options("A variational autoencoder.", epochs=40, images=2048)
    keras.utils.set_random_seed(args.seed)
    train_images = images(args.images, args.seed)
    test_images = images(args.images // 8, args.seed + 1)
    times = Times("step")
    train_dataset = (
        tf.data.Dataset.from_tensor_slices(train_images).shuffle(args.images).batch(BATCH)
    )
    test_dataset = tf.data.Dataset.from_tensor_slices(test_images).batch(BATCH)
    model = VAE(LATENT)
    optimizer = keras.optimizers.Adam(1e-3)
    seen = tf.random.normal(shape=[16, LATENT])
    losses, elbos = [], []
    for _ in range(args.epochs):
        steps = 0
        for train_x in train_dataset:
            losses.append(float(train_step(model, train_x, optimizer)))
            steps += 1
        loss = keras.metrics.Mean()
        for test_x in test_dataset:
            loss(compute_loss(model, test_x))
        elbos.append(-float(loss.result()))
        times.lap(steps)
    predictions = model.decode(seen, apply_sigmoid=True)
    times.report(losses + elbos, [*model.get_weights(), predictions.numpy()])


if __name__ == "__main__":
    main()
