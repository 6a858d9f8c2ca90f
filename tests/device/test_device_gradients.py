"""Gradients and variables under `install`, on a device that comes before the host.

A rule runs the same ops as TensorFlow's gradient function, on the same devices, with no more
kernels and copies. A rule that would have to read the values of a tensor on a device falls back to
TensorFlow.
"""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
from apart import within
from differentiable import CASES, derivatives, first, values
from plugged import FIRST_DEVICE, SECOND_DEVICE, here, places, there, unchanged
from support import Failure, assert_same, floats, walks_in_full

import fastops
from fastops._autodiff import walks
from fastops._autodiff.rules import RULES, reset_counters

raw = tf.raw_ops


def prepared(device, case):
    """Return a call, TensorFlow's derivatives of it, and the work that they gave to the devices."""
    inputs = [values(s, case.dtypes[0], i, case.positive) for i, s in enumerate(case.shapes)]
    like = case.call(*inputs)
    call = case, inputs, inputs, values(like.shape, like.dtype, 7)
    derivatives(*call)
    want, work = device.work_of(lambda: derivatives(*call))
    assert not any(isinstance(value, Failure) for value in want), want
    return call, want, work


def check(device, call, want, expected):
    """Compare the derivatives of a call with TensorFlow's: bits, devices, kernels and copies."""
    case = call[0]
    for _ in range(2):
        got, work = device.work_of(lambda: derivatives(*call))
        assert_same(got, want)
        assert places(got) == places(want)
    assert work <= expected, f"{case.op}: {work - expected} more than {expected}"
    reset_counters()
    first(*call)
    rule = RULES[case.op]
    assert (rule.taken, rule.left) == ((1, 0) if case.taken else (0, 1)), case.op


@within("plugged_in")
def test_every_rule(device):
    device.delay(0)
    # One call of an op for each shape is enough: axes differ only by numbers in host memory.
    cases = {(case.op, case.shapes, case.taken): case for case in CASES}.values()
    prepared_cases = [prepared(device, case) for case in cases]
    with walks_in_full(), fastops.accelerated():
        for prepared_case in prepared_cases:
            check(device, *prepared_case)
    on_the_device = {
        call[0].op
        for call, want, _ in prepared_cases
        if places(want[0])[0][0].endswith(FIRST_DEVICE)
    }
    assert len(on_the_device) > 30, sorted(on_the_device)


@within("plugged_in")
def test_axes_that_are_on_a_device(device):
    """If axes are on a device, the rule falls back to TensorFlow."""
    (x,), (axis, rows) = there(floats(3, 4)), there(np.int64([1]), np.int64([2, 0, 2]))

    def program():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            summed = raw.Sum(input=x, axis=axis)
            rolled = raw.BroadcastTo(input=x, shape=there(np.int64([2, 3, 4]))[0])
            gathered = raw.GatherV2(params=x, indices=rows, axis=0)
        return [tape.gradient(y, x) for y in (summed, rolled, gathered)]

    want, _ = unchanged(device, program)
    assert want[2].dense_shape.device.endswith(FIRST_DEVICE)
    with fastops.accelerated():
        reset_counters()
        got = program()
    assert places(got) == places(want)
    assert [(RULES[op].taken, RULES[op].left) for op in ("Sum", "BroadcastTo", "GatherV2")] == [
        (0, 1),
        (0, 1),
        (1, 0),
    ]


@within("plugged_in")
def test_device_scopes(device):
    """Device scopes are around the tape, its gradients alone, or parts of the recorded calls."""
    x, y = floats(3, 4), floats(4, 3)

    def program(around, at_last):
        with tf.device(around):
            with tf.GradientTape() as tape:
                a, b = tf.constant(x), tf.Variable(y)
                tape.watch(a)
                with tf.device("CPU:0"):
                    c = tf.tanh(a * 2.0)
                loss = tf.reduce_mean(tf.nn.relu(c @ b) + tf.gather(a, [1, 0, 2])[:, :3])
            with tf.device(at_last):
                gradients = tape.gradient(loss, [a, b])
        return loss, gradients, b.value(), b.read_value()

    scopes = None, FIRST_DEVICE, SECOND_DEVICE, "CPU:0"
    for around in scopes:
        for at_last in scopes:
            want = program(around, at_last)
            with fastops.accelerated():
                for _ in range(3):
                    reset_counters()
                    got = program(around, at_last)
                    assert_same(got, want)
                    assert places(got) == places(want), (around, at_last)
                assert RULES["MatMul"].taken == 1


