"""Conversion of lists, strings, shapes and numbers, as in TensorFlow's slow path."""

import numpy as np
import pytest
import tensorflow as tf
from support import DIRECT, FIRST, Failure, assert_same, floats, outcome, took

import fastops

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant([1.0, 2.0, 3.0])
M = tf.constant(floats(2, 3))
LONG = tf.constant([1, 2], tf.int64)
TEXT = tf.constant("a")
PARTS = [tf.constant([1.0, 2.0]), tf.constant([3.0])]
TWO = tf.constant(2)
IMAGES = tf.constant(floats(1, 2, 2, 1))

CONVERTED = [
    ("AddV2", {"x": [1, 2], "y": [3, 4]}),
    ("AddV2", {"x": [1.0, 2], "y": [3, 4]}),
    ("AddV2", {"x": [1.0, 2.0], "y": 3}),
    ("AddV2", {"x": [1.0, 2.0], "y": np.ones(2)}),
    ("AddV2", {"x": [1.0, 2.0], "y": np.ones(2, np.float32)}),
    ("AddV2", {"x": np.ones(2), "y": [1.0, 2.0]}),
    ("AddV2", {"x": np.float64(3), "y": [1.0, 2.0]}),
    ("AddV2", {"x": X, "y": [False]}),
    ("AddV2", {"x": X[:0], "y": []}),
    ("LogicalAnd", {"x": [True], "y": True}),
    ("Equal", {"x": TEXT, "y": ["a", b"b"]}),
    ("Equal", {"x": "a", "y": ["a", "b"]}),
    ("Identity", {"input": [1, 2.5]}),
    ("Identity", {"input": [1, 2**40]}),
    ("Identity", {"input": [np.float64(1), 2.0]}),
    ("Identity", {"input": [np.arange(3), (1, 2, 3)]}),
    ("Identity", {"input": ["a", b"\xff", "\u00e9"]}),
    ("Identity", {"input": "text"}),
    ("OneHot", {"indices": [0, 1], "depth": 3, "on_value": 1.0, "off_value": 0.0}),
    ("OneHot", {"indices": [0, 1], "depth": 3, "on_value": 1, "off_value": 0}),
    ("OneHot", {"indices": [0, 1], "depth": 3, "on_value": True, "off_value": False}),
    ("RandomIndexShuffle", {"index": 3, "seed": [1, 2, 3], "max_index": 10}),
    ("ScatterNd", {"indices": [[0], [2]], "updates": X[:2], "shape": [4]}),
    ("Cross", {"a": [[1.0, 2.0, 3.0]], "b": [[3.0, 1.0, 2.0]]}),
    ("Cross", {"a": [[1, 2, 3]], "b": [[3, 1, 2]]}),
    ("GatherV2", {"params": [1.0, 2.0, 3.0], "indices": [0, 2], "axis": 0}),
    ("SelectV2", {"condition": [True, False, True], "t": X, "e": [0.0, 0.0, 0.0]}),
    ("Fill", {"dims": [3], "value": "text"}),
    ("Fill", {"dims": tf.TensorShape([3]), "value": 1.0}),
    ("Reshape", {"tensor": M, "shape": tf.TensorShape([3, 2])}),
    ("Reshape", {"tensor": X[0], "shape": tf.TensorShape([])}),
    ("BroadcastTo", {"input": [1, 2], "shape": tf.TensorShape([2, 2])}),
    ("BroadcastArgs", {"s0": tf.TensorShape([2, 2]), "s1": [1]}),
    ("BroadcastArgs", {"s0": tf.TensorShape([2, 2]), "s1": LONG}),
    ("BroadcastArgs", {"s0": [2, 2**40], "s1": [1]}),
    ("Conv2D", {"input": np.ones((1, 3, 3, 1)).tolist(), "filter": [[[[2.0]]]]}),
    ("Mean", {"input": [1, 2], "axis": [0]}),
    ("StringUpper", {"input": ["a", "b"]}),
    ("StringUpper", {"input": "\u00e9"}),
    ("StringUpper", {"input": []}),
    ("StringSplitV2", {"input": ["a b"], "sep": " "}),
    ("StringJoin", {"inputs": ["a", ["b", "c"]]}),
    ("StringJoin", {"inputs": [TEXT, ("b", "c")]}),
    ("DynamicStitch", {"indices": [[0, 2], [1]], "data": PARTS}),
    ("DynamicStitch", {"indices": [tf.constant([0, 2]), [1]], "data": PARTS}),
    ("DynamicStitch", {"indices": [[0, 2], [1]], "data": [[3, 4], tf.constant([1.0])]}),
    ("ConcatV2", {"values": [[1, 2], X], "axis": 0}),
    ("Pack", {"values": [X[0], 1, 2.5]}),
    ("Pack", {"values": [X[0], np.float32(2), np.float64(3)]}),
    ("Pack", {"values": [X, np.ones(3, np.float32)]}),
    ("AddN", {"inputs": [X, [1.0, 2.0, 3.0]]}),
    ("Pack", {"values": [np.ones(3), np.zeros(3)]}),
    ("ConcatV2", {"values": (np.ones((2, 3), np.int8), np.ones((1, 3), np.int8)), "axis": 0}),
    ("AddN", {"inputs": [np.ones(3, np.float32), np.float32([1, 2, 3])]}),
    # Lists with tensors in them
    ("AddV2", {"x": X, "y": [X[0], 1.0, 2]}),
    ("AddV2", {"x": [1, X[0], 2.0], "y": np.ones(3, np.float32)}),
    ("AddV2", {"x": [TWO, 1], "y": 2}),
    ("AddV2", {"x": 2, "y": (TWO, 1)}),
    ("AddV2", {"x": [1, 2], "y": [TWO, 1]}),
    ("Reshape", {"tensor": M, "shape": [TWO, -1]}),
    ("Reshape", {"tensor": M, "shape": [TWO, TWO + 1]}),
    ("Reshape", {"tensor": M, "shape": (3, LONG[1])}),
    ("Reshape", {"tensor": M, "shape": [TWO, np.int64(3)]}),
    ("Pad", {"input": M, "paddings": [[0, TWO], (1, 0)]}),
    ("Pad", {"input": M, "paddings": [[TWO, TWO], [TWO, TWO]]}),
    ("Pad", {"input": M, "paddings": [LONG, [0, 0]]}),
    ("GatherV2", {"params": M, "indices": [TWO - 1, 0], "axis": 0}),
    ("ResizeBilinear", {"images": IMAGES, "size": [TWO, 3]}),
    ("Identity", {"input": [[X[0], 1], [2.5, X[1]]]}),
    ("Identity", {"input": [[[[X[0]], [1]], [[2], [3]]]]}),
    ("Identity", {"input": [X, np.ones(3)]}),
    ("Identity", {"input": [X, (1, 2, 3)]}),
    ("Identity", {"input": [TEXT, "b", b"\xff"]}),
    ("Identity", {"input": [tf.constant(True), False]}),
    ("ConcatV2", {"values": [PARTS[0], [X[0], 1.0]], "axis": 0}),
    ("ConcatV2", {"values": [(1, X[0]), PARTS[0]], "axis": 0}),
    ("StringJoin", {"inputs": [["a", TEXT], "b"]}),
]
"""Calls whose inputs are converted for the kernel."""

