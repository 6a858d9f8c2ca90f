"""Selected wrong calls: the exceptions are TensorFlow's, word for word.

The parity suite makes many more wrong calls, for all ops of the registry.
"""

import traceback

import numpy as np
import pytest
import tensorflow as tf
from parity.draw import ints
from support import DIRECT, Failure, assert_same, failure, floats, outcome, took

import fastops
from fastops import raw_ops

pytestmark = pytest.mark.quick

X = tf.constant(floats(2, 3))
IMAGE = tf.constant(floats(1, 4, 4, 3))
FILTER = tf.constant(floats(2, 2, 3, 4))
CONV = {"input": IMAGE, "filter": FILTER, "strides": [1, 1, 1, 1], "padding": "SAME"}
POOL = {"input": IMAGE, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}

# The op; a correct call; changes of this call, each of which makes it wrong.
WRONG = (
    ("AddV2", {"x": X, "y": X}, [
        {"y": tf.ones([2, 4])},
        {"y": tf.cast(X, tf.float64)},
        {"y": ints([1, 2, 3])},
        {"y": tf.constant("a")},
        {"x": tf.constant([True]), "y": tf.constant([True])},
        {"y": "a string"},
        {"y": b"bytes"},
        {"y": None},
        {"x": None, "y": None},
        {"y": [[1.0, 2.0, 3.0], [1.0]]},
        {"y": {"a": 1.0}},
        {"y": {1.0}},
        {"y": tf.float32},
        {"y": tf.sparse.eye(2)},
        {"y": np.array(["a"])},
        {"y": np.zeros(3, [("a", "i4")])},
        {"y": 2j},
        {"y": 10**400},
        {"y": [None]},
        {"y": lambda: 1},
        {"y": [X, tf.ones([3])]},
        {"name": 5, "y": tf.ones([2, 4])},
        {"name": "total", "y": tf.ones([2, 4])},
    ]),
    ("MatMul", {"a": X, "b": X, "transpose_b": True}, [
        {"transpose_b": False},
        {"transpose_b": 1},
        {"transpose_b": "yes"},
        {"transpose_b": None},
        {"transpose_a": [True]},
        {"transpose_a": np.bool_(True)},
        {"a": X[0]},
        {"a": X[None]},
        {"a": tf.constant(1.0)},
        {"a": tf.cast(X, tf.int8), "b": tf.cast(X, tf.int8)},
        {"a": tf.constant([["a"]]), "b": tf.constant([["a"]])},
    ]),
    ("Conv2D", CONV, [
        {"padding": "same"},
        {"padding": "OTHER"},
        {"padding": b"SAME"},
        {"padding": None},
        {"padding": 3},
        {"strides": [1, 1]},
        {"strides": [2, 1, 1, 1]},
        {"strides": [1, 0, 0, 1]},
        {"strides": [1, -1, -1, 1]},
        {"strides": []},
        {"strides": None},
        {"strides": 1},
        {"strides": [1.0, 1.0, 1.0, 1.0]},
        {"strides": ["1", "1", "1", "1"]},
        {"strides": ints([1, 1, 1, 1])},
        {"data_format": "NCHW"},
        {"data_format": "CHWN"},
        {"dilations": [1, 0, 0, 1]},
        # explicit_paddings=[1, 2] is left out: TensorFlow's oneDNN kernel reads eight numbers all
        # the same.
        {"filter": FILTER[..., :2, :]},
        {"filter": FILTER[0]},
        {"input": tf.cast(IMAGE, tf.int64), "filter": tf.cast(FILTER, tf.int64)},
        {"input": tf.zeros([1, 4, 4, 0])},
    ]),
    ("MaxPool", POOL, [
        {"ksize": [1, 0, 0, 1]},
        {"ksize": [2, 2]},
        {"ksize": [1, 9, 9, 1], "padding": "VALID"},
        {"input": X},
    ]),
    ("Sum", {"input": X, "axis": ints(0)}, [
        {"axis": ints(2)},
        {"axis": ints(-3)},
        {"axis": ints(0, 0)},
        {"axis": tf.constant(0.0)},
        {"axis": "x"},
        {"keep_dims": "x"},
        {"input": tf.constant("a")},
    ]),
    ("Reshape", {"tensor": X, "shape": ints(3, 2)}, [
        {"shape": ints(4, 2)},
        {"shape": ints(-1, -1)},
        {"shape": ints(-2, 3)},
        {"shape": ints([[3, 2]])},
        {"shape": tf.constant([3.0, 2.0])},
        {"shape": [3, None]},
    ]),
    ("Cast", {"x": X, "DstT": tf.int32}, [
        {"DstT": "nonsense"},
        {"DstT": None},
        {"DstT": object},
        {"DstT": 10**6},
        {"DstT": tf.string},
        {"DstT": [tf.int32]},
        {"x": tf.constant("a")},
    ]),
    ("ConcatV2", {"values": [X, X], "axis": ints(0)}, [
        {"axis": ints(2)},
        {"axis": ints([0, 1])},
        {"values": [X]},
        {"values": []},
        {"values": X},
        {"values": None},
        {"values": 5},
        {"values": [X, tf.ones([2, 4])]},
        {"values": [X, tf.constant("a")]},
        {"values": [X, None]},
    ]),
    ("Pack", {"values": [X, X], "axis": 0}, [
        {"axis": 3},
        {"axis": -4},
        {"axis": 1.5},
        {"axis": "0"},
        {"axis": None},
        {"axis": 2**40},
        {"axis": 2**70},
        {"axis": [0]},
        {"axis": ints(0)},
        {"values": [X, X[0]]},
    ]),
    ("Unpack", {"value": X, "num": 2, "axis": 0}, [
        {"num": 3},
        {"num": -1},
        {"num": 2.0},
        {"num": "2"},
        {"num": None},
        {"axis": 2},
        {"value": tf.constant(1.0)},
    ]),
    ("Split", {"axis": ints(1), "value": X, "num_split": 3}, [
        {"num_split": 2},
        {"num_split": 0},
        {"axis": ints(5)},
        {"axis": ints([0, 1])},
    ]),
    ("GatherV2", {"params": X, "indices": ints(0), "axis": ints(0)}, [
        {"indices": ints(2)},
        {"indices": ints(-1)},
        {"indices": tf.constant(0.5)},
        {"axis": ints(3)},
        {"batch_dims": 1},
        {"batch_dims": "x"},
    ]),
    ("StridedSlice", {"input": X, "begin": ints([0]), "end": ints([1]), "strides": ints([1])}, [
        {"strides": ints([0])},
        {"end": ints([1, 1])},
        {"begin": ints([5]), "shrink_axis_mask": 1},
        {"ellipsis_mask": 3},
    ]),
    ("LeakyRelu", {"features": X, "alpha": 0.5}, [
        {"alpha": "x"},
        {"alpha": None},
        {"alpha": 1j},
        {"alpha": tf.constant(0.5)},
        {"alpha": 10**400},
    ]),
    ("EnsureShape", {"input": X, "shape": [2, 3]}, [
        {"shape": [3, 2]},
        {"shape": [2]},
        {"shape": "x"},
        {"shape": [2, -5]},
        {"shape": [2.0, 3.0]},
        {"shape": 6},
    ]),
    ("TopKV2", {"input": X, "k": ints(2)}, [
        {"k": ints(4)},
        {"k": ints(-1)},
        {"k": ints([1, 2])},
        {"k": 2.5},
    ]),
    ("OneHot", {"indices": ints(0), "depth": ints(2), "on_value": X[0, 0], "off_value": X[0, 1]}, [
        {"depth": ints(-1)},
        {"depth": ints([1, 2])},
        {"axis": 5},
        {"off_value": ints(1)},
    ]),
    ("StringJoin", {"inputs": [tf.constant(["a", "b"])] * 2}, [
        {"inputs": [tf.constant(["a", "b"]), tf.constant(["a"])]},
        {"inputs": [tf.constant("a"), X]},
        {"separator": 3},
    ]),
    ("StatelessRandomUniform", {"shape": ints([2]), "seed": ints(1, 2), "dtype": tf.float32}, [
        {"shape": ints([-2])},
        {"seed": ints(1, 2, 3)},
        {"dtype": tf.int32},
        {"dtype": "x"},
    ]),
    ("CheckNumerics", {"tensor": X, "message": "no"}, [
        {"tensor": tf.constant([np.nan, np.inf])},
        {"message": 3},
        {"tensor": ints(1)},
    ]),
    ("MatrixInverse", {"input": tf.eye(2)}, [{"input": tf.zeros([2, 2])}, {"input": X}]),
    ("InvertPermutation", {"x": ints(1, 0)}, [{"x": ints(1, 1)}, {"x": ints(5, 0)}]),
    ("DecodeRaw", {"bytes": tf.constant(["abcd"]), "out_type": tf.float32}, [
        {"bytes": tf.constant(["abc"])},
        {"bytes": X},
    ]),
    ("RegexReplace", {
        "input": tf.constant("a"), "pattern": tf.constant("a"), "rewrite": tf.constant("b"),
    }, [
        {"pattern": tf.constant("(")},
        {"rewrite": tf.constant(r"\5")},
    ]),
)  # fmt: skip


