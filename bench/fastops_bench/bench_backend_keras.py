"""Functions of `fastops.backend.keras` and of Keras's TensorFlow backend."""

import keras
import pytest
import tensorflow as tf
from pytest_fastops.race import Arm

from fastops.backend import keras as adapter

INPUTS = {
    "x": (4, 8),
    "y": (4, 8),
    "w": (8, 8),
    "c": (8,),
    "image": (1, 8, 8, 3),
    "kernel": (3, 3, 3, 4),
}

CALLS = """
    core.cast(x, "int32")
    core.convert_to_tensor(array)
    numpy.add(x, y)
    numpy.add(x, 2)
    numpy.add(x, variable)
    numpy.subtract(x, y)
    numpy.multiply(x, 0.5)
    numpy.divide(x, y)
    numpy.maximum(x, 0.0)
    numpy.exp(x)
    numpy.tanh(array)
    numpy.clip(x, 0.0, 1.0)
    numpy.where(flags, x, y)
    numpy.sum(x, axis=-1)
    numpy.mean(x)
    numpy.max(x, axis=1)
    numpy.var(x, axis=0)
    numpy.argmax(x, axis=-1)
    numpy.matmul(x, w)
    numpy.matmul(x, kernel_variable)
    numpy.einsum("ij,kj->ik", x, y)
    numpy.reshape(x, (8, 4))
    numpy.transpose(x)
    numpy.concatenate([x, y])
    numpy.stack([x, y])
    numpy.take(x, rows, axis=0)
    numpy.zeros((3, 4))
    nn.relu(x)
    nn.gelu(x)
    nn.softmax(x)
    nn.one_hot(rows, 4)
    nn.conv(image, kernel)
    nn.max_pool(image, 2)
    nn.batch_normalization(x, c, c, -1)
    nn.moments(x, [0])
    math.logsumexp(x)
    random.normal((2, 3), seed=3)
    random.dropout(x, 0.5, seed=generator)
"""

CASES = [line.strip() for line in CALLS.strip().split("\n")]


def names():
    found = {
        name: tf.abs(tf.random.stateless_normal(shape, (1, 2))) for name, shape in INPUTS.items()
    }
    return found | {
        "flags": found["x"] > 1,
        "rows": tf.constant([1, 0]),
        "array": found["x"].numpy(),
        "variable": keras.Variable(found["x"]),
        "kernel_variable": keras.Variable(found["w"]),
        "generator": keras.random.SeedGenerator(3),
        "ours": adapter,
        "theirs": keras.src.backend.tensorflow,
    }


def arms(call):
    given = names()
    return [Arm("fastops", f"ours.{call}", given), Arm("Keras", f"theirs.{call}", given)]


@pytest.mark.parametrize("call", CASES)
def test_function(call, race):
    race("keras backend", call, arms(call))
