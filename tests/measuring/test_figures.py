"""The tool that writes the figures of a run into README.md and docs."""

import re
import shutil

import pytest
from fastops_bench.runs import PLAIN
from made_runs import made, race
from support import ROOT

from tools import figures

pytestmark = pytest.mark.quick

TIMES = re.compile(r"\b(us|ns|times faster|spread)\b")

ELSEWHERE = {
    "docs/speed.md": "the whole file is written by a tool",
    "docs/distributed.md": "times of examples/rollouts.py, which needs several processes and Ray",
}
"""Files with tables of times outside of blocks, with the reason."""

FILES = ["README.md", "bench/README.md", *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]


@pytest.fixture
def root(tmp_path):
    """Copy all files that the tool writes."""
    for path in figures.BLOCKS:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def full():
    """Return a run that has data for each block."""
    run = made()
    records = run.processes["main"]["records"]
    installed, plan = {"stock": 9000, "installed": 500}, {"plan": 1000, "tf.function": 200_000}
    for label in figures.PROGRAMS:
        records.append(race("install", "programs", label, installed))
    for name in figures.KERAS:
        arms = {"stock": 1e6, "replayed": 7000, "torch": 24_000}
        records.append(race("keras", "keras", f"Keras, {name}", arms))
    beside = {"versions": {"torch": "9.8.7+cpu"}}
    for name in figures.WHOLE:
        arms = installed | {"torch": 900 if name != "DDPG" else 250}
        records.append(race("programs", "whole programs", name, arms, **beside))
        records.append(race("programs", figures.STEADY, name, arms | {"stock": 8000}, **beside))
    for name in figures.STRANGERS:
        arms = installed | {"torch": 900}
        records.append(race("strangers", "strangers", name, arms, **beside))
        records.append(race("strangers", "strangers, steady", name, {**arms, "stock": 8000}))
    for label in (
        *("two ops", "eight products of 512x512 matrices"),
        "convolutional block with a shortcut, batch 32",
    ):
        records.append(race("function", "functions", label, plan))
    two = race("function", "functions", "two ops", plan)
    run.processes[PLAIN] = {"versions": {}, "failed": [], "skipped": [], "records": [two]}
    records.append(race("backend_keras", "keras backend", "x", {"fastops": 1000, "Keras": 9000}))
    arms = {"tf_keras": 65e6, "fastops": 1e6, "declared": 1e6, "not replayed": 18e6}
    records.append(race("backend", "backend, rnn", "LSTM over 50 steps", arms))
    records.append(race("install", "calls", "a + b", installed))
    records.append(race("gradients", "gradients", "tanh of 32", installed))
    records.append(race("serving", "serving", "digits", {"fastops": 1000, "signature": 9000}))
    records.append(race("backend", "backend", "abs", {"fastops": 1000, "tf_keras": 9000}))
    about = {"ops": 1, "kernel": 100.0, "detours": [], "reason": "", "differs": False}
    records.append(race("public", "public", "tf.abs(x)", installed, **about))
    return run


