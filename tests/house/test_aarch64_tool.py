"""The tool that runs the tests for aarch64: its outcomes, shares and page, without an emulator."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support import ROOT

from tools import matrix_page
from tools.aarch64 import FailedError, machine, steps
from tools.aarch64.__main__ import Record, differs, parser, shown
from tools.aarch64.machine import PLUGIN, Machine
from tools.aarch64.plugin import aarch64_journal as journal

pytestmark = pytest.mark.quick

SOME_TESTS = """\
import os, pytest, time

def test_good(): pass
def test_bad(): assert 1 == 2
@pytest.mark.skip(reason="not here")
def test_left_out(): pass
@pytest.fixture
def broken():
    yield
    raise RuntimeError("at the end")
def test_ends_badly(broken): pass
def test_deadly(): os._exit(3)
def test_slow(): time.sleep(60)
def test_last(): pass
"""

RESULT = {
    "state": "0123456789",
    "shares": ["core", "graphs", "plans"],
    "versions": {
        "python": "3.11.2",
        "tensorflow": "2.20.0",
        "keras": "3.15.1",
        "numpy": "2.4.6",
        "qemu": "7.2.19",
        "processor": "neoverse-n1",
    },
    "tests": {
        "core": {
            "passed": 1033,
            "failed": 0,
            "skipped": 1,
            "failures": [],
            "complete": True,
            "seconds": 130,
        },
        "plans": {
            "passed": 5,
            "failed": 1,
            "skipped": 0,
            "failures": [["test_a", "a | b"]],
            "complete": False,
            "seconds": 600,
        },
    },
    "parity": [
        {"share": 0, "shares": 40, "ops compared": 16, "differences from TensorFlow": 0},
        {"share": 1, "shares": 40, "failure": "stopped by the limit"},
    ],
    "demo": {"program": True, "step": True},
    "weights": {"step": {"same": 2000, "of": 2410, "difference": 3e-8}},
}


@pytest.fixture
def there(tmp_path):
    """Return a machine without an emulator: its Python is this one."""
    tests = tmp_path / "tree" / "tests" / "some"
    tests.mkdir(parents=True)
    (tests / "test_some.py").write_text(SOME_TESTS)
    (tmp_path / "tree" / "pytest.ini").write_text("[pytest]\nmarkers = quick\n")
    made = Machine(tmp_path, say=lambda text: None)
    made.python = sys.executable
    made.environment = lambda **more: {
        **os.environ,
        "PYTHONPATH": str(ROOT / PLUGIN),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **more,
    }
    return made


def run_share(there, limit=60, test_limit=2):
    return steps.tests(there, "some", limit, test_limit, lambda text: None, marker="")


# Outcomes ----------------------------------------------------------------------------------------


def test_each_test_has_an_outcome_even_if_one_ends_the_process_or_hangs(there):
    result = run_share(there)
    assert result["complete"]
    assert [result[name] for name in ("passed", "failed", "skipped")] == [2, 4, 1]
    messages = {name.partition("::")[2]: text for name, text in result["failures"]}
    assert messages.keys() == {"test_bad", "test_ends_badly", "test_deadly", "test_slow"}
    assert messages["test_deadly"] == messages["test_slow"] == "ended the process"
    assert "1 == 2" in messages["test_bad"]
    assert "at the end" in messages["test_ends_badly"]
    assert result["skips"] == {"not here": 1}
    logs = sorted((there.folder / "tests").glob("some.ended-*.log"))
    assert [log.name for log in logs] == ["some.ended-1.log", "some.ended-2.log"]
    assert "Timeout" not in logs[0].read_text()
    assert "in test_slow" in logs[1].read_text()


def test_a_share_that_was_stopped_goes_on_where_it_was(there):
    stopped = run_share(there, limit=0)
    assert not stopped["complete"]
    file = there.folder / "tests" / "some.jsonl"
    names = ("test_good", "test_deadly", "test_slow")
    lines = [{"test": f"tests/some/test_some.py::{name}", "begins": True} for name in names]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = run_share(there)
    assert result["complete"]
    assert [name.partition("::")[2] for name, _ in result["failures"][:3]] == [*names]
    assert result["passed"] == 1


def test_a_test_that_the_limit_of_its_share_cuts_off_has_no_outcome(there):
    file = there.folder / "tests" / "some.jsonl"
    for limit in (3, 12, 48):  # under emulation, 3 s are too few to start pytest
        result = run_share(there, limit=limit, test_limit=60)
        if file.exists() and "test_deadly" in file.read_text():
            break
    assert not result["complete"]
    assert not [name for name, _ in result["failures"] if "test_slow" in name]
    assert "test_slow" not in file.read_text()


def test_tests_that_cannot_be_collected_are_a_failure(there):
    (there.tree / "tests" / "some" / "test_other.py").write_text("import nothing_like_that\n")
    result = run_share(there)
    assert not result["complete"]
    assert result["failures"][-1][0] == "the run of some"


def test_what_interrupted_runs_have_found_is_collected(there):
    file = there.folder / "tests" / "some.jsonl"
    file.parent.mkdir()
    lines = [
        {"test": "a", "begins": True},
        {"test": "a", "outcome": "passed", "message": ""},
        {"test": "b", "begins": True},
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = steps.collected(there)["some"]
    assert (found["passed"], found["failed"], found["complete"]) == (1, 0, False)


def test_a_journal_that_is_not_there_has_no_outcomes(tmp_path):
    assert journal.outcomes(tmp_path / "missing") == {}


# The machine -------------------------------------------------------------------------------------


def test_programs_that_are_missing_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    with pytest.raises(FailedError, match=r"apt-get install qemu-user g\+\+-aarch64-linux-gnu"):
        Machine(tmp_path).prepare()


def test_the_emulated_python_starts_itself_by_the_emulator(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda name: f"/usr/bin/{name}")
    made = Machine(tmp_path)
    made._write_start()
    text = made.python.read_text()
    assert f"-0 '{made.python}'" in text
    assert os.access(made.python, os.X_OK)
    assert (tmp_path / "venv" / "pyvenv.cfg").read_text().startswith(f"home = {made.root}/usr/bin")


def test_the_requirements_are_those_of_the_tests():
    asked = Machine.requirements()
    assert asked[0] == f"tensorflow=={machine.TENSORFLOW}.*"
    names = {text.partition(">")[0] for text in asked}
    assert {"pytest", "hypothesis", "pytest-benchmark", "scikit-learn", "matplotlib"} <= names
    assert {"cython", "setuptools"} <= names  # tests import the build
    assert not any("fastops" in text for text in asked)


def test_a_part_is_made_once_for_a_key(tmp_path):
    made, calls = Machine(tmp_path), []
    for key in ("a", "a", "b"):
        made._once("part", key, lambda key=key: calls.append(key))
    assert calls == ["a", "b"]


def test_a_command_that_takes_too_long_is_stopped_with_its_children(there):
    sleep = "import time; time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {sleep!r}])"
    assert there.run(there.folder / "log", 1, "-c", code) is None
    listed = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True).stdout
    assert f"-c {sleep}" not in listed


# Parity and the demo -----------------------------------------------------------------------------


def test_parity_takes_the_ops_of_its_share(there, monkeypatch):
    (there.folder / "ops.json").write_text(json.dumps([f"Op{i}" for i in range(100)]))
    calls = []

    def run(log, limit, *command):
        calls.append(command)
        command[command.index("--json") + 1].write_text('{"ops compared": 3}')

    monkeypatch.setattr(there, "run", run)
    for _ in range(2):
        found = steps.parity(there, 7, 60)
        assert found == {"share": 7, "shares": steps.PARITY_SHARES, "ops compared": 3}
    assert len(calls) == 1
    assert calls[0][-3:] == ("Op7", "Op47", "Op87")


def test_parity_that_was_stopped_says_so(there, monkeypatch):
    (there.folder / "ops.json").write_text('["Op"]')
    monkeypatch.setattr(there, "run", lambda *arguments: None)
    assert steps.parity(there, 0, 60)["failure"] == "stopped by the limit"


def test_weights_are_compared_by_their_bits(there, monkeypatch):
    def run(log, limit, program, file):
        file.write_text(json.dumps({"step": [(0.5).hex(), (1.0).hex()]}))
        return 0

    def host(command, **options):
        command[-1].write_text(json.dumps({"step": [(0.5).hex(), (1.25).hex()]}))

    monkeypatch.setattr(there, "run", run)
    monkeypatch.setattr(steps, "subprocess", SimpleNamespace(run=host))
    assert steps.weights(there, 60) == {"step": {"same": 1, "of": 2, "difference": 0.25}}


# The command -------------------------------------------------------------------------------------


def test_the_shares_are_the_folders_with_quick_tests():
    found = steps.shares()
    assert {"dispatch", "install", "plans", "house"} <= {*found}
    assert "golden" not in found


def test_results_are_kept(tmp_path):
    Record(tmp_path / "results.json").keep(state="a")
    assert Record(tmp_path / "results.json").content == {"state": "a"}


def test_differences_of_parity_are_failures():
    fine = {"differences from TensorFlow": 0, "crashes that TensorFlow does not have": 0}
    assert not differs(fine)
    assert differs(fine | {"differences from TensorFlow": 1})
    assert differs({"share": 1, "failure": "stopped by the limit"})


def test_a_stopped_share_is_told_as_such():
    assert shown(RESULT["tests"]["core"]) == "1,033 passed, 0 failed, 1 skipped in 130 s"
    assert shown(RESULT["tests"]["plans"]).endswith("not complete")


def test_no_steps_means_only_the_build():
    assert parser().parse_args(["--steps"]).steps == []


def test_the_page_says_what_was_run_and_where():
    text = matrix_page.render([], RESULT)
    assert "never run on such a processor" in text
    assert "| `core` | 1,033 | 0 | 1 | 2 |\n" in text
    assert "| `plans`, stopped | 5 | 1 | 0 | 10 |\n" in text
    assert "| `graphs` | not run |  |  |  |\n" in text
    assert "| all | 1,038 | 1 | 1 | 12 |\n" in text
    assert "| `test_a` | a \\| b |\n" in text
    assert "in 1 of 40 shares" in text
    assert "| ops compared | 16 |\n" in text
    assert "Share 1 of parity is not complete: stopped by the limit." in text
    assert "2,000 are those of the host to the last bit" in text.replace("\n", " ")
    assert "`0123456789`" in text


def test_the_page_without_emulated_results_has_no_such_section():
    assert "emulated" not in matrix_page.render([])
