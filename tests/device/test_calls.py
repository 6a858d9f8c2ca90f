"""Calls of ops on a device: their results and placement, their paths, and the copies they make."""

import threading

import numpy as np
import plugged
import pytest
import tensorflow as tf
from apart import within
from plugged import FIRST_DEVICE, INPUT, PLACED, SECOND_DEVICE, THERE, here, settled, there
from recorder import distinct
from support import (
    DIRECT,
    FIRST,
    assert_same,
    assert_same_bits,
    failure,
    floats,
    outcome,
    path_since,
    took,
)
from tensorflow.python.eager import context
from tensorflow.python.framework import op_callbacks

import fastops
from fastops import ops, raw_ops
from fastops._core import preparing
from fastops._reports.floors import BareKernel

AXIS = np.int32([1])


# ---------------------------------------------------------------------------------------------
# Values
# ---------------------------------------------------------------------------------------------

# Ops that follow IEEE arithmetic on the host and on the device, so their values are equal to the
# last bit. With integers as float values, sums and products are exact, too.
EXACT = {
    1: "Neg Abs Square Sign ZerosLike OnesLike",
    2: "AddV2 Sub Mul Maximum Minimum SquaredDifference RealDiv DivNoNan "
    "Less LessEqual Greater GreaterEqual Equal NotEqual",
}
ROUNDED = ["Exp", "Sigmoid", "Tanh", "Reciprocal"]
ROUNDED_ROOTS = ["Sqrt", "Rsqrt", "Log", "Log1p"]
ROUNDED_GRADIENTS = ["TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad"]


def rounded_calls(m, x, y, flag):
    """Call the ops whose last bits differ between the device and the host."""
    positive = m.AddV2(x=m.Abs(x=x), y=m.OnesLike(x=x))
    return [
        *(getattr(m, op)(x=x) for op in ROUNDED),
        *(getattr(m, op)(x=positive) for op in ROUNDED_ROOTS),
        *(getattr(m, op)(y=positive, dy=y) for op in ROUNDED_GRADIENTS),
        m.Pow(x=positive, y=x),
        m.Softmax(logits=x),
        m.Mean(input=x, axis=AXIS),
    ]


def exact_calls(m, x, y, flag):
    """Call the other ops for which the device has a kernel."""
    row = m.Slice(input=x, begin=[0, 0], size=[1, -1])
    return [
        *(getattr(m, op)(x=x) for op in EXACT[1].split()),
        *(getattr(m, op)(x=x, y=other) for op in EXACT[2].split() for other in (y, row)),
        m.Relu(features=x),
        m.ReluGrad(gradients=x, features=y),
        m.AddN(inputs=[x, y, x]),
        m.SelectV2(condition=flag, t=x, e=row),
        m.LogicalAnd(x=flag, y=flag),
        m.LogicalOr(x=flag, y=m.LogicalNot(x=flag)),
        m.Cast(x=x, DstT=tf.int64),
        m.Cast(x=flag, DstT=tf.float32),
        m.Transpose(x=x, perm=[1, 0]),
        m.BroadcastTo(input=row, shape=[2, 3, 4]),
        m.Fill(dims=[2, 2], value=1.5),
        m.Slice(input=x, begin=[1, 1], size=[2, -1]),
        m.Tile(input=x, multiples=[2, 3]),
        m.ConcatV2(values=[x, y], axis=-1),
        m.Pack(values=[x, y], axis=1),
        m.GatherV2(params=x, indices=np.int64([2, 0, 2]), axis=0),
        *(m.Sum(input=x, axis=axis, keep_dims=True) for axis in ([0], [0, 1], [])),
        m.Sum(input=x, axis=[0, 1]),
        m.Max(input=x, axis=AXIS),
        m.Min(input=x, axis=[-1]),
        m.Prod(input=x, axis=AXIS),
        m.All(input=flag, axis=AXIS),
        m.Any(input=flag, axis=AXIS),
        m.MatMul(a=x, b=y, transpose_b=True),
        m.MatMul(a=x, b=y, transpose_a=True),
        m.BiasAdd(value=x, bias=m.Sum(input=y, axis=[0])),
        m.BiasAddGrad(out_backprop=x),
    ]


