"""`fastops.graph` gives the same as TensorFlow's sessions and loaders, bit for bit, by plans."""

import collections
import gc
import inspect
import os
import shutil
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import make
from google.protobuf import text_format
from parity import cases, recipes
from support import Failure, assert_same, assert_same_bits, difference, floats, python

import fastops
from fastops import graph
from fastops._core.reasons import text_of

pytestmark = pytest.mark.quick

v1 = tf.compat.v1


def outcome(function, *args, **kwargs):
    """Return what a call returns, or the class and the message of what it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return Failure(type(error), str(error))


def flat(result):
    """Return a nest of values as a list of its structure and its leaves, with their types."""
    leaves = [leaf for leaf in tf.nest.flatten(result) if leaf is not None]
    return [
        str(tf.nest.map_structure(type, result)),
        *(
            np.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
            for leaf in leaves
        ),
    ]


def compare(g, fetches, feed_dict=None, *, executor="plan", calls=3):
    """Assert that a session gives the same as TensorFlow's, call by call; check its executor."""
    theirs, mine = v1.Session(graph=g), graph.Session(g)
    for _ in range(calls):
        want = outcome(theirs.run, fetches, feed_dict)
        got = outcome(mine.run, fetches, feed_dict)
        assert difference(flat(got), flat(want)) is None
    executors = [row["executor"] for row in mine.describe()]
    assert executor is None or executors == [executor], mine.describe()
    return mine, want


# ---------------------------------------------------------------------------------------------
# Graphs
# ---------------------------------------------------------------------------------------------


def test_graph_classes_are_those_of_tensorflow():
    with graph.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [2], name="x")
        y = fastops.ops.neg(x=x, name="y")
    assert type(g) is graph.Graph is tf.Graph
    assert isinstance(y, graph.Output)
    assert isinstance(y, graph.Tensor)
    assert isinstance(tf.constant(1.0), graph.Tensor)
    assert not isinstance(tf.constant(1.0), graph.Output)
    assert isinstance(y.op, graph.Operation)
    assert isinstance(y.dtype, graph.DataType)
    assert [operation.name for operation in g.get_operations()] == ["x", "y"]
    assert g.get_operation_by_name("y") is y.op
    assert g.get_tensor_by_name("y:0") is y


def test_ops_build_the_same_graph_as_raw_ops():
    def nodes(ops):
        with tf.Graph().as_default() as g:
            x = v1.placeholder(tf.float32, [], name="x")
            with tf.name_scope("scope"):
                y = ops.AddV2(x=x, y=1.0)
                with (
                    tf.control_dependencies([fastops.ops.no_op(name="first")]),
                    tf.device("/CPU:0"),
                ):
                    z = ops.Mul(x=y, y=[2.0, 3.0], name="z")
            with graph.kernel_labels({"Neg": "label"}):
                ops.Neg(x=z)
            ops.Pack(values=[x, 2.0], axis=0)
            ops.Split(axis=0, value=[1.0, 2.0], num_split=2)
        return g

    got, want = nodes(fastops.raw_ops), nodes(tf.raw_ops)
    assert graph.to_bytes(got) == graph.to_bytes(want)
    assert got.get_operation_by_name("Neg").get_attr("_kernel") == b"label"
    assert got.get_operation_by_name("scope/z/y").control_inputs[0].name == "scope/first"
    assert got.get_tensor_by_name("scope/z:0").device == "/device:CPU:0"


def built(op, arguments):
    """Return the graph of one call, in a name scope, on a device, after a control dependency."""
    with tf.Graph().as_default() as g:
        inputs = tf.nest.map_structure(
            lambda leaf: v1.placeholder(leaf.dtype, leaf.shape) if tf.is_tensor(leaf) else leaf,
            arguments,
        )
        first = tf.no_op("first")
        with tf.name_scope("scope"), tf.device("/CPU:0"), tf.control_dependencies([first]):
            op(**inputs)
    return g.as_graph_def()


def test_every_op_builds_the_same_graph_as_its_raw_op():
    recipes.load()
    names = [name for name in cases.op_names() if hasattr(tf.raw_ops, name)]
    seen = 0
    for name in names:
        types = next(iter(cases.combinations(name)), None)
        case = None if types is None else next(iter(cases.calls(name, types)), None)
        if case is None:
            continue
        want = outcome(built, getattr(tf.raw_ops, name), case.arguments)
        got = outcome(built, getattr(fastops.raw_ops, name), case.arguments)
        assert got == want, case
        seen += not isinstance(want, Failure)
    assert seen > 600


def test_labels_choose_kernels():
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [2, 5, 5, 4], name="x")
        for label in ("custom", "eigen_tensor"):
            with graph.kernel_labels({"Conv2DBackpropInput": label}):
                fastops.ops.conv2d_backprop_input(
                    input_sizes=[2, 5, 5, 3], filter=floats(3, 3, 3, 4), out_backprop=x,
                    strides=[1, 1, 1, 1], padding="SAME", name=label,
                )  # fmt: skip
        with graph.kernel_labels({"Fact": "sergey"}):
            fastops.ops.fact(name="fact")
    compare(g, ["custom:0", "eigen_tensor:0", "fact:0"], {x: floats(2, 5, 5, 4)})
    with g.as_default(), graph.kernel_labels({"Neg": "none"}):
        fastops.ops.neg(x=x, name="neg")
    with pytest.raises(tf.errors.InvalidArgumentError, match="No OpKernel was registered"):
        graph.Session(g).run("neg:0", {x: floats(2, 5, 5, 4)})


def test_functions_as_arguments_of_ops():
    double = tf.function(lambda x: x * 2.0, autograph=False)
    branch = double.get_concrete_function(tf.TensorSpec([], tf.float32))
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [], name="x")
        (y,) = fastops.ops.stateless_if(
            cond=x > 0.0, input=[x], Tout=[tf.float32], then_branch=branch, else_branch=branch
        )
        (z,) = fastops.ops.partitioned_call(args=[y], Tout=[tf.float32], f=branch)
    compare(g, [y, z], {x: 3.0})
    compare(graph.from_bytes(graph.to_bytes(g)), [y.name, z.name], {"x:0": 3.0})


def test_gradients():
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [3], name="x")
        y = graph.cond(tf.reduce_sum(x) > 0.0, lambda: x * x, lambda: -x)
        _, z = graph.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * y), [0, x])
        (slope,) = graph.gradients(z, [x])
    with tf.GradientTape() as tape:
        value = make("float32", 3)
        tape.watch(value)
        z = value * (value * value if tf.reduce_sum(value) > 0.0 else -value) ** 3
    _, gradients = compare(g, slope, {x: value.numpy()}, executor=None)
    np.testing.assert_allclose(gradients, tape.gradient(z, value), rtol=1e-5)


def small():
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = tf.nn.softmax(x @ tf.constant(floats(2, 3)), name="y")
        tf.reduce_max(y, axis=1, name="most")
    return g


def test_bytes():
    g = small()
    data = graph.to_bytes(g)
    again = graph.from_bytes(data)
    assert type(data) is bytes
    assert graph.to_bytes(again) == data == g.as_graph_def().SerializeToString(deterministic=True)
    assert graph.from_bytes(data, graph=again, prefix="in") is again
    assert again.get_tensor_by_name("in/y:0").shape == [None, 3]
    one = again.get_tensor_by_name("x:0")
    graph.from_bytes(data, graph=again, prefix="on", replace={"x": one})
    got = graph.Session(again).run(["y:0", "on/y:0"], {"x:0": [[1.0, 2.0]]})
    assert_same_bits(got[0], got[1])


