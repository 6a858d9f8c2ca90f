"""Functions of the runtime: random ops with seeds, and calls that tapes record."""

import contextlib
import gc
import re
import threading
import weakref

import pytest
import tensorflow as tf
from calls import frames
from support import assert_same, failure, floats, optimizer_options, python
from tensorflow.python.eager import context
from tensorflow.python.framework import op_callbacks

import fastops
from fastops._plans import runtime_function
from fastops._specialize import policy

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant(floats(3, 2))


@pytest.fixture(autouse=True)
def at_once():
    """Make plans as soon as possible."""
    before = policy.set_share(0.0)
    yield
    policy.set_share(before)


def known(function, *args):
    """Return what runs the calls of a traced function that no tape records."""
    concrete = function.get_concrete_function(*args)
    return runtime_function.known(concrete._inference_function)


def noise(x):
    return x + tf.random.normal(x.shape), tf.random.uniform([2], maxval=9, dtype=tf.int32)


def shuffled(x):
    return tf.random.shuffle(x), tf.random.gamma([3], 0.7), tf.random.poisson([2], [3.0, 9.0])


def classes(x):
    return tf.random.categorical(x, 5)


def truncated(x):
    return tf.random.truncated_normal([3, 5], dtype=tf.float64), tf.random.normal([], seed=7)


def looped(x):
    total = tf.zeros([2])
    for _ in tf.range(tf.size(x)):
        # Otherwise iterations run in parallel, and it is left to chance which one draws first.
        tf.autograph.experimental.set_loop_options(parallel_iterations=1)
        if tf.random.uniform([]) < 0.7:
            total += tf.random.normal([2])
    return total


def branching(x):
    if tf.reduce_sum(x) > 0:
        return tf.random.normal([2])
    return tf.random.normal([2], mean=9.0)


def sized(x):
    return tf.random.normal([tf.cast(tf.abs(x[0, 0]) * 3, tf.int32) + 1])


FUNCTIONS = [noise, shuffled, classes, truncated, looped, branching, sized]


def calls(body, number=6, before=0):
    """Return the results of calls of a traced function, and the function."""
    function = tf.function(body)
    results = [function(X * (i - 2.0)) for i in range(before)]
    tf.random.set_seed(5)
    results += [function(X * (i - 2.0)) for i in range(number)]
    return results, function


@pytest.mark.parametrize("body", FUNCTIONS)
@pytest.mark.parametrize("before", [0, 3])
def test_sequences_go_on(body, before):
    tf.random.set_seed(1)
    expected, _ = calls(body, before=before)
    tf.random.set_seed(1)
    with fastops.accelerated():
        got, function = calls(body, before=before)
        found = known(function, X)
        planned = function._fastops_caller.planned
    assert_same(got, expected)
    assert found.owned
    assert planned >= 3


def test_seeds_of_ops():
    out = python("""
        import tensorflow as tf, fastops
        fastops.install()
        function = tf.function(lambda: tf.random.normal([2], seed=3))
        again = tf.function(lambda: tf.random.normal([2], seed=3))
        print([function().numpy().tolist() for _ in range(4)])
        print(again().numpy().tolist(), tf.random.normal([2], seed=3).numpy().tolist())
    """)
    stock = out.replace("fastops.install()", "")
    assert stock == python("""
        import tensorflow as tf
        function = tf.function(lambda: tf.random.normal([2], seed=3))
        again = tf.function(lambda: tf.random.normal([2], seed=3))
        print([function().numpy().tolist() for _ in range(4)])
        print(again().numpy().tolist(), tf.random.normal([2], seed=3).numpy().tolist())
    """)


def surroundings(function, concrete):
    """Call a function in surroundings that share its sequence, and in others."""
    results = [function(X) for _ in range(4)]
    with tf.device("/CPU:0"):
        results.append(function(X))
    results += [concrete(X), concrete(tf.constant(X.numpy()))]
    worker = threading.Thread(target=lambda: results.append(function(X)))
    worker.start()
    worker.join()
    with context.execution_mode(context.ASYNC):
        results.append(function(X * 1.0))
    with tf.GradientTape() as tape:
        results.append(function(X))
        tape.watch(X)
        results.append(function(X))
    del tape
    nested = tf.function(lambda x: function(x))
    results += [nested(X), nested(X), function(X)]
    tf.config.optimizer.set_experimental_options({"constant_folding": False})
    results += [function(X), function(X)]
    tf.config.optimizer.set_experimental_options({"constant_folding": True})
    results += [function(X), function(X)]
    results.append(tf.vectorized_map(function, tf.stack([X, X])))
    tf.random.set_seed(3)
    return [*results, function(X), function(X)]