def test_the_table_of_wrong_calls_is_long():
    assert sum(len(changes) for _, _, changes in WRONG) >= 60


@pytest.mark.parametrize("cached", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("op_name", "right", "changes"), WRONG, ids=[case[0] for case in WRONG])
def test_wrong_calls(op_name, right, changes, cached):
    """Wrong calls raise TensorFlow's exception, whether or not a kernel is prepared.

    Class and message are compared. Some versions of TensorFlow accept a few of these calls; then
    the values are compared.
    """
    op = getattr(raw_ops, op_name)
    wants = [outcome(getattr(tf.raw_ops, op_name), **right | change) for change in changes]
    assert sum(isinstance(want, Failure) for want in wants) >= len(wants) / 2
    fastops.clear_cache()
    for change, want in zip(changes, wants, strict=True):
        if cached:
            op(**right)
            assert took(op, **right)[1] in (DIRECT, "capi:op")
        assert_same(outcome(op, **right | change), want)
    op(**right)
    assert took(op, **right)[1] in (DIRECT, "capi:op")


@pytest.mark.parametrize("cached", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("args", "kwargs", "culprit"),
    [
        ((), {"x": X}, "y"),
        ((), {}, "x"),
        ((), {"y": X}, "x"),
        ((), {"x": X, "y": X, "z": X}, "z"),
        ((), {"x": X, "y": X, "T": tf.float32}, "T"),
        ((), {"X": X, "y": X}, "X"),
        ((X, X), {}, ""),
        ((X,), {"y": X}, ""),
        ((X,), {"x": X, "y": X}, ""),
        ((X, X, None), {}, ""),
    ],
)
def test_wrong_arguments_are_type_errors_that_name_op_and_argument(args, kwargs, culprit, cached):
    fastops.clear_cache()
    if cached:
        for _ in range(2):
            raw_ops.AddV2(x=X, y=X)
    with pytest.raises(TypeError) as caught:
        raw_ops.AddV2(*args, **kwargs)
    message = str(caught.value)
    assert "AddV2" in message or "add_v2" in message
    assert culprit in message


