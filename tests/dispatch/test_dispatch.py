"""Calls of ops: path, key, inputs and outputs; the cache, the settings, and the counters."""

import copy
import gc
import inspect
import itertools
import math
import pickle
import threading
from contextlib import suppress

import numpy as np
import pytest
import tensorflow as tf
from support import (
    DIRECT,
    FIRST,
    Failure,
    assert_same,
    assert_same_outcome,
    check,
    failure,
    floats,
    outcome,
    took,
)
from tensorflow.python.util import dispatch

import fastops
from fastops import ops, raw_ops
from fastops._core import reasons, threads
from fastops._reports import counters

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]


A = tf.constant([1.0, 2.0, 3.0])
B = tf.constant([10.0, 20.0, 30.0])
SHAPE = tf.constant([2])


# ---------------------------------------------------------------------------------------------
# Which path
# ---------------------------------------------------------------------------------------------


def test_tensorflow_makes_the_first_call_and_then_the_kernel_runs():
    paths = [took(ops.add_v2, x=A, y=B)[1] for _ in range(3)]
    assert paths == [FIRST, DIRECT, DIRECT]


def test_different_dtypes_are_different_keys():
    for dtype in (tf.float32, tf.float64, tf.int32, tf.float32):
        x = tf.cast(A, dtype)
        check("AddV2", x=x, y=x, first=DIRECT if took(ops.add_v2, x=x, y=x) else None)


def test_different_shapes_share_a_kernel():
    took(ops.add_v2, x=A, y=B)
    for shape in ((), (0,), (3, 1), (2, 3, 4)):
        x = tf.constant(floats(*shape))
        result, path = took(ops.add_v2, x=x, y=x)
        assert path == DIRECT
        assert_same(result, tf.raw_ops.AddV2(x=x, y=x))


def test_path_is_independent_of_how_the_arguments_are_written():
    arguments = {"a": tf.ones([2, 3]), "b": tf.ones([2, 4]), "transpose_a": True}
    want = tf.raw_ops.MatMul(**arguments)
    took(ops.mat_mul, **arguments)
    for order in itertools.permutations(arguments):
        assert_same(raw_ops.MatMul(**{name: arguments[name] for name in order}), want)
    a, b = arguments["a"], arguments["b"]
    assert_same(ops.mat_mul(b=b, transpose_a=True, a=a), want)
    assert_same(ops.mat_mul(**{"".join(["a"]): a, "".join(["transpose", "_a"]): True}, b=b), want)
    assert fastops.stats().direct == 8
    assert fastops.stats().reasons == {"first_call": 1}


def test_more_call_sites_than_are_remembered():
    """An op remembers the keywords of a few call sites, and looks up those of others again."""
    x = tf.constant([[1.0, 2.0]])
    every = {"a": x, "b": x, "transpose_a": False, "transpose_b": True, "grad_a": False}
    for _ in range(3):
        for order in list(itertools.permutations(every))[::7]:
            result = ops.mat_mul(**{name: every[name] for name in order})
            assert result.numpy() == [[5.0]]
    assert fastops.stats().reasons == {"first_call": 1}


@pytest.mark.parametrize("name", [None, "sum", "ünïcode", "not a valid/name!"])
def test_name_is_accepted_and_not_part_of_the_key(name):
    took(ops.add_v2, x=A, y=B)
    result, path = took(ops.add_v2, x=A, y=B, name=name)
    assert path == DIRECT
    assert_same(result, A + B)


def test_an_op_is_one_object():
    assert ops.add_v2 is raw_ops.AddV2 is fastops.gen.math_ops.add_v2
    assert copy.copy(ops.add_v2) is copy.deepcopy(ops.add_v2) is ops.add_v2
    assert pickle.loads(pickle.dumps(ops.add_v2)) is ops.add_v2
    assert callable(ops.add_v2)
    assert inspect.isroutine(ops.add_v2)


def test_an_op_as_a_class_attribute_does_not_bind():
    class Layer:
        add = ops.add_v2

    assert_same(Layer().add(x=A, y=B), A + B)


# ---------------------------------------------------------------------------------------------
# Attribute values as keys
# ---------------------------------------------------------------------------------------------


def test_lists_are_compared_by_value_even_when_mutated_between_calls():
    strides = [1, 2, 2, 1]
    x, w = tf.constant(floats(1, 8, 8, 2)), tf.constant(floats(3, 3, 2, 4))

    def call(module):
        return module.Conv2D(input=x, filter=w, strides=strides, padding="SAME")

    for step in (2, 1, 3, 2):
        strides[1] = strides[2] = step
        want = call(tf.raw_ops)
        assert_same(call(raw_ops), want)
        assert_same(call(raw_ops), want)
    assert len(counters.cached_keys(ops.conv2d)) == 3
    assert fastops.stats().direct == 5


@pytest.mark.parametrize("outer", [list, tuple])
def test_nested_lists_are_compared_by_value(outer):
    """A tuple is immutable, but the lists in it can change."""
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1, 2]))
    example = tf.train.Example(features=tf.train.Features(feature={"a": feature}))
    shape = [2]
    shapes = outer([shape])

    def call(module):
        return module.ParseSingleExample(
            serialized=example.SerializeToString(),
            dense_defaults=[tf.constant([], tf.float32)],
            num_sparse=0,
            sparse_keys=[],
            dense_keys=["a"],
            sparse_types=[],
            dense_shapes=shapes,
        )

    for dims in ([2], [1, 2], [2, 1]):
        shape[:] = dims
        for _ in range(2):
            assert_same(call(raw_ops), call(tf.raw_ops))