def test_bytes_that_are_cut_short():
    data = graph.to_bytes(small())
    versions = len(small().graph_def_versions.SerializeToString()) + 2
    other = tf.Graph()
    for size in range(len(data) - versions):
        with pytest.raises(ValueError, match="GraphDef"):
            graph.load(data[:size])
    for size in (1, 10, 40):
        with pytest.raises(ValueError, match="GraphDef"):
            graph.from_bytes(data[:size], graph=other)
    with pytest.raises(ValueError, match="empty"):
        graph.from_bytes(b"", graph=other)
    assert other.get_operations() == []


def test_files_are_written_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "g.pb"
    graph.save(small(), path)
    want = path.read_bytes()

    def fail(*_):
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="full"):
            graph.save(tf.Graph(), path)
    assert path.read_bytes() == want
    assert os.listdir(tmp_path) == ["g.pb"]


# ---------------------------------------------------------------------------------------------
# Sessions
# ---------------------------------------------------------------------------------------------

CATALOGUE = {
    "two ops": (lambda x: tf.tanh(x) * 2.0, floats(3)),
    "softmax": (lambda x: tf.nn.softmax(x @ tf.ones([3, 5])), floats(4, 3)),
    "fused": (
        lambda x: tf.nn.relu(tf.nn.bias_add(x @ tf.constant(floats(3, 5)), floats(5))),
        floats(4, 3),
    ),
    "convolution": (
        lambda x: tf.nn.relu(tf.nn.conv2d(x, floats(3, 3, 2, 4), 1, "SAME")),
        floats(1, 5, 5, 2),
    ),
    "pooling": (lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), floats(1, 4, 4, 2)),
    "batch norm": (
        lambda x: tf.raw_ops.FusedBatchNormV3(
            x=x, scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[0.1, 0.2], variance=[1.0, 2.0],
            is_training=False,
        )[0],
        floats(1, 4, 4, 2),
    ),
    "matrices": (lambda x: tf.linalg.inv(x @ tf.transpose(x) + tf.eye(3)), floats(3, 3)),
    "attention": (lambda x: tf.nn.softmax(x @ tf.transpose(x)) @ x, floats(4, 3)),
    "indexing": (lambda x: (x[0], x[1:, ::2]), floats(4, 3)),
    "unique": (lambda x: tf.unique(x), np.array([1, 2, 1, 3])),
    "strings": (lambda x: tf.strings.join([x, "\0x"]), np.array([b"a", b"bc"], object)),
    "a string": (lambda x: tf.strings.upper(x), b"word"),
    "a scalar": (lambda x: x * x, np.float64(1.5)),
    "ints": (lambda x: (x // 2, tf.bitwise.invert(x)), np.array([5, -7], np.int8)),
    "bools": (lambda x: tf.reduce_any(x), np.array([True, False])),
    "complex": (lambda x: tf.signal.fft(tf.cast(x, tf.complex64)), floats(4)),
    "bfloat16": (lambda x: tf.cast(x, tf.bfloat16) * 3.0, floats(4)),
    "half": (lambda x: tf.cast(x, tf.float16) * 3.0, floats(4)),
    "quantized": (
        lambda x: tf.quantization.quantize(x, -1.0, 1.0, tf.qint8).output, floats(4)
    ),
    "empty": (lambda x: (x, tf.reduce_sum(x)), floats(0, 3)),
    "denormals": (lambda x: x * 0.5, np.array([np.nan, 1e-40, -0.0], np.float32)),
    "cond": (lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: -x), floats(3)),
    "while": (
        lambda x: tf.while_loop(lambda i, y: i < 9, lambda i, y: (i + 1, y * 1.1), [0, x]),
        floats(3),
    ),
    "gradient": (lambda x: tf.gradients(tf.reduce_sum(tf.tanh(x) ** 2), [x])[0], floats(3)),
    "a function": (lambda x: tf.function(lambda y: y * 3.0, autograph=False)(x), floats(3)),
    "assert": (lambda x: asserted(x), floats(3)),
    "stateless random": (lambda x: tf.random.stateless_normal([3], x), np.array([1, 2])),
    "colocated": (lambda x: colocated(x), floats(3)),
    "map_fn": (lambda x: tf.map_fn(lambda row: tf.reduce_sum(row), x), floats(4, 3)),
    "sorted": (lambda x: tf.argsort(x), floats(5)),
    "large": (lambda x: x @ tf.transpose(x), floats(300, 40)),
}  # fmt: skip


def asserted(x):
    with tf.control_dependencies([tf.debugging.assert_less(x, 100.0)]):
        return tf.identity(x)


def colocated(x):
    with v1.colocate_with(tf.constant(1.0)):
        return x + 1.0


@pytest.mark.parametrize(
    ("name", "lowered"), [*((name, False) for name in CATALOGUE), ("cond", True), ("while", True)]
)
def test_programs_of_sessions_give_the_same(name, lowered):
    function, value = CATALOGUE[name]
    if lowered:
        v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as g:
            value = np.asarray(value, object if isinstance(value, bytes) else None)
            dtype = tf.string if value.dtype == object else value.dtype
            x = v1.placeholder(dtype, value.shape, name="x")
            y = function(x)
    finally:
        if lowered:
            v1.enable_control_flow_v2()
    compare(g, y, {x: value})


@pytest.fixture
def xyz():
    """Build a graph with placeholders x and a, y = 2 x, and z = y + a."""
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [None], name="x")
        a = v1.placeholder_with_default(1.0, [], name="a")
        y = tf.multiply(x, 2.0, name="y")
        z = tf.add(y, a, name="z")
        v1.placeholder(tf.int8, [], name="small")
        tf.no_op("nothing")
        tf.zeros([2, 1], tf.int64)
        tf.constant([4], tf.int64, name="dims")
    return g, x, a, y, z


Pair = collections.namedtuple("Pair", "one two")


def test_fetches(xyz):
    g, x, _, y, z = xyz
    sparse = tf.SparseTensor(g.get_tensor_by_name("zeros:0"), y, g.get_tensor_by_name("dims:0"))
    value = {x: [1.0, 2.0]}
    nothing = g.get_operation_by_name("nothing")
    slices = tf.IndexedSlices(y, z)
    for fetches in (
        y, "y:0", y.op, "y", nothing, [y, z], (y, z), Pair(y, [z]), {"b": y, "a": (z, {"c": y})},
        [], (), {}, [[], y], [y, y], [y, nothing], sparse, [sparse, y], slices,
        collections.OrderedDict(b=y, a=z), {1: y, 2: z},
    ):  # fmt: skip
        empty = not tf.nest.flatten(fetches)
        compare(g, fetches, value, executor=None if empty else "plan")
    compare(g, x, value, executor=None)
    compare(g, [x, y], value)


def test_feeds(xyz):
    g, x, a, y, z = xyz
    for feed_dict in (
        {x: [1.0, 2.0]}, {x: np.ones(2)}, {x: np.ones(2, np.float32)}, {"x:0": [1]},
        {x: [1.0], a: 3.0}, {x: [1.0], a: 3}, {x: [1.0], a: np.float64(3)}, {x: [1.0], a: True},
        {y: [5.0]}, {y: [5.0], x: [1.0]}, {x: [], a: 1.0}, {(x, a): (np.ones(1), 2.0)},
        {x: np.ones(4, np.float32)[::2]}, {x: np.ones(2, ">f4")}, {x: (1.0, 2.0)},
    ):  # fmt: skip
        compare(g, z, feed_dict)


def test_errors_of_wrong_calls(xyz):
    g, x, a, _, z = xyz
    other = tf.constant(1.0)
    for fetches, feed_dict in (
        (z, None), (z, {x: [[1.0]]}), (z, {x: "text"}), (z, {x: None}), (z, {x: tf.ones([2])}),
        (z, {x: [1.0], a: [1.0]}), (z, {"no:0": 1.0}), (z, {"x": 1.0}), (z, {x: [1.0], 5: 1.0}),
        (z, {x: [[1.0], [1.0, 2.0]]}), (z, {x: object()}), ("no:0", {x: [1.0]}), (None, None),
        (5, None), ([z, None], {x: [1.0]}), (other, None), ("small:0", {"small:0": 300}),
        (z, {"small:0": 300, x: [1.0]}), (z, {x: 1.5}), (z, [x]), ({"a": object()}, None),
    ):  # fmt: skip
        _, want = compare(g, fetches, feed_dict, executor=None, calls=1)
        assert isinstance(want, Failure), (fetches, feed_dict)


