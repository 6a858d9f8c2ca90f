"""Keras models on small data: unchanged, under `fastops.install`, and in PyTorch.

NumPy's addition of two numbers is timed with each, to scale times between processes.
"""

from functools import partial
from time import perf_counter_ns

import numpy as np
import pytest
from pytest_fastops.race import Arm

from fastops_bench.common import installed, long_but

pytestmark = pytest.mark.filterwarnings("ignore")

CALL = "call()"
YARDSTICK = {"np": np, "one": np.float32(1)}


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


IDS = np.arange(6, dtype=np.int64)[None]


# ---------------------------------------------------------------------------------------------
# Keras
# ---------------------------------------------------------------------------------------------


def keras_models():
    """Return, by name, a function that makes a model, its input, and the arguments of its call."""
    import keras
    import tensorflow as tf
    from keras import layers as L  # noqa: N812

    def sequential(shape, *layers, **kwargs):
        return keras.Sequential([keras.Input(shape, **kwargs), *layers])

    def perceptron():
        return [L.Dense(32, activation="relu"), L.Dense(32, activation="relu"), L.Dense(3)]

    def functional():
        x = inputs = keras.Input((4,))
        for layer in perceptron():
            x = layer(x)
        return keras.Model(inputs, x)

    class Subclassed(keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.other, self.out = perceptron()

        def call(self, x):
            return self.out(self.other(self.one(x)))

    def of_users():
        def swish(x):
            return x * tf.sigmoid(x)

        units = [L.Dense(32, activation=swish), L.Dense(32, activation="relu"), L.Dense(3)]
        return sequential((4,), L.Lambda(lambda x: x / 255.0), *units)

    def attention():
        inputs = keras.Input((8, 16))
        x = L.LayerNormalization()(L.MultiHeadAttention(2, 8)(inputs, inputs) + inputs)
        return keras.Model(inputs, L.Dense(3)(x))

    def convolutional():
        layers = [L.Conv2D(8, 3, activation="relu"), L.BatchNormalization(), L.MaxPooling2D()]
        return sequential((8, 8, 1), *layers, L.Flatten(), L.Dense(10))

    def regularized():
        layers = [L.Dense(32), L.BatchNormalization(), L.Dropout(0.3), L.LayerNormalization()]
        return sequential((32,), *layers, L.Dense(3))

    def embedding():
        layers = [L.Embedding(50, 8), L.GlobalAveragePooling1D(), L.Dense(3)]
        return sequential((6,), *layers, dtype="int32")

    return {
        "perceptron, Sequential": (lambda: sequential((4,), *perceptron()), normal(1, 4), {}),
        "perceptron, Functional": (functional, normal(1, 4), {}),
        "perceptron, subclassed": (Subclassed, normal(1, 4), {}),
        "perceptron, with a Lambda and an activation": (of_users, normal(1, 4), {}),
        "convolutions": (convolutional, normal(1, 8, 8, 1), {}),
        "LSTM": (lambda: sequential((8, 4), L.LSTM(16), L.Dense(3)), normal(1, 8, 4), {}),
        "GRU": (lambda: sequential((8, 4), L.GRU(16), L.Dense(3)), normal(1, 8, 4), {}),
        "attention": (attention, normal(1, 8, 16), {}),
        "embedding": (embedding, IDS.astype(np.int32), {}),
        "normalization and dropout, training": (regularized, normal(32, 32), {"training": True}),
    }


def keras_call(name):
    import keras
    import tensorflow as tf

    make, x, arguments = keras_models()[name]
    keras.utils.set_random_seed(0)
    model, x = make(), tf.constant(x)
    return lambda: model(x, **arguments)


OPTIMIZERS = {
    "Adam": lambda optimizers: optimizers.Adam(1e-4),
    "SGD with momentum": lambda optimizers: optimizers.SGD(1e-4, momentum=0.9),
    "RMSprop": lambda optimizers: optimizers.RMSprop(1e-4),
    "AdamW": lambda optimizers: optimizers.AdamW(1e-4),
}


def keras_step(name):
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    model, loss = keras_models()["perceptron, Sequential"][0](), keras.losses.MeanSquaredError()
    optimizer = OPTIMIZERS[name](keras.optimizers)
    x, y = tf.constant(normal(32, 4)), tf.constant(normal(32, 3))

    def step():
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        slopes = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        return value

    return step


LOOPS = ("fit, eager", "fit", "evaluate", "predict")


def keras_loop(name):
    import keras

    keras.utils.set_random_seed(0)
    model = keras_models()["perceptron, Sequential"][0]()
    model.compile("adam", "mse", run_eagerly=name.endswith("eager"))
    x, y = normal(512, 4), normal(512, 3)
    if name == "predict":
        return lambda: model.predict(x[:32], verbose=0)
    if name == "evaluate":
        return lambda: model.evaluate(x, y, verbose=0)
    return lambda: model.fit(x, y, batch_size=32, verbose=0)


MADE_ANEW = ("metric of nine updates, made anew", "loss of one step, made anew")


def keras_made_anew(name):
    import keras
    import tensorflow as tf

    y, p = tf.one_hot([0, 1, 2, 0], 3), tf.nn.softmax(tf.constant(normal(4, 3)))

    def metric():
        made = keras.metrics.CategoricalAccuracy()
        for _ in range(9):
            made.update_state(y, p)
        return made.result()

    if name == "metric of nine updates, made anew":
        return metric
    return lambda: keras.losses.CategoricalCrossentropy()(y, p)


OF_WORDS = ("GRU, one step from a state", "StringLookup", "sampled softmax, step with SGD")


def keras_of_words(name):
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    if name.startswith("GRU"):
        layer = keras.layers.GRU(64, return_sequences=True, return_state=True)
        x, state = tf.constant(normal(1, 1, 32)), tf.constant(normal(1, 64))
        # Like most models, it is first called while a function is traced.
        tf.function(layer)(x)
        return lambda: layer(x, initial_state=[state])
    if name == "StringLookup":
        layer, words = keras.layers.StringLookup(vocabulary=list("abcdef")), tf.constant([["c"]])
        return lambda: layer(words)

    table, weights = tf.Variable(normal(1000, 64)), tf.Variable(normal(1000, 64))
    variables = [table, weights, tf.Variable(tf.zeros([1000]))]
    optimizer, ids = keras.optimizers.SGD(1e-3), np.arange(128)

    def step():
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, ids)
            given = weights, variables[2], ids.reshape(128, 1), rows
            loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(*given, 32, 1000))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