@within("plugged_in")
def test_values_are_the_hosts(device):
    """Values are the host's; placement, kernels and copies are TensorFlow's on the device."""
    check_values(device)


@within("pooled")
def test_values_with_a_pool(device):
    check_values(device)


def check_values(device):
    for dtype in (np.float32, np.float64):
        x, y = (floats(3, 4, seed=seed).astype(dtype) for seed in (0, 1))
        for calls in (exact_calls, rounded_calls):
            exact = calls is exact_calls
            given = [x, y, x > 0]
            if exact:
                given[:2] = np.round(8 * x), np.round(8 * y)
            fastops.clear_cache()
            with tf.device("CPU:0"):
                want = calls(tf.raw_ops, *here(*given))
            given = there(*given)
            got, paths = settled(device, lambda m, calls=calls, given=given: calls(m, *given))
            assert distinct(paths) == {THERE}, paths
            for one, other in zip(got, want, strict=True):
                assert one.device.endswith(FIRST_DEVICE)
                assert other.device.endswith("CPU:0")
                if exact:
                    assert_same_bits(one.numpy(), other.numpy())
                else:
                    np.testing.assert_allclose(one, other, rtol=1e-5)


@within("plugged_in")
def test_sizes_of_zero(device):
    (empty,) = there(np.zeros([0, 3], "f"))
    (x,) = there(floats(2, 3))

    def program(m):
        return (
            m.AddV2(x=empty, y=empty),
            m.Sum(input=empty, axis=[0]),
            m.Sum(input=empty, axis=[1]),
            m.ConcatV2(values=[empty, x], axis=0),
            m.MatMul(a=empty, b=x, transpose_b=True),
            m.Cast(x=empty, DstT=tf.int32),
        )

    settled(device, program)


# ---------------------------------------------------------------------------------------------
# Places
# ---------------------------------------------------------------------------------------------


@within("plugged_in")
def test_where_calls_are_placed(device):
    """TensorFlow places calls by device scope, place of inputs, and available kernels."""
    (on_host,), (on_first,), (on_second,) = (
        here(floats(3)),
        there(floats(3)),
        there(floats(3), number=1),
    )
    for scope, inputs, place, path in (
        (None, (on_host, on_host), FIRST_DEVICE, PLACED),
        (None, (on_first, on_first), FIRST_DEVICE, THERE),
        (None, (on_first, on_host), FIRST_DEVICE, INPUT),
        (None, (on_second, on_second), FIRST_DEVICE, INPUT),
        ("CPU:0", (on_host, on_host), "CPU:0", DIRECT),
        ("CPU:0", (on_first, on_host), "CPU:0", INPUT),
        ("CPU:0", (on_first, on_second), "CPU:0", INPUT),
        (FIRST_DEVICE, (on_host, on_host), FIRST_DEVICE, PLACED),
        (FIRST_DEVICE, (on_second, on_host), FIRST_DEVICE, INPUT),
        (SECOND_DEVICE, (on_host, on_host), SECOND_DEVICE, PLACED),
        (SECOND_DEVICE, (on_first, on_second), SECOND_DEVICE, INPUT),
        (SECOND_DEVICE, (on_second, on_second), SECOND_DEVICE, THERE),
    ):
        x, y = inputs
        with tf.device(scope):
            got, paths = settled(device, lambda m, x=x, y=y: m.AddV2(x=x, y=y))
            assert got.device.endswith(place), (scope, got.device)
            assert got.backing_device == got.device
            assert_same(paths, {"AddV2": [path]})
            # The device has no kernel for this op, so soft placement chooses the host.
            got, paths = settled(device, lambda m, x=x: m.Atan(x=x))
            assert got.device.endswith("CPU:0")
            assert distinct(paths) == {INPUT if x is not on_host else DIRECT}


