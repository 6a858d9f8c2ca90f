"""Threads that share ops, kernels and variables, and threads that wait for the GIL."""

import random
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from stress import run_threads, seconds, times
from support import DIRECT, python, took

import fastops
from fastops import ops, raw_ops

pytestmark = pytest.mark.usefixtures("fresh")


# ---------------------------------------------------------------------------------------------
# Mixed calls
# ---------------------------------------------------------------------------------------------


class Mixture:
    """The work of one thread: methods that make calls of all kinds, check results, count calls."""

    SHARED = tf.Variable(np.zeros(3, np.float32))
    MATRIX = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32)

    def __init__(self, seed):
        self.pick = random.Random(seed)
        self.array = np.float32([seed, 1, 2])
        self.x = tf.constant(self.array)
        self.matrix = tf.constant(self.MATRIX)
        self.product = tf.raw_ops.MatMul(a=self.matrix, b=self.matrix).numpy().tobytes()
        self.variable = tf.Variable(self.array)
        self.total = self.array.copy()
        self.texts = tf.constant([b"a", b"b" * 40, f"thread {seed}".encode()])
        self.pair, self.wrong = tf.constant([2]), tf.ones([2])

    def is_array(self, got, want):
        assert got.numpy().tobytes() == want.tobytes(), (got, want)

    def numbers(self):
        step = self.pick.randrange(100)
        self.is_array(ops.add_v2(x=self.x, y=step), self.array + np.float32(step))
        self.is_array(ops.sub(x=self.array, y=self.x), self.array - self.array)
        return 2

    def attributes(self):
        alpha = 0.25 * self.pick.randrange(8)
        got = ops.leaky_relu(features=ops.neg(x=self.x), alpha=alpha)
        self.is_array(got, -self.array * np.float32(alpha))
        return 2

    def lists(self):
        parts = ops.unpack(value=self.x, num=3)
        self.is_array(ops.pack(values=parts[::-1], axis=0), self.array[::-1])
        return 2

    def large(self):
        got = ops.mat_mul(a=self.matrix, b=self.matrix)
        assert got.numpy().tobytes() == self.product
        return 1

    def several(self):
        got = ops.top_kv2(input=self.x, k=1, sorted=True)
        assert got.values.numpy()[0] == self.array.max()
        return 1

    def strings(self):
        got = ops.string_join(inputs=[self.texts, self.texts], separator="-")
        assert got.numpy().tolist() == [text + b"-" + text for text in self.texts.numpy()]
        return 1

    def own_variable(self):
        ops.assign_add_variable_op(resource=self.variable.handle, value=self.x)
        self.total += self.array
        self.is_array(ops.identity(input=self.variable), self.total)
        return 2

    def shared_variable(self):
        ops.assign_add_variable_op(resource=self.SHARED.handle, value=np.float32([1, 1, 1]))
        got = ops.mul(x=self.SHARED, y=1.0).numpy()
        assert got[0] == got[1] == got[2] >= 1
        return 2

    def through_the_runtime(self):
        with fastops.options(path="capi"):
            self.is_array(ops.mul(x=self.x, y=self.x), self.array * self.array)
        got = ops.random_uniform(shape=self.pair, dtype=tf.float32, seed=1).numpy()
        assert 0 <= got.min() <= got.max() < 1
        return 2

    def through_python(self):
        self.is_array(ops.add_v2(x=[1.0, 2.0, 3.0], y=self.x), self.array + np.float32([1, 2, 3]))
        return 1

    def failing(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"shapes: \[3\] vs. \[2\]"):
            ops.add_v2(x=self.x, y=self.wrong)
        return 1

    def taped(self):
        with tf.GradientTape() as tape:
            tape.watch(self.x)
            y = ops.mul(x=self.x, y=ops.square(x=self.x))
        self.is_array(tape.gradient(y, self.x), 3 * self.array * self.array)
        return 2

    def make(self, count):
        quick = [self.numbers, self.attributes, self.lists, self.large, self.several]
        quick += [self.strings, self.own_variable, self.shared_variable, self.through_the_runtime]
        slow = [self.through_python, self.failing, self.taped]
        kinds = self.pick.choices(quick + slow, [9] * len(quick) + [1] * len(slow), k=1000)
        made = 0
        while made < count:
            for kind in kinds:
                made += kind()
        return made


def mix(threads, calls, size):
    """Run several threads with a minimum of calls each, while another thread disturbs them."""
    fastops.set_cache_size(size)
    fastops.reset_stats()

    def meddle():
        fastops.clear_cache()
        fastops.stats().as_dict()
        fastops.set_cache_size(size)

    made = run_threads(threads, lambda number: Mixture(number).make(calls), meddle, pause=0.05)
    seen = fastops.stats()
    assert all(entries <= size for entries in fastops.cache_info()["entries"].values())
    internal = seen.ops.pop("ReadVariableOp")  # reads of variables inside of other calls
    counted = sum(op.direct + op.capi + op.tensorflow for op in seen.ops.values())
    assert counted == sum(made), "a call is lost or counted twice"
    assert seen.capi >= 0.1 * sum(made)
    print(f"{sum(made)} calls", seen.direct, seen.capi, seen.tensorflow, internal.direct)