OPTIONS = {"Conv2D": {"strides": [1, 1, 1, 1], "padding": "SAME"}}

REFUSED = [
    ("AddV2", {"x": [1, 2], "y": [3.0, 4]}),
    ("AddV2", {"x": 3, "y": "b"}),
    ("AddV2", {"x": X, "y": "text"}),
    ("AddV2", {"x": X, "y": [[1.0], [1.0, 2.0]]}),
    ("AddV2", {"x": X, "y": None}),
    ("AddV2", {"x": [], "y": []}),
    ("AddV2", {"x": [True], "y": [False]}),
    ("AddV2", {"x": "a", "y": "b"}),
    ("AddV2", {"x": tf.TensorShape([1]), "y": [2]}),
    ("AddV2", {"x": X, "y": tf.TensorShape([1])}),
    ("Sqrt", {"x": [1, 4]}),
    ("Sqrt", {"x": ["a"]}),
    ("Tan", {"x": [1, 2]}),
    ("Identity", {"input": [1, "b"]}),
    ("Identity", {"input": [2**70]}),
    ("Reshape", {"tensor": M, "shape": tf.TensorShape([3, None])}),
    ("Reshape", {"tensor": M, "shape": tf.TensorShape(None)}),
    ("Reshape", {"tensor": M, "shape": "32"}),
    ("Reshape", {"tensor": M, "shape": [3.0, 2.0]}),
    ("ScatterNd", {"indices": [[0], [2]], "updates": M, "shape": tf.TensorShape([4, 3])}),
    ("StringUpper", {"input": [1]}),
    ("StringJoin", {"inputs": [TEXT, 3]}),
    ("StringJoin", {"inputs": "ab"}),
    ("ConcatV2", {"values": [[1, 2], [3]], "axis": 0}),
    ("Pack", {"values": [tf.constant(1), 1, 2.5]}),
    ("Pack", {"values": [tf.constant(1), "a"]}),
    ("DynamicStitch", {"indices": [[0, 2], [1]], "data": [[1.0, 2.0], [3.0]]}),
    ("IdentityN", {"input": [X, [1, 2], "a"]}),
    ("Pack", {"values": [np.ones(3), np.zeros(3, np.float32)]}),
    ("Pack", {"values": [np.ones(3), [1.0, 2.0, 3.0]]}),
    ("Pack", {"values": [np.ones(3), tf.Variable([1.0, 2.0, 3.0])]}),
    ("Pack", {"values": [np.array([None])]}),
    ("AddN", {"inputs": [np.array(["a"]), np.array(["b"])]}),
    # Lists with tensors in them
    ("AddV2", {"x": X, "y": [TWO, 1, 2]}),
    ("AddV2", {"x": 2.0, "y": [TWO, 1]}),
    ("AddV2", {"x": [X[0], 1.0], "y": [TWO, 1]}),
    ("Sqrt", {"x": [TWO, 1]}),
    ("Reshape", {"tensor": M, "shape": [X[0], 3]}),
    ("Reshape", {"tensor": M, "shape": [TWO, 1.5]}),
    ("Reshape", {"tensor": M, "shape": [TWO, 2**40]}),
    ("Reshape", {"tensor": M, "shape": [TWO, True]}),
    ("Reshape", {"tensor": M, "shape": [TWO, None]}),
    ("Reshape", {"tensor": M, "shape": [TWO, LONG[0]]}),
    ("Reshape", {"tensor": M, "shape": [LONG[0], TWO]}),
    ("ResizeBilinear", {"images": IMAGES, "size": [LONG[0], 3]}),
    ("Identity", {"input": [TWO, "a"]}),
    ("Identity", {"input": [X[:0], []]}),
    ("Identity", {"input": [[[[[[[[[TWO]]]]]]]]]}),
    ("Identity", {"input": [X, X[0]]}),
    ("Identity", {"input": [X, 1.0]}),
    ("Identity", {"input": [[TWO], [1, 2]]}),
    ("Identity", {"input": [TWO, tf.Variable(3)]}),
    ("Identity", {"input": [TWO, tf.TensorShape([])]}),
    ("Identity", {"input": [tf.ragged.constant([[1]]), TWO]}),
    ("ConcatV2", {"values": [PARTS[0], [TWO, 1]], "axis": 0}),
    ("ConcatV2", {"values": [[X[0], 1.0], [X[1], 2.0]], "axis": 0}),
    ("Pack", {"values": [[X[0], 1.0], [2.0, X[1]]]}),
]
"""Calls that fall back to TensorFlow, which converts the inputs or raises."""