def test_feeds_of_operations():
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [None], name="x")
        values, places = tf.unique(x)
        failing = tf.debugging.Assert(tf.reduce_sum(x) > 100.0, [x])
        with tf.control_dependencies([failing]):
            checked = tf.identity(x, name="checked")
        with tf.control_dependencies([x.op, checked.op]):
            after = tf.constant(1.0) + 1.0
        doubled, cast, twice = values * 2.0, tf.cast(places, tf.int64), checked * 2.0
    value = {x: [1.0, 1.0, 2.0]}
    for fetches, feed_dict in (
        (doubled, {values: [5.0]}), ([values, places], {**value, places: [7]}),
        ([values, cast], {**value, places: [7]}),
        (after, {x: [500.0], checked: [1.0]}), (twice, {checked: [1.0]}),
        (after, {x: [500.0]}), (after, {x: [500.0], "Unique:0": [5.0]}), (checked.op, {x: [500.0]}),
    ):  # fmt: skip
        compare(g, fetches, feed_dict)
    for fetches, feed_dict in (
        (after, value), (after, {**value, checked: [1.0]}), (checked.op, {checked: [1.0]}),
        (after, {checked: [1.0]}), (failing, {x: [500.0]}), (failing, value),
    ):  # fmt: skip
        compare(g, fetches, feed_dict, executor=None)


def test_a_plan_that_computes_something_else(xyz, monkeypatch):
    from fastops._graphs import trial

    monkeypatch.setattr(trial, "alike", lambda *_: False)
    g, x, _, _, z = xyz
    session, _ = compare(g, z, {x: [1.0]}, executor="tensorflow")
    assert "results of TensorFlow's session differ" in session.describe()[0]["reason"]


def test_strings_as_feeds():
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.string, name="x")
        y = tf.strings.join([x, "!"])
    mine, theirs = graph.Session(g), v1.Session(graph=g)
    for value in (
        "a", b"a\0", "\xe9", ["a", "\xe9"], [["a"], ["b"]], np.array(["a", "\xe9"]), ("a", "b"),
        np.array([b"a"]), 5, [5], ["a", 5], ["a", None], None, [["a"], ["b", "c"]], 1.5, [True],
    ):  # fmt: skip
        for _ in range(2):
            want = outcome(theirs.run, y, {x: value})
            assert difference(flat(outcome(mine.run, y, {x: value})), flat(want)) is None
    assert [row["executor"] for row in mine.describe()] == ["plan"]


def test_errors_of_wrong_calls_after_a_plan_exists(xyz):
    """The wrong calls come when a plan has been made already."""
    g, x, a, _, z = xyz
    mine, theirs = graph.Session(g), v1.Session(graph=g)
    for _ in range(3):
        mine.run(z, {x: [1.0], a: 1.0})
    for value in ([[1.0]], "text", None, tf.ones([2]), [[1.0], [1.0, 2.0]], object(), 1.5):
        want = outcome(theirs.run, z, {x: value, a: 1.0})
        assert isinstance(want, Failure)
        assert outcome(mine.run, z, {x: value, a: 1.0}) == want
    assert_same_bits(mine.run(z, {x: [1.0], a: 1.0}), np.float32([3.0]))
    assert [row["executor"] for row in mine.describe()] == ["plan"]


def test_kernels_that_fail():
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [None, None], name="x")
        y = tf.matmul(x, tf.ones([2, 2]), name="y")
        checked = tf.debugging.assert_less(x, 100.0, message="too much")
        i = v1.placeholder(tf.int32, name="i")
        picked = tf.gather(tf.constant([1.0, 2.0]), i)
    for fetches, good, bad in (
        (y, {x: [[1.0, 2.0]]}, {x: [[1.0]]}),
        (checked, {x: [[1.0]]}, {x: [[200.0]]}),
        (picked, {i: 1}, {i: 7}),
    ):
        mine, theirs = graph.Session(g), v1.Session(graph=g)
        for feed in (good, good, bad, bad, good):
            got, want = (outcome(session.run, fetches, feed) for session in (mine, theirs))
            assert difference(flat(got), flat(want)) is None
            assert isinstance(want, Failure) == (feed is bad)
        (described,) = mine.describe()
        assert described["executor"] == "plan"


def test_state_is_in_one_place():
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=1.0, use_resource=True)
        r = v1.get_variable("r", initializer=1.0, use_resource=False)
        x = v1.placeholder(tf.float32, [])
        more = [v1.assign_add(v, x), v1.assign_add(r, x)]
        pure = x * 2.0
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1])), -1
        )
        looked = table.lookup(tf.constant(["a", "b"]))
        queue = v1.FIFOQueue(3, tf.float32)
        put, got = queue.enqueue(x), queue.dequeue()
        number = v1.random_uniform([2], seed=1)
        numbers = v1.data.make_one_shot_iterator(tf.data.Dataset.range(9)).get_next()
        init = [v1.global_variables_initializer(), v1.tables_initializer()]
    mine, theirs = graph.Session(g), v1.Session(graph=g)
    for _ in range(3):
        for fetches in (
            init, v, r, more, [v, r], pure, looked, put, got, number, numbers, [v, pure]
        ):  # fmt: skip
            got_, want = (outcome(session.run, fetches, {x: 3.0}) for session in (mine, theirs))
            assert difference(flat(got_), flat(want)) is None
    executors = {tuple(row["fetches"]): row["executor"] for row in mine.describe()}
    for fetch in (pure, v, [v, pure]):
        names = tuple(g.as_graph_element(tensor).name for tensor in tf.nest.flatten(fetch))
        assert executors.pop(names) == "plan"
    assert set(executors.values()) == {"tensorflow"}
    assert all(row["reason"] for row in mine.describe() if row["executor"] == "tensorflow")


@pytest.mark.parametrize("stateful", [False, True])
def test_python_runs_once_in_each_run(stateful):
    """The trial of a plan would run it a second time."""
    calls = []

    def doubled(a):
        calls.append(float(a))
        return a * np.float32(2.0)

    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=1.0, use_resource=True)
        x = v1.placeholder(tf.float32, [])
        y = tf.numpy_function(doubled, [x], tf.float32, stateful=stateful)
        y.set_shape([])
        fetches = [y + 1.0, v1.assign_add(v, y)]
        init = v1.global_variables_initializer()
    session = graph.Session(g)
    session.run(init)
    for fetch, want in zip(fetches, (7.0, 7.0), strict=True):
        calls.clear()
        for i in range(4):
            assert float(session.run(fetch, {x: 3.0})) == want + 6.0 * i * (fetch is fetches[1])
        assert calls == [3.0] * 4
    described = [row for row in session.describe() if tuple(row["fetches"]) != (init.name,)]
    assert {row["executor"] for row in described} == {"tensorflow"}


def test_random_numbers_follow_their_seeds():
    with tf.Graph().as_default() as g:
        tf.random.set_seed(1)
        y = v1.random_normal([3])
    mine, theirs = graph.Session(g), v1.Session(graph=g)
    for _ in range(4):
        assert_same_bits(mine.run(y), theirs.run(y))


def test_the_graph_grows(xyz):
    g, x, _, y, z = xyz
    session = graph.Session(g)
    for _ in range(2):
        session.run(z, {x: [1.0]})
    with g.as_default():
        more = tf.square(z, name="more")
    for _ in range(3):
        assert_same_bits(session.run(more, {x: [1.0]}), np.float32([9.0]))
        assert_same_bits(session.run([y, "more:0"], {x: [1.0]})[1], np.float32([9.0]))
    assert {row["executor"] for row in session.describe()} == {"plan"}


