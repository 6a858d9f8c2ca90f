"""The recorder of a call, which observes the ops of its thread."""

import pytest
import tensorflow as tf
from support import floats
from tensorflow.python import pywrap_tfe

import fastops
from fastops import ops
from fastops._specialize.guards.names import Guard
from fastops._specialize.recording import record
from fastops._specialize.recording.recorder import Ran, Recorder

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant(floats(3, 4))
V = tf.Variable(floats(3, 4))


@pytest.fixture(autouse=True)
def installed():
    with fastops.accelerated():
        yield


def recorded(function, complete=True):
    """Return the ops that are recorded while a function runs, and the counts of its calls."""
    function()
    recorder = Recorder()
    fastops.reset_stats()
    assert recorder.start()
    try:
        function()
    finally:
        recorder.stop()
    assert recorder.failed is not complete
    return [event for event in recorder.events if type(event) is Ran], fastops.stats()


@pytest.mark.parametrize(
    "function",
    [lambda: X + X, lambda: tf.add(X, X), lambda: tf.raw_ops.AddV2(x=X, y=X)],
    ids=["operator", "function", "op"],
)
def test_a_call_is_direct_and_counted_once(function):
    (event,), stats = recorded(function)
    assert (event.op_name, event.attrs) == ("AddV2", {"T": tf.float32.as_datatype_enum})
    assert all(tensor is X for tensor in event.inputs)
    assert len(event.inputs) == 2
    assert (stats.direct, stats.reasons) == (1, {})


def test_a_call_with_many_results():
    (event,), stats = recorded(lambda: tf.unstack(tf.constant(floats(20, 2)), axis=0)[19])
    assert (event.op_name, len(event.outputs)) == ("Unpack", 20)
    assert (stats.direct, stats.reasons) == (1, {})


def test_reads_of_variables_are_recorded_as_ops():
    events, stats = recorded(lambda: X * V)
    assert [event.op_name for event in events] == ["ReadVariableOp", "Mul"]
    assert (stats.direct, stats.reasons) == (2, {})


def test_ops_that_tensorflow_runs_are_counted_once():
    def asked():
        with fastops.options(path="tensorflow"):
            return X + X

    (event,), stats = recorded(asked)
    assert event.op_name == "AddV2"
    assert (stats.direct, stats.reasons) == (0, {"first_call": 1})


def test_counts_are_not_decreased():
    def positional():
        with pytest.raises(TypeError):
            ops.add_v2(X, X)

    events, stats = recorded(positional)
    assert not events
    assert all(count > 0 for count in stats.reasons.values())


def test_an_error_is_raised_and_counted_once():
    wrong = tf.constant(floats(5))

    def fails():
        with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
            tf.add(X, wrong)

    events, stats = recorded(fails)
    assert not events
    assert (stats.direct, stats.reasons) == (0, {"first_call": 1})


def test_calls_fall_back_if_there_is_another_callback():
    from tensorflow.python.framework import op_callbacks

    seen = []

    def callback(kind, *_, **__):
        seen.append(kind)

    def watched():
        op_callbacks.add_op_callback(callback)
        try:
            X + X
        finally:
            op_callbacks.remove_op_callback(callback)

    (event,), stats = recorded(watched, complete=False)
    assert event.op_name == "AddV2"
    assert len(seen) == 2  # the callback sees the call before, too
    assert (stats.direct, stats.reasons) == (0, {"first_call": 1})


def test_recordings_use_up_no_versions_of_the_class_of_tensors():
    # From 3.13 on, CPython gives a class a thousand versions at most.
    rank = vars(type(X))["_rank"]
    guard = Guard(lambda: ([(type(X), {"_rank": rank}, True)], True))
    assert guard
    for _ in range(1200):
        recorder = Recorder()
        assert recorder.start()
        recorder.stop()
        assert guard
    before = guard.looks
    assert guard
    assert guard.looks == before


def test_recording_inside_of_a_profile():
    with fastops.profile() as profile:
        (event,), stats = recorded(lambda: X + X)
    assert event.op_name == "AddV2"
    assert stats.direct + sum(stats.reasons.values()) == 1
    assert "AddV2" in str(profile)


def test_threads_that_start_meanwhile_are_not_recorded():
    from threading import Thread

    def elsewhere():
        thread = Thread(target=lambda: X + X)
        thread.start()
        thread.join()

    events, stats = recorded(elsewhere)
    assert not events
    assert stats.direct == 1


@pytest.mark.parametrize("method", ["start", "stop"])
def test_no_hook_stays_if_the_witness_raises(method, monkeypatch):
    class Raising:
        def __init__(self, declared):
            pass

        def start(self):
            if method == "start":
                raise RuntimeError(method)
            return True

        def stop(self):
            raise RuntimeError(method)

    monkeypatch.setattr(record, "Witness", Raising)
    before = pywrap_tfe.TFE_Py_FastPathExecute
    with pytest.raises(RuntimeError, match=method), record.Record() as one:
        one.start({})
    assert pywrap_tfe.TFE_Py_FastPathExecute is before
    again = Recorder()
    assert again.start()
    again.stop()
