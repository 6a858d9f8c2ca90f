"""Asynchronous execution: calls run later, fail later, and other threads wait for them.

Tests that could hang run in their own process, with a time limit.
"""

import gc
import itertools
import random
import re
import threading
import time
from contextlib import contextmanager

import pytest
import tensorflow as tf
from apart import Process, within
from recorder import Recorder, distinct, settled
from support import (
    DIRECT,
    FIRST,
    Failure,
    assert_same,
    assert_same_bits,
    check,
    failure,
    floats,
    outcome,
    python,
    took,
)
from tensorflow.python.eager import context, executor

import fastops
from fastops import ops, raw_ops

ASYNC = "capi:async"
PENDING = "capi:input_state"

X = floats(3, 4)


@pytest.fixture(scope="module")
def apart():
    process = Process()
    yield process
    process.end()


def drain(waiting):
    """Clear the errors of an executor, which would raise them again when it is deleted."""
    for _ in range(5):
        try:
            waiting.wait()
        except tf.errors.OpError:
            waiting.clear_error()


@contextmanager
def asynchronous(**options):
    """Give this thread an asynchronous executor in the `with` block; clear its errors after it."""
    waiting = executor.new_executor(enable_async=True, **options)
    try:
        with context.executor_scope(waiting):
            yield waiting
    finally:
        drain(waiting)


@contextmanager
def not_synchronous():
    tf.config.experimental.set_synchronous_execution(False)
    try:
        yield
    finally:
        tf.config.experimental.set_synchronous_execution(True)


class Pending:
    """A tensor that another executor computes (or fails to compute) once `go` is set.

    Python code computes it, so a thread that holds the GIL while it waits would wait forever.
    """

    def __init__(self, value, error=None):
        self.go = threading.Event()
        self.executor = executor.new_executor(enable_async=True)

        def compute():
            if not self.go.wait(30):
                raise RuntimeError("`go` was not set")
            if error:
                raise error
            return value

        with context.executor_scope(self.executor):
            self.tensor = tf.py_function(compute, [], value.dtype)

    def finish(self):
        """Set `go` once a call has begun that may wait for the tensor."""
        before = begun()

        def watch():
            while begun() == before:
                time.sleep(0.001)
            self.go.set()

        threading.Thread(target=watch, daemon=True).start()


def begun():
    """Count the calls of fastops' ops that have fallen back to TensorFlow."""
    counts = fastops.stats()
    return counts.capi + counts.tensorflow


