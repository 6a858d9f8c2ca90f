"""A three-layer perceptron on one row, in each library that this environment has."""

import numpy as np
from pytest_fastops.race import Arm

from fastops_bench.common import installed

STATEMENT = "relu(relu(row @ w1 + b1) @ w2 + b2) @ w3 + b3"
WEIGHTS = {
    "w1": (32, 32),
    "b1": (32,),
    "w2": (32, 32),
    "b2": (32,),
    "w3": (32, 1),
    "b3": (1,),
}

rng = np.random.default_rng(0)
ARRAYS = {
    name: rng.normal(size=shape).astype(np.float32) / 8
    for name, shape in {"row": (1, 32), **WEIGHTS}.items()
}


def arms():
    yield Arm("numpy", STATEMENT, {**ARRAYS, "relu": lambda values: np.maximum(values, 0)})
    if installed("tensorflow"):
        import tensorflow as tf

        import fastops

        names = {name: tf.Variable(array) for name, array in ARRAYS.items()}
        names |= {"row": tf.constant(ARRAYS["row"]), "relu": tf.nn.relu}
        yield Arm("stock", STATEMENT, names)
        with fastops.accelerated():
            names = names | {"relu": tf.nn.relu}
        yield Arm("installed", STATEMENT, names, fastops.accelerated)
    if installed("torch"):
        import torch

        torch.set_num_threads(1)
        names = {name: torch.tensor(array) for name, array in ARRAYS.items()}
        yield Arm("torch", STATEMENT, {**names, "relu": torch.relu})


def test_perceptron(race):
    runners = list(arms())
    for arm in runners[1:]:
        np.testing.assert_allclose(arm.result(), runners[0].result(), rtol=1e-4)
    race("perceptron", "three-layer perceptron on one row", runners)
