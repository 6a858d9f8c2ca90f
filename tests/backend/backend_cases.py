"""Calls of functions of `fastops.backend`: the calls that benchmarks time, and variants of them.

Each call is an expression of ``K``, a module, and of inputs, under the names that they have in
`fastops_bench.backend_calls`.
"""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
from fastops_bench.backend_calls import CALLS, arrays
from tensorflow.python.eager import context

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VARIANTS = tomllib.loads(Path(__file__).with_name("calls.toml").read_text())
"""More calls, by the name of the function."""


def cases():
    """Yield pairs of a function's name and one of its calls."""
    for name in sorted({*CALLS, *VARIANTS}):
        if name in CALLS:
            yield name, CALLS[name]
        for call in VARIANTS.get(name, []):
            yield name, call


def step_of(module):
    """Return a step of a simple recurrent network, written with functions of a module."""
    weights = tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))

    def step(x, states):
        output = module.tanh(module.bias_add(module.dot(x, weights), x[0, 0] + weights[0]))
        for state in states:
            output = module.maximum(output, state) + state
        return output, [output]

    return step


def world(kind="tensors"):
    """Return the inputs by name, as tensors, variables or arrays, or with another float type."""
    values = arrays()
    rng = np.random.default_rng(3)
    values["state"] = rng.normal(size=(2, 4)).astype(np.float32)
    values["probabilities"] = rng.dirichlet(np.ones(4), (2, 6)).astype(np.float32)
    array = values["x"]
    if kind.startswith("float"):
        values = {n: v.astype(kind) if v.dtype == np.float32 else v for n, v in values.items()}
        array = array.astype(kind)
    elif kind == "variables":
        values = {n: tf.Variable(v) for n, v in values.items()}
    if kind not in ("variables", "arrays"):
        values = {n: tf.constant(v) for n, v in values.items()}
    return {
        **values,
        "array": array,
        "variable": tf.Variable(array),
        "sparse": tf.SparseTensor([[0, 1], [2, 3]], np.array([1.5, 2.5], np.float32), (3, 4)),
        "labels": tf.constant([[1, 2, 0], [2, 0, 0]]),
        "lengths": tf.constant([[6], [4]]),
        "label_lengths": tf.constant([[2], [1]]),
        "sequence_lengths": tf.constant([6, 3]),
        "mask": tf.constant(np.array([[1, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 0]], bool)),
        "step": step_of,
        "tf": tf,
    }


@dataclass
class Outcome:
    """The outcome of a call: its flat results, or its exception."""

    results: list
    error: Exception | None = None

    def __str__(self):
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return str([result[:3] for result in self.results])


def outcome(call, module, inputs, seed, around=lambda run: run()):
    """Make a call, pass its results through `around`, and return the `Outcome`."""
    np.random.seed(seed)
    if any(word in call for word in ("random", "dropout", "truncated")):
        # Cached kernels would continue the sequence of a seed.
        context.context().clear_kernel_cache()

    def run():
        return eval(call, {**inputs, "K": module})

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = around(run)
            return Outcome(
                [plain(leaf) for leaf in tf.nest.flatten(result, expand_composites=True)]
            )
    except Exception as error:
        return Outcome([], error)


def plain(value):
    """Return the class of a value, and the bytes of a tensor or array, for comparison."""
    kind = "variable" if isinstance(value, tf.Variable) else type(value).__name__
    if isinstance(value, (tf.Tensor, tf.Variable)):
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return kind, value.dtype.name, value.shape, value.tobytes()
    return kind, value


def differ(expected, got, within=0.0):
    """Describe how two outcomes differ, floats by more than a distance; `None` if they do not."""
    if type(expected.error) is not type(got.error):
        return f"{expected} became {got}"
    if len(expected.results) != len(got.results):
        return f"{len(expected.results)} results became {len(got.results)}"
    for one, other in zip(expected.results, got.results, strict=True):
        if one != other and not (distance := _distance(one, other)) <= within:
            return f"{expected} became {got}, by {distance}"
    return None


def _distance(one, other):
    if len(one) != 4 or one[:3] != other[:3] or not one[1].startswith("float"):
        return np.inf
    first, second = (np.frombuffer(x[3], x[1]).astype(float) for x in (one, other))
    return np.max(np.abs(first - second))
