"""Plain programs give the same with fastops and without."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def results(*command):
    """Run a program; return what it prints but for the time it took, and what it says besides."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [line for line in lines if not line.startswith("seconds:")], done.stderr


@pytest.mark.parametrize(
    ("program", "size", "ops"),
    [
        ("cartpole.py", "--episodes=25", ["MatMul", "LogSoftmax", "AssignSubVariableOp"]),
        ("keras_digits.py", "--epochs=1", ["MatMul", "Relu", "AddV2"]),
        ("graph.py", "--steps=5", ["MatMul", "AddV2", "PartitionedCall"]),
    ],
)
def test_the_same_results(program, size, ops):
    path = f"examples/{program}"
    want, _ = results(path, size)
    got, report = results("-m", "fastops", "--profile", path, size)
    assert len(want) >= 2
    assert got == want
    for op in ops:
        assert op in report
