"""Inputs other than plain tensors: composites, symbols, datasets, variants, resources, strings."""

import itertools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from recorder import distinct, settled
from support import DIRECT, Failure, assert_same, floats, outcome

import fastops
from fastops import raw_ops

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant(floats(3, 4))
TWO = tf.constant(2)


numbers = itertools.count()


def opened(result):
    """Return a result that `assert_same` can compare, with composites as class and components."""
    if not isinstance(result, tf.__internal__.CompositeTensor):
        return result
    return [type(result).__name__, *tf.nest.flatten(result, expand_composites=True)]


def unnamed(result):
    """Return a failure without the numbers in its message, which come from names of handles."""
    if not isinstance(result, Failure):
        return result
    return result._replace(message=re.sub(r"\d+", "#", result.message))


# ---------------------------------------------------------------------------------------------
# Composite and symbolic inputs
# ---------------------------------------------------------------------------------------------


class Convertible:
    """An object that becomes a tensor by TensorFlow's conversion protocol."""

    def __tf_tensor__(self, dtype=None, name=None):
        return tf.constant([1.0, 2.0], dtype, name=name)


def inputs_of_every_kind():
    array = tf.TensorArray(tf.float32, 2).write(0, [1.0, 2.0]).write(1, [3.0, 4.0])
    return {
        "ragged": tf.ragged.constant([[1.0, 2.0], [], [3.0]]),
        "ragged twice": tf.ragged.constant([[[1.0], [2.0, 3.0]], []]),
        "sparse": tf.sparse.from_dense([[0.0, 1.0], [2.0, 0.0]]),
        "slices": tf.IndexedSlices(
            tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2])
        ),
        "array": array,
        "dataset": tf.data.Dataset.range(3),
        "iterator": iter(tf.data.Dataset.range(3)),
        "optional": tf.experimental.Optional.from_value(X),
        "keras symbol": keras.Input((2,), name="x"),
        "keras variable": keras.Variable(floats(3, 4)),
        "spec": tf.TensorSpec([2]),
        "shape": tf.TensorShape([2, 3]),
        "protocol": Convertible(),
        "list": [np.float32(1.0), 2.0],
        "none": None,
    }


@pytest.mark.parametrize("kind", inputs_of_every_kind())
def test_inputs_that_are_not_tensors(kind):
    """TensorFlow's function dispatches, converts or rejects such inputs."""
    x = inputs_of_every_kind()[kind]
    with fastops.accelerated(only=["keras"]):  # this layer finds objects that contain variables
        pass

    def program(m):
        calls = [
            (m.Neg, {"x": x}),
            (m.Square, {"x": x}),
            (m.AddV2, {"x": x, "y": 1.0}),
            (m.Mul, {"x": X, "y": x}),
            (m.FloorMod, {"x": x, "y": x}),
            (m.Cast, {"x": x, "DstT": tf.float64}),
            (m.Reshape, {"tensor": x, "shape": [-1]}),
            (m.ConcatV2, {"values": [x, x], "axis": 0}),
            (m.Pack, {"values": [X, x]}),
            (m.IdentityN, {"input": [X, x]}),
            (m.StringJoin, {"inputs": [x, "a"]}),
        ]
        return [opened(outcome(op, **arguments)) for op, arguments in calls]

    want, paths = settled(program)
    # fastops converts a list of numbers if its dtype is known.
    if kind == "list":
        assert paths["Neg"] == paths["Square"] == paths["AddV2"] == [DIRECT]
    elif kind == "keras variable":
        assert paths["Neg"] == paths["Square"] == paths["Mul"] == paths["Reshape"] == [DIRECT]
        assert paths["AddV2"] == paths["FloorMod"] == paths["Pack"] == ["tensorflow:input_type"]
    else:
        assert distinct(paths) == {"tensorflow:input_type"}, paths
    composites = [
        result[0] for result in want if isinstance(result, list) and isinstance(result[0], str)
    ]
    assert composites == {
        "ragged": ["RaggedTensor"] * 3,
        "ragged twice": ["RaggedTensor"] * 3,
        "sparse": ["SparseTensor"] * 2,
    }.get(kind, [])
    if kind == "keras symbol":
        assert {failure.kind for failure in want} == {ValueError}


