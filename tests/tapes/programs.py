"""Draw programs of ops on one to three nested tapes, and run them.

A program is data: nested `Level`s, one for each tape, each with `Step`s. `World.run` interprets it.
So one program runs under TensorFlow and under `fastops.install`, and hypothesis can shrink it.
"""

from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

SIZE = 3


@tf.custom_gradient
def doubled_backwards(x):
    return tf.identity(x), lambda upstream: 2.0 * upstream * tf.cos(x)


@tf.function
def traced(x):
    return tf.tanh(x @ x) + x


@tf.recompute_grad
def recomputed(x):
    return tf.sin(x) * x


class Cell(keras.layers.Layer):
    """Uses its weight twice."""

    def build(self, shape):
        self.weight = self.add_weight(shape=(SIZE, SIZE), initializer="orthogonal")

    def call(self, x):
        return tf.tanh(x @ self.weight) @ self.weight


def make_layers():
    """Return layers that take and return matrices, with the same weights each time."""
    keras.utils.set_random_seed(0)
    layers = [
        keras.layers.Dense(SIZE, activation="tanh"),
        keras.layers.Dense(SIZE, activation="silu"),
        keras.layers.LayerNormalization(),
        keras.Sequential([keras.layers.Dense(5, activation="relu"), keras.layers.Dense(SIZE)]),
        keras.layers.GRU(SIZE),
        Cell(),
    ]
    matrix = tf.eye(SIZE)
    for layer in layers:
        layer(matrix[None] if isinstance(layer, keras.layers.GRU) else matrix)
    return layers


UNARY = {
    "tanh": tf.tanh,
    "sin": tf.sin,
    "sigmoid": tf.sigmoid,
    "square": tf.square,
    "relu": tf.nn.relu,
    "silu": tf.nn.silu,
    "gelu": tf.nn.gelu,
    "softmax": tf.nn.softmax,
    "abs": tf.abs,
    "identity": tf.identity,
    "negative": lambda x: -x,
    "transpose": tf.transpose,
    "first row": lambda x: x[0],
    "column": lambda x: x[:, 1:2],
    "rows": lambda x: tf.gather(x, [2, 0, 2]),
    "columns": lambda x: tf.gather(x, [2, 0, 2], axis=1),
    "sorted": lambda x: tf.sort(x, axis=0),
    "rolled": lambda x: tf.roll(x, 1, axis=1),
    "cumulated": lambda x: tf.cumsum(x, axis=1, reverse=True),
    "product": lambda x: tf.reduce_prod(x, axis=1),
    "cosine": tf.cos,
    "sum": lambda x: tf.reduce_sum(x, axis=0),
    "mean": lambda x: tf.reduce_mean(x, axis=1, keepdims=True),
    "maximum": lambda x: tf.reduce_max(x, axis=0, keepdims=True),
    "shape": lambda x: tf.reshape(x, tf.shape(x)[::-1]),
    "halves": lambda x: tf.concat(tf.split(x, [1, 2], axis=0)[::-1], axis=0),
    "rank one": lambda x: tf.linalg.diag_part(x) * tf.linalg.trace(x),
    "double": lambda x: tf.cast(tf.cast(x, tf.float64) * 2, tf.float32),
    "integers": lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32) + x,
    "stopped": tf.stop_gradient,
    "normalized": lambda x: tf.math.l2_normalize(x, axis=1),
    "custom": doubled_backwards,
    "recomputed": recomputed,
    "traced": traced,
    "loop": lambda x: tf.scan(lambda a, b: a * b + a, x),
    "clipped": lambda x: tf.clip_by_value(x, -0.5, 0.5),
}

BINARY = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "subtract": lambda x, y: x - y,
    "divide": lambda x, y: x / (2.0 + tf.square(y)),
    "larger": tf.maximum,
    "matmul": tf.matmul,
    "where": lambda x, y: tf.where(x > y, x, y * 0.5),
    "stacked": lambda x, y: tf.reduce_mean(tf.stack([x, y, x]), axis=0),
    "added": lambda x, y: tf.add_n([x, y, x]),
    "einsum": lambda x, y: tf.einsum("ij,kj->ik", x, y),
    "difference": tf.math.squared_difference,
    "angle": lambda x, y: tf.atan2(x, 2.0 + tf.square(y)),
}

KINDS = (
    [("unary", name) for name in UNARY]
    + [("binary", name) for name in BINARY]
    + [("variable", i) for i in range(2)]
    + [("layer", i) for i in range(6)] * 5
)


@dataclass
class Step:
    """A call, whose operands are the values with these numbers, modulo the number of values."""

    kind: tuple
    left: int
    right: int
    stopped: bool = False  # recording is stopped around it