def test_the_default_session(xyz):
    g, x, _, y, z = xyz
    with graph.Session(g) as session:
        assert v1.get_default_session() is session
        assert v1.get_default_graph() is g is session.graph
        for _ in range(3):
            assert_same_bits(z.eval({x: [1.0]}), np.float32([3.0]))
            y.op.run({x: [1.0]})
            session.run(z, {x: [1.0]})
    assert {row["executor"] for row in session.describe()} == {"plan"}
    theirs = v1.Session(graph=g)
    theirs.close()
    want = outcome(theirs.run, z, {x: [1.0]})
    assert want.kind is RuntimeError
    assert outcome(session.run, z, {x: [1.0]}) == want


def test_the_default_graph():
    with tf.Graph().as_default() as g:
        tf.constant(1.0)
        assert graph.Session().graph is g
    with pytest.raises(TypeError, match=r"must be a tf.Graph, but got"):
        graph.Session("graph")
    with tf.Graph().as_default() as g:
        assert outcome(graph.Session(g).run, []) == outcome(v1.Session(graph=g).run, [])


def test_other_methods_of_a_session(xyz):
    g, x, _, y, z = xyz
    session = graph.Session(g)
    assert [device.name for device in session.list_devices()] == [
        device.name for device in v1.Session(graph=g).list_devices()
    ]
    for _ in range(3):
        assert_same_bits(session.make_callable(z, [x])([1.0]), np.float32([3.0]))
        assert session.make_callable(g.get_operation_by_name("nothing"))() is None
        assert_same_bits(session.make_callable("zeros:0")(), np.zeros([2, 1], np.int64))
    metadata = v1.RunMetadata()
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    assert_same_bits(session.run(z, {x: [1.0]}, options, metadata), np.float32([3.0]))
    assert metadata.step_stats.dev_stats
    handle = session.partial_run_setup([y, z], [x, "a:0"])
    assert_same_bits(session.partial_run(handle, y, {x: [1.0]}), np.float32([2.0]))
    assert_same_bits(session.partial_run(handle, z, {"a:0": 5.0}), np.float32([7.0]))


def test_results_belong_to_the_caller(xyz):
    g, x, _, y, _ = xyz
    with g.as_default():
        same = tf.identity(x)
    session = graph.Session(g)
    value = np.ones(3, np.float32)
    for _ in range(3):
        result = session.run(same, {x: value})
        assert result.flags.writeable
        assert not np.shares_memory(result, value)
        result += 1.0
        assert session.run(y, {x: value}).tolist() == [2.0, 2.0, 2.0]


def test_lists_that_change(xyz):
    g, x, _, y, z = xyz
    session = graph.Session(g)
    fetches = [y]
    for _ in range(3):
        session.run(fetches, {x: [1.0]})
    fetches.append(z)
    assert len(session.run(fetches, {x: [1.0]})) == 2


def test_devices(xyz):
    g, x, _, _, z = xyz
    session = graph.Session(g)
    for _ in range(3):
        with tf.device("/CPU:0"):
            assert_same_bits(session.run(z, {x: [1.0]}), np.float32([3.0]))
    assert session.describe() == []
    for _ in range(3):
        assert_same_bits(session.run(z, {x: [1.0]}), np.float32([3.0]))
    assert [row["executor"] for row in session.describe()] == ["plan"]
    with tf.Graph().as_default() as g, tf.device("/GPU:7"):
        nowhere = tf.constant(1.0) * 2.0
    compare(g, nowhere, executor=None)


def test_tapes_do_not_see_sessions(xyz):
    g, x, _, _, z = xyz
    session = graph.Session(g)
    with tf.GradientTape():
        for _ in range(3):
            assert_same_bits(session.run(z, {x: [1.0]}), np.float32([3.0]))


def test_threads(xyz):
    g, x, _, _, z = xyz
    session = graph.Session(g)
    failures = []

    def work(number):
        for _ in range(200):
            if session.run(z, {x: [number]}).tolist() != [2.0 * number + 1.0]:
                failures.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_sessions_end(xyz):
    g, x, _, _, z = xyz
    session = graph.Session(g)
    for _ in range(3):
        session.run(z, {x: [1.0]})
    session = weakref.ref(session)
    gc.collect()
    assert session() is None


def test_plans_are_bounded(xyz, monkeypatch):
    from fastops._graphs import session as _session

    monkeypatch.setattr(_session, "MAX_SESSION_RUNS", 3)
    g, x, *_ = xyz
    with g.as_default():
        many = [x * float(number) for number in range(6)]
    session = graph.Session(g)
    for _ in range(2):
        for number, one in enumerate(many):
            assert session.run(one, {x: [1.0]}).tolist() == [number]
    assert len(session.describe()) == 3


# ---------------------------------------------------------------------------------------------
# Variables of sessions
# ---------------------------------------------------------------------------------------------


def twins(g, init):
    """Return a session of fastops, one of TensorFlow, and a function that runs both.

    The function asserts that both give the same result, and returns it.
    """
    mine, theirs = graph.Session(g), v1.Session(graph=g)

    def run(fetches, feed_dict=None):
        want = outcome(theirs.run, fetches, feed_dict)
        got = outcome(mine.run, fetches, feed_dict)
        assert difference(flat(got), flat(want)) is None
        return want

    run(init)
    return mine, theirs, run


def executor_of(session, *fetches):
    """Return the executor that runs some fetches, and the reason if it is TensorFlow's."""
    elements = [session.graph.as_graph_element(fetch) for fetch in fetches]
    tensors = [element.name for element in elements if isinstance(element, tf.Tensor)]
    targets = [element.name for element in elements if isinstance(element, tf.Operation)]
    (described,) = [
        row
        for row in session.describe()
        if (row["fetches"], row["targets"]) == (tensors, targets)
    ]  # fmt: skip
    return described["executor"], described["reason"]


OPTIMIZERS = {
    "sgd": lambda: v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: v1.train.AdamOptimizer(0.01),
    "rmsprop": lambda: v1.train.RMSPropOptimizer(0.01, centered=True),
    "ftrl": lambda: v1.train.FtrlOptimizer(0.1),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training(optimizer):
    with tf.Graph().as_default() as g:
        x, y = v1.placeholder(tf.float32, [None, 3]), v1.placeholder(tf.int32, [None])
        w = v1.get_variable("w", initializer=floats(3, 4), use_resource=True)
        b = v1.get_variable("b", initializer=np.zeros(4, np.float32), use_resource=True)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w) + b)
        )
        step = v1.train.get_or_create_global_step()
        train = OPTIMIZERS[optimizer]().minimize(loss, global_step=step)
        init = v1.global_variables_initializer()
        everything = v1.global_variables()
    mine, theirs, run = twins(g, init)
    for size in (2, 5, 5, 1, 7):
        run([loss, train], {x: floats(size, 3, seed=size), y: np.arange(size) % 4})
    assert executor_of(mine, loss, train) == ("plan", None)
    assert run(step) == 5
    run(everything)
    run(everything)
    assert executor_of(mine, *everything) == ("plan", None)
    # TensorFlow and plans work on the same variables.
    options = v1.RunOptions()
    feed = {x: floats(3, 3), y: [0, 1, 2]}
    mine.run([loss, train], feed, options=options)
    theirs.run([loss, train], feed)
    run([loss, train], feed)
    run(everything)


STATES = {
    "assign": lambda v: v.assign(v + 1.0),
    "updates": lambda v: v.assign_add(v.assign_sub([[1.0, 2.0]] * 2) * 2.0),
    "gather": lambda v: tf.gather(v, [1, 0]),
    "scatter": lambda v: v1.scatter_add(v, [0, 1, 0], [[1.0, 1.0]] * 3),
    "slices": lambda v: v[0, 1].assign(7.0),
    "cond": lambda v: tf.cond(tf.reduce_sum(v) > 0.0, lambda: v * 2.0, lambda: v - 1.0),
    "while": lambda v: tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y + v), (0, tf.zeros([2, 2]))
    ),
    "initialized": lambda v: v1.is_variable_initialized(v),
    "shape": lambda v: v1.shape(v),
}


