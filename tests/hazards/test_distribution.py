"""`tf.distribute`, DTensor and parallel devices: replicas, workers, parameter servers, meshes."""

import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import keras
import numpy as np
import pytest
import tensorflow as tf
from apart import Process, within
from recorder import distinct, settled
from support import DIRECT, FIRST, failure, free_ports, python, took
from tensorflow.experimental import dtensor
from tensorflow.python.distribute.parallel_device import parallel_device

import fastops
from fastops import raw_ops


def split_cpu():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)


def several_cpus():
    """Return a fixture that yields a process with several logical CPUs."""

    @pytest.fixture(scope="module")
    def process():
        process = Process(split_cpu)
        yield process
        process.end()

    return process


# Each kind has its own process: all number their collectives from one, and would collide.
replicas_apart = several_cpus()
meshes_apart = several_cpus()
parallel_apart = several_cpus()


@pytest.fixture
def alone():
    """Yield a process whose context no other test has used."""
    process = Process()
    yield process
    process.end()


# ---------------------------------------------------------------------------------------------
# Replicas in one process
# ---------------------------------------------------------------------------------------------


class Replicas:
    """A model on two devices: direct kernels run on the first, and not on the second."""

    INITIAL = np.float32([[1, 2], [3, 4]])

    def __init__(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with self.strategy.scope():
            self.weights = tf.Variable(self.INITIAL)
            self.total = tf.Variable(
                0.0,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )
        self.inputs = self.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant([[1.0, 2.0]]) + 2.0 * context.replica_id_in_sync_group
        )

    def step(self, m, x):
        """Return activations, loss, gradient, and the sum of gradients over all replicas."""
        with tf.GradientTape() as tape:
            y = m.Square(x=m.MatMul(a=x, b=self.weights))
            loss = m.Sum(input=y, axis=tf.constant([0, 1]))
        gradient = tape.gradient(loss, self.weights)
        context = tf.distribute.get_replica_context()
        return y, loss, gradient, context.all_reduce("SUM", gradient)

    def run(self, step):
        return self.strategy.run(step, args=(self.inputs,))

    def flat(self, results):
        """Return the values of all results on all replicas, in one list."""
        return [
            value
            for result in results
            for value in self.strategy.experimental_local_results(result)
        ]

    def value(self):
        """Return the weights, which must be the same on both replicas."""
        first, second = (variable.numpy() for variable in self.weights.values)
        assert first.tobytes() == second.tobytes()
        assert "CPU:1" in self.weights.values[1].device
        return first


@cache
def _replicas():
    """Return the strategy of the process. A second one would reuse the keys of its reductions."""
    return Replicas()


def mirrored():
    """Return the replicas with their initial weights."""
    replicas = _replicas()
    replicas.weights.assign(replicas.INITIAL)
    return replicas


@within("replicas_apart")
def test_mirrored_replicas():
    replicas = mirrored()

    def program(m):
        results = replicas.run(lambda x: replicas.step(m, x))
        flat = replicas.flat(results)
        for device in ("CPU:0", "CPU:1"):
            assert sum(device in result.backing_device for result in flat) == 4
        loss = results[1]
        return flat + [replicas.strategy.reduce(kind, loss, axis=None) for kind in ("SUM", "MEAN")]

    want, paths = settled(program)
    y, _, first, second, _, _, *reduced, total, mean = (value.numpy().tolist() for value in want)
    assert (y, first, second) == ([[49, 100]], 149, 709)
    assert reduced == [[[104, 152], [148, 216]]] * 2
    assert (total, mean) == (858, 429)
    assert paths == {
        "MatMul": ["tensorflow:input_type"] * 2,  # only TensorFlow knows which replica is meant
        "Square": [DIRECT, "capi:input_device"],
        "Sum": [DIRECT, "capi:input_device"],
    }


@within("replicas_apart")
def test_losses_of_mirrored_replicas():
    """The number of replicas scales these losses. A recording made outside of replicas has one."""
    replicas, losses = mirrored(), tf.constant([1.0, 2.0])

    def scaled(*given):
        return [function(losses) for function in functions]

    with fastops.accelerated():
        functions = (tf.nn.compute_average_loss, tf.nn.scale_regularization_loss)
        for _ in range(4):
            assert np.array_equal(scaled(), [1.5, 3.0])
            assert np.array_equal(replicas.flat(replicas.run(scaled)), [0.75, 0.75, 1.5, 1.5])
            with replicas.strategy.scope():
                assert failure(scaled).kind is RuntimeError
        assert [function.describe()["replayed"] for function in functions] == [1, 1]