def in_threads(*functions):
    """Call functions at the same time, each in its own thread, and return their results."""
    results = [None] * len(functions)

    def work(place, function):
        results[place] = outcome(function)

    threads = [threading.Thread(target=work, args=item) for item in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        assert not isinstance(result, Failure), result
    return results


# ---------------------------------------------------------------------------------------------
# Ways to be asynchronous
# ---------------------------------------------------------------------------------------------

WAYS = {
    "mode": lambda: context.execution_mode(context.ASYNC),
    "config": not_synchronous,
    "executor": asynchronous,
    "executor, one at a time": lambda: asynchronous(in_flight_nodes_limit=1),
    "executor, no streams": lambda: asynchronous(enable_streaming_enqueue=False),
}


def calls(m):
    tf.random.set_seed(1)
    x, y, v = tf.constant(floats(3, 4)), tf.constant(floats(3, 4, seed=1)), tf.Variable(floats(4))
    h = x
    for _ in range(50):
        h = m.Tanh(x=m.AddV2(x=h, y=1.0))
    return (
        h,
        m.MatMul(a=x, b=y, transpose_b=True),
        m.TopKV2(input=x, k=2),
        m.Unpack(value=m.Pack(values=[x, h], axis=0), num=2),
        m.Mul(x=floats(3, 4), y=y),
        m.RandomUniform(shape=tf.constant([2]), dtype=tf.float32, seed=1, seed2=2),
        m.AssignAddVariableOp(resource=v.handle, value=y[0]),
        m.Neg(x=v),
        m.StringJoin(inputs=[tf.constant("a"), tf.constant("b")]),
        m.NoOp(),
    )


@within("apart")
def test_ways_to_be_asynchronous():
    """Calls run in TensorFlow while execution is asynchronous, and are direct afterwards."""
    for way in WAYS.values():
        fastops.clear_cache()
        with way():
            want, paths = settled(calls)
            assert_same(paths["NoOp"], [ASYNC])
            assert distinct(paths) <= {ASYNC, PENDING, "capi:op"}, distinct(paths)
        recorder = Recorder()
        assert_same(calls(recorder), want)
        assert_same(distinct(recorder.paths), {DIRECT, "capi:op"})


@within("apart")
def test_a_context_that_is_asynchronous_from_the_start():
    """The context's default executor is asynchronous, for every thread without its own executor."""
    gc.collect()
    context._reset_context()
    tf.config.experimental.set_synchronous_execution(False)
    x = tf.constant(floats(3, 4))
    check("Neg", ASYNC, x=x)
    assert_same(in_threads(lambda: took(ops.neg, x=x)[1]), [ASYNC])
    tf.config.experimental.set_synchronous_execution(True)
    assert_same(took(ops.neg, x=x)[1], DIRECT)
    assert_same(in_threads(lambda: took(ops.neg, x=x)[1]), [ASYNC])
    context._reset_context()
    check("Neg", x=tf.constant(floats(3, 4)))


@within("apart")
def test_switching_between_calls_of_one_op():
    pick = random.Random(1)
    x = tf.constant(floats(3, 4))
    want = check("AddV2", x=x, y=1.0)
    for _ in range(200):
        mode, path = pick.choice([(context.ASYNC, ASYNC), (context.SYNC, DIRECT), (None, DIRECT)])
        with context.execution_mode(mode):
            for _ in range(pick.randrange(3)):
                assert_same(took(ops.add_v2, x=x, y=1.0), (want, path))
        assert_same(took(ops.add_v2, x=x, y=1.0), (want, DIRECT))


@within("apart")
def test_executors_of_threads():
    """Asynchronous and synchronous threads call the same ops at once."""
    x = tf.constant(floats(3, 4))
    want = check("AddV2", x=x, y=1.0)
    together = threading.Barrier(4)
    times = 500

    def asynchronously():
        with asynchronous():
            together.wait(30)
            return [ops.add_v2(x=x, y=1.0) for _ in range(times)]

    def synchronously():
        together.wait(30)
        return [ops.add_v2(x=x, y=1.0) for _ in range(times)]

    fastops.reset_stats()
    for results in in_threads(*[asynchronously, synchronously] * 2):
        for result in results:
            assert_same(result, want)
    seen = fastops.stats().ops["AddV2"]
    assert_same((seen.direct, seen.reasons), (2 * times, {"async": 2 * times}))


# ---------------------------------------------------------------------------------------------
# Tapes and variables
# ---------------------------------------------------------------------------------------------


def gradients(m):
    x, y, v = tf.constant(floats(3, 4)), tf.constant(floats(4, 2)), tf.Variable(floats(4, 2))
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, y])
        with tf.GradientTape() as inner:
            inner.watch(x)
            product = m.MatMul(a=m.Tanh(x=x), b=v)
            loss = m.Sum(input=m.Mul(x=product, y=product), axis=tf.constant([0, 1]))
        first = inner.gradient(loss, x)
        parts = m.Split(axis=tf.constant(1), value=m.MatMul(a=first, b=y), num_split=2)
    with tf.autodiff.ForwardAccumulator(x, tf.ones([3, 4])) as forward:
        square = m.Square(x=x)
    return (
        first,
        outer.gradient(parts[0], [x, y, v]),
        outer.jacobian(parts[1], y),
        forward.jvp(square),
    )


@within("apart")
def test_tapes():
    with asynchronous():
        want, paths = settled(gradients)
    assert distinct(paths) <= {ASYNC, PENDING}, distinct(paths)
    recorder = Recorder()
    assert_same(gradients(recorder), want)
    assert_same(distinct(recorder.paths), {DIRECT})


def updates(m):
    v = tf.Variable(floats(4))
    seen = []
    for step in range(20):
        m.AssignAddVariableOp(resource=v.handle, value=tf.constant(floats(4, seed=step)))
        seen.append(m.ReadVariableOp(resource=v.handle, dtype=tf.float32))
        m.AssignVariableOp(resource=v.handle, value=m.Mul(x=seen[-1], y=0.5))
        m.ResourceScatterAdd(resource=v.handle, indices=tf.constant([1]), updates=tf.ones([1]))
        seen.append(m.Neg(x=v))
        seen.append(m.AddN(inputs=[v, seen[-1], v]))
    return seen, v.read_value()


