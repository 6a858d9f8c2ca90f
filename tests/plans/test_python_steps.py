"""Plans of functions that run Python: `tf.numpy_function`, `tf.py_function`."""

import gc
import os
import re
import threading

import numpy as np
import pytest
import tensorflow as tf
from support import assert_same, floats, python

import fastops

X = tf.constant(floats(3))


def executors(function):
    return [row["executor"] for row in function.describe()]


def both(body, *calls):
    """Call a function three times with each arguments, by TensorFlow and by plans; compare.

    `body` makes the function to trace, given a list to which its Python may append.
    """
    results = []
    for trace in (tf.function, fastops.function):
        noted = []
        function = trace(body(noted))
        results.append(([function(*args) for args in calls for _ in range(3)], noted))
    assert_same(results[1], results[0])
    assert set(executors(function)) == {"plan"}, function.describe()
    return function


def numpy_steps(noted):
    def step(x):
        noted.append(x.tolist())
        return (x * 2.0 + 1e-40).astype(np.float32)

    return lambda x: tf.numpy_function(step, [tf.tanh(x)], tf.float32) + 1.0


def stateless_steps(noted):
    def step(x):
        return np.sort(x)

    return lambda x: tf.numpy_function(step, [tf.tanh(x)], tf.float32, stateful=False) + 1.0


def eager_steps(noted):
    def step(x):
        noted.append(x.numpy().tolist())
        return tf.reverse(x, [0]), x[0]

    return lambda x: tf.py_function(step, [x * 2.0], [tf.float32, tf.float32])


def gradients_of_eager_steps(noted):
    def step(x):
        noted.append(float(x[0]))
        return x * x

    def function(x):
        y = tf.py_function(step, [x], tf.float32)
        return y, tf.gradients(tf.reduce_sum(y * 3.0), [x])[0]

    return function


def texts(noted):
    def step(names, number):
        noted.append(names.tolist())
        return np.array(["ü".encode(), b"longer"], object), number.astype(np.int64)

    return lambda names, number: tf.numpy_function(step, [names, number], [tf.string, tf.int64])


def without_results(noted):
    def function(x):
        tf.py_function(lambda y: noted.append(float(y)), [x[0]], [])
        return x + 1.0

    return function


def in_a_branch(noted):
    def step(x):
        noted.append(float(x))
        return x

    return lambda x: tf.cond(
        x[0] > 0.0, lambda: tf.numpy_function(step, [x[0]], tf.float32), lambda: x[1]
    )


def in_order(noted):
    def function(x):
        for i in range(5):
            tf.numpy_function(lambda i: noted.append(int(i)) or i, [i], tf.int32)
        return x + 1.0

    return function


def rollout(noted):
    """Run an episode of an environment, as programs of actor-critic methods do."""
    weights = tf.constant(floats(3, 2, seed=4))

    def step(state, action):
        noted.append(int(action))
        state = np.sin(state * (1.5 if action else 0.7) + 0.1).astype(np.float32)
        return state, np.array(state.sum() * 0.5, np.float32), np.array(len(noted) % 7 == 0, bool)

    def function(state):
        rewards = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        values = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for t in tf.range(20):
            logits = tf.linalg.matvec(weights, state, transpose_a=True)
            action = tf.argmax(logits, output_type=tf.int32)
            values = values.write(t, logits[0])
            state, reward, done = tf.numpy_function(
                step, [state, action], [tf.float32, tf.float32, tf.bool]
            )
            state.set_shape([3])
            rewards = rewards.write(t, reward)
            if tf.cast(done, tf.bool):
                break
        return rewards.stack(), values.stack(), state

    return function


@pytest.mark.quick
@pytest.mark.parametrize(
    "body",
    [
        numpy_steps,
        stateless_steps,
        eager_steps,
        gradients_of_eager_steps,
        without_results,
        in_a_branch,
        in_order,
        rollout,
    ],
)
def test_functions_with_python_run_as_plans(body):
    both(body, (X,), (-X,))