@pytest.mark.parametrize(
    ("size", "calls", "direct"),
    [(256, 1_000_000, 0.6), (1, 20_000, 0.4)],
    ids=["cached", "evicted"],
)
def test_eight_threads(size, calls, direct):
    """Kernels are made, shared, flushed and evicted in the meantime; every result is checked."""
    out = python(
        f"""
        import sys
        sys.path.append({str(Path(__file__).parent)!r})
        from test_threads import mix
        mix(threads=8, calls={times(calls)}, size={size})
        """,
        timeout=seconds(3000),
    )
    made, seen = int(out.split()[0]), int(out.split()[2])
    assert made >= 8 * times(calls)
    assert seen >= direct * made, out


def test_threads_that_use_ops_for_the_first_time():
    """The first call of an op prepares it, once, even if several threads call it at a time."""
    python("""
        import sys, threading
        sys.setswitchinterval(1e-6)
        x = tf.constant([1.0, 2.0, 3.0])
        names = ["Mul", "Sub", "Maximum", "Minimum", "RealDiv", "Pow", "AddV2", "Less", "Atan2"]
        want = {name: getattr(tf.raw_ops, name)(y=x, x=x).numpy().tolist() for name in names}
        together = threading.Barrier(8)
        failures = []

        def work(index):
            for name in names:
                together.wait(30)
                for _ in range(3):
                    try:
                        op = getattr(raw_ops, name)
                        if index == 0:
                            try:
                                op()
                            except TypeError as error:
                                assert "x" in str(error)
                        assert op(x=x, y=x).numpy().tolist() == want[name]
                    except BaseException as error:
                        failures.append((name, repr(error)))

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failures, failures[:3]
        assert fastops.stats().direct > 0
    """)


@pytest.mark.quick
def test_reads_of_a_variable_that_is_being_updated_are_consistent():
    """An in-place update never shows in a value that was read, shared or copied."""
    variable = tf.Variable(np.zeros(20_000, np.float32))
    one, zero = tf.ones([20_000]), tf.zeros([20_000])
    readers = {
        "identity": lambda: ops.identity(input=variable),
        "sum": lambda: ops.add_v2(x=variable, y=zero),
        "list": lambda: ops.add_n(inputs=[variable, zero]),
        "handle": lambda: ops.read_variable_op(resource=variable.handle, dtype=tf.float32),
    }
    reads, torn, stop = dict.fromkeys(readers, 0), [], threading.Event()

    def read(kind):
        while not stop.is_set():
            values = readers[kind]().numpy()
            if values.min() != values.max():
                torn.append(kind)
            reads[kind] += 1

    for call in readers.values():
        call()
    threads = [threading.Thread(target=read, args=(kind,)) for kind in readers]
    for thread in threads:
        thread.start()
    updates = 0
    try:
        while min(reads.values()) < 200 or updates < 2000:
            ops.assign_add_variable_op(resource=variable.handle, value=one)
            updates += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not torn
    assert variable.numpy().tolist() == [updates] * 20_000
    assert fastops.stats().reasons == {"first_call": 5}


# ---------------------------------------------------------------------------------------------
# Threads that wait for the GIL
# ---------------------------------------------------------------------------------------------


class Bystander:
    """Another Python thread, which runs once each time it is told to and can get the GIL.

    The switch interval is so long that no Python code has to release the GIL. So if this thread
    runs during a call, the call itself has released the GIL.
    """

    def __enter__(self):
        self._interval = sys.getswitchinterval()
        self._told, self._runs, self._stop = threading.Lock(), 0, False
        self._told.acquire()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        sys.setswitchinterval(1e6)
        return self

    def _run(self):
        while self._told.acquire() and not self._stop:
            self._runs += 1

    def __exit__(self, *error):
        sys.setswitchinterval(self._interval)
        self._stop = True
        self._told.release()
        self._thread.join()

    def runs_during(self, call):
        """Tell whether the thread ran during a call. On a busy machine it may come too late."""
        before = self._runs
        self._told.release()
        result = call()
        ran = self._runs != before
        del result  # TensorFlow releases the GIL to delete a tensor
        while self._runs == before:
            time.sleep(0)
        return ran

    def often(self, call):
        """Tell whether the thread runs during a call in one of many tries."""
        return any(self.runs_during(call) for _ in range(1000))


@pytest.mark.parametrize("path", ["direct", "capi"])
def test_other_threads_run_while_a_kernel_computes(path):
    x, small = tf.random.stateless_normal([400, 400], [1, 2]), tf.ones([2, 2])
    with fastops.options(path=path):
        for tensor in (x, small):
            took(ops.mat_mul, a=tensor, b=tensor)
            _, seen = took(ops.mat_mul, a=tensor, b=tensor)
            assert seen == {"direct": DIRECT, "capi": "capi:options"}[path]
        with Bystander() as bystander:
            assert bystander.often(lambda: ops.mat_mul(a=x, b=x))
            if path == "direct":  # releasing the GIL would cost more than the kernel
                assert not bystander.often(lambda: ops.mat_mul(a=small, b=small))


@pytest.mark.quick
def test_ops_whose_cost_depends_on_values_release_the_gil():
    """A range of millions of numbers has three small inputs."""
    arguments = {"start": tf.constant(0), "limit": tf.constant(3_000_000), "delta": tf.constant(1)}
    took(raw_ops.Range, **{**arguments, "limit": tf.constant(3)})
    result, path = took(raw_ops.Range, **arguments)
    assert path == DIRECT
    assert result.shape == [3_000_000]
    with Bystander() as bystander:
        assert bystander.often(lambda: raw_ops.Range(**arguments))
