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

from fastops_bench.common import interpreter

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
    """Run a program; return its microseconds a piece of work, and what else it prints."""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    output = subprocess.check_output(command, cwd=EXAMPLES, env=environment, text=True)
    *computed, told = output.splitlines()
    return float(re.search(r"([\d.,]+) us", told)[1].replace(",", "")), computed


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(record, quick, times, name):
    file, full, short = PROGRAMS[name]
    options = short if quick else full
    program = [file, *options]
    commands = {
        "stock": [sys.executable, *program],
        "installed": [sys.executable, "-m", "fastops", *program],
    }
    if torch := interpreter("torch"):
        commands["torch"] = [torch, *program, "--library=torch"]
    samples = {arm: [] for arm in commands}

    for _ in range(times(3, quick=1)):
        computed = {}
        for arm, command in commands.items():
            taken, computed[arm] = run(*command)
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
