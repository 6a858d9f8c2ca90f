"""Memory: growth in long runs, references, and buffers."""

import gc
import itertools
import sys
import threading
import weakref
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from memory import growth
from stress import seconds, times
from support import python, took
from tensorflow.python.eager import context

import fastops
from fastops import ops, raw_ops

pytestmark = pytest.mark.usefixtures("fresh", "frozen")


@pytest.fixture(scope="module")
def frozen():
    """Freeze existing objects, so that collections see only new ones and are 100 times faster."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


# ---------------------------------------------------------------------------------------------
# Memory in use
# ---------------------------------------------------------------------------------------------


class Calls:
    """Calls of ops of fastops or TensorFlow, one kind in each method. Results are dropped."""

    def __init__(self, m):
        self.m = m
        self.x = tf.constant([1.0, 2.0])
        self.wrong = tf.constant([1.0, 2.0, 3.0])
        self.array = np.float32([1, 2])
        self.axis, self.pair = tf.constant(0), tf.constant([2])
        self.negative = tf.constant([-2])
        self.text = tf.constant("a longer text " * 9)
        self.large = tf.ones([300, 300])
        self.variable = tf.Variable(self.x)
        self.numbers = itertools.count(1)

    # Calls on every path.

    def direct(self):
        self.m.AddV2(x=self.x, y=self.x)

    def large_buffers(self):
        self.m.AddV2(x=self.large, y=self.large)

    def lists(self):
        self.m.Unpack(value=self.m.ConcatV2(values=[self.x, self.x], axis=self.axis), num=4, axis=0)

    def converted(self):
        self.m.AddV2(x=self.array, y=2.0)

    def variables(self):
        self.m.AssignAddVariableOp(resource=self.variable.handle, value=self.x)
        self.m.Neg(x=self.variable)

    def strings(self):
        self.m.StringJoin(inputs=[self.text, self.text])

    def capi(self):
        self.m.RandomUniform(shape=self.pair, dtype=tf.float32, seed=1)

    def fallback(self):
        self.m.AddV2(x=[1.0, 2.0], y=self.x)

    def call_sites(self):
        self.m.AddV2(**dict.fromkeys(["x", "y"], self.x), name=str(next(self.numbers)))

    def graphs(self):
        with tf.Graph().as_default():
            self.m.AddV2(x=1.0, y=2.0)

    # Calls that raise.

    def errors_of_arguments(self):
        with suppress(TypeError):
            self.m.AddV2(x=self.x, z=self.x)
            raise AssertionError

    def errors_of_attributes(self):
        with suppress(TypeError):
            self.m.LeakyRelu(features=self.x, alpha="steep")
            raise AssertionError

    def errors_of_conversion(self):
        with suppress(ValueError):
            self.m.AddV2(x=self.x, y=np.array(["a", "b"]))
            raise AssertionError

    # Tapes that are used completely, or not.

    def taped(self):
        with tf.GradientTape() as tape:
            y = self.m.Mul(x=self.m.Exp(x=self.variable), y=self.x)
        tape.gradient(y, self.variable)

    def tapes_without_gradient(self):
        with tf.GradientTape(persistent=True) as tape:
            y = self.m.Mul(x=self.m.Exp(x=self.variable), y=self.x)
            del tape
            self.m.AddV2(x=y, y=self.x)

    def tapes_of_which_part_is_used(self):
        with tf.GradientTape(persistent=True) as tape:
            y = self.m.Exp(x=self.variable)
            z = self.m.Mul(x=y, y=y)
        tape.gradient(y, self.variable)
        del z

    def tapes_that_errors_end(self):
        with suppress(ValueError), tf.GradientTape() as tape:
            tape.watch(self.x)
            self.m.Exp(x=self.x)
            raise ValueError

    def tapes_of_generators(self):
        def steps():
            with tf.GradientTape() as tape:
                tape.watch(self.x)
                while True:
                    yield self.m.Exp(x=self.x)

        generator = steps()
        next(generator)
        next(generator)

    def tapes_in_tapes(self):
        with tf.GradientTape() as outer:
            outer.watch(self.x)
            with tf.GradientTape() as inner:
                inner.watch(self.x)
                y = self.m.Mul(x=self.x, y=self.x)
            self.m.Exp(x=inner.gradient(y, self.x))

    def tapes_that_begin_again(self):
        with tf.GradientTape() as tape:
            tape.watch(self.x)
            self.m.Exp(x=self.x)
            tape.reset()
            with tape.stop_recording():
                self.m.Exp(x=self.x)

    def tapes_in_cycles(self):
        with tf.GradientTape() as tape:
            y = self.m.Exp(x=self.variable)
        cycle = [tape, y]
        cycle.append(cycle)

    # Calls that keep memory in TensorFlow, which keeps every number, thread and error.

    def new_numbers(self):
        self.m.AddV2(x=self.x, y=float(next(self.numbers)))

    def threads(self):
        thread = threading.Thread(target=self.lists)
        thread.start()
        thread.join()

    def kernel_errors(self):
        with suppress(tf.errors.InvalidArgumentError):
            self.m.AddV2(x=self.x, y=self.wrong)
            raise AssertionError

    def errors_of_stateful_kernels(self):
        with suppress(tf.errors.InvalidArgumentError):
            self.m.AssignAddVariableOp(resource=self.variable.handle, value=self.wrong)
            raise AssertionError

    def errors_of_the_runtime(self):
        with suppress(tf.errors.InvalidArgumentError):
            self.m.RandomUniform(shape=self.negative, dtype=tf.float32, seed=1)
            raise AssertionError

    def accumulators(self):
        with tf.autodiff.ForwardAccumulator(self.x, self.x) as accumulator:
            y = self.m.Mul(x=self.m.Exp(x=self.x), y=self.x)
            del accumulator
            self.m.Exp(x=y)

    # Calls with a new value of an attribute, each made twice.

    def new_floats(self):
        alpha = float(self.new_value())
        for _ in range(2):
            self.m.LeakyRelu(features=self.x, alpha=alpha)

    def new_texts(self):
        separator = str(self.new_value())
        for _ in range(2):
            self.m.StringJoin(inputs=[self.text, self.text], separator=separator)

    def new_ints(self):
        num_buckets = self.new_value()
        for _ in range(2):
            self.m.StringToHashBucketFast(input=self.text, num_buckets=num_buckets)

    def new_lists(self):
        boundaries = [0.0, float(self.new_value())]
        for _ in range(2):
            self.m.Bucketize(input=self.x, boundaries=boundaries)

    def new_seeds(self):
        seed = self.new_value()
        for _ in range(2):
            self.m.RandomUniform(shape=self.pair, dtype=tf.float32, seed=seed)

    def new_value(self):
        value = next(self.numbers)
        if value % 200 == 0:
            context.context().clear_kernel_cache()  # TensorFlow's own cache has no limit
        return value


# The full amount is ten million calls of ops, and fewer with tapes and errors, which take longer.
FLAT = {
    "direct": 3_500_000,
    "large_buffers": 100_000,
    "lists": 1_000_000,
    "converted": 1_000_000,
    "variables": 1_000_000,
    "strings": 400_000,
    "capi": 400_000,
    "fallback": 100_000,
    "call_sites": 400_000,
    "graphs": 2_000,
    "errors_of_arguments": 100_000,
    "errors_of_attributes": 50_000,
    "errors_of_conversion": 20_000,
    "taped": 50_000,
    "tapes_without_gradient": 100_000,
    "tapes_of_which_part_is_used": 20_000,
    "tapes_that_errors_end": 100_000,
    "tapes_of_generators": 50_000,
    "tapes_in_tapes": 20_000,
    "tapes_that_begin_again": 50_000,
    "tapes_in_cycles": 50_000,
}
# Memory that TensorFlow keeps for these calls is also kept with fastops, and no more.
KEPT = {
    "new_numbers": 50_000,
    "threads": 10_000,
    "kernel_errors": 30_000,
    "errors_of_stateful_kernels": 30_000,
    "errors_of_the_runtime": 30_000,
    "accumulators": 10_000,
}
# The full amount is a million values. TensorFlow keeps some forty bytes for each.
VALUES = dict.fromkeys(["new_floats", "new_texts", "new_ints", "new_lists", "new_seeds"], 200_000)


def watch_flat():
    calls = Calls(raw_ops)
    for name, full in FLAT.items():
        grown = growth(getattr(calls, name), times(full))
        print(f"{name}: {grown}, {times(full)} calls")
        assert not grown.exceeds(), name
    seen = fastops.stats()
    print(f"{seen.direct} direct, {seen.capi} capi, {seen.tensorflow} tensorflow")
    assert seen.direct + seen.capi + seen.tensorflow > times(10_000_000)
    assert seen.direct > 0.9 * times(10_000_000)


def watch_beside_tensorflow(kinds, share):
    """Compare with TensorFlow's growth over a share of the calls."""
    calls, reference = Calls(raw_ops), Calls(tf.raw_ops)
    bound = fastops.cache_info()["entries_per_op"]
    for name, full in kinds.items():
        grown = growth(getattr(calls, name), times(full))
        theirs = growth(getattr(reference, name), times(share * full))
        print(f"{name}: {grown}, {times(full)} calls; TensorFlow's {theirs}")
        assert not grown.exceeds(theirs, 1.1 * times(full) / times(share * full)), name
        assert max(fastops.cache_info()["entries"].values()) <= bound