@pytest.mark.parametrize(("op_name", "arguments"), CONVERTED, ids=str)
def test_inputs_that_the_slow_path_converts_run_direct(op_name, arguments):
    arguments = arguments | OPTIONS.get(op_name, {})
    want = getattr(tf.raw_ops, op_name)(**arguments)
    op = getattr(fastops.raw_ops, op_name)
    for expected in (FIRST, DIRECT, DIRECT):
        got, path = took(op, **arguments)
        assert path == expected
        assert_same(got, want)


@pytest.mark.parametrize(("op_name", "arguments"), REFUSED, ids=str)
def test_unknown_inputs_fall_back(op_name, arguments):
    want = outcome(getattr(tf.raw_ops, op_name), **arguments)
    for _ in range(3):
        got = outcome(getattr(fastops.raw_ops, op_name), **arguments)
        assert_same(got, want)
        assert fastops.stats().ops[op_name].direct == 0


@pytest.mark.parametrize(("op_name", "arguments"), CONVERTED, ids=str)
def test_tapes_record_the_converted_inputs(op_name, arguments):
    """The gradient of a list belongs to the tensor that the list was converted to."""
    arguments = arguments | OPTIONS.get(op_name, {})

    def run(op):
        with tf.GradientTape() as tape:
            for value in tf.nest.flatten(list(arguments.values())):
                if isinstance(value, tf.Tensor) and value.dtype.is_floating:
                    tape.watch(value)
            result = op(**arguments)
        return outcome(tape.gradient, target=result, sources=[X, M, *PARTS])

    want = run(getattr(tf.raw_ops, op_name))
    for _ in range(3):
        assert_same(run(getattr(fastops.raw_ops, op_name)), want)


