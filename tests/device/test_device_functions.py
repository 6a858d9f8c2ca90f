"""Traced functions whose nodes are all on one device have plans that run on this device.

A plan gives the device the same kernels to run as TensorFlow's executor, and copies nothing.
"""

import threading

import numpy as np
import plugged
import pytest
import tensorflow as tf
from apart import Process, within
from plugged import FIRST_DEVICE, SECOND_DEVICE, here, places, there, unchanged
from support import assert_same, assert_same_bits, failure, floats, outcome
from tensorflow.python.eager import context

import fastops

FIRST = "this is the first call of its signature"


def settled(device, body, *args, attempts=3):
    """Compare a plan with TensorFlow's function: bits, devices, kernels, and copies.

    Returns the result of the function.
    """
    traced, planned = tf.function(body), fastops.function(body, executor="plan")
    traced(*args)
    want, expected = device.work_of(lambda: traced(*args))
    for attempt in range(attempts):
        got, work = device.work_of(lambda: planned(*args))
        assert_same(got, want)
        assert places(got) == places(want)
        assert work == expected or not attempt, f"{work}, not {expected}"
    (seen,) = fastops.stats().functions.values()
    assert (seen.plan, seen.tensorflow) == (attempts, 0), seen
    fastops.reset_stats()
    return got


def left_to_tensorflow(body, *args):
    """Compare a function without a plan with TensorFlow's; return the reasons."""
    traced, ours = tf.function(body), fastops.function(body)
    for _ in range(4):
        got, want = ours(*args), traced(*args)
        assert_same(got, want)
        assert places(got) == places(want)
    (seen,) = fastops.stats().functions.values()
    assert seen.plan == 0, seen
    fastops.reset_stats()
    reasons = {row["reason"] for row in ours.describe()}
    sentences = {reason.partition(": ")[0] for reason in reasons}
    return reasons | ({fastops.REASONS[reason] for reason in seen.reasons} - sentences)


def check_values(device):
    x, y = there(floats(3, 3), floats(3, 3, seed=1))
    weight = tf.Variable(floats(3, seed=2))
    held = there(floats(3))[0]

    def several(a, b):
        for _ in range(2):
            a = tf.tanh(a @ b) + weight * 2.0
        return tf.reduce_sum(a, axis=1), [a, -a], tf.shape(a), tf.size(b)

    got = settled(device, several, x, y)
    assert got[0].backing_device.endswith(FIRST_DEVICE)
    assert got[2].backing_device.endswith("CPU:0")  # the registration of the kernel says so
    settled(device, lambda a: (a + held) * 2.0, x)
    settled(device, lambda a: (a, a), x)
    settled(device, lambda a: tf.constant([1.0, 2.0]), x)
    settled(device, lambda a: tf.reshape(tf.cast(a, tf.float64), [9]), x)
    settled(device, lambda: held * held)


@within("plugged_in")
def test_values(device):
    check_values(device)


@within("pooled")
def test_values_with_a_pool(device):
    check_values(device)


@within("plugged_in")
def test_variables(device):
    """Variables change in the order of the program, once in each call."""
    (x,) = there(floats(3))

    def program(function):
        total, count = tf.Variable(tf.zeros([3])), tf.Variable(tf.ones([3]))

        def body(a):
            total.assign_add(a * count)
            before = total.read_value()
            count.assign_add(a)
            total.assign_sub(count)
            return before, total.read_value()

        ours = function(body)
        results = [ours(x) for _ in range(4)]
        seen = [function.plan for function in fastops.stats().functions.values()]
        return seen, results, total.read_value(), count.read_value(), total.device

    (_, *want) = program(tf.function)
    (seen, *got) = program(lambda body: fastops.function(body, executor="plan"))
    assert_same(got, want)
    assert seen == [4]
    assert want[-1].endswith(FIRST_DEVICE)


@within("plugged_in")
def test_the_second_device(device):
    """A function has a plan if it runs only on the second device; otherwise it falls back."""
    (x,) = there(floats(3, 3), number=1)

    def body(a):
        with tf.device(SECOND_DEVICE):
            return tf.tanh(a @ a) + 1.0

    got = settled(device, body, x)
    assert got.backing_device.endswith(SECOND_DEVICE)
    (reason,) = left_to_tensorflow(lambda a: tf.tanh(a @ a), x) - {FIRST}
    assert reason.startswith(("the function runs on several devices", "the kernel of an op cannot"))


@within("plugged_in")
def test_functions_on_the_host_have_plans(device):
    """Functions on the host have plans although the process has other devices."""
    (x,) = here(floats(3, 3))

    def body(a):
        with tf.device("CPU:0"):
            return tf.tanh(a @ a) + a

    got = settled(device, body, x)
    assert got.backing_device.endswith("CPU:0")


@within("plugged_in")
def test_arguments_on_all_devices(device):
    """The device of an argument is part of the signature, so one trace may have several plans."""
    (a,), (b,), (c,) = there(floats(3)), there(floats(3), number=1), here(floats(3))

    def body(x, scale):
        return x * 2.0 + scale

    traced, ours = tf.function(body), fastops.function(body)
    for _ in range(4):
        for x in (a, b, c, floats(3), tf.constant(floats(3))):
            for scale in (1.0, a, c):
                got, want = ours(x, scale), traced(x, scale)
                assert_same(got, want)
                assert places(got) == places(want)
    assert fastops.stats().functions["test_arguments_on_all_devices.<locals>.body"].plan > 0
    fastops.reset_stats()


