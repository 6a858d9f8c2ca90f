"""TensorFlow's context around a call: devices, policies, hosts, and contexts that change or end."""

import gc
import threading
import weakref
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from apart import Process, logged_lines, within
from recorder import distinct, settled
from support import (
    DIRECT,
    FIRST,
    assert_same,
    assert_same_bits,
    assert_same_outcome,
    check,
    failure,
    floats,
    free_ports,
    outcome,
    path_since,
    took,
)
from tensorflow.core.protobuf import tensorflow_server_pb2
from tensorflow.python.distribute.parallel_device import parallel_device
from tensorflow.python.eager import context
from tensorflow.python.framework import config

import fastops
from fastops import ops, raw_ops

pytestmark = pytest.mark.usefixtures("fresh")

OTHER = "capi:device"  # TensorFlow places the call on another device
INPUT = "capi:input_device"  # an input is on another device


@pytest.fixture(scope="module")
def alone():
    """Yield a process in which tests may reset TensorFlow's context."""
    process = Process()
    yield process
    process.end()


@pytest.fixture(scope="module")
def two_cpus():
    """Yield a process with two logical CPUs, whose log can be read."""
    process = Process(split_cpu, TF_CPP_MIN_LOG_LEVEL="0")
    yield process
    process.end()


def split_cpu():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def on(device, *values):
    """Return tensors on a device, copied since constants of some dtypes stay on the host."""
    with tf.device(device):
        return [tf.identity(value) for value in values]


def attempt(op, **arguments):
    """Return the result or failure of a call, and its path."""
    before = fastops.stats().ops.get(op.op_name)
    return outcome(op, **arguments), path_since(before, op.op_name)


# ---------------------------------------------------------------------------------------------
# Device scopes
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "device",
    ["CPU:0", "/cpu:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0", "CPU"],
)
def test_calls_in_a_scope_of_the_host_are_direct(device):
    x, y = tf.constant(floats(3, 4)), tf.constant(floats(3, 4, seed=1))
    with tf.device(device):
        check("AddV2", x=x, y=y)
        check("AddV2", first=DIRECT, x=x, y=2)
    assert took(ops.add_v2, x=x, y=y)[1] == FIRST, "a scope is part of the key"


SCOPES = [  # nested device scopes, and the number of the CPU that runs calls in them
    ((), 0),
    (("CPU:0",), 0),
    (("CPU",), 0),
    (("/device:CPU:*",), 0),
    (("/job:localhost",), 0),
    (("/task:0",), 0),
    (("GPU:1",), 0),  # soft placement
    (("CPU:1",), 1),
    (("/cpu:1",), 1),
    (("/job:localhost/replica:0/task:0/device:CPU:1",), 1),
    ((tf.DeviceSpec(device_type="CPU", device_index=1),), 1),
    ((tf.config.LogicalDevice("/device:CPU:1", "CPU"),), 1),
    (("CPU:0", "CPU:1"), 1),
    (("CPU:1", "CPU:0"), 0),
    (("CPU:1", None), 0),
    (("CPU:1", "/task:0"), 1),
    (("CPU:1", "/job:localhost"), 1),
    (("CPU:1", ""), 1),
    (("CPU:1", None, "CPU:1"), 1),
    (("CPU:1", "GPU:1"), 0),
]


@within("two_cpus")
def test_scopes():
    x = tf.constant(floats(2, 3))
    for scopes, place in SCOPES:
        with ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(tf.device(scope))
            want, paths = settled(
                lambda m: (
                    m.AddV2(x=x, y=x),
                    m.AddV2(x=x, y=1.0),
                    m.AddV2(x=x, y=floats(2, 3)),
                    m.Fill(dims=np.int32([2]), value=3.0),
                    m.Unpack(value=x, num=2),
                    m.TopKV2(input=x, k=2),
                    m.NoOp(),
                )
            )
        assert want[0].device[-1] == str(place), scopes
        call, converted = ((DIRECT, DIRECT), (OTHER, INPUT))[place]
        assert_same(
            paths,
            {
                "AddV2": [call, converted, converted],
                "Fill": [converted],
                "Unpack": [call],
                "TopKV2": [call],
                "NoOp": [call],
            },
        )