EQUAL_BUT_DIFFERENT = {
    "True and 1": ("Cumsum", {"x": A, "axis": 0}, "exclusive", [True, 1, False, 0]),
    "int and float": ("LeakyRelu", {"features": -A}, "alpha", [1, 1.0, 2, 2.0]),
    "signed zeros": ("LeakyRelu", {"features": -A}, "alpha", [0.0, -0.0]),
    "NaN": ("LeakyRelu", {"features": -A}, "alpha", [math.nan, -math.nan, 1.0, math.nan]),
    "infinities": ("LeakyRelu", {"features": -A}, "alpha", [math.inf, -math.inf]),
    "NumPy scalars": ("LeakyRelu", {"features": -A}, "alpha", [np.float32(0.5), np.float64(0.5)]),
    "dtypes": (
        "Cast",
        {"x": A},
        "DstT",
        [tf.int32, np.int32, "int32", np.dtype("int32"), 3, tf.int64, np.int64, "half", bool, int],
    ),
    "lists and tuples": (
        "Squeeze",
        {"input": tf.ones([1, 2, 1])},
        "axis",
        [[], (), [0], (0,), [0, 2], (0, 2), [2, 0], [-1], None, [True], 0],
    ),
    "None is the default": ("Softmax", {"logits": A}, "name", [None, ""]),
    "strings": (
        "DataFormatVecPermute",
        {"x": tf.constant([1, 2, 3, 4])},
        "src_format",
        ["NHWC", b"NHWC", "NCHW", None],
    ),
    "shapes": (
        "EnsureShape",
        {"input": tf.ones([2, 3])},
        "shape",
        [
            [2, 3],
            (2, 3),
            tf.TensorShape([2, 3]),
            tf.TensorShape([None, 3]),
            [None, 3],
            [-1, 3],
            tf.TensorShape(None),
            None,
            tf.TensorShape([3, 2]),
            [2, 4],
            np.array([2, 3]),
        ],
    ),
}


@pytest.mark.parametrize("case", EQUAL_BUT_DIFFERENT)
def test_values_that_compare_equal_are_kept_apart_where_they_differ(case):
    op_name, inputs, attr, values = EQUAL_BUT_DIFFERENT[case]
    for value in values * 2:
        assert_same_outcome(op_name, **inputs, **{attr: value})


def test_constant_attributes_hit_the_cache():
    for value in (0.0, -0.0, math.nan, True, 3):
        took(ops.leaky_relu, features=A, alpha=value)
        _, path = took(ops.leaky_relu, features=A, alpha=copy.copy(value))
        assert path == (FIRST if value is True else DIRECT) or "attr_value" in path


def test_an_attribute_may_be_given_as_its_default():
    x = tf.ones([2, 2])
    for arguments in ({}, {"transpose_a": False}, {"transpose_a": None}, {"transpose_a": True}):
        assert_same_outcome("MatMul", a=x, b=x, **arguments)


def test_a_value_that_cannot_be_compared_goes_through_tensorflow():
    class Four(int):
        pass

    result, path = took(ops.squeeze, input=tf.ones([1, 2]), axis=[Four(0)])
    assert path == "tensorflow:attr_value"
    assert result.shape == [2]


# ---------------------------------------------------------------------------------------------
# Inputs
# ---------------------------------------------------------------------------------------------

OPERANDS = {
    "int": 2,
    "large int": 2**40,
    "huge int": 2**70,
    "float": 1.5,
    "bool": True,
    "complex": 2j,
    "str": "a",
    "bytes": b"a",
    "None": None,
    "list": [1, 2, 3],
    "floats": (1.0, 2.0, 3.0),
    "nested": [[1.0], [2.0]],
    "ragged": [[1.0], [2.0, 3.0]],
    "tensors": [tf.constant(1.0), tf.constant(2.0)],
    "np.float32": np.float32(2),
    "np.float64": np.float64(2),
    "np.int32": np.int32(2),
    "float32 array": np.array([1, 2, 3], np.float32),
    "float64 array": np.array([1, 2, 3], np.float64),
    "int64 array": np.array([1, 2, 3]),
    "0-d array": np.array(2.0, np.float32),
    "string array": np.array([b"a", b"b", b"c"]),
    "float32": tf.constant([1.0, 2.0, 3.0]),
    "float64": tf.constant([1.0, 2.0, 3.0], tf.float64),
    "int32": tf.constant([1, 2, 3]),
    "int64": tf.constant([1, 2, 3], tf.int64),
    "string": tf.constant(["a", "b", "c"]),
    "float32 variable": tf.Variable([1.0, 2.0, 3.0]),
    "int64 variable": tf.Variable([1, 2, 3], dtype=tf.int64),
    "sparse": tf.sparse.from_dense([1.0, 0.0, 2.0]),
    "ragged tensor": tf.ragged.constant([[1.0], [2.0, 3.0]]),
    "dtype": tf.float32,
    "dict": {"a": 1.0},
}


