"""Whole programs, as they are and by `python -m fastops`, and their like in PyTorch.

Each run is a process of its own. What a program says of its work (a step, a request) is kept,
imports apart, first calls included; what it has computed must be the same.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fastops_bench.common import COMMANDS, interpreter

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ is not installed"),
]

PROGRAMS = {
    "actor-critic": ("actor_critic.py", ["--episodes=80"], ["--episodes=2"]),
    "DDPG": ("ddpg.py", ["--episodes=20"], ["--episodes=2"]),
    "online request": ("online_request.py", ["--requests=2000"], ["--requests=20"]),
}
"""By name, a file of examples/, its options, and those of a quick run."""


def run(*command):
    """Run a program, and return what it prints."""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    return subprocess.check_output(command, cwd=EXAMPLES, env=environment, text=True)


def read(output):
    """Return the microseconds that a piece of a program's work took, and what else it printed."""
    *computed, told = output.splitlines()
    return float(re.search(r"([\d.,]+) us", told)[1].replace(",", "")), computed


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(record, effort, quick, times, forked, name):
    file, full, short = PROGRAMS[name]
    program = [file, *(short if quick else full)]
    commands = {arm: [*command, *program] for arm, command in COMMANDS.items()}
    if torch := interpreter("torch"):
        commands["torch"] = [torch, *program, "--library=torch"]
    samples = {arm: [] for arm in commands}

    for _ in range(times(3, quick=1)):
        outputs = {}
        if effort == "once":
            outputs = {arm: one.output for arm, one in forked(program, EXAMPLES).items()}
        outputs |= {arm: run(*commands[arm]) for arm in commands if arm not in outputs}
        computed = {}
        for arm, output in outputs.items():
            taken, computed[arm] = read(output)
            samples[arm].append(taken * 1e3)
        assert computed["installed"] == computed["stock"]
    record("whole programs", name, samples=samples)


def test_digits(record, quick, tmp_path):
    """A small network on handwritten digits, by TensorFlow's raw ops and by fastops."""
    file = tmp_path / "demo.json"
    images = ["--images=40", "--epochs=1"] if quick else []
    command = [sys.executable, "digits_online.py", f"--json={file}", *images]
    subprocess.run(command, cwd=EXAMPLES, check=True, stdout=subprocess.DEVNULL)
    record("demo", "digits_online.py", speedup=json.loads(file.read_text())["speedup"])
