"""Tapes, accumulators and vectorised maps: the same derivatives as with `tf.raw_ops`.

Each program takes the module of ops as its argument.
"""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from support import DIRECT, assert_same, both, floats, outcome, took
from tensorflow.python.eager import record
from tensorflow.python.framework import ops as framework

import fastops
from fastops import ops, raw_ops

X = tf.constant(floats(3, 4))
Y = tf.constant(floats(3, 4, seed=1))
IMAGE = tf.constant(floats(2, 6, 6, 3))
FILTER = tf.constant(floats(3, 3, 3, 4))
ints = tf.constant


pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]


# Ops whose gradient functions read attributes, outputs or several inputs, and the inputs by which
# they are differentiated.
DIFFERENTIABLE = {
    "AddV2": {"x": X, "y": Y[0]},
    "Mul": {"x": X, "y": Y},
    "RealDiv": {"x": X, "y": Y},
    "Pow": {"x": tf.abs(X), "y": Y},
    "Maximum": {"x": X, "y": Y},
    "SelectV2": {"condition": X > 0, "t": X, "e": Y},
    "Exp": {"x": X},
    "Tanh": {"x": X},
    "LeakyRelu": {"features": X, "alpha": 0.3},
    "Elu": {"features": X},
    "Softmax": {"logits": X},
    "LogSoftmax": {"logits": X},
    "MatMul": {"a": X, "b": Y, "transpose_b": True},
    "BatchMatMulV2": {"x": X[None], "y": Y[None], "adj_x": True},
    "Einsum": {"inputs": [X, Y], "equation": "ij,kj->ik"},
    "Sum": {"input": X, "axis": 1, "keep_dims": True},
    "Mean": {"input": X, "axis": ints([0, 1])},
    "Max": {"input": X, "axis": 0},
    "Prod": {"input": X, "axis": 0},
    "Cumsum": {"x": X, "axis": 1, "reverse": True},
    "Reshape": {"tensor": X, "shape": ints([4, 3])},
    "Transpose": {"x": X, "perm": ints([1, 0])},
    "ExpandDims": {"input": X, "axis": 0},
    "Squeeze": {"input": X[None], "axis": [0]},
    "Tile": {"input": X, "multiples": ints([2, 1])},
    "Pad": {"input": X, "paddings": ints([[1, 0], [0, 2]])},
    "Slice": {"input": X, "begin": ints([0, 1]), "size": ints([2, 2])},
    "StridedSlice": {
        "input": X,
        "begin": ints([0, 1]),
        "end": ints([3, 4]),
        "strides": ints([2, 1]),
        "shrink_axis_mask": 0,
        "end_mask": 1,
    },
    "ConcatV2": {"values": [X, Y], "axis": 1},
    "Pack": {"values": [X, Y], "axis": 2},
    "Unpack": {"value": X, "num": 3, "axis": 0},
    "Split": {"axis": 1, "value": X, "num_split": 2},
    "SplitV": {"value": X, "size_splits": ints([1, 3]), "axis": 1, "num_split": 2},
    "GatherV2": {"params": X, "indices": ints([0, 2, 0]), "axis": 0},
    "GatherNd": {"params": X, "indices": ints([[0, 1], [2, 3]])},
    "TopKV2": {"input": X, "k": 2},
    "Cast": {"x": X, "DstT": tf.float64},
    "BroadcastTo": {"input": X, "shape": ints([2, 3, 4])},
    "BiasAdd": {"value": X, "bias": Y[0]},
    "L2Loss": {"t": X},
    "SoftmaxCrossEntropyWithLogits": {"features": X, "labels": tf.nn.softmax(Y)},
    "SparseSoftmaxCrossEntropyWithLogits": {"features": X, "labels": ints([0, 1, 3])},
    "Conv2D": {"input": IMAGE, "filter": FILTER, "strides": [1, 2, 2, 1], "padding": "SAME"},
    "MaxPool": {"input": IMAGE, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
    "AvgPool": {"value": IMAGE, "ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"},
    "FusedBatchNormV3": {
        "x": IMAGE,
        "scale": tf.constant([1.0, 2.0, 3.0]),
        "offset": tf.zeros([3]),
        "mean": tf.zeros([3]),
        "variance": tf.ones([3]),
    },
    "IdentityN": {"input": [X, Y]},
    "AddN": {"inputs": [X, Y, X]},
    "ClipByValue": {"t": X, "clip_value_min": -0.5, "clip_value_max": 0.5},
    "UnsortedSegmentSum": {"data": X, "segment_ids": ints([0, 1, 0]), "num_segments": 2},
    "MatrixInverse": {"input": X[:, :3]},
    "Floor": {"x": X},
    "Sign": {"x": X},
    "Equal": {"x": X, "y": Y},
    "StopGradient": {"input": X},
    "Shape": {"input": X},
    "ArgMax": {"input": X, "dimension": 0},
}


@pytest.mark.parametrize("op_name", DIFFERENTIABLE)
def test_gradients_of_single_ops(op_name):
    arguments = DIFFERENTIABLE[op_name]
    inputs = [
        tensor
        for value in arguments.values()
        for tensor in (value if isinstance(value, list) else [value])
        if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating
    ]

    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(inputs)
            out = getattr(m, op_name)(**arguments)
        flat = tf.nest.flatten(out)
        return [[tape.gradient(target, tensor) for tensor in inputs] for target in flat], flat

    both(program)


def test_gradients_with_converted_inputs():
    """Inputs are numbers, arrays and variables, beside a tensor that is watched."""
    variable = tf.Variable(floats(3, 4))

    def program(m):
        with tf.GradientTape() as tape:
            tape.watch(X)
            h = m.Mul(x=X, y=2)
            h = m.AddV2(x=variable, y=h)
            h = m.Mul(x=h, y=floats(3, 4))
            h = m.AddN(inputs=[h, variable, X])
            h = m.MatMul(a=h, b=variable, transpose_b=True)
        return tape.gradient(h, [X, variable])

    both(program)


def test_gradients_are_none_where_tensorflows_are():
    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            unrelated = m.Mul(x=Y, y=Y)
            stopped = m.StopGradient(input=X)
            integers = m.Cast(x=X, DstT=tf.int32)
            back = m.Cast(x=integers, DstT=tf.float32)
            kept = m.Mul(x=X, y=stopped)
        return [tape.gradient(target, X) for target in (unrelated, stopped, back, kept)]

    want = both(program)
    assert [gradient is None for gradient in want] == [True, True, True, False]


def test_the_argument_given_as_none_reaches_gradients_as_in_tensorflow():
    def program(m):
        with tf.GradientTape() as tape:
            tape.watch(X)
            h = m.MatMul(a=X, b=Y, transpose_b=True, transpose_a=None, name=None)
        return tape.gradient(h, X)

    want = outcome(program, m=tf.raw_ops)
    for _ in range(2):
        assert_same(outcome(program, m=raw_ops), want)


def test_the_gradient_of_a_loss_of_several_layers():
    weights = [tf.Variable(floats(4, 8)), tf.Variable(floats(8, 3))]
    biases = [tf.Variable(floats(8)), tf.Variable(floats(3))]

    def program(m):
        with tf.GradientTape() as tape:
            h = m.MatMul(a=X, b=weights[0])
            h = m.Relu(features=m.BiasAdd(value=h, bias=biases[0]))
            h = m.BiasAdd(value=m.MatMul(a=h, b=weights[1]), bias=biases[1])
            loss = m.SparseSoftmaxCrossEntropyWithLogits(features=h, labels=ints([0, 1, 2])).loss
            loss = m.Mean(input=loss, axis=0)
        return tape.gradient(loss, weights + biases), loss

    both(program)


def test_watched_variables():
    a, b, c = (tf.Variable(1.0, name=name) for name in "abc")
    frozen = tf.Variable(1.0, trainable=False)

    def program(m):
        with tf.GradientTape() as tape:
            m.AddN(inputs=[c, frozen, a])
            m.Mul(x=frozen, y=b)
            m.ReadVariableOp(resource=a.handle, dtype=tf.float32)
        return [v.name for v in tape.watched_variables()]

    want = program(tf.raw_ops)
    assert [program(raw_ops) for _ in range(2)] == [want] * 2
    assert want == ["a:0", "b:0", "c:0"]


def test_a_variable_watcher_sees_reads():
    variable = tf.Variable(1.0)
    for _ in range(2):
        with record.VariableWatcher() as watcher:
            ops.neg(x=variable)
        assert [v.ref() for v in watcher.watched_variables()] == [variable.ref()]


def test_unwatched_variables():
    variable = tf.Variable(2.0)

    def program(m):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            h = m.Mul(x=variable, y=variable)
        with tf.GradientTape(watch_accessed_variables=False) as watching:
            watching.watch(variable)
            k = m.Mul(x=variable, y=variable)
        return tape.gradient(h, variable), watching.gradient(k, variable)

    assert both(program)[0] is None


def test_gradients_through_reads_and_gathers():
    variable = tf.Variable(floats(5, 2))
    handle = variable.handle

    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(handle)
            read = m.ReadVariableOp(resource=handle, dtype=tf.float32)
            rows = m.ResourceGather(resource=handle, indices=ints([0, 3, 0]), dtype=tf.float32)
            cells = m.ResourceGatherNd(resource=handle, indices=ints([[1, 1]]), dtype=tf.float32)
            h, k, n = (m.Mul(x=tensor, y=tensor) for tensor in (read, rows, cells))
        return [tape.gradient(target, handle) for target in (h, k, n)], [
            tape.gradient(target, variable) for target in (h, k, n)
        ]

    both(program)


def test_tapes_pause_and_reset():
    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            h = m.Mul(x=X, y=X)
            with tape.stop_recording():
                k = m.Mul(x=X, y=h)
            n = m.AddV2(x=h, y=k)
        with tf.GradientTape() as other:
            other.watch(X)
            m.Exp(x=X)
            other.reset()
            other.watch(X)
            late = m.Tanh(x=X)
        return [tape.gradient(target, X) for target in (h, k, n)], other.gradient(late, X)

    assert both(program)[0][1] is None


def test_nested_tapes_and_higher_orders():
    def program(m):
        with tf.GradientTape() as third, tf.GradientTape() as second:
            third.watch(X)
            second.watch(X)
            with tf.GradientTape() as first:
                first.watch(X)
                h = m.Tanh(x=m.Mul(x=X, y=X))
            d1 = m.Mul(x=first.gradient(h, X), y=X)
            d2 = second.gradient(d1, X)
        return d1, d2, third.gradient(d2, X)

    both(program)


def test_an_inner_tape_that_does_not_watch():
    def program(m):
        with tf.GradientTape() as outer:
            outer.watch(X)
            with tf.GradientTape() as inner:
                inner.watch(Y)
                h = m.MatMul(a=X, b=Y, transpose_b=True)
            d = inner.gradient(h, Y)
        return d, outer.gradient(d, X)

    both(program)


def test_output_gradients_and_unconnected():
    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([X, Y])
            parts = m.Split(axis=1, value=m.Exp(x=X), num_split=2)
        zero = tf.UnconnectedGradients.ZERO
        return (
            tape.gradient(parts, X, output_gradients=[parts[1], parts[0]]),
            tape.gradient(parts[1], X),
            tape.gradient(parts, Y, unconnected_gradients=zero),
        )

    both(program)


def test_jacobians():
    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            h = m.Softmax(logits=m.Mul(x=X, y=Y))
        return (
            tape.jacobian(h, X),
            tape.jacobian(h, X, experimental_use_pfor=False),
            tape.batch_jacobian(h, X),
        )

    both(program)


def test_forward_accumulators():
    variable = tf.Variable(floats(3, 4))

    def program(m):
        with tf.autodiff.ForwardAccumulator([X, variable], [Y, X]) as accumulator:
            h = m.Mul(x=m.Sin(x=X), y=variable)
            parts = m.Unpack(value=h, num=3, axis=0)
            constant = m.Exp(x=Y)
        return [accumulator.jvp(tensor) for tensor in (h, parts, constant)]

    assert both(program)[2] is None


def test_forward_over_reverse():
    def program(m):
        with tf.autodiff.ForwardAccumulator(X, Y) as accumulator:
            with tf.GradientTape() as tape:
                tape.watch(X)
                h = m.Tanh(x=m.Mul(x=X, y=X))
            d = tape.gradient(h, X)
        return accumulator.jvp(d), accumulator.jvp(h)

    both(program)


def test_vectorized_map_builds_tensorflows_graph():
    def program(m):
        return tf.vectorized_map(lambda row: m.Tanh(x=m.Mul(x=row, y=row)), X)

    both(program, path="tensorflow")


def test_custom_gradients():
    def program(m):
        @tf.custom_gradient
        def clipped(x):
            y = m.Exp(x=x)

            def grad(upstream):
                return m.Minimum(x=m.Mul(x=upstream, y=y), y=1.0)

            return y, grad

        with tf.GradientTape() as second:
            second.watch(X)
            with tf.GradientTape() as tape:
                tape.watch(X)
                h = m.Mul(x=clipped(X), y=X)
            d = tape.gradient(h, X)
        return h, d, second.gradient(d, X)

    both(program)


def test_recomputed_gradients():
    variable = tf.Variable(floats(4, 4))

    def program(m):
        @tf.recompute_grad
        def block(x):
            return m.Tanh(x=m.MatMul(a=x, b=variable))

        with tf.GradientTape() as tape:
            tape.watch(X)
            h = m.Mul(x=block(block(X)), y=X)
        return tape.gradient(h, [X, variable])

    both(program)


@pytest.fixture
def attributes_of(monkeypatch):
    """Record the attributes that gradient functions see. Return a function that lists them."""

    def spied(op_name, *names):
        registry = framework.gradient_registry._registry[op_name]
        original = registry["type"]
        seen = []

        def spy(op, *grads):
            seen.append((op.type, [op.get_attr(name) for name in names], len(op.inputs)))
            return original(op, *grads)

        monkeypatch.setitem(registry, "type", spy)
        return seen

    return spied


def test_gradient_functions_see_the_attributes_under_their_own_names(attributes_of):
    seen = attributes_of("Cumsum", "exclusive", "reverse", "T", "Tidx")

    def program(m):
        with tf.GradientTape() as tape:
            tape.watch(X)
            h = m.Cumsum(x=X, axis=1, reverse=True)
        return tape.gradient(h, X)

    both(program)
    tensorflows, first, direct = seen
    assert tensorflows == first == direct
    assert direct[0] == "Cumsum"


TENSORFLOW = "tensorflow"

# TensorFlow's slow path, which takes lists, converts attributes to the types of the OpDef.
OF_LISTS = {
    "GatherV2": [
        (DIRECT, {"params": X, "indices": [0, 2], "axis": 0}),
        (DIRECT, {"params": X, "indices": [0, 2], "axis": 0, "batch_dims": 0}),
        (TENSORFLOW, {"params": X, "indices": [0, 2], "axis": 0, "batch_dims": None}),
        (TENSORFLOW, {"params": X, "indices": [0, 2], "axis": 0, "batch_dims": np.int64(0)}),
    ],
    "Sum": [
        (DIRECT, {"input": X, "axis": [0]}),
        (DIRECT, {"input": X, "axis": [0], "keep_dims": True}),
        (TENSORFLOW, {"input": X, "axis": [0], "keep_dims": None}),
    ],
    "MirrorPad": [
        (TENSORFLOW, {"input": X, "paddings": [[1, 0], [0, 2]], "mode": "REFLECT"}),
        (DIRECT, {"input": X, "paddings": ints([[1, 0], [0, 2]]), "mode": "REFLECT"}),
    ],
}
ATTRS_OF_LISTS = {
    "GatherV2": ("batch_dims", "Tparams", "Tindices", "Taxis"),
    "Sum": ("keep_dims", "T", "Tidx"),
    "MirrorPad": ("mode", "T", "Tpaddings"),
}


@pytest.mark.parametrize(
    ("op_name", "path", "arguments"),
    [(op_name, *call) for op_name, calls in OF_LISTS.items() for call in calls],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_gradient_functions_see_the_attributes_of_calls_with_lists(
    op_name, path, arguments, attributes_of
):
    seen = attributes_of(op_name, *ATTRS_OF_LISTS[op_name])

    def program(m):
        with tf.GradientTape() as tape:
            tape.watch(X)
            h = getattr(m, op_name)(**arguments)
        return tape.gradient(h, X)

    both(program, path)
    tensorflows, *ours = seen
    assert ours == [tensorflows] * 2
    for _, attrs, _ in ours:
        assert list(map(type, attrs)) == list(map(type, tensorflows[1]))


def test_taped_calls_on_the_capi_path():
    with fastops.options(path="capi"):

        def program(m):
            with tf.GradientTape() as tape:
                tape.watch([X, Y])
                h = m.MatMul(a=m.Tanh(x=X), b=Y, transpose_b=True)
            return tape.gradient(h, [X, Y]), h

        both(program, path="capi")


def test_a_deleted_tape_keeps_no_tensors_alive():
    took(ops.exp, x=X)
    with tf.GradientTape() as tape:
        tape.watch(X)
        h, path = took(ops.exp, x=X)
    assert path == DIRECT
    alive = weakref.ref(h)
    tape.gradient(h, X)
    del tape, h
    gc.collect()
    assert alive() is None


def test_an_op_without_a_gradient():
    def program(m):
        with tf.GradientTape() as tape:
            tape.watch(X)
            h = m.NextAfter(x1=tf.cast(X, tf.float64), x2=tf.cast(Y, tf.float64))
            h = m.Betainc(a=h, b=h, x=h)
        return tape.gradient(h, X)

    want = outcome(program, m=tf.raw_ops)
    for _ in range(2):
        assert_same(outcome(program, m=raw_ops), want)
    assert fastops.stats().direct