def test_ragged_tensors_by_their_parts():
    ragged = tf.ragged.constant([[1.0, -2.0, 0.5], [], [1.5, 2.5]])
    gaps = tf.constant([0, 2, 2, 5], tf.int64)

    def program(m):
        mapped = tf.ragged.map_flat_values(m.Tanh, x=ragged)
        sums = m.SegmentSum(data=ragged.values, segment_ids=ragged.value_rowids())
        dense = m.RaggedTensorToTensor(
            shape=tf.constant([-1, -1]),
            values=ragged.values,
            default_value=tf.constant(0.0),
            row_partition_tensors=[ragged.row_splits],
            row_partition_types=["ROW_SPLITS"],
        )
        ranges = m.RaggedRange(starts=gaps, limits=gaps + 3, deltas=tf.constant(1, tf.int64))
        with tf.GradientTape() as tape:
            tape.watch(ragged)
            loss = tf.reduce_sum(tf.ragged.map_flat_values(m.Square, x=ragged))
        return opened(mapped), sums, dense, ranges, opened(tape.gradient(loss, ragged))

    want, paths = settled(program)
    assert want[0][0] == want[4][0] == "RaggedTensor"
    assert paths == {
        op: [DIRECT]
        for op in ("Tanh", "SegmentSum", "RaggedTensorToTensor", "RaggedRange", "Square")
    }


def test_sparse_tensors_by_their_parts():
    sparse = tf.sparse.from_dense([[1.5, 0, -2], [0, 0, 0], [0.25, 3, 0], [0, 7, 1]])
    parts = {
        "a_indices": sparse.indices,
        "a_values": sparse.values,
        "a_shape": sparse.dense_shape,
    }

    def program(m):
        with tf.GradientTape() as tape:
            tape.watch([sparse.values, X])
            product = m.SparseTensorDenseMatMul(b=X, **parts)
        ordered = m.SparseReorder(
            input_indices=tf.reverse(sparse.indices, [0]),
            input_values=tf.reverse(sparse.values, [0]),
            input_shape=sparse.dense_shape,
        )
        twice = m.SparseAdd(
            **parts,
            **{name.replace("a_", "b_"): part for name, part in parts.items()},
            thresh=tf.constant(0.0),
        )
        dense = m.SparseToDense(
            sparse_indices=sparse.indices,
            output_shape=sparse.dense_shape,
            sparse_values=sparse.values,
            default_value=tf.constant(0.0),
        )
        return product, tape.gradient(product, [sparse.values, X]), ordered, twice, dense

    want, paths = settled(program)
    assert distinct(paths) == {DIRECT}, paths
    assert_same(want[-1], tf.sparse.to_dense(sparse))


class Scaled(keras.layers.Layer):
    """A layer that calls raw ops on tensors, variables and symbols of Keras."""

    def __init__(self, m):
        super().__init__()
        self.m = m

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], 2), initializer="ones")

    def call(self, x):
        product = self.m.MatMul(a=x, b=self.kernel.value)
        return self.m.Tanh(x=self.m.AddV2(x=product, y=0.25))


@pytest.mark.parametrize("eagerly", [True, False], ids=["eager", "function"])
def test_keras_models(eagerly):
    """A functional model is traced with symbols and trained to the same weights, bit for bit."""

    def program(m):
        keras.utils.clear_session()
        keras.utils.set_random_seed(0)
        x = keras.Input((4,))
        model = keras.Model(x, keras.layers.Dense(1)(Scaled(m)(x)))
        model.compile("adam", "mse", run_eagerly=eagerly)
        history = model.fit(X, X[:, :1], epochs=3, batch_size=2, shuffle=False, verbose=0)
        return [*model.get_weights(), model(X), np.array(history.history["loss"])]

    _, paths = settled(program)
    # Symbols are traced first; the last call, `model(X)`, is always eager.
    assert paths["MatMul"][0] == "tensorflow:graph"
    assert paths["MatMul"][-1] == DIRECT
    assert (paths["MatMul"].count(DIRECT) > 1) is eagerly
    assert distinct(paths) == {"tensorflow:graph", DIRECT}


