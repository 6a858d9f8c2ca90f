"""Reads, assignments, arithmetic and sparse updates of variables: stock, installed, PyTorch."""

import numpy as np
import pytest
from pytest_fastops.race import Arm

from fastops_bench.common import installed, long_but

ARRAY = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
ROWS = np.array([2, 0])

CASES = {
    "read": ("v.read_value()", "v.copy()", "v.clone()"),
    "number": ("v.numpy()", "v.copy()", "v.detach().numpy()"),
    "assign": ("v.assign(m)", "np.copyto(v, m)", "v.copy_(m)"),
    "assign_add": ("v.assign_add(z)", "np.add(v, z, out=v)", "v.add_(z)"),
    "assign an array": ("v.assign(a)", "np.copyto(v, a)", "v.copy_(torch.from_numpy(a))"),
    "sum with a tensor": ("v + m", "v + m", "v + m"),
    "product": ("v @ t", "v @ t", "v @ t"),
    "one row": ("v[1]", "v[1]", "v[1]"),
    "rows by index": ("tf.gather(v, rows)", "v[rows]", "v[rows]"),
    "rows, assigned": (
        "v.scatter_nd_update(rows[:, tf.newaxis], m[:2])",
        "v.__setitem__(rows, m[:2])",
        "v.index_copy_(0, rows, m[:2])",
    ),
    "a slice, assigned": (
        "v[1:3].assign(m[:2])",
        "v[1:3].__setitem__(slice(None), m[:2])",
        "v[1:3].copy_(m[:2])",
    ),
    "making one": ("tf.Variable(m)", "np.array(m)", "torch.nn.Parameter(m.clone(), False)"),
}
"""By name, the statements of TensorFlow, NumPy and PyTorch."""

SHORT = ("read", "assign", "assign_add", "sum with a tensor", "rows by index", "making one")

ARRAYS = {"m": ARRAY, "z": 0 * ARRAY, "t": ARRAY.T.copy(), "rows": ROWS}


def arms(tf_text, np_text, torch_text):
    yield Arm("numpy", np_text, {**ARRAYS, "a": ARRAY, "v": ARRAY.copy(), "np": np})
    if installed("tensorflow"):
        import tensorflow as tf

        import fastops

        names = {name: tf.constant(array) for name, array in ARRAYS.items()}
        names |= {"a": ARRAY, "v": tf.Variable(ARRAY), "tf": tf}
        yield Arm("installed", tf_text, names, fastops.accelerated)
        yield Arm("stock", tf_text, names)
    if installed("torch"):
        import torch

        torch.set_num_threads(1)
        names = {name: torch.tensor(array) for name, array in ARRAYS.items()}
        yield Arm(
            "torch", torch_text, {**names, "a": ARRAY, "v": torch.tensor(ARRAY), "torch": torch}
        )


@pytest.mark.parametrize("label", long_but(CASES, SHORT))
def test_variables(label, race):
    race("variables", label, list(arms(*CASES[label])), rounds=15)