@pytest.mark.parametrize("name", STATES)
def test_variables(name):
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=floats(2, 2), use_resource=True)
        y = STATES[name](v)
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, init)
    for _ in range(4):
        run(y)
        run(v)
    assert {row["executor"] for row in mine.describe() if row["fetches"]} == {"plan"}


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "complex64", "int64", "string", "uint8"])
def test_variables_of_other_dtypes(dtype):
    with tf.Graph().as_default() as g:
        value = tf.constant(["a", "bc"]) if dtype == "string" else tf.cast([0, 3], dtype)
        v = v1.get_variable("v", initializer=value, use_resource=True)
        x = v1.placeholder(dtype, [2])
        change = v.assign(x).op
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, init)
    for value in ([b"", b"d"], [b"e", b"f"]):
        value = (
            value if dtype == "string" else np.asarray([len(value[0]), 1], x.dtype.as_numpy_dtype)
        )
        run(change, {x: value})
        run(v)
    run(change, {x: value})
    executors = [executor_of(mine, fetches) for fetches in (change, v)]
    assert executors == [("plan", None)] * 2


def test_variables_that_come_and_go():
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=[1.0], use_resource=True)
        more = v.assign_add([1.0])
        ends = tf.raw_ops.DestroyResourceOp(resource=v.handle)
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, [])
    for _ in range(3):
        assert isinstance(run(v), Failure)  # the variable has no value
        run(init)
        for _ in range(3):
            run(v)
            run(more)
        run(ends)
        assert isinstance(run(more), Failure)
        assert isinstance(run(v), Failure)
    assert executor_of(mine, more) == ("plan", None)


@pytest.mark.parametrize("kind", ["stock", "fastops"])
def test_variables_that_are_destroyed_leave_no_memory(kind):
    """Later variables reuse the memory of destroyed ones, which TensorFlow's allocator may keep.

    Their values are not constants, because a session would keep these. The test runs in its own
    process, in which nothing else has left free memory.
    """
    python(f"""
        from memory import allocated
        from fastops import graph
        v1 = tf.compat.v1
        size = 20_000_000
        with tf.Graph().as_default() as g:
            x = v1.placeholder(tf.float32, [])
            zeros = v1.zeros_initializer
            v = v1.get_variable("v", [size], initializer=zeros, use_resource=True)
            some = tf.gather(v, [0]) + x
            ends = tf.raw_ops.DestroyResourceOp(resource=v.handle)
            init = v.assign(tf.fill([size], x), read_value=False)
        session = v1.Session(graph=g) if {kind!r} == "stock" else graph.Session(g)
        for _ in range(3):
            session.run(init, {{x: 1.0}})
            for _ in range(3):
                session.run(some, {{x: 1.0}})
            alive = allocated()
            session.run(ends)
            try:
                session.run(some, {{x: 1.0}})
            except tf.errors.NotFoundError:
                next = tf.fill([size], 1.0)
            print(allocated() - alive)
            assert allocated() - alive < 8e6  # not the 80 MB of all variables
            del next
        if {kind!r} == "fastops":
            *_, row = (row for row in session.describe() if row["fetches"])
            assert row["executor"] == "plan", row
    """)


def test_writes_in_any_order():
    """If nothing orders the writes, TensorFlow's executor runs the graph."""
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=1.0, use_resource=True)
        w = v1.get_variable("w", initializer=1.0, use_resource=True)
        more, less = v.assign_add(1.0), v.assign_sub(1.0)
        other = w.assign_add(2.0)
        with tf.control_dependencies([other]):
            then = w.read_value()
        inside = tf.cond(v > 0.0, lambda: v.assign_add(1.0), lambda: v.read_value())
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, init)
    for _ in range(3):
        mine.run([more, less])
        mine.run([more, v])
        mine.run(inside)
        run([other, then])
    for fetches in ([more, less], [more, v]):
        executor, reason = executor_of(mine, *fetches)
        assert executor == "tensorflow"
        assert reason.startswith(text_of("access_order"))
    assert executor_of(mine, inside)[0] == "tensorflow"
    assert executor_of(mine, other, then) == ("plan", None)


def test_writes_beside_branches():
    """A branch does not wait for inputs that it does not need."""
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=1.0, use_resource=True)
        w = v1.get_variable("w", initializer=1.0, use_resource=True)
        flag = v1.placeholder(tf.bool, [])
        more = g.as_graph_element(v.assign_add(1.0))
        inside = tf.cond(flag, lambda: v.read_value() * 2.0, lambda: more)
        through = tf.cond(flag, lambda: tf.constant(3.0), lambda: more)
        then = g.as_graph_element(v.assign(through))
        with tf.control_dependencies([more]):
            apart = tf.cond(flag, lambda: w.read_value(), lambda: more)
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, init)
    for _ in range(3):
        mine.run([inside, then], {flag: True})
        mine.run(inside, {flag: True})
        mine.run(then, {flag: True})
        run([v.initializer, w.initializer])
        run(apart, {flag: True})
    for target in (inside, then):
        executor, reason = executor_of(mine, target)
        assert executor == "tensorflow"
        in_a_function = text_of("read_in_function", "cond reads v")
        assert reason == in_a_function or reason.startswith(text_of("access_order"))
    assert executor_of(mine, apart) == ("plan", None)


CHANGES = [
    lambda v, value, other, flag: v.assign(value * 0.5),
    lambda v, value, other, flag: v.assign_add(value),
    lambda v, value, other, flag: v.assign_sub(value * 0.1),
    lambda v, value, other, flag: v.read_value(),
    lambda v, value, other, flag: tf.gather(v, [2, 0, 1]) + value,
    lambda v, value, other, flag: v1.scatter_add(v, [0, 2], [1.0, 2.0]),
    lambda v, value, other, flag: tf.cond(flag, lambda: v.read_value() * 2.0, lambda: value),
    lambda v, value, other, flag: tf.raw_ops.ResourceApplyMomentum(
        var=v.handle, accum=other.handle, lr=0.1, grad=value, momentum=0.9
    ),
]

# ``ResourceStridedSliceAssign`` writes to the variable after it has released its lock. If another
# operation replaces the value at that time, TensorFlow writes to memory that has been freed.
ORDERED_CHANGES = [*CHANGES, lambda v, value, other, flag: v[1:].assign(value[:2])]


def variables_at_random(random):
    """Return a random graph that reads and writes variables, its fetches, and its feeds."""
    with tf.Graph().as_default() as g:
        x, flag = v1.placeholder(tf.float32, [3]), v1.placeholder(tf.bool, [])
        variables = [
            v1.get_variable(name, initializer=floats(3, seed=seed), use_resource=True)
            for seed, name in enumerate("abcd")
        ]
        values, made = [x], []
        ordered = random.random() < 0.7
        changes = ORDERED_CHANGES if ordered else CHANGES
        for _ in range(random.integers(2, 9)):
            with tf.control_dependencies(
                [operation for operation in made if ordered or random.random() < 0.4]
            ):
                v, other = (variables[i] for i in random.choice(4, 2, replace=False))
                value = values[random.integers(len(values))]
                change = changes[random.integers(len(changes))]
                operation = g.as_graph_element(change(v, value, other, flag))
            made.append(operation if isinstance(operation, tf.Operation) else operation.op)
            values += [operation] if isinstance(operation, tf.Tensor) else []
        chosen = [element for element in (*made, *values[1:]) if random.random() < 0.5]
        return g, chosen or made[-1:], x, flag, variables