@within("plugged_in")
def test_copies_are_those_of_tensorflow(device):
    """Each input on another device is copied once; its tensor keeps the copy for later calls."""
    for kinds, copies in (
        (("there", "there"), {}),
        (("there", "here"), {"copy from the host": 1}),
        (("there", "other"), {"copy between": 1}),
        (("there", "array"), {"copy from the host": 1}),
        (("here", "here"), {"copy from the host": 2}),
        (("here", "other"), {"copy from the host": 1, "copy between": 1}),
    ):
        for m in (tf.raw_ops, raw_ops, raw_ops, raw_ops):
            values = {
                "here": lambda: here(floats(3))[0],
                "there": lambda: there(floats(3))[0],
                "other": lambda: there(floats(3), number=1)[0],
                "array": lambda: floats(3),
            }
            x, y = (values[kind]() for kind in kinds)
            for again in range(2):
                with tf.device(FIRST_DEVICE):
                    _, work = device.work_of(lambda m=m, x=x, y=y: m.AddV2(x=x, y=y))
                expected = {"kernel AddV2": 1} if again and "array" not in kinds else copies
                assert work == {"kernel AddV2": 1, **expected}, (kinds, m, work)


@within("plugged_in")
def test_arguments_in_host_memory(device):
    """Shapes and axes are copied to host memory for kernels; some results stay there."""
    (x,) = there(floats(2, 3))
    axes = [[0], np.int32([0]), *here(np.int32([0])), *there(np.int32([0]))]
    axes += [tf.cast(there(np.int64([0]))[0], tf.int32)]  # this one is in the device's memory

    def program(m):
        with tf.device(FIRST_DEVICE):
            return (
                [m.Sum(input=x, axis=axis) for axis in axes],
                [m.Reshape(tensor=x, shape=[-1, size]) for size in (1, 2)],
                m.Reshape(tensor=x, shape=m.Shape(input=x)),
                m.Shape(input=x),
                m.Size(input=x),
                m.Range(start=0, limit=5, delta=2),
                m.AddV2(x=np.int32([1]), y=2),
                m.BroadcastGradientArgs(s0=[2, 3], s1=[3]),
            )

    want, paths = settled(device, program)
    shape = want[3]
    assert shape.device.endswith(FIRST_DEVICE)
    assert shape.backing_device.endswith("CPU:0")
    assert distinct(paths) <= {THERE, INPUT, PLACED}, paths


@within("plugged_in")
def test_results_that_tensorflow_copies_to_the_device(device):
    """A kernel leaves its result in host memory, but TensorFlow returns only some dtypes there."""

    def program(m):
        with tf.device(FIRST_DEVICE):
            x, y = here(np.int32([1, 2, 3]), np.int32([3, 2, 1]))
            sizes, other = here(np.int64([2, 3]), np.int64([3]))
            return (
                m.GreaterEqual(x=x, y=y),
                m.BroadcastGradientArgs(s0=sizes, s1=other),
                m.BroadcastGradientArgs(s0=x, s1=y),
            )

    want, paths = settled(device, program)
    compared, sizes, small = want
    assert compared.backing_device.endswith(FIRST_DEVICE)
    assert sizes.r0.backing_device.endswith(FIRST_DEVICE)
    assert small.r0.backing_device.endswith("CPU:0")
    assert_same(paths["GreaterEqual"], [PLACED])


@within("plugged_in")
def test_values_that_are_converted(device):
    """Numbers, lists, arrays and variables are converted beside a tensor that is on the device."""
    (x,) = there(floats(2))
    variable = tf.Variable(floats(2, seed=1))
    assert variable.device.endswith(FIRST_DEVICE)

    def program(m):
        return (
            m.AddV2(x=x, y=2),
            m.AddV2(x=1.5, y=x),
            m.AddV2(x=x, y=[1.0, 2.0]),
            m.AddV2(x=x, y=np.float32([3, 4])),
            m.AddV2(x=x, y=variable),
            m.AddN(inputs=[x, variable]),
            m.Pack(values=[x, np.float32([1, 2])]),
        )

    _, paths = settled(device, program)
    assert distinct(paths) == {THERE}, paths


