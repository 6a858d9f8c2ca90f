"""Gradients and updates of variables in unchanged programs, with `fastops.install` and without."""

import numpy as np
import pytest
import tensorflow as tf
from common import Arm

import fastops

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32) / 8


X, W = tf.constant(1.5), tf.constant(2.5)
INPUTS, TARGETS = tf.constant(normal(8, 32)), tf.constant(normal(8, 1))
SHAPES = [(32, 32), (32,), (32, 32), (32,), (32, 1), (1,)]
WEIGHTS = [tf.Variable(normal(*shape)) for shape in SHAPES]
RATE = tf.constant(1e-5)
BIAS, UPDATE = WEIGHTS[1], tf.zeros([32])


def multiplication():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = X * W
    return tape.gradient(y, X)


def training_step():
    w1, b1, w2, b2, w3, b3 = WEIGHTS
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.matmul(INPUTS, w1) + b1)
        hidden = tf.nn.relu(tf.matmul(hidden, w2) + b2)
        error = tf.matmul(hidden, w3) + b3 - TARGETS
        loss = tf.reduce_mean(error * error)
    for weight, gradient in zip(WEIGHTS, tape.gradient(loss, WEIGHTS), strict=True):
        weight.assign_sub(RATE * gradient)


STATEMENTS = [
    "multiplication()",
    "training_step()",
    "BIAS.assign_sub(UPDATE)",
    "BIAS.assign(UPDATE)",
    "BIAS.numpy()",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_gradients(statement, race):
    arms = [
        Arm("fastops.install", statement, globals(), fastops.accelerated),
        Arm("TensorFlow", statement, globals()),
    ]
    race("gradients", statement, arms)