def test_variables_at_random():
    executors = collections.Counter()
    for seed in range(40):
        random = np.random.default_rng(seed)
        g, fetches, x, flag, variables = variables_at_random(random)
        with g.as_default():
            init = v1.global_variables_initializer()
        mine, _, run = twins(g, init)
        for size in range(4):
            feed = {x: floats(3, seed=seed + size), flag: bool(random.integers(2))}
            mine.run(fetches, feed)
            executor, _ = executor_of(mine, *fetches)
            if executor == "tensorflow":
                break  # several results are valid, so the sessions may differ
            run(init)
            run(fetches, feed)
            run(variables)
        executors[executor] += 1
    assert executors["plan"] > 20
    assert executors["tensorflow"] > 2


def test_runs_that_fail_half_way():
    """Writes before the failure remain, and no write happens twice."""
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=[1.0, 1.0], use_resource=True)
        x, i = v1.placeholder(tf.float32), v1.placeholder(tf.int32)
        more = v.assign_add([1.0, 1.0])
        with tf.control_dependencies([more]):
            bad = tf.gather(x, i, name="bad")
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, init)
    good = {x: [1.0], i: 0}
    for feed in (good, good, {x: [1.0], i: 3}, good, {x: [2.0, 3.0], i: -1}, good):
        assert isinstance(run(bad, feed), Failure) == (feed is not good)
        run(v)
    assert run(v).tolist() == [7.0, 7.0]
    assert executor_of(mine, bad) == ("plan", None)


def test_operations_run_once():
    """Operations without a value return None, and are run."""
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=0.0, use_resource=True)
        more = tf.raw_ops.AssignAddVariableOp(resource=v.handle, value=1.0)
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, init)
    for _ in range(5):
        assert run(more) is None
        run([more])
        run({"more": more, "nothing": []})
    assert run(v) == 15.0
    assert executor_of(mine, more) == ("plan", None)


def test_threads_share_variables():
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=np.int64(0), use_resource=True)
        more = v.assign_add(1)
        init = v1.global_variables_initializer()
    mine, _, run = twins(g, init)
    run(more)
    run(more)
    assert executor_of(mine, more) == ("plan", None)
    seen = []

    def work():
        seen.extend(mine.run(more) for _ in range(300))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mine.run(v) == 1202
    assert len(seen) == 1200


def test_sessions_have_their_own_variables():
    with tf.Graph().as_default() as g:
        v = v1.get_variable("v", initializer=0.0, use_resource=True)
        more = v.assign_add(1.0)
        init = v1.global_variables_initializer()
    one, other = graph.Session(g), graph.Session(g)
    for session in (one, other):
        session.run(init)
    for _ in range(4):
        one.run(more)
    assert [session.run(v) for session in (one, other, one, other)] == [4.0, 0.0, 4.0, 0.0]
    one.close()
    assert isinstance(outcome(one.run, v), Failure)
    assert other.run(more) == 1.0


# ---------------------------------------------------------------------------------------------
# Saved models
# ---------------------------------------------------------------------------------------------