@pytest.mark.parametrize("x", OPERANDS)
def test_operands_convert_as_tensorflow_converts_them(x):
    """The dtype of a number follows from the other operand, for all pairs in both orders."""
    for y in OPERANDS:
        assert_same_outcome("AddV2", x=OPERANDS[x], y=OPERANDS[y])


@pytest.mark.parametrize("other", ["float32", "int64", "float64", "float32 variable"])
def test_numbers_take_the_dtype_of_a_tensor_at_any_position(other):
    tensor = OPERANDS[other]
    for number in (2, 0, True, 1.5, -0.0):
        for arguments in (
            {"t": number, "clip_value_min": tensor, "clip_value_max": number},
            {"t": number, "clip_value_min": number, "clip_value_max": tensor},
            {"t": tensor, "clip_value_min": number, "clip_value_max": number},
            {"t": number, "clip_value_min": number, "clip_value_max": number},
        ):
            assert_same_outcome("ClipByValue", **arguments)
    assert fastops.stats().direct > 0


def test_numbers_and_arrays_run_direct():
    array = np.array([1.0, 2.0, 3.0], np.float32)
    for arguments in (
        {"x": A, "y": 2},
        {"x": 2, "y": A},
        {"x": array, "y": A},
        {"x": array, "y": array},
        {"x": 1.5, "y": array},
        {"x": 1.5, "y": 2.5},
    ):
        check("AddV2", first=took(ops.add_v2, **arguments) and DIRECT, **arguments)


LISTS_OF_NUMBERS = (
    [1, 2],
    (1, 2),
    [1.0, 2.0],
    [],
    [1, 2.0],
    [True, False],
    [[1, 2], [3, 4]],
    [[1], [2, 3]],
)
LISTS_OF_NUMBERS += (
    [2**31, 1],
    [2**63, 1],
    [-1, 2],
    [300, 1],
    [1e300, 1.0],
    [None],
    [[]],
    ["a"],
    [1j, 2],
)


@pytest.mark.parametrize("value", LISTS_OF_NUMBERS, ids=str)
def test_lists_of_numbers_convert_as_tensorflow_converts_them(value):
    variable = tf.Variable([1.0, 2.0])
    for dtype in ("float32", "float64", "int32", "int64", "uint8", "uint64", "complex64", "bool"):
        tensor = tf.cast(tf.constant([1, 2]), dtype)
        assert_same_outcome("AddV2", x=tensor, y=value)
        assert_same_outcome("AddV2", x=value, y=tensor)
        assert_same_outcome("SelectV2", condition=tf.constant([True, False]), t=value, e=tensor)
        assert_same_outcome("SelectV2", condition=value, t=tensor, e=tensor)
        assert_same_outcome("Cast", x=value, DstT=tf.as_dtype(dtype))
        assert_same_outcome("Fill", dims=[2], value=tensor[0])
    assert_same_outcome("AddV2", x=value, y=value)
    assert_same_outcome("AddV2", x=value, y=variable)
    assert_same_outcome("AddV2", x=variable, y=value)
    assert_same_outcome("AddV2", x=value, y=2.0)
    assert_same_outcome("AddV2", x=value, y=np.ones(2, np.float32))
    assert_same_outcome("Neg", x=value)
    assert_same_outcome("LeakyRelu", features=value)
    assert_same_outcome("Sum", input=value, axis=0)
    assert_same_outcome("Sum", input=value, axis=np.array(0))
    assert_same_outcome("Sum", input=variable, axis=value)
    assert_same_outcome("Reshape", tensor=variable, shape=value)
    assert_same_outcome("Reshape", tensor=value, shape=[1, 2])
    assert_same_outcome("SplitV", value=A, size_splits=value, axis=0, num_split=2)
    assert_same_outcome("GatherV2", params=A, indices=value, axis=0)
    assert_same_outcome("GatherV2", params=value, indices=value, axis=0)
    if 2**31 not in value:  # a number that needs twice as many bytes
        assert_same_outcome("Pad", input=A, paddings=[value])
    assert_same_outcome("ConcatV2", values=[A, A], axis=value)
    assert_same_outcome("Range", start=value, limit=5, delta=1)
    assert_same_outcome("OneHot", indices=value, depth=2, on_value=1.0, off_value=0.0)
    assert_same_outcome("ClipByValue", t=A, clip_value_min=value, clip_value_max=3.0)
    assert_same_outcome("StridedSlice", input=A, begin=value, end=value, strides=value)


def test_lists_of_numbers_run_direct():
    x = tf.ones([2, 3])
    for op_name, arguments in (
        ("Reshape", {"tensor": x, "shape": [6]}),
        ("Sum", {"input": x, "axis": (0, 1)}),
        ("Pad", {"input": x, "paddings": [[1, 1], [0, 2]]}),
        ("AddV2", {"x": x, "y": [1, 2, 3]}),
        ("Neg", {"x": [[1.0, 2.0], [3.0, 4.0]]}),
        ("Transpose", {"x": x, "perm": [1, 0]}),
    ):
        check(
            op_name,
            first=took(getattr(fastops.raw_ops, op_name), **arguments) and DIRECT,
            **arguments,
        )