# ---------------------------------------------------------------------------------------------
# PyTorch
# ---------------------------------------------------------------------------------------------


def torch_models():
    """Return the same models, in PyTorch."""
    import torch
    from torch import nn

    torch.set_num_threads(1)

    def perceptron():
        return nn.Sequential(
            *(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
        )

    class OfUsers(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other, self.out = nn.Linear(4, 32), nn.Linear(32, 32), nn.Linear(32, 3)

        def forward(self, x):
            x = self.one(x / 255.0)
            return self.out(torch.relu(self.other(x * torch.sigmoid(x))))

    class Last(nn.Module):
        def __init__(self, cell):
            super().__init__()
            self.cell, self.out = cell, nn.Linear(16, 3)

        def forward(self, x):
            return self.out(self.cell(x)[0][:, -1])

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = nn.MultiheadAttention(16, 2, batch_first=True)
            self.normalize, self.out = nn.LayerNorm(16), nn.Linear(16, 3)

        def forward(self, x):
            return self.out(self.normalize(self.attend(x, x, x)[0] + x))

    class Embedding(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Embedding(50, 8), nn.Linear(8, 3)

        def forward(self, ids):
            return self.out(self.embed(ids).mean(1))

    convolutional = nn.Sequential(
        *(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.BatchNorm2d(8), nn.MaxPool2d(2), nn.Flatten()),
        nn.Linear(72, 10),
    )
    regularized = nn.Sequential(
        *(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.Dropout(0.3), nn.LayerNorm(32)),
        nn.Linear(32, 3),
    )
    small = normal(1, 4)
    return {
        "perceptron, Sequential": (perceptron(), small),
        "perceptron, Functional": (perceptron(), small),
        "perceptron, subclassed": (perceptron(), small),
        "perceptron, with a Lambda and an activation": (OfUsers(), small),
        "convolutions": (convolutional.eval(), normal(1, 1, 8, 8)),
        "LSTM": (Last(nn.LSTM(4, 16, batch_first=True)), normal(1, 8, 4)),
        "GRU": (Last(nn.GRU(4, 16, batch_first=True)), normal(1, 8, 4)),
        "attention": (Attention().eval(), normal(1, 8, 16)),
        "embedding": (Embedding(), IDS),
        "normalization and dropout, training": (regularized.train(), normal(32, 32)),
    }


def torch_call(name):
    import torch

    model, x = torch_models()[name]
    x = torch.tensor(x)

    def call():
        with torch.no_grad():
            return model(x)

    return call


def torch_step(name):
    import torch

    model = torch_models()["perceptron, Sequential"][0]
    make = {
        "Adam": partial(torch.optim.Adam, lr=1e-4),
        "SGD with momentum": partial(torch.optim.SGD, lr=1e-4, momentum=0.9),
        "RMSprop": partial(torch.optim.RMSprop, lr=1e-4),
        "AdamW": partial(torch.optim.AdamW, lr=1e-4),
    }[name]
    optimizer, loss = make(model.parameters()), torch.nn.MSELoss()
    x, y = torch.tensor(normal(32, 4)), torch.tensor(normal(32, 3))

    def step():
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value

    return step


# ---------------------------------------------------------------------------------------------


def arms(make_keras, make_torch, name):
    yield Arm("numpy", "np.add(one, one)", YARDSTICK)
    if installed("tensorflow"):
        import fastops

        for arm, scope in {
            "stock": None,
            "installed": partial(fastops.accelerated, exclude=["models"]),
            "replayed": fastops.accelerated,
        }.items():
            names = {"call": make_keras(name)}  # each model begins with the same weights
            yield Arm(arm, CALL, names, *([scope] if scope else []))
    if make_torch is not None and installed("torch"):
        yield Arm("torch", CALL, {"call": make_torch(name)})


CALLS = (
    *("perceptron, Sequential", "perceptron, Functional", "perceptron, subclassed"),
    "perceptron, with a Lambda and an activation",
    *("convolutions", "LSTM", "GRU", "attention", "embedding"),
    "normalization and dropout, training",
)
SHORT = ("perceptron, Sequential", "convolutions", "LSTM")


@pytest.mark.parametrize("name", long_but(CALLS, SHORT))
def test_keras_calls(race, name):
    race("keras", f"Keras, {name}", list(arms(keras_call, torch_call, name)))


@pytest.mark.parametrize("name", long_but(OPTIMIZERS, ["Adam"]))
def test_keras_steps(race, name):
    race("keras", f"Keras, training step, {name}", list(arms(keras_step, torch_step, name)))


@pytest.mark.skipif(not installed("tensorflow"), reason="the loops are Keras's")
@pytest.mark.parametrize("name", long_but(LOOPS, ["predict"]))
def test_keras_loops(race, name):
    race("keras", f"Keras, {name}", list(arms(keras_loop, None, name)))


@pytest.mark.long
@pytest.mark.skipif(not installed("tensorflow"), reason="they are Keras's")
@pytest.mark.parametrize("name", MADE_ANEW)
def test_keras_objects_made_anew(race, name):
    race("keras", f"Keras, {name}", list(arms(keras_made_anew, None, name)))


@pytest.mark.skipif(not installed("tensorflow"), reason="they are Keras's")
@pytest.mark.parametrize("name", long_but(OF_WORDS, ["StringLookup"]))
def test_keras_of_words(race, name):
    race("keras", f"Keras, {name}", list(arms(keras_of_words, None, name)))


FIRST = 3
"""The number of slow first calls: one prepares kernels, one is recorded, one is checked."""


@pytest.mark.long
@pytest.mark.skipif(not installed("tensorflow"), reason="they are Keras's")
@pytest.mark.parametrize("name", CALLS)
def test_keras_first_calls(record, times, name):
    """The first calls of a model, compared with its first call in `tf.function`."""
    import tensorflow as tf

    import fastops

    make, x, arguments = keras_models()[name]
    x = tf.constant(x)
    samples = {"tf.function": [], "installed": []}

    def timed(call, times):
        begin = perf_counter_ns()
        for _ in range(times):
            call(x, **arguments)
        return perf_counter_ns() - begin

    def race():
        models = make(), make()
        for model in models:
            model(x, **arguments)  # the first call builds the model
        samples["tf.function"].append(timed(tf.function(models[0]), 1))
        with fastops.accelerated():
            samples["installed"].append(timed(models[1], FIRST))

    for _ in range(times(11) + 1):
        race()
    samples = {arm: taken[1:] for arm, taken in samples.items()}
    record("first calls", f"Keras, {name}", samples=samples)