@within("two_cpus")
def test_scopes_of_threads():
    """Each thread has its own scope: an op runs on two devices at the same time."""
    x = tf.constant(floats(2, 3))
    with tf.device("CPU:1"):
        took(ops.neg, x=x)
    took(ops.neg, x=x)
    together = threading.Barrier(2)
    paths = {}

    def work(device):
        with tf.device(device):
            together.wait(30)
            paths[device] = {(ops.neg(x=x).device[-5:]) for _ in range(2000)}

    threads = [threading.Thread(target=work, args=(device,)) for device in (None, "CPU:1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths == {None: {"CPU:0"}, "CPU:1": {"CPU:1"}}, paths
    seen = fastops.stats().ops["Neg"]
    assert (seen.direct, seen.reasons) == (2000, {"first_call": 2, "device": 2000}), seen


@within("two_cpus")
def test_device_functions():
    """Eager execution rejects them and keeps the scope; graphs call them."""
    x = tf.constant(floats(2, 3))

    def place(op):
        return "CPU:1" if op.type == "Neg" else "CPU:0"

    def eager(m):
        with tf.device("CPU:0"):
            refused = outcome(lambda: tf.compat.v1.device(place).__enter__())
            return refused, m.Neg(x=x)

    (refused, _), paths = settled(eager)
    assert refused.kind is RuntimeError, refused
    assert_same(paths, {"Neg": [DIRECT]})

    def graph(m):
        with tf.Graph().as_default() as g, tf.compat.v1.device(place):
            m.Exp(x=m.Neg(x=tf.constant(1.0)))
        return str(g.as_graph_def().node)

    want, paths = settled(graph)
    assert "CPU:1" in want, want
    assert_same(paths, {"Neg": ["tensorflow:graph"], "Exp": ["tensorflow:graph"]})


# ---------------------------------------------------------------------------------------------
# Soft placement
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def soft():
    """Restore the setting of soft placement after the test."""
    before = tf.config.get_soft_device_placement()
    yield tf.config.set_soft_device_placement
    tf.config.set_soft_device_placement(before)


@pytest.mark.parametrize("device", ["GPU:7", "CPU:9", "TPU:0"])
def test_soft_placement(device, soft):
    """Without it no op has a kernel in such a scope, and prepared kernels are dropped."""
    x, y = tf.constant(floats(3, 4)), tf.constant(floats(3, 4, seed=1))
    for _ in range(2):
        soft(True)
        check("AddV2", x=x, y=y)
        with tf.device(device):
            check("AddV2", x=x, y=y)
            assert took(ops.add_v2, x=x, y=2.0)[1] == DIRECT
        soft(False)
        check("AddV2", x=x, y=y)
        with tf.device(device):
            want = failure(tf.raw_ops.AddV2, x=x, y=y)
            assert want.kind is tf.errors.InvalidArgumentError
            for _ in range(2):
                assert attempt(ops.add_v2, x=x, y=y) == (want, FIRST)


@pytest.mark.parametrize("softly", [True, False])
def test_scopes_of_hosts_that_do_not_exist(softly, soft):
    soft(softly)
    x = tf.constant(floats(3, 4))
    with tf.device("/job:nowhere/task:0/device:CPU:0"):
        want = failure(tf.raw_ops.Neg, x=x)
        for _ in range(2):
            assert attempt(ops.neg, x=x) == (want, FIRST)


@within("two_cpus")
def test_without_soft_placement():
    """Inputs on another device are still copied; a scope without a device is still the host."""
    tf.config.set_soft_device_placement(False)
    (here,), (there,) = on("CPU:0", floats(2)), on("CPU:1", floats(2))
    _, paths = settled(lambda m: (m.AddV2(x=here, y=here), m.AddV2(x=here, y=there)))
    assert_same(paths, {"AddV2": [DIRECT, INPUT]})
    with tf.device("CPU:1"):
        _, paths = settled(lambda m: (m.AddV2(x=here, y=here), m.AddV2(x=here, y=there)))
        assert_same(paths, {"AddV2": [OTHER, INPUT]})
        variable = tf.Variable(floats(2))
    for scope in (None, "CPU:0", "CPU:1"):
        with tf.device(scope):
            _, paths = settled(
                lambda m: m.ReadVariableOp(resource=variable.handle, dtype=tf.float32)
            )
            assert_same(paths, {"ReadVariableOp": [INPUT]})
    tf.config.set_soft_device_placement(True)


# ---------------------------------------------------------------------------------------------
# Inputs and resources on another device
# ---------------------------------------------------------------------------------------------


def calls_with(m, here, there):
    return (
        m.Identity(input=there),
        m.Pack(values=[here, there, here], axis=0),
        m.ConcatV2(values=[here, there], axis=tf.constant(1)),
        m.Equal(x=there, y=here),
        m.IdentityN(input=[here, there, tf.constant(1)]),
    )


@within("two_cpus")
def test_inputs_that_live_on_another_device():
    """One input on another device is enough for `capi`; the prepared kernel is kept.

    Strings are in host memory, whatever their device.
    """
    x = floats(2, 3)
    for values in (x, x.astype(np.int32), x > 0, x.astype(np.complex64), x.astype(str)):
        (here,), (there,) = on("CPU:0", values), on("CPU:1", values)
        assert there.device.endswith("CPU:1"), there.device
        elsewhere = there.dtype != tf.string
        for scope in (None, "CPU:0", "CPU:1"):
            for order in ((here, there), (there, here)):
                fastops.clear_cache()
                for inputs in order:  # the first of the two prepares kernels for both
                    with tf.device(scope):
                        _, paths = settled(partial(calls_with, here=here, there=inputs))
                    path = OTHER if scope == "CPU:1" else DIRECT
                    if inputs is there and elsewhere:
                        path = INPUT
                    assert distinct(paths) == {path}, (values.dtype, scope, paths)


@within("two_cpus")
def test_gradients_across_devices():
    (x,), (y,) = on("CPU:0", floats(2, 3)), on("CPU:1", floats(3, 2))

    def program(m):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            product = m.MatMul(a=x, b=y)
            with tf.device("CPU:1"):
                loss = m.Sum(input=m.Exp(x=product), axis=tf.constant([0, 1]))
        return loss, tape.gradient(loss, [x, y]), tape.jacobian(product, y)

    want, paths = settled(program)
    assert want[0].device.endswith("CPU:1"), want[0].device
    assert_same(paths, {"MatMul": [INPUT], "Exp": [OTHER], "Sum": [INPUT]})


@within("two_cpus")
def test_resources_on_another_device():
    """An op on a resource runs on the device of the resource, in every scope."""

    def program(m):
        with tf.device("CPU:1"):
            v = tf.Variable(floats(3, 2))
            first, second = tf.Variable(floats(3, 2)), tf.Variable(floats(3, 2) ** 2)
            table = m.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        delta = tf.constant(floats(3, 2, seed=1))
        m.AssignAddVariableOp(resource=v.handle, value=delta)
        m.ResourceScatterAdd(resource=v.handle, indices=np.int32([1]), updates=np.ones((1, 2), "f"))
        m.ResourceApplyAdam(
            var=v.handle, m=first.handle, v=second.handle, beta1_power=0.9, beta2_power=0.99,
            lr=0.1, beta1=0.9, beta2=0.99, epsilon=1e-7, grad=delta,
        )  # fmt: skip
        m.LookupTableImportV2(
            table_handle=table, keys=np.array([b"a", b"b"]), values=np.array([1, 2])
        )
        with tf.GradientTape() as tape:
            square = m.Square(x=v)
        return (
            m.ReadVariableOp(resource=v.handle, dtype=tf.float32),
            m.ResourceGather(resource=v.handle, indices=tf.constant([2, 0]), dtype=tf.float32),
            m.LookupTableFindV2(
                table_handle=table, keys=np.array([b"b", b"?"]), default_value=np.array(-1)
            ),
            m.AddV2(x=v, y=delta),
            m.AddN(inputs=[delta, v]),
            square,
            tape.gradient(square, v),
            first.read_value(),
        )

    for scope in (None, "CPU:0", "CPU:1"):
        with tf.device(scope):
            want, paths = settled(program)
        assert want[0].device.endswith("CPU:1"), want[0].device
        assert_same(paths.pop("HashTableV2"), ["capi:op"])
        assert distinct(paths) == {INPUT}, (scope, paths)


@within("two_cpus")
def test_resources_of_two_devices():
    """TensorFlow raises for an op whose resources are on two devices."""
    x = tf.constant(floats(2))
    with tf.device("CPU:0"):
        here = tf.Variable(floats(2))
    with tf.device("CPU:1"):
        there = tf.Variable(floats(2))

    def apply(var, accum):
        return {
            "var": var.handle, "accum": accum.handle, "lr": 0.1, "grad": x, "momentum": 0.9
        }  # fmt: skip

    check("ResourceApplyMomentum", **apply(here, tf.Variable(floats(2))))
    for var, accum in ((here, there), (there, here)):
        arguments = apply(var, accum)
        want = outcome(tf.raw_ops.ResourceApplyMomentum, **arguments)
        for _ in range(2):
            assert_same(attempt(raw_ops.ResourceApplyMomentum, **arguments), (want, INPUT))


@within("two_cpus")
def test_lists_of_another_device():
    """A variant, here a list of tensors, was made on another device."""

    def program(m):
        with tf.device("CPU:1"):
            items = m.TensorListReserve(
                element_shape=tf.constant([2]), num_elements=3, element_dtype=tf.float32
            )
        for i in range(3):
            items = m.TensorListSetItem(
                input_handle=items, index=tf.constant(i), item=tf.constant(floats(2, seed=i))
            )
        return items, m.TensorListStack(
            input_handle=items, element_shape=tf.constant([2]), element_dtype=tf.float32
        )

    for scope in (None, "CPU:0", "CPU:1"):
        with tf.device(scope):
            _, paths = settled(program)
        seen = distinct(paths)
        assert seen <= {INPUT, "capi:op", "capi:dtype"}, (scope, paths)


# ---------------------------------------------------------------------------------------------
# Device policies
# ---------------------------------------------------------------------------------------------


@contextmanager
def policy(name):
    tf.config.experimental.set_device_policy(name)
    try:
        yield
    finally:
        tf.config.experimental.set_device_policy("silent")


REFUSED = {
    "silent": (),
    "warn": (),
    "silent_for_int32": ("float32",),
    "explicit": ("float32", "int32"),
}


@within("two_cpus")
def test_policies():
    """A policy decides about inputs on other devices: silent copy, warning, or error."""
    for dtype in ("float32", "int32"):
        (near,), (far,) = on("CPU:0", floats(2, dtype=dtype)), on("CPU:1", floats(2, dtype=dtype))
        variable = tf.Variable(floats(2, dtype=dtype))
        with tf.device("CPU:1"):
            far_variable = tf.Variable(variable)
        calls = [
            ("AddV2", {"x": near, "y": far}, {"x": near, "y": near}),
            ("Mul", {"x": far, "y": near}, {"x": near, "y": near}),
            ("AddN", {"inputs": [near, far, near]}, {"inputs": [near] * 3}),
            ("Sub", {"x": near, "y": far_variable}, {"x": near, "y": variable}),
        ]
        for name, refused in REFUSED.items():
            fastops.clear_cache()
            for op_name, mixed, pure in calls:
                op = getattr(raw_ops, op_name)
                with policy(name), logged_lines() as logged:
                    want = outcome(getattr(tf.raw_ops, op_name), **mixed)
                assert isinstance(want, tf.Tensor) == (dtype not in refused), (name, op_name)
                assert len(logged) == (name == "warn"), logged
                for prepare in (False, True):
                    if prepare:
                        check(op_name, first=FIRST if dtype in refused else DIRECT, **pure)
                    with policy(name), logged_lines() as seen:
                        got, path = attempt(op, **mixed)
                        if prepare:
                            assert_same(took(op, **pure)[1], DIRECT)
                    assert_same(got, want)
                    assert_same(path, INPUT if prepare else FIRST)
                    assert_same(seen, logged)


@within("two_cpus")
def test_policies_of_threads():
    """A policy applies only to the thread that sets it."""
    (near,), (far,) = on("CPU:0", floats(2)), on("CPU:1", floats(2))
    check("AddV2", x=near, y=near)
    paths = []
    with policy("explicit"):
        thread = threading.Thread(target=lambda: paths.append(attempt(ops.add_v2, x=near, y=far)))
        thread.start()
        thread.join()
        paths.append(attempt(ops.add_v2, x=near, y=far))
    assert_same(paths[0], (near + far, INPUT))
    assert paths[1][0].kind is tf.errors.InvalidArgumentError, paths
    assert_same(paths[1][1], INPUT)


# ---------------------------------------------------------------------------------------------
# Custom devices, replicas, functions that TensorFlow calls
# ---------------------------------------------------------------------------------------------


def test_custom_devices():
    """A parallel device takes tensors with several components, and only through TensorFlow."""
    x, y = tf.constant(floats(3, 4)), tf.constant(floats(3, 4, seed=1))
    device = parallel_device.ParallelDevice(["CPU:0", "CPU:0"])
    sums = [x + x, y + y]
    check("AddV2", x=x, y=x)
    with device:
        packed = device.pack([x, y])
        for _ in range(2):
            result, path = took(ops.add_v2, x=packed, y=packed)
            assert path == "tensorflow:input_type"
        assert_same(device.unpack(result), sums)
        assert took(ops.add_v2, x=packed, y=packed)[0].device == result.device
    assert failure(ops.add_v2, x=packed, y=packed) == failure(tf.raw_ops.AddV2, x=packed, y=packed)
    assert took(ops.add_v2, x=x, y=x)[1] == DIRECT


def test_replicas():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        variable = tf.Variable(2.0)
    for _ in range(3):
        want = tf.raw_ops.Mul(x=variable, y=3.0)
        assert_same(took(ops.mul, x=variable, y=3.0), (want, "tensorflow:input_type"))


def test_python_functions_that_tensorflow_calls():
    """Such functions run on TensorFlow's threads, with their own tapes."""
    x = tf.constant(floats(3, 4))
    paths = []

    def square_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, path = took(ops.mul, x=x, y=x)
        paths.append(path)
        return tape.gradient(y, x)

    function = tf.function(lambda x: tf.py_function(square_gradient, [x], tf.float32))
    for _ in range(3):
        assert_same_bits(function(x), 2 * x)
    assert paths == [FIRST, DIRECT, DIRECT]


# ---------------------------------------------------------------------------------------------
# Seeds, determinism, TensorFlow's cache of kernels
# ---------------------------------------------------------------------------------------------


def test_seeds():
    """A new seed restarts the sequences of stateful ops; prepared kernels are kept."""
    x, shape = tf.constant(floats(2, 3)), tf.constant([4])

    def program(m):
        rounds = []
        for seed in (1, 2, 1):
            tf.random.set_seed(seed)
            rounds += [
                [
                    tf.random.normal([2]),  # takes the seed of the op from the context
                    m.RandomUniform(shape=shape, dtype=tf.float32, seed=3, seed2=4),
                    m.RandomShuffle(value=x, seed=5),
                    m.StatelessRandomNormal(shape=shape, seed=tf.constant([6, seed])),
                    m.Neg(x=x),
                ]
                for _ in range(2)
            ]
        return rounds

    want, paths = settled(program)
    assert_same(want[4:], want[:2])
    assert want[2][0].numpy().tolist() != want[0][0].numpy().tolist()
    assert want[1][1].numpy().tolist() != want[0][1].numpy().tolist()
    assert paths == {
        "RandomUniform": ["capi:op"] * 6,
        "RandomShuffle": ["capi:op"] * 6,
        "StatelessRandomNormal": [DIRECT] * 6,
        "Neg": [DIRECT] * 6,
    }


def test_determinism_switched_on_late():
    """Kernels that choose their algorithm at construction are made anew; others may raise."""
    segments = {
        "data": tf.constant(floats(3, 4)),
        "segment_ids": tf.constant([0, 1, 0]),
        "num_segments": tf.constant(2),
    }
    crops = {
        "grads": tf.ones([1, 2, 2, 1]),
        "boxes": tf.constant([[0.0, 0.0, 1.0, 1.0]]),
        "box_ind": tf.constant([0]),
        "image_size": tf.constant([1, 4, 4, 1]),
        "T": tf.float32,
    }
    check("UnsortedSegmentSum", **segments)
    check("CropAndResizeGradImage", "capi:kernel", **crops)  # asynchronous
    tf.config.experimental.enable_op_determinism()
    context.context().clear_kernel_cache()  # a kernel that was made before does not raise
    try:
        check("UnsortedSegmentSum", **segments)
        assert_same_outcome("CropAndResizeGradImage", **crops)
        assert_same_outcome("RandomUniform", shape=tf.constant([2]), dtype=tf.float32)
    finally:
        config.disable_op_determinism()
    check("UnsortedSegmentSum", **segments)
    check("CropAndResizeGradImage", "capi:kernel", **crops)


def test_tensorflows_kernel_cache_is_cleared():
    x, shape = tf.constant([1.0, 2.0]), tf.constant([2])
    for _ in range(2):
        ops.neg(x=x)
        for seed in (0, 1):
            ops.random_uniform(shape=shape, dtype=tf.float32, seed=seed)
    for _ in range(3):
        context.context().clear_kernel_cache()
        assert took(ops.neg, x=x)[1] == DIRECT
        for seed, path in ((0, DIRECT), (1, "capi:op")):
            assert took(ops.random_uniform, shape=shape, dtype=tf.float32, seed=seed)[1] == path


# ---------------------------------------------------------------------------------------------
# Contexts that end
# ---------------------------------------------------------------------------------------------


def mixed_calls():
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 2.0])
    results = [x]
    for _ in range(3):
        results.append(ops.add_v2(x=x, y=2.0))
        results.append(ops.mat_mul(a=x[None], b=x[:, None]))
        results.append(ops.random_uniform(shape=np.int32([2]), dtype=tf.float32))
        ops.assign_add_variable_op(resource=v.handle, value=x)
        results.append(ops.identity(input=v))
    assert took(ops.add_v2, x=x, y=x)[1] == DIRECT
    assert v.numpy().tolist() == [4.0, 8.0]
    return results


