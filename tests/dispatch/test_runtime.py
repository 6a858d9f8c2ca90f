"""The runtime around a call: graphs, state, and the choice of kernels."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from memory import tensors_left
from support import (
    DIRECT,
    FIRST,
    assert_same,
    assert_same_bits,
    both,
    check,
    failure,
    floats,
    outcome,
    python,
    took,
)
from tensorflow.python.eager import context

import fastops
from fastops import ops, raw_ops
from fastops._reports import counters

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]


X = tf.constant(floats(3, 4))
Y = tf.constant(floats(3, 4, seed=1))


# ---------------------------------------------------------------------------------------------
# Graphs
# ---------------------------------------------------------------------------------------------

VARIABLE = tf.Variable(floats(4, 2), name="weights")


def plain(m, x):
    return m.AddV2(x=m.MatMul(a=x, b=x, transpose_b=True), y=1.0)


def named(m, x):
    with tf.name_scope("outer"), tf.name_scope("inner"):
        first = m.Neg(x=x, name="minus")
        second = m.Neg(x=first, name="minus")
    return m.AddN(inputs=[first, second], name="outer/minus")


def controlled(m, x):
    shown = m.Abs(x=x)
    with tf.control_dependencies([shown, m.NoOp()]):
        m.NoOp(name="last")
        return m.Exp(x=x)


def placed(m, x):
    with tf.device("/device:CPU:0"):
        h = m.Neg(x=x)
        with tf.device("/job:worker/task:3"):
            h = m.Neg(x=h)
        with tf.device(None):
            return m.Neg(x=h)


def colocated(m, x):
    h = m.Neg(x=x)
    with tf.compat.v1.colocate_with(h):
        return m.Exp(x=x), m.Fill(dims=[2], value=0)


def captured(m, x):
    m.AssignAddVariableOp(resource=VARIABLE.handle, value=tf.ones([4, 2]))
    return m.MatMul(a=x, b=VARIABLE), m.AddV2(x=x, y=X)


def several(m, x):
    parts = m.Split(axis=1, value=x, num_split=2)
    return m.TopKV2(input=parts[0], k=1), m.Pack(values=parts, axis=0), m.IdentityN(input=[x, 1])


def attributes(m, x):
    h = m.Conv2D(input=x[None, ..., None], filter=np.ones((2, 2, 1, 3), "f"), strides=[1, 1, 1, 1],
                 padding="SAME", dilations=(1, 1, 1, 1))  # fmt: skip
    return (
        m.Cast(x=h, DstT=np.float64),
        m.EnsureShape(input=x, shape=[None, 4]),
        m.Sum(input=x, axis=[0], keep_dims=True),
    )


def random(m, x):
    return m.RandomUniform(shape=[2], dtype=tf.float32, seed=3, seed2=4), m.Relu(features=x)


def nested(m, x):
    @tf.function
    def inner(y):
        return m.Tanh(x=y)

    loop = tf.while_loop(lambda i, y: m.Less(x=i, y=3), lambda i, y: (i + 1, m.Neg(x=y)), [0, x])
    return inner(x), loop, tf.cond(x[0, 0] > 0, lambda: m.Exp(x=x), lambda: m.Neg(x=x))


GRAPHS = [
    plain, named, controlled, placed, colocated, captured, several, attributes, random, nested,
]  # fmt: skip


def graph_def(program, m, building):
    tf.compat.v1.reset_default_graph()
    if building == "graph":
        with tf.Graph().as_default() as graph:
            program(m, tf.compat.v1.placeholder(tf.float32, [3, 4], name="x"))
    else:
        graph = tf.function(lambda x: program(m, x)).get_concrete_function(X).graph
    proto = graph.as_graph_def()
    text = str(proto.node)
    for function in sorted(proto.library.function, key=lambda f: f.signature.name):
        text += str(function.node_def)
    return text


def numberless(text):
    """Return the text without the numbers that TensorFlow appends to names of functions."""
    return re.sub(r"(__inference_\w+?|while_cond|while_body|cond_true|cond_false)_\d+", r"\1", text)


BUILDINGS = [
    (program, building)
    for program in GRAPHS
    for building in ("graph", "function")
    if (program, building) != (captured, "graph")  # eager variables cannot enter a bare graph
]


@pytest.mark.parametrize(
    ("program", "building"), BUILDINGS, ids=[f"{p.__name__}-{b}" for p, b in BUILDINGS]
)
def test_graphs_have_the_same_nodes(program, building):
    want = numberless(graph_def(program, tf.raw_ops, building))
    assert numberless(graph_def(program, raw_ops, building)) == want
    if program is not nested:
        assert set(fastops.stats().reasons) == {"graph"}
        assert fastops.stats().tensorflow >= 2


def test_a_prepared_kernel_does_not_leak_into_a_graph():
    check("Neg", x=X)

    @tf.function
    def negate(x):
        result, path = took(ops.neg, x=x)
        assert path == "tensorflow:graph"
        assert type(result).__name__ == "SymbolicTensor"
        _, path = took(ops.neg, x=X)  # an eager tensor is captured
        assert path == "tensorflow:graph"
        with tf.init_scope():
            assert took(ops.neg, x=X)[1] == DIRECT
        return result

    assert_same_bits(negate(X), -X)
    assert took(ops.neg, x=X)[1] == DIRECT


def test_errors_while_a_graph_is_built():
    def program(m):
        with tf.Graph().as_default():
            return m.MatMul(a=tf.ones([2, 3]), b=tf.ones([2, 3]))

    assert failure(program, m=raw_ops) == failure(program, m=tf.raw_ops)


def test_a_symbolic_tensor_outside_of_its_graph():
    leaked = []
    tf.function(lambda x: leaked.append(x) or x)(X)
    took(ops.neg, x=X)
    assert failure(ops.neg, x=leaked[0]) == failure(tf.raw_ops.Neg, x=leaked[0])


def test_functions_give_the_same_values():
    def program(m):
        @tf.function
        def layer(x):
            return m.Tanh(x=m.MatMul(a=x, b=VARIABLE))

        return layer(X)

    assert_same_bits(program(raw_ops), program(tf.raw_ops))


def test_without_eager_execution():
    python("""
        from tensorflow.python.eager import context
        tf.compat.v1.disable_eager_execution()
        total = ops.add_v2(x=1.0, y=2.0)
        assert total.op.type == "AddV2"
        with context.eager_mode():
            assert [ops.add_v2(x=1.0, y=2.0).numpy() for _ in range(3)] == [3.0] * 3
        with tf.compat.v1.Session() as session:
            assert session.run(total) == 3.0
        assert fastops.stats().direct > 0
    """)


def test_keras_symbolic_calls():
    import keras

    def build(m):
        keras.utils.clear_session()
        x = keras.Input((4,), name="x")
        h = keras.layers.Lambda(lambda t: m.AddV2(x=m.Neg(x=t), y=1.0), output_shape=(4,))(x)
        return keras.Model(x, h)

    assert_same_bits(build(raw_ops)(X), build(tf.raw_ops)(X))
    symbolic = keras.Input((4,), name="x")
    assert failure(ops.neg, x=symbolic) == failure(tf.raw_ops.Neg, x=symbolic)
    variable = keras.Variable(floats(3, 4))
    assert_same(outcome(ops.neg, x=variable), outcome(tf.raw_ops.Neg, x=variable))


# ---------------------------------------------------------------------------------------------
# State
# ---------------------------------------------------------------------------------------------


def test_random_sequences_are_the_same_as_tensorflows():
    """Calls of fastops and of TensorFlow draw from one kernel: together, TensorFlow's sequence."""
    arguments = {"shape": tf.constant([3]), "dtype": tf.float32, "seed": 5, "seed2": 7}

    def sequence(modules):
        tf.random.set_seed(11)
        return [m.RandomUniform(**arguments).numpy() for m in modules]

    want = sequence([tf.raw_ops] * 9)
    assert_same_bits(sequence([raw_ops] * 9), want)
    assert_same_bits(sequence([raw_ops, tf.raw_ops, raw_ops] * 3), want)
    assert_same_bits(sequence([tf.raw_ops, raw_ops, raw_ops] * 3), want)
    seen = fastops.stats().ops["RandomUniform"]
    assert (seen.direct, seen.tensorflow) == (0, 1)
    assert seen.capi == 9 + 6 + 6 - 1