def test_a_changed_list_is_a_new_input():
    x, shape = tf.ones([2, 3]), [6]
    for _ in range(3):
        assert ops.reshape(tensor=x, shape=shape).shape == (6,)
    shape[:] = [3, 2]
    assert ops.reshape(tensor=x, shape=shape).shape == (3, 2)


def test_caches_are_not_reported_as_leaks():
    """TensorFlow's own tests search the garbage collector's objects for leftover tensors."""

    def tensors():
        return sum(type(value) is type(x) for value in gc.get_objects())

    x = tf.ones([2, 3, 5])
    gc.collect()  # collect what other tests have left
    before = tensors()
    for _ in range(3):
        assert ops.reshape(tensor=x, shape=[5, 1, 6]).shape == (5, 1, 6)
        assert ops.transpose(x=x, perm=[2, 0, 1]).shape == (5, 2, 3)
    gc.collect()
    assert tensors() == before
    fastops.clear_cache()
    gc.collect()
    assert ops.reshape(tensor=x, shape=[5, 1, 6]).shape == (5, 1, 6)


ARRAYS = {
    "not contiguous": np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "reversed": np.arange(5.0)[::-1],
    "big-endian": np.arange(3, dtype=">f4"),
    "unaligned": np.frombuffer(b"x" + np.arange(3, dtype=np.float32).tobytes(), np.uint8)[1:].view(
        np.float32
    ),
    "0-d": np.array(3.5),
    "empty": np.zeros((0, 3), np.int32),
    "bool": np.array([True, False]),
    "half": np.array([1.5, -0.0], np.float16),
    "bfloat16": np.array([1.5, -0.0], tf.bfloat16.as_numpy_dtype),
    "complex": np.array([1 + 2j], np.complex64),
    "uint64": np.array([2**64 - 1], np.uint64),
    "bytes": np.array([b"a", b"bcd"]),
    "unicode": np.array(["a", "äöü"]),
    "objects": np.array([b"a", "b", b"\x00\xff"], object),
    "object numbers": np.array([1, 2.5], object),
    "mixed objects": np.array([1, None], object),
    "datetime": np.array(["2024-01-01"], "datetime64[D]"),
    "structured": np.zeros(2, [("a", "i4")]),
    "longdouble": np.array([1.0], np.longdouble),
    "read-only": np.broadcast_to(np.float32(2), (2, 2)),
    "subclass": np.ma.masked_array([1.0, 2.0], [True, False]),
    "32 dimensions": np.zeros((1,) * 32, np.float32),
}


@pytest.mark.parametrize("array", ARRAYS)
def test_arrays_convert_as_tensorflow_converts_them(array):
    for op_name, argument in (("Identity", "input"), ("Neg", "x"), ("Shape", "input")):
        assert_same_outcome(op_name, **{argument: ARRAYS[array]})
    assert_same_outcome("Select", condition=True, x=ARRAYS[array], y=ARRAYS[array])


def test_an_array_that_changes_later_does_not_change_what_was_computed():
    array = np.array([1.0, 2.0], np.float32)
    for _ in range(3):
        doubled = ops.add_v2(x=array, y=array)
        array += 1
    assert doubled.numpy().tolist() == [6.0, 8.0]


@pytest.mark.parametrize("trainable", [True, False])
def test_variables_run_direct(trainable):
    variable = tf.Variable([1.0, 2.0, 3.0], trainable=trainable)
    check("AddV2", x=variable, y=A)
    check("AddV2", x=variable, y=variable, first=DIRECT)
    check("AddV2", x=2, y=variable, first=DIRECT)
    check("AddN", inputs=[A, variable, A])
    check("ConcatV2", values=(variable, A), axis=0)
    check("ConcatV2", values=(variable, variable), axis=0, first=DIRECT)
    check("AddN", inputs=(variable,), first=DIRECT)


def test_variables_in_every_input():
    """A batch normalisation takes five variables."""
    image = tf.Variable(floats(2, 3, 3, 4))
    scale, offset, mean, variance = (tf.Variable(floats(4, seed=i) ** 2) for i in range(4))
    arguments = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    # Needed in training: without it, oneDNN leaves outputs unset.
    arguments |= {"exponential_avg_factor": 0.5}
    check("FusedBatchNormV3", x=image, **arguments)
    image.assign_add(tf.ones_like(image))
    check("FusedBatchNormV3", x=image, first=DIRECT, **arguments)
    with fastops.options(path="capi"):
        check("FusedBatchNormV3", "capi:options", "capi:options", x=image,
              **arguments)  # fmt: skip
    check("SelectV2", condition=tf.Variable(True), t=scale, e=offset)
    check("AddV2", x=scale, y=tf.Variable(floats(4, dtype=np.float64)[0], dtype=tf.float32))
    for y in (tf.Variable([1, 2, 3, 4]), tf.Variable(floats(3)), tf.Variable("a")):
        assert_same_outcome("AddV2", x=scale, y=y)
        assert_same_outcome("AddV2", x=y, y=scale)