@within("plugged_in")
def test_output_gradients_may_be_on_any_device(device):
    """Initial ones are on the device that TensorFlow chooses; output gradients are on any."""
    x, (y,), (z,) = tf.constant(floats(3)), here(floats(3)), there(floats(3), number=1)

    def program():
        gradients = []
        for seed in (None, x, y, z):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch([x, y, z])
                a, b, c = tf.identity(x), raw.Square(x=y), x * z
            for sources in (a, b, c, x, y, [a, c]):
                if seed is None or not isinstance(sources, list):
                    gradients.append(tape.gradient(sources, [x, y, z], output_gradients=seed))
        return gradients

    want, _ = unchanged(device, program)
    with fastops.accelerated():
        got = program()
    assert places(got) == places(want)


@within("plugged_in")
def test_errors_are_tensorflows(device):
    """Errors are those of TensorFlow, and are raised at the same point."""
    (x,) = there(floats(3))

    def program():
        outcomes = []
        for sources, seeds in (
            (tf.cast(x, tf.int32), None),
            (x * x, [x, x]),
            (x * x, tf.constant(floats(2))),
            ("x", None),
        ):
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = (
                    x * sources
                    if isinstance(sources, tf.Tensor) and sources.dtype == x.dtype
                    else sources
                )
            try:
                outcomes.append(tape.gradient(value, x, output_gradients=seeds))
            except Exception as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        return outcomes

    want = program()
    assert any(isinstance(value, str) for value in want)
    with fastops.accelerated():
        for _ in range(3):
            assert [str(value) for value in program()] == [str(value) for value in want]


# ---------------------------------------------------------------------------------------------
# Variables
# ---------------------------------------------------------------------------------------------

METHODS = {
    "value": lambda v, x: v.value(),
    "read_value": lambda v, x: v.read_value(),
    "read_value_no_copy": lambda v, x: v.read_value_no_copy(),
    "numpy": lambda v, x: v.numpy(),
    "array": lambda v, x: np.asarray(v),
    "assign": lambda v, x: v.assign(x).value(),
    "assign_unread": lambda v, x: v.assign(x, read_value=False),
    "assign_add": lambda v, x: v.assign_add(x) + 1.0,
    "assign_sub": lambda v, x: v.assign_sub(x).numpy(),
}


@within("plugged_in")
def test_methods_of_variables(device):
    """Methods work for all places of the variable and of the value, and in all device scopes."""
    givens = [*there(floats(3)), *there(floats(3), number=1), *here(floats(3)), floats(3)]

    def program(method, home, given, scope):
        with tf.device(home):
            v = tf.Variable(floats(3, seed=3))
        with tf.device(scope):
            answer = METHODS[method](v, given)
        return answer, v.value(), v.numpy(), v.device

    calls = [
        (method, home, given, scope)
        for method in METHODS
        for home, scope in ((None, None), (None, "CPU:0"), ("CPU:0", None), (SECOND_DEVICE, None))
        for given in givens
    ]
    wants = [program(*call) for call in calls]
    with fastops.accelerated():
        for call, want in zip(calls * 2, wants * 2, strict=True):
            got = program(*call)
            assert_same(got[:3], want[:3])
            assert got[3] == want[3], call
            tensors, others = (list(filter(tf.is_tensor, results[:2])) for results in (got, want))
            assert places(tensors) == places(others), call


@within("plugged_in")
def test_scalars_of_variables(device):
    def program():
        return [
            convert(tf.Variable(value))
            for convert, value in (
                (bool, True),
                (int, np.int64(3)),
                (int, 3),
                (float, 2.5),
                (complex, 2.5),
                (bool, np.float32(0.0)),
            )
        ]

    want, _ = unchanged(device, program)
    assert want == [True, 3, 3, 2.5, 2.5 + 0j, False]