@within("replicas_apart")
def test_functions_of_mirrored_replicas():
    replicas = mirrored()

    def program(m):
        inside = tf.function(lambda x: replicas.step(m, x))
        around = tf.function(lambda: replicas.run(lambda x: replicas.step(m, x)))
        return replicas.flat(replicas.run(inside)) + replicas.flat(around())

    _, paths = settled(program)
    assert paths == {op: ["tensorflow:graph"] * 4 for op in ("MatMul", "Square", "Sum")}


@within("replicas_apart")
def test_updates_of_mirrored_variables():
    replicas = mirrored()
    weights, total = replicas.weights, replicas.total

    def program(m):
        def update(variable, gradient):
            m.ResourceApplyGradientDescent(var=variable.handle, alpha=0.01, delta=gradient)

        def merge(strategy, gradient):
            strategy.extended.update(weights, update, args=(gradient,))

        def step(x):
            gradient = replicas.step(m, x)[-1]
            tf.distribute.get_replica_context().merge_call(merge, args=(gradient,))
            m.AssignAddVariableOp(resource=total.handle, value=1.0)

        weights.assign(replicas.INITIAL)
        total.assign(0.0)
        results = []
        for _ in range(3):
            replicas.run(step)
            results += [replicas.value(), weights.read_value()]
        # Outside of replicas, the value is that of the first replica or the sum of all.
        y = m.MatMul(a=[[1.0, 1.0]], b=weights)
        return results, y, m.AddV2(x=total, y=1.0), m.Neg(x=weights.values[1])

    want, paths = settled(program)
    assert want[2].numpy() == 7.0
    for op in ("ResourceApplyGradientDescent", "AssignAddVariableOp"):
        assert paths[op] == [DIRECT, "capi:input_device"] * 3
    assert paths["AddV2"] == ["tensorflow:input_type"]
    assert paths["Neg"] == ["capi:input_device"]


@within("replicas_apart")
def test_an_optimizer_of_mirrored_replicas():
    replicas = mirrored()

    def program(m):
        with replicas.strategy.scope():
            optimizer = keras.optimizers.Adam(0.1)

        def step(x):
            gradient = replicas.step(m, x)[2]
            optimizer.apply_gradients([(gradient, replicas.weights)])

        replicas.weights.assign(replicas.INITIAL)
        for run in (step, tf.function(step)):
            replicas.run(run)
        return replicas.value()

    want, paths = settled(program)
    assert (want != replicas.INITIAL).all()
    for op in ("Square", "Sum"):
        assert paths[op] == [DIRECT, "capi:input_device"] + ["tensorflow:graph"] * 2


# ---------------------------------------------------------------------------------------------
# Several processes or servers
# ---------------------------------------------------------------------------------------------

WORKER = """
    from recorder import settled
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rank = strategy.cluster_resolver.task_id
    with strategy.scope():
        weights = tf.Variable([1.0, 2.0])

    def program(m):
        def replica():
            x = tf.constant([rank + 1.0, 3.0])
            with tf.GradientTape() as tape:
                loss = m.Sum(input=m.Mul(x=m.Square(x=weights), y=x), axis=0)
            gradient = tape.gradient(loss, weights)
            reduced = tf.distribute.get_replica_context().all_reduce("SUM", gradient)
            weights.assign_sub(0.25 * reduced)
            return loss, gradient, reduced

        weights.assign([1.0, 2.0])
        results = [*strategy.run(replica), weights.read_value()]
        results += [strategy.reduce(kind, results[0], axis=None) for kind in ("SUM", "MEAN")]
        return [*results, *strategy.run(tf.function(replica)), weights.read_value()]

    want, paths = settled(program)
    loss, gradient, reduced, updated, total, mean, *_ = (one.numpy().tolist() for one in want)
    assert (loss, gradient) == (rank + 13, [2 * rank + 2, 12])
    assert (reduced, updated) == ([6, 24], [-0.5, -4])
    assert (total, mean) == (13 + 14, 13.5)
    for op in ("Square", "Mul", "Sum"):
        assert paths[op] == ["tensorflow:remote", "tensorflow:graph"], paths
    print("fine")
    """