@pytest.mark.parametrize("body", [noise, looped])
def test_surroundings(body):
    def run():
        tf.random.set_seed(2)
        function = tf.function(body)
        with optimizer_options(constant_folding=True):
            return surroundings(function, function.get_concrete_function(X))

    expected = run()
    with fastops.accelerated():
        got = run()
    assert_same(got, expected)


@pytest.mark.parametrize("body", [noise, looped])
def test_uninstalled_and_installed_again(body):
    def run(surrounding):
        function, results = tf.function(body), []

        def call(times):
            results.extend(function(X) for _ in range(times))

        with surrounding():
            tf.random.set_seed(2)
            call(4)
        call(3)
        with surrounding():
            call(3)
        tf.random.set_seed(4)
        call(2)
        tf.random.set_seed(4)
        with surrounding():
            call(2)
            tf.random.set_seed(6)
        call(2)
        return results, function

    expected, _ = run(contextlib.nullcontext)
    got, function = run(fastops.accelerated)
    assert_same(got, expected)
    assert known(function, X).owned


def test_draws_before_install_are_unknown():
    function = tf.function(noise)
    tf.random.set_seed(2)
    results = [function(X)]
    with fastops.accelerated():
        results += [function(X) for _ in range(4)]
        assert not known(function, X).owned
        (case,) = function._fastops_caller.known_cases()
        assert case.runner.reason.startswith("a random op has a seed")
    tf.random.set_seed(2)
    function = tf.function(noise)
    assert_same([function(X) for _ in range(5)], results)


def test_a_function_that_was_refused_is_owned_after_the_next_seed():
    class Watched:  # an op callback: plans make no calls
        def __enter__(self):
            op_callbacks.add_op_callback(lambda *args, **kwargs: None)

        def __exit__(self, *_):
            op_callbacks.clear_op_callbacks()

    def run():
        tf.random.set_seed(2)
        function = tf.function(looped)
        with Watched():
            results = [function(X)]
        results += [function(X) for _ in range(3)]
        tf.random.set_seed(2)
        results += [function(X) for _ in range(4)]
        return results, function

    expected, _ = run()
    with fastops.accelerated():
        got, function = run()
    assert_same(got, expected)
    assert known(function, X).owned


def test_threads_share_the_sequence():
    def run():
        tf.random.set_seed(2)
        function, drawn = tf.function(lambda: tf.random.normal([1000])), []
        function()

        def work():
            drawn.extend(function().numpy().tobytes() for _ in range(50))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(drawn)

    expected = run()
    with fastops.accelerated():
        assert run() == expected


def test_errors():
    def failing(x):
        drawn = tf.random.normal([2])
        tf.debugging.assert_less(x, 5.0)
        return drawn

    def run():
        tf.random.set_seed(2)
        function = tf.function(failing)
        concrete = function.get_concrete_function(X)
        flat = concrete._inference_function.call_flat
        results = [function(X) for _ in range(4)]
        told = [
            failure(lambda: function(X + 9.0)),
            failure(flat),
            failure(lambda: flat(tf.constant(1))),
            failure(lambda: flat(tf.constant("a"))),
        ]
        return results, [type(error) for error in told], [str(error) for error in told]

    expected = run()
    with fastops.accelerated():
        got = run()
    assert_same(got[:2], expected[:2])
    for mine, stock in zip(got[2], expected[2], strict=True):
        assert without_numbers(mine) == without_numbers(stock)


def without_numbers(text):
    """Return a message without the numbers in the names of functions, and without line numbers."""
    return re.sub(r"_\d+|, line \d+", "#", text)


def test_nothing_is_kept():
    with fastops.accelerated():
        tf.random.set_seed(2)
        function = tf.function(noise)
        for _ in range(4):
            function(X)
        assert known(function, X).owned
        atomic = weakref.ref(function.get_concrete_function(X)._inference_function)
        found = weakref.ref(known(function, X))
        del function
        gc.collect()
        assert atomic() is None
        assert found() is None


# ---------------------------------------------------------------------------------------------
# Calls that tapes record
# ---------------------------------------------------------------------------------------------


def dense(w):
    return tf.function(lambda x: (tf.tanh(x @ w), tf.reduce_sum(x)))


def twice(w):
    return tf.function(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x @ w, lambda: x - w[:, 0]))


def unrolled(w):
    def body(x):
        total = tf.zeros([3, 4])
        for _ in tf.range(3):
            total += tf.nn.relu(x @ w)
        return total

    return tf.function(body)


def gathered(w):
    return tf.function(lambda x: tf.gather(w, [1, 0, 1]) * tf.reduce_mean(x))


