"""Slices of variables, and assignments to them, compared with TensorFlow's own."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, make, outcome
from support import assert_same, difference

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

SHAPE = (3, 4, 5)

DIRECT = [
    *(0, -1, 2, np.int64(1), np.int32(-2), slice(None), slice(1, None), slice(None, None, -1)),
    *((0, 1), (0, 1, 2), (..., 0), (None, 1), (slice(None), slice(0, 3, 2)), [1, 2]),
    *(slice(0, 0), slice(-2, 10), (..., None), (slice(None), None, 1), (1, ..., -1)),
]
"""Indices that are read without TensorFlow's Python."""

OTHERS = [
    *((), True, np.array([True, False, True]), tf.constant([True, False, True])),
    *(3, -4, (0, 4), (0, 0, 0, 0), "a", 1.5, 2**40, (..., ...), slice(None, None, 0), [[0]]),
    *(np.uint8(1), np.array(1), (tf.constant(1), np.int64(1)), tf.constant([1])),
]
"""Indices that TensorFlow reads, and those for which it raises an error."""

TENSORS = [tf.constant(1), tf.constant(2, tf.int64), (tf.constant(0), slice(tf.constant(1), None))]

DTYPES = ["float32", "float64", "bfloat16", "int8", "int64", "uint16", "complex64", "bool"]


def variable(dtype="float32", shape=SHAPE):
    return tf.Variable(make(dtype, *shape))


def read(index):
    return variable()[index]


def assigned(index, value, *args, dtype="float32", **kwargs):
    """Assign to a slice; return the slice, the result of the assignment, and the variable."""
    kept = variable(dtype)
    part = kept[index]
    result = part.assign(value, *args, **kwargs)
    return part, type(result), result.numpy(), result.name, result is kept, kept.numpy()


def compare(calls):
    wants = [outcome(function, args, kwargs) for function, args, kwargs in calls]
    with fastops.accelerated():
        for (function, args, kwargs), want in zip(calls, wants, strict=True):
            for _ in range(2):
                differing = difference(outcome(function, args, kwargs), want)
                assert not differing, f"{args} {kwargs}: {differing}"
    return wants


def call(function, *args, **kwargs):
    return function, args, kwargs


def test_reads():
    compare([call(read, index) for index in (*DIRECT, *OTHERS, *TENSORS)])


def test_reads_without_python():
    kept = variable()
    with fastops.accelerated():
        for index in (*DIRECT, *TENSORS):
            kept[index]
            assert not frames(lambda index=index: kept[index], (), {}), index


@pytest.mark.parametrize("dtype", DTYPES)
def test_assignments(dtype):
    calls = []
    for index in (*DIRECT, *TENSORS):
        part = variable(dtype)[index]
        for value in (part, part.numpy(), tf.zeros_like(part)[..., :1] if part.shape.rank else 1):
            calls.append(call(assigned, index, value, dtype=dtype))
    compare(calls)


def test_values_of_other_kinds():
    values = [1, 2.5, True, [1.0] * 5, [[1] * 5] * 4, np.arange(5), np.float32(2), "a", None, 1j]
    values += [tf.constant(1), tf.ones([5], tf.float64), tf.ones([2, 5]), tf.zeros([7]), [[1], []]]
    values += [variable(shape=(4, 5)), variable(shape=(4, 5))[0]]
    wants = compare([call(assigned, 1, value) for value in values])
    assert {type(want).__name__ for want in wants} == {"tuple", "Failure"}


def test_assignments_without_python():
    kept, row = variable(), make("float32", 5)
    with fastops.accelerated():
        for index in (0, (1, 2), (..., slice(None))):
            for value in (row, row.numpy()):
                value = value[0] if kept[index].shape.rank == 0 else value
                kept[index].assign(value)  # the first call of an op runs in TensorFlow
                seen = frames(kept[index].assign, (value,), {})
                assert not seen, (index, value)


def test_names_in_errors():
    def in_scope(scope, index, value, name=None):
        kept = variable()
        with tf.name_scope(scope):
            part = kept[index]
        return part.assign(value, name=name)

    calls = [call(in_scope, scope, 0, np.zeros([7], "f")) for scope in ("a", "a/b")]
    calls += [call(in_scope, "a", 0, np.zeros([7], "f"), name="own"), call(in_scope, "a", 9, 0.0)]
    wants = compare(calls)
    assert "name: a/strided_slice/_assign" in wants[0].message
    assert "name: own" in wants[2].message


def test_a_slice_keeps_the_index_of_its_making():
    def changed():
        kept, index = variable(), [0, 1]
        part = kept[index]
        index[0] = 2
        kept.assign_add(tf.ones(SHAPE))
        part.assign(tf.zeros([5]))
        part.assign(tf.ones([5]), name="again")
        return part, kept.numpy()

    compare([call(changed)])


def gradients(index):
    kept, other = variable(), tf.Variable(make("float32", *SHAPE, seed=1), trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        one = kept[index] * other[index]
        kept[index].assign(tf.zeros_like(one))
        two = tf.reduce_sum(kept[index] ** 2 + kept)
    return [
        [tape.gradient(target, source) for source in (kept, other)] for target in (one, two)
    ] + [len(tape.watched_variables())]


def test_gradients():
    compare([call(gradients, index) for index in DIRECT])


def test_functions_that_are_traced():
    def traced(count):
        kept = variable()
        part = kept[0]

        @tf.function
        def step(row):
            kept[1].assign(row)
            part.assign(row + 1.0)
            return kept[0, 0] + kept[1]

        return [step(make("float32", 4, 5)) for _ in range(count)], kept.numpy()

    compare([call(traced, 4)])


def test_variables_of_other_classes():
    def of_strategy():
        with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
            kept = variable()
        return kept[0].numpy(), kept[1:, 0].numpy()

    class Own(tf.Module):
        def __init__(self):
            self.kept = tf.Variable(make("float32", *SHAPE), caching_device="/cpu:0")

        def __call__(self, index):
            return self.kept[index]

    def unread():
        kept = variable()
        result = kept.assign_add(tf.ones(SHAPE))
        return result[0], result[0].assign(tf.zeros([4, 5])).numpy(), kept.numpy()

    compare([call(of_strategy), call(lambda: Own()(0)), call(unread)])


def test_verification():
    kept = variable()
    want = kept.numpy()
    want[0] += 1
    with fastops.accelerated(verify="raise"):
        assert_same(kept[0, 1], tf.constant(kept.numpy()[0, 1]))
        kept[0].assign(kept[0] + 1.0)
    np.testing.assert_array_equal(kept.numpy(), want)


def test_threads():
    kept = variable(shape=(8, 4))

    def run(row):
        for i in range(200):
            kept[row].assign(tf.fill([4], float(row)) + float(i))
            assert kept[row, 0].numpy() == row + i

    failures = []

    def guarded(row):
        try:
            run(row)
        except BaseException as error:
            failures.append(error)

    with fastops.accelerated():
        threads = [threading.Thread(target=guarded, args=(row,)) for row in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    assert_same(kept.value()[:, 0], tf.range(8.0) + 199.0)