@within("alone")
def test_a_context_reset_with_live_kernels_and_tensors():
    """Kernels, tensors and handles of old contexts stay alive in new contexts."""
    old = mixed_calls()
    for step in range(3):
        handle = context.context()._context_handle
        context._reset_context()
        if step == 1:
            del handle
            gc.collect()
        new = mixed_calls()  # flushes the kernels of the old context
        x, y = old[0], new[0]
        for one, other in ((x, x), (x, y), (y, x)):
            assert_same_outcome("AddV2", x=one, y=other)
        for tensor in old:
            tensor.numpy()
        old = new
    del old, new, x, y, one, other, tensor
    gc.collect()
    mixed_calls()


@within("alone")
def test_kernels_release_an_old_context():
    """Kernels release their reference to a context when TensorFlow's context is deleted."""
    x = tf.constant(1.0)
    for _ in range(2):
        ops.add_v2(x=x, y=x)
    assert fastops.cache_info()["entries"] == {"AddV2": 1}
    old = weakref.ref(context.context())
    del x
    context._reset_context()
    gc.collect()
    if old() is None:
        assert fastops.cache_info()["entries"] == {}, "no further call was needed"
    x = tf.constant(1.0)
    ops.neg(x=x)
    gc.collect()
    assert set(fastops.cache_info()["entries"]) == {"Neg"}
    assert old() is None


