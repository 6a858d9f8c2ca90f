"""Gradients of small functions on a tape: stock, installed, and in PyTorch."""

import numpy as np
import pytest
from pytest_fastops.race import Arm

from fastops_bench.common import installed, long_but

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


LABELS = np.array([0, 3, 1, 7])

CASES = {
    "multiplication": ([normal(), normal()], "x * y", "x * y"),
    "tanh of 32": ([normal(32)], "tf.tanh(x)", "torch.tanh(x)"),
    "product of matrices": ([normal(4, 8), normal(8, 8)], "x @ y", "x @ y"),
    "mean of squares": ([normal(4, 8)], "tf.reduce_mean(x * x)", "torch.mean(x * x)"),
    "slice": ([normal(4, 8)], "x[1:3, ::2]", "x[1:3, ::2]"),
    "rows by index": ([normal(4, 8)], "tf.gather(x, rows)", "x[rows]"),
    "concatenation": ([normal(4, 8), normal(4, 8)], "tf.concat([x, y], 1)", "torch.cat([x, y], 1)"),
    "softmax cross entropy": (
        [normal(4, 8)],
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)",
        "functional.cross_entropy(x, labels, reduction='none')",
    ),
    "custom gradient": ([normal(4, 8)], "tf.nn.silu(x) * x", "functional.silu(x) * x"),
    "traced function": (
        [normal(4, 8), normal(8, 8)],
        "traced(x, y)",
        "torch.tanh(torch.tanh(x @ y) @ y)",
    ),
    "a chain of ten": (
        [normal(32)],
        "tf.tanh(" * 10 + "x" + ")" * 10,
        "torch.tanh(" * 10 + "x" + ")" * 10,
    ),
}
"""By name, the inputs, and the function in TensorFlow and in PyTorch."""

SHORT = ("multiplication", "product of matrices", "softmax cross entropy", "a chain of ten")


def arms(arrays, tf_text, torch_text):
    sources = ["x", "y"][: len(arrays)]
    yield Arm("numpy", "np.add(one, one)", {"np": np, "one": np.float32(1)})
    if installed("tensorflow"):
        yield from _tensorflow_arms(sources, arrays, tf_text)
    if installed("torch"):
        yield _torch_arm(sources, arrays, torch_text)


def _tensorflow_arms(sources, arrays, text):
    import tensorflow as tf

    import fastops

    names = dict(zip(sources, map(tf.constant, arrays), strict=True))
    names |= {"tf": tf, "labels": tf.constant(LABELS), "rows": tf.constant([2, 0])}
    names |= {"traced": tf.function(lambda x, y: tf.tanh(tf.tanh(x @ y) @ y))}
    code = f"""
def gradient({", ".join(sources)}):
    with tf.GradientTape() as tape:
        tape.watch([{", ".join(sources)}])
        result = {text}
    return tape.gradient(result, [{", ".join(sources)}])
"""
    exec(code, names)
    call = f"gradient({', '.join(sources)})"
    yield Arm("installed", call, names, fastops.accelerated)
    yield Arm("stock", call, names)


def _torch_arm(sources, arrays, text):
    import torch

    torch.set_num_threads(1)
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    names = dict(zip(sources, tensors, strict=True))
    names |= {"torch": torch, "functional": torch.nn.functional, "labels": torch.tensor(LABELS)}
    names |= {"rows": torch.tensor([2, 0])}
    code = f"""
def gradient({", ".join(sources)}):
    result = {text}
    return torch.autograd.grad(result.sum(), [{", ".join(sources)}])
"""
    exec(code, names)
    return Arm("torch", f"gradient({', '.join(sources)})", names)


def dense(gradient):
    """Return a gradient as an array, also a sparse one."""
    if hasattr(gradient, "dense_shape"):
        import tensorflow as tf

        gradient = tf.convert_to_tensor(gradient)
    return np.asarray(gradient)


@pytest.mark.parametrize("label", long_but(CASES, SHORT))
def test_gradients(label, race):
    runners = list(arms(*CASES[label]))
    wanted = runners[1].result()
    for arm in runners[2:]:
        for one, other in zip(wanted, arm.result(), strict=True):
            np.testing.assert_allclose(dense(one), dense(other), rtol=1e-4, atol=1e-6)
    race("gradients", label, runners, rounds=15)
