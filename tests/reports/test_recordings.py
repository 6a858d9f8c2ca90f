"""The recordings that `fastops.explain` and `recordings()` show: ops, constants, guards, misses."""

import threading
import types
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import find
from tensorflow.python.ops import gen_math_ops, math_ops

import fastops
from fastops._install.replay.replayed import Replayed
from fastops._specialize.policy import MAX_SHOWN_ITEMS, MAX_SHOWN_OPS

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant(np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3))

GLOBAL = "a global or setting that the recorded code reads has changed"


@pytest.fixture(autouse=True)
def installed():
    with fastops.accelerated():
        yield


def function_of(python):
    """Return a stand-in that replays a function of a test."""
    return Replayed(python, find("tf.roll").passed)


def learn(function, *args):
    for _ in range(5):
        function(*args)


def explained(function, *args):
    """Return the profile of a call of a replayed function, without those of nested calls."""
    (call,) = [
        call
        for call in fastops.explain(function, *args).public_functions
        if call.name.rpartition(".")[2] in (function.__name__, "norm", "roll")
    ]
    return call


# ---------------------------------------------------------------------------------------------
# Objects of Keras
# ---------------------------------------------------------------------------------------------


def test_the_recording_of_a_layer():
    layer = keras.layers.Dense(2, activation="relu")
    learn(layer, X)
    report = fastops.explain(layer, X)
    (call,) = report.methods
    assert (call.reason, call.state, call.missed, call.refused) == (None, "active", None, None)
    (recording,) = call.recordings
    assert [op for op in recording.ops if op != "ReadVariableOp"] == ["MatMul", "BiasAdd", "Relu"]
    guards = recording.guards
    assert {"Dense.units", "Dense._kernel"} <= set(guards["places"])
    assert "keras.src.layers.core.dense.ops" in guards["names"]
    assert "tensorflow.python.ops.gen_nn_ops.relu" in guards["functions"]
    assert "output 0 of op 0, ReadVariableOp" not in guards["values"]
    line = str(recording)
    assert line.startswith("ops: ")
    assert f"places {len(guards['places'])}" in line
    assert "Dense._kernel" not in line  # there are too many places
    assert repr(recording) == line
    assert line.partition("; ")[0] in str(report)
    assert "recordings" not in repr(call)


def test_the_recording_of_a_layer_as_plain_data():
    layer = keras.layers.Rescaling(2.0, offset=1.0)
    learn(layer, X)
    report = fastops.explain(layer, X)
    (call,) = report.to_dict()["methods"]
    (recording,) = call["recordings"]
    assert recording["ops"] == ["Mul", "AddV2"]
    assert recording["constants"] == ["Mul.y = float32[] 2.0", "AddV2.y = float32[] 1.0"]
    assert "constants: Mul.y = float32[] 2.0" in str(report)
    assert "Rescaling.scale" in recording["guards"]["places"]


def test_calls_without_a_recording():
    layer = keras.layers.Dense(2)
    (call,) = [call for call in fastops.explain(layer, X).methods if call.name[:5] == "Dense"]
    assert (call.state, call.recordings, call.missed) == (None, (), None)
    (call,) = [call for call in fastops.explain(layer, X).methods if call.name[:5] == "Dense"]
    assert (call.state, call.recordings) == ("recorded", ())


def test_a_changed_object_has_missed():
    layer = keras.layers.LeakyReLU(0.5)
    learn(layer, X)
    layer.negative_slope = 0.25
    report = fastops.explain(layer, X)
    (call,) = report.methods
    assert call.detail == "LeakyReLU.negative_slope has changed"
    method = keras.layers.Layer.__call__
    assert [one["missed"] for one in method.recordings(layer)] == [
        "LeakyReLU.negative_slope has changed"
    ]
    learn(layer, X)
    assert [one["missed"] for one in method.recordings(layer)] == [
        None, "LeakyReLU.negative_slope has changed",
    ]  # fmt: skip
    (call,) = fastops.explain(layer, X).methods
    assert (call.reason, call.missed) == (None, None)  # this recording has missed no call