@within("plugged_in")
def test_a_scope_is_part_of_the_key(device):
    (x,) = here(floats(3))
    assert took(ops.neg, x=x)[1] == FIRST
    assert took(ops.neg, x=x)[1] == PLACED
    with tf.device("CPU:0"):
        assert took(ops.neg, x=x)[1] == FIRST
        assert took(ops.neg, x=x)[1] == DIRECT
    with tf.device(SECOND_DEVICE):
        assert took(ops.neg, x=x)[1] == FIRST
    result, path = took(ops.neg, x=x)
    assert (result.device[-len(FIRST_DEVICE) :], path) == (FIRST_DEVICE, PLACED)
    seen = fastops.stats()
    assert seen.reasons == {"first_call": 3, "device": 2}, seen


@within("plugged_in")
def test_options_choose_the_path(device):
    """Options choose the path of a call, and a profile reports the path that was taken."""
    (x,) = there(floats(3))
    want = tf.raw_ops.Exp(x=x)
    for _ in range(2):
        ops.exp(x=x)
    for path, taken in (
        ("auto", THERE),
        ("direct", THERE),
        ("capi", INPUT),
        ("tensorflow", "tensorflow:options"),
    ):
        with fastops.options(path=path):
            got, seen = took(ops.exp, x=x)
            assert_same(got, want)
            assert seen == taken, (path, seen)
    (on_host,) = here(floats(3))
    with fastops.options(path="direct"):
        assert took(ops.exp, x=on_host)[1].startswith("tensorflow:")
    with fastops.profile() as profile:
        for _ in range(3):
            ops.exp(x=x)
    seen = profile.ops["Exp"]
    assert seen.calls == 3
    assert seen.kernel_ns > 0


@within("plugged_in")
def test_changes_that_drop_kernels(device):
    """Kernels are dropped when the settings of soft placement or determinism change."""
    (x,) = there(floats(3))
    for _ in range(2):
        ops.exp(x=x)
    assert took(ops.exp, x=x)[1] == THERE
    tf.config.set_soft_device_placement(False)
    try:
        _, paths = settled(device, lambda m: m.Exp(x=x))
        assert_same(paths, {"Exp": [THERE]})
        want = outcome(tf.raw_ops.Atan, x=x)
        for _ in range(3):
            assert_same(outcome(raw_ops.Atan, x=x), want)
    finally:
        tf.config.set_soft_device_placement(True)
    _, paths = settled(device, lambda m: m.Exp(x=x))
    assert_same(paths, {"Exp": [THERE]})


@within("plugged_in")
def test_observers(device):
    """Op callbacks and TensorFlow's profiler see each call, because calls fall back."""
    (x,) = there(floats(3))
    for _ in range(2):
        ops.exp(x=x)
    seen = []

    def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        seen.append(op_type)

    op_callbacks.add_op_callback(callback)
    try:
        assert took(ops.exp, x=x)[1] == "tensorflow:callbacks"
    finally:
        op_callbacks.remove_op_callback(callback)
    assert seen == ["Exp"]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.exp(x=x)
    assert_same(tape.gradient(y, x), y)


# ---------------------------------------------------------------------------------------------
# State
# ---------------------------------------------------------------------------------------------


@within("plugged_in")
def test_variables(device):
    check_variables(device)


@within("pooled")
def test_variables_with_a_pool(device):
    check_variables(device)


