"""A physics-informed neural network (Raissi et al., 2019) for Burgers' equation, in eager mode.

The network u(t, x) solves u_t + u u_x = v u_xx, with u(0, x) = -sin(pi x) and u(t, -1) = u(t, 1) =
0. The loss contains derivatives of u by t and x. Training differentiates the loss by the weights.
"""

import keras
import numpy as np
import tensorflow as tf

from fastops_bench.programs.data import collocation
from fastops_bench.programs.shared import Times, options

VISCOSITY = 0.01 / np.pi


class PINN(keras.Model):
    def __init__(self, hidden_layers=4, neurons=20):
        super().__init__()
        self.hidden = [
            keras.layers.Dense(
                neurons, activation=tf.keras.activations.tanh, kernel_initializer="glorot_normal"
            )
            for _ in range(hidden_layers)
        ]
        self.out = keras.layers.Dense(1)

    def call(self, inputs):
        t, x = inputs[:, 0:1], inputs[:, 1:2]
        z = tf.concat([2.0 * t - 1.0, x], axis=1)
        for layer in self.hidden:
            z = layer(z)
        return self.out(z)


def residual(model, t, x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(t)
        tape.watch(x)
        u = model(tf.stack([t[:, 0], x[:, 0]], axis=1))
        u_x = tape.gradient(u, x)
    u_t = tape.gradient(u, t)
    u_xx = tape.gradient(u_x, x)
    del tape
    return u_t + u * u_x - VISCOSITY * u_xx


def compute_loss(model, t, x, data):
    loss = tf.reduce_mean(tf.square(residual(model, t, x)))
    for points, u in data:
        loss += tf.reduce_mean(tf.square(u - model(points)))
    return loss


def main():
    args = options("A physics-informed neural network.", steps=700)
    keras.utils.set_random_seed(args.seed)
    t, x, data = collocation(args.seed)
    times = Times("step")
    t, x = tf.convert_to_tensor(t), tf.convert_to_tensor(x)
    data = [(tf.convert_to_tensor(points), tf.convert_to_tensor(u)) for points, u in data]
    model = PINN()
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([100, 500], [1e-2, 1e-3, 5e-4])
    optimizer = keras.optimizers.Adam(learning_rate=rate)
    losses = []
    for _ in range(args.steps):
        with tf.GradientTape() as tape:
            loss = compute_loss(model, t, x, data)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        losses.append(loss.numpy())
        times.lap()
    times.report(losses, model.get_weights())


if __name__ == "__main__":
    main()
