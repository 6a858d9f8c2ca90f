"""The matrix of versions: its cells, the storage of results, and the page."""

import json
import sys
from types import SimpleNamespace

import pytest
from support import ROOT

from fastops._core import supported
from tools import matrix, matrix_page

pytestmark = pytest.mark.quick

REPORT = """\
<testsuites><testsuite>
  <testcase classname="tests.test_a" name="test_one" />
  <testcase classname="tests.test_a" name="test_two">
    <failure message="assert 1 == 2&#10;more" />
  </testcase>
  <testcase classname="tests.test_a" name="test_three"><skipped message="no ray" /></testcase>
  <testcase classname="tests.test_a" name="test_four"><skipped message="no ray" /></testcase>
  <testcase classname="tests.test_a" name="test_five"><error message="at teardown" /></testcase>
</testsuite></testsuites>
"""


def result(python="3.12", tensorflow="2.20", keras="", **found):
    """Make up the result of a cell."""
    tests = {"extent": "quick", "passed": 2000, "failed": 0, "skipped": 3}
    versions = {"python": f"{python}.1", "tensorflow-cpu": f"{tensorflow}.0"}
    return {
        "cell": [python, tensorflow, keras],
        "versions": versions | {"keras": "3.15.1", "numpy": "2.4.6"},
        "tests": tests | {"failures": [], "skips": {"no ray": 3}, "state": "0123456789"},
        "ladder": {"mean": 16.42, "least": 5.1, "rows": 64, "state": "0123456789"},
        **found,
    }


# Which cells -------------------------------------------------------------------------------------


def test_the_matrix_has_the_supported_versions():
    count = len(supported.PYTHONS) * len(supported.minors())
    assert len(matrix.cells()) == count
    assert len(matrix.cells(kerases=("", "3.8"))) == 2 * count


def test_corner_cells_come_first():
    pairs = [(cell.python, cell.tensorflow) for cell in matrix.cells()]
    ends = [(names[0], names[-1]) for names in (supported.PYTHONS, supported.minors())]
    assert set(pairs[:4]) == {(p, t) for p in ends[0] for t in ends[1]}
    assert len(set(pairs)) == len(pairs)


def test_a_candidate_is_asked_for_by_its_version(monkeypatch):
    releases = {"2.19.0": (), "2.20.0rc1": ()}
    monkeypatch.setitem(matrix.SUPPORTED["minors"].__globals__, "RELEASES", releases)
    assert matrix.tensorflows() == ["2.19", "2.20"]
    assert matrix.requirement("tensorflow-cpu", "2.19") == "tensorflow-cpu==2.19.*"
    assert matrix.requirement("tensorflow-cpu", "2.20") == "tensorflow-cpu==2.20.0rc1"
    assert matrix.requirement("tf_keras", "2.20") == "tf_keras==2.19.*"


def test_cells_can_be_selected():
    [cell] = matrix.cells(["3.12"], ["2.20"], ["3.8"])
    assert str(cell) == "3.12-2.20-3.8"
    assert str(cell.base) == "3.12-2.20"


def test_a_python_that_is_not_installed():
    with pytest.raises(matrix.FailedError, match=r"no python3\.99"):
        matrix.interpreter("3.99")


def test_a_python_that_is_named_by_its_path(monkeypatch, capsys):
    monkeypatch.setattr(matrix, "NAMED", {})
    version = "{}.{}".format(*sys.version_info)
    options = matrix.parser().parse_args(["--python", sys.executable, "--python", version])
    assert options.python == [version, version]
    assert matrix.interpreter(version) == sys.executable
    with pytest.raises(SystemExit):
        matrix.parser().parse_args(["--python", "/bin/false"])
    assert "/bin/false is no interpreter" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cores", "gigabytes", "count", "expected"),
    [(2, 16, 12, (1, 2)), (16, 128, 12, (4, 4)), (16, 128, 2, (2, 8)), (16, 2, 12, (1, 1))],
)
def test_the_number_of_jobs_fits_cores_and_memory(monkeypatch, cores, gigabytes, count, expected):
    text = f"MemTotal: 1 kB\nMemAvailable: {gigabytes << 20} kB\n"
    monkeypatch.setattr(matrix.os, "sched_getaffinity", lambda process: range(cores))
    monkeypatch.setattr(matrix.Path, "read_text", lambda path: text)
    assert matrix.room(count) == expected


# Results of a cell -------------------------------------------------------------------------------