def check_variables(device):
    """Check that variables are updated in place, or copied if their tensor has other references."""
    for number in range(2):

        def program(m, number=number):
            with tf.device(f"{plugged.TYPE}:{number}"):
                v, first, second = (tf.Variable(floats(3, seed=seed)) for seed in (0, 1, 2))
                second.assign(second * second)
            handle = v.handle
            delta, other = there(floats(3, seed=3), floats(3, seed=4), number=number)
            first_power, second_power, rate, epsilon = there(
                *np.float32([0.9, 0.99, 0.1, 1e-7]), number=number
            )
            m.AssignAddVariableOp(resource=handle, value=delta)
            before = m.ReadVariableOp(resource=handle, dtype=tf.float32)
            m.AssignSubVariableOp(resource=handle, value=other)
            between = m.ReadVariableOp(resource=handle, dtype=tf.float32)
            m.AssignVariableOp(resource=first.handle, value=between)
            m.AssignAddVariableOp(resource=first.handle, value=delta)
            m.ResourceApplyGradientDescent(var=handle, alpha=rate, delta=delta)
            m.ResourceApplyAdam(
                var=handle, m=first.handle, v=second.handle, beta1_power=first_power,
                beta2_power=second_power, lr=rate, beta1=first_power, beta2=second_power,
                epsilon=epsilon, grad=delta,
            )  # fmt: skip
            values = (v, first, second)
            reads = (
                m.ReadVariableOp(resource=variable.handle, dtype=tf.float32) for variable in values
            )
            return before, between, *reads

        want, paths = settled(device, program)
        assert distinct(paths) == {THERE}, paths
        assert all(value.device.endswith(f"{plugged.TYPE}:{number}") for value in want)
        np.testing.assert_array_equal(want[0], floats(3) + floats(3, seed=3))


@within("plugged_in")
def test_random_numbers(device):
    """Calls without a seed draw different numbers; with one, they share TensorFlow's sequence."""

    def draw(m, **seeds):
        return m.RandomUniform(shape=[4], dtype=tf.float32, **seeds)

    drawn = [draw(m).numpy().tobytes() for m in (tf.raw_ops, raw_ops, raw_ops, raw_ops)]
    assert len(set(drawn)) == 4
    sequence = [draw(tf.raw_ops, seed=1, seed2=2) for _ in range(6)]
    context.context().clear_kernel_cache()
    fastops.clear_cache()
    for i, want in enumerate(sequence):
        assert_same(draw((raw_ops, tf.raw_ops)[i % 2], seed=1, seed2=2), want)
    settled(
        device,
        lambda m: m.StatelessRandomUniformV2(
            shape=[5], key=np.uint64([3]), counter=np.uint64([1, 2]), alg=1
        ),
    )


# ---------------------------------------------------------------------------------------------
# Gradients
# ---------------------------------------------------------------------------------------------


@within("plugged_in")
def test_gradients(device):
    x, w = there(floats(4, 3), floats(3, 2))
    variable = tf.Variable(floats(2))

    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            hidden = m.Tanh(x=m.BiasAdd(value=m.MatMul(a=x, b=w), bias=variable))
            loss = m.Mean(input=m.Square(x=hidden), axis=[0, 1])
        jacobian = tape.jacobian(hidden, w, experimental_use_pfor=False)
        return loss, tape.gradient(loss, [x, w, variable]), jacobian

    want, paths = settled(device, program)
    assert distinct(paths) == {THERE}, paths
    assert all(leaf.device.endswith(FIRST_DEVICE) for leaf in tf.nest.flatten(want))


@within("plugged_in")
def test_second_gradients_and_forward_derivatives(device):
    (x,) = there(floats(3))

    def program(m):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = m.Exp(x=m.Mul(x=x, y=x))
            first = inner.gradient(y, x)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            z = m.Mul(x=x, y=m.Exp(x=x))
        return first, outer.gradient(first, x), accumulator.jvp(z)

    settled(device, program)