def test_random_functions_of_tensorflow_are_not_disturbed():
    def sequence(between):
        tf.random.set_seed(3)
        values = []
        for _ in range(4):
            values.append(tf.random.normal([2]).numpy())
            between()
        return values

    want = sequence(lambda: None)
    assert_same_bits(sequence(lambda: ops.stateless_random_uniform(shape=[2], seed=[1, 2])), want)


def test_stateless_random_runs_direct():
    arguments = {"shape": tf.constant([2, 3]), "seed": tf.constant([1, 2])}
    for op_name in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        check(op_name, dtype=tf.float64, **arguments)


def test_two_variables_with_the_same_name_are_distinct():
    handles = [raw_ops.VarHandleOp(dtype=tf.float32, shape=[]) for _ in range(3)]
    for value, handle in enumerate(handles):
        raw_ops.AssignVariableOp(resource=handle, value=float(value))
    reads = [raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32) for handle in handles]
    want = [tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[]) for _ in range(2)]
    for value, handle in enumerate(want):
        tf.raw_ops.AssignVariableOp(resource=handle, value=float(value))
    values = [
        tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32).numpy() for handle in want
    ]
    # In TensorFlow, handles with the same (empty) name share a resource.
    assert [read.numpy() for read in reads] == ([2.0] * 3 if values == [1.0] * 2 else [0, 1, 2])
    named = [
        raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name=name) for name in ("p", "q")
    ]
    for value, handle in enumerate(named):
        raw_ops.AssignVariableOp(resource=handle, value=float(value))
    assert [
        raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32).numpy() for handle in named
    ] == [0.0, 1.0]