@within("apart")
def test_variables():
    """Every read goes through the executor, so it sees all assignments before it."""
    with asynchronous():
        want, paths = settled(updates)
        assert_same(fastops.stats().ops["ReadVariableOp"].direct, 0)
    assert distinct(paths) <= {ASYNC, PENDING}, distinct(paths)
    recorder = Recorder()
    assert_same(updates(recorder), want)
    assert_same(distinct(recorder.paths), {DIRECT})


@within("apart")
def test_a_variable_behind_a_long_assignment():
    """While the executor is busy with an assignment, a read does not return the old value."""
    v = tf.Variable(X)
    for _ in range(2):
        ops.neg(x=v)
    go = threading.Event()
    with asynchronous():
        value = tf.py_function(lambda: 2 * X if go.wait(30) else None, [], tf.float32)
        ops.assign_variable_op(resource=v.handle, value=value)
        fastops.reset_stats()
        result = ops.neg(x=v)
        reads = fastops.stats().ops
        go.set()
        assert_same_bits(result, -2 * X)
    for op_name in ("Neg", "ReadVariableOp"):
        counts = reads[op_name]
        assert_same((counts.direct, counts.capi, counts.tensorflow), (0, 1, 0))


# ---------------------------------------------------------------------------------------------
# Results that are not computed yet
# ---------------------------------------------------------------------------------------------


def gradient(m, x, y):
    with tf.GradientTape() as tape:
        tape.watch(x)
        product = m.Mul(x=x, y=y)
    return product, tape.gradient(product, x)


def assigned(m, value):
    variable = tf.Variable(floats(3, 4))
    m.AssignVariableOp(resource=variable.handle, value=value)
    return variable.read_value()


CONSUMERS = {  # calls with a pending value of a kind
    "input": (X, lambda m, p: m.Neg(x=p)),
    "an item of a list": (X, lambda m, p: m.AddN(inputs=[tf.constant(X), p, tf.constant(X)])),
    "beside a number": (X, lambda m, p: m.AddV2(x=p, y=1.0)),
    "beside an array": (X, lambda m, p: m.Sub(x=X, y=p)),
    "beside a variable": (X, lambda m, p: m.Maximum(x=tf.Variable(X), y=p)),
    "an axis": (tf.constant(1).numpy(), lambda m, p: m.Sum(input=tf.constant(X), axis=p)),
    "several outputs": (X, lambda m, p: m.Unpack(value=p, num=3)),
    "assigned": (X, lambda m, p: assigned(m, p)),
    "taped": (X, lambda m, p: gradient(m, tf.constant(X), p)),
    "large": (floats(400, 400), lambda m, p: m.MatMul(a=p, b=tf.constant(floats(400, 400)))),
    "through the runtime": (X, lambda m, p: m.RandomShuffle(value=p, seed=1)),
}


@within("apart")
def test_a_synchronous_thread_waits_for_an_asynchronous_one():
    """It waits without the GIL. Once computed, the value is an ordinary input."""
    for name, (value, consume) in CONSUMERS.items():
        tf.random.set_seed(1)
        want = consume(tf.raw_ops, tf.constant(value))
        for kind in ("first", "prepared"):
            pending = Pending(value)
            pending.finish()
            recorder = Recorder()
            tf.random.set_seed(1)
            assert_same(consume(recorder, pending.tensor), want)
            assert_same(set(*recorder.paths.values()), {FIRST if kind == "first" else PENDING})
        recorder = Recorder()
        tf.random.set_seed(1)
        assert_same(consume(recorder, pending.tensor), want)
        path = "capi:op" if name == "through the runtime" else DIRECT
        assert_same(set(*recorder.paths.values()), {path})


