"""Single calls, timed one by one, to measure the distribution of their times."""

import numpy as np
import pytest
from pytest_fastops.race import Arm, Race

from fastops_bench.common import installed

ARRAYS = {
    "AddV2": {"x": np.float32(1), "y": np.float32(2)},
    "MatMul": {"a": np.ones((1, 32), np.float32), "b": np.ones((32, 32), np.float32)},
    "Softmax": {"logits": np.ones((4, 10), np.float32)},
}
PEERS = {
    "AddV2": ("np.add(x, y)", "torch.add(x, y)"),
    "MatMul": ("np.matmul(a, b)", "torch.matmul(a, b)"),
    "Softmax": ("", "torch.softmax(logits, -1)"),
}

IN_TURN = 100
"""The number of calls of one arm before the calls of the next arm."""


def arms(op):
    arrays, (np_text, torch_text) = ARRAYS[op], PEERS[op]
    if np_text:
        yield Arm("numpy", np_text, {"np": np, **arrays})
    if installed("tensorflow"):
        import tensorflow as tf

        import fastops

        call = f"{op}({', '.join(f'{name}={name}' for name in arrays)})"
        names = {name: tf.constant(array) for name, array in arrays.items()}
        names |= {"ops": fastops.raw_ops, "raw_ops": tf.raw_ops}
        yield Arm("fastops", f"ops.{call}", names)
        yield Arm("raw_ops", f"raw_ops.{call}", names)
    if installed("torch"):
        import torch

        torch.set_num_threads(1)
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}
        yield Arm("torch", torch_text, {"torch": torch, **tensors})


@pytest.mark.parametrize("op", ARRAYS)
def test_latency(op, effort, record):
    calls = {"full": 5000, "quick": 1000, "once": IN_TURN}[effort]
    runners = list(arms(op))
    single = {arm.name: [] for arm in runners}
    race = Race(runners)

    def take_turns():
        for _ in range(calls // IN_TURN):
            for arm in runners:
                with arm.scope():
                    arm.repeat(IN_TURN)
                    single[arm.name] += arm.singly(IN_TURN)

    race.call(take_turns)
    race.close()
    record("latency", op, single=single)
