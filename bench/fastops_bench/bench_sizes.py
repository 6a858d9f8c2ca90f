"""From one element to ten million: the size from which dispatch no longer matters."""

import math

import numpy as np
import pytest
from pytest_fastops.race import Arm

from fastops_bench.common import installed

SIZES = [10**power for power in range(8)]
SIDES = [1, 4, 16, 64, 256, 512, 1024]

OPS = {
    "AddV2": ("{}(x=x, y=x)", "np.add(x, x)", "torch.add(x, x)", "jnp.add(x, x)"),
    "Tanh": ("{}(x=x)", "np.tanh(x)", "torch.tanh(x)", "jnp.tanh(x)"),
    "Sum": ("{}(input=x, axis=zero)", "np.sum(x)", "torch.sum(x)", "jnp.sum(x)"),
    "MatMul": ("{}(a=x, b=x)", "np.matmul(x, x)", "torch.matmul(x, x)", "jnp.matmul(x, x)"),
}
"""The calls of each op in TensorFlow, NumPy, PyTorch and JAX."""


def points():
    for op in OPS:
        for size in SIDES if op == "MatMul" else SIZES:
            elements = size * size if op == "MatMul" else size
            marks = pytest.mark.long if op == "Sum" else ()
            yield pytest.param(op, elements, id=f"{op} of {elements:,}", marks=marks)


def arms(op, array):
    tf_text, np_text, torch_text, jax_text = OPS[op]
    yield Arm("numpy", np_text, {"np": np, "x": array})
    if installed("tensorflow"):
        yield from _tensorflow_arms(op, tf_text, array)
    if installed("torch"):
        import torch

        torch.set_num_threads(1)
        yield Arm("torch", torch_text, {"torch": torch, "x": torch.tensor(array)})
    if installed("jax"):
        import jax

        jax.config.update("jax_cpu_enable_async_dispatch", False)
        yield Arm("jax", jax_text, {"jnp": jax.numpy, "x": jax.numpy.asarray(array)})


def _tensorflow_arms(op, text, array):
    import tensorflow as tf

    import fastops
    from fastops._reports.floors import BareKernel

    x, zero = tf.constant(array), tf.constant(0)
    given = {"AddV2": {"x": x, "y": x}, "Tanh": {"x": x}, "Sum": {"input": x, "axis": zero}}
    arguments = given.get(op, {"a": x, "b": x})
    names = {"ops": fastops.raw_ops, "raw_ops": tf.raw_ops, "x": x, "zero": zero}
    names["kernel"] = BareKernel(getattr(fastops.raw_ops, op), **arguments)
    yield Arm("fastops", text.format(f"ops.{op}"), names)
    yield Arm("kernel", "kernel()", names)
    yield Arm("raw_ops", text.format(f"raw_ops.{op}"), names)


@pytest.mark.parametrize(("op", "elements"), points())
def test_sizes(op, elements, race):
    shape = (math.isqrt(elements),) * 2 if op == "MatMul" else (elements,)
    values = np.linspace(-1, 1, elements, dtype=np.float32).reshape(shape)
    sweep = {"of": op, "along": "elements", "at": elements}
    race("sizes", f"{op} of {elements:,}", list(arms(op, values)), rounds=15, sweep=sweep)
