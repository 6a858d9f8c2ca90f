"""``python -m fastops bench``: its work, output and exit status, and its page in a browser."""

import json
import re
import shutil
import signal
import subprocess
import sys

import pytest
import setuptools
from fastops_bench import command, page, peers, report, suites
from fastops_bench.processes import Process
from fastops_bench.runs import Run
from made_runs import MACHINE, made, race
from support import ROOT

from fastops._shell import bench


def main(*arguments):
    return command.main([str(argument) for argument in arguments])


@pytest.fixture
def told(monkeypatch):
    """Replace a measuring process by a list of events."""

    def tell(*events):
        monkeypatch.setattr(Process, "start", lambda self, only_list=False: iter(map(dict, events)))

    return tell


BEGIN = {"event": "process", "versions": {"python": "3"}, "machine": MACHINE}
COLLECTED = {"event": "collected", "tests": [{"name": "tape: one", "tag": "short"}]}
RECORD = race("fallback", "fallback", "one", {"fastops": 1, "raw_ops": 9})
DONE = {"event": "done", "name": "tape: one", "records": [RECORD]}
END = {"event": "end", "status": 0, "output": "the last words"}


# What is measured --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Run the command as users do, with this environment as the environment of a peer."""
    folder = tmp_path_factory.mktemp("bench")
    python = folder / "peers" / "torch" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    asked = ["latency", "perceptron", "scaling", "-k", "perceptron", "-k", "AddV2", "-k", "AddN-8"]
    files = ["--json=run.json", "--html=run.html", "--peers=peers", "--quick"]
    done = subprocess.run(
        [sys.executable, "-m", "fastops", "bench", *asked, *files],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return folder, done


def test_a_run_is_measured_shown_and_saved(measured):
    folder, done = measured
    assert done.returncode == 0, done.stdout + done.stderr
    assert "installed beside stock" in done.stdout
    assert "three-layer perceptron on one row" in done.stdout
    assert "wrote run.html" in done.stdout
    run = Run.load(folder / "run.json")
    assert run.groups() == ["latency", "perceptron", "scaling, inputs"]
    (row,) = run.rows("perceptron")
    assert {len(times) for times in row.samples.values()} == {7}
    (single,) = run.records(group="latency")
    assert len(single["single"]["fastops"]) == 1000
    assert run.machine["cores"] > 0
    assert "tensorflow_cpu" in run.processes["main"]["versions"]
    assert "installed / stock" in (folder / "run.html").read_text()


def test_a_peer_measures_its_own_calls_in_its_environment(measured):
    folder, _ = measured
    run = Run.load(folder / "run.json")
    assert run.peers == ["torch"]
    arms = {arm for row in run.rows(process="torch") for arm in row.samples}
    assert "numpy" in arms
    assert not arms & {"fastops", "raw_ops", "stock", "installed"}


def test_every_suite_has_a_file_and_every_file_is_a_suite():
    files = {path.stem.removeprefix("bench_") for path in suites.HERE.glob("bench_*.py")}
    assert files == set(suites.SUITES)


def test_an_abandoned_process_ends():
    events = Process("main", ["sizes"], effort="once").start()
    assert next(events)["event"] == "process"
    child = events.gi_frame.f_locals["child"]
    events.close()
    assert child.returncode == -signal.SIGKILL


# Messages ------------------------------------------------------------------------------------


def test_an_unknown_suite(capsys):
    with pytest.raises(SystemExit) as caught:
        main("laddr")
    assert caught.value.code == 2
    assert "there is no suite laddr (did you mean ladder?)" in capsys.readouterr().err


def test_an_unknown_filter_lists_what_exists(capsys):
    assert main("tape", "-k", "MutMul") == 2
    shown = capsys.readouterr().err
    assert "nothing has MutMul in its name" in shown
    assert "tape: AddV2(x=x, y=x), Tanh(x=x)" in shown


def test_a_list(capsys):
    assert main("--list", "tape", "--tag=short") == 0
    shown = capsys.readouterr().out
    assert "short  tape: AddV2(x=x, y=x)" in shown
    assert re.search(r"^\d+ in all: \d+ short$", shown, re.MULTILINE)


def test_help_names_all_suites(capsys):
    with pytest.raises(SystemExit) as caught:
        main("--help")
    assert caught.value.code == 0
    assert all(suite.title in command.parser().format_help() for suite in suites.SUITES.values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--quick", "--once"], "not allowed with"),
        (["--html=/no/such/folder/a.html"], "there is no folder /no/such/folder"),
        (["--compare", "a.json"], "expected 2 arguments"),
    ],
)
def test_wrong_arguments(arguments, said, capsys):
    with pytest.raises(SystemExit) as caught:
        main(*arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_no_peers(capsys, tmp_path):
    assert main("ladder", f"--peers={tmp_path}") == 2
    assert "python -m fastops_bench.peers" in capsys.readouterr().err


def test_the_choice_of_peers(tmp_path):
    for name in ("torch", "onnxruntime", "other"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").touch()
    processes = list(peers.processes(tmp_path, ["ladder", "serving", "tape"]))
    assert [(process.name, process.suites) for process in processes] == [
        ("torch", ["ladder", "serving"]),
        ("onnxruntime", ["serving"]),
    ]
    assert processes[1].libraries == "onnxruntime,onnx"


def test_an_interrupt(monkeypatch, capsys):
    def interrupt(self, only_list=False):
        yield BEGIN
        raise KeyboardInterrupt

    monkeypatch.setattr(Process, "start", interrupt)
    assert main("tape") == 130
    assert "interrupted: nothing is saved" in capsys.readouterr().err


def test_failures_are_named_and_the_rest_is_shown(told, capsys, tmp_path):
    failed = {"event": "failed", "name": "tape: two", "why": "first\nE  no [such] thing"}
    told(BEGIN, COLLECTED, DONE, failed, END | {"status": 1})
    assert main("tape", f"--json={tmp_path / 'run.json'}") == 1
    shown = capsys.readouterr()
    assert "fastops beside raw_ops" in shown.out
    assert "failed: tape: two" in shown.err
    assert "no [such] thing" in shown.err
    content = json.loads((tmp_path / "run.json").read_text())
    assert content["processes"]["main"]["failed"][0]["name"] == "tape: two"


@pytest.mark.parametrize("effort", [(), ["--quick"], ["-k", "one"], ["--tag=short"]])
def test_a_lost_promise_is_an_error_of_a_full_run(told, capsys, effort):
    moved = {"event": "done", "name": "tape: one", "records": [RECORD | {"suite": "tape"}]}
    told(BEGIN, COLLECTED, moved, END)
    assert main("tape", *effort) == (0 if effort else 1)
    said = "error: the suite tape has no group 'tape', for which a figure is promised"
    assert (said in capsys.readouterr().err) == (not effort)


LABELLED = {promised.suite for promised in report.PROMISED.values() if promised.labels}


def test_every_promise_has_a_benchmark(capsys):
    """The list of benchmarks has the labels of their rows, so that nothing is measured."""
    assert main("--list", *LABELLED) == 0
    listed = {line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()}
    names = {
        f"{promised.suite}: {label}"
        for promised in report.PROMISED.values()
        for label in promised.labels
    }
    assert names - listed == {"keras: training step"}  # a kind of models, with several benchmarks


@pytest.mark.parametrize("status", [3, -signal.SIGSEGV])
def test_a_process_that_ends_early(told, capsys, status):
    told(BEGIN, COLLECTED, DONE, END | {"status": status})
    assert main("tape") == 1
    assert "the last words" in capsys.readouterr().err


def test_runs_are_compared_and_shown_again(capsys, tmp_path):
    made().save(tmp_path / "before.json")
    made(factor=1.5).save(tmp_path / "after.json")
    assert main("--compare", tmp_path / "before.json", tmp_path / "after.json") == 0
    assert "faster" in capsys.readouterr().out
    html = tmp_path / "page.html"
    assert main("--show", tmp_path / "after.json", f"--html={html}", "--all") == 0
    assert html.read_text() == page.render(made(factor=1.5))
    assert main("--compare", tmp_path / "before.json", html) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_missing_packages_are_named(monkeypatch, capsys):
    monkeypatch.setattr(
        bench.importlib.util, "find_spec", lambda name: name != "matplotlib" or None
    )
    assert bench.run(["--list"]) == 2
    shown = capsys.readouterr().err
    assert "matplotlib is not installed: pip install 'fastops[bench]'" in shown


# In a browser ------------------------------------------------------------------------------------

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--enable-logging=stderr", "--hide-scrollbars"),
)
LOOK = """
<script>
for (const one of document.querySelectorAll("details")) one.open = true;
const shown = [...document.querySelectorAll("svg")].map(one => one.getBoundingClientRect());
const texts = [...document.querySelectorAll("svg text")].map(one => one.getBoundingClientRect());
document.documentElement.dataset.seen = JSON.stringify({
  beyond: document.documentElement.scrollWidth - innerWidth,
  empty: shown.filter(one => one.width < 100 || one.height < 50).length,
  small: texts.filter(one => one.height < 9).length,
  pictures: shown.length,
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_in_a_browser(tmp_path, width):
    text = page.render(made())
    (tmp_path / "page.html").write_text(text.replace("</body>", LOOK + "</body>"))

    def look(*extra):
        options = [
            *OPTIONS,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},900",
        ]
        address = (tmp_path / "page.html").as_uri()
        command = [CHROMIUM, *options, *extra, address]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    seen = look("--dump-dom")
    assert "CONSOLE" not in seen.stderr
    sizes = json.loads(re.search(r'data-seen="([^"]*)"', seen.stdout)[1].replace("&quot;", '"'))
    assert sizes == {"beyond": 0, "empty": 0, "small": 0, "pictures": text.count("<svg")}
    picture = tmp_path / "page.png"
    look(f"--screenshot={picture}")
    assert picture.read_bytes().startswith(b"\x89PNG")


# As installed -------------------------------------------------------------------------------------

PYPROJECT = (ROOT / "pyproject.toml").read_text()


def test_the_extra_has_the_packages_that_messages_name():
    (extra,) = re.findall(r"^bench = \[(.*)\]$", PYPROJECT, re.MULTILINE)
    outside = [name for name in bench.NEEDED if name not in ("fastops_bench", "pytest_fastops")]
    assert all(f'"{name}>=' in extra for name in outside)


def test_packages_have_all_files_for_measuring():
    (patterns,) = re.findall(r"^include = (\[.*\])$", PYPROJECT, re.MULTILINE)
    packages = setuptools.find_packages(str(ROOT / "bench"), include=json.loads(patterns))
    folders = {path.parent for path in suites.HERE.rglob("*.py")}
    assert {".".join(folder.relative_to(suites.HERE.parent).parts) for folder in folders} <= set(
        packages
    )
    assert "pytest_fastops" in packages