@within("apart")
def test_a_value_whose_computation_failed():
    """Every call that takes the value fails as in TensorFlow; other calls do not."""
    for value, consume in CONSUMERS.values():

        def program(m, value=value, consume=consume):
            pending = Pending(value, error=ValueError("no such data"))
            pending.go.set() if m is tf.raw_ops else pending.finish()
            errors = [failure(consume, m=m, p=pending.tensor) for _ in ("awaited", "known")]
            drain(pending.executor)
            return [plain(error) for error in errors]

        want = program(tf.raw_ops)
        assert "no such data" in want[0].message, want
        for _ in range(2):
            consume(raw_ops, tf.constant(value))
        fastops.reset_stats()
        assert_same(program(raw_ops), want)
        assert_same(set(fastops.stats().reasons), {"input_state"})
        recorder = Recorder()
        consume(recorder, tf.constant(value))
        assert distinct(recorder.paths) <= {DIRECT, "capi:op"}, recorder.paths


@within("apart")
def test_a_pipeline_of_threads():
    """Asynchronous threads pass on values before they are computed; a synchronous one uses them."""
    check("AddV2", x=tf.constant(X), y=1.0)
    ready = threading.Semaphore(0)
    handed = []

    def produce():
        with asynchronous():
            for i in range(100):
                h = tf.constant(X + i)
                for _ in range(5):
                    h = ops.add_v2(x=h, y=1.0)
                handed.append((i, tf.py_function(lambda y: y * 2, [h], tf.float32)))
                ready.release()

    def consume():
        sums = []
        for place in range(200):
            assert ready.acquire(timeout=30)
            i, value = handed[place]
            sums.append((i, ops.add_v2(x=value, y=1.0)))
        return sums

    sums, *_ = in_threads(consume, produce, produce)
    for i, value in sums:
        h = X + i
        for _ in range(5):
            h = h + 1
        assert_same_bits(value, h * 2 + 1)
    reasons = fastops.stats().ops["AddV2"].reasons
    assert set(reasons) <= {"first_call", "async", "input_state"}, reasons
    assert reasons["async"] > 0, reasons
    assert reasons["input_state"] > 0, reasons


# ---------------------------------------------------------------------------------------------
# Errors
# ---------------------------------------------------------------------------------------------

# Calls that TensorFlow rejects at once, when it makes the kernel, or when the kernel runs.
WRONG = {
    "dtypes": lambda m, x: m.AddV2(x=x, y=tf.constant(1)),
    "attribute": lambda m, x: m.MaxPool(
        input=x, ksize=[1, 2, 2], strides=[1, 1, 1, 1], padding="SAME"
    ),
    "kernel": lambda m, x: m.Conv2D(
        input=tf.zeros([1, 4, 4, 1]), filter=tf.zeros([2, 2, 1, 1]), strides=[1], padding="SAME"
    ),
    "shapes": lambda m, x: m.AddV2(x=x, y=tf.zeros([5])),
    "sizes": lambda m, x: m.MatMul(a=x, b=x),
    "index": lambda m, x: m.GatherV2(params=x, indices=tf.constant([99]), axis=tf.constant(0)),
    "text": lambda m, x: m.StringToNumber(string_tensor=tf.constant("one")),
    "value": lambda m, x: m.CheckNumerics(tensor=tf.constant([1.0, float("nan")]), message="so"),
}


FRAME = re.compile(r'  File ".*\n(?:    .*\n)?')


def plain(result):
    """Reduce the outcome of a call to the parts that are the same in two runs.

    A failure keeps its message, and the last line of its traceback that is outside of TensorFlow.
    """
    if not isinstance(result, Failure):
        return type(result).__name__
    lines = [line for line in FRAME.findall(result.message) if "/tensorflow/" not in line]
    return Failure(result.kind, "".join(lines[-1:]) + FRAME.sub("", result.message))


def course(m, wrong):
    """Make a wrong call and some right ones asynchronously; return the outcome of each."""
    x = tf.constant(X)
    seen = []

    def step(function, **arguments):
        result = outcome(function, **arguments)
        seen.append(plain(result))
        return result

    with asynchronous() as waiting:
        result = step(wrong, m=m, x=x)
        step(waiting.wait)
        step(m.Neg, x=x)
        if not isinstance(result, Failure):
            step(result.numpy)
            step(m.StringLength if result.dtype == tf.string else m.Neg, x=result)
        step(waiting.wait)
        waiting.clear_error()
        step(m.Neg, x=x)
        step(waiting.wait)
        step(wrong, m=m, x=x)
        step(context.async_wait)
        tf.experimental.async_clear_error()
        step(m.Neg, x=x)
        step(context.async_wait)
        if not isinstance(result, Failure):
            step(m.Neg, x=result)
            step(waiting.wait)
    step(m.Neg, x=x)
    if not isinstance(result, Failure):
        step(m.Neg, x=result)
    return seen