def test_tensor_arrays():
    def program(m):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)
        for i in range(3):
            array = array.write(i, m.Neg(x=X[i]))
        first = m.Exp(x=array.read(0))
        stacked = m.Sum(input=array.stack(), axis=tf.constant(0))

        @tf.function
        def loop(x):
            outputs = tf.TensorArray(tf.float32, 3)
            for i in tf.range(3):
                outputs = outputs.write(i, m.Tanh(x=x[i]))
            return outputs.stack()

        with tf.GradientTape() as tape:
            tape.watch(X)
            y = loop(X)
        handle, flow = m.TensorArrayV3(size=2, dtype=tf.float32)
        flow = m.TensorArrayWriteV3(handle=handle, index=1, value=X, flow_in=flow)
        read = m.TensorArrayReadV3(handle=handle, index=1, flow_in=flow, dtype=tf.float32)
        size = m.TensorArraySizeV3(handle=handle, flow_in=flow)
        m.TensorArrayCloseV3(handle=handle)
        return first, stacked, y, tape.gradient(y, X), read, size

    _, paths = settled(program)
    for op in ("Neg", "Exp", "Sum"):
        assert set(paths.pop(op)) == {DIRECT}
    assert paths.pop("Tanh") == ["tensorflow:graph"]
    assert distinct(paths) == {"capi:op"}, paths


# ---------------------------------------------------------------------------------------------
# Datasets
# ---------------------------------------------------------------------------------------------


def test_functions_of_datasets():
    """Functions of datasets are traced; iteration over a dataset is eager."""

    def program(m):
        data = tf.data.Dataset.range(10).map(
            lambda i: m.Mul(x=m.Cast(x=i, DstT=tf.float32), y=0.5), num_parallel_calls=2
        )
        data = data.filter(lambda x: m.Less(x=x, y=4.0)).batch(3).prefetch(1)
        data = data.flat_map(lambda x: tf.data.Dataset.from_tensors(m.Tanh(x=x)))
        total = data.reduce(0.0, lambda total, x: m.AddV2(x=total, y=m.Sum(input=x, axis=0)))
        return [m.Neg(x=x) for x in data], [m.Neg(x=x) for x in data], total

    want, paths = settled(program)
    assert [len(results) for results in want[:2]] == [3, 3]
    assert paths.pop("Neg") == [DIRECT] * 6
    assert distinct(paths) == {"tensorflow:graph"}, paths


@pytest.mark.parametrize("wrap", [tf.py_function, tf.numpy_function], ids=["py", "numpy"])
def test_eager_calls_on_the_threads_of_a_dataset(wrap):
    def program(m):
        def double(x):
            x = m.AddV2(x=x, y=x)
            return x if wrap is tf.py_function else x.numpy()

        data = tf.data.Dataset.from_tensor_slices(X)
        data = data.map(lambda x: wrap(double, [x], tf.float32), num_parallel_calls=2)
        return list(data)

    want = program(tf.raw_ops)
    for _ in range(3):
        assert_same(program(raw_ops), want)
    counts = fastops.stats().ops["AddV2"]
    assert counts.direct + counts.tensorflow == 9
    assert counts.direct >= 6
    assert set(counts.reasons) == {"first_call"}


def test_datasets_by_their_ops():
    """A dataset is a variant, an iterator a resource, a mapped function an attribute."""
    kinds = {"output_types": [tf.int64], "output_shapes": [[None]]}
    scalar = {**kinds, "output_shapes": [[]]}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def square(x):
        return (x * x,)

    function = square.get_concrete_function()

    def program(m):
        data = m.RangeDataset(
            start=tf.constant(0, tf.int64),
            stop=tf.constant(7, tf.int64),
            step=tf.constant(1, tf.int64),
            **scalar,
        )
        data = m.MapDataset(input_dataset=data, other_arguments=[], f=function, **scalar)
        data = m.BatchDatasetV2(
            input_dataset=data, batch_size=tf.constant(3, tf.int64), drop_remainder=True, **kinds
        )
        iterator = m.AnonymousIteratorV3(**kinds)
        m.MakeIterator(dataset=data, iterator=iterator)
        results = [m.IteratorGetNext(iterator=iterator, **kinds)[0] for _ in range(2)]
        optional = m.IteratorGetNextAsOptional(iterator=iterator, **kinds)
        return (
            results,
            m.OptionalHasValue(optional=optional),
            outcome(m.IteratorGetNext, iterator=iterator, **kinds),
            m.DatasetCardinality(input_dataset=data),
        )

    want, paths = settled(program)
    assert [result.numpy().tolist() for result in want[0]] == [[0, 1, 4], [9, 16, 25]]
    assert not want[1].numpy()
    assert want[2].kind is tf.errors.OutOfRangeError
    assert paths.pop("MapDataset") == ["tensorflow:attr_value"], "a function"
    assert paths.pop("IteratorGetNext") == ["direct"] * 3
    assert distinct(paths) == {"capi:op"}, paths