@within("plugged_in")
def test_gradients_across_devices(device):
    (x,), (y,), (z,) = there(floats(2)), there(floats(2, seed=1), number=1), here(floats(2, seed=2))

    def program(m):
        with tf.GradientTape() as tape:
            tape.watch([x, y, z])
            with tf.device(FIRST_DEVICE):
                product = m.Mul(x=x, y=y)
            with tf.device("CPU:0"):
                total = m.AddV2(x=product, y=z)
            with tf.device(SECOND_DEVICE):
                loss = m.Sum(input=m.Square(x=total), axis=[0])
        return product, total, loss, tape.gradient(loss, [x, y, z])

    want, _ = settled(device, program)
    assert [value.device[-5:] for value in want[:3]] == ["EST:0", "CPU:0", "EST:1"]


# ---------------------------------------------------------------------------------------------
# Errors
# ---------------------------------------------------------------------------------------------


@within("plugged_in")
def test_errors_that_are_raised_at_once(device):
    x, y = there(floats(2, 3), floats(4, 5))
    for call in (
        lambda m: m.AddV2(x=x, y=y),
        lambda m: m.MatMul(a=x, b=y),
        lambda m: m.ConcatV2(values=[x, y], axis=0),
        lambda m: m.Sum(input=x, axis=[7]),
        lambda m: m.AddV2(x=x, y=tf.constant([1], tf.int64)),
        lambda m: m.AssignAddVariableOp(resource=tf.Variable(floats(2)).handle, value=y),
    ):
        want = outcome(lambda call=call: call(tf.raw_ops))
        assert issubclass(want.kind, Exception), want
        for _ in range(3):
            assert_same(outcome(lambda call=call: call(raw_ops)), want)


@within("plugged_in")
def test_errors_that_arrive_later(device):
    """The call returns; the next call that waits for the device raises, as in TensorFlow."""
    x, y = there([1.0, np.nan], [1.0])
    for call in (
        lambda m: m.CheckNumerics(tensor=x, message="found"),
        lambda m: m.GatherV2(params=y, indices=np.int64([5]), axis=0),
    ):
        found = []
        for m in (tf.raw_ops, raw_ops, raw_ops):
            (indirectly,) = there([1.0])
            device.synchronize()
            late = call(m)
            device.synchronize()
            found.append(
                [failure(late.numpy), failure(indirectly.numpy), failure(lambda m=m: m.Neg(x=y))]
            )
            device.mend()
            assert_same_bits(m.Neg(x=y).numpy(), np.float32([-1]))
        assert found[0] == found[1] == found[2]
        assert {seen.kind for seen in found[0]} == {tf.errors.InternalError}


@within("plugged_in")
def test_memory_is_not_freed_too_early(device):
    """Tensors may be dropped before the device reads them, and results may outlive inputs."""

    def program(m):
        results = []
        for i in range(30):
            x, y = there(floats(64, seed=i), floats(64, seed=i + 1))
            total = m.AddV2(x=x, y=y)
            del x, y
            for _ in range(5):
                total = m.Mul(x=total, y=m.AddV2(x=total, y=1.0))
            results.append(m.Maximum(x=total, y=0.0))
        return results

    device.delay(200)
    settled(device, program)
    device.synchronize()
    live = device.live()
    program(raw_ops)
    device.synchronize()
    assert device.live() == live, "blocks are left"
    device.delay(60)


@within("plugged_in")
def test_calls_do_not_wait_for_the_device(device):
    """A call returns before the device has computed its result."""
    x, y = there(floats(3), floats(3, seed=1))
    for m in (tf.raw_ops, raw_ops, raw_ops):
        device.synchronize()
        with device.held():
            result = m.Mul(x=m.AddV2(x=x, y=y), y=y)
        want = (floats(3) + floats(3, seed=1)) * floats(3, seed=1)
        assert_same_bits(result.numpy(), want)


