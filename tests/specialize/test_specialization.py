"""The states of a specialization, and its description."""

import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import fastops
from fastops._core.reasons import REGISTRY
from fastops._specialize.recording.recording import is_whole
from fastops._specialize.specialization import Specialization

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant(np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3))


@pytest.fixture(autouse=True)
def not_installed():
    yield
    fastops.uninstall()


def test_a_new_specialization_waits():
    new = Specialization(b"key", 1)
    assert new.describe() == {
        "arguments": None,  # the key is no signature
        "state": "waiting",
        "variants": [],
        "missed": None,
        "reason": None,
        "detail": None,
    }
    assert (new.key, new.first, new.failures) == (b"key", None, 0)


@pytest.mark.parametrize(
    ("branches", "whole"),
    [
        ([()], True),
        ([], False),
        ([(), ()], False),
        ([((3, True),)], False),
        ([((3, True),), ((3, False),)], True),
        ([((3, True),), ((4, False),)], False),
        ([((3, True),), ((3, False),), ()], False),
        ([((3, True),), ((3, False), (5, True))], False),
        ([((3, True),), ((3, False), (5, True)), ((3, False), (5, False))], True),
        ([((3, False), (6, True)), ((3, True), (5, True)), ((3, True), (5, False))], False),
    ],
)
def test_branches_are_whole_if_each_comparison_has_both_sides(branches, whole):
    assert is_whole(branches) == whole
    assert is_whole(branches[::-1]) == whole


def test_a_function_is_active_or_refused(due_after):
    due_after(1)
    fastops.install()
    function = tf.image.adjust_contrast
    image = tf.reshape(tf.range(12.0), [2, 2, 3])
    for _ in range(4):
        function(image, 2.0)
    (known,) = function.recordings()
    (variant,) = known["variants"]
    assert known["state"] == "active"
    assert known["reason"] is None
    assert known["arguments"] == "(float32[2,2,3], 2.0)"
    assert "AdjustContrastv2" in variant["ops"]
    assert any(op == "AdjustContrastv2" for op, _, _ in variant["constants"])


@pytest.mark.parametrize("key", [b"(", b"T\x01", b"(" + b"\xff" * 8, b"s" + b"\x7f" * 9, b"O" * 90])
def test_bytes_that_are_no_signature_have_no_text(key):
    assert Specialization(key, 1).describe()["arguments"] is None
    nested = (b"(" + (1).to_bytes(8, sys.byteorder)) * 100_000 + b"n"
    assert Specialization(nested, 1).describe()["arguments"] is None


def test_each_recording_tells_its_call(due_after):
    due_after(1)
    layer = keras.layers.Dense(2)
    fastops.install()
    for _ in range(6):
        layer(X)
        layer(X[None])
    told = {one["arguments"] for one in keras.layers.Layer.__call__.recordings(layer)}
    assert told == {"(float32[2,3])", "(float32[1,2,3])"}
    (replayed,) = fastops.explain(layer, X).methods
    assert (replayed.reason, replayed.arguments) == (None, "(float32[2,3])")
    report = fastops.explain(layer, X[None])
    assert [one.arguments for one in report.methods] == ["(float32[1,2,3])"]
    assert "(float32[1,2,3])" in str(report)
    assert report.to_dict()["methods"][0]["arguments"] == "(float32[1,2,3])"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda layer: setattr(layer, "units", 5), "Dense.units has changed"),
        (lambda layer: setattr(layer, "extra", 5), "Dense.extra is new"),
        (lambda layer: layer._losses.append(1), "Dense._losses has changed (a list)"),
    ],
)
def test_the_path_of_a_change_is_reported(change, expected, due_after):
    due_after(1)
    layer = keras.layers.Dense(2)
    fastops.install()
    for _ in range(6):
        layer(X)
    assert fastops.explain(layer, X).result.shape == (2, 2)
    (recording,) = keras.layers.Layer.__call__.recordings(layer)
    assert "Dense._kernel" in recording["places"]
    assert "Dense.units" in recording["places"]  # a number, which is compared in its dict
    assert "Dense._tracker" in recording["ignored"]
    assert not set(recording["places"]) & set(recording["ignored"])
    assert "MatMul" in recording["ops"]
    change(layer)
    report = fastops.explain(layer, X)
    assert expected in str(report)
    (call,) = report.methods
    assert expected == call.detail == report.to_dict()["methods"][0]["detail"]
    assert call.reason in {reason.sentence for reason in REGISTRY.values()}
