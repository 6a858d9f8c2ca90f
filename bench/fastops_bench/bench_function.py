"""Traced functions, sessions, and compiled Keras models, run by TensorFlow and by fastops."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from pytest_fastops.race import Arm

import fastops
from fastops._reports.floors import BareKernel
from fastops_bench.common import long_but

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32) / 8


x = tf.constant([1.0, 2.0, 3.0, 4.0])
row, inputs, targets = tf.constant(normal(1, 32)), tf.constant(normal(8, 32)), normal(8, 1)
arrays = [normal(*shape) for shape in ((32, 32), (32,), (32, 32), (32,), (32, 1), (1,))]
weights = [tf.Variable(array) for array in arrays]


def two_ops(values):
    return tf.tanh(values) * 2.0


def perceptron(values, relu=tf.nn.relu, parameters=weights):
    w1, b1, w2, b2, w3, b3 = parameters
    return relu(relu(values @ w1 + b1) @ w2 + b2) @ w3 + b3


def training_step(values):
    with tf.GradientTape() as tape:
        error = perceptron(values) - targets
        loss = tf.reduce_mean(error * error)
    for variable, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        variable.assign_sub(1e-5 * gradient)
    return loss


cell = keras.layers.LSTMCell(16)
states = [tf.constant(normal(1, 16)), tf.constant(normal(1, 16))]
cell(row, states)


def lstm(values):
    return cell(values, states)[0]


def loop(values):
    def body(i, y):
        return i + 1, tf.tanh(y * 1.5) - 0.25 * y + 0.5

    return tf.while_loop(lambda i, y: i < 100, body, [0, values])[1]


images = tf.constant(normal(32, 28, 28, 16))
kernels = [tf.Variable(normal(3, 3, 16, 16)) for _ in range(2)]


def block(values):
    hidden = tf.nn.relu(tf.nn.conv2d(values, kernels[0], 1, "SAME"))
    return tf.nn.relu(values + tf.nn.conv2d(hidden, kernels[1], 1, "SAME"))


matrices = [tf.constant(normal(512, 512)) for _ in range(8)]


def wide(values):
    return tf.add_n([values @ matrix for matrix in matrices])


FUNCTIONS = {
    "two ops": (two_ops, x),
    "three-layer perceptron on one row": (perceptron, row),
    "training step of the perceptron": (training_step, inputs),
    "Keras LSTM cell on one row": (lstm, row),
    "a loop of 100 rounds, five ops in each": (loop, x),
    "convolutional block with a shortcut, batch 32": (block, images),
    "eight products of 512x512 matrices": (wide, matrices[0]),
}


SHORT = (
    *("two ops", "three-layer perceptron on one row", "training step of the perceptron"),
    "a loop of 100 rounds, five ops in each",
)


@pytest.mark.onednn
@pytest.mark.parametrize("label", long_but(FUNCTIONS, SHORT))
def test_functions(label, race):
    function, argument = FUNCTIONS[label]
    names = {"x": argument}
    arms = [
        Arm("plan", "function(x)", names | {"function": fastops.function(function)}),
        Arm("tf.function", "function(x)", names | {"function": tf.function(function)}),
    ]
    if function is perceptron:
        names = {"function": perceptron, "x": row.numpy(), "arrays": arrays, "relu": relu}
        arms.append(Arm("numpy", "function(x, relu, arrays)", names))
    for arm in arms[1:]:
        np.testing.assert_allclose(arm.result(), arms[0].result(), rtol=1e-3)
    race("functions", label, arms, rounds=15, block=0.2 if argument.shape.rank > 1 else 2e-2)


def relu(values):
    return np.maximum(values, 0)


@pytest.mark.parametrize("length", [10, 100, 1000])
def test_chain(length, race):
    """The cost of a node in a plan, compared with its kernel alone."""

    def chain(values):
        for _ in range(length):
            values = tf.tanh(values)
        return values

    # Without this, the optimizer would merge all nodes into one.
    function = fastops.function(chain, executor="plan", optimize=False, autograph=False)
    kernel = BareKernel(fastops.raw_ops.Tanh, x=x)
    names = {"x": x, "function": function, "kernel": kernel}
    arms = [Arm("plan", "function(x)", names), Arm("kernel", "kernel()", names)]
    np.testing.assert_array_equal(arms[0].result(), chain(x))
    (row,) = function.describe()
    assert row["nodes"] >= length
    race("chain", str(length), arms)


# ---------------------------------------------------------------------------------------------
# Graphs of TensorFlow 1, with variables, in sessions
# ---------------------------------------------------------------------------------------------

v1 = tf.compat.v1
with tf.Graph().as_default() as g:
    placeholder = v1.placeholder(tf.float32, [None, 32])
    parameters = [v1.Variable(array, use_resource=True) for array in arrays]
    output = perceptron(placeholder, parameters=parameters)
    error = tf.reduce_mean(tf.square(output))
    update = v1.train.GradientDescentOptimizer(1e-5).minimize(error)
    initializer = v1.global_variables_initializer()

RUNS = {
    "three-layer perceptron on one row": (output, row.numpy()),
    "training step of the perceptron": ([error, update], inputs.numpy()),
}


@pytest.mark.parametrize("label", RUNS)
def test_sessions(label, race):
    fetches, array = RUNS[label]
    arms = []
    for name, kind in (("fastops", fastops.graph.Session), ("tensorflow", v1.Session)):
        session = kind(graph=g)
        session.run(initializer)
        names = {"session": session, "fetches": fetches, "feed": {placeholder: array}}
        arms.append(Arm(name, "session.run(fetches, feed)", names))
    for _ in range(3):
        got, want = (arm.result()[0] for arm in arms)
        np.testing.assert_array_equal(got, want)
    race("sessions", label, arms)


# ---------------------------------------------------------------------------------------------
# Compiled Keras models, with `fastops.install` and without
# ---------------------------------------------------------------------------------------------

features, labels = normal(1792, 64), rng.integers(10, size=1792)
model = keras.Sequential(
    [keras.Input([64]), keras.layers.Dense(32, "relu"), keras.layers.Dense(10)]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])

KERAS = {
    "Keras fit, an epoch of 56 batches": "model.fit(features, labels, batch_size=32, verbose=0)",
    "Keras predict_on_batch on one row": "model.predict_on_batch(features[:1])",
    "Keras train_on_batch, 32 rows": "model.train_on_batch(features[:32], labels[:32])",
}


@pytest.mark.long
@pytest.mark.parametrize("label", KERAS)
def test_keras(label, race):
    arms = [
        Arm("installed", KERAS[label], globals(), fastops.accelerated),
        Arm("stock", KERAS[label], globals()),
    ]
    race("traced", label, arms, rounds=9, block=0.2)
