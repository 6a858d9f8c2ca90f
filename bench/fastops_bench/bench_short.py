"""Programs that end before what is learned of their calls could pay, each in a process of its own.

Whole processes, imports included, are timed as they are and by `python -m fastops`; what they print
of what they have computed must be the same. Keras's own tests of layers are such programs, too:
they make layers, call each of them a few times, and drop it.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastops_bench.common import installed

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not installed("keras"), reason="Keras is not installed"),
]

PROGRAMS = (
    "fresh models, 4 calls",
    "fresh models, 8 calls",
    "one function, 40 shapes",
    "20 functions, 3 calls",
    "made, called, compiled, trained",
    "unrolled cells",
    "MobileNetV2, 15 steps",
    "changes an attribute",
    "changes trainable",
    "changes an activation",
    "changes a list",
    "changes weights",
    "changes sizes",
    "changes a rate",
)
"""Names of `fastops_bench.short_programs.PROGRAMS`, which imports TensorFlow."""

OF_EXAMPLES = {
    "actor-critic, 1 episode": ("actor_critic.py", "--episodes=1"),
    "actor-critic, 10 episodes": ("actor_critic.py", "--episodes=10"),
    "cart-pole, 1 episode": ("cartpole.py", "--episodes=1"),
    "cart-pole, 10 episodes": ("cartpole.py", "--episodes=10"),
    "DDPG, 1 episode": ("ddpg.py", "--episodes=1"),
    "online request, 1": ("online_request.py", "--requests=1"),
    "online request, 50": ("online_request.py", "--requests=50"),
}
"""By name, a file of examples/ and its options."""

OF_KERAS = (
    "activations/activation_test.py",
    "attention/multi_head_attention_test.py",
    "convolutional/conv_test.py",
    "core/dense_test.py",
    "core/embedding_test.py",
    "normalization/batch_normalization_test.py",
    "normalization/layer_normalization_test.py",
    "pooling/average_pooling_test.py",
    "regularization/dropout_test.py",
    "reshaping/flatten_test.py",
    "rnn/lstm_test.py",
)
"""Files of tests below ``keras/src/layers``."""


def run(command, folder=None):
    """Run a program; return the nanoseconds it took, and what it printed but for times."""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    begin = time.perf_counter_ns()
    output = subprocess.check_output(
        command, cwd=folder, env=environment, text=True, stderr=subprocess.DEVNULL
    )
    taken = time.perf_counter_ns() - begin
    lines = [line for line in output.splitlines() if not re.search(r"\d (us|ms|s)\b|in \d", line)]
    return taken, lines


def compare(record, rounds, name, program, folder=None):
    """Run a program in turn as it is and installed."""
    commands = {
        "stock": [sys.executable, *program],
        "installed": [sys.executable, "-m", "fastops", *program],
    }
    samples = {arm: [] for arm in commands}
    for number in range(rounds):
        computed = {}
        for arm in sorted(commands, reverse=bool(number % 2)):
            taken, computed[arm] = run(commands[arm], folder)
            samples[arm].append(taken)
        assert computed["installed"] == computed["stock"]
    record("short programs", name, samples=samples)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(record, times, name):
    program = ["-m", "fastops_bench.short_programs", name]
    compare(record, times(5, quick=1), name, program)


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ is not installed")
@pytest.mark.parametrize("name", OF_EXAMPLES)
def test_examples(record, times, name):
    compare(record, times(5, quick=1), name, OF_EXAMPLES[name], EXAMPLES)


@pytest.mark.parametrize("file", OF_KERAS)
def test_tests_of_keras(record, times, file):
    import keras

    path = Path(keras.__file__).parent / "src" / "layers" / file
    if not path.exists():
        pytest.skip("this Keras comes without its tests")
    program = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    compare(record, times(3, quick=1), f"Keras's {path.stem}", program)
