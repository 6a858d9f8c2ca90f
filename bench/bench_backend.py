"""`fastops.backend` beside tf_keras's backend, where that is installed: each function, and `rnn`.

Aliases are timed beside the op of `fastops.ops` that each of them is, too.
"""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from backend_calls import CALLS, inputs
from common import Arm

from fastops import accelerated, backend

theirs = pytest.importorskip("tf_keras", reason="see the extra 'libraries'").backend

ROUNDS = 15

OPS = {
    "abs": "op(x=x)",
    "argmax": "op(input=x, dimension=-1)",
    "argmin": "op(input=x, dimension=-1)",
    "cos": "op(x=x)",
    "cumprod": "op(x=x, axis=0)",
    "cumsum": "op(x=x, axis=0)",
    "equal": "op(x=x, y=x)",
    "exp": "op(x=x)",
    "expand_dims": "op(input=x, axis=-1)",
    "greater": "op(x=x, y=x)",
    "greater_equal": "op(x=x, y=x)",
    "in_top_k": "op(predictions=x, targets=classes, k=2)",
    "less": "op(x=x, y=x)",
    "less_equal": "op(x=x, y=x)",
    "log": "op(x=p)",
    "maximum": "op(x=x, y=x)",
    "minimum": "op(x=x, y=x)",
    "not_equal": "op(x=x, y=x)",
    "permute_dimensions": "op(x=x3, perm=(2, 0, 1))",
    "pow": "op(x=p, y=2.0)",
    "reshape": "op(tensor=x, shape=(4, 3))",
    "round": "op(x=x)",
    "shape": "op(input=x, out_type=tf.int32)",
    "sign": "op(x=x)",
    "sin": "op(x=x)",
    "softplus": "op(features=x)",
    "softsign": "op(features=x)",
    "square": "op(x=x)",
    "tanh": "op(x=x)",
}
"""The call of `fastops.ops` that an alias's call is."""


@pytest.mark.parametrize("name", CALLS)
def test_function(race, name):
    arms = [
        Arm(arm, CALLS[name], inputs(module))
        for arm, module in (("tf_keras", theirs), ("fastops", backend))
    ]
    race("backend", name, arms, rounds=ROUNDS, block=1e-3)


@pytest.mark.parametrize("name", OPS)
def test_alias(race, name):
    names = {**inputs(backend), "op": getattr(backend, name).op, "tf": tf}
    arms = [Arm("op", OPS[name], names), Arm("alias", CALLS[name], names)]
    race("backend, aliases", name, arms)


def lstm(module, variables):
    """Return the step of a network with long short-term memory, of a module's functions."""

    def step(x, states):
        hidden, cell = states
        parts = []
        for kernel, recurrent, bias in variables:
            total = module.dot(x, kernel) + module.dot(hidden, recurrent)
            parts.append(module.bias_add(total, bias))
        update, forget, output = (module.sigmoid(one) for one in parts[:3])
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
        ("not replayed", backend, partial, None),  # which nobody looks into
        ("installed, not replayed", backend, partial, accelerated),
    ):
        step = lstm(module, variables)
        step = step if wrap is None else wrap(step)
        more = {} if scope is None else {"scope": scope}
        call = "K.rnn(step, x, states)"
        arms.append(Arm(arm, call, {**names, "K": module, "step": step}, **more))
    race("backend, rnn", "LSTM over 50 steps", arms, rounds=ROUNDS, block=2e-2)