def test_results_that_alias_a_variable_are_not_changed_with_it():
    variable = tf.Variable(floats(1000))
    before = variable.numpy().copy()
    for _ in range(3):
        variable.assign(before)
        aliases = [
            ops.identity(input=variable),
            ops.reshape(tensor=variable, shape=np.array([10, 100], np.int32)),
            ops.read_variable_op(resource=variable.handle, dtype=tf.float32),
        ]
        ops.assign_add_variable_op(resource=variable.handle, value=tf.ones([1000]))
        ops.resource_scatter_add(
            resource=variable.handle, indices=tf.constant([0]), updates=tf.constant([5.0])
        )
        for alias in aliases:
            assert alias.numpy().ravel().tolist() == before.tolist()
        assert variable.numpy()[0] != before[0]
    relu = tf.Variable([-1.0, 2.0])
    for _ in range(3):  # kernels that overwrite an input with no other reference
        ops.relu(features=relu)
        ops.add_v2(x=relu, y=relu)
        ops.neg(x=relu)
    assert relu.numpy().tolist() == [-1.0, 2.0]


@pytest.mark.parametrize("trainable", [True, False])
def test_a_variable_that_copies_on_read(trainable):
    variable = tf.Variable([1.0, 2.0], trainable=trainable)
    handle = variable.handle
    for _ in range(3):  # after a sparse read, TensorFlow copies on every read
        ops.resource_scatter_add(
            resource=handle, indices=tf.constant([0]), updates=tf.constant([1.0])
        )
        ops.neg(x=variable)
        ops.add_v2(x=variable, y=variable)
        ops.relu(features=variable)
    assert variable.numpy().tolist() == [4.0, 2.0]


def test_a_variable_is_read_when_it_is_used():
    variable = tf.Variable([1.0, 2.0])
    seen = []
    for _ in range(3):
        seen.append(ops.identity(input=variable))
        ops.assign_add_variable_op(resource=variable.handle, value=tf.constant([1.0, 1.0]))
    assert [value.numpy()[0] for value in seen] == [1.0, 2.0, 3.0]
    assert variable.numpy().tolist() == [4.0, 5.0]


def test_wrong_uses_of_variables_fail_as_in_tensorflow():
    uninitialised = tf.Variable([1.0])
    uninitialised._handle = tf.raw_ops.VarHandleOp(
        dtype=tf.float32, shape=[1], shared_name="used by no other test"
    )
    took(ops.neg, x=tf.Variable([1.0]))
    result = assert_same_outcome("Neg", x=uninitialised)
    assert result.kind is tf.errors.FailedPreconditionError
    result = assert_same_outcome("AddN", inputs=[A, uninitialised])
    assert result.kind is tf.errors.FailedPreconditionError
    deleted = tf.Variable([1.0])
    handle = deleted.handle
    del deleted  # the handle keeps the value alive
    assert_same_outcome("ReadVariableOp", resource=handle, dtype=tf.float32)
    tf.raw_ops.DestroyResourceOp(resource=handle)
    assert_same_outcome("ReadVariableOp", resource=handle, dtype=tf.float32)
    live = tf.Variable([1.0, 2.0])
    assert_same_outcome("ReadVariableOp", resource=live.handle, dtype=tf.float32)
    wrong = assert_same_outcome("ReadVariableOp", resource=live.handle, dtype=tf.int32)
    assert isinstance(wrong, Failure)
    value = tf.constant([1.0])
    wrong = assert_same_outcome("AssignAddVariableOp", resource=live.handle, value=value)
    assert wrong.kind is tf.errors.InvalidArgumentError
    assert live.numpy().tolist() == [1.0, 2.0]


class CompositeLike:
    """An object that is converted by a function in TensorFlow's registry."""


tf.register_tensor_conversion_function(
    CompositeLike, lambda value, dtype=None, name=None, as_ref=False: tf.constant(7.0)
)


def test_registered_conversions_fall_back():
    result, path = took(ops.neg, x=CompositeLike())
    assert path == "tensorflow:input_type"
    assert result.numpy() == -7.0


def test_objects_with_array_protocol_fall_back():
    class Arrayish:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0], np.float32)

    assert_same_outcome("Neg", x=Arrayish())


def test_dispatchers_see_the_call():
    class Symbol:
        pass

    class Dispatcher(dispatch.GlobalOpDispatcher):
        def handle(self, op, args, kwargs):
            if isinstance(kwargs.get("x"), Symbol):
                return "caught"
            return self.NOT_SUPPORTED

    registered = list(dispatch._GLOBAL_DISPATCHERS)
    Dispatcher().register()
    try:
        took(ops.neg, x=A)
        result, path = took(ops.neg, x=Symbol())
        assert result == tf.raw_ops.Neg(x=Symbol()) == "caught"
        assert path == "tensorflow:input_type"
    finally:
        dispatch._GLOBAL_DISPATCHERS[:] = registered


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 100, 1000])
@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_any_length(length, kind):
    values = kind(tf.constant([float(i), -float(i)]) for i in range(length))
    check("Pack", values=values, axis=1)
    check("AddN", inputs=values)
    check("ConcatV2", values=values, axis=0) if length > 1 else None


def test_lists_of_different_lengths_are_different_keys():
    for length in (2, 3, 2, 3):
        values = [tf.constant(float(i)) for i in range(length)]
        assert_same_outcome("Pack", values=values, axis=0)
    assert len(counters.cached_keys(ops.pack)) == 2


def test_empty_lists_fall_back():
    assert_same_outcome("Pack", values=[], axis=0)
    assert_same_outcome("AddN", inputs=())
    assert_same_outcome("IdentityN", input=[])
    assert fastops.stats().direct == 0


