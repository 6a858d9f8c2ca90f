"""Observers of running ops: callbacks, debuggers, profilers, logs, collection of graphs.

fastops reports the same to each observer as TensorFlow, and calls are direct again when the
observer is removed.
"""

import threading
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
import tensorflow as tf
from apart import Process, logged_lines, within
from recorder import Recorder, distinct, settled
from support import (
    DIRECT,
    FIRST,
    assert_same,
    check,
    failure,
    floats,
    outcome,
    python,
    took,
)
from tensorflow.python.debug.lib import debug_events_reader
from tensorflow.python.eager import context
from tensorflow.python.framework import op_callbacks
from tensorflow.python.ops.numpy_ops import np_config

import fastops
from fastops import ops, raw_ops

pytestmark = pytest.mark.usefixtures("fresh")

OBSERVED = "capi:observed"
CALLBACKS = "tensorflow:callbacks"

X = floats(3, 4)


def calls(m):
    """Make calls with given, converted and read inputs, and with all structures of results."""
    tf.random.set_seed(1)
    x, v = tf.constant(X), tf.Variable(X)
    parts = m.Split(axis=tf.constant(1), value=x, num_split=2)
    return (
        m.AddV2(x=x, y=2.0),
        m.Mul(x=v, y=X),
        m.MatMul(a=x, b=v, transpose_b=True),
        m.ConcatV2(values=[parts[0], x], axis=tf.constant(1)),
        m.TopKV2(input=x, k=2),
        m.Cast(x=x, DstT=tf.int32),
        m.AssignAddVariableOp(resource=v.handle, value=x),
        m.ReadVariableOp(resource=v.handle, dtype=tf.float32),
        m.RandomUniform(shape=tf.constant([2]), dtype=tf.float32, seed=1, seed2=2),
        m.Pack(values=[[1.0], [2.0]], axis=0),  # TensorFlow converts these
        m.NoOp(),
    )


# ---------------------------------------------------------------------------------------------
# Op callbacks
# ---------------------------------------------------------------------------------------------


@contextmanager
def callback(function):
    op_callbacks.add_op_callback(function)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(function)


def as_values(tensors):
    return [
        tensor.dtype.name if tensor.dtype == tf.resource else (tensor.dtype.name, tensor.numpy())
        for tensor in tensors
    ]


