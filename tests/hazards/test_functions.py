"""Plans of functions under load: memory in ten million calls, and eight threads."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from memory import growth
from stress import run_threads, seconds, times
from support import python

import fastops

WIDTH = 8
rng = np.random.default_rng(0)


def planned(f):
    return fastops.function(f, executor="plan", autograph=False)


class Replays:
    """Calls of functions that have plans, one kind in each method. Results are dropped."""

    def __init__(self):
        self.x = tf.constant([1.0, 2.0])
        self.array = np.float32([1, 2])
        self.large = tf.ones([300, 300])
        self.text = tf.constant("a longer text " * 9)
        self.variable = tf.Variable(self.x)

        self.two_ops = planned(lambda x: tf.tanh(x) * 2.0)
        self.nest = planned(lambda x, scale=1.0: {"a": x * scale, "b": [x, (x + x, None)]})
        self.product = planned(lambda x: tf.reduce_sum(x @ x))
        self.joined = planned(lambda x: tf.strings.join([x, x]))
        self.update = planned(lambda x: self.variable.assign_add(x) - self.variable.assign_sub(x))
        self.checked = planned(self.check)
        self.walk = planned(
            lambda x: tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, tf.tanh(y)), [0, x])
        )
        self.draw = planned(lambda x: x + tf.random.uniform([2]))
        self.gradient = planned(self.differentiate)

    def check(self, x):
        with tf.control_dependencies([tf.debugging.assert_less(x, 10.0)]):
            return x + 1.0

    def differentiate(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(x) * self.variable)
        return tape.gradient(y, [x, self.variable])

    # These run as plans.

    def tensors(self):
        self.two_ops(self.x)

    def structures(self):
        self.nest(self.x, scale=3.0)

    def arrays(self):
        self.two_ops(self.array)

    def large_buffers(self):
        self.product(self.large)

    def strings(self):
        self.joined(self.text)

    def variables(self):
        self.update(self.x)

    def loops(self):
        self.walk(self.x)

    def random(self):
        self.draw(self.x)

    def gradients(self):
        self.gradient(self.x)

    # These run in TensorFlow.

    def tapes(self):
        with tf.GradientTape() as tape:
            y = self.two_ops(self.variable)
        tape.gradient(y, self.variable)

    def dropped_functions(self):
        planned(lambda x: x + 1.0)(self.x)


# The full amount is ten million calls.
FLAT = {
    "tensors": 6_000_000,
    "structures": 1_500_000,
    "arrays": 600_000,
    "large_buffers": 20_000,
    "strings": 800_000,
    "variables": 800_000,
    "loops": 100_000,
    "random": 400_000,
    "gradients": 200_000,
    "tapes": 10_000,
}


TAPED = "a tape or an accumulator records"


def watch_replays():
    replays = Replays()
    for name, full in FLAT.items():
        grown = growth(getattr(replays, name), times(full))
        print(f"{name}: {grown}, {times(full)} calls")
        assert not grown.exceeds(), name
    functions = [value for value in vars(replays).values() if isinstance(value, fastops.Function)]
    assert len(functions) == 9
    for function in functions:
        for row in function.describe():
            assert row["executor"] == "plan" or row["reason"] == TAPED, row


def test_memory():
    print(run("watch_replays()"))


def run(statement):
    return python(
        f"""
        import gc, sys
        sys.path.append({str(Path(__file__).parent)!r})
        from test_functions import share, watch_replays
        gc.freeze()  # ignore existing objects: collections take a hundredth of the time
        {statement}
        """,
        timeout=seconds(3000),
    )


# ---------------------------------------------------------------------------------------------
# Threads
# ---------------------------------------------------------------------------------------------


class Shared:
    """Functions that all threads call with their own tensors; every result is checked."""

    def __init__(self):
        self.weights = tf.constant(rng.normal(size=(WIDTH, WIDTH)).astype(np.float32))
        self.count = tf.Variable(0, dtype=tf.int64)
        self.layer = planned(lambda x: tf.tanh(x @ self.weights))
        self.steps = planned(self.loop)
        self.branches = planned(
            lambda x: tf.cond(x[0, 0] > 0.0, lambda: tf.exp(x), lambda: x - 1.0)
        )
        self.add = planned(lambda n: self.count.assign_add(n))
        self.fails = planned(lambda x, i: tf.gather(x, i))

    def loop(self, x):
        def body(i, y):
            return i + 1, tf.tanh(y @ self.weights)

        return tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]

    def work(self, seed, calls):
        values = np.random.default_rng(seed).normal(size=(2, WIDTH)).astype(np.float32)
        x, one = tf.constant(values), tf.constant(1, tf.int64)
        functions = (self.layer, self.steps, self.branches)
        wants = [function._traced(x).numpy().tobytes() for function in functions]
        far = tf.constant([1000])
        made = 0
        while made < calls:
            for function, want in zip(functions, wants, strict=True):
                assert function(x).numpy().tobytes() == want
                assert function(values).numpy().tobytes() == want
            self.add(one)
            made += 7
            if made % 700 == 0:
                with suppress(tf.errors.InvalidArgumentError):
                    self.fails(x, far)
                    raise AssertionError
        return made // 7


def share(threads, calls):
    """Run several threads with a minimum of calls each, while another thread drops plans."""
    shared = Shared()

    def meddle():
        shared.layer.reset()
        shared.add.reset()

    made = run_threads(threads, lambda number: shared.work(number, calls), meddle, pause=0.2)
    assert int(shared.count) == sum(made), "an update was lost"
    for function in (shared.steps, shared.branches):
        assert [row["executor"] for row in function.describe()] == ["plan"]
    print(7 * sum(made))


@pytest.mark.parametrize("threads", [8])
def test_threads(threads):
    assert int(run(f"share({threads}, {times(1_000_000)})")) >= threads * times(1_000_000)
