"""Whole programs, unchanged and by `python -m fastops`, and similar programs in PyTorch.

Each run is a new process. A program prints two times for a piece of its work (a step, a request):
the mean over the whole run, including first calls, and the median of the second half, when kernels
are prepared and calls recorded. Neither includes imports, not even those that a library makes on
first use. A program must compute the same with fastops and without.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fastops_bench import whole
from fastops_bench.common import COMMANDS, interpreter

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ is not installed"),
]

PROGRAMS = {
    "actor-critic": ("actor_critic.py", ["--episodes=80"], ["--episodes=2"], 3),
    "actor-critic, long": ("actor_critic.py", ["--episodes=200"], ["--episodes=4"], 1),
    "DDPG": ("ddpg.py", ["--episodes=20"], ["--episodes=2"], 3),
    "online request": ("online_request.py", ["--requests=2000"], ["--requests=20"], 3),
}
"""By name, a file of examples/, its options, its options in a quick run, and the number of runs."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(record, effort, quick, times, forked, name):
    file, full, short, runs = PROGRAMS[name]
    program = [file, *(short if quick else full)]
    commands = {arm: [*command, *program] for arm, command in COMMANDS.items()}
    if torch := interpreter("torch"):
        commands["torch"] = [torch, *program, "--library=torch"]

    def run_all():
        outputs = {}
        if effort == "once":
            outputs = {arm: result.output for arm, result in forked(program, EXAMPLES).items()}
        missing = [arm for arm in commands if arm not in outputs]
        return outputs | {arm: whole.run(commands[arm], EXAMPLES) for arm in missing}

    versions = {"torch": whole.version_of("torch", torch)} if torch else {}
    rounds = times(runs, quick=1)
    whole.compare(record, "whole programs", name, rounds, run_all, versions=versions)


def test_digits(record, quick, tmp_path):
    """A small network on handwritten digits, with TensorFlow's raw ops and with fastops."""
    file = tmp_path / "demo.json"
    images = ["--images=40", "--epochs=1"] if quick else []
    command = [sys.executable, "digits_online.py", f"--json={file}", *images]
    subprocess.run(command, cwd=EXAMPLES, check=True, stdout=subprocess.DEVNULL)
    record("demo", "digits_online.py", speedup=json.loads(file.read_text())["speedup"])