def test_two_workers():
    """Two processes reduce over their replicas, and both get the sums."""
    addresses = [f"localhost:{port}" for port in free_ports(2)]
    tasks = [
        json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}})
        for rank in range(2)
    ]
    with ThreadPoolExecutor(2) as pool:
        printed = pool.map(lambda task: python(WORKER, TF_CONFIG=task), tasks)
    assert list(printed) == ["fine\n"] * 2


@within("alone")
def test_variables_of_parameter_servers():
    worker, *servers = (f"localhost:{port}" for port in free_ports(3))
    cluster = tf.train.ClusterSpec({"worker": [worker], "ps": servers})
    x = tf.constant([[1.0, 2.0]])
    running = [
        tf.distribute.Server(cluster, job_name=job, task_index=task, protocol="grpc")
        for job, task in (("worker", 0), ("ps", 0), ("ps", 1))
    ]
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc"),
        variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2),
    )
    with strategy.scope():
        shards = tf.Variable(tf.ones([2, 2]))
        bias = tf.Variable(0.5)
    places = [tf.DeviceSpec.from_string(variable.device) for variable in (*shards.variables, bias)]
    assert [(place.job, place.task) for place in places] == [("ps", 0), ("ps", 1), ("ps", 0)]

    def here(m):
        bias.assign(0.5)
        with tf.GradientTape() as tape:
            y = m.Mul(x=m.AddV2(x=x, y=bias), y=bias)
        m.AssignAddVariableOp(resource=bias.handle, value=1.0)
        return [
            m.ReadVariableOp(resource=bias.handle, dtype=tf.float32),
            y,
            tape.gradient(y, bias),
            m.Neg(x=bias),
            m.MatMul(a=x, b=shards.variables[1], transpose_b=True),
            m.Sum(input=shards, axis=0),  # TensorFlow concatenates the shards
        ]

    want, paths = settled(here)
    assert want[0].numpy() == 1.5
    assert "/job:chief" in want[1].device
    assert distinct(paths) == {"tensorflow:remote"}

    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def there(m):
        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = m.Sum(input=m.Square(x=m.AddV2(x=bias, y=x)), axis=[0, 1])
            bias.assign_sub(0.25 * tape.gradient(loss, bias))
            return loss

        bias.assign(0.5)
        losses = [coordinator.schedule(step) for _ in range(3)]
        coordinator.join()
        return [loss.fetch() for loss in losses], bias.read_value()

    want, paths = settled(there)
    assert want[0] == [8.5, 0.5, 0.5]
    assert paths == {op: ["tensorflow:graph"] for op in ("AddV2", "Square", "Sum")}
    assert len(running) == 3, "alive to the end"


# ---------------------------------------------------------------------------------------------
# Tensors with several components
# ---------------------------------------------------------------------------------------------


@within("meshes_apart")
def test_dtensors():
    mesh = dtensor.create_mesh([("x", 2), ("y", 2)], devices=[f"CPU:{i}" for i in range(4)])
    values = np.arange(16, dtype=np.float32).reshape(4, 4)
    everywhere = dtensor.Layout.replicated(mesh, rank=2)
    whole = dtensor.copy_to_mesh(values, everywhere)
    split = dtensor.relayout(whole, dtensor.Layout(["x", "y"], mesh))
    variable = dtensor.DVariable(dtensor.copy_to_mesh(values / 16, everywhere))
    plain = tf.constant(values)
    assert took(raw_ops.Neg, x=plain)[1] == FIRST

    def opened(tensor):
        assert "CUSTOM" in tensor.device
        return [dtensor.fetch_layout(tensor).sharding_specs, *dtensor.unpack(tensor)]

    def program(m):
        with dtensor.default_mesh(mesh):
            with tf.GradientTape() as tape:
                y = m.MatMul(a=split, b=variable)
                z = m.Mul(x=y, y=y)
            gradient = tape.gradient(z, variable)
        relu = m.Relu(features=m.AddV2(x=y, y=-50.0))
        total = m.Sum(input=relu, axis=[0, 1])
        return [opened(tensor) for tensor in (y, z, gradient, relu, total)]

    want, paths = settled(program)
    layout, first, *_ = want[0]
    assert layout == ["x", "unsharded"]
    assert first.numpy().tolist() == (values @ values / 16)[:2].tolist()
    assert distinct(paths) == {"tensorflow:input_type"}

    def function(m):
        return opened(tf.function(lambda x: m.MatMul(a=x, b=variable))(split))

    want, paths = settled(function)
    assert want[1].numpy().tolist() == first.numpy().tolist()
    assert paths == {"MatMul": ["tensorflow:graph"]}
    for wrong in ({"a": split, "b": plain}, {"a": split, "b": split[:3]}):
        assert failure(raw_ops.MatMul, **wrong) == failure(tf.raw_ops.MatMul, **wrong)
    assert took(raw_ops.Neg, x=plain)[1] == DIRECT