def test_outcomes_of_a_report():
    outcome = matrix.outcomes(REPORT)
    assert (outcome["passed"], outcome["failed"], outcome["skipped"]) == (1, 2, 2)
    assert outcome["failures"][0] == ["tests.test_a.test_two", "assert 1 == 2"]
    assert outcome["skips"] == {"no ray": 2}


def test_the_mean_of_a_ladder():
    def row(fast, slow, tag="short"):
        samples = {"fastops": [fast], "raw_ops": [slow]}
        return {"group": "ladder", "tag": tag, "samples": samples}

    run = {"processes": {"main": {"records": [row(1, 4), row(2, 32), row(1, 1, "long")]}}}
    assert matrix.ladder(run) == {"mean": 8.0, "least": 4.0, "rows": 2}
    run["processes"]["main"]["records"] = []
    with pytest.raises(matrix.FailedError, match="nothing was measured"):
        matrix.ladder(run)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Collecting\nERROR: No matching distribution found for x\n", "No matching distribution"),
        ("fastops is not built: no\n", "fastops is not built: no"),
        ("Traceback\nKeyError: 'x'\n", "KeyError: 'x'"),
        ("", ""),
    ],
)
def test_the_reason_of_a_failure(text, expected):
    assert matrix.reason(text).startswith(expected)


# Continuing a stopped run ----------------------------------------------------------------


class Runner:
    """A runner that logs its steps. A step whose name is in `fails` fails."""

    def __init__(self, cell, fails=()):
        self.cell, self.fails, self.calls = cell, set(fails), []

    def _step(self, name, gives):
        self.calls.append(name)
        if name in self.fails:
            raise matrix.FailedError(f"{name}: it fails")
        return gives

    def prepare(self):
        return self._step("prepare", {"python": "3.12.1"})

    def tests(self, extent):
        return self._step("tests", {"extent": extent, "passed": 1, "failed": 0, "failures": []})

    def ladder(self):
        return self._step("ladder", {"mean": 16.0, "least": 5.0, "rows": 64})

    def parity(self):
        return self._step("parity", {"ops compared": 600})


@pytest.fixture
def go(monkeypatch, tmp_path):
    """Return a function that runs the steps of a cell, with results in a test folder."""
    monkeypatch.setattr(matrix, "PLACE", tmp_path)
    monkeypatch.setattr(matrix, "state", lambda: "0123456789")
    cell = matrix.Cell("3.12", "2.20")

    def go(fails=(), tests="quick", steps=("tests", "ladder"), again=False):
        runner = Runner(cell, fails)
        options = SimpleNamespace(steps=steps, tests=tests, again=again, wheel=None)
        content = matrix.run(runner, options, matrix.Lock())
        return runner.calls, content

    return go


def test_finished_steps_are_not_repeated(go):
    assert go()[0] == ["prepare", "tests", "ladder"]
    assert go()[0] == []
    assert go(again=True)[0] == ["prepare", "tests", "ladder"]


def test_each_step_records_the_state_of_the_sources(go, monkeypatch):
    go(steps=["tests"])
    monkeypatch.setattr(matrix, "state", lambda: "fedcba9876")
    _, content = go(steps=["tests", "ladder"])
    assert (content["tests"]["state"], content["ladder"]["state"]) == ("0123456789", "fedcba9876")
    assert content["wheel"] is False


def test_a_stopped_run_continues(go):
    calls, content = go(fails=["ladder"])
    assert calls == ["prepare", "tests", "ladder"]
    assert content["failure"] == "ladder: it fails"
    assert content["tests"]["passed"] == 1
    assert go() == (["prepare", "ladder"], go()[1])
    assert "failure" not in go()[1]


def test_all_tests_include_the_quick_ones(go):
    assert go()[0] == ["prepare", "tests", "ladder"]
    assert go(tests="whole")[0] == ["prepare", "tests"]
    assert go()[0] == []


def test_failed_steps_are_tried_again(go):
    calls, content = go(fails=["prepare"])
    assert calls == ["prepare"]
    assert "tests" not in content
    assert go()[0] == ["prepare", "tests", "ladder"]


def test_local_results_take_precedence_over_checked_in_ones(tmp_path):
    file = tmp_path / "matrix.json"
    file.write_text(json.dumps([result(), result("3.11"), result("3.9")]))
    matrix.Record(matrix.Cell("3.12", "2.20"), tmp_path / "results").keep(failure="of today")
    results = matrix.recorded(tmp_path / "results", file)
    assert len(results) == len(matrix.cells())  # 3.9 is no longer supported
    given = {row["cell"][0]: row for row in results if len(row) > 1}
    assert given.keys() == {"3.11", "3.12"}
    assert given["3.12"]["failure"] == "of today"


