"""Reports of a run: numbers, pictures, the page, and a comparison of two runs."""

import io
import re
from xml.etree import ElementTree

import pytest
from fastops_bench import compare, page, plots, report, sweeps
from fastops_bench.runs import Row, Run
from made_runs import made, race, samples
from rich.console import Console

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def run():
    return made()


def printed(show, *args, width=100, **kwargs):
    text = io.StringIO()
    show(*args, Console(file=text, width=width), **kwargs)
    return text.getvalue()


# Runs ---------------------------------------------------------------------------------------------


def test_a_run_is_saved_and_read(run, tmp_path):
    run.save(tmp_path / "run.json")
    assert Run.load(tmp_path / "run.json") == run


@pytest.mark.parametrize("text", ["", "[]", '{"benchmarks": []}', '{"format": 0}', "\xff"])
def test_files_that_are_not_runs_are_rejected(text, tmp_path):
    (tmp_path / "run.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"run\.json"):
        Run.load(tmp_path / "run.json")
    with pytest.raises(ValueError, match="cannot be read"):
        Run.load(tmp_path / "none.json")


def test_peers_are_scaled_by_numpy(run):
    row, other = run.rows("ladder")
    assert row.time("torch") == pytest.approx(800)
    assert row.time("raw_ops") == pytest.approx(6000)
    assert row.time("raw_ops, alone") == pytest.approx(6000)
    assert not other.has("torch")
    assert run.peers == ["torch", "tensorflow"]


def test_a_row_has_a_pair_an_interval_and_a_null():
    row = Row("x", {"numpy": samples(1), "stock": samples(60), "installed": samples(10)})
    assert row.pair == ("installed", "stock")
    ratio, low, high = row.interval("stock", "installed")
    assert low <= ratio <= high
    assert ratio == pytest.approx(6)
    assert row.null("installed")[0] == pytest.approx(1, abs=0.05)
    assert Row("x", {"numpy": [1.0]}).pair is None
    assert Row("x", {"numpy": [1.0]}).null("numpy")[0] == 1


# Tables and sweeps --------------------------------------------------------------------------------


def test_tables_have_all_measured_libraries(run):
    tables = {table.title: table for table in report.tables(run)}
    assert list(tables) == ["ladder", "calls", "chain", "sizes", "scaling, attributes"]
    assert tables["ladder"].columns[1:4] == ["floor", "numpy", "kernel"]
    assert tables["chain"].columns == ["chain, us", "kernel", "plan"]
    assert tables["calls"].lines[1][:3] == ["x[0] < y", "0.90", "60.0"]
    assert r"| a \| b |" in tables["calls"].markdown()


def test_a_terminal_has_a_summary_of_many_rows_or_all_of_few(run):
    shown = printed(lambda *args, **more: report.show(args[0], args[1], **more), run)
    for text in ("fastops beside raw_ops", "x[0] < y", "To hold", "1 skipped: sonnet"):
        assert text in shown
    many = made()
    rows = [race("install", "calls", f"x{i}", {"installed": 1, "stock": 9}) for i in range(60)]
    many.processes["main"]["records"] += rows
    shown = printed(report.show, many)
    assert "geometric mean" in shown
    assert "x59" not in shown
    assert "x59" in printed(report.show, many, detailed=True)


def test_targets_are_met_or_missed(run):
    verdicts = {promise.text: promise.verdict for promise in report.promises(run)}
    assert verdicts["AddV2 scalar: times faster than raw_ops"] == "PASS"
    assert verdicts["import fastops: ms"] == "PASS"
    slow = {p.text: p.verdict for p in report.promises(made(factor=0.2))}
    assert slow["AddV2 scalar: times faster than raw_ops"] == "MISS"


PROMISED = [
    (group, label)
    for group, promised in report.PROMISED.items()
    for label in promised.labels or ["any"]
]


def complete(*, left_out=()):
    """Return a run that has a row for each promise, except for those of some groups and labels."""
    records = [
        {"suite": report.PROMISED[group].suite, "group": group, "label": label}
        for group, label in PROMISED
        if (group, label) not in left_out
    ]
    suites = {promised.suite for promised in report.PROMISED.values()}
    records += [{"suite": suite, "group": "another", "label": "one"} for suite in suites]
    return Run({"main": {"records": records, "failed": [], "skipped": []}})


def test_no_promise_of_a_complete_run_is_lost():
    assert report.lost(complete()) == []


@pytest.mark.parametrize(("group", "label"), PROMISED)
def test_a_row_with_another_name_loses_its_promise(group, label):
    run = complete(left_out=[(group, label)])
    name = f"group {group!r}" if label == "any" else f"the group {group!r} has no row {label!r}"
    (sentence,) = report.lost(run)
    assert name in sentence
    assert sentence.endswith("for which a figure is promised")


def test_a_row_without_a_promise_is_reported_if_its_group_has_one_for_each_row():
    run = complete()
    run.processes["main"]["records"] += [
        {"suite": "install", "group": "programs", "label": "a new program"},
        {"suite": "install", "group": "calls", "label": "a new call"},
    ]
    assert report.lost(run) == ["the row 'a new program' of the group 'programs' has no promise"]


def test_skipped_and_unselected_rows_lose_no_promise():
    row = ("libraries", "Sonnet, training step with Adam")
    run = complete(left_out=[row])
    run.processes["main"]["skipped"] = [{"name": ": ".join(row), "why": "it is not installed"}]
    assert report.lost(run) == []
    run = complete()
    records = run.processes["main"]["records"]
    records[:] = [record for record in records if record["suite"] == "tape"]
    assert report.lost(run) == []


def test_kinds_of_models_stand_for_the_rows_of_keras():
    run = complete(left_out=[("keras", "training step")])
    row = {"suite": "keras", "group": "keras", "label": "Keras, training step, Adam"}
    run.processes["main"]["records"].append(row)
    assert report.lost(run) == []


def test_where_dispatch_stops_mattering(run):
    ((key, arms),) = sweeps.series(run.rows("sizes")).items()
    assert key == ("AddV2", "elements")
    crossings = sweeps.crossings(arms)
    # 100 ns are a tenth of 1,000, and 6,000 of 60,000. So the sizes are about 600 and 53,700
    # elements; interpolation changes them a little.
    assert 100 < crossings["fastops"] < 1000
    assert 10_000 < crossings["raw_ops"] < 100_000
    kernel = [(1, 100.0), (10, 100.0)]
    assert sweeps.crossing([(1, 200.0), (10, 200.0)], kernel) is None
    assert sweeps.crossing([(1, 101.0), (10, 200.0)], kernel) == 1
    assert sweeps.crossing([(1, 200.0), (10, 2000.0)], kernel) == pytest.approx(7.07, rel=0.5)


# Pictures and the page ----------------------------------------------------------------------------


def test_pictures_are_the_same_for_the_same_figures(run):
    rows = run.rows("ladder")
    single = run.records(group="latency")[0]["single"]
    for draw in (
        lambda: plots.layers(rows),
        lambda: plots.ladder(rows),
        lambda: plots.bars(run.rows("calls")),
        lambda: plots.gains([(2.0, "a", "red"), (3.0, "b", "blue")]),
        lambda: plots.glance({"a": 9.0}, {"b": 2.0}, {"c": {"d": {"stock": 3e6, "torch": 2e6}}}),
        lambda: plots.violins("AddV2", single),
    ):
        svg = draw()
        assert svg == draw()
        ElementTree.fromstring(svg)


def test_the_page_is_one_file(run):
    text = page.render(run)
    assert text == page.render(run)
    assert text.count("<svg") == text.count("</svg>") == 6
    assert not re.search(r"<script|<link(?! rel=\"icon\" href=\"data:,\")|@import", text)
    addresses = set(re.findall(r'(?:href|src)="([^"]*)"', text))
    assert {address for address in addresses if not address.startswith(("#", "data:,"))} == set()
    assert "A &lt;processor&gt;" in text
    assert "x[0] &lt; y" in text
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert {address[1:] for address in addresses if address.startswith("#")} <= set(ids)
    for words in ("Where dispatch stops mattering", "p99.9", "To hold", "sonnet is not installed"):
        assert words in text


# Two runs -----------------------------------------------------------------------------------------


def test_changes_are_distinguished_from_noise():
    changes = {change.name: change for change in compare.changes(made(), made(factor=1.5))}
    assert changes["ladder: AddV2 scalar"].verdict == "faster"
    assert changes["ladder: AddV2 scalar"].factor == pytest.approx(1.5)
    assert changes["calls: a | b"].verdict == "noise"
    back = {change.name: change for change in compare.changes(made(factor=1.5), made())}
    assert back["ladder: AddV2 scalar"].verdict == "slower"


def test_few_rounds_decide_nothing():
    runs = made(), made(factor=9)
    for run in runs:
        for record in run.processes["main"]["records"]:
            for arm, times in record.get("samples", {}).items():
                record["samples"][arm] = times[:3]
    assert {change.verdict for change in compare.changes(*runs)} == {"too few rounds"}


def test_a_comparison_is_printed():
    shown = printed(compare.show, made(), made(factor=1.5))
    assert re.search(r"ladder: AddV2 scalar .* faster", shown)
    assert "The machine causes this" in " ".join(shown.split())
    with pytest.raises(ValueError, match="no call in common"):
        compare.show(made(), Run({"main": {"records": []}}), Console(file=io.StringIO()))
