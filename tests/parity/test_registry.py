"""The part of the parity suite that fits into continuous integration, in all three worlds."""

import os

import pytest
import tensorflow as tf
from support import one_in

from fastops._core.tables import facts
from parity import cases, coverage, recipes
from parity.__main__ import DOCS
from parity.campaign import WORLDS
from parity.shared import Suite

recipes.load()
OPS = cases.op_names()
OF_SNAPSHOT = tf.version.VERSION.rpartition(".")[0] == facts.VERSION.rpartition(".")[0]
"""Whether this TensorFlow is the version of the snapshot, whose ops the recipes call."""


@pytest.fixture(scope="session")
def suite(once, request):
    """Give the parity suite: shared by the workers op by op.

    Where there is one worker, it runs at once all ops that the chosen tests are about.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    jobs = max(1, len(os.sched_getaffinity(0)) // workers)
    if workers == 1:
        items = [item for item in request.session.items if getattr(item, "cls", None) is TestOp]
        wanted = {item.callspec.params["op_name"] for item in items}
        batches = [sorted(wanted), [op_name for op_name in OPS if op_name not in wanted]]
    else:
        batches = [[op_name] for op_name in OPS]
    with Suite(once("parity"), batches, jobs) as suite:
        yield suite


@pytest.fixture(scope="session")
def everything(suite):
    """Return what was found about all ops."""
    found = suite.all()
    assert [report.world for report in found.reports] == list(WORLDS)
    return found


def test_every_op_has_a_recipe_or_a_reason():
    assert set(OPS) - set(recipes.RECIPES) == set(recipes.UNCALLED) & set(OPS)
    assert all(recipes.UNCALLED.values())


@pytest.mark.skipif(not OF_SNAPSHOT, reason="the recipes are of another TensorFlow")
def test_recipes_and_notes_are_of_ops_that_exist():
    notes = (
        *(recipes.RECIPES, recipes.REJECTED, recipes.UNSTABLE, recipes.UNCALLED),
        *(recipes.DRAWN, recipes.NONDETERMINISTIC),
    )
    assert not {name for note in notes for name in note} - set(OPS)


QUICK = ["AddV2", "AssignVariableOp", "ConcatV2", "MatMul", "StringJoin"]
OTHERS = sorted(set(OPS) & set(recipes.RECIPES) - set(QUICK))


@pytest.mark.parametrize(
    "op_name",
    [*(pytest.param(name, marks=pytest.mark.quick) for name in QUICK), *one_in(8, OTHERS)],
)
class TestOp:
    """What holds of each op."""

    def test_values(self, suite, op_name):
        """Values, structure and device are TensorFlow's in three worlds, on the direct path."""
        found = suite.of(op_name).findings["values"][op_name]
        assert len(found) == len(WORLDS) * len(cases.combinations(op_name))
        assert_no_problems(found)
        assert {path for one in found for path in one["paths"]} == {path_of(op_name)}

    def test_gradients(self, suite, op_name):
        """First and second gradients and the jvp are TensorFlow's, of calls that ran direct."""
        found = suite.of(op_name).findings["gradients"][op_name]
        assert len(found) == len(cases.combinations(op_name))
        assert_no_problems(found)
        assert {path for one in found for path in one["paths"]} <= {path_of(op_name)}

    def test_graphs(self, suite, op_name):
        """Inside a function it builds TensorFlow's node."""
        found = suite.of(op_name).findings["graphs"][op_name]
        assert_no_problems(found)
        assert any(one["cases"] for one in found)

    def test_malformed_calls(self, suite, op_name):
        """At least five malformed calls raise what TensorFlow raises, or end it."""
        report = suite.of(op_name).reports[0]
        raised = report.searches["malformed"].get(op_name, {"raised": 0})["raised"]
        deaths = [
            death
            for death in report.deaths
            if (death.check, death.op_name) == ("malformed", op_name)
        ]
        assert raised + len(deaths) >= 5

    def test_examples(self, suite, op_name):
        """Hypothesis found no example in which the two differ."""
        report = suite.of(op_name).reports[0]
        assert report.searches["properties"][op_name]["tried"] > 0
        assert not [
            problem
            for problem in report.problems
            if problem.startswith((f"{op_name},", f"{op_name}:"))
        ]


def path_of(op_name):
    path, _ = recipes.INDIRECT.get(op_name, ("direct", ""))
    return path


def assert_no_problems(found):
    assert not [problem for one in found for problem in one["problems"]]


@pytest.mark.slow
def test_gradients_were_compared(everything):
    """Many ops are differentiable: the check has not passed because it looked at nothing."""
    compared = {
        name
        for name, found in everything.findings["gradients"].items()
        if any(one["paths"].get("direct") for one in found)
    }
    assert len(compared) >= 150


@pytest.mark.slow
def test_nothing_else_was_found(everything):
    assert not [problem for report in everything.reports for problem in report.problems]


@pytest.mark.slow
def test_no_crash_that_tensorflow_does_not_have(everything):
    deaths = [death for report in everything.reports for death in report.deaths if death.ours]
    assert not deaths, "\n".join(map(str, deaths))


@pytest.mark.slow
@pytest.mark.skipif(not OF_SNAPSHOT, reason="docs/coverage.md is of another TensorFlow")
def test_the_table_of_coverage_is_true(everything):
    text = coverage.render(everything.reports)
    verified = sum(" | direct | " in line for line in text.splitlines())
    assert verified >= 550
    assert text == (DOCS / "coverage.md").read_text(), "`make parity ARGS=--quick` writes it anew"
