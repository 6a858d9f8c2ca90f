"""A Wasserstein GAN with gradient penalty (Gulrajani et al., 2017) on points of eight Gaussians."""

import keras
import tensorflow as tf
from keras import layers

from fastops_bench.programs import data
from fastops_bench.programs.shared import Times, options

NOISE, BATCH = 8, 64
CRITIC_STEPS, PENALTY = 5, 10.0


def make_generator():
    return keras.Sequential(
        [
            keras.Input((NOISE,)),
            layers.Dense(64, activation="relu"),
            layers.Dense(64, activation="relu"),
            layers.Dense(2),
        ],
        name="generator",
    )


def make_critic():
    return keras.Sequential(
        [
            keras.Input((2,)),
            layers.Dense(64),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Dropout(0.1),
            layers.Dense(64),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Dropout(0.1),
            layers.Dense(1),
        ],
        name="critic",
    )


class WGAN:
    def __init__(self, critic, generator):
        self.critic = critic
        self.generator = generator
        self.c_optimizer = keras.optimizers.Adam(learning_rate=1e-4, beta_1=0.5, beta_2=0.9)
        self.g_optimizer = keras.optimizers.Adam(learning_rate=1e-4, beta_1=0.5, beta_2=0.9)

    def gradient_penalty(self, real, fake):
        alpha = tf.random.uniform([real.shape[0], 1], 0.0, 1.0)
        interpolated = real + alpha * (fake - real)
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            scores = self.critic(interpolated, training=True)
        grads = gp_tape.gradient(scores, [interpolated])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=1) + 1e-12)
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_critic(self, real):
        noise = tf.random.normal(shape=(real.shape[0], NOISE))
        with tf.GradientTape() as tape:
            fake = self.generator(noise, training=True)
            fake_scores = self.critic(fake, training=True)
            real_scores = self.critic(real, training=True)
            cost = tf.reduce_mean(fake_scores) - tf.reduce_mean(real_scores)
            loss = cost + PENALTY * self.gradient_penalty(real, fake)
        grads = tape.gradient(loss, self.critic.trainable_variables)
        self.c_optimizer.apply_gradients(zip(grads, self.critic.trainable_variables))
        return loss

    def train_generator(self, batch_size):
        noise = tf.random.normal(shape=(batch_size, NOISE))
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(self.critic(self.generator(noise, training=True), training=True))
        grads = tape.gradient(loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_variables))
        return loss


def main():
    args = options("A WGAN with gradient penalty.", steps=200)
    keras.utils.set_random_seed(args.seed)
    points = data.points(2048, args.seed)
    times = Times("step")
    dataset = (
        tf.data.Dataset.from_tensor_slices(points)
        .shuffle(len(points))
        .repeat()
        .batch(BATCH, drop_remainder=True)
    )
    gan = WGAN(make_critic(), make_generator())
    batches = iter(dataset)
    losses = []
    for _ in range(args.steps):
        for _ in range(CRITIC_STEPS):
            c_loss = gan.train_critic(next(batches))
        g_loss = gan.train_generator(BATCH)
        losses += [float(c_loss), float(g_loss)]
        times.lap()
    times.report(losses, gan.critic.get_weights() + gan.generator.get_weights())


if __name__ == "__main__":
    main()