@within("plugged_in")
def test_threads(device):
    """Each thread has its own device scope, and all threads share the queue of a device."""
    begin = threading.Barrier(4)
    found = {}

    def work(number):
        with tf.device(f"{plugged.TYPE}:{number % 2}"):
            (total,) = there(floats(8, seed=number), number=number % 2)
            begin.wait(30)
            for _ in range(200):
                total = raw_ops.AddV2(x=total, y=1.0)
        found[number] = (total.device[-1], total.numpy())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, (place, value) in found.items():
        want = floats(8, seed=number)
        for _ in range(200):
            want = want + np.float32(1)
        assert place == str(number % 2)
        assert_same_bits(value, want)


@within("plugged_in")
def test_asynchronous_executors(device):
    (x,) = there(floats(3))
    want = tf.raw_ops.Exp(x=tf.raw_ops.Neg(x=x))
    for _ in range(3):
        with context.execution_mode(context.ASYNC):
            got = raw_ops.Exp(x=raw_ops.Neg(x=x))
            context.async_wait()
        assert_same(got, want)


@within("plugged_in")
def test_bare_kernels(device):
    """A `BareKernel`, to which calls are compared, gives the device the same work as a call."""
    (x, table), (y,), (axis,) = there(floats(3), floats(3, 4)), here(floats(3)), here(AXIS)
    for op, arguments in (
        (raw_ops.AddV2, {"x": x, "y": x}),
        (raw_ops.Sum, {"input": table, "axis": axis}),
        (raw_ops.ConcatV2, {"values": [table, table], "axis": tf.reshape(axis, [])}),
    ):
        want, expected = device.work_of(lambda op=op, arguments=arguments: op(**arguments))
        kernel = BareKernel(op, **arguments)
        for _ in range(3):
            got, work = device.work_of(kernel)
            assert_same(got, want)
            assert work == expected
    with tf.device("CPU:0"):
        assert_same(BareKernel(raw_ops.AddV2, x=y, y=y)(), raw_ops.AddV2(x=y, y=y))
    with pytest.raises(ValueError, match="direct"):
        BareKernel(raw_ops.AddV2, x=x, y=y)  # the input is copied


# ---------------------------------------------------------------------------------------------
# FASTOPS_DEVICES
# ---------------------------------------------------------------------------------------------


@within("plugged_in")
def test_the_devices_option_says_where_calls_are_direct(device):
    """A change of the option drops the kernels that were made under another value."""
    (x,) = there(floats(3, 3))
    want = tf.tanh(x @ x) * 2.0

    def refused():
        """Tell whether a function has no plan. One with a plan may still run in TensorFlow."""
        traced = fastops.function(lambda a: tf.tanh(a @ a) * 2.0)
        for _ in range(4):
            assert_same(traced(x), want)
        fastops.reset_stats()
        assert_same(traced(x), want)
        (seen,) = fastops.stats().functions.values()
        return "device_kind" in seen.reasons

    for kinds, path in (("none", INPUT), ("plugins", THERE), ("none", INPUT), ("all", THERE)):
        preparing.be_direct_on(kinds)
        _, paths = settled(device, lambda m: m.Mul(x=m.Tanh(x=x), y=x))
        assert distinct(paths) == {path}, kinds
        assert refused() == (kinds == "none"), kinds
    preparing.be_direct_on("plugins")


# ---------------------------------------------------------------------------------------------
# Contexts
# ---------------------------------------------------------------------------------------------


@within("resetting")
def test_kernels_are_dropped_with_their_context(device):
    """Kernels are dropped when the context is reset, because the new context has new devices."""
    for _ in range(3):
        x, y = there(floats(3), floats(3, seed=1))
        want, paths = settled(device, lambda m, x=x, y=y: m.Mul(x=m.AddV2(x=x, y=y), y=2.0))
        assert distinct(paths) == {THERE}
        assert_same_bits(want.numpy(), (floats(3) + floats(3, seed=1)) * 2)
        before = fastops.stats().ops["AddV2"]
        raw_ops.AddV2(x=x, y=y)
        assert path_since(before, "AddV2") == THERE
        del x, y, want
        context._reset_context()
        context._context_handle = None