@pytest.mark.parametrize("name", [None, "given"])
@pytest.mark.parametrize(
    ("indices", "updates"),
    [
        ([[0], [7]], [1.0, 2.0]),
        (tf.constant([[0], [7]]), [1.0, 2.0]),
        ([[0], [7]], tf.constant([1.0, 2.0])),
        (tf.constant([[0], [7]]), tf.constant([1.0, 2.0])),
        (tf.constant([[0], [7]]), np.ones(2, np.float32)),
    ],
    ids=["lists", "list of updates", "list of indices", "tensors", "array"],
)
def test_errors_of_stateful_ops_are_those_of_tensorflows_path(indices, updates, name):
    """TensorFlow's slow path does not name the call in errors. No op with an effect runs twice."""

    def run(ops):
        variable = tf.Variable(tf.zeros(3))
        good = {"ref": variable.handle, "indices": [[0], [1]], "updates": [1.0, 2.0]}
        for _ in range(2):
            ops.ResourceScatterNdAdd(**good)
        bad = {"ref": variable.handle, "indices": indices, "updates": updates, "name": name}
        before = fastops.stats().ops.get("ResourceScatterNdAdd")
        failure = outcome(ops.ResourceScatterNdAdd, **bad)
        after = fastops.stats().ops.get("ResourceScatterNdAdd")
        return failure, variable.numpy(), after and after.direct - before.direct

    want, values, _ = run(tf.raw_ops)
    got, got_values, direct = run(fastops.raw_ops)
    assert isinstance(want, Failure)
    assert direct == 1
    assert_same(got, want)
    assert_same(got_values, values)


def test_shapes_as_protocol_buffers():
    """Functions that parse examples pass shapes as protobufs, which may change between calls."""
    shape = tf.TensorShape([2]).as_proto()
    features = {"a": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))}
    example = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    def run(ops):
        return outcome(
            ops.ParseExampleV2,
            serialized=[example],
            names=[],
            sparse_keys=[],
            dense_keys=["a"],
            ragged_keys=[],
            dense_defaults=[X[:0]],
            num_sparse=0,
            sparse_types=[],
            ragged_value_types=[],
            ragged_split_types=[],
            dense_shapes=[shape],
        )

    for _ in range(3):
        assert_same(run(fastops.raw_ops), run(tf.raw_ops))
    assert fastops.stats().ops["ParseExampleV2"].direct == 2
    shape.dim[0].size = 1
    assert_same(run(fastops.raw_ops), run(tf.raw_ops))
    shape.dim[0].size = 2
    shape.dim[0].name = "name"
    assert_same(run(fastops.raw_ops), run(tf.raw_ops))
    shape.unknown_rank = True
    assert_same(run(fastops.raw_ops), run(tf.raw_ops))


def test_a_list_that_changes_between_calls():
    """A conversion is cached under the values of a list, not under its identity."""
    indices = [[0], [2]]
    for _ in range(3):
        fastops.raw_ops.ScatterNd(indices=indices, updates=X[:2], shape=[4])
    indices[1][0] = 1
    got, path = took(fastops.raw_ops.ScatterNd, indices=indices, updates=X[:2], shape=[4])
    assert path == DIRECT
    assert_same(got, tf.raw_ops.ScatterNd(indices=indices, updates=X[:2], shape=[4]))