def seen_by_callbacks(program, m):
    """Run a program; return all that a callback receives."""
    seen = []

    def watch(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        pairs = zip(attrs[::2], attrs[1::2], strict=True)
        seen.append(
            (
                op_type,
                (type(inputs), as_values(inputs)),
                [
                    (name, value)
                    for name, value in pairs
                    if name not in ("container", "shared_name")
                ],
                (type(outputs), as_values(outputs)),
                (op_name, graph),
            )
        )

    with callback(watch):
        program(m)
    return seen


def test_callbacks_see_every_call():
    """Callbacks get inputs, attributes, outputs and names of calls, with known and new keys."""
    for _ in range(2):
        calls(raw_ops)
    want = seen_by_callbacks(calls, tf.raw_ops)
    assert len(want) > len(calls(Recorder()))
    recorder = Recorder()
    assert_same(seen_by_callbacks(calls, recorder), want)
    assert distinct(recorder.paths) == {CALLBACKS}
    recorder = Recorder()
    calls(recorder)
    assert DIRECT in distinct(recorder.paths)
    assert distinct(recorder.paths) <= {DIRECT, "capi:op", "tensorflow:input_type"}

    def named(m):
        m.Neg(x=tf.constant(X), name="minus")
        m.Exp(x=1.0, name="e")
        m.AddN(inputs=[[1.0], [2.0]], name="slow")

    want = seen_by_callbacks(named, tf.raw_ops)
    assert [step[4][0] for step in want if step[0] != "Const"] == ["minus", "e", "slow"]
    assert_same(seen_by_callbacks(named, raw_ops), want)


def test_callbacks_that_replace_outputs():
    """Callbacks replace outputs by changing the list; eager execution ignores their results."""

    def returns(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        return [tf.zeros_like(output) for output in outputs] if op_type != "ZerosLike" else None

    def changes(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if op_type in ("AddV2", "TopKV2"):
            outputs[0] = tf.zeros([7])

    def program(m):
        with tf.GradientTape() as tape:
            x = tf.constant(X)
            tape.watch(x)
            total = m.AddV2(x=x, y=2.0)
        return total, m.TopKV2(input=x, k=2), tape.gradient(total, x)

    plain, paths = settled(program)
    assert distinct(paths) == {DIRECT}
    for function, replaced in ((returns, False), (changes, True)):
        with callback(function):
            want, paths = settled(program)
        assert distinct(paths) == {CALLBACKS}
        assert (want[0].shape == [7]) == replaced
        if not replaced:
            assert_same(want, plain)
    assert distinct(settled(program)[1]) == {DIRECT}


def test_callbacks_that_raise():
    """The call raises the callback's exception after the op has run; callbacks run in order."""
    v = tf.Variable(X)
    asked = []

    def first(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        asked.append(op_type)

    def second(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if op_type == "AssignAddVariableOp":
            raise LookupError(f"no {op_type} today")

    arguments = {"resource": v.handle, "value": tf.constant(X)}
    for _ in range(2):
        took(ops.assign_add_variable_op, **arguments)
    with callback(first), callback(second):
        want = failure(tf.raw_ops.AssignAddVariableOp, **arguments)
        assert want.kind is LookupError
        recorder = Recorder()
        assert failure(recorder.AssignAddVariableOp, **arguments) == want
        assert_same(recorder.Neg(x=v), tf.raw_ops.Neg(x=v))
    assert recorder.paths == {"AssignAddVariableOp": [CALLBACKS], "Neg": [CALLBACKS]}
    assert asked == ["AssignAddVariableOp"] * 2 + ["Neg"] * 2
    assert_same(v.numpy(), X + X + X + X + X)
    assert took(ops.assign_add_variable_op, **arguments)[1] == DIRECT


def test_callbacks_that_call_ops():
    """Ops that a callback calls are observed, too, and so are ops in functions and graphs."""

    def program(m):
        inner = []

        def watch(op_type, inputs, attrs, outputs, op_name=None, graph=None):
            inner.append((op_type, op_name, graph is None))
            if op_type == "Exp" and graph is None:
                inner.append(m.Neg(x=outputs[0]).numpy())

        function = tf.function(lambda x: m.Exp(x=m.Tanh(x=x)))
        with callback(watch):
            m.Exp(x=tf.constant(X))
            function(tf.constant(X))
        return [step for step in inner if "inference" not in str(step[0])]

    want, paths = settled(program)
    assert len(want) > 4
    assert paths["Neg"] == [CALLBACKS]
    assert paths["Exp"] == [CALLBACKS, "tensorflow:graph"]


def test_callbacks_belong_to_threads():
    """A callback observes only the calls of its thread."""
    x = tf.constant(X)
    check("Neg", x=x)
    registered, finished = threading.Event(), threading.Event()
    seen = []

    def watched():
        with callback(lambda op_type, *_, **__: seen.append(op_type)):
            registered.set()
            assert finished.wait(30)
            ops.neg(x=x)

    thread = threading.Thread(target=watched)
    thread.start()
    assert registered.wait(30)
    paths = [took(ops.neg, x=x)[1] for _ in range(3)]
    # TensorFlow's slow path is patched in all threads.
    listed = took(ops.add_n, inputs=[[1.0], [2.0]])[1]
    finished.set()
    thread.join()
    assert paths == [DIRECT] * 3
    assert listed == "tensorflow:input_type"
    assert seen == ["Neg"]


# ---------------------------------------------------------------------------------------------
# Debuggers
# ---------------------------------------------------------------------------------------------


@contextmanager
def numerics_checked():
    tf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tf.debugging.disable_check_numerics()


BAD_NUMBERS = {
    "Log": {"x": np.float32([-1, 1])},
    "RealDiv": {"x": np.float64([1]), "y": 0.0},
    "Reciprocal": {"x": np.float16([0])},
    "Sqrt": {"x": np.array([-1], tf.bfloat16.as_numpy_dtype)},
    "Split": {"axis": 0, "value": np.float32([np.nan, np.inf, 1, 2]), "num_split": 2},
    "Exp": {"x": np.float32([1000])},
}
GOOD_NUMBERS = {
    "Neg": {"x": X},
    "AddV2": {"x": np.int32([1, 2]), "y": 3},
    "StringLower": {"input": np.array([b"NaN"])},
}


def test_numerics_are_checked():
    """The message is TensorFlow's, with its count of infinities and NaNs."""
    for op_name, arguments in (BAD_NUMBERS | GOOD_NUMBERS).items():
        check(op_name, **arguments)
    with numerics_checked():
        for op_name, arguments in BAD_NUMBERS.items():
            want = failure(getattr(tf.raw_ops, op_name), **arguments)
            assert want.kind is tf.errors.InvalidArgumentError
            assert "NaN" in want.message
            recorder = Recorder()
            assert failure(getattr(recorder, op_name), **arguments) == want
            assert recorder.paths == {op_name: [CALLBACKS]}
        for op_name, arguments in GOOD_NUMBERS.items():
            check(op_name, CALLBACKS, first=CALLBACKS, **arguments)

        def gradient(m):
            with tf.GradientTape() as tape:
                x = tf.constant([0.0])
                tape.watch(x)
                y = m.Sqrt(x=x)
            return tape.gradient(y, x)

        assert failure(gradient, m=raw_ops) == failure(gradient, m=tf.raw_ops)
    for op_name, arguments in (BAD_NUMBERS | GOOD_NUMBERS).items():
        check(op_name, first=DIRECT, **arguments)


def test_numerics_are_checked_for_one_thread():
    x = tf.constant([-1.0])
    check("Log", x=x)
    paths = []
    with numerics_checked():
        thread = threading.Thread(target=lambda: paths.append(took(ops.log, x=x)[1]))
        thread.start()
        thread.join()
        assert failure(ops.log, x=x).kind is tf.errors.InvalidArgumentError
    assert paths == [DIRECT]


def dumped(directory, program, m, **options):
    """Return the execution records that a program writes, in the order of tensors."""
    writer = tf.debugging.experimental.enable_dump_debug_info(
        str(directory), circular_buffer_size=-1, **options
    )
    try:
        program(m)
        writer.FlushNonExecutionFiles()
        writer.FlushExecutionFiles()
    finally:
        tf.debugging.experimental.disable_dump_debug_info()
    order = {}
    with debug_events_reader.DebugDataReader(str(directory)) as reader:
        reader.update()
        return [
            (
                record.op_type,
                record.num_outputs,
                [order.setdefault(i, len(order)) for i in record.input_tensor_ids or ()],
                [order.setdefault(i, len(order)) for i in record.output_tensor_ids or ()],
                record.output_tensor_device_ids,
                str(record.debug_tensor_values),
            )
            for record in reader.executions()
        ]


@pytest.mark.parametrize("mode", ["NO_TENSOR", "FULL_HEALTH"])
def test_debug_dumps(mode, tmp_path):
    for _ in range(2):
        calls(raw_ops)
    want = dumped(tmp_path / "tensorflow", calls, tf.raw_ops, tensor_debug_mode=mode)
    recorder = Recorder()
    assert dumped(tmp_path / "fastops", calls, recorder, tensor_debug_mode=mode) == want
    assert {"AddV2", "Mul", "MatMul", "TopKV2", "Pack"} <= {record[0] for record in want}
    assert distinct(recorder.paths) == {CALLBACKS}
    assert took(ops.neg, x=tf.constant(X))[1] == FIRST
    assert took(ops.neg, x=tf.constant(X))[1] == DIRECT


# ---------------------------------------------------------------------------------------------
# The profiler
# ---------------------------------------------------------------------------------------------


PROFILES = {"default": {}, "thorough": {"host_tracer_level": 3, "python_tracer_level": 1}}


@contextmanager
def profile(directory, options):
    tf.profiler.experimental.start(
        str(directory), tf.profiler.experimental.ProfilerOptions(**options)
    )
    try:
        yield
    finally:
        tf.profiler.experimental.stop()


def traced(directory):
    """Count the events of a profile by name."""
    xplane_pb2 = pytest.importorskip("tensorflow.tsl.profiler.protobuf.xplane_pb2")
    (path,) = directory.glob("**/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    return Counter(
        plane.event_metadata[event.metadata_id].name
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    )


def executed(events):
    return {name: n for name, n in events.items() if name.startswith("EagerLocalExecute: ")}


@pytest.mark.parametrize("level", PROFILES)
def test_the_profiler_sees_ops(level, tmp_path):
    """The trace shows the same ops as TensorFlow's, equally often, and the program's own step."""
    for m in (tf.raw_ops, raw_ops, raw_ops):
        calls(m)

    def program(m):
        with tf.profiler.experimental.Trace("step", step_num=1, _r=1):
            return calls(m)

    with profile(tmp_path / "tensorflow", PROFILES[level]):
        want = program(tf.raw_ops)
    recorder = Recorder()
    with profile(tmp_path / "fastops", PROFILES[level]):
        got = program(recorder)
    assert_same(got, want)
    assert distinct(recorder.paths) == {OBSERVED, "capi:op", "tensorflow:input_type"}
    events, expected = traced(tmp_path / "fastops"), traced(tmp_path / "tensorflow")
    assert events["step"] == expected["step"] == 1
    assert {"EagerLocalExecute: AddV2", "EagerLocalExecute: TopKV2"} <= set(executed(expected))
    assert executed(events) == executed(expected)
    assert events["KernelAndDeviceFunc::Run"] == expected["KernelAndDeviceFunc::Run"]
    recorder = Recorder()
    calls(recorder)
    assert distinct(recorder.paths) == {DIRECT, "capi:op", "tensorflow:input_type"}


# ---------------------------------------------------------------------------------------------
# The log of placements
# ---------------------------------------------------------------------------------------------


def log_placements():
    tf.debugging.set_log_device_placement(True)


@pytest.fixture(scope="module")
def logging():
    """Yield a process that logs the placement of ops, set before the context is made."""
    process = Process(log_placements, TF_CPP_MIN_LOG_LEVEL="0")
    yield process
    process.end()


@within("logging")
def test_placements_are_logged():
    """The log has one line for each op, the same lines as TensorFlow's.

    The first call of a key converts and reads its inputs twice: to find the key, and in TensorFlow.
    """
    calls(tf.raw_ops)
    with logged_lines() as want:
        calls(tf.raw_ops)
    place = "in device /job:localhost/replica:0/task:0/device:CPU:0"
    assert f"Executing op TopKV2 {place}" in want, want
    again = {f"Executing op {op} {place}" for op in ("_EagerConst", "ReadVariableOp")}
    first, prepared = Recorder(), Recorder()
    with logged_lines() as seen:
        calls(first)
    assert_same([first.paths["Mul"], first.paths["TopKV2"]], [[FIRST]] * 2)
    assert not Counter(want) - Counter(seen), seen
    assert set(Counter(seen) - Counter(want)) <= again, seen
    with logged_lines() as seen:
        calls(prepared)
    assert_same(distinct(prepared.paths), {OBSERVED, "capi:op", "tensorflow:input_type"})
    assert_same(seen, want)


@within("logging")
def test_placements_that_are_not_logged():
    """The setting does not affect an existing context, at least up to TensorFlow 2.21."""
    x = tf.constant(X)
    for late in (False, True):
        tf.debugging.set_log_device_placement(late)
        took(ops.neg, x=x)
        with logged_lines() as want:
            tf.raw_ops.Neg(x=x)
        with logged_lines() as seen:
            _, path = took(ops.neg, x=x)
        assert_same(seen, want)
        assert_same(path, OBSERVED if want else DIRECT)


# ---------------------------------------------------------------------------------------------
# Graphs that are collected
# ---------------------------------------------------------------------------------------------


def graphs():
    """Take the graphs that were collected since the last call."""
    return ops_of(context.context().export_run_metadata())


def ops_of(metadata):
    """Return the ops of each function's graph, as traced and as executed."""
    return [
        [
            [node.op for node in graph.node]
            for graph in (function.pre_optimization_graph, *function.partition_graphs)
        ]
        for function in metadata.function_graphs
    ]


@contextmanager
def run_metadata():
    context.enable_run_metadata()
    try:
        yield
    finally:
        context.disable_run_metadata()


@contextmanager
def graph_collection():
    context.enable_graph_collection()
    try:
        yield
    finally:
        context.disable_graph_collection()


@contextmanager
def trace_on():
    tf.summary.trace_on(graph=True, profiler=False)
    try:
        yield
    finally:
        tf.summary.trace_off()


@pytest.fixture
def collected():
    """End the collection of graphs, which `trace_off` does not, at least up to TensorFlow 2.21."""
    yield
    context.disable_graph_collection()


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("collecting", [run_metadata, graph_collection, trace_on])
def test_graphs_are_collected(collecting):
    """Graphs of functions are collected, and graphs of ops for which TensorFlow makes a kernel.

    TensorFlow makes a kernel in the first call of a key. Calls of prepared kernels stay direct.
    """
    x = tf.constant(X)

    def program(m):
        context.context().clear_kernel_cache()
        fastops.clear_cache()
        found = []
        with collecting():
            for call in (
                lambda: m.Neg(x=x),
                lambda: m.Neg(x=x),
                lambda: m.Sigmoid(x=x),
                lambda: m.MatMul(a=x, b=x, transpose_b=True),
                lambda: m.Pack(values=[x]),
                lambda: m.Pack(values=[x, x]),
                lambda: tf.function(lambda y: m.Exp(x=m.Tanh(x=y)))(x),
                lambda: m.Neg(x=x),
            ):
                call()
                found.append(graphs())
        return found

    want = program(tf.raw_ops)
    assert want[0] == [[["_Arg", "Neg", "_Retval"]] * 2]
    assert want[1] == []
    assert "Tanh" in want[6][0][0]
    recorder = Recorder()
    assert program(recorder) == want
    assert recorder.paths["Neg"] == [FIRST, DIRECT, DIRECT]
    assert recorder.paths["Tanh"] == ["tensorflow:graph"]


@pytest.mark.usefixtures("collected")
def test_traces_are_exported(tmp_path):
    """The summary shows the graph of the function's calls."""

    def exported(m, directory):
        with tf.summary.create_file_writer(str(directory)).as_default(), trace_on():
            tf.function(lambda y: m.Exp(x=m.Tanh(x=y)))(tf.constant(X))
            tf.summary.trace_export("trace", step=0)
        (path,) = directory.glob("events*")
        graphs = []
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                for data in value.tensor.string_val:
                    graphs += ops_of(tf.compat.v1.RunMetadata.FromString(data))
        return [function for function in graphs if "Tanh" in function[0]]

    want = exported(tf.raw_ops, tmp_path / "tensorflow")
    assert len(want) == 1
    recorder = Recorder()
    assert exported(recorder, tmp_path / "fastops") == want
    assert distinct(recorder.paths) == {"tensorflow:graph"}


def test_executed_nodes_are_written_to_a_file(tmp_path):
    """TensorFlow's devices write the nodes they run to a file if an environment variable is set."""
    python(
        f"""
        import os
        from fastops import function, stats
        squares = function(lambda y: tf.matmul(y, y), reduce_retracing=True)
        for size in range(1, 6):  # each node is written once
            x = tf.ones([size, size])
            ops.mat_mul(a=x, b=x)
            squares(tf.ones([size + 5, size + 5]))
        (path,) = (name for name in os.listdir({str(tmp_path)!r}) if "_CPU_0_" in name)
        written = open(os.path.join({str(tmp_path)!r}, path), "rb").read()
        assert written.count(b"transpose_b") == 10
        assert stats().ops["MatMul"].direct == 0
        """,
        TF_NODE_FILE_WRITER_DIRECTORY=str(tmp_path),
    )


# ---------------------------------------------------------------------------------------------
# Other ways to run and to show what runs
# ---------------------------------------------------------------------------------------------


def test_functions_that_run_eagerly():
    def program(m):
        @tf.function
        def layer(x, v):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = m.Tanh(x=m.MatMul(a=x, b=v, transpose_b=True))
            return y, tape.gradient(y, x)

        x, v = tf.constant(X), tf.Variable(X)
        return layer(x, v)

    graph, paths = settled(program)
    assert distinct(paths) == {"tensorflow:graph"}
    tf.config.run_functions_eagerly(True)
    try:
        eager, paths = settled(program)
    finally:
        tf.config.run_functions_eagerly(False)
    assert distinct(paths) == {DIRECT}
    for one, other in zip(eager, graph, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert distinct(settled(program)[1]) == {"tensorflow:graph"}


def test_tracebacks_that_are_not_filtered():
    """Errors are the same, whether or not tracebacks show TensorFlow's frames."""
    wrong = {
        "MatMul": {"a": tf.constant(X), "b": tf.constant(X)},
        "AddV2": {"x": tf.constant(X), "y": tf.constant(1)},
        "Reshape": {"tensor": tf.constant(X), "shape": tf.constant([5])},
        "RandomUniform": {"shape": tf.constant([-1]), "dtype": tf.float32},
    }
    filtered = {name: failure(getattr(tf.raw_ops, name), **wrong[name]) for name in wrong}
    assert tf.debugging.is_traceback_filtering_enabled()
    tf.debugging.disable_traceback_filtering()
    try:
        for name, arguments in wrong.items():
            assert failure(getattr(tf.raw_ops, name), **arguments) == filtered[name]
            for _ in range(2):
                assert failure(getattr(raw_ops, name), **arguments) == filtered[name]
    finally:
        tf.debugging.enable_traceback_filtering()
    for name, arguments in wrong.items():
        assert failure(getattr(raw_ops, name), **arguments) == filtered[name]


@pytest.fixture(scope="module")
def numpy_like():
    """Yield a process in which NumPy behavior is enabled, which cannot be undone."""
    process = Process()
    yield process
    process.end()


def promoted(m):
    """Make calls whose inputs have different or weak dtypes."""
    x, weak = tf.constant([1.0, 2.0], tf.float32), tf.constant([3.0, 4.0]) + 1
    return (
        m.Neg(x=weak),
        m.AddV2(x=x, y=weak),
        m.Exp(x=1.0),
        m.Mul(x=np.float32([5.0, 6.0]), y=x),
        outcome(m.AddV2, x=tf.constant([1]), y=2.5),
        outcome(m.AddV2, x=tf.constant([1]), y=x),
        outcome(m.AddV2, x=np.float64([1.0]), y=x),
        outcome(m.Exp, x=1),
    )


@within("numpy_like")
def test_the_behaviour_of_numpy():
    """Dtypes are promoted above the ops; only errors about different dtypes have other messages."""
    before, paths = settled(calls)
    for options in ({}, {"prefer_float32": True}, *[
        {"dtype_conversion_mode": mode} for mode in ("all", "safe", "legacy")
    ]):  # fmt: skip
        np_config.enable_numpy_behavior(**options)
        want, seen = settled(calls)
        assert_same(want, before)
        weak = options.get("dtype_conversion_mode") in ("all", "safe")
        if not weak:  # with weak dtypes, a constant made of a number has a weak dtype
            assert_same(seen, paths)
        _, seen = settled(promoted)
        assert_same(seen["Neg"], ["tensorflow:input_type" if weak else DIRECT])
        assert_same(seen["Mul"], [DIRECT])
