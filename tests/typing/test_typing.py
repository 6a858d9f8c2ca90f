"""The stubs: mypy's results for calls, and whether the stubs match the objects at run time."""

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from fastops._core.tables import facts

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(*command):
    """Run a module of mypy in the repository; fail with its output if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_mypy_understands_calls(tmp_path):
    pytest.importorskip("mypy")
    run("mypy", "--config-file", "pyproject.toml", "--cache-dir", tmp_path, "tests/typing/cases.py")


@pytest.mark.skipif(facts.VERSION != tf.version.VERSION, reason="made for another TensorFlow")
def test_stubs_describe_what_exists():
    pytest.importorskip("mypy")
    modules = ["fastops.backend", "fastops.gen", "fastops.ops", "fastops.raw_ops"]
    options = ["--mypy-config-file", "pyproject.toml", "--allowlist", "tests/typing/no_stubs.txt"]
    run("mypy.stubtest", *modules, "--concise", *options)
