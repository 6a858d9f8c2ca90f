"""The option `threads`: the tasks of a kernel run in other threads, with the same results."""

import math
import threading

import numpy as np
import pytest
import tensorflow as tf
from support import DIRECT, FIRST, assert_same, floats, python, took

import fastops
from fastops import ops
from fastops._reports import counters

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

IMAGES = tf.constant(floats(2, 8, 8, 8))
SCALES = tf.constant(np.abs(floats(8)))
STATISTICS = {"offset": SCALES, "mean": SCALES, "variance": SCALES}
WINDOWS = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
STRIDES = {"strides": [1, 1, 1, 1], "padding": "SAME"}

CALLS = {
    "Softmax": {"logits": tf.constant(floats(4, 10))},
    "LogSoftmax": {"logits": tf.constant(floats(64, 100))},
    "MaxPool": {"input": IMAGES, **WINDOWS},
    "AvgPool": {"value": IMAGES, **WINDOWS},
    "Conv2D": {"input": IMAGES, "filter": tf.constant(floats(3, 3, 8, 4)), **STRIDES},
    "DepthwiseConv2dNative": {
        "input": IMAGES,
        "filter": tf.constant(floats(3, 3, 8, 1)),
        **STRIDES,
    },
    "FusedBatchNormV3": {"x": IMAGES, "scale": SCALES, **STATISTICS, "is_training": False},
    "BatchMatMulV2": {"x": tf.constant(floats(4, 2, 3)), "y": tf.constant(floats(4, 3, 3))},
    "MatMul": {"a": tf.constant(floats(300, 200)), "b": tf.constant(floats(200, 100))},
    "Transpose": {"x": tf.constant(floats(64, 32, 8)), "perm": tf.constant([2, 0, 1])},
    "Sum": {"input": tf.constant(floats(500, 400)), "axis": tf.constant([0])},
    # The last bits of this result depend on the number of parts into which the work is split.
    "Mean": {"input": tf.constant(floats(2000, 1000)), "axis": tf.constant([0, 1])},
    "Tanh": {"x": tf.constant(floats(100_000))},
    "AddV2": {"x": tf.constant(floats(300, 300)), "y": tf.constant(floats(300))},
    "GatherV2": {
        "params": tf.constant(floats(5000, 16)),
        "indices": tf.range(0, 5000, 3),
        "axis": tf.constant(0),
    },
    "ResizeBilinear": {"images": IMAGES, "size": tf.constant([40, 50])},
    "MatrixInverse": {"input": tf.constant(floats(8, 5, 5))},
    "TopKV2": {"input": tf.constant(floats(64, 300)), "k": tf.constant(3)},
}


def assert_same_values(got, want):
    # In inference, only the first output of a batch normalisation is defined.
    batch_norm = type(want).__name__.startswith("FusedBatchNorm")
    assert_same(got[0] if batch_norm else got, want[0] if batch_norm else want)


@pytest.mark.parametrize("op_name", CALLS)
def test_results_are_the_same_in_all_threads(op_name):
    want = getattr(tf.raw_ops, op_name)(**CALLS[op_name])
    op = getattr(fastops.raw_ops, op_name)
    took(op, **CALLS[op_name])
    for threads in ("caller", "pool", *["auto"] * 40):
        with fastops.options(threads=threads, on_fallback="raise"):
            result, path = took(op, **CALLS[op_name])
        assert path == "direct"
        assert_same_values(result, want)


def keys_of(op):
    return {row["bytes"]: row for row in counters.cached_keys(op)[-1]["threads"]}


def test_the_faster_threads_are_known_after_some_calls():
    x, y = tf.constant(floats(4, 10)), tf.constant(floats(256, 1000))
    for _ in range(100):
        ops.softmax(logits=x)
    for _ in range(4):
        ops.softmax(logits=y)
    small, large = keys_of(ops.softmax).values()
    assert small["threads"] in ("caller", "pool")
    assert small["bytes"] == 256
    assert large["threads"] == "auto"
    fastops.clear_cache()
    for _ in range(2):
        ops.softmax(logits=x)
    assert [row["threads"] for row in keys_of(ops.softmax).values()] == ["auto"]