@pytest.mark.parametrize("missing", ["input", "filter", "strides", "padding"])
def test_missing_arguments(missing):
    for _ in range(2):
        raw_ops.Conv2D(**CONV)
    with pytest.raises(TypeError, match=missing) as caught:
        raw_ops.Conv2D(**{name: value for name, value in CONV.items() if name != missing})
    assert "conv2d" in str(caught.value).lower()


def test_a_wrong_call_changes_no_tensor():
    before = X.numpy().copy()
    variable = tf.Variable(before)
    for _ in range(2):
        raw_ops.AssignAddVariableOp(resource=variable.handle, value=tf.zeros([2, 3]))
    for value in (tf.ones([2, 4]), tf.ones([2, 3], tf.float64), None, "a", ints(1)):
        outcome(raw_ops.AssignAddVariableOp, resource=variable.handle, value=value)
        outcome(raw_ops.AddV2, x=X, y=value)
    assert X.numpy().tobytes() == variable.numpy().tobytes() == before.tobytes()


def test_an_error_of_a_kernel_with_state_is_not_run_twice():
    variable = tf.Variable(np.zeros(3, np.float32))
    arguments = {"resource": variable.handle, "indices": ints(0), "updates": tf.constant(1.0)}
    for _ in range(2):
        raw_ops.ResourceScatterAdd(**arguments)
    wrong = arguments | {"indices": ints(0, 9), "updates": tf.constant([1.0, 1.0])}
    want = failure(tf.raw_ops.ResourceScatterAdd, **wrong)
    after_tensorflow = variable.numpy().copy()
    assert failure(raw_ops.ResourceScatterAdd, **wrong) == want
    assert (variable.numpy() - after_tensorflow).tolist() == (after_tensorflow - [2, 0, 0]).tolist()
    assert want.kind is tf.errors.InvalidArgumentError


