"""Replayed functions with variables as arguments: each call reads them, and tapes see it."""

import copy
import threading

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, in_both, outcome
from support import Failure, assert_same, floats
from tensorflow.python.ops import resource_variable_ops

import fastops

pytestmark = pytest.mark.usefixtures("fresh")

CALLS = 5
M, N = floats(2, 3), floats(3, 2, seed=1)
ROWS = [0, 1, 1]

FUNCTIONS = {
    "tensordot": lambda v, w: tf.tensordot(v, w, 1),
    "einsum": lambda v, w: tf.einsum("ij,jk->ik", v, w),
    "norm": lambda v, w: tf.norm(v, axis=1),
    "moments": lambda v, w: tf.nn.moments(v, [0]),
    "clip_by_value": lambda v, w: tf.clip_by_value(v, -0.5, w[0, 0]),
    "clip_by_global_norm": lambda v, w: tf.clip_by_global_norm([v, w], 0.5),
    "add_n": lambda v, w: tf.add_n([v, v, tf.transpose(w)]),
    "concat": lambda v, w: tf.concat([v, tf.constant(M)], 0),
    "stack": lambda v, w: tf.stack([v, tf.constant(M)], axis=-1),
    "identity": lambda v, w: tf.identity(v),
    "zeros_like": lambda v, w: tf.zeros_like(v),
    "convert_to_tensor": lambda v, w: tf.convert_to_tensor(v),
    "embedding_lookup": lambda v, w: tf.nn.embedding_lookup(v, ROWS),
    "gather": lambda v, w: tf.gather(v, ROWS),
    "sparse_read": lambda v, w: v.sparse_read(tf.constant(ROWS)),
    "its gather_nd": lambda v, w: v.gather_nd([[1, 2], [0, 0]]),
    "gather_nd": lambda v, w: tf.gather_nd(v, [[1, 2], [0, 0]]),
    "cross entropy": lambda v, w: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 2], v),
    "numpy": lambda v, w: tf.experimental.numpy.dot(v, w),
    "shape": lambda v, w: (tf.shape(v), tf.size(v), tf.rank(w)),
    "the same twice": lambda v, w: tf.tensordot(v, v, [[1], [1]]),
    "where": lambda v, w: tf.where(v > 0.0, v, tf.zeros_like(v)),
}
"""Functions that take a variable of shape 2x3 and one of shape 3x2."""


def pair(step, **options):
    """Return the two variables, with new values for each step."""
    return tf.Variable(M + step, **options), tf.Variable(N - step, **options)


@pytest.mark.quick
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_call_reads_the_variables(name):
    function = FUNCTIONS[name]

    def run():
        results, (v, w) = [], pair(0)
        for step in range(CALLS):
            v.assign(M * step)
            w.assign_sub(N)
            results.append(function(v, w))
            results.append(function(*pair(step)))  # new variables of the same shapes
        return results

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.parametrize(
    "name", ["tensordot", "moments", "identity", "embedding_lookup", "sparse_read"]
)
def test_calls_enter_no_python(name):
    v, w = pair(0)
    with fastops.accelerated():
        for _ in range(CALLS):
            FUNCTIONS[name](v, w)
        seen = frames(FUNCTIONS[name], (v, w), {})
    assert [frame for frame in seen if "<lambda>" not in frame] == []


def gradients(function, v, w, **options):
    with tf.GradientTape(**options) as tape:
        result = [part for part in tf.nest.flatten(function(v, w)) if part.dtype.is_floating]
    watched = [id(variable) for variable in tape.watched_variables()]
    names = [name for name, variable in (("v", v), ("w", w)) if id(variable) in watched]
    return tape.gradient(result, [v, w]) if result else None, names