@within("meshes_apart")
def test_the_scope_of_a_mesh():
    """In the scope of a mesh, small tensors and numbers are replicated automatically."""
    mesh = dtensor.create_mesh([("x", 2)], devices=["CPU:0", "CPU:1"])
    two, shape = tf.constant(2.0), tf.constant([4, 4])

    def program(m):
        with dtensor.default_mesh(mesh):
            m.NoOp()
            results = [m.AddV2(x=two, y=two), m.AddV2(x=two, y=1.0), m.Fill(dims=shape, value=two)]
        assert all("CUSTOM" in result.device for result in results)
        return [dtensor.unpack(result) for result in results]

    _, paths = settled(program)
    assert all(path.startswith("tensorflow:") for path in distinct(paths)), paths


@within("parallel_apart")
def test_parallel_devices():
    device = parallel_device.ParallelDevice(["CPU:0", "CPU:1"])
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with device:
        packed = device.pack([x, y])
        variable = tf.Variable(packed)
    instance = itertools.count(1)

    def program(m):
        with device:
            variable.assign(packed)
            m.AssignAddVariableOp(resource=variable.handle, value=packed)
            with tf.GradientTape() as tape:
                tape.watch(packed)
                z = m.Mul(x=m.Tanh(x=packed), y=variable)
            reduced = m.CollectiveReduce(
                input=packed,
                group_size=2,
                group_key=1,
                instance_key=next(instance),
                merge_op="Add",
                final_op="Id",
                subdiv_offsets=[0],
            )
            called = tf.function(lambda t: m.AddV2(x=t, y=t))(packed)
            results = [z, *tape.gradient(z, [packed, variable]), reduced, called]
            return [part for result in results for part in device.unpack(result)]

    want, paths = settled(program)
    assert [part.numpy().tolist() for part in want[-4:]] == [[4, 6], [4, 6], [2, 4], [6, 8]]
    assert paths.pop("AddV2") == ["tensorflow:graph"]
    assert distinct(paths) == {"tensorflow:input_type"}

    def refused(matmul, **arguments):
        error = failure(matmul, **arguments)
        # Either component may fail first.
        return error.kind, re.sub(r"CPU:[01]}}", "CPU}}", error.message)

    for wrong in ({"a": packed, "b": packed}, {"a": x[None], "b": packed}):
        with device:
            assert refused(raw_ops.MatMul, **wrong) == refused(tf.raw_ops.MatMul, **wrong)
        assert refused(raw_ops.MatMul, **wrong) == refused(tf.raw_ops.MatMul, **wrong)


@within("parallel_apart")
def test_the_scope_of_a_parallel_device():
    """Calls without inputs run on all devices there; ordinary tensors are rejected."""
    device = parallel_device.ParallelDevice(["CPU:0", "CPU:1"])
    x = tf.constant([1.0, 2.0])

    def program(m):
        with device:
            m.NoOp()
            handle = m.VarHandleOp(dtype=tf.float32, shape=[], shared_name="weight")
            filled = m.Fill(dims=[2], value=1.0)
            return len(device.unpack(handle)), device.unpack(filled)

    want, paths = settled(program)
    assert want[0] == 2
    assert all(path.startswith("tensorflow:") for path in distinct(paths)), paths
    with device:
        assert failure(raw_ops.Neg, x=x) == failure(tf.raw_ops.Neg, x=x)
    assert [took(raw_ops.Neg, x=x)[1] for _ in range(2)] == [FIRST, DIRECT]