def test_a_copy_follows_the_checkout(tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a").mkdir(parents=True)
    target.mkdir()
    names = ["a/one", "two"]
    for name in names:
        (source / name).write_text(name)
    listed = SimpleNamespace(stdout="\0".join(names))
    monkeypatch.setattr(matrix.subprocess, "run", lambda *args, **options: listed)
    matrix.copy(source, target)
    (target / "a" / "built").write_text("stays")
    listed.stdout = "two"
    (source / "two").write_text("new")
    matrix.copy(source, target)
    assert sorted(path.name for path in target.rglob("*") if path.is_file()) == [
        *(".copied", "built", "two"),
    ]
    assert (target / "two").read_text() == "new"


# The page ----------------------------------------------------------------------------------------


def test_a_cell_of_the_page():
    text = matrix_page.render([result()])
    line = "| 3.12.1 | 2.20.0 | 3.15.1 | 2.4.6 |  | quick | 2,000 | 0 | 3 | 16.4 |\n"
    assert line in text
    assert "What failed" not in text
    assert "| no ray | 3 in every cell |" in text
    assert "`0123456789`" in text


@pytest.mark.parametrize(("wheel", "title"), [(True, "wheel"), (False, "compiled")])
def test_a_cell_says_how_fastops_was_installed(wheel, title):
    text = matrix_page.render([result(wheel=wheel)])
    assert f"| 2.4.6 | {title} | quick |" in text


def test_a_cell_without_a_wheel_says_so():
    reason = "TensorFlow: No matching distribution found for tensorflow-cpu==2.19.*"
    lacking = {"cell": ["3.13", "2.19", ""], "failure": reason}
    text = matrix_page.render([result(), lacking])
    assert "| 3.13 | 2.19 |  |  |  | no wheel of TensorFlow |  |  |  |  |\n" in text
    assert matrix.good(lacking)


def test_a_cell_that_was_not_run_says_so():
    text = matrix_page.render([result(), {"cell": ["3.13", "2.21", ""]}])
    assert "| 3.13 | 2.21 |  |  |  | not run |  |  |  |  |\n" in text


def test_failures_are_on_the_page():
    failing = result()
    failing["tests"] |= {"failed": 1, "failures": [["tests.test_a.test_b", "a | b"]]}
    text = matrix_page.render([failing])
    assert "| 3.12 | 2.20 | 3.15 | `tests.test_a.test_b` | a \\| b |\n" in text
    assert not matrix.good(failing)


def test_another_keras_has_its_own_table():
    asks = {"cell": ["3.12", "2.21", "3.8"], "failure": "Keras: TensorFlow 2.21 asks for >=3.12"}
    text = matrix_page.render([result(), result(keras="3.8"), asks])
    before, _, after = text.partition("## The oldest Keras")
    assert before.count("| 3.12.1 | 2.20.0 |") == after.count("| 3.12.1 | 2.20.0 |") == 1
    assert "TensorFlow 2.21 asks for >=3.12" in after


def test_parity_has_a_column_for_each_tensorflow():
    parity = {"ops compared": 615, "differences from TensorFlow": 0, "state": "0123456789"}
    text = matrix_page.render([result(parity=parity), result("3.12", "2.21", parity=parity)])
    assert "|  | 2.20.0 | 2.21.0 |\n" in text
    assert "| ops compared | 615 | 615 |\n" in text
    text = matrix_page.render([result(parity=parity), result("3.13", parity=parity)])
    assert "|  | 2.20.0, CPython 3.12 | 2.20.0, CPython 3.13 |\n" in text


def test_long_lists_are_not_checked_in(tmp_path):
    outcome = result()
    outcome["tests"]["failures"] = [[f"test_{i}", ""] for i in range(100)]
    outcome["tests"]["skips"] = {f"reason {i}": 1 for i in range(100)}
    matrix_page.write([outcome], tmp_path / "matrix.json", tmp_path / "matrix.md")
    [kept] = json.loads((tmp_path / "matrix.json").read_text())
    assert len(kept["tests"]["failures"]) == len(kept["tests"]["skips"]) == 20


def test_the_page_matches_the_results():
    results = json.loads(matrix.RESULTS.read_text())
    assert (ROOT / "docs" / "matrix.md").read_text() == matrix_page.render(
        results, matrix_page.emulated()
    )