@pytest.mark.parametrize("kind", WRONG)
def test_errors_are_raised_at_the_same_point_as_tensorflows(kind):
    """The same calls and the same waits raise as in TensorFlow, and no others."""
    wrong = WRONG[kind]
    want = course(tf.raw_ops, wrong)
    assert any(isinstance(step, Failure) for step in want)
    for _ in range(2):
        fastops.reset_stats()
        for found, step in zip(course(raw_ops, wrong), want, strict=True):
            assert found == step
    counts = fastops.stats()
    assert set(counts.reasons) <= {"async", "input_state", "first_call", "kernel", "op"}
    assert counts.ops["Neg"].reasons["async"] >= 2
    assert took(ops.neg, x=tf.constant(X))[1] == DIRECT


def unfinished(m, way):
    """Leave a scope with an error for which no call has waited."""
    with way():
        m.GatherV2(params=tf.constant(X), indices=tf.constant([99]), axis=tf.constant(0))


@within("apart")
def test_errors_at_the_end_of_a_scope():
    check("Neg", x=tf.constant(X))
    for name in ("mode", "config"):
        fastops.clear_cache()
        want = plain(outcome(unfinished, m=tf.raw_ops, way=WAYS[name]))
        assert isinstance(want, Failure), want
        for _ in range(2):
            after_error()
            assert_same(plain(outcome(unfinished, m=raw_ops, way=WAYS[name])), want)
        after_error()
    check("Neg", x=tf.constant(X))


def after_error():
    """Make this thread synchronous again, after an error at the end of an asynchronous scope.

    The frames of the error may reference executors that TensorFlow owns, and whose state it reads
    when the references are deleted. So the frames have to be freed before the executors are.
    """
    gc.collect()
    tf.experimental.async_clear_error()
    tf.config.experimental.set_synchronous_execution(True)


NUMBERS = itertools.count()


def until_exhausted(m):
    """Dequeue until the queue is empty, asynchronously, as in TensorFlow's documentation."""
    queue = m.FIFOQueueV2(component_types=[tf.float32], shared_name=f"queue {next(NUMBERS)}")
    for i in range(5):
        m.QueueEnqueueV2(handle=queue, components=[tf.constant(float(i))])
    m.QueueCloseV2(handle=queue)
    total = tf.Variable(0.0)
    m.NoOp()
    try:
        with tf.experimental.async_scope():
            for _ in range(9):
                (item,) = m.QueueDequeueV2(handle=queue, component_types=[tf.float32])
                m.AssignAddVariableOp(resource=total.handle, value=m.Mul(x=item, y=2.0))
    except tf.errors.OutOfRangeError:
        tf.experimental.async_clear_error()
    return total.read_value()


@within("apart")
def test_async_scopes():
    """Scopes wait at their end, whether or not the thread is asynchronous outside of them."""
    want, paths = settled(until_exhausted)
    assert_same(want, tf.constant(20.0))
    assert_same(paths["Mul"], [DIRECT] * 5)
    with asynchronous():
        want, paths = settled(until_exhausted)
        assert_same(want, tf.constant(20.0))
        assert set(paths["Mul"]) <= {ASYNC, PENDING}, paths
        assert_same(paths["NoOp"], [ASYNC])


def test_an_exit_with_pending_work():
    """The process and its executors end, as without fastops."""
    python(
        """
        from tensorflow.python.eager import context, executor
        x = tf.random.normal([300, 300])
        for _ in range(2):
            ops.mat_mul(a=x, b=x), ops.tanh(x=x)
        context.context().executor = waiting = executor.new_executor(enable_async=True)
        for _ in range(200):
            x = ops.tanh(x=ops.mat_mul(a=x, b=x))
        reasons = fastops.stats().reasons
        assert reasons["async"] + reasons["input_state"] == 400, reasons
        """,
        timeout=60,
    )