@within("plugged_in")
def test_which_path_variables_take(device):
    v, (x,) = tf.Variable(floats(3)), there(floats(3))
    assert v.device.endswith(FIRST_DEVICE)
    with fastops.accelerated(only=["variables"]):
        for _ in range(2):
            fastops.reset_stats()
            v.assign(x)
            v.assign_add(x, read_value=False)
            v.assign_sub(x)
            v.value(), v.read_value(), v.numpy()
        seen = fastops.stats()
    assert {name: seen.ops[name].direct for name in seen.ops} == {
        "AssignVariableOp": 1,
        "AssignAddVariableOp": 1,
        "AssignSubVariableOp": 1,
        "ReadVariableOp": 3,
        "Identity": 1,
    }
    assert (seen.direct, seen.capi, seen.tensorflow) == (7, 0, 0), seen


@within("plugged_in")
def test_training_in_threads(device):
    """Each thread has its own tape and variables, while the streams lag behind.

    Without fastops the threads run one after another: if several threads run the same op on a
    device, TensorFlow itself sometimes gives one result the shape of another.
    """
    device.delay(60)
    x, y = there(floats(8, 3), floats(8, 2))

    def variables():
        return [(tf.Variable(floats(3, 2, seed=i)), tf.Variable(tf.zeros([2]))) for i in range(4)]

    def train(w, b):
        for _ in range(10):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.tanh(x @ w + b) - y))
            for variable, gradient in zip((w, b), tape.gradient(loss, (w, b)), strict=True):
                variable.assign_sub(0.1 * gradient)
        return loss, w.read_value(), b.read_value()

    def in_threads():
        with ThreadPoolExecutor(4) as pool:
            return [
                future.result() for future in [pool.submit(train, *pair) for pair in variables()]
            ]

    want = [train(*pair) for pair in variables()]
    with fastops.accelerated():
        for _ in range(2):
            assert_same([train(*pair) for pair in variables()], want)
        fastops.reset_stats()
        for _ in range(5):
            assert_same(in_threads(), want)
        seen = fastops.stats()
    assert set(seen.reasons) <= {"device"}, seen  # only the creation of variables, in this thread
    assert seen.direct > 2000, seen


@within("plugged_in")
def test_memory_of_tapes(device):
    """The device's blocks are freed when a step is over."""
    w, (x,) = tf.Variable(floats(3, 3)), there(floats(4, 3))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ w)))
        w.assign_sub(0.1 * tape.gradient(loss, w))

    with fastops.accelerated():
        for _ in range(8):
            step()
        gc.collect()
        device.synchronize()
        before = device.live()
        for _ in range(50):
            step()
        gc.collect()
        device.synchronize()
        assert device.live() <= before


@within("plugged_in")
def test_replayed_walks(device):
    """Walks on the device and on the host are told apart, and run where they belong.

    TensorFlow makes the gradients of the targets if there are several devices, and walks then.
    """
    device.delay(0)
    x, y = floats(3, 4, seed=1), floats(4, seed=2)
    with tf.device(FIRST_DEVICE):
        on_device = [tf.constant(x), tf.constant(y), tf.constant(2.0)]
    with tf.device("CPU:0"):
        on_host = [tf.constant(x), tf.constant(y), tf.constant(2.0)]

    def gradient(tensors):
        *sources, seed = tensors
        with tf.GradientTape() as tape:
            tape.watch(sources)
            z = tf.reduce_sum(tf.exp(sources[0]) * sources[1])
        return tape.gradient(z, sources, output_gradients=[seed])

    groups = [on_device, on_host]
    wanted, work = device.work_of(lambda: [gradient(tensors) for tensors in groups])
    with fastops.accelerated():
        for _ in range(6):
            got = [gradient(tensors) for tensors in groups]
            assert_same(got, wanted)
            assert [places(found) for found in got] == [places(want) for want in wanted]
        before = walks.describe()["replayed"]
        got, work_of_replays = device.work_of(lambda: [gradient(tensors) for tensors in groups])
        assert walks.describe()["replayed"] == before + 2
    assert work_of_replays <= work
