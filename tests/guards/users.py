"""Layers and modules of a user whose code is shown to be pure, each with a construct of Python."""

import enum
import functools
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L  # noqa: N812

FACTOR = 2.0
ACTIVATIONS = {"relu": tf.nn.relu, "tanh": tf.tanh}


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"

    @property
    def factor(self):
        return 2.0 if self is Mode.SUM else 0.5


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rate(float, enum.Enum):
    SLOW = 0.5
    FAST = 1.5


@dataclass
class Config:
    scale: float = 0.5
    depth: int = 2
    names: tuple = ("relu", "tanh")
    mode: Mode = Mode.MEAN


class Linear(tf.Module):
    """A module, as in TensorFlow's guide: it makes its variables in its first call."""

    def __init__(self, size=4):
        super().__init__()
        self.size, self.is_built, self.shifts = size, False, {"out": [0.5, 1.0]}

    def __call__(self, x):
        if not self.is_built:
            self.w = tf.Variable(tf.ones([x.shape[-1], self.size]))
            self.is_built = True
        return tf.matmul(x, self.w) + self.shifts["out"][1]


class Block:
    """A plain object that holds a layer."""

    def __init__(self):
        self.dense, self.scale = L.Dense(4), 2.0

    def __call__(self, x):
        return self.forward(x) * self.gain

    def forward(self, x):
        return self.dense(x) * self.scale

    @property
    def gain(self):
        return self.scale + 1.0


def scaled(x, factor=2.0, *rest, shift=1.0, **more):
    return x * factor + shift + sum(rest) + more.get("extra", 0.0)


class Holder:
    """What the layers and modules below read."""

    kind, limit = Mode.SUM, 3

    def hold(self, read):
        self.read = read
        self.config, self.mode = Config(), Mode.SUM
        self.level, self.rate = Level.LOW, Rate.SLOW
        self.linear, self.block = Linear(), Block()
        self.pair = [Block(), Linear()]
        self.parts = [L.Dense(4, activation="relu"), L.Dropout(0.5), L.Dense(4)]
        self.named = {"first": L.Dense(4), "second": L.Dense(4)}
        self.act = keras.activations.get("gelu")
        self.rows = np.arange(8.0, dtype=np.float32).reshape(2, 4)
        self.title, self.count, self.optional = "a layer", 3, None
        self.seeds = keras.random.SeedGenerator(3)
        self.generator = tf.random.Generator.from_seed(3)
        self.partial = functools.partial(scaled, factor=3.0)

    def hook(self, x):
        return x * self.config.scale

    @staticmethod
    def halved(x):
        return x / FACTOR

    @classmethod
    def limited(cls, x):
        return tf.minimum(x, float(cls.limit))

    def call(self, x):
        return self.hook(x)


class Base(Holder, keras.Layer):
    def __init__(self, read):
        super().__init__()
        self.hold(read)
        self.weight = self.add_weight(shape=(4,), initializer="ones")
        self.steps = self.add_weight(shape=(), initializer="zeros", trainable=False)


class BaseModule(Holder, tf.Module):
    def __init__(self, read):
        super().__init__()
        self.hold(read)
        self.weight = tf.Variable(tf.ones([4]))
        self.steps = tf.Variable(0.0, trainable=False)
        self.built = True

    def __call__(self, x):
        return self.call(x)


def enum_by_identity(layer, x):
    return x * 2.0 if layer.mode is Mode.SUM else -x


def enum_by_value(layer, x):
    if layer.config.mode == Mode.SUM:
        return x
    elif layer.config.mode == Mode.MEAN:
        return x * layer.mode.factor
    return -x


def enum_text(layer, x):
    return x * len(layer.mode.value) + len(Mode.MEAN.name) * layer.level


def enum_of_numbers(layer, x):
    return x * layer.rate + layer.level


def names_an_owner(layer, x):
    config = layer.config
    block = layer.block
    return x * config.scale + config.depth * block.scale