# ---------------------------------------------------------------------------------------------
# Variants and resources
# ---------------------------------------------------------------------------------------------


def test_lists_of_tensors():
    kinds = {"element_dtype": tf.float32}
    shape, scalar = tf.constant([4]), tf.constant([], tf.int32)

    def program(m):
        items = m.TensorListFromTensor(tensor=X, element_shape=shape)
        pair = m.Pack(values=[items, m.ZerosLike(x=items)])
        same, first = (
            m.Identity(input=items),
            m.GatherV2(params=pair, indices=TWO - 2, axis=TWO - 2),
        )
        total = m.AddN(inputs=[items, items])
        changed = m.TensorListSetItem(input_handle=items, index=TWO, item=-X[1])
        nested = m.EmptyTensorList(
            element_shape=scalar, max_num_elements=TWO, element_dtype=tf.variant
        )
        nested = m.TensorListPushBack(input_handle=nested, tensor=changed)
        inner = m.TensorListPopBack(
            input_handle=nested, element_shape=scalar, element_dtype=tf.variant
        )
        with tf.GradientTape() as tape:
            tape.watch(X)
            h = m.TensorListFromTensor(tensor=X, element_shape=shape)
            y = m.TensorListStack(input_handle=h, element_shape=shape, **kinds)
            y = m.Square(x=y)
        lists = [items, same, first, total, inner.tensor, changed]
        return (
            [m.TensorListStack(input_handle=h, element_shape=shape, **kinds) for h in lists],
            m.TensorListGetItem(input_handle=items, index=TWO, element_shape=shape, **kinds),
            m.TensorListLength(input_handle=items),
            tape.gradient(y, X),
            outcome(m.TensorListGetItem, input_handle=items, index=9, element_shape=shape, **kinds),
            outcome(m.Neg, x=items),
        )

    want, paths = settled(program)
    assert_same(want[0][3], X + X)
    assert_same(want[0][4], want[0][5])
    assert want[-2].kind is tf.errors.InvalidArgumentError
    assert paths.pop("Square") == [DIRECT]
    assert paths.pop("Neg") == ["tensorflow:first_call"], "no call succeeds, so none is prepared"
    assert paths.pop("TensorListGetItem") == ["capi:op", "tensorflow:kernel_error"]
    assert distinct(paths) == {"capi:op", "capi:dtype"}, paths
    for op in ("Identity", "Pack", "GatherV2", "AddN", "ZerosLike"):
        assert set(paths[op]) == {"capi:dtype"}, "a variant passes through"


def test_optionals():
    kinds = {"output_types": [tf.float32, tf.string], "output_shapes": [[3, 4], []]}

    def program(m):
        full = m.OptionalFromValue(components=[X, tf.constant("text")])
        empty = m.OptionalNone()
        return (
            [
                m.OptionalHasValue(optional=optional)
                for optional in (full, empty, m.Identity(input=full))
            ],
            m.OptionalGetValue(optional=full, **kinds),
            outcome(m.OptionalGetValue, optional=empty, **kinds),
        )

    want, paths = settled(program)
    assert [value.numpy() for value in want[0]] == [True, False, True]
    assert want[2].kind is tf.errors.InvalidArgumentError
    assert paths.pop("OptionalGetValue") == ["capi:op", "tensorflow:kernel_error"]
    assert distinct(paths) == {"capi:op", "capi:dtype"}, paths


