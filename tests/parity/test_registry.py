"""The part of the parity suite that is short enough for continuous integration."""

import os

import pytest
import tensorflow as tf
from support import failure, one_in

from fastops import raw_ops
from fastops._core.tables import facts
from parity import cases, coverage, malformed, recipes
from parity.__main__ import DOCS
from parity.campaign import WORLDS
from parity.shared import Suite

recipes.load()
OPS = cases.op_names()
OF_SNAPSHOT = tf.version.VERSION.rpartition(".")[0] == facts.VERSION.rpartition(".")[0]
"""Whether this TensorFlow is the version of the snapshot, whose ops the recipes call."""


@pytest.fixture(scope="session")
def suite(once, request):
    """Yield the parity suite, whose ops are distributed among the workers.

    If there is only one worker, it runs all ops of the selected tests at once.
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
    """Return the findings about all ops."""
    findings = suite.all()
    assert [report.world for report in findings.reports] == list(WORLDS)
    return findings


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
    [*(pytest.param(name, marks=pytest.mark.quick) for name in QUICK), *one_in(16, OTHERS)],
)
class TestOp:
    """Tests of each op."""

    def test_values(self, suite, op_name):
        """Values, structure and device are TensorFlow's in three worlds, on the direct path."""
        findings = suite.of(op_name).findings["values"][op_name]
        assert len(findings) == len(WORLDS) * len(cases.combinations(op_name))
        assert_no_problems(findings)
        assert {path for finding in findings for path in finding["paths"]} == {path_of(op_name)}

    def test_gradients(self, suite, op_name):
        """First and second gradients and the jvp of direct calls are TensorFlow's."""
        findings = suite.of(op_name).findings["gradients"][op_name]
        assert len(findings) == len(cases.combinations(op_name))
        assert_no_problems(findings)
        assert {path for finding in findings for path in finding["paths"]} <= {path_of(op_name)}

    def test_graphs(self, suite, op_name):
        """In a function, the op builds the same node as TensorFlow's."""
        findings = suite.of(op_name).findings["graphs"][op_name]
        assert_no_problems(findings)
        assert any(finding["cases"] for finding in findings)

    def test_malformed_calls(self, suite, op_name):
        """At least five malformed calls raise TensorFlow's exception, or crash TensorFlow."""
        if op_name in malformed.THREADED:  # see test_malformed_calls_that_start_threads
            return
        report = suite.of(op_name).reports[0]
        raised = report.searches["malformed"].get(op_name, {"raised": 0})["raised"]
        deaths = [
            death
            for death in report.deaths
            if (death.check, death.op_name) == ("malformed", op_name)
        ]
        assert raised + len(deaths) >= 5

    def test_examples(self, suite, op_name):
        """Hypothesis found no example in which fastops and TensorFlow differ."""
        report = suite.of(op_name).reports[0]
        assert report.searches["properties"][op_name]["tried"] > 0
        assert not [
            problem
            for problem in report.problems
            if problem.startswith((f"{op_name},", f"{op_name}:"))
        ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"output_types": [tf.int32]},
        {"output_types": [tf.float32, tf.float32]},
        {"output_types": []},
        {"output_types": ["no dtype"]},
        {"output_shapes": [[3]]},
        {"output_shapes": [[2], [2]]},
        {"output_shapes": [[-2]]},
        {"iterator": 1.0},
        {"iterator": [1, 2]},
        {"iterator": None},
        {"surplus": 1},
    ],
    ids=str,
)
def test_malformed_calls_that_start_threads(wrong):
    element = tf.constant([1.0, 2.0])
    iterator = iter(tf.data.Dataset.from_tensors(element).repeat())._iterator_resource
    right = {"iterator": iterator, "output_types": [tf.float32], "output_shapes": [[2]]}
    raw_ops.IteratorGetNext(**right)
    want = failure(tf.raw_ops.IteratorGetNext, **right | wrong)
    assert failure(raw_ops.IteratorGetNext, **right | wrong) == want


def test_iterators_of_other_kinds():
    variable = tf.Variable([1.0, 2.0])
    about = {"output_types": [tf.float32], "output_shapes": [[2]]}
    empty = tf.raw_ops.AnonymousIteratorV3(**about)
    for handle in (variable.handle, empty):
        want = failure(tf.raw_ops.IteratorGetNext, iterator=handle, **about)
        assert failure(raw_ops.IteratorGetNext, iterator=handle, **about) == want


def path_of(op_name):
    path, _ = recipes.INDIRECT.get(op_name, ("direct", ""))
    return path


def assert_no_problems(findings):
    assert not [problem for finding in findings for problem in finding["problems"]]


@pytest.mark.slow
def test_gradients_were_compared(everything):
    """Gradients of many ops were compared, so the check has not passed for lack of cases."""
    compared = {
        name
        for name, findings in everything.findings["gradients"].items()
        if any(finding["paths"].get("direct") for finding in findings)
    }
    assert len(compared) >= 150


@pytest.mark.slow
def test_there_are_no_other_problems(everything):
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
    assert text == (DOCS / "coverage.md").read_text(), "`make parity ARGS=--quick` writes it again"
