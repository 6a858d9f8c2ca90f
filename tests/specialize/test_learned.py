"""`Learned`: the states, reasons and limits of what is learned about calls of one kind."""

import pytest

import fastops
from fastops._core.reasons import REGISTRY
from fastops._specialize.learned import Learned, LearnedByKind

pytestmark = pytest.mark.quick


def test_two_calls_that_agree_are_enough():
    learned = Learned("kind", needed=2)
    assert (learned.state, learned.is_decided) == ("waiting", False)
    assert not learned.learn([1])
    assert (learned.state, learned.is_decided, learned.content) == ("recorded", False, [1])
    assert learned.learn([1])
    assert (learned.state, learned.is_active, learned.content) == ("active", True, [1])
    assert learned.describe() == {
        "kind": "kind", "state": "active", "reason": None, "detail": None
    }  # fmt: skip


def test_two_calls_that_differ_refuse_the_kind():
    learned = Learned("kind", needed=2)
    learned.learn([1])
    assert not learned.learn([2])
    assert (learned.state, learned.is_decided, learned.content) == ("refused", True, None)
    assert learned.reason == learned.text == REGISTRY["kind_varies"].sentence


def test_a_reason_has_its_particulars_beside_it():
    learned = Learned("kind")
    learned.refuse("batch_elements", "a spec")
    sentence = REGISTRY["batch_elements"].sentence
    assert (learned.reason, learned.detail) == (sentence, "a spec")
    assert learned.text == f"{sentence}: a spec"


def test_nothing_changes_after_the_decision():
    active, refused = Learned("kind"), Learned("kind")
    active.learn(1)
    active.learn(2)
    active.refuse("batch_order")
    assert (active.state, active.content, active.reason) == ("active", 1, None)
    refused.refuse("batch_order")
    assert not refused.learn(1)
    refused.refuse("batch_elements")
    assert refused.reason == REGISTRY["batch_order"].sentence


def test_calls_are_counted_by_what_made_them():
    kinds = LearnedByKind("a function", 2)
    fastops.reset_stats()
    first, second = kinds.of("a"), kinds.of("b")
    kinds.count(first)
    first.learn(1)
    kinds.count(first)
    kinds.count(first)
    kinds.count(second)
    second.refuse("batch_order")
    kinds.count(second)
    seen = fastops.stats().kinds["a function"]
    assert (seen.copied, seen.tensorflow) == (2, 3)
    assert seen.reasons == {"kind_new": 2, "batch_order": 1}
    assert [kind["state"] for kind in kinds.describe()] == ["active", "refused"]
    fastops.reset_stats()
    assert "a function" not in fastops.stats().kinds


def test_the_oldest_kind_is_dropped():
    kinds = LearnedByKind("a function", 2)
    for kind in "abc":
        kinds.of(kind)
    assert [kind["kind"] for kind in kinds.describe()] == ["b", "c"]


def test_the_limit_may_be_a_sum_of_sizes():
    kinds = LearnedByKind("a function", 10, size_of=len)
    for kind in "abc":
        kinds.of(kind).learn("12345")
        kinds.trim()
    assert [kind["kind"] for kind in kinds.describe()] == ["b", "c"]
    kinds.of("d").learn("a text that is longer than ten")
    kinds.trim()
    assert [kind["kind"] for kind in kinds.describe()] == ["d"]