def test_texts():
    both(texts, (tf.constant(["a", "é"]), tf.constant(3.0)))


def test_a_training_step_with_an_environment():
    """Gradients of a loop with Python in it, and updates of variables."""
    results = []
    for trace in (tf.function, fastops.function):
        noted, weights = [], tf.Variable(floats(3, 2, seed=4))

        def step(state, action, noted=noted):
            noted.append(int(action))
            return np.sin(state + 0.1 * action).astype(np.float32), np.float32(state.sum())

        def train(state, weights=weights, step=step):
            with tf.GradientTape() as tape:
                total = tf.constant(0.0)
                for _ in tf.range(10):
                    logits = tf.linalg.matvec(weights, state, transpose_a=True)
                    action = tf.argmax(logits, output_type=tf.int32)
                    state, reward = tf.numpy_function(
                        step, [state, action], [tf.float32, tf.float32]
                    )
                    state.set_shape([3])
                    reward.set_shape([])
                    total += tf.nn.log_softmax(logits)[action] * reward
            weights.assign_sub(0.1 * tape.gradient(total, weights))
            return total

        function = trace(train)
        losses = [function(X) for _ in range(5)]
        results.append((losses, tf.identity(weights), noted))
    assert_same(results[1], results[0])
    assert executors(function) == ["plan"]


def test_python_runs_in_the_same_kind_of_thread():
    """Not in the caller's: with its own settings of NumPy, and not the main thread for signals."""
    local = threading.local()
    local.value = 1

    def seen(noted):
        def step(x):
            noted.append(threading.get_ident() == main)
            noted.append(hasattr(local, "value"))
            noted.append(np.geterr()["over"])
            noted.append(float(np.float32(1e-38) * np.float32(0.01)))  # denormals are flushed
            return x

        return lambda x: tf.numpy_function(step, [x], tf.float32) + 1.0

    main = threading.get_ident()
    with np.errstate(over="raise"):
        both(seen, (X,))


nests = pytest.mark.skipif(
    (os.cpu_count() or 1) < 2, reason="TensorFlow runs each level of Python in a thread of its own"
)


@nests
def test_python_calls_functions():
    inner = fastops.function(lambda x: tf.numpy_function(lambda y: y * 3.0, [x], tf.float32))
    both(lambda noted: lambda x: tf.py_function(inner, [x], tf.float32) + 1.0, (X,))
    assert executors(inner) == ["plan"]


@nests
def test_python_calls_the_same_function():
    """A run of a plan within a run of the same plan."""
    results = []
    for trace in (tf.function, fastops.function):
        noted, functions = [], []

        def step(n, noted=noted, functions=functions):
            noted.append(int(n))
            return n + functions[0](n - 1) if n > 0 else n

        function = trace(lambda n, step=step: tf.py_function(step, [n], tf.int32) * 2)
        functions.append(function)
        results.append([function(tf.constant(1)) for _ in range(4)] + [noted])
    assert_same(results[1], results[0])
    assert executors(function) == ["plan"]


ERRORS = {
    "ValueError": lambda: ValueError("a value"),
    "TypeError": lambda: TypeError("a type"),
    "StopIteration": lambda: StopIteration("at an end"),
    "NotImplementedError": lambda: NotImplementedError("not there"),
    "MemoryError": lambda: MemoryError("too much"),
    "KeyError": lambda: KeyError("a key"),
    "an error of TensorFlow": lambda: tf.errors.OutOfRangeError(None, None, "beyond"),
}


def failure(function, *args):
    try:
        return function(*args)
    except Exception as error:
        text = re.sub(r"(?<=_)\d+|line \d+", "N", str(error))
        return type(error).__name__, text


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("wrap", [tf.py_function, tf.numpy_function], ids=["py", "numpy"])
def test_errors_are_those_of_tensorflow(wrap, name):
    results = []
    for trace in (tf.function, fastops.function):
        count = tf.Variable(0)
        fails = [False, False, True, False, True]

        def step(x, fails=fails):
            if fails.pop(0):
                raise ERRORS[name]()
            return x

        def failing(x, count=count, step=step):
            count.assign_add(1)
            with tf.control_dependencies([count.read_value()]):
                return wrap(step, [x], tf.float32) * 2.0

        function = trace(failing)
        results.append([failure(function, X) for _ in range(5)] + [int(count)])
    assert_same(results[1], results[0])
    assert isinstance(results[0][2], tuple)
    assert executors(function) == ["plan"]


