"""Programs of libraries and of users built on TensorFlow, with `fastops.install` and without.

A program is skipped if its library is not installed; the extra "libraries" has them.
"""

from contextlib import nullcontext

import numpy as np
import pytest
import tensorflow as tf
from pytest_fastops.race import Arm

import fastops

# Warnings of these libraries about each other.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.long]


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: see the extra 'libraries'")


def normal(*shape):
    values = np.random.default_rng(0).normal(size=shape) / 8
    return tf.constant(values.astype(np.float32))


# ---------------------------------------------------------------------------------------------
# TensorFlow Probability
# ---------------------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "Normal": (
        lambda distributions: distributions.Normal(loc=[0.0, 1.0, 2.0], scale=[1.0, 2.0, 3.0]),
        [0.5, 1.0, 1.5],
    ),
    "MultivariateNormalDiag": (
        lambda distributions: distributions.MultivariateNormalDiag(
            loc=[0.0, 1.0, 2.0], scale_diag=[1.0, 2.0, 3.0]
        ),
        [0.5, 1.0, 1.5],
    ),
    "Categorical": (
        lambda distributions: distributions.Categorical(logits=[0.1, 0.2, 0.3, 0.4]),
        [0, 2, 1],
    ),
    "Gamma": (
        lambda distributions: distributions.Gamma(
            concentration=[1.0, 2.0, 3.0], rate=[1.0, 1.0, 2.0]
        ),
        [0.5, 1.0, 1.5],
    ),
    "Bernoulli": (lambda distributions: distributions.Bernoulli(logits=[0.1, 0.2, 0.3]), [0, 1, 1]),
}


def log_prob(name):
    make, values = DISTRIBUTIONS[name]
    distribution = make(library("tensorflow_probability").distributions)
    values = tf.constant(values)
    return lambda: distribution.log_prob(values)


def sample(name):
    distribution = DISTRIBUTIONS[name][0](library("tensorflow_probability").distributions)
    return lambda: distribution.sample(4)


# ---------------------------------------------------------------------------------------------
# GPflow
# ---------------------------------------------------------------------------------------------


def regression():
    gpflow = library("gpflow")
    rows = np.random.default_rng(0).uniform(size=(20, 2))
    data = rows, np.sin(6 * rows[:, :1])
    model = gpflow.models.GPR(data, kernel=gpflow.kernels.SquaredExponential())

    def loss_and_gradient():
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        return [loss, *tape.gradient(loss, variables)]

    return loss_and_gradient


# ---------------------------------------------------------------------------------------------
# Modules, tf_keras and Sonnet: three layers
# ---------------------------------------------------------------------------------------------


class Dense(tf.Module):
    def __init__(self, inputs, outputs, activation=None):
        super().__init__()
        self.w = tf.Variable(normal(inputs, outputs))
        self.b = tf.Variable(tf.zeros(outputs))
        self.activation = activation

    def __call__(self, x):
        x = tf.matmul(x, self.w) + self.b
        return x if self.activation is None else self.activation(x)


class Perceptron(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(32, 32, tf.nn.relu), Dense(32, 31, tf.nn.relu), Dense(31, 1)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def module_call():
    module, row = Perceptron(), normal(1, 32)
    return lambda: module(row)


def module_variables():
    module = Perceptron()
    return lambda: module.trainable_variables


def module_step():
    def descend(pairs):
        for gradient, variable in pairs:
            variable.assign_sub(1e-5 * gradient)

    return step(Perceptron(), descend)


def keras_model():
    keras = library("tf_keras")
    keras.utils.set_random_seed(0)
    sizes = {32: "relu", 31: "relu", 1: None}
    model = keras.Sequential([keras.layers.Dense(*layer) for layer in sizes.items()])
    model(normal(1, 32))
    return model


def keras_call():
    model, row = keras_model(), normal(1, 32)
    return lambda: model(row)


def keras_functional():
    keras, row = library("tf_keras"), normal(1, 32)
    keras.utils.set_random_seed(0)
    inputs = keras.Input((32,))
    hidden = keras.layers.Dense(32, activation="relu")(inputs)
    hidden = keras.layers.Add()([hidden, keras.layers.Dense(32, activation="relu")(hidden)])
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    return lambda: model(row)


def keras_step():
    model, optimizer = keras_model(), library("tf_keras").optimizers.Adam(1e-5)
    return step(model, lambda pairs: optimizer.apply_gradients(pairs))


def sonnet_model():
    model = library("sonnet").nets.MLP([32, 31, 1])
    model(normal(1, 32))
    for variable in model.trainable_variables:
        variable.assign(normal(*variable.shape))
    return model


def sonnet_call():
    model, row = sonnet_model(), normal(1, 32)
    return lambda: model(row)


def sonnet_step():
    model, optimizer = sonnet_model(), library("sonnet").optimizers.Adam(1e-5)
    return step(model, lambda pairs: optimizer.apply(*zip(*pairs, strict=True)))


def step(model, apply):
    inputs, targets = normal(8, 32), normal(8, 1)

    def train():
        with tf.GradientTape() as tape:
            error = model(inputs) - targets
            loss = tf.reduce_mean(error * error)
        gradients = tape.gradient(loss, model.trainable_variables)
        apply(zip(gradients, model.trainable_variables, strict=True))
        return [loss, *(variable.read_value() for variable in model.trainable_variables)]

    return train


PROGRAMS = {
    "GPflow, loss of a regression with its gradient": regression,
    "tf.Module, three dense layers on one row": module_call,
    "tf.Module, trainable variables of three layers": module_variables,
    "tf.Module, training step": module_step,
    "tf_keras, three dense layers on one row": keras_call,
    "tf_keras, a functional model on one row": keras_functional,
    "tf_keras, training step with Adam": keras_step,
    "Sonnet, three linear layers on one row": sonnet_call,
    "Sonnet, training step with Adam": sonnet_step,
}


def arms(make):
    """Return the arms of a program, after checking that both give the same."""
    results = []
    for scope in (fastops.accelerated, fastops.accelerated, nullcontext):
        tf.random.set_seed(0)
        np.random.seed(0)  # noqa: NPY002
        run = make()
        with scope():
            results.append(
                [np.asarray(value) for _ in range(3) for value in tf.nest.flatten(run())]
            )
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)
    # With a seed, TensorFlow makes a kernel for each draw, which takes longer than all the rest.
    tf.random.set_seed(None)
    names = {"run": make()}
    return [
        Arm("installed", "run()", names, fastops.accelerated),
        Arm("stock", "run()", names),
    ]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("make", [log_prob, sample], ids=["log_prob", "sample"])
def test_distributions(name, make, race):
    label = f"TensorFlow Probability, {name}.{make.__name__}"
    race("distributions", label, arms(lambda: make(name)), rounds=11, block=2e-2)


@pytest.mark.parametrize("label", PROGRAMS)
def test_programs(label, race):
    race("libraries", label, arms(PROGRAMS[label]), rounds=11, block=2e-2)
