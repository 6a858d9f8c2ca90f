"""Programs that end before recordings and plans could pay, each in a new process.

Whole processes, including imports, are timed unchanged and by `python -m fastops`. Their printed
results must be the same. Keras's own tests of layers are such programs, too: they make layers, call
each of them a few times, and drop it.
"""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from fastops_bench.common import COMMANDS, installed

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
"""Files of examples/ and their options, by name."""

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
    "reshaping/permute_test.py",
    "rnn/lstm_test.py",
)
"""Files of tests below ``keras/src/layers``."""

ENOUGH = ("activations/activation_test.py", "reshaping/permute_test.py")
"""The files that run if everything is only tried once. The others take minutes."""


def run(command, folder=None):
    """Run a program; return its time in nanoseconds, and its output."""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    begin = time.perf_counter_ns()
    output = subprocess.check_output(
        command, cwd=folder, env=environment, text=True, stderr=subprocess.DEVNULL
    )
    return time.perf_counter_ns() - begin, output


def computed(output):
    """Return the output lines of a program, without those that contain times."""
    lines = output.splitlines()
    return [line for line in lines if not re.search(r"\d (us|ms|s)\b|in \d|^seconds: ", line)]


@pytest.fixture
def compare(record, effort, times, forked):
    """Return a function that runs a program alternately unchanged and installed."""

    def compare(rounds, name, program, folder=None):
        samples = {arm: [] for arm in COMMANDS}
        for number in range(times(rounds, quick=1)):
            if effort == "once":
                outcomes = forked(program, folder)
                results = {arm: (run.taken, run.output) for arm, run in outcomes.items()}
            else:
                results = {
                    arm: run([*COMMANDS[arm], *program], folder)
                    for arm in sorted(COMMANDS, reverse=bool(number % 2))
                }
            for arm, (taken, _) in results.items():
                samples[arm].append(taken)
            assert computed(results["installed"][1]) == computed(results["stock"][1])
        record("short programs", name, samples=samples)

    return compare


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(compare, name):
    compare(5, name, ["-m", "fastops_bench.short_programs", name])


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ is not installed")
@pytest.mark.parametrize("name", OF_EXAMPLES)
def test_examples(compare, name):
    compare(5, name, OF_EXAMPLES[name], EXAMPLES)


@pytest.mark.parametrize("file", OF_KERAS)
def test_tests_of_keras(compare, effort, file):
    import keras

    if effort == "once" and file not in ENOUGH:
        pytest.skip("it takes long, and another file of Keras's tests runs instead")
    path = Path(keras.__file__).parent / "src" / "layers" / file
    if not path.exists():
        pytest.skip("this Keras comes without its tests")
    # Do not use the configuration of a checkout around the environment, which turns warnings into
    # errors.
    alone = ["-c", os.devnull, f"--rootdir={path.parent}", "-p", "no:cacheprovider"]
    program = ["-m", "pytest", "-q", *alone, str(path)]
    compare(3, f"Keras's {path.stem}", program)