LISTS = {
    "numbers": [1.0, 2.0],
    "number and tensor": [1.0, tf.constant(2.0)],
    "tensor and number": [tf.constant(2.0), 1],
    "arrays": [np.float32([1, 2]), np.float32([3, 4])],
    "other dtypes": [tf.constant(1.0), tf.constant(1)],
    "variable and number": [tf.Variable(1.0), 2],
    "variables": [tf.Variable(1.0), tf.Variable(2.0)],
    "variables of other dtypes": [tf.Variable(1.0), tf.Variable(2)],
    "None": [tf.constant(1.0), None],
    "tensor": tf.constant([1.0, 2.0]),
    "array": np.float32([1, 2]),
    "set": {1.0},
    "string": "ab",
    "other shapes": [tf.constant([1.0]), tf.constant([1.0, 2.0])],
}


@pytest.mark.parametrize("values", LISTS)
def test_lists_convert_as_tensorflow_converts_them(values):
    for op_name, argument in (("Pack", "values"), ("AddN", "inputs"), ("IdentityN", "input")):
        assert_same_outcome(op_name, **{argument: LISTS[values]})


def test_lists_and_numbers_share_their_dtype():
    for axis in (0, np.int64(0), tf.constant(0), tf.constant(0, tf.int64), 0.0, "x"):
        assert_same_outcome("ConcatV2", values=[A, B], axis=axis)


def test_heterogeneous_lists():
    want = check("IdentityN", input=[A, tf.constant([1, 2]), tf.constant("a")])
    assert [value.dtype for value in want] == [tf.float32, tf.int32, tf.string]
    check("IdentityN", input=[tf.constant("a"), A, tf.constant([1, 2])])


def test_several_lists_in_one_call():
    check(
        "DynamicStitch",
        indices=[tf.constant([0, 2]), tf.constant([1])],
        data=[tf.constant([1.0, 3.0]), tf.constant([2.0])],
    )
    check(
        "SparseConcat",
        indices=[tf.constant([[0, 0]], tf.int64)] * 2,
        values=[A[:1]] * 2,
        shapes=[tf.constant([1, 2], tf.int64)] * 2,
        concat_dim=1,
    )


def test_many_single_inputs():
    """BlockLSTMGrad takes 18 tensors, more than most ops, each as its own parameter."""
    steps, batch, features, cells = 3, 2, 4, 5
    arguments = {
        "seq_len_max": tf.constant(steps, tf.int64),
        "x": tf.constant(floats(steps, batch, features)),
        "cs_prev": tf.constant(floats(batch, cells)),
        "h_prev": tf.constant(floats(batch, cells, seed=1)),
        "w": tf.constant(floats(features + cells, 4 * cells)),
        "wci": tf.constant(floats(cells)),
        "wcf": tf.constant(floats(cells, seed=1)),
        "wco": tf.constant(floats(cells, seed=2)),
        "b": tf.constant(floats(4 * cells)),
    }
    forward = check("BlockLSTM", **arguments)
    backward = {
        **arguments,
        **forward._asdict(),
        "cs_grad": tf.constant(floats(steps, batch, cells)),
        "h_grad": tf.constant(floats(steps, batch, cells, seed=1)),
        "use_peephole": True,
    }
    check("BlockLSTMGrad", **backward)
    with fastops.options(path="capi"):
        check("BlockLSTMGrad", "capi:options", "capi:options", **backward)


# ---------------------------------------------------------------------------------------------
# Outputs
# ---------------------------------------------------------------------------------------------


def test_no_output():
    variable = tf.Variable(1.0)
    for _ in range(2):
        result, path = took(ops.assign_variable_op, resource=variable.handle, value=2.0)
        assert result is None
    assert path == DIRECT
    assert tf.raw_ops.AssignVariableOp(resource=variable.handle, value=3.0) is None


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 30])
def test_lists_of_outputs(count):
    want = check("Unpack", value=tf.reshape(tf.range(count * 2), [count, 2]), num=count, axis=0)
    assert type(want) is list
    assert len(want) == count


NAMEDTUPLES = {
    "TopKV2": {"input": A, "k": 2},
    "Unique": {"x": tf.constant([1, 1, 2])},
    "Svd": {"input": tf.constant([[1.0, 2.0], [3.0, 4.0]])},
    "FusedBatchNormV3": {
        "x": tf.constant(floats(2, 3, 3, 4)),
        **{name: tf.ones([4]) for name in ("scale", "offset", "mean", "variance")},
        # Needed in training: without it, oneDNN leaves outputs unset.
        "exponential_avg_factor": 0.5,
    },
    "SoftmaxCrossEntropyWithLogits": {"features": tf.ones([2, 3]), "labels": tf.ones([2, 3])},
    "BroadcastGradientArgs": {"s0": tf.constant([2, 1]), "s1": tf.constant([3])},
    "SparseSplit": {
        "split_dim": tf.constant(0, tf.int64),
        "indices": tf.constant([[0, 0], [1, 1]], tf.int64),
        "values": A[:2],
        "shape": tf.constant([2, 2], tf.int64),
        "num_split": 2,
    },
}