def test_a_changed_global_is_the_last_miss():
    module = types.ModuleType("scales")
    exec("scale = 2.0\n\ndef twice(x):\n    return x * scale", vars(module))
    layer = keras.layers.Activation(module.twice)
    learn(layer, X)
    (recording,) = keras.layers.Layer.__call__.recordings(layer)
    assert "scales.scale" in recording["guards"]["globals"]
    assert recording["missed"] is None
    module.scale = 3.0
    layer(X)
    (recording,) = keras.layers.Layer.__call__.recordings(layer)
    assert recording["missed"] == "scales.scale has changed"
    (call,) = fastops.explain(layer, X).methods
    assert call.missed == "scales.scale has changed"


def test_recordings_of_an_object_that_has_died():
    layer = keras.layers.LeakyReLU(0.5)
    learn(layer, X)
    report = fastops.explain(layer, X)
    del layer
    keras.utils.clear_session(free_memory=True)
    (call,) = report.methods
    assert (call.reason, call.state, call.recordings) == (None, None, ())


# ---------------------------------------------------------------------------------------------
# Public functions
# ---------------------------------------------------------------------------------------------


def test_a_public_function_from_its_first_call_to_its_replay():
    function = find("tf.norm")
    states = []
    for _ in range(4):
        call = explained(function, tf.ones([3, 5]))
        states.append((call.reason, call.state))
    assert (call.name, call.arguments, call.calls) == ("tf.norm", "(float32[3,5])", 1)
    assert states[0] == ("a recording would not pay yet", "waiting")
    assert ("this call was used to make a recording", "active") in states
    assert states[-1] == (None, "active")
    (recording,) = call.recordings
    assert "Sum" in recording.ops
    assert any(op == "Sum" for op, _, _ in recording.constants)
    assert "tensorflow.python.ops.gen_math_ops._sum" in recording.guards["functions"]
    assert any(name.endswith("math_ops.reduce_sum") for name in recording.guards["names"])


def test_a_public_function_in_text_and_plain_data():
    learn(tf.norm, X)
    report = fastops.explain(tf.norm, X)
    (call,) = report.to_dict()["public_functions"]
    assert (call["name"], call["reason"], call["state"]) == ("tf.norm", None, "active")
    assert "Sum" in call["recordings"][0]["ops"]
    text = str(report)
    assert "public function" in text
    assert "tf.norm" in text
    assert "replayed" in text
    assert max(map(len, text.splitlines())) <= 120
    assert "tf.norm" in report.to_html()


def test_calls_after_a_profile_are_not_observed():
    learn(tf.norm, X)
    with fastops.profile() as report:
        tf.norm(X)
    before = report.public_functions
    tf.norm(X)
    assert report.public_functions == before
    assert [call.calls for call in before] == [1]


def test_a_profile_observes_its_thread_only():
    learn(tf.norm, X)
    with fastops.profile() as report:
        thread = threading.Thread(target=tf.norm, args=[X])
        thread.start()
        thread.join()
        assert report.public_functions == []
        tf.norm(X)
    assert [call.calls for call in report.public_functions] == [1]


def test_profiles_nest():
    learn(tf.norm, X)
    with fastops.profile() as outer:
        with fastops.profile() as inner:
            tf.norm(X)
        tf.norm(X)
    assert [call.calls for call in outer.public_functions] == [2]
    assert [call.calls for call in inner.public_functions] == [1]


def test_functions_that_are_made_during_a_profile():
    def doubled(x):
        return x + x

    with fastops.profile() as report:
        function = function_of(doubled)
        learn(function, X)
    reasons = [call.reason for call in report.public_functions if "doubled" in call.name]
    assert None in reasons


def test_a_replaced_function_is_the_last_miss():
    learn(tf.norm, X)
    with mock.patch.object(math_ops, "reduce_sum", return_value=tf.constant(9.0)):
        call = explained(find("tf.norm"), X)
        path = "tensorflow.python.ops.math_ops.reduce_sum"
        assert (call.reason, call.detail) == (GLOBAL, f"{path} has changed")
    call = explained(find("tf.norm"), X)
    assert (call.reason, call.missed) == (None, f"{path} has changed")
    assert f"last miss: {path} has changed" in str(fastops.explain(tf.norm, X))


