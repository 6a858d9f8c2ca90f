"""The example programs print the same with fastops and without."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from support import python

import fastops
from fastops._plans.eligibility import UnplannedError
from fastops._plans.planned import Planned

ROOT = Path(__file__).parents[2]


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def results(*command):
    """Run a program. Return its output without the times, and its standard error.

    A new interpreter runs it, as users do, with fastops from the start or without.
    """
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
        slow("keras_digits.py", "--epochs=1", ["MatMul", "Relu", "AddV2"]),
        slow("graph.py", "--steps=5", ["MatMul", "AddV2", "PartitionedCall"]),
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


@pytest.mark.parametrize(
    ("name", "size"),
    [
        slow("actor_critic.py", "--episodes=12"),
        slow("ddpg.py", "--episodes=2"),
        slow("online_request.py", "--requests=60"),
    ],
)
def test_a_model_is_replayed_with_the_same_results(name, size):
    path = f"examples/{name}"
    want, _ = results(path, size)
    got, report = results("-m", "fastops", "--profile", path, size)
    assert len(want) >= 2
    assert got == want
    assert re.search(r"Functional functional\w* +__call__ +\d+ +replayed", report)


# Programs that compare fastops with TensorFlow ---------------------------------------------------


@pytest.fixture
def program(request, monkeypatch):
    """Import an example program by name."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module(request.param)


def printed(program, *arguments):
    """Return the lines that a program prints in a fork, which keeps first plans."""
    path = ROOT / "examples" / program
    out = python(
        f"""
        import os, runpy, sys
        os.chdir({str(ROOT)!r})
        sys.path[0] = {str(path.parent)!r}
        sys.argv = {[str(path), *arguments]!r}
        runpy.run_path(sys.argv[0], run_name="__main__")
        """,
        timeout=300,
    )
    return out.splitlines()


def rows(lines, *names):
    """Return the cells of the rows of a table that have these names."""
    table = [line.split("│")[1:-1] for line in lines if line.startswith("│")]
    assert [row[0].strip() for row in table] == [*names]
    return [[cell.strip() for cell in row[1:]] for row in table]


def test_control_loop_reports_missed_deadlines():
    lines = printed("control_loop.py", "--rate=100", "--seconds=0.3")
    assert lines[0].strip() == "30 ticks at 100 Hz"
    every = 0
    for missed, p50, p99, worst, tilt in rows(lines, "tf.function", "fastops.function"):
        count, share = re.fullmatch(r"(\d+) \((.+)%\)", missed).groups()
        assert 0 <= int(count) <= 30
        assert share == f"{int(count) / 30:.1%}"[:-1]
        assert 0 < float(p50) <= float(p99) <= float(worst)
        assert re.fullmatch(r"\d+\.\d deg|it fell", tilt)
        every += int(count)
    nodes, readings = re.fullmatch(
        r"fastops.function: a plan of (\d+) nodes\n"
        r"commands for (\d+) readings, replayed by the other: bit-identical",
        "\n".join(lines[-2:]),
    ).groups()
    assert int(nodes) >= 20
    assert 60 - every <= int(readings) <= 60


def test_control_loop_that_is_too_fast_for_any_library():
    lines = printed("control_loop.py", "--rate=1e6", "--seconds=1e-3")
    assert lines[0].strip() == "1,000 ticks at 1e+06 Hz"
    for missed, *_ in rows(lines, "tf.function", "fastops.function"):
        assert missed == "1,000 (100.0%)"


