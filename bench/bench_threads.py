"""Kernels whose tasks run in the calling thread, in TensorFlow's, or where it is faster."""

from functools import partial

import pytest
import tensorflow as tf
from common import Arm
from numpy.random import default_rng

import fastops

DRAWN = default_rng(7)


def drawn(*shape):
    return tf.constant(DRAWN.standard_normal(shape, dtype="float32"))


WINDOWS = "ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='VALID'"
NORM = "scale=c, offset=c, mean=c, variance=c, is_training=False"
SMALL = {
    "softmax 4x10": ("Softmax(logits=x)", {"x": drawn(4, 10)}),
    "log-softmax 4x10": ("LogSoftmax(logits=x)", {"x": drawn(4, 10)}),
    "max pooling 8x8x8": (f"MaxPool(input=x, {WINDOWS})", {"x": drawn(1, 8, 8, 8)}),
    "average pooling 8x8x8": (f"AvgPool(value=x, {WINDOWS})", {"x": drawn(1, 8, 8, 8)}),
    "batch matmul 4x2x3x3": (
        "BatchMatMulV2(x=x, y=y)",
        {"x": drawn(4, 2, 3), "y": drawn(4, 3, 3)},
    ),
    "batch normalization 8x8x8": (
        f"FusedBatchNormV3(x=x, {NORM})",
        {"x": drawn(1, 8, 8, 8), "c": tf.ones([8])},
    ),
    "depthwise convolution 8x8x8": (
        "DepthwiseConv2dNative(input=x, filter=y, strides=[1, 1, 1, 1], padding='SAME')",
        {"x": drawn(1, 8, 8, 8), "y": drawn(3, 3, 8, 1)},
    ),
    "convolution 8x8x8": (
        "Conv2D(input=x, filter=y, strides=[1, 1, 1, 1], padding='SAME')",
        {"x": drawn(1, 8, 8, 8), "y": drawn(3, 3, 8, 8)},
    ),
    "transpose 8x8x8": ("Transpose(x=x, perm=p)", {"x": drawn(8, 8, 8), "p": [2, 0, 1]}),
}
LARGE = {
    "softmax 256x1000": ("Softmax(logits=x)", {"x": drawn(256, 1000)}),
    "convolution 16x32x32x16": (
        "Conv2D(input=x, filter=y, strides=[1, 1, 1, 1], padding='SAME')",
        {"x": drawn(16, 32, 32, 16), "y": drawn(3, 3, 16, 16)},
    ),
    "matmul 512": ("MatMul(a=x, b=x)", {"x": drawn(512, 512)}),
}
SWEEP = {
    f"{name} {size // 256} KiB": (call, {"x": drawn(size // 64, 64), **more})
    for size in (1 << 10, 1 << 13, 1 << 16, 1 << 20)
    for name, call, more in (
        ("sum", "Sum(input=x, axis=a)", {"a": [0, 1]}),
        ("sum of rows", "Sum(input=x, axis=a)", {"a": [1]}),
        ("tanh", "Tanh(x=x)", {}),
        ("add", "AddV2(x=x, y=x)", {}),
        ("transpose", "Transpose(x=x, perm=p)", {"p": [1, 0]}),
        ("matmul of one row by", "MatMul(a=r, b=x, transpose_b=True)", {"r": drawn(1, 64)}),
    )
}


@pytest.mark.parametrize(
    ("group", "label"),
    [
        (group, label)
        for group, cases in (("small", SMALL), ("large", LARGE), ("sweep", SWEEP))
        for label in cases
    ],
)
def test_threads(group, label, race):
    call, values = {"small": SMALL, "large": LARGE, "sweep": SWEEP}[group][label]
    values = {
        name: tf.constant(value) if isinstance(value, list) else value
        for name, value in values.items()
    }
    names = {"ops": fastops.raw_ops, "raw_ops": tf.raw_ops, **values}
    arms = [Arm("raw_ops", f"raw_ops.{call}", names)]
    for threads in ("auto", "caller", "pool"):
        scope = partial(fastops.options, threads=threads)
        arms.append(Arm(threads, f"ops.{call}", names, scope))
    race(f"threads, {group}", label, arms)
