"""Conversions from arrays, numbers and lists, and back: stock, installed, and a copy."""

import numpy as np
import pytest
import tensorflow as tf
from pytest_fastops.race import Arm

import fastops
from fastops_bench.common import long_but

rng = np.random.default_rng(0)
array = rng.normal(size=(4, 4)).astype(np.float32)
double, column, ints = array.astype(np.float64), array[:, 0], np.arange(4)
fortran, swapped = np.asfortranarray(array), array.astype(">f4")
words, flags = np.array(["ab", "c"]), array > 0
number, wide_number = np.float32(2.0), np.float64(2.0)
m, v = tf.constant(array), tf.Variable(array)
row, pair, scalar, count, yes = (
    tf.constant(rng.normal(size=8).astype(np.float32)),
    tf.constant([1.0, 2.0]),
    tf.constant(2.5),
    tf.constant(3),
    tf.constant(True),
)
scalar_variable = tf.Variable(2.5)

IN = """
tf.convert_to_tensor(array); tf.convert_to_tensor(double, dtype=tf.float32)
tf.convert_to_tensor(ints, dtype=tf.float32); tf.convert_to_tensor(column)
tf.convert_to_tensor(fortran); tf.convert_to_tensor(swapped); tf.constant(flags); tf.constant(words)
tf.constant(array); tf.constant(number); tf.convert_to_tensor(wide_number)
tf.constant([[1.0, 2.0], [3.0, 4.0]]); tf.convert_to_tensor([1, 2.5]); tf.constant([True, False])
tf.constant("text"); tf.convert_to_tensor([number, number]); tf.convert_to_tensor([array, array])
tf.convert_to_tensor([m, m]); tf.stack([m, m])
m + array; array + m; m + double; m * number; number * m; m @ array; array @ m; v + array
v.assign(array); v.assign_add(array); v.assign_sub(double)
tf.add(array, m); tf.matmul(array, m); tf.reduce_sum(array); tf.nn.relu(array)
tf.nn.softmax(array); tf.transpose(array); fastops.ops.tanh(x=array)
"""

OUT = """
m.numpy(); scalar.numpy(); float(scalar); int(count); bool(yes); complex(scalar); np.asarray(m)
np.array(m, copy=None); len(m); m.shape; m.shape[0]; m.ndim; m.dtype; m.device; list(row)
first, second = pair; v.numpy(); np.asarray(v); float(scalar_variable); bool(scalar_variable)
"""


SHORT = (
    *("tf.convert_to_tensor(array)", "tf.constant([[1.0, 2.0], [3.0, 4.0]])", "tf.stack([m, m])"),
    *("m + array", "m * number", "tf.matmul(array, m)", "v.assign(array)"),
    *("m.numpy()", "float(scalar)", "m.shape", "np.asarray(m)"),
)


def statements(text):
    calls = [call.strip() for line in text.strip().splitlines() for call in line.split(";")]
    return long_but(calls, SHORT)


def arms(statement):
    return [
        Arm("installed", statement, globals(), fastops.accelerated),
        Arm("stock", statement, globals()),
        Arm("copy", "array.copy()", globals()),
    ]


@pytest.mark.parametrize("call", statements(IN))
def test_in(call, race):
    race("arrays in", call, arms(call), rounds=11)


@pytest.mark.parametrize("call", statements(OUT))
def test_out(call, race):
    race("arrays out", call, arms(call), rounds=11)