class Module(tf.Module):
    """A module with several signatures, variables, a table with an asset, and a state."""

    def __init__(self, words):
        self.w = tf.Variable(floats(2, 3), name="w")
        self.count = tf.Variable(0, name="count")
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
            ),
            -1,
        )  # fmt: skip

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32, "z"), tf.TensorSpec([None, 2], tf.float32, "a")
        ]
    )  # fmt: skip
    def both(self, z, a):
        return {"y": tf.nn.softmax(z @ self.w), "b": tf.tanh(a), "a": a - z}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, "by")])
    def counted(self, by):
        self.count.assign_add(by)
        return {"count": self.count.read_value()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "word")])
    def looked_up(self, word):
        return {"number": self.table.lookup(word), "upper": tf.strings.upper(word)}

    @tf.function(input_signature=[])
    def nothing(self):
        return {"one": tf.constant(1.0)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Write a SavedModel of TensorFlow 2."""
    words = tmp_path_factory.mktemp("words") / "words.txt"
    words.write_text("no\nyes\n")
    path = tmp_path_factory.mktemp("saved") / "module"
    module = Module(words)
    tf.saved_model.save(
        module,
        str(path),
        signatures={
            "serving_default": module.both, "counted": module.counted,
            "looked_up": module.looked_up, "nothing": module.nothing,
        },
    )  # fmt: skip
    return path


CALLS = {
    "serving_default": {"z": floats(4, 2), "a": floats(4, 2, seed=1)},
    "counted": {"by": np.int32(2)},
    "looked_up": {"word": np.array([b"yes", b"maybe"], object)},
    "nothing": {},
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["arrays", "tensors", "lists"])
def test_signatures(saved, name, kind):
    loaded = tf.saved_model.load(str(saved))
    theirs, model = loaded.signatures[name], graph.load(saved, name)
    inputs = dict(CALLS[name])
    if kind == "tensors":
        inputs = {key: tf.constant(value) for key, value in inputs.items()}
    elif kind == "lists":
        inputs = {key: value.tolist() for key, value in inputs.items()}
    for _ in range(3):
        want = theirs(**inputs)
        got = model(**inputs)
        assert list(got) == list(want)
        assert_same([*got.values()], [*want.values()])
    executor = model.describe()["executor"]
    assert (model.reason is None) == (executor == "plan")
    assert executor == "plan" or name == "looked_up", model.reason


def test_the_description_of_a_model(saved):
    model = graph.load(saved)
    assert str(inspect.signature(model)) == "(*, a, z)"
    assert [*model.inputs] == ["a", "z"]
    assert model.inputs["z"].shape == [None, 2]
    assert {name: spec.dtype for name, spec in model.outputs.items()} == {
        "y": tf.float32, "b": tf.float32, "a": tf.float32
    }  # fmt: skip
    assert f"Run serving_default of {saved}." in model.__doc__
    assert "z : float32, shape (None, 2)" in model.__doc__
    assert repr(model) == f"<fastops.graph.Model: (a, z) -> {', '.join(model.outputs)}>"
    assert model.__name__ == "serving_default"


def test_errors_of_wrong_inputs(saved):
    model = graph.load(saved)
    good = {"a": floats(1, 2), "z": floats(1, 2)}
    model(**good)
    for wrong, message in (
        ({"a": None}, "as its input 'a', not NoneType: "),
        ({"a": "text"}, "as its input 'a', not str: "),
        ({"a": [[1.0], [1.0, 2.0]]}, "as its input 'a', not list: "),
        (
            {"a": floats(1, 3)},
            r"float32 of shape \(None, 2\) as its input 'a', not a tensor of shape",
        ),
        ({"a": tf.ones([2])}, "as its input 'a', not a tensor of shape"),
        ({"a": tf.ones([1, 2], tf.float64)}, "as its input 'a', not a tensor of float64"),
        ({"a": object()}, "as its input 'a', not object: "),
        ({"b": 1.0}, "has no input 'b': it has 'a', 'z'"),
    ):
        with pytest.raises(TypeError, match=message):
            model(**{**good, **wrong})
    with pytest.raises(TypeError, match=f"serving_default of {saved} misses its input 'z'"):
        model(a=floats(1, 2))
    with pytest.raises(TypeError, match="misses its input 'z'"):
        model(a=floats(1, 2), y=floats(1, 2))
    with pytest.raises(TypeError, match="takes its inputs by name: 'a', 'z'"):
        model(floats(1, 2), floats(1, 2))
    counted = graph.load(saved, "counted")
    assert int(counted(3)["count"]) == 3
    with pytest.raises(TypeError, match="got input 'by' twice"):
        counted(3, by=3)
    assert int(counted(by=1)["count"]) == 4


def test_known_calls_run_no_python(saved, monkeypatch):
    """A call only compares the signature of its inputs with that of an earlier call."""
    model = graph.load(saved)
    values = {"a": floats(3, 2), "z": floats(3, 2)}
    want = tf.saved_model.load(str(saved)).signatures["serving_default"](
        **{name: tf.constant(value) for name, value in values.items()}
    )
    tensors = {name: tf.constant(value) for name, value in values.items()}
    lists = {name: value.tolist() for name, value in values.items()}
    calls = [
        tensors,
        values,
        dict(reversed(tensors.items())),
        {"a": tensors["a"], "z": values["z"]},
        lists,
        {"a": tf.Variable(values["a"]), "z": values["z"]},
        {name: value.astype(np.float64) for name, value in values.items()},
    ]
    for inputs in calls:
        got = model(**inputs)
        assert [*got] == [*want]
        assert_same([*got.values()], [*want.values()])
    seen = []
    tensors_of = type(model._contract).tensors
    monkeypatch.setattr(
        type(model._contract),
        "tensors",
        lambda self, inputs: seen.append(inputs) or tensors_of(self, inputs),
    )
    for inputs in calls[:4]:
        assert_same([*model(**inputs).values()], [*want.values()])
    assert not seen
    for inputs in calls[4:]:
        assert_same([*model(**inputs).values()], [*want.values()])
    assert len(seen) == 3, "the inputs are converted"
    with pytest.raises(TypeError, match="as its input 'a', not a tensor of float64"):
        model(a=tf.ones([3, 2], tf.float64), z=tensors["z"])


def test_models_without_a_plan(saved, monkeypatch):
    """Results have names, although TensorFlow runs the model."""
    for name in ("serving_default", "looked_up"):
        theirs = tf.saved_model.load(str(saved)).signatures[name]
        model = graph.load(saved, name)
        model._contract.planned.plan = None
        model._contract.planned.allow_bare()
        inputs = {
            name: make(spec.dtype.name, *(2 if side is None else side for side in spec.shape))
            for name, spec in model.inputs.items()
        }
        want = theirs(**inputs)
        for _ in range(3):
            got = model(**inputs)
            assert [*got] == [*want]
            assert_same([*got.values()], [*want.values()])


def test_models_in_functions_and_on_tapes(saved):
    model, loaded = graph.load(saved), tf.saved_model.load(str(saved))
    theirs = loaded.signatures["serving_default"]
    z, a = make("float32", 4, 2), make("float32", 4, 2, seed=1)

    def gradient(function):
        with tf.GradientTape() as tape:
            tape.watch(z)
            total = tf.reduce_sum(function(z=z, a=a)["y"] ** 2)
        return tape.gradient(total, z)

    assert_same(gradient(model), gradient(theirs))
    traced = tf.function(lambda z: model(z=z, a=a)["y"], autograph=False)
    assert_same(traced(z), tf.function(lambda z: theirs(z=z, a=a)["y"], autograph=False)(z))
    fast = fastops.function(lambda z: model(z=z, a=a)["y"], autograph=False)
    for _ in range(2):
        assert_same(fast(z), traced(z))


def test_results_of_models_belong_to_the_caller(saved, tmp_path):
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [2], name="x")
        tf.identity(x, name="y")
    graph.save(g, tmp_path / "same.pb")
    model = graph.load(tmp_path / "same.pb")
    value = np.ones(2, np.float32)
    for _ in range(2):
        result = model(x=value)["y"]
        value += 1.0
        assert result.numpy().tolist() == (value - 1.0).tolist()


def test_models_of_keras(tmp_path):
    keras.utils.set_random_seed(1)
    net = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(2)]
    )
    net.export(tmp_path / "net", verbose=False)
    model = graph.load(tmp_path / "net")
    loaded = tf.saved_model.load(str(tmp_path / "net"))
    theirs = loaded.signatures["serving_default"]
    ((name, _),) = model.inputs.items()
    for rows in (1, 4):
        x = floats(rows, 3)
        for _ in range(2):
            assert_same([*model(x).values()], [*theirs(**{name: x}).values()])
    assert model.describe()["executor"] == "plan"
    (tmp_path / "net.keras").write_bytes(b"")
    with pytest.raises(ValueError, match=r"net.keras .*model.export"):
        graph.load(tmp_path / "net.keras")


@pytest.mark.parametrize("source", ["pb", "pbtxt", "bytes"])
def test_frozen_graphs(source, tmp_path):
    g = small()
    path = tmp_path / f"g.{source}"
    graph.save(g, path)
    model = graph.load(path.read_bytes() if source == "bytes" else path)
    x = floats(4, 2)
    session = v1.Session(graph=g)
    for _ in range(3):
        got = model(x)
        assert [*got] == ["most"]
        assert_same_bits(got["most"], session.run("most:0", {"x:0": x}))
    assert model.describe()["executor"] == "plan"
    assert str(inspect.signature(model)) == "(x)"
    model = graph.load(path.read_bytes() if source == "bytes" else path, outputs=["y", "most:0"])
    assert_same_bits(model(x)["y"], session.run("y:0", {"x:0": x}))
    name = "the GraphDef" if source == "bytes" else f"{path}"
    with pytest.raises(ValueError, match="has no signature 'other': it has 'serving_default'"):
        graph.load(path.read_bytes() if source == "bytes" else path, "other")
    del name


def test_names_of_inputs_and_outputs(tmp_path):
    with tf.Graph().as_default() as g:
        placeholder = v1.placeholder(tf.float32, [], name="in/one")
        two = v1.placeholder(tf.float32, [], name="in/two")
        parts = tf.split(tf.stack([placeholder, two], name="both"), 2, name="parts")
        tf.subtract(*[tf.reshape(part, []) for part in parts], name="less")
        tf.unique(tf.stack([placeholder, placeholder]), name="only")
    path = tmp_path / "g.pb"
    graph.save(g, path)
    model = graph.load(path)
    assert repr(model) == "<fastops.graph.Model: (in/one, in/two) -> less, only:0, only:1>"
    assert str(inspect.signature(model)) == "(**inputs)"
    got = model(**{"in/two": 2.0, "in/one": 7.0})
    assert [value.numpy().tolist() for value in got.values()] == [5.0, [7.0], [0, 0]]
    model = graph.load(path, inputs={"in": "in/two", "a": "in/one"}, outputs=["less"])
    assert str(inspect.signature(model)) == "(**inputs)"
    assert model(**{"in": 1.0, "a": 2.0})["less"].numpy() == 1.0
    model = graph.load(path, inputs={"b": "in/two", "a": "in/one:0"}, outputs={"c": "less"})
    assert {key: value.numpy() for key, value in model(a=7.0, b=2.0).items()} == {"c": 5.0}
    model = graph.load(path, inputs=["both"], outputs="less")
    assert model([3.0, 1.0])["less"].numpy() == 2.0
    for wrong, message in (
        ({"inputs": ["no"]}, "g.pb has no tensor 'no'"),
        ({"outputs": ["less:1"]}, "g.pb has no tensor 'less:1'"),
        ({"outputs": ["in/one:x"]}, "g.pb has no tensor 'in/one:x'"),
        ({"inputs": ["in/one"]}, "depend on more than the inputs: 'in/two'"),
        ({"outputs": []}, "has no outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            graph.load(path, **wrong)


def build_with_variables(*, use_resource=True):
    x = v1.placeholder(tf.float32, [None, 2], name="x")
    w = v1.get_variable("w", initializer=floats(2, 3), use_resource=use_resource)
    return x, tf.nn.softmax(tf.matmul(x, w), name="y")


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    """Write a SavedModel of TensorFlow 1, with two MetaGraphs."""
    path = tmp_path_factory.mktemp("saved") / "tagged"
    builder = v1.saved_model.Builder(str(path))
    for tags in (["serve"], ["serve", "double"]):
        with tf.Graph().as_default() as g, v1.Session(graph=g) as session:
            x, y = build_with_variables()
            if "double" in tags:
                y = y * 2.0
            signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
            session.run(v1.global_variables_initializer())
            if tags == ["serve"]:
                builder.add_meta_graph_and_variables(
                    session, tags, {"serving_default": signature, "second": signature}
                )
            else:
                builder.add_meta_graph(tags, {"serving_default": signature})
    builder.save()
    return path


@pytest.mark.parametrize("tags", ["serve", ["double", "serve"], None])
def test_tags(tagged, tags):
    model = graph.load(tagged / "saved_model.pb", tags=tags)
    loaded = tf.saved_model.load(str(tagged), tags=tags or ["serve"])
    theirs = loaded.signatures["serving_default"]
    x = floats(4, 2)
    for _ in range(2):
        assert_same(model(x=x)["y"], theirs(x=tf.constant(x))["y"])
    assert model.describe()["executor"] == "plan"
    with tf.Graph().as_default() as g, v1.Session(graph=g) as session:
        v1.saved_model.load(session, ["serve", "double"][: 1 + isinstance(tags, list)], str(tagged))
        name = "mul:0" if isinstance(tags, list) else "y:0"
        want = session.run(name, {"x:0": x})
    assert_same_bits(model(x=x)["y"], want)


def test_missing_tags(tagged, saved, tmp_path):
    with pytest.raises(ValueError, match=r"tagged has no MetaGraph with the tags 'gpu': it has "):
        graph.load(tagged, tags="gpu")
    with pytest.raises(ValueError, match=r"no MetaGraph with the tags 'gpu': it has 'serve'"):
        graph.load(saved, tags=["gpu"])
    graph.save(small(), tmp_path / "g.pb")
    with pytest.raises(ValueError, match="has no tags"):
        graph.load(tmp_path / "g.pb", tags="serve")


def test_tensors_of_saved_models(tagged, saved):
    model = graph.load(tagged, inputs=["x"], outputs={"product": "MatMul"})
    x = floats(4, 2)
    for _ in range(2):
        assert_same_bits(model(x)["product"], tf.matmul(x, floats(2, 3)))
    with pytest.raises(ValueError, match="has signatures"):
        graph.load(saved, inputs=["a"], outputs=["b"])


@pytest.mark.parametrize("use_resource", [True, False])
def test_meta_graphs(use_resource, tmp_path):
    with tf.Graph().as_default() as g, v1.Session(graph=g) as session:
        x, y = build_with_variables(use_resource=use_resource)
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=7)
        value = floats(4, 2)
        want = session.run(y, {x: value})
    model = graph.load(f"{prefix}.meta", inputs=["x"], outputs=["y"])
    for _ in range(2):
        assert_same_bits(model(x=value)["y"], want)
    assert model.describe()["executor"] == ("plan" if use_resource else "tensorflow")
    with pytest.raises(ValueError, match=r"7.meta has no signature 'serving_default': it has none"):
        graph.load(f"{prefix}.meta")
    with pytest.raises(ValueError, match="name its `outputs` too"):
        graph.load(f"{prefix}.meta", inputs=["x"])
    os.remove(f"{prefix}.index")
    with pytest.raises(ValueError, match=r"7.meta has variables, but there is no .*7.index"):
        graph.load(f"{prefix}.meta", outputs=["y"])


# ---------------------------------------------------------------------------------------------
# Files that are not what they should be
# ---------------------------------------------------------------------------------------------


def copy(source, target):
    """Copy a directory, and return it."""
    shutil.copytree(source, target)
    return target


def test_missing_files(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing.pb"):
        graph.load(tmp_path / "nothing.pb")
    with pytest.raises(ValueError, match=f"{tmp_path} is not a SavedModel"):
        graph.load(tmp_path)
    with pytest.raises(ValueError, match="has no signature 'other': it has 'counted', 'looked_up'"):
        graph.load(saved, "other")
    for name in ("variables.index", "variables.data-00000-of-00001"):
        broken = copy(saved, tmp_path / name)
        os.remove(broken / "variables" / name)
        with pytest.raises(ValueError, match=f"{broken} .*"):
            graph.load(broken)
    broken = copy(saved, tmp_path / "assets")
    os.remove(broken / "assets" / "words.txt")
    with pytest.raises(ValueError, match=r"words.txt"):
        graph.load(broken)


@pytest.mark.parametrize(
    "name",
    ["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"],
)
@pytest.mark.parametrize("size", [0, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("which", ["saved", "tagged"])
def test_saved_models_that_are_cut_short(which, name, size, tmp_path, request):
    broken = copy(request.getfixturevalue(which), tmp_path / "broken")
    whole = (broken / name).read_bytes()
    (broken / name).write_bytes(whole[: int(len(whole) * size)])
    with pytest.raises(ValueError, match=f"{broken}"):
        graph.load(broken)
    (broken / name).write_bytes(b"\xff" * len(whole))
    with pytest.raises(ValueError, match=f"{broken}"):
        graph.load(broken)
    (broken / name).write_bytes(whole)
    graph.load(broken)


@pytest.mark.parametrize("extension", ["pb", "pbtxt", "meta"])
def test_files_of_other_formats(extension, tmp_path):
    path = tmp_path / f"g.{extension}"
    for content in (b"", b"\0", b"text", b"\xff" * 100, bytes(range(256)), b"node {"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{path} "):
            graph.load(path)


def test_text_that_is_cut_short(tmp_path):
    path = tmp_path / "g.pbtxt"
    graph.save(small(), path)
    text = path.read_text()
    end = text.index("versions")
    for size in range(0, end, 50):
        path.write_text(text[:size].rstrip().rstrip("}"))
        with pytest.raises(ValueError, match=f"{path} "):
            graph.load(path)


def test_meta_graphs_as_text(tmp_path):
    with small().as_default() as g:
        meta = v1.train.export_meta_graph(str(tmp_path / "h.meta"))
        # This is what `as_text=True` writes, which fails in TensorFlow 2.20 with a newer protobuf.
        (tmp_path / "g.meta").write_text(text_format.MessageToString(meta))
        want = v1.Session(graph=g).run("most:0", {"x:0": [[1.0, 2.0]]})
    for name in ("g.meta", "h.meta"):
        model = graph.load(tmp_path / name, outputs="most")
        assert_same_bits(model([[1.0, 2.0]])["most"], want)


def test_models_are_loaded_while_graphs_are_built(saved):
    want = graph.load(saved)(**CALLS["serving_default"])
    with tf.Graph().as_default():
        model = graph.load(saved)
    for _ in range(2):
        assert_same([*model(**CALLS["serving_default"]).values()], [*want.values()])
    assert model.describe()["executor"] == "plan"


def test_unknown_ops(saved, tmp_path):
    definition = small().as_graph_def()
    definition.node[-1].op = "Unheard"
    path = tmp_path / "g.pb"
    path.write_bytes(definition.SerializeToString())
    with pytest.raises(ValueError, match=f"{path}: this TensorFlow has no op 'Unheard', .*'most'"):
        graph.load(path)
    with pytest.raises(ValueError, match="no op 'Unheard'"):
        graph.from_bytes(path.read_bytes())
    broken = copy(saved, tmp_path / "broken")
    data = (broken / "saved_model.pb").read_bytes()
    (broken / "saved_model.pb").write_bytes(data.replace(b"Softmax", b"Hardmax"))
    with pytest.raises(ValueError, match=r"no op 'Hardmax', .* in function "):
        graph.load(broken)


def test_variables_without_values(tmp_path):
    for use_resource in (True, False):
        with tf.Graph().as_default() as g:
            build_with_variables(use_resource=use_resource)
        graph.save(g, tmp_path / "g.pb")
        with pytest.raises(ValueError, match="'w' is a variable, and has no value here"):
            graph.load(tmp_path / "g.pb", outputs="y")


def test_closed_models_release_their_resources(saved):
    model = graph.load(saved)
    model(**CALLS["serving_default"])
    ended = weakref.ref(model)
    del model
    gc.collect()
    assert ended() is None