NAMELESS = {
    "dtype": tf.float32,
    "shared_name": context.anonymous_name(),
    "debug_name": "weight",
    "container": "",
}


def test_each_call_without_a_shared_name_makes_a_new_variable():
    """TensorFlow makes the first variable of each of two keys; later calls are direct."""
    results, paths = zip(
        *(took(raw_ops.VarHandleOp, shape=shape, **NAMELESS) for shape in ([2], None) * 3),
        strict=True,
    )
    assert paths == (FIRST,) * 2 + (DIRECT,) * 4
    for value, handle in enumerate(results):
        tf.raw_ops.AssignVariableOp(resource=handle, value=[value, value + 0.5])
    for value, handle in enumerate(results):
        read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        assert_same(read, tf.constant([value, value + 0.5]))
        theirs = tf.raw_ops.VarHandleOp(shape=[2] if value % 2 == 0 else None, **NAMELESS)
        # Apart from the number, the handles print the same: name, device, container, dtype and
        # shape.
        assert re.sub(r"\d+", "", repr(handle)) == re.sub(r"\d+", "", repr(theirs))
    # The variable is deleted with its last handle, as in TensorFlow.
    kept = tf.raw_ops.Identity(input=results[0])
    results = None
    assert tf.raw_ops.ReadVariableOp(resource=kept, dtype=tf.float32)[0] == 0.0


def test_a_variable_with_a_shared_name_falls_back():
    for shared_name in ("", "known", "known"):
        arguments = NAMELESS | {"shape": [2], "shared_name": shared_name}
        paths = [took(raw_ops.VarHandleOp, **arguments)[1] for _ in range(3)]
        assert DIRECT not in paths
    detour = fastops.explain(raw_ops.VarHandleOp, **arguments).ops["VarHandleOp"].detours[0]
    assert detour.detail == "with a shared_name the resource is shared with other kernels"


