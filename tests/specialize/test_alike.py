"""Comparisons of recordings and results, bit by bit."""

import numpy as np
import pytest
import tensorflow as tf

from fastops._specialize.recording.alike import alike

pytestmark = pytest.mark.quick

OBJECTS = np.array([b"a", b"bc"], object)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (0.0, 0.0, True),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (b"a", b"a", True),
        (np.float32(0), np.float32(0), True),
        (np.float32(0), np.float32(-0.0), False),
        (np.float32("nan"), np.float32("nan"), True),
        (np.float32(1), np.float64(1), False),
        (np.zeros(2), np.zeros(2), True),
        (np.zeros(2), -np.zeros(2), False),
        (np.zeros(2), np.zeros((2, 1)), False),
        (np.zeros(2, "f"), np.zeros(2, "i"), False),
        (OBJECTS, OBJECTS.copy(), True),
        (OBJECTS, OBJECTS[::-1], False),
        (tf.zeros(2), tf.zeros(2), True),
        (tf.zeros(2), -tf.zeros(2), False),
        (tf.constant(["a"]), tf.constant(["a"]), True),
        ([np.ones(2), {"a": (1, b"b")}], [np.ones(2), {"a": (1, b"b")}], True),
        ([np.ones(2)], [np.ones(2), np.ones(2)], False),
    ],
)
def test_values_are_compared_bit_by_bit(left, right, same):
    assert alike(left, right) is same


def test_two_variables_are_never_alike():
    assert not alike(tf.Variable(1.0), tf.Variable(1.0))