@pytest.mark.parametrize("op_name", NAMEDTUPLES)
def test_several_outputs_are_tensorflows_own_namedtuple(op_name):
    want = check(op_name, **NAMEDTUPLES[op_name])
    got = getattr(raw_ops, op_name)(**NAMEDTUPLES[op_name])
    assert type(got) is type(want)
    assert got._fields == want._fields


def test_results_are_ordinary_eager_tensors():
    took(ops.add_v2, x=A, y=B)
    result, path = took(ops.add_v2, x=A, y=B)
    assert path == DIRECT
    assert type(result) is type(A)
    assert isinstance(result, tf.Tensor)
    assert (result + 1).numpy().tolist() == [12.0, 23.0, 34.0]
    assert np.asarray(memoryview(result)).tolist() == [11.0, 22.0, 33.0]
    assert tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(result)).shape == [3]
    assert result._handle_data is None
    assert copy.deepcopy(result).numpy().tolist() == result.numpy().tolist()


def test_results_never_share_memory_that_a_later_call_writes():
    """TensorFlow reuses an input's buffer for an output only if it has no other reference."""
    x = tf.constant([1.0, 2.0, 3.0])
    for _ in range(4):
        ops.add_v2(x=x, y=x)
        ops.neg(x=x)
        ops.relu(features=x)
        ops.reshape(tensor=x, shape=[3, 1])
        ops.tensor_scatter_update(tensor=x, indices=[[0]], updates=[9.0])
    assert x.numpy().tolist() == [1.0, 2.0, 3.0]
    alias = ops.identity(input=x)
    alias = ops.identity(input=x)
    del x
    assert ops.neg(x=alias).numpy().tolist() == [-1.0, -2.0, -3.0]
    assert alias.numpy().tolist() == [1.0, 2.0, 3.0]


# ---------------------------------------------------------------------------------------------
# The cache
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_cache():
    before = fastops.cache_info()["entries_per_op"]
    fastops.set_cache_size(3)
    yield 3
    fastops.set_cache_size(before)


def squeeze(slope):
    return took(ops.leaky_relu, features=A, alpha=slope)[1]


def test_the_cache_is_bounded_and_drops_the_least_recently_used(small_cache):
    assert [squeeze(slope) for slope in (0.1, 0.2, 0.3)] == [FIRST] * 3
    assert squeeze(0.1) == DIRECT  # now 0.2 is the least recently used
    assert squeeze(0.4) == FIRST
    assert fastops.cache_info()["entries"]["LeakyRelu"] == small_cache
    assert [squeeze(slope) for slope in (0.1, 0.3, 0.4)] == [DIRECT] * 3
    assert squeeze(0.2) == FIRST
    assert fastops.cache_info()["entries"]["LeakyRelu"] == small_cache


def test_a_cache_of_one(small_cache):
    fastops.set_cache_size(1)
    assert [squeeze(slope) for slope in (0.1, 0.1, 0.2, 0.1, 0.1)] == [
        FIRST,
        DIRECT,
        FIRST,
        FIRST,
        DIRECT,
    ]
    assert fastops.cache_info() == {"entries": {"LeakyRelu": 1}, "entries_per_op": 1}


def test_clear_cache():
    took(ops.add_v2, x=A, y=B)
    assert fastops.cache_info()["entries"] == {"AddV2": 1}
    fastops.clear_cache()
    assert fastops.cache_info()["entries"] == {}
    assert took(ops.add_v2, x=A, y=B)[1] == FIRST
    assert took(ops.add_v2, x=A, y=B)[1] == DIRECT


@pytest.mark.parametrize("size", [0, -1, 2**40, "many", None, 1.5])
def test_bad_cache_sizes(size):
    before = fastops.cache_info()["entries_per_op"]
    with pytest.raises((ValueError, TypeError, OverflowError)):
        fastops.set_cache_size(size)
    assert fastops.cache_info()["entries_per_op"] == before


def test_failed_calls_are_not_cached():
    with pytest.raises(tf.errors.InvalidArgumentError):
        ops.add_v2(x=A, y=tf.ones([2]))
    assert fastops.cache_info()["entries"] == {}


# ---------------------------------------------------------------------------------------------
# Settings and counters
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "first", "then"),
    [
        ("auto", FIRST, DIRECT),
        ("direct", FIRST, DIRECT),
        ("capi", FIRST, "capi:options"),
        ("tensorflow", "tensorflow:options", "tensorflow:options"),
    ],
)
def test_path_option(setting, first, then):
    with fastops.options(path=setting):
        check("AddV2", then, first, x=A, y=B)
        check("TopKV2", then, first, input=A, k=2)


def test_path_direct_does_not_use_capi():
    arguments = {"shape": SHAPE, "dtype": tf.float32, "seed": 1}
    for _ in range(2):
        _, path = took(ops.random_uniform, **arguments)
    assert path == "capi:op"
    with fastops.options(path="direct"):
        assert took(ops.random_uniform, **arguments)[1] == "tensorflow:op"


def test_options_nest_and_are_restored():
    def now():
        return threads.get_options()

    before = now()
    with fastops.options(path="capi", on_fallback="warn"):
        assert now() == before | {"path": "capi", "on_fallback": "warn"}
        with fastops.options(onednn="off", threads="caller"):
            assert now() == {
                "path": "capi",
                "on_fallback": "warn",
                "onednn": "off",
                "threads": "caller",
            }
            with suppress(KeyError), fastops.options(path="auto"):
                assert now()["path"] == "auto"
                raise KeyError
            assert now()["path"] == "capi"
        assert now() == before | {"path": "capi", "on_fallback": "warn"}
    assert now() == before


