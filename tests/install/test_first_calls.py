"""First calls of keys in an unchanged program are direct if TensorFlow is known to accept them."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
import tensorflow as tf
from support import Failure, assert_same, floats, outcome
from tensorflow.python.eager import context

import fastops
from fastops import ops

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant(floats(3, 4))
IMAGE = tf.constant(floats(2, 6, 6, 3))
FLAGS = tf.constant([[True], [False], [True]])
NUMBERS = tf.constant([2, 0, 1])


@pytest.fixture(autouse=True)
def installed():
    yield
    fastops.uninstall()


def counted(function, op_name):
    """Return the outcome of a call under `install`, and the counts of the op: direct, reasons."""
    fastops.clear_cache()
    fastops.reset_stats()
    with fastops.accelerated():
        result = outcome(function)
    seen = fastops.stats().ops[op_name]
    return result, (seen.direct, dict(seen.reasons))


ACCEPTED = {
    "AddV2": lambda: X + X,
    "ArgMax": lambda: tf.argmax(X, axis=1),
    "Cast": lambda: tf.cast(X, tf.int64),
    "ConcatV2": lambda: tf.concat([X, X, X], 1),
    "Conv2D": lambda: tf.nn.conv2d(IMAGE, tf.reshape(IMAGE, [6, 6, 3, 2]), 1, "SAME"),
    "Cumsum": lambda: tf.cumsum(X, axis=1, reverse=True),
    "Einsum": lambda: tf.einsum("ij,kj->ik", X, X),
    "Fill": lambda: tf.fill([2, 0], 3.0),
    "GatherV2": lambda: tf.gather(X, NUMBERS),
    "MatMul": lambda: tf.matmul(X, X, transpose_b=True),
    "MaxPool": lambda: tf.nn.max_pool2d(IMAGE, 2, 2, "VALID"),
    "OneHot": lambda: tf.one_hot(NUMBERS, 5, dtype=tf.float64),
    "Pack": lambda: tf.stack([X, X], axis=1),
    "ResizeBilinear": lambda: tf.raw_ops.ResizeBilinear(images=IMAGE, size=[4, 4]),
    "SelectV2": lambda: tf.where(FLAGS, X, 0.0),
    "Softmax": lambda: tf.nn.softmax(X),
    "Split": lambda: tf.split(X, 2, axis=1),
    "StatelessRandomUniformV2": lambda: tf.random.stateless_uniform([3], [1, 2]),
    "StringUpper": lambda: tf.strings.upper(["a", "é"]),
    "Sum": lambda: tf.reduce_sum(X, axis=0, keepdims=True),
    "Transpose": lambda: tf.transpose(IMAGE, [0, 3, 1, 2]),
    "Unpack": lambda: tf.unstack(X, axis=1),
}


@pytest.mark.parametrize("op_name", ACCEPTED)
def test_a_first_call_is_direct(op_name):
    call = ACCEPTED[op_name]
    got, (direct, reasons) = counted(call, op_name)
    assert_same(got, call())
    assert direct
    assert not reasons


def test_variables_are_made_directly():
    """Each variable has its own name, so each call that makes one is the first of its key."""
    fastops.clear_cache()
    fastops.reset_stats()
    with fastops.accelerated():
        variables = [tf.Variable(X, name=f"weight_{i}") for i in range(5)]
        variables[0].assign_add(X)
    for variable, want in zip(variables, [2 * X, X, X, X, X], strict=True):
        assert_same(variable.value(), want)
    seen = fastops.stats().ops["VarHandleOp"]
    assert (seen.direct, dict(seen.reasons)) == (5, {})


def test_errors_name_the_line_where_a_variable_was_made():
    """Errors of functions that XLA compiles name this file and line."""

    def make():
        return tf.Variable([1.0, 2.0], shape=tf.TensorShape(None), name="weight")

    def message(variable):
        @tf.function(jit_compile=True)
        def longer():
            tf.raw_ops.AssignVariableOp(resource=variable.handle, value=[1.0, 2.0, 3.0])

        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            longer()
        return re.search(r"old shape .*", str(caught.value))[0]

    want = message(make())
    with fastops.accelerated():
        made = make()
    assert fastops.stats().ops["VarHandleOp"].direct == 1
    assert message(made) == want
    assert f"(defined @ {__file__}:{make.__code__.co_firstlineno + 1})" in want


def test_gradients_of_first_calls():
    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.reduce_sum(tf.nn.softmax(tf.matmul(X, X, transpose_b=True)) ** 2.0)
        return tape.gradient(y, X)

    got, (direct, reasons) = counted(gradient, "MatMul")
    assert_same(got, gradient())
    assert direct
    assert not reasons


RAW = tf.raw_ops

# The op, and a call that its OpDef, its shape function or its kernel rejects.
REJECTED = {
    "an input of a dtype that the op does not have": (
        "SelectV2",
        lambda: RAW.SelectV2(condition=X, t=X, e=X),
    ),
    "inputs of two dtypes": ("AddV2", lambda: RAW.AddV2(x=X, y=NUMBERS)),
    "a dtype that is not allowed": ("MatMul", lambda: RAW.MatMul(a=FLAGS, b=FLAGS)),
    "a dtype without a kernel": ("Erf", lambda: RAW.Erf(x=tf.constant([1j]))),
    "a list that is too short": ("ConcatV2", lambda: RAW.ConcatV2(values=[X], axis=0)),
    "a length that is too small": (
        "Split",
        lambda: RAW.Split(axis=0, value=X, num_split=0),
    ),
    "a length beyond all memory": ("Unpack", lambda: RAW.Unpack(value=X, num=1 << 40)),
    "a number that is too small": (
        "DepthToSpace",
        lambda: RAW.DepthToSpace(input=IMAGE, block_size=1),
    ),
    "a word that is not allowed": (
        "Conv2D",
        lambda: RAW.Conv2D(input=IMAGE, filter=IMAGE, strides=[1, 1, 1, 1], padding="SOME"),
    ),
    "strides that the shape function rejects": (
        "Conv2D",
        lambda: RAW.Conv2D(input=IMAGE, filter=IMAGE, strides=[1, 1, 1], padding="SAME"),
    ),
    "shapes that the kernel rejects": ("MatMul", lambda: RAW.MatMul(a=X, b=X)),
    "a value that the kernel rejects": (
        "Reshape",
        lambda: RAW.Reshape(tensor=X, shape=[5, 5]),
    ),
    "an attribute of another kind": ("MatMul", lambda: RAW.MatMul(a=X, b=X, transpose_a="yes")),
}


@pytest.mark.parametrize("what", REJECTED)
def test_rejected_calls_raise_tensorflows_errors(what):
    op_name, call = REJECTED[what]
    want = outcome(call)
    assert isinstance(want, Failure)

    def twice():
        assert_same(outcome(call), want)
        return call()

    got, (direct, reasons) = counted(twice, op_name)
    assert_same(got, want)
    assert not direct
    assert "kernel_error" not in reasons, "a kernel was prepared"


def test_a_correct_call_after_a_rejected_one_is_direct():
    wrong, right = (lambda: tf.matmul(X, X)), (lambda: tf.matmul(X, X, transpose_b=True))

    def both():
        return isinstance(outcome(wrong), Failure), right(), outcome(wrong)

    (failed, got, _), (direct, reasons) = counted(both, "MatMul")
    assert failed
    assert_same(got, right())
    assert direct == 1
    assert reasons == {"first_call": 2}


def test_first_calls_of_ops_with_state_fall_back():
    variable = tf.Variable([1.0, 2.0])
    for _ in range(2):
        _, (direct, reasons) = counted(lambda: variable.assign([3.0, 4.0]), "AssignVariableOp")
        assert (direct, reasons) == (0, {"first_call": 1})


def test_first_calls_of_op_functions_fall_back_unless_installed():
    for scope, want in ((nullcontext, (1, {"first_call": 1})), (fastops.accelerated, (2, {}))):
        fastops.clear_cache()
        fastops.reset_stats()
        with scope():
            for _ in range(2):
                ops.softplus(features=X)
        seen = fastops.stats().ops["Softplus"]
        assert (seen.direct, seen.reasons) == want


def test_the_path_option_is_respected():
    with fastops.options(path="capi"):
        _, (direct, reasons) = counted(lambda: tf.math.cosh(X), "Cosh")
    assert (direct, reasons) == (0, {"first_call": 1})


def test_first_calls_fall_back_while_tensorflow_collects_graphs():
    context.context().clear_kernel_cache()
    context.context().enable_graph_collection()
    try:
        _, (direct, reasons) = counted(lambda: tf.math.sinh(X), "Sinh")
        assert context.context().export_run_metadata().function_graphs
    finally:
        context.context().disable_graph_collection()
    assert (direct, reasons) == (0, {"first_call": 1})


def test_first_calls_are_direct_while_a_call_is_recorded():
    def three():
        return [tf.nn.moments(IMAGE, [0, 1, 2]) for _ in range(3)]

    got, (direct, reasons) = counted(three, "Mean")
    for one, other in zip(got, three(), strict=True):
        assert_same(one[0], other[0])
        assert_same(one[1], other[1])
    assert direct in (6, 9)  # 9 since TensorFlow 2.22
    assert reasons == {}


def test_calls_recorded_without_a_tape_keep_stopped_gradients():
    def normalized():
        mean, variance = tf.nn.moments(X, [-1], keepdims=True)  # its mean has no gradient path
        scale = tf.math.rsqrt(variance + 1e-3)
        return X * scale - mean * scale

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.reduce_sum(normalized() ** 2.0 + normalized())
        return tape.gradient(y, X)

    want = gradient()
    fastops.clear_cache()
    with fastops.accelerated():
        for _ in range(3):
            normalized()
        fastops.reset_stats()
        got = gradient()
        negated = fastops.stats().ops["Neg"].direct
        assert_same(got, want)
    fastops.reset_stats()
    with fastops.accelerated(models=False, functions=False):
        fastops.clear_cache()
        assert_same(gradient(), want)
    assert fastops.stats().ops["Neg"].direct == negated


def test_callbacks_see_the_calls_of_a_recording_once():
    seen = []

    def note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        seen.append(op_type)

    with fastops.accelerated():
        fastops.clear_cache()
        tf.nn.moments(X, [0])
        context.context().op_callbacks.append(note)
        try:
            tf.nn.moments(X, [0])
        finally:
            context.context().op_callbacks.remove(note)
    want = []
    context.context().op_callbacks.append(lambda kind, *_, **__: want.append(kind))
    try:
        tf.nn.moments(X, [0])
    finally:
        context.context().op_callbacks.pop()
    assert seen == want


def test_threads_that_make_the_first_call_together():
    want = np.array(tf.math.atan(X))
    with fastops.accelerated(), ThreadPoolExecutor(8) as pool:
        fastops.clear_cache()
        results = list(pool.map(lambda _: np.array(tf.math.atan(X)), range(64)))
    assert all(np.array_equal(result, want) for result in results)