@dataclass
class Level:
    """A tape, its steps, and what is differentiated after it."""

    before: list  # steps before the inner tape
    inner: "Level | None"
    after: list
    watched: list  # numbers of values
    watches_late: int | None  # a value that is watched after the first steps
    persistent: bool
    accessed: bool  # whether the tape watches variables that are read
    within: bool  # the gradient is computed within the tape
    reset: bool
    targets: list  # numbers of values, from the last one
    several: bool  # the targets are a list; else their sum
    sources: list
    seeded: bool  # with `output_gradients`
    zero: bool  # with zeros for sources that are not connected


numbers = st.integers(0, 40)
steps = st.builds(
    Step,
    st.sampled_from(KINDS),
    numbers,
    numbers,
    st.sampled_from([False] * 12 + [True]),
)
rarely = st.sampled_from([False] * 7 + [True])


def levels(depth):
    """Return the strategy for a tape with `depth` tapes in it."""
    most = 30 // (2 * (depth + 1))
    return st.builds(
        Level,
        before=st.lists(steps, max_size=most),
        inner=levels(depth - 1) if depth else st.none(),
        after=st.lists(steps, min_size=min(most, 4), max_size=most),
        watched=st.lists(numbers, max_size=2),
        watches_late=st.one_of(st.none(), st.none(), numbers),
        persistent=rarely,
        accessed=st.sampled_from([True] * 5 + [False]),
        within=rarely,
        reset=st.sampled_from([False] * 15 + [True]),
        targets=st.lists(st.integers(0, 3), min_size=1, max_size=2),
        several=rarely,
        sources=st.lists(numbers, min_size=1, max_size=3),
        seeded=rarely,
        zero=rarely,
    )


programs = st.one_of(levels(0), levels(0), levels(1), levels(1), levels(2))


class World:
    """The tensors, variables and layers that programs use."""

    def __init__(self):
        random = np.random.default_rng(0)
        self.arrays = random.uniform(-1, 1, (2, SIZE, SIZE)).astype(np.float32)
        values = random.uniform(-1, 1, (2, SIZE, SIZE)).astype(np.float32)
        self.variables = [tf.Variable(value) for value in values]
        self.layers = make_layers()
        self.watchable = [
            *self.variables,
            # TensorFlow itself fails if it makes zeros for Keras's own variables.
            *(weight.value for layer in self.layers for weight in layer.trainable_weights),
        ]
        self.ones = tf.ones((SIZE, SIZE))

    def run(self, program):
        """Run a program, and return the values of all gradients and of the last value."""
        noted = []
        values = [tf.constant(array) for array in self.arrays]
        self._run(program, values, noted)
        return [*noted, values[-1].numpy()]

    def _run(self, level, values, noted):
        tape = tf.GradientTape(level.persistent, level.accessed)
        with tape:
            for number in level.watched:
                tape.watch(_pick(values, number))
            self._steps(level.before, values, tape)
            if level.watches_late is not None:
                tape.watch(_pick(values, level.watches_late))
            if level.reset:
                tape.reset()
                tape.watch(values[0])
            if level.inner is not None:
                self._run(level.inner, values, noted)
            self._steps(level.after, values, tape)
            targets = [_pick(values, -1 - number) for number in level.targets]
            if not level.several:
                targets = tf.add_n([tf.reduce_sum(value) for value in targets])
            if level.within:
                found = self._differentiate(level, targets, values, tape)
        if not level.within:
            found = self._differentiate(level, targets, values, tape)
        if level.persistent:
            found += tape.gradient(values[-1], [values[0], *self.variables])
        for gradient in found:
            if isinstance(gradient, tf.IndexedSlices):
                noted.append(gradient.indices.numpy())
                gradient = gradient.values
            noted.append(None if gradient is None else gradient.numpy())
            if gradient is not None and gradient.shape == (SIZE, SIZE):
                values.append(gradient)

    def _steps(self, steps, values, tape):
        for step in steps:
            if step.stopped:
                with tape.stop_recording():
                    made = self._call(step, values)
            else:
                made = self._call(step, values)
            values.append(made)

    def _call(self, step, values):
        kind, name = step.kind
        x, y = _pick(values, step.left), _pick(values, step.right)
        if kind == "variable":
            made = self.variables[name] * x
        elif kind == "unary":
            made = UNARY[name](x)
        elif kind == "binary":
            made = BINARY[name](x, y)
        else:
            layer = self.layers[name]
            made = layer(x[None] if isinstance(layer, keras.layers.GRU) else x)
        return made if made.shape == self.ones.shape else made * self.ones

    def _differentiate(self, level, targets, values, tape):
        sources = [
            _pick(values, n) if n % 2 else self.watchable[n // 2 % len(self.watchable)]
            for n in level.sources
        ]
        seeds = None
        if level.seeded:
            seeds = [value * 0.5 for value in targets] if level.several else tf.constant(3.0)
        return tape.gradient(
            targets,
            sources,
            output_gradients=seeds,
            unconnected_gradients="zero" if level.zero else "none",
        )


def _pick(values, number):
    return values[number % len(values)]