def test_a_replaced_function_of_an_op_is_the_last_miss():
    def doubled(x):
        return x + x

    function = function_of(doubled)
    learn(function, X)
    with mock.patch.object(gen_math_ops, "add_v2", return_value=None):
        function(X)
    (known,) = function.recordings()
    assert known["missed"] == "tensorflow.python.ops.gen_math_ops.add_v2 has changed"


def test_a_tape_and_a_custom_gradient_are_the_last_miss():
    @tf.custom_gradient
    def odd(x):
        factors = [3.0]
        return x + x, lambda slope: factors[0] * slope

    def with_gradient(x):
        return odd(x)

    function = function_of(with_gradient)
    learn(function, X)
    with tf.GradientTape() as tape:
        tape.watch(X)
        call = explained(function, X)
    assert (call.reason, call.detail) == (
        GLOBAL,
        "a tape records, and the recording is for calls without one",
    )
    surroundings = "no tape records, as a custom gradient may change or assignments come later"
    assert call.recordings[0].guards["surroundings"] == (surroundings,)
    assert surroundings in str(call.recordings[0])


def test_a_value_is_the_last_miss():
    def choosing(x, choice):
        return tf.exp(x) if choice else tf.sin(x)

    def by_sum(x):
        return tf.exp(x) if tf.reduce_sum(x) > 0 else tf.sin(x)

    function, yes, no = function_of(choosing), tf.constant(True), tf.constant(False)
    learn(function, X, yes)
    (known,) = function.recordings()
    assert known["variants"][0]["guards"]["values"] == ["tensor 1 of the arguments"]
    assert known["missed"] is None
    learn(function, X, no)
    call = explained(function, X, no)
    assert call.missed == "the value of tensor 1 of the arguments has changed"
    assert [recording.ops for recording in call.recordings] == [("Exp",), ("Sin",)]
    assert "values 1 (tensor 1 of the arguments)" in str(call.recordings[0])

    function, x = function_of(by_sum), tf.constant([1.0, 2.0])
    learn(function, x)
    learn(function, -x)
    (known,) = function.recordings()
    (value,) = known["variants"][0]["guards"]["values"]
    assert value.endswith(", Greater")
    assert known["missed"] == f"the value or size of {value}, has changed"


def test_a_refused_function():
    def returning(x):
        return {1, 2}

    function = function_of(returning)
    learn(function, X)
    call = explained(function, X)
    assert call.state == "refused"
    assert call.reason.startswith("the call returns an object that is neither a tensor")
    assert call.detail == "set"
    assert call.refused == f"{call.reason}: set"
    assert call.recordings == ()


def test_calls_that_are_left_to_the_original():
    function = find("tf.roll")
    call = explained(function, np.float32([1.0]), 1, 0)
    assert call.reason == "an argument has a type that recordings do not support"
    assert (call.arguments, call.state, call.recordings) == (None, None, ())
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        call = explained(function, tf.constant([1.0]), 1, 0)
    assert call.reason == "a scope of a distribution strategy is open"


def test_calls_in_a_graph_are_not_listed():
    with tf.Graph().as_default():
        assert fastops.explain(tf.norm, tf.constant([1.0])).public_functions == []


def test_a_call_that_raises():
    def wrong(x):
        raise ZeroDivisionError

    function = function_of(wrong)
    with fastops.profile() as report, pytest.raises(ZeroDivisionError):
        function(X)
    assert [call.calls for call in report.public_functions] == [1]
    with fastops.profile() as report:
        tf.norm(X)
    assert [call.name for call in report.public_functions][:1] == ["tf.norm"]


def test_long_recordings_are_printed_in_short():
    def long(x):
        for _ in range(MAX_SHOWN_OPS + 3):
            x = x + 1.0
        return x

    function = function_of(long)
    learn(function, X)
    (recording,) = explained(function, X).recordings
    assert len(recording.ops) == len(recording.constants) == MAX_SHOWN_OPS + 3
    line = str(recording)
    assert line.count("AddV2,") == MAX_SHOWN_OPS
    assert "AddV2, 3 more; constants: " in line
    assert line.count("AddV2.y = float32[] 1.0") == MAX_SHOWN_ITEMS
    assert f"{MAX_SHOWN_OPS + 3 - MAX_SHOWN_ITEMS} more; guards: " in line