@pytest.mark.parametrize(
    "value", [np.ones(3), np.ones(3, np.int32), (np.ones(3, np.float32),) * 2, None, "text"]
)
def test_results_of_other_dtypes_and_numbers(value):
    results = []
    for trace in (tf.function, fastops.function):
        values = [np.ones(3, np.float32), np.ones(3, np.float32), value]

        def step(x, values=values):
            return values.pop(0)

        function = trace(lambda x, step=step: tf.numpy_function(step, [x], tf.float32) * 2.0)
        results.append([failure(function, X) for _ in range(3)])
    assert_same(results[1], results[0])
    assert isinstance(results[0][2], tuple)
    assert executors(function) == ["plan"]


def test_arrays_that_python_keeps():
    """Arrays that the function keeps are not overwritten by later steps, and keep the results."""

    def keeping(noted):
        state = np.zeros(64, np.float32)

        def step(x):
            noted.append(x)
            state[:] += x
            return state

        return lambda x: tf.numpy_function(step, [x * 2.0], tf.float32) * 3.0 - 1.0

    y = tf.constant(floats(64))
    fast = both(keeping, (y,), (y + 1.0,))
    assert fast.planned == 5  # the second arguments have the signature of the first


def test_the_function_dies_while_its_plan_runs():
    held = {}

    def step(x):
        if held.pop("function", None) is not None:
            gc.collect()
        return x * 2.0

    held["function"] = fastops.function(lambda x: tf.numpy_function(step, [x], tf.float32) + 1.0)
    for _ in range(2):
        function = held["function"]
        assert_same(function(X), X * 2.0 + 1.0)
        held["function"] = function
    del function
    assert_same(held["function"](X), X * 2.0 + 1.0)
    assert held == {}


def test_threads():
    fast = fastops.function(
        lambda x: tf.numpy_function(lambda y: y * 2.0, [x + 1.0], tf.float32) - 1.0
    )
    fast(X)
    errors = []

    def work(number):
        try:
            for i in range(50):
                x = tf.constant([float(number), float(i)])
                assert_same(fast(x), (x + 1.0) * 2.0 - 1.0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(executors(fast)) == {"plan"}


def test_functions_that_wait_and_run_python_fall_back():
    """In one of TensorFlow's threads a plan must not wait for another one of them."""

    def summed(iterator):
        return tf.numpy_function(lambda y: y * 2, [next(iterator)], tf.int64)

    results = []
    for trace in (tf.function, fastops.function):
        iterator = iter(tf.data.Dataset.range(5))
        function = trace(summed)
        results.append([function(iterator) for _ in range(4)])
    assert_same(results[1], results[0])
    (described,) = function.describe()
    assert described["executor"] == "tensorflow"
    assert "waits" in described["reason"] or "wait" in described["reason"]


def test_one_thread_for_graphs():
    """With a single thread, plans that run Python do not block each other."""
    out = python("""
        import threading
        tf.config.threading.set_inter_op_parallelism_threads(1)
        fast = fastops.function(
            lambda x: tf.numpy_function(lambda y: y * 2.0, [x], tf.float32) + 1.0
        )
        def work():
            for _ in range(50):
                assert float(fast(tf.constant(3.0))) == 7.0
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(fast.describe()[0]["executor"])
    """)
    assert out == "plan\n"


def test_unchanged_programs():
    mine, theirs = [], []
    with fastops.accelerated():
        function = tf.function(rollout(mine))
        got = [function(X) for _ in range(4)]
        assert function._fastops_caller.planned == 2
    function = tf.function(rollout(theirs))
    assert_same(([function(X) for _ in range(4)], theirs), (got, mine))