@within("alone")
def test_logical_devices_of_a_new_context():
    """A scope may refer to another device in a new context."""
    for place, path in ((0, DIRECT), (1, OTHER)):
        x = tf.constant(floats(2, 3))
        with tf.device("CPU:1"):
            want, paths = settled(lambda m, x=x: (m.Neg(x=x), m.Relu(features=x)))
        assert want[0].device.endswith(f"CPU:{place}"), want[0].device
        assert_same(paths, {"Neg": [path], "Relu": [path]})
        assert took(ops.neg, x=x)[1] == FIRST, "the first call in a new context or in another scope"
        context._reset_context()
        if place == 0:
            split_cpu()


# ---------------------------------------------------------------------------------------------
# Other hosts
# ---------------------------------------------------------------------------------------------

REMOTE = "tensorflow:remote"
WORKER = "/job:worker/replica:0/task:0/device:CPU:0"


@within("alone")
def test_a_connection_to_another_host():
    """A server in this process counts as another host: calls are no longer direct."""
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 1.0])
    for _ in range(2):
        ops.add_v2(x=x, y=x)
        ops.assign_add_variable_op(resource=v.handle, value=x)
    assert took(ops.add_v2, x=x, y=x)[1] == DIRECT
    server = tf.distribute.Server.create_local_server()
    tf.config.experimental_connect_to_host(server.target[len("grpc://") :])

    def program(m):
        with tf.device(WORKER):
            there = m.AddV2(x=x, y=x)
            w = tf.Variable([3.0, 4.0])
            m.AssignAddVariableOp(resource=w.handle, value=x)
        with tf.GradientTape() as tape:
            tape.watch(there)
            product = m.Mul(x=there, y=x)
        return (
            there,
            m.AddV2(x=there, y=x),
            m.AddV2(x=x, y=there),
            m.AddN(inputs=[x, there, x]),
            m.Pack(values=[there, v], axis=0),
            m.ReadVariableOp(resource=w.handle, dtype=tf.float32),
            m.AddV2(x=x, y=w),
            m.Sub(x=x, y=1.0),
            product,
            tape.gradient(product, there),
            tf.function(lambda y: m.Neg(x=y))(there),
        )

    want, paths = settled(program)
    assert want[0].device == want[5].device == WORKER, want
    assert "/job:localhost" in want[7].device, want
    assert_same(paths.pop("Neg"), ["tensorflow:graph"])
    assert distinct(paths) == {REMOTE}, paths
    assert_same_outcome("AddV2", x=want[0], y=tf.ones([3]))
    ops.assign_add_variable_op(resource=v.handle, value=x)
    assert v.numpy().tolist() == [4.0, 7.0]

    context._reset_context()
    check("AddV2", x=tf.constant(1.0), y=tf.constant(2.0))


