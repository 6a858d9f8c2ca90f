"""Signatures: the arguments that each policy accepts, and the text that describes a call."""

import collections

import numpy as np
import pytest
import tensorflow as tf

import fastops
from fastops._specialize.signatures import describe

pytestmark = pytest.mark.quick

X = tf.ones([2, 3])
Y = tf.constant([True])


def recorded(*args, **kwargs):
    return describe("recordings", *args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "()"),
        ((X,), {"training": True, "axis": -1}, "(float32[2,3], training=True, axis=-1)"),
        ((None, False, 0.5, 2.0, "it's"), {}, """(None, False, 0.5, 2.0, "it's")"""),
        ((float("inf"), float("nan"), -0.0, 2**62), {}, f"(inf, nan, -0.0, {2**62})"),
        (([X, (1,), ()], {"a": Y}), {}, "([float32[2,3], (1,), ()], {'a': bool[1]})"),
        ((tf.float32, tf.string), {}, "(tf.float32, tf.string)"),
        ((), {"naïve": "ü"}, "(naïve='ü')"),
    ],
)
def test_a_call_is_written_as_in_a_program(args, kwargs, text):
    assert recorded(*args, **kwargs) == text
    assert describe("traces", *args, **kwargs) == text
    assert describe("methods", *args, **kwargs) == text


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16", "int64", "uint8", "complex64"])
def test_dtypes_have_their_names_in_python(dtype):
    assert recorded(tf.zeros([], dtype)) == f"({dtype}[])"
    assert recorded(tf.as_dtype(dtype)) == f"(tf.{dtype})"


@pytest.mark.parametrize("kind", [bool, int, float, complex, str, np.float32, np.int64, np.uint8])
def test_classes_of_scalars_are_opened_for_recordings_only(kind):
    name = f"numpy.{kind.__name__}" if issubclass(kind, np.generic) else kind.__name__
    assert recorded(X, dtype=kind) == f"(float32[2,3], dtype={name})"
    assert describe("methods", [kind]) == recorded([kind]) == f"([{name}])"


class Number(float):
    pass


@pytest.mark.parametrize("kind", [Number, list, tf.Module, type, collections.OrderedDict])
def test_other_classes_are_refused(kind):
    assert recorded(kind) is None


def test_a_tensor_that_comes_twice_is_named():
    assert recorded(X, Y, X) == "(float32[2,3], bool[1], float32[2,3] (same as leaf 0))"
    assert describe("traces", X, X) == "(float32[2,3], float32[2,3])"


def test_variables_are_leaves():
    variable, frozen = tf.Variable(X), tf.Variable(1, trainable=False)
    text = "(<variable float32[2,3]>, <untrainable variable int32[]>)"
    for policy in ("traces", "recordings", "methods"):
        assert describe(policy, variable, frozen) == text
        assert describe(policy, frozen, frozen).endswith("int32[]> (same as leaf 0))")


def test_shapes_and_composites_are_opened_for_recordings_only():
    shape, unknown = tf.TensorShape([2, None]), tf.TensorShape(None)
    assert recorded(shape, unknown) == "(TensorShape([2, None]), TensorShape(None))"
    sparse = tf.sparse.from_dense([[1.0, 0.0]])
    text = recorded(sparse, sparse)
    assert text.startswith("(SparseTensor(_indices=int64[1,2], _values=float32[1]")
    assert text.endswith("), <the same SparseTensor>)")
    for value in (shape, sparse):
        assert describe("traces", value) is None
        assert describe("methods", value) is not None


def test_known_objects_are_named_by_their_class():
    with fastops.accelerated():
        operator = tf.linalg.LinearOperatorFullMatrix(tf.eye(2))
        assert recorded(operator) == "(<LinearOperatorFullMatrix object>)"
        other = tf.linalg.LinearOperatorDiag([1.0])
        text = "(<LinearOperatorDiag object>, k=<the same LinearOperatorDiag object>)"
        assert recorded(other, k=other) == text
        assert describe("traces", operator) is None


def test_arrays_and_iterators_are_leaves_of_traces_only():
    array, iterator = np.ones([2, 3], np.float32), iter(tf.data.Dataset.range(3))
    assert describe("traces", array, np.int64(3)) == "(float32[2,3], int64[])"
    assert describe("traces", iterator).startswith("(<iterator of TensorSpec(shape=(), dtype=tf.")
    for value in (array, np.int64(3), iterator):
        assert recorded(value) is None
        assert describe("methods", value) is None


def test_methods_take_one_class_by_identity():
    one, other = tf.Module(), tf.Module()
    text = describe("methods", one)
    assert text.startswith("(<object at 0x")
    assert text == describe("methods", one) != describe("methods", other)
    assert recorded(one) is None


def test_traces_take_objects_by_identity():
    one, other = tf.Module(), tf.Module()
    text = describe("traces", one)
    assert text.startswith("(<object at 0x")
    assert text == describe("traces", one) != describe("traces", other)
    assert describe("traces", [one, (other,)]).count("<object at 0x") == 2


def test_namedtuples_are_tuples_of_their_class():
    pair = collections.namedtuple("Pair", ["first", "second"])
    assert describe("traces", pair(X, 1)) == "(<namedtuple (float32[2,3], 1)>)"
    assert recorded(pair(X, 1)) is None


def test_methods_see_the_attributes_of_tensors():
    marked, masked = tf.ones([2]), tf.ones([3])
    marked._keras_logits = True
    masked._keras_mask = Y
    masked._other = None
    assert describe("methods", marked) == "(float32[2] {_keras_logits=True})"
    assert describe("methods", masked) == "(float32[3] {_keras_mask=bool[1]})"
    assert recorded(marked, masked) == "(float32[2], float32[3])"
    marked._keras_logits = "another"
    assert describe("methods", marked) is None


def test_a_flag_and_a_tensor_after_it_are_no_tensor_attribute():
    """A tensor with a flag, then another tensor: not the same as a tensor with that attribute."""
    flagged, holding = tf.ones([2]), tf.ones([2])
    flagged._mask, holding._mask = True, Y
    assert describe("methods", flagged, Y) == "(float32[2] {_mask=True}, bool[1])"
    assert describe("methods", holding) == "(float32[2] {_mask=bool[1]})"


@pytest.mark.parametrize("value", [2**80, 1j, b"bytes", {1: 2}, object(), tf.ones, "\ud800", {1}])
def test_other_values_are_refused(value):
    for policy in ("traces", "recordings", "methods"):
        assert describe(policy, value) is None
        assert describe(policy, [value]) is None
        assert describe(policy, named=value) is None


def test_depth_is_limited():
    nested = X
    for _ in range(32):
        nested = [nested]
    assert recorded(nested).count("[") == 33
    assert recorded([nested]) is None
