"""Indexing, slicing, gathering and scattering: stock, installed, NumPy, and other libraries."""

import numpy as np
import pytest
from pytest_fastops.race import Arm

from fastops_bench.common import installed, long_but

ARRAY = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
MASK = ARRAY[:, 0] > 0
ROWS = np.array([2, 0, 5])
PAIRS = np.array([[0, 1], [3, 2], [5, 7]])

CASES = {
    "m[1]": ["m[1]"] * 4,
    "m[-1, 3]": ["m[-1, 3]"] * 4,
    "m[1:3]": ["m[1:3]"] * 4,
    "m[:, 0]": ["m[:, 0]"] * 4,
    "m[::2, 1:7:3]": ["m[::2, 1:7:3]"] * 4,
    "m[..., newaxis]": ["m[..., tf.newaxis]", "m[..., None]", "m[..., None]", "m[..., None]"],
    "m[i]": ["m[i]", "m[i]", "m[i]", "m[i]"],
    "rows by index": ["tf.gather(m, rows)", "m[rows]", "m[rows]", "m[rows]"],
    "columns by index": ["tf.gather(m, rows, axis=1)", *["m[:, rows]"] * 3],
    "elements by index": ["tf.gather_nd(m, pairs)", *["m[pairs[:, 0], pairs[:, 1]]"] * 3],
    "rows by mask": ["tf.boolean_mask(m, mask)", "m[mask]", "m[mask]", "m[mask]"],
    "places of a mask": ["tf.where(mask)", "np.argwhere(mask)", "torch.argwhere(mask)", ""],
    "rows, replaced": [
        "tf.tensor_scatter_nd_update(m, rows[:, tf.newaxis], m[:3])",
        "",
        "m.index_copy(0, rows, m[:3])",
        "m.at[rows].set(m[:3])",
    ],
    "all rows, one by one": ["[row for row in m]"] * 4,
}
"""By name, the expressions of TensorFlow, NumPy, PyTorch and JAX."""

SHORT = ("m[1]", "m[1:3]", "m[:, 0]", "rows by index", "rows by mask", "rows, replaced")

ARRAYS = {"m": ARRAY, "mask": MASK, "rows": ROWS, "pairs": PAIRS}


def arms(tf_text, np_text, torch_text, jax_text):
    if np_text:
        yield Arm("numpy", np_text, {**ARRAYS, "np": np, "i": 2})
    if installed("tensorflow"):
        import tensorflow as tf

        import fastops

        names = {name: tf.constant(array) for name, array in ARRAYS.items()}
        names |= {"tf": tf, "i": tf.constant(2)}
        yield Arm("installed", tf_text, names, fastops.accelerated)
        yield Arm("stock", tf_text, names)
    if installed("torch") and torch_text:
        import torch

        torch.set_num_threads(1)
        names = {name: torch.tensor(array) for name, array in ARRAYS.items()}
        yield Arm("torch", torch_text, {**names, "torch": torch, "i": torch.tensor(2)})
    if installed("jax") and jax_text:
        import jax

        jax.config.update("jax_cpu_enable_async_dispatch", False)
        names = {name: jax.numpy.asarray(array) for name, array in ARRAYS.items()}
        yield Arm("jax", jax_text, {**names, "i": jax.numpy.asarray(2)})


@pytest.mark.parametrize("label", long_but(CASES, SHORT))
def test_indexing(label, race):
    runners = list(arms(*CASES[label]))
    first = runners[0].result()
    for arm in runners[1:]:
        np.testing.assert_array_equal(np.asarray(arm.result()), np.asarray(first))
    race("indexing", label, runners, rounds=15)
