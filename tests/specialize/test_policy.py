"""When a recording or plan is due, tested with given times and without the clock."""

import re
from pathlib import Path

import pytest

import fastops
from fastops._specialize import policy


@pytest.fixture(autouse=True)
def _share_of_half():
    before = policy.set_share(0.5)
    yield
    policy.set_share(before)


def test_each_limit_says_what_it_bounds():
    declared = Path(policy.__file__).parent / "policy.pxd"
    if not declared.exists():
        pytest.skip("the sources are not installed")
    lines = re.findall(r"^    ([A-Z_]+) = (\d+) +# (.+)$", declared.read_text(), re.MULTILINE)
    found = {name: int(value) for name, value, _ in lines}
    assert found == {
        name: value for name, value in vars(policy).items() if name.isupper() and name != "SHARE"
    }
    assert len(found) > 30


LIMIT = re.compile(
    r"^ *(?:cdef \w+ |#define )?_?((?:MAX|MIN|MOST|ENOUGH)_\w+|\w*(?:DEPTH|TRIALS)) = \d"
    r"|(maxsize)=\d",
    re.MULTILINE,
)

LAYOUT = {"MAX_KEPT", "MAX_PARAMS", "MAX_RANK"}
"""Sizes of arrays in C: they bound no knowledge."""

BELOW = ("_cpp", "_tf", "_core", "_dispatch", "_call_site", "_situation", "_registry", "gen")
"""Parts below `_specialize`, which cannot import its policy."""


def test_no_limit_stands_outside_of_the_policy():
    package = Path(fastops.__file__).parent
    if not (package / "_specialize" / "policy.pxd").exists():
        pytest.skip("the sources are not installed")
    elsewhere, seen = [], 0
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if path.suffix not in (".py", ".pyx", ".pxd") or place.parts[0].split(".")[0] in BELOW:
            continue
        names = {"".join(found) for found in LIMIT.findall(path.read_text())} - LAYOUT
        if place.stem == "policy":
            seen += len(names)
        elif names:
            elsewhere.append(f"{place}: {', '.join(sorted(names))}")
    assert not elsewhere, "\n".join(elsewhere)
    assert seen > 30


def test_budgets_of_failures_are_in_the_policy():
    package = Path(fastops.__file__).parent
    made = re.compile(r"\b(?:Specialization|Budget|Cache|LearnedByKind)\(([^)]*)\)")
    for path in package.rglob("*.py*"):
        if path.suffix in (".py", ".pyx"):
            for given in made.findall(path.read_text()):
                assert not re.search(r"(?:^|[,=])\s*\d+\s*(?:,|$)", given), f"{path}: {given}"


def account(*times):
    made = policy.Account()
    for ns in times:
        made.add(ns)
    return made


def test_nothing_is_due_before_a_call():
    policy.set_share(0)
    assert not account().due(0)
    assert account(10).due(10**12)


def test_the_first_call_does_not_count():
    assert not account(10**9).due(1)
    assert account(10**9, 10).due(20)


@pytest.mark.parametrize(("calls", "due"), [(5, False), (6, True), (60, True)])
def test_something_is_due_when_calls_have_cost_the_share(calls, due):
    assert account(*[100] * calls).due(1000) is due


def test_each_call_counts_as_the_shortest():
    assert not account(100, 100, 10**9).due(1000)


def test_dropping_something_doubles_the_bar():
    made = account(*[100] * 6)
    assert made.due(1000)
    made.dropped()
    assert (made.calls, made.drops) == (1, 1)
    for _ in range(9):
        made.add(100)
        assert not made.due(1000)
    made.add(100)
    assert made.due(1000)


def test_the_bar_stays_finite():
    made = account()
    for _ in range(100):
        made.dropped()
    made.add(10**12)
    made.add(10**12)
    assert made.due(1)


def test_an_estimate_begins_with_its_figure_and_follows_measurements():
    estimate = policy.Estimate("of a test", 1000.0)
    assert estimate.expected(10) == 10_000
    for _ in range(100):
        estimate.measured(10, 500)
    assert estimate.expected(10) == pytest.approx(500, rel=0.01)
    assert policy.estimates()["of a test"] is estimate


def test_a_delayed_measurement_raises_an_estimate_only_a_little():
    estimate = policy.Estimate("of a test", 800.0)
    estimate.measured(1, 10**15)
    assert estimate.expected(1) == 900
    estimate.measured(0, 10)
    estimate.measured(1, 0)
    assert estimate.expected(1) == 900
    for _ in range(1000):
        estimate.measured(1, 10**15)
    assert estimate.expected(1) <= 1600


def test_estimates_work_for_any_size():
    assert policy.Estimate("of a test", 1000.0).expected(1e300) == 10**18


def test_the_clock_can_be_replaced():
    policy.set_clock(iter([5, 8]).__next__)
    try:
        assert (policy.clock(), policy.clock()) == (5, 8)
    finally:
        policy.set_clock(None)
    assert policy.clock() <= policy.clock()