@within("alone")
def test_collectives_replace_the_host_device():
    """Collectives rename the host device; kernels are prepared for the new name."""
    x = tf.constant([1.0, 2.0])
    for _ in range(2):
        ops.add_v2(x=x, y=x)
    (port,) = free_ports(1)
    server = tensorflow_server_pb2.ServerDef(protocol="grpc", job_name="worker")
    server.cluster.job.add(name="worker").tasks[0] = f"localhost:{port}"
    context.context().enable_collective_ops(server)
    for expected in (FIRST, DIRECT, DIRECT):
        assert_same(took(ops.add_v2, x=x, y=x)[1], expected)
    y = tf.constant([3.0, 4.0])
    want = tf.raw_ops.AddV2(x=y, y=y)
    assert "/job:worker" in want.device, want.device
    assert_same(took(ops.add_v2, x=y, y=y), (want, DIRECT))
    v = tf.Variable([1.0])
    ops.resource_scatter_add(resource=v.handle, indices=[0], updates=[1.0])
    wrong = {"resource": v.handle, "indices": np.int32([9]), "updates": np.float32([1])}
    assert_same_outcome("ResourceScatterAdd", **wrong)
    for scope in ("CPU:0", "/job:worker", "/job:localhost/replica:0/task:0/device:CPU:0"):
        with tf.device(scope):
            assert_same_outcome("AddV2", x=y, y=y)
            assert_same_outcome("AddV2", x=y, y=2.0)

    context._reset_context()
    check("AddV2", x=tf.constant(1.0), y=tf.constant(2.0))