def test_variables_and_their_handles():
    def program(m):
        variable = tf.Variable(floats(3))
        handle = variable.handle
        empty = m.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="never assigned")
        other = m.Identity(input=handle)
        m.AssignVariableOp(resource=other, value=X[0, :3])
        m.AssignAddVariableOp(resource=handle, value=X[1, :3])
        results = [
            m.ReadVariableOp(resource=handle, dtype=tf.float32),
            m.VarIsInitializedOp(resource=handle),
            m.VarIsInitializedOp(resource=empty),
            outcome(m.ReadVariableOp, resource=empty, dtype=tf.float32),
            outcome(m.ReadVariableOp, resource=handle, dtype=tf.int32),
            outcome(m.AssignVariableOp, resource=handle, value=tf.constant([1, 2, 3])),
            outcome(m.AssignAddVariableOp, resource=handle, value=X[0, :2]),
            outcome(m.ReadVariableOp, resource=X, dtype=tf.float32),
            outcome(m.AddV2, x=handle, y=handle),
        ]
        m.DestroyResourceOp(resource=handle)
        results += [
            m.VarIsInitializedOp(resource=other),
            outcome(m.DestroyResourceOp, resource=handle, ignore_lookup_error=False),
        ]
        return [unnamed(result) for result in results]

    want, paths = settled(program)
    assert [bool(value) for value in want[1:3]] == [True, False]
    failures = [failure.kind for failure in want if isinstance(failure, Failure)]
    assert failures == [
        tf.errors.FailedPreconditionError,
        *[tf.errors.InvalidArgumentError] * 5,
    ]
    # An op whose calls all fail is never prepared. A call that may have changed state is not
    # repeated.
    assert paths == {
        "VarHandleOp": ["capi:op"],
        "Identity": ["capi:dtype"],
        "AssignVariableOp": [DIRECT, "tensorflow:first_call"],
        "AssignAddVariableOp": [DIRECT, DIRECT],
        "ReadVariableOp": [DIRECT, DIRECT, "tensorflow:first_call", "tensorflow:first_call"],
        "VarIsInitializedOp": [DIRECT] * 3,
        "AddV2": ["tensorflow:first_call"],
        "DestroyResourceOp": ["capi:op", "capi:op"],
    }


def test_tables():
    keys, values = np.array([b"a", b"b", b"a\0"]), tf.constant(floats(3, 2))
    kinds = {"key_dtype": tf.string, "value_dtype": tf.float32}

    def program(m):
        mutable = m.AnonymousMutableHashTableOfTensors(value_shape=[2], **kinds)
        m.LookupTableInsertV2(table_handle=mutable, keys=keys, values=values)
        m.LookupTableRemoveV2(table_handle=mutable, keys=np.array([b"b"]))
        dense = m.AnonymousMutableDenseHashTable(
            empty_key="", deleted_key="-", value_dtype=tf.int64
        )
        m.LookupTableInsertV2(
            table_handle=dense, keys=np.array([b"x", b"y"]), values=np.array([1, 2])
        )
        static = m.AnonymousHashTable(key_dtype=tf.int64, value_dtype=tf.int64)
        m.LookupTableImportV2(table_handle=static, keys=np.arange(3), values=np.arange(3) ** 2)
        exported = m.LookupTableExportV2(table_handle=mutable, Tkeys=tf.string, Tvalues=tf.float32)
        order = np.argsort(exported.keys.numpy())
        return (
            m.LookupTableFindV2(table_handle=mutable, keys=keys, default_value=X[0, :2]),
            m.LookupTableFindV2(
                table_handle=dense,
                keys=np.array([b"y", b"?"]),
                default_value=tf.constant(9, tf.int64),
            ),
            m.LookupTableFindV2(
                table_handle=static, keys=np.array([2, 9]), default_value=tf.constant(-1, tf.int64)
            ),
            [m.LookupTableSizeV2(table_handle=table) for table in (mutable, dense, static)],
            [part.numpy()[order] for part in exported],
            outcome(
                m.LookupTableFindV2,
                table_handle=mutable,
                keys=tf.constant([1]),
                default_value=X[0, :2],
            ),
        )

    want, paths = settled(program)
    assert want[-1].kind is tf.errors.InvalidArgumentError
    assert paths.pop("AnonymousMutableHashTableOfTensors") == ["capi:op"]
    assert paths.pop("AnonymousMutableDenseHashTable") == ["capi:op"]
    assert paths.pop("AnonymousHashTable") == ["capi:op"]
    assert paths["LookupTableFindV2"].pop() == "tensorflow:first_call", "the wrong dtype"
    assert distinct(paths) == {DIRECT}, paths


