"""The benchmarks and the demo run to their end; what they measure is not asserted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments):
    """Run a program by a new interpreter: it starts pytest, or chooses how TensorFlow starts."""
    command = [sys.executable, *arguments]
    # Or pytest-benchmark would take itself for a part of this run, and measure nothing.
    outside = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    return subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    done = run("bench/run.py", "--quick", "--results", results)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, results


def test_report_shows_every_op(report):
    text, results = report
    benchmarks = json.loads((results / "main.json").read_text())["benchmarks"]
    labels = {each["extra_info"]["label"] for each in benchmarks if each["group"] == "ladder"}
    assert len({label.split()[0] for label in labels}) >= 40
    assert all(label in text for label in labels)


def test_report_compares_every_promise(report):
    text, _ = report
    assert text.count("PASS") + text.count("MISS") >= 20
    assert "10,000 calls" in text


def test_demo_says_whether_weights_agree(tmp_path):
    file = tmp_path / "demo.json"
    done = run("examples/digits_online.py", "--images=40", "--epochs=1", f"--json={file}")
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(file.read_text())
    assert record["bit_identical"] == {"step": True, "taped step": True}
    assert record["figures"]["step"]["fastops.ops"]["direct"] > 0.9
    assert "bit-identical" in done.stdout


def test_demo_without_onednn_agrees_too(tmp_path):
    file = tmp_path / "demo.json"
    done = run(
        "examples/digits_online.py", "--images=40", "--epochs=1", "--onednn=off", f"--json={file}"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_demo_notices_weights_that_differ(monkeypatch):
    """An update that is off by one bit in one library changes the verdict."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    import digits_online

    libraries = [digits_online.TensorFlow(), digits_online.FastOps("auto")]
    models = {
        (library, task): digits_online.Model(library, seed=1)
        for library in libraries
        for task in digits_online.TRAINING
    }
    assert all(digits_online.same_bits(libraries, models).values())
    weight = models[libraries[1], "step"].weights[0]
    bits = weight.numpy()
    bits.view("int32")[0, 0] ^= 1
    weight.assign(bits)
    assert digits_online.same_bits(libraries, models) == {"step": False, "taped step": True}