@within("plugged_in")
def test_int32_arguments_are_in_host_memory(device):
    """TensorFlow passes int32 arguments and results of functions in host memory."""
    (x,), (n,) = there(floats(4)), here(np.int32([2, 2]))
    assert left_to_tensorflow(tf.reshape, x, n) == {
        "the function runs on several devices: 2",
        FIRST,
    }
    with tf.device(FIRST_DEVICE):
        numbers = tf.constant([1, 2]) + tf.constant([1, 1])
    traced, ours = tf.function(lambda k: k + k), fastops.function(lambda k: k + k)
    for _ in range(4):
        got, want = ours(numbers), traced(numbers)
        assert_same(got, want)
        assert places(got) == places(want)
    fastops.reset_stats()


@within("plugged_in")
def test_functions_without_a_plan(device):
    (x,) = there(floats(4))

    def looping(a):
        total = tf.zeros_like(a)
        for i in tf.range(3):
            if tf.reduce_sum(total) < 100.0:
                total += a * tf.cast(i, tf.float32)
        return total

    for body in (looping, lambda a: tf.py_function(lambda b: b + 1.0, [a], tf.float32)):
        assert left_to_tensorflow(body, x)
    body = fastops.function(lambda a: a + 1.0, executor="plan")
    for _ in range(3):
        with tf.device(SECOND_DEVICE):
            assert_same(body(x), tf.function(lambda a: a + 1.0)(x))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = body(x)
        assert_same(tape.gradient(y, x), tf.ones([4]))
    (seen,) = fastops.stats().functions.values()
    assert seen.plan == 0
    fastops.reset_stats()


@within("plugged_in")
def test_an_unchanged_program(device):
    x, y = there(floats(8, 3), floats(8, 2))
    w, b = tf.Variable(floats(3, 2)), tf.Variable(tf.zeros([2]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ w + b) - y))
        for variable, gradient in zip((w, b), tape.gradient(loss, (w, b)), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    def program():
        w.assign(floats(3, 2))
        b.assign(tf.zeros([2]))
        return [step() for _ in range(8)], w.read_value(), b.read_value()

    unchanged(device, program)


@within("plugged_in")
def test_errors_that_are_raised_at_once(device):
    x, y = there(floats(2, 3), floats(2, 3))
    traced = tf.function(tf.matmul, input_signature=[tf.TensorSpec([None, None])] * 2)
    planned = fastops.function(traced, executor="plan")
    want = outcome(lambda: traced(x, y))
    assert want.kind is tf.errors.InvalidArgumentError
    for _ in range(3):
        assert outcome(lambda: planned(x, y)).kind is want.kind
        assert_same(planned(x, tf.transpose(y)), traced(x, tf.transpose(y)))
    fastops.reset_stats()


@within("plugged_in")
def test_errors_that_arrive_later(device):
    (x,) = there([1.0, np.nan])
    body = tf.function(lambda a: tf.debugging.check_numerics(a * 2.0, "found"))
    planned = fastops.function(body.python_function, executor="plan")
    failures = []
    for function in (body, planned, planned):
        device.synchronize()
        late = function(x)
        device.synchronize()
        failures.append(failure(late.numpy))
        device.mend()
    assert failures[0] == failures[1] == failures[2]
    assert failures[0].kind is tf.errors.InternalError
    fastops.reset_stats()


@within("plugged_in")
def test_calls_do_not_wait_for_the_device(device):
    (x,) = there(floats(3, 3))
    planned = fastops.function(lambda a: tf.tanh(a @ a) * 2.0 + a, executor="plan")
    want = planned(x).numpy()
    for _ in range(3):
        device.synchronize()
        with device.held():
            got = planned(x)
        assert_same_bits(got.numpy(), want)
    fastops.reset_stats()


@within("plugged_in")
def test_memory_is_released(device):
    """Memory is released, even of arguments that are dropped before the device has read them."""
    planned = fastops.function(
        lambda a, b: tf.maximum(a * b + tf.tanh(a), 0.0) - a * 2.0, executor="plan"
    )

    def program():
        x, y = there(floats(64), floats(64, seed=1))
        for _ in range(20):
            x = planned(x, y)
        return x

    device.delay(200)
    want = program().numpy()
    device.synchronize()
    live = device.live()
    assert_same_bits(program().numpy(), want)
    device.synchronize()
    assert device.live() == live
    device.delay(60)
    fastops.reset_stats()


@within("plugged_in")
def test_threads(device):
    (x,) = there(floats(16))
    weight = tf.Variable(floats(16))
    planned = fastops.function(lambda a: tf.tanh(a * weight) + a, executor="plan")
    want = planned(x).numpy()
    problems = []

    def work():
        for _ in range(100):
            value = planned(x).numpy()
            if value.tobytes() != want.tobytes():
                problems.append(value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    fastops.reset_stats()


@within("resetting")
def test_plans_are_dropped_with_their_context(device):
    for _ in range(3):
        (x,) = there(floats(3))
        settled(device, lambda a: tf.tanh(a) * 2.0 + a, x)
        del x
        context._reset_context()
        context._context_handle = None


@pytest.fixture(scope="module")
def second_only():
    """Yield a process in which only the second device is visible."""
    process = Process(hide_first)
    yield process
    process.end()


def hide_first():
    given = plugged.load()
    devices = tf.config.list_physical_devices(plugged.TYPE)
    tf.config.set_visible_devices(devices[1:], plugged.TYPE)
    return given


@within("second_only")
def test_only_the_second_device_is_visible(device):
    """The second device has the number 0 then, in TensorFlow and in fastops."""
    (x,) = there(floats(3, 3))
    got = settled(device, lambda a: tf.tanh(a @ a) + 1.0, x)
    assert got.device.endswith(FIRST_DEVICE)
    assert device.allocated(1) > 0
    assert device.allocated(0) == 0