def test_queues():
    """Each queue has a name, as in `tf.queue`, since TensorFlow's kernel reuses its first queue."""
    kinds = {"component_types": [tf.float32, tf.string]}

    def program(m):
        name = f"queue {next(numbers)}"
        queue = m.FIFOQueueV2(capacity=5, shapes=[[4], []], shared_name=name, **kinds)
        padding = m.PaddingFIFOQueueV2(
            capacity=5, shapes=[[-1], []], shared_name=f"{name}, padding", **kinds
        )
        priority = m.PriorityQueueV2(
            component_types=[tf.float32],
            shapes=[[4]],
            capacity=5,
            shared_name=f"{name}, by priority",
        )
        for i in range(3):
            m.QueueEnqueueV2(handle=queue, components=[X[i], tf.constant(f"row {i}")])
            m.QueueEnqueueV2(handle=padding, components=[X[i, : i + 1], tf.constant("")])
            m.QueueEnqueueV2(handle=priority, components=[tf.constant(9 - i, tf.int64), X[i]])
        several = m.QueueDequeueManyV2(handle=padding, n=TWO, **kinds)
        first = m.QueueDequeueV2(handle=priority, component_types=[tf.int64, tf.float32])
        wrong = outcome(m.QueueEnqueueV2, handle=queue, components=[X, tf.constant("")])
        m.QueueCloseV2(handle=queue)
        late = outcome(m.QueueEnqueueV2, handle=queue, components=[X[0], tf.constant("late")])
        upto = m.QueueDequeueUpToV2(handle=queue, n=TWO + 3, **kinds)
        empty = outcome(m.QueueDequeueV2, handle=queue, **kinds)
        sizes = [m.QueueSizeV2(handle=handle) for handle in (queue, padding, priority)]
        closed = m.QueueIsClosedV2(handle=queue)
        return several, first, upto, sizes, closed, unnamed(wrong), unnamed(late), unnamed(empty)

    want, paths = settled(program)
    assert [size.numpy() for size in want[3]] == [0, 1, 2]
    assert [failure.kind for failure in want[-3:]] == [
        tf.errors.InvalidArgumentError,
        tf.errors.CancelledError,
        tf.errors.OutOfRangeError,
    ]
    for op in ("FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2"):
        assert paths.pop(op) == ["tensorflow:first_call"], "a name is an attribute"
    assert paths.pop("QueueDequeueV2") == ["capi:op", "tensorflow:first_call"], "every call fails"
    assert paths.pop("QueueSizeV2") == ["direct"] * 3
    assert paths.pop("QueueIsClosedV2") == ["direct"]
    assert distinct(paths) == {"capi:op"}, paths


def test_generators_of_random_numbers():
    """A generator's state is a variable, so all paths draw from one sequence."""
    shape = tf.constant([5])
    algorithm = tf.constant(1, tf.int64)

    def program(m):
        generator = tf.random.Generator.from_seed(3)
        state = generator.state.handle
        values = []
        for other in (m, tf.raw_ops, m):
            values += [
                m.StatefulUniform(resource=state, algorithm=algorithm, shape=shape),
                other.StatefulStandardNormalV2(resource=state, algorithm=algorithm, shape=shape),
                generator.uniform([2]),
            ]
        m.RngSkip(resource=state, algorithm=algorithm, delta=tf.constant(7, tf.int64))
        return values, m.ReadVariableOp(resource=state, dtype=tf.int64)

    _, paths = settled(program)
    assert distinct(paths) == {DIRECT}, paths


# ---------------------------------------------------------------------------------------------
# Strings
# ---------------------------------------------------------------------------------------------

TEXTS = {
    "empty": [b"", b""],
    "nul": [b"\0", b"a\0b\0"],
    "not utf-8": [b"\xff\xfe", b"\x80abc\xc3"],
    "unicode": ["stra\u00dfe", "\u65e5\u672c \U0001f600"],
    "around the inline size": [b"x" * size for size in range(20, 27)],
    "ten megabytes": [b"0123456789" * 1_000_000, b"\0" * 10_000_000],
}