@pytest.mark.parametrize("program", ["control_loop"], indirect=True)
def test_control_loop_counts_ticks_that_pass_meanwhile(program, monkeypatch):
    """With a fake clock, the third step takes two and a half ticks, and the last one two."""

    class Clock:
        now = 0

        def read(self):
            self.now += 1_000
            return self.now

        def sleep(self, seconds):
            self.now += round(seconds * 1e9)

    class Plant:
        force = 0.0
        moves = ()

        def read(self):
            return clock.now

        def advance(self, ticks):
            self.moves += ((ticks, self.force),)

    def function(reading):
        command, duration = next(steps)
        clock.now += duration
        return command

    clock, plant = Clock(), Plant()
    monkeypatch.setattr(program, "perf_counter_ns", clock.read)
    monkeypatch.setattr(program.time, "sleep", clock.sleep)
    period = 1_000_000
    durations = [100_000, 900_000, 2_500_000, 100_000, 2_000_000]
    steps = iter([(command, duration) for command, duration in enumerate(durations, 1)])
    loop = program.Loop("fake", function, None, plant)
    loop.run(7, period)
    assert next(steps, None) is None
    assert (loop.ticks, loop.missed) == (7, 4)
    assert plant.moves == ((1, 1.0), (1, 2.0), (3, 2.0), (1, 4.0), (1, 4.0))
    assert loop.commands == [1, 2, 3, 4, 5]
    starts = [(reading - loop.readings[0]) / period for reading in loop.readings]
    assert starts == pytest.approx([0, 1, 2, 5, 6], abs=0.01)
    assert [time // 100_000 for time in loop.times] == [1, 9, 25, 1, 20]


def test_inference_loop_reports_latencies():
    lines = printed("inference.py", "--images=100")
    assert lines[0].strip() == "100 handwritten digits, one at a time"
    stock, fast = rows(lines, "tf.saved_model", "fastops.graph")
    assert stock[0] == fast[0]
    assert float(fast[0].rstrip("%")) >= 90
    for _, *latencies, throughput in (stock, fast):
        assert float(latencies[0]) > 0
        assert latencies == sorted(latencies, key=float)
        assert 1e6 / float(latencies[-1]) <= float(throughput.replace(",", "")) + 1
    assert re.fullmatch(r"of 20 that it has not learnt from: \d+\.\d% right", lines[-3])
    assert int(re.fullmatch(r"fastops.graph: a plan of (\d+) nodes", lines[-2])[1]) >= 3
    assert lines[-1] == "scores of 100 images: bit-identical"


@pytest.mark.parametrize(
    ("program", "size"),
    [("inference", ["--images=0"]), ("control_loop", ["--rate=0"])],
    indirect=["program"],
)
def test_comparisons_reject_sizes_out_of_range(program, size, capsys):
    with pytest.raises(SystemExit):
        program.main(size)
    assert f"error: {size[0][:-2]}: " in capsys.readouterr().err


@pytest.mark.parametrize("program", ["control_loop"], indirect=True)
def test_control_loop_notices_the_last_bit(program, monkeypatch, capsys):
    """The commands of fastops are changed by one bit, which the program must report."""
    function = fastops.function

    def off(step):
        return function(lambda reading: tf.math.nextafter(step(reading), 100.0))

    monkeypatch.setattr(fastops, "function", off)
    assert program.main(["--rate=100", "--seconds=0.1"]) == 1
    *_, verdict = capsys.readouterr().out.splitlines()
    readings, differences = re.fullmatch(
        r"commands for (\d+) readings, replayed by the other: (\d+) DIFFER", verdict
    ).groups()
    assert readings == differences


@pytest.mark.parametrize("program", ["inference"], indirect=True)
def test_inference_loop_notices_the_last_bit(program, monkeypatch, capsys):
    """One of the scores of fastops is changed by one bit, which the program must report."""
    load = fastops.graph.load

    class Off:
        def __init__(self, path):
            self.model = load(path)
            self.describe = self.model.describe
            self.calls = 0

        def __call__(self, image):
            self.calls += 1
            results = self.model(image)
            if self.calls == program.WARM_UP + 7:
                scores = results["scores"].numpy()
                scores[0, 3] = np.nextafter(scores[0, 3], np.float32(100))
                results["scores"] = tf.constant(scores)
            return results

    monkeypatch.setattr(fastops.graph, "load", Off)
    assert program.main(["--images=10"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "scores of 10 images: 1 DIFFER"


@pytest.mark.parametrize(
    ("program", "size"),
    [("control_loop", ["--rate=100", "--seconds=0.1"]), ("inference", ["--images=10"])],
    indirect=["program"],
)
def test_comparisons_without_a_plan_fail(program, size, monkeypatch, capsys):
    def unplanned(self, inputs):
        raise UnplannedError("loop_condition")

    monkeypatch.setattr(Planned, "planned", unplanned)
    assert program.main(size) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].endswith(": TensorFlow: a loop has no single condition")
    assert lines[-1].endswith(": bit-identical")
