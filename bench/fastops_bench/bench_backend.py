"""`fastops.backend` and tf_keras's backend, if that is installed: each function, and `rnn`.

Aliases are also timed against the op of `fastops.ops` that they call.
"""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from pytest_fastops.race import Arm

from fastops import accelerated, backend, ops
from fastops_bench.backend_calls import CALLS, inputs

theirs = pytest.importorskip("tf_keras", reason="see the extra 'libraries'").backend

ROUNDS = 15

OPS = {
    "abs": "(x=x)",
    "argmax": "(input=x, dimension=-1)",
    "argmin": "(input=x, dimension=-1)",
    "cos": "(x=x)",
    "cumprod": "(x=x, axis=0)",
    "cumsum": "(x=x, axis=0)",
    "equal": "(x=x, y=x)",
    "exp": "(x=x)",
    "expand_dims": "(input=x, axis=-1)",
    "greater": "(x=x, y=x)",
    "greater_equal": "(x=x, y=x)",
    "in_top_k": "(predictions=x, targets=classes, k=2)",
    "less": "(x=x, y=x)",
    "less_equal": "(x=x, y=x)",
    "log": "(x=p)",
    "maximum": "(x=x, y=x)",
    "minimum": "(x=x, y=x)",
    "not_equal": "(x=x, y=x)",
    "permute_dimensions": "(x=x3, perm=(2, 0, 1))",
    "pow": "(x=p, y=2.0)",
    "reshape": "(tensor=x, shape=(4, 3))",
    "round": "(x=x)",
    "shape": "(input=x, out_type=tf.int32)",
    "sign": "(x=x)",
    "sin": "(x=x)",
    "softplus": "(features=x)",
    "softsign": "(features=x)",
    "square": "(x=x)",
    "tanh": "(x=x)",
}
"""The arguments of the op of `fastops.ops` for the call of an alias in `CALLS`."""


@pytest.mark.parametrize("name", CALLS)
def test_function(race, name):
    arms = [
        Arm(arm, CALLS[name], inputs(module))
        for arm, module in (("tf_keras", theirs), ("fastops", backend))
    ]
    race("backend", name, arms, rounds=ROUNDS, block=1e-3)


@pytest.mark.parametrize("name", OPS)
def test_alias(race, name):
    names = {**inputs(backend), "ops": ops, "tf": tf}
    op = f"ops.{getattr(backend, name).op.__name__}{OPS[name]}"
    arms = [Arm("op", op, names), Arm("alias", CALLS[name], names)]
    race("backend, aliases", name, arms)


def lstm(module, variables):
    """Return the step of an LSTM, written with the functions of a module."""

    def step(x, states):
        hidden, cell = states
        parts = []
        for kernel, recurrent, bias in variables:
            total = module.dot(x, kernel) + module.dot(hidden, recurrent)
            parts.append(module.bias_add(total, bias))
        update, forget, output = (module.sigmoid(part) for part in parts[:3])
        cell = forget * cell + update * module.tanh(parts[3])
        hidden = output * module.tanh(cell)
        return hidden, [hidden, cell]

    return step


def test_rnn(race):
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    variables = [
        tuple(tf.Variable(normal(*shape)) for shape in ((8, 16), (16, 16), (16,))) for _ in range(4)
    ]
    names = {"x": tf.constant(normal(2, 50, 8)), "states": [tf.zeros([2, 16])] * 2}
    arms = []
    for arm, module, wrap, scope in (
        ("tf_keras", theirs, None, None),
        ("fastops", backend, None, None),
        ("declared", backend, backend.replayable, None),
        ("not replayed", backend, partial, None),  # fastops does not read the code of a partial
        ("installed, not replayed", backend, partial, accelerated),
    ):
        step = lstm(module, variables)
        step = step if wrap is None else wrap(step)
        more = {} if scope is None else {"scope": scope}
        call = "K.rnn(step, x, states)"
        arms.append(Arm(arm, call, {**names, "K": module, "step": step}, **more))
    race("backend, rnn", "LSTM over 50 steps", arms, rounds=ROUNDS, block=2e-2)