def test_all_blocks_are_written_from_one_run(root):
    run = full()
    assert figures.write(run, root) == []
    first = {path: path.read_text() for path in root.rglob("*.*") if path.is_file()}
    assert figures.write(run, root) == []
    assert {path: path.read_text() for path in first} == first
    readme = first[root / "README.md"]
    assert "| AddV2 scalar | 400 | 6,000 | 12,000 | 800 | 200 | 15.0 |" in readme
    program = "DDPG on Pendulum, 20 episodes: a step"
    assert (
        f"| {program} | 9.00 | 0.50 | 0.25 | 18.0 | 0.50 |\n| the same, when steady | 8.00"
        in readme
    )
    assert (
        "PyTorch 9.8.7 is ahead in: DDPG on Pendulum, 20 episodes (2.0 times as fast);\n"
        "DDPG on Pendulum, 20 episodes, when steady (2.0 times as fast)."
    ) in readme
    assert "over the 2 rows of the ladder fastops is 18.4 times faster" in readme
    tables = first[root / "docs/performance.md"]
    assert "| `a + b` | 9.00 | 0.50 | 18.0 |" in tables
    assert "| PPO on CartPole | 8.00 | 0.50 | 0.90 | 16.0 | 18.0 | 1.80 |" in tables
    assert "| the same without oneDNN, on both sides | 200 | 1.00 | 200 |" in tables
    layers = first[root / "docs/backend.md"]
    assert "takes 65.0 ms in tf_keras, 18.0 in this `rnn`, and 1.00 if" in layers
    assert "- machine: A <processor>, 2 cores" in first[root / "bench/README.md"]
    assert "`tf.abs(x)`" in first[root / "docs/speed.md"]
    assert "<svg" in first[root / "docs/install.svg"]
    assert "<svg" in first[root / "docs/ladder.svg"]
    assert "1 public functions" in first[root / "docs/glance.svg"]
    # Only the blocks have changed.
    for path in figures.BLOCKS:
        before, after = (ROOT / path).read_text(), (root / path).read_text()
        assert figures.MARKED.sub(r"\1", before) == figures.MARKED.sub(r"\1", after)


def test_blocks_without_measurements_stay_and_are_named(root):
    run = made()
    run.processes["main"]["records"] = []
    kept = figures.write(run, root)
    assert len(kept) == sum(map(len, figures.BLOCKS.values()))
    assert "docs/performance.md: keras" in kept
    for path in figures.BLOCKS:
        assert (root / path).read_text() == (ROOT / path).read_text()


def test_only_named_blocks_are_written(root):
    before = {path: (root / path).read_text() for path in figures.BLOCKS}
    assert figures.write(full(), root, ["ahead", "docs/ladder.svg"]) == []
    assert {path.name for path in root.glob("docs/*.svg")} == {"ladder.svg"}
    changed = {path for path, text in before.items() if (root / path).read_text() != text}
    assert changed == {"README.md"}
    assert "PyTorch 9.8.7 is ahead in" in (root / "README.md").read_text()
    assert "| AddV2 scalar | 400 |" not in (root / "README.md").read_text()


def test_the_text_names_the_rows_in_which_pytorch_is_faster():
    run = full()
    for record in run.records():
        if record["group"].startswith("whole programs"):
            record["samples"]["torch"] = [5000.0]
    text = figures.ahead(figures.Figures(run))
    assert text == "fastops is ahead of PyTorch 9.8.7 in each line."


def test_a_block_has_one_place_and_a_place_has_a_block():
    of = figures.Figures(made())
    with pytest.raises(ValueError, match="nothing makes the figures oops; there are ops"):
        figures.render("<!-- figures: oops -->1<!-- /figures -->", {"ops": figures.ops}, of)
    with pytest.raises(ValueError, match="no place for the figures ops"):
        figures.render("", {"ops": figures.ops}, of)
    for path in FILES:
        names = [match[2] for match in figures.MARKED.finditer((ROOT / path).read_text())]
        assert sorted(names) == sorted(figures.BLOCKS.get(path, {})), path


def test_a_marker_in_a_text_begins_no_line():
    """At the beginning of a line, Markdown would take the rest of the line for HTML."""
    for path in figures.BLOCKS:
        assert not re.search(r"^<!-- /?figures.*-->.", (ROOT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", FILES)
def test_every_table_of_times_is_in_a_block(path):
    text = figures.MARKED.sub("", (ROOT / path).read_text())
    heads = re.findall(r"^(\|.*\|)\n\|(?: *:?-+:? *\|)+$", text, re.MULTILINE)
    assert bool([head for head in heads if TIMES.search(head)]) == (path in ELSEWHERE)


def test_figures_of_a_quick_run_are_not_written(tmp_path, monkeypatch, capsys):
    run = made()
    run.method["effort"] = "quick"
    run.save(tmp_path / "run.json")
    monkeypatch.setattr("sys.argv", ["figures.py", str(tmp_path / "run.json")])
    with pytest.raises(SystemExit) as caught:
        figures.main()
    assert caught.value.code == 2
    assert "is a quick run" in capsys.readouterr().err