def test_keys_keep_no_tensor_shape_alive():
    """TensorFlow's tests report `TensorShape` objects that are left after a test as leaks."""
    before = tensors_left()
    for _ in range(3):
        raw_ops.VarHandleOp(shape=tf.TensorShape([None, 3]), **NAMELESS)
        assert took(raw_ops.EnsureShape, input=X, shape=tf.TensorShape([3, None]))[1] in (
            FIRST,
            DIRECT,
        )
    assert took(raw_ops.EnsureShape, input=X, shape=tf.TensorShape([3, None]))[1] == DIRECT
    assert took(raw_ops.EnsureShape, input=X, shape=tf.TensorShape(None))[1] == FIRST
    assert tensors_left() == before
    with tf.GradientTape() as tape:
        tape.watch(X)
        result = raw_ops.EnsureShape(input=X, shape=tf.TensorShape([3, None]))
    assert_same(tape.gradient(result, X), tf.ones_like(X))


def test_variables_are_updated_in_place_and_reads_are_not():
    def program(m):
        variable = tf.Variable([1.0, 2.0])
        handle = variable.handle
        seen = []
        for step in range(3):
            seen.append(m.ReadVariableOp(resource=handle, dtype=tf.float32))
            m.AssignAddVariableOp(resource=handle, value=np.float32([1, 1]))
            m.AssignSubVariableOp(resource=handle, value=np.float32([0.5, 0]))
            m.ResourceApplyGradientDescent(var=handle, alpha=0.1, delta=np.float32([1, step]))
            m.ResourceScatterAdd(resource=handle, indices=np.int32([0]), updates=np.float32([3]))
            seen.append(m.ResourceGather(resource=handle, indices=np.int32([1, 0]),
                                         dtype=tf.float32))  # fmt: skip
        m.AssignVariableOp(resource=handle, value=seen[0])
        seen.append(m.ReadVariableOp(resource=handle, dtype=tf.float32))
        m.AssignAddVariableOp(resource=handle, value=seen[0])
        seen.append(m.VariableShape(input=handle))
        seen.append(variable.read_value())
        return seen

    both(program)


def test_optimizer_steps():
    def program(m):
        var, first, second, extra = (tf.Variable(floats(3, seed=i) ** 2) for i in range(4))
        grad = np.float32([0.5, -1, 2])
        for _ in range(3):
            m.ResourceApplyAdam(
                var=var.handle, m=first.handle, v=second.handle, beta1_power=0.9, beta2_power=0.99,
                lr=0.1, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=grad, use_nesterov=True,
            )  # fmt: skip
            m.ResourceApplyMomentum(
                var=var.handle, accum=extra.handle, lr=0.1, grad=grad, momentum=0.9
            )
            m.ResourceApplyRMSProp(
                var=var.handle, ms=second.handle, mom=first.handle, lr=0.1, rho=0.9,
                momentum=0.1, epsilon=1e-7, grad=grad,
            )  # fmt: skip
        return [v.read_value() for v in (var, first, second, extra)]

    both(program)


def test_tables_queues_and_lists():
    def program(m):
        table = m.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        m.LookupTableImportV2(
            table_handle=table, keys=np.array([b"a", b"b"]), values=np.array([1, 2])
        )
        values = m.LookupTableFindV2(
            table_handle=table, keys=np.array([b"b", b"?"]), default_value=np.array(-1)
        )
        size = m.LookupTableSizeV2(table_handle=table)
        queue = m.FIFOQueueV2(component_types=[tf.float32, tf.int32], capacity=9, shapes=[[2], []])
        for i in range(3):
            m.QueueEnqueueV2(handle=queue, components=[X[0, :2], tf.constant(i)])
        taken = m.QueueDequeueV2(handle=queue, component_types=[tf.float32, tf.int32])
        several = m.QueueDequeueManyV2(handle=queue, n=2, component_types=[tf.float32, tf.int32])
        items = m.EmptyTensorList(
            element_shape=tf.constant([4]), max_num_elements=5, element_dtype=tf.float32
        )
        for i in range(2):
            items = m.TensorListPushBack(input_handle=items, tensor=X[i])
        stacked = m.TensorListStack(
            input_handle=items, element_shape=tf.constant([4]), element_dtype=tf.float32
        )
        popped = m.TensorListPopBack(
            input_handle=items, element_shape=tf.constant([4]), element_dtype=tf.float32
        ).tensor
        return values, size, taken, several, stacked, popped

    want = program(tf.raw_ops)
    for _ in range(2):
        assert_same(program(raw_ops), want)
    seen = fastops.stats()
    assert seen.ops["LookupTableFindV2"].direct == 1
    assert seen.ops["HashTableV2"].direct == 0
    for op_name in ("TensorListPushBack", "QueueEnqueueV2", "TensorListStack"):
        counts = seen.ops[op_name]
        assert counts.direct == 0
        assert counts.capi > 0
        assert set(counts.reasons) <= {"first_call", "op", "dtype"}