@pytest.mark.parametrize("dtype", [tf.float32, np.float32, "float32"])
def test_an_error_of_a_kernel_with_state_names_the_call_as_tensorflow_does(dtype):
    """TensorFlow's dispatch call takes only `DType`s; for other dtypes its message differs."""
    right, wrong = tf.constant([2]), tf.constant([-2])
    for _ in range(2):
        raw_ops.RandomUniform(shape=right, dtype=dtype, seed=1)
    for name in (None, "mine"):
        want = failure(tf.raw_ops.RandomUniform, shape=wrong, dtype=dtype, seed=1, name=name)
        for _ in range(2):
            assert (
                failure(raw_ops.RandomUniform, shape=wrong, dtype=dtype, seed=1, name=name) == want
            )
    _, path = took(raw_ops.RandomUniform, shape=right, dtype=dtype, seed=1)
    assert path == "capi:op"


def test_default_floats_that_tensorflow_passes_as_ints():
    """TensorFlow's function passes the default 0.0 of a collective's timeout as the int 0."""
    arguments = {"group_size": 1, "group_key": 71, "instance_key": 71, "shape": [2]}
    raw_ops.CollectiveBcastSend(input=tf.ones([2]), **arguments)
    want = failure(tf.raw_ops.CollectiveBcastSend, input=tf.ones([1]), **arguments)
    assert failure(raw_ops.CollectiveBcastSend, input=tf.ones([1]), **arguments) == want
    assert not want[1].endswith("name: ")


@pytest.mark.parametrize("message", [b"\xff", "\0", "a\0b", "é"])
def test_messages_that_are_not_utf8_text(message):
    finite, infinite = tf.constant([1.0]), tf.constant([np.inf])
    for _ in range(2):
        raw_ops.CheckNumerics(tensor=finite, message=message)
    _, path = took(raw_ops.CheckNumerics, tensor=finite, message=message)
    assert path == DIRECT
    want = failure(tf.raw_ops.CheckNumerics, tensor=infinite, message=message)
    assert failure(raw_ops.CheckNumerics, tensor=infinite, message=message) == want


def test_a_kernel_whose_result_has_another_dtype():
    """The kernel returns the variable's dtype and ignores its attribute; TensorFlow then raises."""

    def count(m, dtype):
        variable = tf.Variable(5, dtype=dtype)
        return outcome(m.ResourceCountUpTo, resource=variable.handle, limit=100, T=tf.int32)

    for _ in range(2):
        assert_same(count(raw_ops, tf.int32), count(tf.raw_ops, tf.int32))
    handle = tf.Variable(5).handle
    _, path = took(raw_ops.ResourceCountUpTo, resource=handle, limit=100, T=tf.int32)
    assert path == DIRECT
    want = count(tf.raw_ops, tf.int64)
    assert want.kind is tf.errors.InvalidArgumentError
    assert_same(count(raw_ops, tf.int64), want)


def test_tracebacks_are_the_same_as_without_fastops():
    def wrong():
        for call in (
            lambda: X + tf.ones([3, 5]),
            lambda: X + None,
            lambda: tf.reshape(X, [7]),
            lambda: tf.math.tanh("a"),
            lambda: tf.raw_ops.AddV2(x=X, y="a"),
        ):
            try:
                call()
            except Exception:
                yield traceback.format_exc()

    want = list(wrong())
    with fastops.accelerated():
        for _ in range(2):
            assert list(wrong()) == want
