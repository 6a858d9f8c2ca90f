"""How calls scale with the number of ops, inputs, attributes, and cached kernels."""

from itertools import cycle

import numpy as np
import pytest
from pytest_fastops.race import Arm

from fastops_bench.common import installed

pytestmark = pytest.mark.filterwarnings("ignore")


def points(*counts, short):
    return [pytest.param(n, marks=() if n in short else pytest.mark.long) for n in counts]


def sweep(of, along, at):
    return {"of": of, "along": along, "at": at}


@pytest.mark.skipif(not installed("tensorflow"), reason="functions are TensorFlow's")
@pytest.mark.parametrize("count", points(1, 3, 10, 30, 100, 300, 1000, short=(1, 10, 100)))
def test_ops(count, race):
    """A chain of ops: eager, in a `tf.function`, and as a plan."""
    import tensorflow as tf

    import fastops

    def chain(ops, x):
        for _ in range(count):
            x = ops.Tanh(x=x)
        return x

    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    names = {"chain": chain, "x": x, "ops": fastops.raw_ops, "raw_ops": tf.raw_ops}
    options = {"autograph": False}
    plan = fastops.function(lambda x: chain(tf.raw_ops, x), executor="plan", **options)
    function = tf.function(lambda x: chain(tf.raw_ops, x), **options)
    arms = [
        Arm("fastops", "chain(ops, x)", names),
        Arm("raw_ops", "chain(raw_ops, x)", names),
        Arm("plan", "function(x)", {"function": plan, "x": x}),
        Arm("tf.function", "function(x)", {"function": function, "x": x}),
    ]
    for arm in arms[1:]:
        np.testing.assert_array_equal(arm.result(), arms[0].result())
    along = sweep("a chain of Tanh", "ops", count)
    race("scaling, ops", f"{count} ops", arms, rounds=15, sweep=along)


INPUTS = {
    "AddN": ("AddN(inputs=values)", "", ""),
    "ConcatV2": ("ConcatV2(values=values, axis=0)", "np.concatenate(values)", "torch.cat(values)"),
    "Pack": ("Pack(values=values)", "np.stack(values)", "torch.stack(values)"),
}
"""The calls of each op in TensorFlow, NumPy and PyTorch."""


@pytest.mark.parametrize("count", points(2, 4, 8, 16, 32, 64, 128, 256, short=(2, 8, 64, 256)))
@pytest.mark.parametrize("op", ["AddN", "ConcatV2", pytest.param("Pack", marks=pytest.mark.long)])
def test_inputs(op, count, race):
    arrays = [np.full(4, i, np.float32) for i in range(count)]
    tf_text, np_text, torch_text = INPUTS[op]
    arms = [Arm("numpy", np_text, {"np": np, "values": arrays})] if np_text else []
    if installed("tensorflow"):
        import tensorflow as tf

        import fastops

        names = {"ops": fastops.raw_ops, "raw_ops": tf.raw_ops}
        names["values"] = [tf.constant(array) for array in arrays]
        arms.append(Arm("fastops", f"ops.{tf_text}", names))
        arms.append(Arm("raw_ops", f"raw_ops.{tf_text}", names))
    if installed("torch") and torch_text:
        import torch

        torch.set_num_threads(1)
        tensors = [torch.tensor(array) for array in arrays]
        arms.append(Arm("torch", torch_text, {"torch": torch, "values": tensors}))
    if not arms:
        pytest.skip("no library of this environment has it")
    along = sweep(op, "inputs", count)
    race("scaling, inputs", f"{op} of {count} inputs", arms, rounds=15, sweep=along)


MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _slices():
    """Return arguments of a slice of a matrix, as tensors."""
    import tensorflow as tf

    parts = {"begin": [0, 0], "end": [2, 2], "strides": [1, 1]}
    names = {name: tf.constant(values) for name, values in parts.items()}
    return names | {"x": tf.constant(np.eye(4, dtype=np.float32))}


SLICE = "StridedSlice(input=x, begin=begin, end=end, strides=strides{})"


@pytest.mark.skipif(not installed("tensorflow"), reason="the op is TensorFlow's")
@pytest.mark.parametrize("count", points(0, 1, 2, 3, 4, 5, short=(0, 1, 3, 5)))
def test_attributes(count, race):
    """An op that gets more and more attributes, with their default values."""
    import tensorflow as tf

    import fastops

    names = {"ops": fastops.raw_ops, "raw_ops": tf.raw_ops, **_slices()}
    text = SLICE.format("".join(f", {name}=0" for name in MASKS[:count]))
    arms = [Arm("fastops", f"ops.{text}", names), Arm("raw_ops", f"raw_ops.{text}", names)]
    along = sweep("StridedSlice", "attributes", count)
    race("scaling, attributes", f"{count} attributes", arms, rounds=15, sweep=along)


@pytest.mark.skipif(not installed("tensorflow"), reason="the op is TensorFlow's")
@pytest.mark.parametrize("count", points(1, 4, 16, 64, 256, 1024, short=(1, 16, 256)))
def test_kernels(count, race):
    """An op whose calls have several attribute values in turn, each with its own kernel."""
    import tensorflow as tf

    import fastops

    names = {"ops": fastops.raw_ops, "raw_ops": tf.raw_ops, **_slices()}
    text = SLICE.format(", end_mask=next(masks)")
    arms = [
        Arm("fastops", f"ops.{text}", names | {"masks": cycle(range(count))}, warm=3 * count),
        Arm("raw_ops", f"raw_ops.{text}", names | {"masks": cycle(range(count))}, warm=count),
    ]
    along = sweep("StridedSlice", "kernels", count)
    race("scaling, kernels", f"{count} kernels", arms, rounds=15, sweep=along)
