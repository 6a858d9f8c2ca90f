"""Unchanged programs, with `fastops.install` and without."""

import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from pytest_fastops.race import Arm

import fastops
from fastops_bench.common import long_but

rng = np.random.default_rng(0)


def normal(*shape):
    return tf.constant(rng.normal(size=shape).astype(np.float32) / 8)


# ---------------------------------------------------------------------------------------------
# Calls of public functions, on small tensors
# ---------------------------------------------------------------------------------------------

a, b = tf.constant(1.5), tf.constant(2.5)
x, m, n = tf.constant([1.0, 2.0, 3.0, 4.0]), normal(2, 2), normal(2, 2)
i, flags, at = (
    tf.constant([1, 2, 3, 4]),
    tf.constant([True, False, True, False]),
    tf.constant([0, 2]),
)
labels, weight = tf.constant([0, 1]), tf.Variable(normal(2, 2))

TEXT = """
a + b; 2.0 * x; x - 1.0; x / 2.0; x ** 2.0; -x; x > 2.0; x == x; weight + m; m @ n
x[0]; x[1:3]; m[:, 0]; m[..., tf.newaxis]
tf.add(x, x); tf.subtract(x, x); tf.multiply(x, x); tf.divide(x, x); tf.pow(x, x); tf.abs(x)
tf.square(x); tf.sqrt(x); tf.exp(x); tf.math.log(x); tf.tanh(x); tf.sigmoid(x); tf.sign(x)
tf.round(x); tf.floor(x); tf.maximum(x, x); tf.clip_by_value(x, 0.0, 3.0); tf.cumsum(x)
tf.equal(x, x); tf.less(x, x); tf.logical_and(flags, flags); tf.where(flags, x, x)
tf.matmul(m, n); tf.matmul(m, weight); tf.tensordot(m, n, 1); tf.einsum("ij,jk->ik", m, n)
tf.linalg.matvec(m, m[0]); tf.norm(m)
tf.reduce_sum(m); tf.reduce_mean(m, axis=0); tf.reduce_max(m); tf.reduce_any(flags)
tf.reduce_logsumexp(m); tf.math.reduce_std(m); tf.argmax(m, axis=1); tf.math.top_k(x, 2)
tf.reshape(m, [4]); tf.transpose(m); tf.expand_dims(x, 0); tf.squeeze(m); tf.tile(x, [2])
tf.concat([x, x], 0); tf.stack([x, x]); tf.unstack(x); tf.split(x, 2); tf.gather(x, at)
tf.pad(m, [[1, 1], [0, 0]]); tf.broadcast_to(x, [2, 4]); tf.reverse(x, [0])
tf.constant(1.0); tf.constant([1.0, 2.0]); tf.convert_to_tensor(x); tf.cast(x, tf.int32)
tf.zeros([4]); tf.ones([4]); tf.fill([4], 1.0); tf.zeros_like(x); tf.range(5); tf.one_hot(labels, 3)
tf.identity(x); tf.stop_gradient(x); tf.shape(x); tf.size(x)
tf.nn.relu(x); tf.nn.softmax(m); tf.nn.softplus(x); tf.nn.leaky_relu(x); tf.nn.bias_add(m, m[0])
tf.nn.sigmoid_cross_entropy_with_logits(labels=m, logits=n)
tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=m)
tf.random.normal([4]); tf.random.uniform([4])
weight.read_value(); weight.numpy(); weight.assign(m); weight.assign_add(m)
"""
CALLS = [call.strip() for line in TEXT.strip().splitlines() for call in line.split(";")]
SHORT = (
    *("a + b", "2.0 * x", "x[0]", "tf.matmul(m, n)", "tf.reshape(m, [4])", "tf.reduce_sum(m)"),
    *("tf.zeros([4])", "tf.cast(x, tf.int32)", "tf.where(flags, x, x)", "tf.one_hot(labels, 3)"),
)
"""The calls that are not marked as long."""


# ---------------------------------------------------------------------------------------------
# Programs
# ---------------------------------------------------------------------------------------------

row, rate = normal(1, 32), tf.constant(1e-5)
inputs, targets = normal(8, 32), normal(8, 1)
weights = [
    tf.Variable(normal(*shape)) for shape in ((32, 32), (32,), (32, 32), (32,), (32, 1), (1,))
]