def watch_kept():
    watch_beside_tensorflow(KEPT, share=1)


def watch_values():
    watch_beside_tensorflow(VALUES, share=0.2)
    seen = fastops.stats().ops
    for op_name in ("LeakyRelu", "StringJoin", "StringToHashBucketFast", "Bucketize"):
        assert seen[op_name].direct == seen[op_name].tensorflow > times(200_000)
        assert seen[op_name].reasons.keys() == {"first_call"}
    assert seen["RandomUniform"].capi == seen["RandomUniform"].tensorflow > times(200_000)
    entries, bound = fastops.cache_info().values()
    assert {entries[op_name] for op_name in seen} == {min(bound, times(200_000) * 5 // 4 + 50)}


@pytest.mark.parametrize("watch", [watch_flat, watch_kept, watch_values])
def test_memory(watch):
    out = python(
        f"""
        import sys
        sys.path.append({str(Path(__file__).parent)!r})
        from test_memory import gc, {watch.__name__}
        gc.freeze()  # ignore existing objects: collections take a hundredth of the time
        {watch.__name__}()
        """,
        timeout=seconds(3000),
    )
    print(out)


# ---------------------------------------------------------------------------------------------
# References and buffers
# ---------------------------------------------------------------------------------------------


def calls_of_every_kind():
    """Return calls, by kind, as op and arguments. They must not change reference counts."""
    x = tf.constant([1.0, 2.0, 3.0])
    m = tf.constant([[1.0, 2.0]])
    v = tf.Variable([1.0, 2.0, 3.0])
    array = np.float32([4, 5, 6])
    values = [x, v, x]
    strides = [1, 1, 1, 1]
    image = tf.ones([1, 3, 3, 1])
    kernel = tf.ones([2, 2, 1, 1])
    shape = tf.constant([2])
    number = 1234.5
    name = "".join(["some", "thing"])
    return {
        "direct": (ops.add_v2, {"x": x, "y": x, "name": name}),
        "converted": (ops.add_v2, {"x": array, "y": number}),
        "variable": (ops.add_v2, {"x": v, "y": x}),
        "list": (ops.add_n, {"inputs": values}),
        "attributes": (
            ops.conv2d,
            {"input": image, "filter": kernel, "strides": strides, "padding": "SAME"},
        ),
        "outputs": (ops.unpack, {"value": x, "num": 3}),
        "namedtuple": (ops.top_kv2, {"input": x, "k": 2}),
        "assignment": (ops.assign_variable_op, {"resource": v.handle, "value": x}),
        "capi": (ops.random_uniform, {"shape": shape, "dtype": tf.float32, "seed": 1}),
        "tensorflow": (ops.pack, {"values": [number, 2.0], "axis": 0}),
        "kernel error": (ops.mat_mul, {"a": m, "b": m}),
        "type error": (ops.add_v2, {"x": x, "y": name}),
        "unknown argument": (ops.add_v2, {"x": x, "z": x}),
        "attribute error": (ops.tile, {"input": x, "multiples": array}),
        "uncomparable attribute": (ops.squeeze, {"input": m, "axis": [np.int64(0)]}),
    }


def run(op, arguments, times):
    for _ in range(times):
        with suppress(TypeError, ValueError, tf.errors.OpError):
            op(**arguments)


def counts(op, arguments):
    flat = [*arguments.values(), arguments, op, None, True]
    flat += [item for value in arguments.values() if isinstance(value, list) for item in value]
    return [sys.getrefcount(value) for value in flat if id(value) not in (id(None), id(True))]


@pytest.mark.parametrize("kind", calls_of_every_kind())
@pytest.mark.parametrize("scope", [nullcontext, tf.GradientTape], ids=["plain", "taped"])
def test_calls_keep_no_references(kind, scope):
    op, arguments = calls_of_every_kind()[kind]
    with scope():
        run(op, arguments, 4)
    gc.collect()
    before = counts(op, arguments)
    with scope():
        run(op, arguments, 50)
    gc.collect()
    assert counts(op, arguments) == before


def test_calls_make_no_garbage():
    """Calls leave nothing behind that only the garbage collector could free."""
    kinds = {k: v for k, v in calls_of_every_kind().items() if "error" not in k}
    del kinds["unknown argument"]
    for op, arguments in kinds.values():
        run(op, arguments, 4)
    gc.collect()
    gc.disable()
    try:
        for op, arguments in kinds.values():
            run(op, arguments, 20)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_collections_in_the_middle_of_calls():
    """A collection can start inside any call and run any code: flushes, other calls of the op."""
    python("""
        import gc
        gc.freeze()
        x = tf.constant([1.0, 2.0])
        fastops.set_cache_size(1)

        def flush(phase, info):
            fastops.clear_cache()

        def call(phase, info):
            if phase == "start":
                ops.add_v2(x=x, y=x)
                ops.leaky_relu(features=x, alpha=0.3)

        gc.set_threshold(1)
        for meddler in (flush, call):
            gc.callbacks.append(meddler)
            for i in range(300):
                parts = ops.unpack(value=ops.concat_v2(values=[x, x], axis=0), num=4)
                assert [float(part) for part in parts] == [1, 2, 1, 2]
                ops.leaky_relu(features=x, alpha=float(i % 5))
                assert ops.add_v2(x=tf.Variable(1.0), y=2.0).numpy() == 3.0
            gc.callbacks.remove(meddler)
    """)


@pytest.mark.quick
def test_results_are_freed_when_they_are_dropped():
    x = tf.constant([1.0, 2.0])
    for _ in range(3):
        result = ops.add_v2(x=x, y=x)
        parts = ops.unpack(value=x, num=2)
        top = ops.top_kv2(input=x, k=1)
    gone = [weakref.ref(value) for value in (result, *parts, *top)]
    assert fastops.stats().direct == 6
    del result, parts, top
    assert [ref() for ref in gone] == [None] * 5


def test_arrays_are_released_and_their_memory_is_not_reused_too_early():
    for _ in range(3):
        array = np.arange(1000, dtype=np.float32)
        alive = weakref.ref(array)
        same = ops.identity(input=array)
        shaped = ops.reshape(tensor=array, shape=np.int32([10, 100]))
        view = ops.add_v2(x=array, y=1).numpy()
        del array
        gc.collect()
        junk = [np.full(1000, 7, np.float32) for _ in range(50)]
        assert same.numpy().tolist() == list(range(1000))
        assert shaped.numpy().ravel().tolist() == list(range(1000))
        assert view.tolist() == list(range(1, 1001)), "the array outlives its tensor"
        del same, shaped, junk
        gc.collect()
        assert alive() is None
    assert fastops.stats().direct == 6


@pytest.mark.quick
def test_small_and_large_buffers():
    """Results of all sizes around the limit of the small allocator are aligned and independent."""
    for size in (0, 1, 15, 16, 17, 200, 223, 224, 225, 256, 1000, 5000, 300_000):
        x = tf.constant(np.arange(size, dtype=np.float32))
        took(ops.add_v2, x=x, y=1.0)
        results = [ops.add_v2(x=x, y=float(i)) for i in range(5)]
        for i, result in enumerate(results):
            data = np.asarray(memoryview(result))
            assert data.tolist() == (np.arange(size, dtype=np.float32) + i).tolist()
            if size:
                assert data.__array_interface__["data"][0] % 64 == 0
    assert fastops.stats().reasons == {"first_call": 1}