def test_kernels_without_tasks_are_not_timed_for_long():
    x = tf.constant([1.0, 2.0])
    for _ in range(20):
        ops.add_v2(x=x, y=x)
    (row,) = keys_of(ops.add_v2).values()
    assert (row["threads"], row["caller_ns"]) == ("caller", 0)
    # For another shape of the same size the kernel may schedule tasks; then it is timed again.
    wide = tf.constant(floats(1, 60_000))
    tall = tf.constant(floats(60_000, 1))
    for _ in range(60):
        assert_same(ops.sum(input=wide, axis=0), wide[0])
    for _ in range(60):
        assert_same(ops.sum(input=tall, axis=1), tall[:, 0])


def test_the_size_of_a_call_includes_the_shape_it_makes():
    """Ops that get a shape have small inputs, so the size of the call is that of its result."""
    calls = (
        (ops.random_uniform, "shape", {"dtype": tf.float32}),
        (ops.stateless_random_uniform, "shape", {"seed": tf.constant([1, 2])}),
        (ops.fill, "dims", {"value": tf.constant(1.0)}),
    )
    for op, name, rest in calls:
        for dtype in (tf.int32, tf.int64):
            for sizes in ([3], [300, 400]):
                for _ in range(3):
                    op(**{name: tf.constant(sizes, dtype)}, **rest)
            small, large = keys_of(op)
            assert small <= 64
            assert large == 1 << 20  # the power of four above 480,000


def test_a_profile_shows_where_tasks_ran():
    def calls():
        for _ in range(5):
            ops.softmax(logits=CALLS["Softmax"]["logits"])

    calls()
    for threads, expected in (("caller", 5), ("pool", 0)):
        with fastops.options(threads=threads):
            report = fastops.explain(calls)
        counts = report.ops["Softmax"]
        assert (counts.direct, counts.in_caller) == (5, expected)
        assert counts.to_dict()["in_caller"] == expected
        assert ("in caller" in str(report)) == (threads == "caller")


def test_a_sum_over_many_blocks_does_not_overflow_the_stack():
    """Eigen's contraction schedules a block of the inner dimension from within the block before."""
    a, b = tf.constant(floats(8, 400_000)), tf.constant(floats(400_000, 8))
    arguments = {"a": a, "b": b}
    want = tf.raw_ops.MatMul(**arguments)
    deep = {"x": tf.reshape(a, [1, 8, -1]), "y": tf.reshape(b, [1, -1, 8])}
    want_deep = tf.raw_ops.BatchMatMulV2(**deep)

    def compare():
        with fastops.options(threads="caller", on_fallback="raise"):
            for onednn in ("auto", "off"):
                with fastops.options(onednn=onednn):
                    calls.append(ops.mat_mul(**arguments))
                    calls.append(ops.batch_mat_mul_v2(**deep))

    calls = []
    for onednn in ("auto", "off"):
        with fastops.options(onednn=onednn):
            ops.mat_mul(**arguments)
            ops.batch_mat_mul_v2(**deep)
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=compare)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert len(calls) == 4
    assert_same(calls[0], want)
    assert_same(calls[1], want_deep)


def test_several_threads_may_choose_at_once():
    want = {name: getattr(tf.raw_ops, name)(**arguments) for name, arguments in CALLS.items()}
    for name, arguments in CALLS.items():
        took(getattr(fastops.raw_ops, name), **arguments)
    problems = []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        try:
            for _ in range(12):
                for name, arguments in CALLS.items():
                    got = getattr(fastops.raw_ops, name)(**arguments)
                    assert_same_values(got, want[name])
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


