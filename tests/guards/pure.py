"""Functions of a user that are shown to be pure, each of which reads another kind of state."""

import functools
import math
import types
from dataclasses import dataclass, field

import keras
import numpy as np
import tensorflow as tf
from keras import activations, ops

from guards import settings
from guards.settings import TABLE as IMPORTED

FACTOR = 2.0
FACTORS = [2.0, 3.0]
PAIRS = ([1.0, 2.0], [3.0])
ROW = np.full(4, 0.5, np.float32)
CONSTANT = tf.constant([1.0, 2.0, 3.0, 4.0])
VARIABLE = tf.Variable([1.0, 2.0, 3.0, 4.0])
WEIGHT = keras.Variable(np.full(4, 3.0, np.float32))
LIMIT = 1000.0


@dataclass
class Config:
    scale: float = 2.0
    weights: list = field(default_factory=lambda: [1.0, 2.0])

    @property
    def doubled(self):
        return self.scale * 2.0

    def times(self, x):
        return x * self.scale

    @staticmethod
    def halved(x):
        return x / FACTOR

    @classmethod
    def of_class(cls, x):
        return x * cls.scale


CONFIG = Config()
SPACE = types.SimpleNamespace(scale=3.0, inner=types.SimpleNamespace(shift=1.0))
LAYER = keras.layers.Rescaling(0.5, 1.0)


def helper(x, scale=3.0, *, shift=1.0):
    return x * scale + shift * FACTOR


def closure(scale, many):
    def apply(x):
        return x * scale + many[0]

    return apply


def decorator(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * FACTOR

    return wrapper


@decorator
def decorated(x):
    return x + FACTOR


leaky = functools.partial(tf.nn.leaky_relu, alpha=0.4)


def divides(x):
    return x / 255.0


def reads_global(x):
    return tf.nn.relu(x) * FACTOR


def reads_list(x):
    return x * FACTORS[0] + FACTORS[-1]


def reads_nested(x):
    return x * PAIRS[0][1] + PAIRS[1][0]


def reads_array(x):
    return x * ROW + tf.reduce_sum(ROW)


def reads_tensor(x):
    return x + CONSTANT


def reads_variable(x):
    return x * VARIABLE + VARIABLE.read_value()


def reads_variable_of_keras(x):
    return x * WEIGHT + ops.sum(WEIGHT)


def reads_module(x):
    return x * settings.SCALE + settings.TABLE["shift"]


def reads_class_of_module(x):
    return x * settings.Named.factor + settings.Named.limits[0]


def reads_imported(x):
    return x + IMPORTED["shift"]


def reads_object(x):
    return x * CONFIG.scale + CONFIG.weights[1]


def reads_space(x):
    return x * SPACE.scale + SPACE.inner.shift


def calls_methods(x):
    return CONFIG.times(x) + Config.halved(x) + Config.of_class(x) + CONFIG.doubled


def calls_helper(x):
    return helper(x) + helper(x, shift=2.0)


def calls_decorated(x):
    return decorated(x)


def calls_partial(x):
    return leaky(x)


def calls_layer(x):
    return LAYER(x)


def calls_math(x):
    return x * math.sqrt(2.0 / math.pi) + np.sqrt(FACTOR) * np.pi


def calls_ops(x):
    return (
        ops.softmax(ops.relu(x)) + activations.gelu(x) + keras.ops.mean(x, axis=-1, keepdims=True)
    )


def branches_by_global(x):
    return x * 2.0 if FACTOR > 1.0 else -x


def branches_by_shape(x):
    if x.shape[-1] == 4 and x.dtype == tf.float32 and x is not None:
        return x * 2.0
    return -x


def branches_by_value(x):
    return -x if tf.reduce_sum(x) > LIMIT else x + 1.0


def conditional(x):
    return tf.cond(tf.reduce_sum(x) > LIMIT, lambda: -x, lambda: x + FACTOR)


def nests(x):
    def inner(y, scale=2.0):
        return y * scale + FACTOR

    return functools.partial(inner, scale=FACTORS[1])(x)


def loops(x):
    parts = []
    for factor in FACTORS:
        parts.append(x * factor)
    more = [part + 1.0 for part in parts]
    return tf.add_n(parts) + sum(part * 0.5 for part in more)


def unpacks(x):
    first, *rest = tf.unstack(x, axis=-1)
    return tf.stack([first, *rest], axis=-1) * len(rest)


def assigns_in_place(x):
    x = x[..., ::-1]
    x *= FACTOR
    x += 1.0
    return x


def maps(x):
    return tf.stack(list(map(lambda row: row * FACTOR, tf.unstack(x))))  # noqa: C417


def checks(x):
    assert x.shape.rank == 2, f"rank {x.shape.rank}"
    tf.debugging.assert_less(x, LIMIT)
    return tf.cast(tf.cast(x, tf.float64), tf.float32)


READS = {
    name: function
    for name, function in list(globals().items())
    if name.startswith(
        (
            *("reads_", "calls_", "branches_", "divides", "conditional", "loops", "unpacks"),
            *("assigns_", "maps", "checks", "nests"),
        )
    )
}
"""Functions of a tensor, by name."""

READS |= {
    "closure": closure(2.0, [1.0]),
    "lambda": lambda x, scale=2.0: x * scale,
}