@pytest.mark.parametrize(
    "wrong",
    [{"path": "fast"}, {"on_fallback": True}, {"onednn": "on"}, {"path": 1}, {"threads": 2}],
)
def test_bad_options_change_nothing(wrong):
    before = threads.get_options()
    ((setting, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{setting} must be one of") as caught:
        fastops.options(**wrong).__enter__()
    assert repr(value) in str(caught.value)
    assert threads.get_options() == before
    with pytest.raises(TypeError):
        fastops.options("capi")
    with pytest.raises(TypeError):
        fastops.options(speed="high")


def test_options_belong_to_their_thread():
    took(ops.add_v2, x=A, y=B)
    seen = []

    def other():
        seen.append(threads.get_options()["path"])
        with fastops.options(path="tensorflow"):
            entered.set()
            checked.wait(10)

    entered, checked = threading.Event(), threading.Event()
    with fastops.options(path="capi"):
        thread = threading.Thread(target=other)
        thread.start()
        assert entered.wait(10)
        seen.append(threads.get_options()["path"])
        checked.set()
        thread.join()
    assert seen == ["auto", "capi"]


def test_fallbacks_can_be_forbidden():
    with fastops.options(on_fallback="raise"):
        for _ in range(2):
            ops.add_v2(x=A, y=B)  # a first call is not a fallback
        with pytest.raises(fastops.FallbackError, match=r"AddV2 .*'tensorflow'.*\[input_type\]"):
            ops.add_v2(x=A, y=[[1.0], [2.0, 3.0]])
        ops.random_uniform(shape=SHAPE, dtype=tf.float32, seed=1)
        with pytest.raises(fastops.FallbackError, match=r"RandomUniform .*'capi'.*\[op\]"):
            ops.random_uniform(shape=SHAPE, dtype=tf.float32, seed=1)
        with tf.Graph().as_default():
            ops.add_v2(x=1.0, y=2.0)
        with fastops.options(path="capi"):
            ops.add_v2(x=A, y=B)
    with pytest.raises(ValueError, match="non-rectangular"):
        ops.add_v2(x=A, y=[[1.0], [2.0, 3.0]])


def test_fallback_happens_before_any_side_effect():
    variable = tf.Variable([1.0])
    for _ in range(2):
        ops.assign_add_variable_op(resource=variable.handle, value=[tf.Variable(1.0)])
    with fastops.options(on_fallback="raise"), pytest.raises(fastops.FallbackError):
        ops.assign_add_variable_op(resource=variable.handle, value=[tf.Variable(1.0)])
    assert variable.numpy() == [3.0]


def test_fallbacks_can_warn():
    with (
        fastops.options(on_fallback="warn"),
        pytest.warns(fastops.FallbackWarning, match=r"AddV2 ran through 'tensorflow'") as caught,
    ):
        result = ops.add_v2(x=[A[0], tf.Variable(2.0)], y=B[:2])
    assert result.numpy().tolist() == [11.0, 22.0]
    assert caught[0].filename == __file__


def test_errors_of_calls_are_tensorflows_even_when_fallbacks_are_forbidden():
    took(ops.add_v2, x=A, y=B)
    want = failure(tf.raw_ops.AddV2, x=A, y=tf.ones([2]))
    with fastops.options(on_fallback="raise"):
        assert failure(ops.add_v2, x=A, y=tf.ones([2])) == want


def test_stats():
    fastops.reset_stats()
    assert fastops.stats().as_dict() == {
        "direct": 0,
        "capi": 0,
        "tensorflow": 0,
        "reasons": {},
        "ops": {},
        "functions": {},
        "methods": {},
        "kinds": {},
    }
    for _ in range(3):
        ops.add_v2(x=A, y=B)
        ops.random_uniform(shape=SHAPE, dtype=tf.float32, seed=1)
    outcome(ops.add_v2, x=A, z=B)
    seen = fastops.stats()
    assert seen.as_dict() == {
        "direct": 2,
        "capi": 2,
        "tensorflow": 3,
        "reasons": {"first_call": 2, "arguments": 1, "op": 2},
        "ops": {
            "AddV2": {
                "direct": 2,
                "capi": 0,
                "tensorflow": 2,
                "reasons": {"first_call": 1, "arguments": 1},
            },
            "RandomUniform": {
                "direct": 0,
                "capi": 2,
                "tensorflow": 1,
                "reasons": {"first_call": 1, "op": 2},
            },
        },
        "functions": {},
        "methods": {},
        "kinds": {},
    }
    ops.add_v2(x=A, y=B)
    assert seen.direct == 2, "a snapshot does not change"
    assert fastops.stats().direct == 3


def test_every_reason_is_explained():
    assert set(fastops.REASONS) == set(reasons.REGISTRY)
    assert all(text and text == text.strip() for text in fastops.REASONS.values())
    for arguments in ({"x": "a", "y": 1.0}, {"x": A}, {"x": None, "y": A}, {"x": object(), "y": A}):
        outcome(ops.add_v2, **arguments)
    assert set(fastops.stats().reasons) <= set(fastops.REASONS)
