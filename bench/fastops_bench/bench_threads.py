"""Kernels whose tasks run in the calling thread, in TensorFlow's, or in the faster of both."""

from functools import partial

import pytest
import tensorflow as tf
from numpy.random import default_rng
from pytest_fastops.race import Arm

import fastops
from fastops_bench.common import installed

DRAWN = default_rng(7)


def drawn(*shape):
    return tf.constant(DRAWN.standard_normal(shape, dtype="float32"))


WINDOWS = "ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='VALID'"
NORM = "scale=c, offset=c, mean=c, variance=c, is_training=False"
SMALL = {
    "softmax 4x10": ("Softmax(logits=x)", {"x": drawn(4, 10)}, "softmax(x, -1)"),
    "log-softmax 4x10": ("LogSoftmax(logits=x)", {"x": drawn(4, 10)}, "log_softmax(x, -1)"),
    "max pooling 8x8x8": (
        f"MaxPool(input=x, {WINDOWS})",
        {"x": drawn(1, 8, 8, 8)},
        "max_pool2d(x, 2)",
    ),
    "average pooling 8x8x8": (
        f"AvgPool(value=x, {WINDOWS})",
        {"x": drawn(1, 8, 8, 8)},
        "avg_pool2d(x, 2)",
    ),
    "batch matmul 4x2x3x3": (
        "BatchMatMulV2(x=x, y=y)",
        {"x": drawn(4, 2, 3), "y": drawn(4, 3, 3)},
        "bmm(x, y)",
    ),
    "batch normalization 8x8x8": (
        f"FusedBatchNormV3(x=x, {NORM})",
        {"x": drawn(1, 8, 8, 8), "c": tf.ones([8])},
        "batch_norm(x, c, c, c, c)",
    ),
    "depthwise convolution 8x8x8": (
        "DepthwiseConv2dNative(input=x, filter=y, strides=[1, 1, 1, 1], padding='SAME')",
        {"x": drawn(1, 8, 8, 8), "y": drawn(3, 3, 8, 1)},
        "conv2d(x, y.permute(1, 0, 2, 3), padding=1, groups=8)",
    ),
    "convolution 8x8x8": (
        "Conv2D(input=x, filter=y, strides=[1, 1, 1, 1], padding='SAME')",
        {"x": drawn(1, 8, 8, 8), "y": drawn(3, 3, 8, 8)},
        "conv2d(x, y, padding=1)",
    ),
    "transpose 8x8x8": (
        "Transpose(x=x, perm=p)",
        {"x": drawn(8, 8, 8), "p": [2, 0, 1]},
        "permute(x, p).contiguous()",
    ),
}
"""The op, its inputs, and the call in PyTorch, with channels before the sides of an image."""
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


CASES: dict[str, dict[str, tuple]] = {"small": SMALL, "large": LARGE, "sweep": SWEEP}


@pytest.mark.parametrize(
    ("group", "label"),
    [
        pytest.param(group, label, marks=pytest.mark.long if group != "small" else ())
        for group in CASES
        for label in CASES[group]
    ],
)
def test_threads(group, label, race):
    call, values, *peer = CASES[group][label]
    arrays = {
        name: tf.constant(value) if isinstance(value, list) else value
        for name, value in values.items()
    }
    names = {"ops": fastops.raw_ops, "raw_ops": tf.raw_ops, **arrays}
    arms = [Arm("raw_ops", f"raw_ops.{call}", names)]
    for threads in ("auto", "caller", "pool"):
        scope = partial(fastops.options, threads=threads)
        arms.append(Arm(threads, f"ops.{call}", names, scope))
    if peer and installed("torch"):
        arms.append(torch_arm(*peer, values))
    race(f"threads, {group}", label, arms)


def torch_arm(statement, values):
    import torch

    torch.set_num_threads(1)
    tensors = {
        name: value if isinstance(value, list) else torch.tensor(value.numpy())
        for name, value in values.items()
    }
    for name, order in (("x", (0, 3, 1, 2)), ("y", (3, 2, 0, 1))):
        if name in tensors and tensors[name].ndim == 4:
            tensors[name] = tensors[name].permute(order).contiguous()
    functions = {**vars(torch), **vars(torch.nn.functional)}
    return Arm("torch", statement, functions | tensors)
