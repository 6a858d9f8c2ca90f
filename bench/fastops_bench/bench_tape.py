"""The cost of recording a call on a gradient tape, and of beginning and ending a tape."""

from contextlib import contextmanager

import pytest
import tensorflow as tf
from pytest_fastops.race import Arm

import fastops

NAMES = {
    "ops": fastops.raw_ops,
    "raw_ops": tf.raw_ops,
    "x": tf.constant(1.5),
    "a": tf.ones([1, 32]),
    "b": tf.ones([32, 32]),
}


@contextmanager
def tape():
    with tf.GradientTape() as recorder:
        recorder.watch([NAMES["x"], NAMES["a"]])
        yield


@pytest.mark.parametrize("call", ["AddV2(x=x, y=x)", "Tanh(x=x)", "MatMul(a=a, b=b)"])
def test_tape(call, race):
    arms = [
        Arm("fastops", f"ops.{call}", NAMES),
        Arm("fastops, taped", f"ops.{call}", NAMES, tape),
        Arm("raw_ops", f"raw_ops.{call}", NAMES),
        Arm("raw_ops, taped", f"raw_ops.{call}", NAMES, tape),
    ]
    race("tape", call, arms)


def empty():
    with tf.GradientTape():
        pass


def watching(x):
    with tf.GradientTape() as recorder:
        recorder.watch(x)


def nested():
    with tf.GradientTape(), tf.GradientTape():
        pass


def paused():
    with tf.GradientTape() as recorder, recorder.stop_recording():
        pass


PUSHES = {
    "push and pop": "empty()",
    "push, watch and pop": "watching(x)",
    "two tapes, one in the other": "nested()",
    "push, pause and pop": "paused()",
}


@pytest.mark.parametrize("label", PUSHES)
def test_push_and_pop(label, race):
    names = {**globals(), "x": NAMES["x"]}
    arms = [
        Arm("installed", PUSHES[label], names, fastops.accelerated),
        Arm("stock", PUSHES[label], names),
    ]
    race("tape, push and pop", label, arms)