@pytest.mark.parametrize("kind", TEXTS)
def test_strings_of_every_kind(kind):
    x = tf.constant(TEXTS[kind])
    assert x.dtype == tf.string

    def program(m):
        joined = m.StringJoin(inputs=[x, x], separator="\u00e9\0")
        both = m.ConcatV2(values=[x, joined], axis=0)
        encoded = m.EncodeBase64(input=x, pad=True)
        return [
            joined,
            both,
            m.Identity(input=x),
            m.Pack(values=[x, x]),
            m.Unpack(value=x, num=len(TEXTS[kind])),
            m.GatherV2(params=x, indices=tf.constant([1, 0, 1]), axis=tf.constant(0)),
            m.Reshape(tensor=x, shape=tf.constant([-1, 1])),
            m.Equal(x=x, y=x),
            m.StringLength(input=x),
            m.StringLength(input=x, unit="UTF8_CHAR"),
            m.Substr(input=x, pos=tf.constant(0), len=TWO),
            m.StringToHashBucketFast(input=x, num_buckets=1 << 40),
            m.StringToHashBucketStrong(input=x, num_buckets=99, key=[1, 2]),
            m.StringUpper(input=x),
            m.StringUpper(input=x, encoding="utf-8") if kind != "not utf-8" else None,
            encoded,
            m.DecodeBase64(input=encoded),
            m.RegexFullMatch(input=x, pattern=tf.constant(".*b.?")),
            m.StaticRegexReplace(input=x, pattern="a", rewrite="\u00e9", replace_global=True),
            m.ReduceJoin(inputs=x, reduction_indices=tf.constant([0]), separator="|"),
            m.UnicodeTranscode(
                input=x, input_encoding="UTF-8", output_encoding="UTF-16-BE", errors="replace"
            ),
            m.Where(condition=m.NotEqual(x=x, y=m.ZerosLike(x=x))),
        ]

    want, paths = settled(program)
    assert distinct(paths) == {DIRECT}, paths
    bare = [text.encode() if isinstance(text, str) else text for text in TEXTS[kind]]
    assert want[2].numpy().tolist() == bare
    assert want[8].numpy().tolist() == [len(text) for text in bare]


@pytest.mark.parametrize(
    "array",
    [
        np.array([b"a\0", b"\0", b""]),  # NumPy drops trailing zeros
        np.array([b"a\0", b"\0", b""], object),
        np.array(["\u00e9", "\U0001f600\0x", ""]),
        np.array(["\u00e9", b"\xff", ""], object),
        np.array(b"scalar"),
        np.array([], "S3"),
        np.array([[b"ab"], [b"cd"]])[:, ::-1].T,
    ],
    ids=str,
)
def test_arrays_of_strings(array):
    def program(m):
        return [
            m.StringLength(input=array),
            m.StringUpper(input=array),
            m.Equal(x=array, y=array),
            m.Equal(x=array, y=tf.constant("a")),
        ]

    _, paths = settled(program)
    assert distinct(paths) == {DIRECT}, paths


def test_strings_outside_of_arrays():
    """Strings that TensorFlow accepts are converted directly; for others, TensorFlow raises."""

    def program(m):
        return [
            outcome(m.StringUpper, input=text)
            for text in ("a\0", b"\xff", "\ud800", ["a", b"b"], ["a", 1], [], np.str_("x"), b"")
        ] + [outcome(m.StringJoin, inputs=["a", tf.constant("b")])]

    _, paths = settled(program)
    wrong = ["tensorflow:input_type"]
    assert paths["StringUpper"] == [
        *(DIRECT, DIRECT, *wrong, DIRECT, *wrong, DIRECT, *wrong, DIRECT)
    ]
    assert paths["StringJoin"] == [DIRECT]


def test_strings_as_attributes():
    """Equal bytes and text are two keys; NUL and invalid UTF-8 are passed on unchanged."""
    x = tf.constant(["a", "b"])

    def program(m):
        return [
            outcome(m.ReduceJoin, inputs=x, reduction_indices=TWO - 2, separator=separator)
            for separator in ("", "\0", b"\0", b"\xff\0", "\u00e9", "\u00e9".encode(), "\ud800", 7)
        ] + [
            outcome(m.StringUpper, input=x, encoding=encoding)
            for encoding in ("utf-8", b"utf-8", "x")
        ]

    want, paths = settled(program)
    assert paths == {
        "ReduceJoin": [DIRECT] * 6 + ["tensorflow:first_call"] * 2,
        "StringUpper": [DIRECT] * 2 + ["tensorflow:first_call"],
    }
    assert [failure.kind for failure in want if isinstance(failure, Failure)] == [
        UnicodeEncodeError,
        TypeError,
        tf.errors.InvalidArgumentError,
    ]