def test_errors_on_the_capi_path_are_the_same_as_tensorflows():
    arguments = {"shape": tf.constant([2]), "dtype": tf.float32, "seed": 1}
    for _ in range(2):
        took(ops.random_uniform, **arguments)
    arguments["shape"] = tf.constant([-2])
    for name in (None, "noise"):
        before = fastops.stats().ops["RandomUniform"].capi
        assert failure(ops.random_uniform, name=name, **arguments) == failure(
            tf.raw_ops.RandomUniform, name=name, **arguments
        )
        assert fastops.stats().ops["RandomUniform"].capi == before + 1
    with fastops.options(path="capi"):
        check("AddV2", "capi:options", x=X, y=Y)
        for wrong in ({"x": X, "y": tf.ones([5])}, {"x": X, "y": tf.constant(1)}):
            assert failure(ops.add_v2, **wrong) == failure(tf.raw_ops.AddV2, **wrong)


def carried(function, **arguments):
    with pytest.raises(tf.errors.OpError) as caught:
        function(**arguments)
    error = caught.value
    return (
        *(error.message, error.error_code, error.experimental_payloads, error.op, error.node_def),
        *(error.args, error.__cause__, error.__suppress_context__),
    )


def test_errors_have_the_same_attributes_as_tensorflows():
    """Errors of the runtime and of stateful kernels have them, although no call is repeated."""
    variable = tf.Variable([1.0])
    noise = {"shape": tf.constant([2]), "dtype": tf.float32, "seed": 1}
    update = {"resource": variable.handle, "indices": np.int32([0]), "updates": np.float32([1])}
    for op_name, right, wrong in (
        ("RandomUniform", noise, {**noise, "shape": tf.constant([-2])}),
        ("ResourceScatterAdd", update, {**update, "indices": np.int32([9])}),
    ):
        op = getattr(raw_ops, op_name)
        for _ in range(2):
            took(op, **right)
        assert carried(op, **wrong) == carried(getattr(tf.raw_ops, op_name), **wrong)
    seen = fastops.stats().ops
    assert seen["RandomUniform"].capi == 2
    assert seen["ResourceScatterAdd"].direct == 2


# ---------------------------------------------------------------------------------------------
# Which kernels
# ---------------------------------------------------------------------------------------------


def onednn_programs():
    """Return calls of ops whose kernels oneDNN replaces on some processors, by name."""
    calls = {}
    for rows, depth, columns in ((1, 1, 1), (1, 32, 32), (7, 5, 3), (64, 64, 64), (130, 70, 33)):
        a, b = floats(rows, depth), floats(depth, columns)
        calls[f"MatMul {a.shape} {b.shape}"] = {"a": a, "b": b}
        calls[f"BatchMatMulV2 {a.shape} {b.shape}"] = {"x": np.stack([a, -a]), "y": b[None]}
    for shape in ((1, 1), (4, 64), (3, 1000), (2, 3, 5)):
        calls[f"Softmax {shape}"] = {"logits": floats(*shape)}
        calls[f"Transpose {shape}"] = {"x": floats(*shape), "perm": np.arange(len(shape))[::-1]}
    for size in (4, 8, 15):
        x = floats(2, size, size, 3)
        window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
        calls[f"MaxPool {size}"] = {"input": x, **window}
        calls[f"AvgPool {size}"] = {"value": x, **window}
        for dtype in (np.float32, tf.bfloat16.as_numpy_dtype):
            calls[f"Conv2D {size} {np.dtype(dtype)}"] = {
                "input": x.astype(dtype),
                "filter": floats(3, 3, 3, 5, dtype=dtype),
                "strides": [1, 1, 1, 1],
                "padding": "SAME",
            }
        calls[f"DepthwiseConv2dNative {size}"] = {
            "input": x,
            "filter": floats(3, 3, 3, 2),
            "strides": [1, 1, 1, 1],
            "padding": "VALID",
        }
        for training in (True, False):
            calls[f"FusedBatchNormV3 {size} {training}"] = {
                "x": x,
                **{name: floats(3, seed=1) ** 2 for name in ("scale", "offset")},
                **{name: floats(0 if training else 3) ** 2 for name in ("mean", "variance")},
                "is_training": training,
            }
    calls["Conv2DBackpropFilter"] = {
        "input": floats(2, 8, 8, 3),
        "filter_sizes": np.array([3, 3, 3, 5], np.int32),
        "out_backprop": floats(2, 8, 8, 5),
        "strides": [1, 1, 1, 1],
        "padding": "SAME",
    }
    calls["Conv3D"] = {
        "input": floats(1, 4, 4, 4, 2),
        "filter": floats(2, 2, 2, 2, 3),
        "strides": [1] * 5,
        "padding": "SAME",
    }
    calls["Einsum"] = {"inputs": [floats(3, 4), floats(4, 5)], "equation": "ij,jk->ki"}
    return calls