def gets_attributes(layer, x):
    y = getattr(layer, "count") * x  # noqa: B009
    return y if getattr(layer, "absent", None) is None else -y


def has_attributes(layer, x):
    return x * 2.0 if hasattr(layer, "weight") and not hasattr(layer, "absent") else -x


def asks_for_classes(layer, x):
    for part in layer.parts:
        if isinstance(part, L.Dropout):
            x = x * 2.0
        elif isinstance(part, L.Layer):
            x = part(x)
    return x if isinstance(layer.config, Config) else -x


def calls_a_module(layer, x):
    return layer.linear(x)


def calls_objects(layer, x):
    for part in layer.pair:
        x = part(x)
    return layer.block(x) + layer.block.forward(x)


def passes_arguments(layer, x):
    many = {"extra": 2.0}
    return scaled(x, *(2.0, 1.0), shift=0.5, **many) + layer.partial(x)


def calls_methods(layer, x):
    return layer.halved(x) + layer.limited(x) + Base.halved(x)


def loops(layer, x):
    out = {}
    for i, (name, part) in enumerate(layer.named.items()):
        out[name] = part(x) * i
    for i in range(layer.count)[::-1]:
        x = x + i
    return [x, *out.values()]


def adds_in_place(layer, x):
    total = 0.0
    for row in layer.rows:
        total += tf.reduce_sum(x * row)
    y = x
    y += layer.weight
    return y * total


def reads_items(layer, x):
    name = layer.config.names[0]
    if name in ("relu", "gelu"):
        x = ACTIVATIONS[name](x)
    return layer.named["second"](x) * layer.rows[0] if layer.title.startswith("a") else x


def leaves_code_out(layer, x):
    if layer.optional is not None:
        layer.optional = x
    if not layer.built or layer.count > 5:
        layer.count = layer.count + 1
        print("not built")
    return layer.act(x) if layer.parts and len(layer.parts) == 3 else -x


def compares(layer, x):
    small = max(min(layer.count, 2), 1)
    y = tf.zeros_like(x)
    return tf.where(x == y, x, x * small) * layer.weight


def assigns(layer, x):
    layer.steps.assign_add(1.0)
    layer.weight.assign(layer.weight * 0.5 + tf.reduce_mean(x, axis=0))
    return x * layer.weight + layer.steps


def draws(layer, x):
    noise = keras.random.normal(tf.shape(x), seed=layer.seeds)
    return x + keras.random.uniform(x.shape, seed=layer.seeds) * noise


def draws_of_a_generator(layer, x):
    noise = layer.generator.normal([4], stddev=layer.config.scale)
    return x + layer.generator.uniform([], maxval=layer.count, dtype=tf.float32) * noise


def identifies_a_function(layer, x):
    return x if layer.act is keras.activations.relu else layer.act(x)


READS = {
    function.__name__: function
    for function in (
        *(enum_by_identity, enum_by_value, enum_text, enum_of_numbers, names_an_owner),
        gets_attributes,
        *(has_attributes, asks_for_classes, calls_a_module, calls_objects, passes_arguments),
        *(calls_methods, loops, adds_in_place, reads_items, leaves_code_out, compares, assigns),
        *(draws, draws_of_a_generator, identifies_a_function),
    )
}
"""Functions of a layer or module and its input, by name."""


def reader(name, base=Base):
    """Return a layer or module of a new class that calls one of the functions."""
    if name == "super":
        return deriving(base)

    class Reader(base):
        def call(self, x):
            return self.read(self, x)

    return Reader(READS[name])


def deriving(base):
    """Return a layer or module whose methods call those of its base classes."""

    class Derived(base):
        def hook(self, x):
            return super().hook(x) + self.count

        def call(self, x):
            return super().call(x) * super(Derived, self).limited(x)  # noqa: UP008

    return Derived(None)


class Doubled(L.Dense):
    """A layer that extends one of Keras's."""

    factor = 2.0

    def call(self, inputs):
        return super().call(inputs) * self.factor