@pytest.mark.parametrize("options", [{}, {"persistent": True}], ids=["", "persistent"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tapes_see_which_variables_are_read(name, options):
    def run():
        return [gradients(FUNCTIONS[name], *pair(step), **options) for step in range(CALLS)]

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.parametrize("name", ["tensordot", "moments", "embedding_lookup", "zeros_like"])
def test_tapes_that_watch_nothing_or_a_part(name):
    def run():
        results = []
        for step in range(CALLS):
            v, w = pair(step)
            results.append(gradients(FUNCTIONS[name], v, w, watch_accessed_variables=False))
            results.append(gradients(FUNCTIONS[name], *pair(step, trainable=False)))
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(w)
                result = FUNCTIONS[name](v, w)
            results.append(tape.gradient(result, [v, w]))
            with tf.GradientTape() as tape, tape.stop_recording():
                FUNCTIONS[name](v, w)
            results.append([variable is v for variable in tape.watched_variables()])
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_gradients_of_gradients():
    def run():
        results = []
        for step in range(CALLS):
            v, w = pair(step)
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    result = tf.reduce_sum(tf.tensordot(v, w, 1) ** 3)
                first = inner.gradient(result, v)
            results.append(outer.gradient(first, [v, w]))
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_assignments_that_change_the_shape():
    def run():
        v, results = tf.Variable(M, shape=tf.TensorShape(None)), []
        for step in range(3 * CALLS):
            v.assign(floats(2, 3 + step // CALLS))
            results += [tf.nn.moments(v, [0]), tf.identity(v), tf.norm(v, axis=-1), tf.shape(v)]
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_an_assignment_that_changes_the_rank():
    """The recorded call reads the variable and returns that; for another rank it does more."""
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    with fastops.accelerated():
        for _ in range(CALLS):
            assert_same(tf.experimental.numpy.atleast_1d(v), tf.constant([1.0, 2.0]))
        v.assign(3.0)
        for _ in range(CALLS):
            assert_same(tf.experimental.numpy.atleast_1d(v), tf.constant([3.0]))


def test_variables_without_a_value():
    def run():
        empty = resource_variable_ops.UninitializedVariable(shape=[2, 3], dtype=tf.float32)
        of_its_class, results = tf.Variable(M), []
        for step in range(CALLS):
            results.append(outcome(tf.nn.moments, (empty, [0]), {}))
            of_its_class.assign(M + step)
            results.append(tf.nn.moments(of_its_class, [0]))
            handle = of_its_class.handle
            if step == CALLS - 1:
                tf.raw_ops.DestroyResourceOp(resource=handle)
        results.append(isinstance(outcome(tf.nn.moments, (of_its_class, [0]), {}), Failure))
        return results

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.parametrize("kind", ["subclass", "copied", "cached", "mirrored", "sharing"])
def test_other_variables(kind):
    class Mine(resource_variable_ops.ResourceVariable):
        def _read_variable_op(self, no_copy=False):
            return super()._read_variable_op(no_copy) + 1.0

    def make(step):
        v = tf.Variable(M + step)
        if kind == "subclass":
            return Mine(M + step)
        if kind == "copied":
            return copy.deepcopy(v)
        if kind == "cached":
            return tf.Variable(M + step, caching_device="CPU:0")
        if kind == "mirrored":
            with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
                return tf.Variable(M + step)
        return resource_variable_ops.ResourceVariable(
            trainable=False, shape=v.shape, dtype=v.dtype, handle=v.handle
        )

    def run():
        results, options = [], [[0]]
        for step in range(CALLS):
            v = make(step)
            results.append(tf.nn.moments(v, *options))
            with tf.GradientTape() as tape:
                result = tf.norm(v, axis=1)
            results.append((tape.gradient(result, v), len(tape.watched_variables())))
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_slices_of_a_variable_can_be_assigned():
    """The result of `tf.Variable.__getitem__` has methods that write into the variable."""

    def run():
        v, results = tf.Variable(M), []
        for step in range(CALLS):
            row = v[1]
            row.assign(floats(3) + step)
            v[:, 0].assign([1.0, float(step)])
            results += [v.read_value(), row, sorted(vars(row))]
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_attributes_of_results_are_kept():
    """`tf.zeros_like` sets an attribute by which gradient functions recognize zeros."""

    def run():
        x = tf.constant(M)
        functions = (tf.zeros_like, tf.experimental.numpy.zeros_like, tf.zeros_initializer())
        return [
            [sorted(vars(function(argument)))]
            for function, argument in zip(functions, (x, x, [2]), strict=True)
            for _ in range(CALLS)
        ]

    want, got = in_both(run)
    assert want[0] == [["_is_zeros_tensor"]]
    assert got == want


def test_indices_that_are_variables():
    """TensorFlow's fast path reads variables among the inputs, also of ops that take a handle."""

    def run():
        v, places, results = tf.Variable(M), tf.Variable([0, 1]), []
        for step in range(CALLS):
            places.assign([step % 2, 0])
            v.assign(M + step)
            results += [v.sparse_read(places), tf.nn.embedding_lookup(v, places)]
        return results

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.parametrize("dtype", [tf.string, tf.bool, tf.int8, tf.complex64, tf.bfloat16])
def test_dtypes(dtype):
    def run():
        results = []
        for step in range(CALLS):
            drawn = np.arange(6).reshape(2, 3) % (step + 1)
            value = tf.as_string(drawn) if dtype == tf.string else tf.cast(drawn, dtype)
            v = tf.Variable(value)
            results += [tf.repeat(v, 2, axis=0), tf.roll(v, 1, 0), tf.concat([v, v], 1)]
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_eight_threads():
    """Some threads read lists and values of variables that other threads change."""
    many = [tf.Variable(M) for _ in range(4)]
    changing, problems, enough = [many[0], many[1]], [], threading.Barrier(8)

    def work(number):
        try:
            enough.wait()
            for step in range(300):
                if number == 0:
                    changing[step % 2] = tf.Variable(M)
                elif number == 1:
                    many[2].assign(M * (step % 3))
                total = tf.add_n(list(changing)) if step % 2 else tf.add_n(changing)
                if not np.array_equal(total, M + M):
                    problems.append(total)
                row = tf.nn.moments(many[2], [1])[0].numpy()
                if not any(np.allclose(row, (M * k).mean(1), atol=1e-6) for k in range(3)):
                    problems.append(row)
        except Exception as error:
            problems.append(error)

    with fastops.accelerated():
        threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems
