"""The benchmarks and the demo run without errors; their measurements are not checked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fastops_bench import report
from fastops_bench.runs import Run
from fastops_bench.suites import SUITES

ROOT = Path(__file__).parents[2]


def run(*arguments):
    """Run a program in a new interpreter, since it runs pytest or sets how TensorFlow starts."""
    command = [sys.executable, *arguments]
    # With this variable, pytest-benchmark would assume that it is part of this run, and measure
    # nothing.
    outside = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    return subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True)


@pytest.mark.slow
def test_every_suite_runs_and_every_target_is_compared(tmp_path):
    files = [f"--json={tmp_path / 'run.json'}", f"--html={tmp_path / 'run.html'}"]
    done = run("-m", "fastops", "bench", "--once", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = Run.load(tmp_path / "run.json")

    assert not [process["failed"] for process in tried.processes.values() if process["failed"]]
    measured = {record["suite"] for record in tried.records()}
    skipped = {test["name"].partition(":")[0] for test in tried.processes["main"]["skipped"]}
    skipped = {name.removeprefix("bench_") for name in skipped}
    assert measured | skipped == set(SUITES)
    labels = {record["label"] for record in tried.records(group="ladder")}
    assert len({label.split()[0] for label in labels}) >= 40
    assert {"ladder", "functions"} <= {record["group"] for record in tried.records("plain")}

    kept = list(report.promises(tried))
    assert sum(promise.verdict in ("PASS", "MISS") for promise in kept) >= 90
    assert "10,000 calls: MB of growth" in {promise.text for promise in kept}


@pytest.mark.slow
def test_demo_says_whether_weights_agree(tmp_path):
    file = tmp_path / "demo.json"
    done = run("examples/digits_online.py", "--images=40", "--epochs=1", f"--json={file}")
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(file.read_text())
    assert record["bit_identical"] == {"program": True, "step": True, "taped step": True}
    for library in ("installed", "fastops.ops"):
        assert record["figures"]["step"][library]["direct"] > 0.9
    assert record["program"].keys() == {"stock", "installed"}
    assert "bit-identical" in done.stdout
    assert "python -m fastops examples/keras_digits.py" in done.stdout


@pytest.mark.slow
def test_demo_without_onednn_agrees_too(tmp_path):
    file = tmp_path / "demo.json"
    done = run(
        "examples/digits_online.py", "--images=40", "--epochs=1", "--onednn=off", f"--json={file}"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_demo_notices_weights_that_differ(monkeypatch):
    """A weight that differs by one bit in one library changes the verdict."""
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


def test_demo_notices_a_program_that_computes_something_else(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import digits_online

    stock = {"losses": "0.5 0.25", "weights": "ab", "seconds": "2.0"}
    printed = {"stock": stock, "installed": stock | {"seconds": "0.1"}}
    assert digits_online.same_results(printed)
    printed["installed"]["weights"] = "ac"
    assert not digits_online.same_results(printed)