def multiplication():
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = a * b
    return tape.gradient(y, a)


def perceptron(values):
    w1, b1, w2, b2, w3, b3 = weights
    hidden = tf.nn.relu(tf.matmul(values, w1) + b1)
    hidden = tf.nn.relu(tf.matmul(hidden, w2) + b2)
    return tf.matmul(hidden, w3) + b3


def training_step():
    with tf.GradientTape() as tape:
        error = perceptron(inputs) - targets
        loss = tf.reduce_mean(error * error)
    for variable, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        variable.assign_sub(rate * gradient)


cell = keras.layers.LSTMCell(16)
states = [normal(1, 16), normal(1, 16)]
model = keras.Sequential([keras.layers.Dense(size) for size in (32, 32, 1)])
cell(row, states)
model.compile(optimizer="adam", loss="mse", run_eagerly=True)
model.train_on_batch(inputs, targets)

PROGRAMS = {
    "three-layer perceptron on one row": "perceptron(row)",
    "gradient of one multiplication": "multiplication()",
    "training step of the perceptron": "training_step()",
    "Keras LSTM cell on one row": "cell(row, states)",
    "Keras Sequential of three Dense layers on one row": "model(row)",
    "its eager training step with Adam": "model.train_on_batch(inputs, targets)",
}

large = normal(768, 768)
traced = tf.function(perceptron)

NO_GAIN = {
    "a product of large matrices": "tf.matmul(large, large)",
    "a traced function": "traced(row)",
}


values, numbers = tf.random.normal((1024, 32)), tf.range(1024)
in_memory = tf.data.Dataset.from_tensor_slices((values, numbers))
dataset = in_memory.batch(32)
total = tf.Variable(0.0)


def taking(endless):
    """Return a function that takes the next batch. Each arm makes its own iterator."""
    iterators = {}

    def take():
        installed = fastops.is_installed()
        if installed not in iterators:
            iterators[installed] = iter(endless)
        return next(iterators[installed])

    return take


in_order = taking(dataset.repeat())
shuffled = taking(in_memory.repeat().shuffle(1024).batch(32))
scaled = in_memory.map(lambda inputs, targets: (inputs / 255.0, tf.one_hot(targets % 10, 10)))
mapped_rows = taking(scaled.repeat().batch(32))
mapped = taking(dataset.repeat().map(lambda inputs, targets: (inputs * 2.0, targets)).prefetch(2))


@tf.function
def step(inputs, targets):
    total.assign_add(tf.reduce_sum(inputs) * tf.cast(targets[0], tf.float32))


def epoch():
    for inputs, targets in dataset:
        step(inputs, targets)


DATASETS = {
    "a batch of a dataset in memory": "in_order()",
    "a shuffled batch of a dataset in memory": "shuffled()",
    "a batch with a function that is mapped over it": "mapped()",
    "a batch with a function that is mapped over its rows": "mapped_rows()",
    "an epoch of 32 batches with a small traced step": "epoch()",
}


def arms(statement):
    return [
        Arm("installed", statement, globals(), fastops.accelerated),
        Arm("stock", statement, globals()),
    ]


@pytest.mark.parametrize("call", long_but(CALLS, SHORT))
def test_calls(call, race):
    race("calls", call, arms(call), rounds=11)


@pytest.mark.parametrize("label", PROGRAMS)
def test_programs(label, race):
    race("programs", label, arms(PROGRAMS[label]), rounds=11)


@pytest.mark.parametrize("label", DATASETS)
def test_datasets(label, race):
    race("datasets", label, arms(DATASETS[label]), rounds=11)


@pytest.mark.long
@pytest.mark.parametrize("label", NO_GAIN)
def test_programs_that_gain_nothing(label, race):
    # Blocks are long because installing evicts everything from the processor's caches.
    race("no gain", label, arms(NO_GAIN[label]), rounds=9, block=0.5)


def test_install(record, times):
    def once():
        begin = time.perf_counter()
        fastops.install()
        seconds = time.perf_counter() - begin
        fastops.uninstall()
        return seconds

    once()
    record("install", "fastops.install()", seconds=[once() for _ in range(times(5))])