def drawing(w):
    return tf.function(lambda x: tf.nn.dropout(x @ w, 0.5) + tf.random.normal([3, 4]))


def integers(w):
    return tf.function(lambda x: (tf.argmax(x, 1), tf.cast(x, tf.int32), x @ w, None))


TAPED = [dense, twice, unrolled, gathered, drawing, integers]


def losses(results):
    return sum(
        tf.reduce_sum(value * value)
        for value in tf.nest.flatten(results)
        if value is not None and value.dtype.is_floating
    )


def first_order(function, w, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = losses(function(x))
    return loss, tape.gradient(loss, [x, w])


def persistent(function, w, x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = losses(function(x))
    return (
        tape.gradient(loss, [x, w]),
        tape.gradient(loss, w),
        tape.jacobian(loss, x, experimental_use_pfor=False),
    )


def second_order(function, w, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = losses(function(x))
        gradient = inner.gradient(loss, x)
        total = tf.reduce_sum(gradient * gradient)
    return gradient, outer.gradient(total, [x, w])


def stopped(function, w, x):
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        with tape.stop_recording():
            early = losses(function(x))
        loss = losses(function(x)) * early
    return loss, tape.gradient(loss, [x, w])


def forward_mode(function, w, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        loss = losses(function(x))
    return accumulator.jvp(loss)


WAYS = [first_order, persistent, second_order, stopped, forward_mode]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", TAPED)
def test_taped_calls(make, way):
    def run():
        tf.random.set_seed(3)
        w = tf.Variable(floats(2, 4))
        function = make(w)
        results = []
        for step in range(5):
            results.append(way(function, w, X + 0.25 * step))
            w.assign_add(tf.ones_like(w) * 0.125)
        return results, function

    expected, _ = run()
    with fastops.accelerated():
        got, _ = run()
    assert_same(got, expected)


def test_forward_and_backward_functions_get_plans():
    with fastops.accelerated():
        w = tf.Variable(floats(2, 4))
        function = dense(w)
        for _ in range(5):
            first_order(function, w, X)
        concrete = function.get_concrete_function(X)
        pair = concrete._first_order_tape_functions
        (functions,) = pair.values()
        for atomic in (functions._forward, functions._backward._inference_function):
            assert runtime_function.known(atomic).runner.plan is not None


@pytest.mark.parametrize("persistent", [False, True])
def test_later_taped_calls_run_without_tensorflow(persistent):
    """What tapes record is TensorFlow's; its Python code runs only in the first calls."""
    w = tf.Variable(floats(2, 4))
    function, passed = dense(w), tf.function(lambda x, w: tf.nn.relu(x @ w))

    def step():
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(X)
            loss = losses(function(X)) + losses(passed(X, w))
        return loss, tape.gradient(loss, [X, w])

    expected = step()
    with fastops.accelerated():
        for _ in range(8):
            assert_same(step(), expected)
        entered = frames(step, (), {})
        # A tape that may be used again asks TensorFlow's function whether it is recorded.
        assert not {"_call_flat", "_wrap_backward_function", "record_operation"} & set(entered)
        assert_same(step(), expected)


def test_forward_functions_with_later_outputs():
    """Gradients of a higher order add outputs to the graph of the first forward function."""

    def run():
        function, results = tf.function(lambda x: (tf.exp(tf.sin(x)) * x, tf.size(x))), []
        for way in (first_order, persistent, second_order, first_order, persistent, second_order):
            results += [way(function, tf.Variable(2.0), X) for _ in range(4)]
        return results

    expected = run()
    with fastops.accelerated():
        assert_same(run(), expected)


def test_accumulators_around_tapes():
    """TensorFlow has other functions for calls that an accumulator watches."""

    def both(function, w):
        with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
            loss, gradient = first_order(function, w, X)
        return loss, accumulator.jvp(loss), gradient, accumulator.jvp(gradient[0])

    def run():
        w = tf.Variable(floats(2, 4))
        function, results = dense(w), []
        for _ in range(5):
            results += [first_order(function, w, X), both(function, w)]
        return results

    expected = run()
    with fastops.accelerated():
        assert_same(run(), expected)


def test_verified_taped_calls():
    """While calls are verified, the function changes its variable once in each call."""
    w, count = tf.Variable(floats(2, 4)), tf.Variable(0.0)

    @tf.function
    def function(x):
        count.assign_add(1.0)
        return x @ w

    expected = first_order(function, w, X)
    count.assign(0.0)
    with fastops.accelerated(verify=True):
        for _ in range(6):
            assert_same(first_order(function, w, X), expected)
    assert float(count) == 6.0


def test_taped_calls_after_uninstall():
    w = tf.Variable(floats(2, 4))
    function = dense(w)
    expected = first_order(function, w, X)
    with fastops.accelerated():
        for _ in range(5):
            first_order(function, w, X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            loss = losses(function(X))
    assert_same((loss, tape.gradient(loss, [X, w])), expected)


def test_watched_variables_of_taped_calls():
    def run():
        w, v = tf.Variable(floats(2, 4)), tf.Variable(floats(4), trainable=False)
        function = tf.function(lambda x, v: x @ w + v)
        results = []
        for _ in range(6):
            with tf.GradientTape() as tape:
                function(X, v)
            results.append([variable is w for variable in tape.watched_variables()])
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(v)
                y = function(X, v)
            results.append([tape.gradient(y, [w, v]), tape.watched_variables() == ()])
        return results

    expected = run()
    with fastops.accelerated():
        assert_same(run(), expected)


def test_errors_of_taped_calls():
    def run():
        function = tf.function(lambda x: tf.debugging.check_numerics(tf.math.log(x), "bad") * x)
        messages = []
        for step in range(6):
            x = tf.constant([1.0, 2.0 if step % 2 else -1.0])
            with tf.GradientTape() as tape:
                tape.watch(x)
                try:
                    messages.append(tape.gradient(function(x), x))
                except tf.errors.InvalidArgumentError as error:
                    messages.append(re.sub(r"_\d+", "", error.message.partition("\n")[0]))
        return messages

    expected = run()
    with fastops.accelerated():
        assert_same(run(), expected)


def test_taped_calls_in_threads():
    """Threads make, renew and run the plans of one function. This crashed."""
    w = tf.Variable(floats(2, 4))
    expected = first_order(dense(w), w, X)
    problems = []

    def work(function):
        for _ in range(20):
            try:
                assert_same(first_order(function, w, X), expected)
            except AssertionError as problem:
                problems.append(problem)

    for _ in range(6):
        fastops.clear_cache()
        function = dense(w)
        with fastops.accelerated():
            threads = [threading.Thread(target=work, args=(function,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert not problems


def test_variables_of_another_shape():
    """A function with an argument that is a variable: the plan is for one shape of it."""

    def run():
        function = tf.function(lambda v, x: tf.reduce_sum(v * x), reduce_retracing=True)
        results = []
        for sizes in ([2], [2], [2], [3], [3], [3], [2]):
            v, x = tf.Variable(floats(*sizes)), tf.constant(floats(*sizes))
            with tf.GradientTape() as tape:
                loss = function(v, x)
            results.append((loss, tape.gradient(loss, v)))
        return results

    expected = run()
    with fastops.accelerated():
        assert_same(run(), expected)


def test_taped_calls_are_bound_once():
    """Objects among the arguments, and a default: what is bound belongs to these objects."""

    class Model:
        def __init__(self):
            self.w = tf.Variable(floats(2, 4))

    def body(x, model, scale=2.0):
        return tf.reduce_sum(x @ model.w) * scale

    def run():
        model, other = Model(), Model()
        function, results = tf.function(body), []
        for step in range(12):
            x = tf.constant(floats(3 + step % 2, 2))
            used = model if step % 3 else other
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = function(x, used) + function(x, scale=3.0, model=used)
            results.append((loss, tape.gradient(loss, [x, used.w])))
        del model, other, used
        gc.collect()
        again = Model()
        with tf.GradientTape() as tape:
            results.append(function(X, again))
        return results, function

    expected, _ = run()
    with fastops.accelerated():
        got, function = run()
        bound = function._fastops_caller.reasons
    assert_same(got, expected)
    assert len(bound) == 1  # a tape records


def test_a_retraced_signature_is_bound_again():
    """What `tf.function` would trace anew has another signature here, too."""

    def run():
        function, results = tf.function(lambda x, flag: x * 2 if flag else x + 1), []
        for step in range(8):
            for x in (X, tf.constant([1, 2]), tf.constant(floats(4, 1))):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    results.append(function(x, step % 2 == 0))
        return results

    expected = run()
    with fastops.accelerated():
        assert_same(run(), expected)


def test_a_profile_names_functions_that_have_died():
    """TensorFlow frees the functions of `tf.vectorized_map` after each call."""
    offset = 0.0

    def run():
        return tf.vectorized_map(lambda row: row * 2.0 + offset, X)

    with fastops.accelerated(), fastops.profile() as seen:
        for number in range(6):
            offset = float(number)
            run()
        gc.collect()
        assert "Mul" in str(seen)