@pytest.mark.parametrize("threads", ["caller", "pool", "auto"])
def test_functions_and_their_gradients(threads):
    dense = tf.Variable(floats(10, 10))

    @tf.function
    def network(x):
        return tf.nn.softmax(tf.nn.relu(x @ dense))

    x = CALLS["Softmax"]["logits"]
    want = network(x)
    planned = fastops.function(network)
    with fastops.options(threads=threads):
        for _ in range(50):
            assert_same(planned(x), want)
        with tf.GradientTape() as tape:
            y = ops.softmax(logits=ops.mat_mul(a=x, b=dense))
        got = tape.gradient(y, dense)
    with tf.GradientTape() as tape:
        y = tf.raw_ops.Softmax(logits=tf.raw_ops.MatMul(a=x, b=dense))
    assert_same(got, tape.gradient(y, dense))


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("onednn", ["0", "1"])
def test_other_numbers_of_threads(number, onednn):
    """Work is split by TensorFlow's number of threads, whichever threads run it."""
    out = python(
        f"""
        import os, sys
        tf.config.threading.set_intra_op_parallelism_threads({number})
        sys.path.append({str(__file__)!r}.rpartition("/")[0])
        from test_thread_choice import CALLS, assert_same_values
        for name, arguments in CALLS.items():
            want = getattr(tf.raw_ops, name)(**arguments)
            op = getattr(fastops.raw_ops, name)
            op(**arguments)
            for threads in ("caller", "pool"):
                with fastops.options(threads=threads, on_fallback="raise"):
                    assert_same_values(op(**arguments), want)
        pid = os.fork()
        if not pid:
            with fastops.options(threads="caller", on_fallback="raise"):
                for name in ("Softmax", "MaxPool", "Tanh", "BatchMatMulV2"):
                    getattr(fastops.raw_ops, name)(**CALLS[name])
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
        TF_ENABLE_ONEDNN_OPTS=onednn,
    )
    assert out == "7\n"


BITS = [0x7FC00001, 0x7F800001, 0xFFC12345, 0x80000000, 0, 1, 0x007FFFFF, 0x7F7FFFFF, 0xFF800000]


@pytest.mark.parametrize("op_name", ["Transpose", "ConjugateTranspose"])
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((3, 5), (1, 0)),
        ((3, 5), (0, 1)),  # with bfloat16, oneDNN's conjugate turns small numbers into zeros
        ((16, 16), (0, 1)),
        ((64, 63), (1, 0)),
        ((64, 64), (1, 0)),
        ((65, 64), (1, 0)),
        ((2, 3, 4, 5), (3, 1, 0, 2)),
        ((1, 7, 1), (2, 1, 0)),
        ((4, 0, 2), (2, 0, 1)),
        ((2, 1, 2, 1, 2, 1, 2, 1, 2), (8, 7, 6, 5, 4, 3, 2, 1, 0)),
        ((300, 200), (1, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int8", "complex64"])
def test_transposes_keep_every_bit(op_name, shape, perm, dtype):
    """Small transposes skip oneDNN's kernel, and NaNs keep all their bits, signaling or not."""
    size = math.prod(shape)
    width = tf.as_dtype(dtype).size
    bits = np.resize(np.array(BITS, np.uint32), max(1, size * width // 4 + 1))
    raw = tf.constant(bits.tobytes()[: size * width])
    x = tf.reshape(tf.io.decode_raw(raw, tf.uint8), (*shape, width))
    x = tf.bitcast(x if width > 1 else x[..., 0], dtype)
    want = getattr(tf.raw_ops, op_name)(x=x, perm=perm)
    for path in (FIRST, DIRECT, DIRECT):
        got, taken = took(getattr(fastops.raw_ops, op_name), x=x, perm=perm)
        assert taken == path
        assert tf.io.serialize_tensor(got) == tf.io.serialize_tensor(want)
