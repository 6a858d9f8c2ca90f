"""The part of the parity suite that fits into continuous integration, in all three worlds."""

from collections import defaultdict

import pytest
import tensorflow as tf

from parity import cases, coverage, recipes
from parity.__main__ import DOCS, QUICK, run, tasks
from parity.campaign import WORLDS

recipes.load()
OPS = cases.op_names()
IN_221 = tf.version.VERSION.startswith("2.21.")


@pytest.fixture(scope="session")
def reports():
    """Run all three worlds; their output is shown where it is asked for with ``-s``."""
    found = [run(world, tasks(world, QUICK, OPS, seed=0)) for world in WORLDS]
    assert [report.world for report in found] == list(WORLDS)
    return found


@pytest.fixture(scope="session")
def findings(reports):
    """Return what the checks found, by check and op."""
    by_check = defaultdict(lambda: defaultdict(list))
    for report in reports:
        for found in report.findings:
            by_check[found["check"]][found["op_name"]].append(found)
    return by_check


def test_every_op_has_a_recipe_or_a_reason():
    assert set(OPS) - set(recipes.RECIPES) == set(recipes.UNCALLED) & set(OPS)
    assert all(recipes.UNCALLED.values())


@pytest.mark.skipif(not IN_221, reason="the recipes are those of TensorFlow 2.21")
def test_recipes_and_notes_are_of_ops_that_exist():
    notes = (recipes.RECIPES, recipes.REJECTED, recipes.UNSTABLE, recipes.UNCALLED)
    assert not {name for note in notes for name in note} - set(OPS)


@pytest.mark.parametrize("op_name", sorted(set(OPS) & set(recipes.RECIPES)))
class TestOp:
    """What holds of each op."""

    def test_values(self, findings, op_name):
        """Values, structure and device are TensorFlow's in three worlds, on the direct path."""
        found = findings["values"][op_name]
        assert len(found) == len(WORLDS) * len(cases.combinations(op_name))
        assert_no_problems(found)
        assert {path for one in found for path in one["paths"]} == {path_of(op_name)}

    def test_gradients(self, findings, op_name):
        """First and second gradients and the jvp are TensorFlow's, of calls that ran direct."""
        found = findings["gradients"][op_name]
        assert len(found) == len(cases.combinations(op_name))
        assert_no_problems(found)
        assert {path for one in found for path in one["paths"]} <= {path_of(op_name)}

    def test_graphs(self, findings, op_name):
        """Inside a function it builds TensorFlow's node."""
        found = findings["graphs"][op_name]
        assert_no_problems(found)
        assert any(one["cases"] for one in found)

    def test_malformed_calls(self, reports, op_name):
        """At least five malformed calls raise what TensorFlow raises, or end it."""
        raised = reports[0].searches["malformed"].get(op_name, {"raised": 0})["raised"]
        deaths = [
            death
            for death in reports[0].deaths
            if (death.check, death.op_name) == ("malformed", op_name)
        ]
        assert raised + len(deaths) >= 5

    def test_examples(self, reports, op_name):
        """Hypothesis found no example in which the two differ."""
        assert reports[0].searches["properties"][op_name]["tried"] > 0
        assert not [
            problem
            for problem in reports[0].problems
            if problem.startswith((f"{op_name},", f"{op_name}:"))
        ]


def path_of(op_name):
    path, _ = recipes.INDIRECT.get(op_name, ("direct", ""))
    return path


def assert_no_problems(found):
    assert not [problem for one in found for problem in one["problems"]]


def test_gradients_were_compared(findings):
    """Many ops are differentiable: the check has not passed because it looked at nothing."""
    compared = {
        name
        for name, found in findings["gradients"].items()
        if any(one["paths"].get("direct") for one in found)
    }
    assert len(compared) >= 150


def test_nothing_else_was_found(reports):
    assert not [problem for report in reports for problem in report.problems]


def test_no_crash_that_tensorflow_does_not_have(reports):
    deaths = [death for report in reports for death in report.deaths if death.ours]
    assert not deaths, "\n".join(map(str, deaths))


@pytest.mark.skipif(not IN_221, reason="docs/coverage.md is about TensorFlow 2.21")
def test_the_table_of_coverage_is_true(reports):
    text = coverage.render(reports)
    verified = sum(" | direct | " in line for line in text.splitlines())
    assert verified >= 550
    assert text == (DOCS / "coverage.md").read_text(), "`make parity ARGS=--quick` writes it anew"