def onednn_results(module, times=1):
    """Return the results of `onednn_programs` as lists of dtype, shape and bytes."""
    results = {}
    for name, arguments in onednn_programs().items():
        arguments = {
            key: tf.nest.map_structure(
                lambda leaf: tf.constant(leaf) if isinstance(leaf, np.ndarray) else leaf, value
            )
            for key, value in arguments.items()
        }
        op = getattr(module, name.split()[0])
        for _ in range(times):
            result = op(**arguments)
        results[name] = [
            (part.dtype.name, part.shape.as_list(), part.numpy().tobytes().hex())
            # Other outputs of a batch normalisation are scratch space.
            for part in tf.nest.flatten(result)[:3]
        ]
    return results


def test_the_kernels_of_this_tensorflow_are_the_default():
    want = onednn_results(tf.raw_ops)
    results = onednn_results(raw_ops, times=2)
    assert [name for name in want if results[name] != want[name]] == []
    assert fastops.stats().direct >= len(want)


def test_with_onednn_off_results_are_those_of_tensorflow_without_onednn():
    want = eval(
        python(
            f"""
            import sys
            sys.path.append({str(Path(__file__).parent)!r})
            from test_runtime import onednn_results
            from fastops._reports import counters
            assert not counters.onednn_enabled()
            want = onednn_results(tf.raw_ops)
            assert onednn_results(raw_ops, times=2) == want
            print(want)
            """,
            TF_ENABLE_ONEDNN_OPTS="0",
        )
    )
    onednn_results(raw_ops, times=2)  # the other setting's kernels are cached beside these
    with fastops.options(onednn="off"):
        results = onednn_results(raw_ops, times=2)
        off = fastops.stats()
    assert [name for name in want if results[name] != want[name]] == []
    assert {key["onednn"] for key in counters.cached_keys(ops.mat_mul)} == {True, False}
    assert off.direct >= 2 * len(want)


def test_denormals_are_flushed_as_tensorflow_flushes_them():
    tiny = np.float32([1e-39, -1e-39, 1e-20, -1e-20, 1.2e-38])
    x = tf.constant(tiny)
    for op_name, arguments in {
        "AddV2": {"x": x, "y": x},
        "Mul": {"x": x, "y": tf.constant(0.5)},
        "Neg": {"x": x},
        "Sum": {"input": x, "axis": 0},
        "Equal": {"x": x, "y": tf.zeros([5])},
        "Reshape": {"tensor": x, "shape": tf.constant([5, 1])},
        "MatMul": {"a": x[None], "b": x[:, None]},
        "LeakyRelu": {"features": tf.constant([-1.0], tf.float64), "alpha": 1e-40},
    }.items():
        check(op_name, **arguments)
    half = struct.unpack("f", struct.pack("I", 1))[0]
    assert half > 0, "the caller's own floating-point mode is as it was"
    assert float(np.float32(1e-39) + np.float32(1e-39)) > 0
