# distutils: language = c++
"""Plans: the graph of a function as prepared kernels in execution order."""

cimport cython
from cpython.object cimport PyObject
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._core cimport draws
from fastops._core.preparing cimport generation
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.draws cimport DrawSequence, GeneratorOf
from fastops._cpp.graph cimport ExecutedGraphs
from fastops._cpp.handle cimport Inspect, InspectAnywhere, kReady
from fastops._cpp.kernel cimport PreparedKernel
from fastops._cpp.plan cimport (
    NativeStep,
    StepKind,
    kCopy,
    kKernel,
    kLoop,
    kMerge,
    kNothing,
    kRead,
    kSwitch,
)
from fastops._cpp.placed cimport InHostMemory, PlacedKernel
from fastops._cpp.runtime cimport LocalDevice, Runtime, RunnerOf
from fastops._cpp.text cimport Message
from fastops._dispatch cimport runtime
from fastops._situation cimport IN_ORDER, ONLY_HOST, missing
from fastops._specialize.policy cimport LONG_RUN_NS
from fastops._tf.device cimport Device
from fastops._tf.eager cimport EagerTensor_Handle, TFE_TensorHandle
from fastops._tf.protos cimport DT_RESOURCE, NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

from tensorflow.core.framework import graph_pb2 as _graph_pb2
from tensorflow.core.framework import node_def_pb2 as _node_def_pb2
from tensorflow.python.eager.context import context as _context
from tensorflow.python.framework import op_def_registry as _op_def_registry

from fastops._core import draws as _draws
from fastops._core.tables import policy as _policy
from fastops._plans.eligibility import UnplannedError, is_bound as _is_bound
from fastops._plans.nodes import ARGUMENTS, COPIES, RESULTS, SWITCHES, location
from fastops._plans.schedule import schedule

cdef dict _KINDS = {
    "kernel": kKernel,
    "read": kRead,
    "copy": kCopy,
    "switch": kSwitch,
    "merge": kMerge,
    "loop": kLoop,
    "nothing": kNothing,
}

cdef long long _serial = 0


@cython.final
cdef class Plan:
    """A function's graph, ready to run on the host, or on one other device.

    Parameters
    ----------
    name : str
        The function's name in the runtime.
    attrs : dict of str to bytes
        The attributes of a call of the function.
    inputs : list of EagerTensor or None
        The arguments of the function. Only handles matter, by the resources that they refer to.
    captured : list of EagerTensor
        The captured tensors, which the function takes after the arguments.
    devices : list of str
        For each argument the name of its device, empty for the host.
    seeds : bool
        Whether random ops may have seeds. The plan begins with the first draws.

    Raises
    ------
    fastops._plans.eligibility.UnplannedError
        If plans cannot run the graph.
    """

    def __init__(self, name, attrs, inputs, captured, devices, seeds):
        cdef Runtime* where = runtime()
        cdef vector[string] graphs, names
        cdef vector[TFE_TensorHandle*] handles
        cdef shared_ptr[PreparedKernel] kernel
        cdef shared_ptr[PlacedKernel] placed
        cdef Status status
        self.made_for = generation
        self.last_ns = LONG_RUN_NS + 1  # unknown before the first run: taken to be long
        if missing(IN_ORDER):
            raise UnplannedError("nothing_direct")
        devices = [*devices, *map(device_name_of, captured)]
        for tensor, device in zip((*inputs, *captured), devices):
            names.push_back(device.encode())
            if tensor is None:
                handles.push_back(NULL)
                continue
            if not missing(IN_ORDER | ONLY_HOST):
                borrow(tensor)
            handles.push_back(EagerTensor_Handle(<PyObject*>tensor))
        call = _call_of(name, attrs)
        status = ExecutedGraphs(where[0], _node(call), handles, names, &graphs, &self.called_on)
        if not status.ok():
            raise UnplannedError("tensorflow_error", Message(status).decode("utf-8", "replace"))
        if graphs.size() != 1:
            raise UnplannedError("several_devices", str(graphs.size()))
        graph = _graph_pb2.GraphDef.FromString(graphs[0])
        self.device = _device_of(where, graph)
        self.schedule = schedule(
            graph, len(inputs), len(captured), _op_def_registry.get, _function_def, seeds
        )
        self.waits, self.seeded = self.schedule.waits, self.schedule.seeded
        if self.seeded and self.device != NULL:
            raise UnplannedError("node_seeded")
        self.era = draws.era
        self.native.Resize(self.schedule.num_slots)
        self.check_memory(graph, devices)
        for node, slot in self.schedule.constants:
            if self.device == NULL:
                _make(where, node, 1, &kernel)
                status = self.native.Fix(kernel.get()[0], slot)
            else:
                _make_placed(where, self.device, node, 1, &placed)
                status = self.native.FixPlaced(placed.get()[0], slot)
            if not status.ok():
                raise UnplannedError("tensorflow_error", Message(status).decode("utf-8", "replace"))
        for tensor, slot in zip(captured, self.schedule.captured):
            if slot >= 0:
                self.native.Hold(slot, borrow_anywhere(tensor)[0])
        self.native.arguments = self.schedule.arguments
        self.native.results = self.schedule.results
        self.native.conditional = self.schedule.conditional
        if self.schedule.python:
            if self.device != NULL:
                raise UnplannedError("python_device")
            self.native.runner = RunnerOf(where.context, where.host)
        self.native.transient = [
            slot for slot in range(self.schedule.num_slots) if slot not in self.schedule.persistent
        ]
        number = _fill(
            where, self.device, &self.native.steps, self.schedule.steps, 0, &self.native.sequences
        )
        self.native.times.runs.resize(number)
        self.native.times.ns.resize(number)

    cdef int check_memory(self, graph, devices) except -1:
        """Note which results are in the host's memory; raise `UnplannedError` if a copy is needed.

        A plan does not copy values between the memories of the host and the device. A step that
        reads a value, such as a Switch, needs it on the host. A step that passes a value on must
        leave it in the same memory. For the inputs of kernels, TensorFlow has put copying nodes
        into the graph where they are needed.
        """
        cdef list in_host = [True] * len(self.schedule.results)
        slots = [*self.schedule.arguments, *self.schedule.captured]
        for node in graph.node:
            if self.device == NULL:
                inputs, outputs = [True], [True]
            elif node.op in ARGUMENTS | RESULTS | COPIES | SWITCHES | {"Merge"}:
                inputs, outputs = _in_host_memory(self.device, node)
            if node.op in ARGUMENTS:
                index = node.attr["index"].i
                if slots[index] >= 0 and (devices[index] == "") != outputs[0] and (
                    node.attr["T"].type != DT_RESOURCE
                ):
                    raise UnplannedError("argument_device")
            elif node.op in RESULTS:
                in_host[node.attr["index"].i] = inputs[0]
            elif self.device == NULL:
                continue
            elif node.op in COPIES | SWITCHES | {"Merge"}:
                asked = inputs[1:] if node.op in SWITCHES else []
                asked += inputs[:1] if node.op == "LoopCond" else []
                asked += outputs[1:] if node.op == "Merge" else []
                handed = outputs[:1] + inputs if node.op == "Merge" else outputs + inputs[:1]
                if not all(asked) or len(set(handed)) != 1:
                    raise UnplannedError("memory_moves", node.op)
        self.in_host = in_host
        return 0

    cdef int begin_again(self) except -1:
        cdef DrawSequence sequence
        for sequence in self.native.sequences:
            sequence.Begin()
        self.era = draws.era
        return 0

    def catch_up(self, runs):
        """Make the draws of a number of runs, without their results.

        Parameters
        ----------
        runs : int
            How often TensorFlow has run the function since all sequences began.

        Returns
        -------
        bool
            False if the number of draws may differ from run to run.
        """
        return not runs or self.native.CatchUp(runs)

    def keep(self):
        """Keep the plan for TensorFlow's context as it is now: only settings have changed."""
        self.made_for = generation

    def times(self):
        """Return the number of runs and the nanoseconds of each step, while profiles observed it.

        The steps inside a loop come after the loop.
        """
        return list(self.native.times.runs), list(self.native.times.ns)

    def primitive_runs(self):
        """Return how often oneDNN's primitive ran in place of a kernel."""
        return self.native.PrimitiveRuns()

    def is_current(self):
        """Tell whether the plan was made for TensorFlow's current context."""
        runtime()
        return self.made_for == generation


cdef const Tensor* borrow(tensor) except NULL:
    cdef const Tensor* value = NULL
    if not IsEagerTensor(<PyObject*>tensor) or kReady != Inspect(
        EagerTensor_Handle(<PyObject*>tensor), runtime().host, &value
    ):
        raise UnplannedError("input_not_on_host")
    return value


cdef const Tensor* borrow_anywhere(tensor) except NULL:
    cdef const Tensor* value = NULL
    cdef const Device* device = NULL
    if not IsEagerTensor(<PyObject*>tensor) or kReady != InspectAnywhere(
        EagerTensor_Handle(<PyObject*>tensor), runtime().host, &value, &device
    ):
        raise UnplannedError("input_not_computed")
    return value


def device_name_of(tensor):
    """Return the name of the device whose memory holds a tensor; empty for the host."""
    cdef const Tensor* value = NULL
    cdef const Device* device = NULL
    if IsEagerTensor(<PyObject*>tensor) and kReady == InspectAnywhere(
        EagerTensor_Handle(<PyObject*>tensor), runtime().host, &value, &device
    ) and device != NULL:
        return device.name().decode()
    return ""


cdef Device* _device_of(Runtime* where, graph) except? NULL:
    """The device on which a partition runs; null for the host."""
    cdef Device* device
    names = {node.device for node in graph.node if node.device}
    if not names and where.only_host:
        return NULL
    if len(names) != 1:
        raise UnplannedError("device_unknown")
    device = LocalDevice(where[0], names.pop().encode())
    if device == NULL:
        raise UnplannedError("device_remote")
    if device == where.host:
        return NULL
    if not PlacedKernel.IsSupported(where[0], device[0]):
        raise UnplannedError("device_kind")
    return device


cdef tuple _in_host_memory(Device* device, node):
    """Return for each input and output of a node whether it is in the host's memory."""
    cdef vector[bool] inputs, outputs
    cdef Status status = InHostMemory(device[0], _node(node), &inputs, &outputs)
    if not status.ok():
        raise UnplannedError("tensorflow_error", Message(status).decode("utf-8", "replace"))
    return list(inputs), list(outputs)


cdef object _call_of(name, attrs):
    global _serial
    _serial += 1
    call = _node_def_pb2.NodeDef(name="fastops", op=name)
    for attr, value in attrs.items():
        call.attr[attr].s = value
    call.attr["_fastops"].i = _serial  # unique: TensorFlow must not share the instance
    return call


def _function_def(name):
    """Return the context's FunctionDef for a name; None if there is none."""
    here = _context()
    return here.get_function_def(name) if here.has_function(name) else None


cdef NodeDef _node(node) except *:
    cdef NodeDef native
    cdef string text = node.SerializeToString()
    if not native.ParseFromString(text):
        raise UnplannedError("node_unreadable", node.name)
    return native


cdef int _make(Runtime* where, node, int num_outputs,
               shared_ptr[PreparedKernel]* kernel) except -1:
    cdef Status status
    kernel[0] = PreparedKernel.Make(where[0], _node(node), num_outputs, False, True, &status)
    if kernel[0].get() == NULL:
        message = Message(status).decode("utf-8", "replace")
        raise UnplannedError("kernel_missing", f"{node.op}, {message}")
    return 0


cdef int _make_placed(Runtime* where, Device* device, node, int num_outputs,
                      shared_ptr[PlacedKernel]* kernel) except -1:
    kernel[0] = PlacedKernel.Make(where[0], device, _node(node), num_outputs)
    if kernel[0].get() == NULL:
        raise UnplannedError("node_on_device", node.op)
    return 0


cdef int _add_sequence(vector[DrawSequence]* sequences, NativeStep* step, node) except -1:
    """Note the sequence of a random kernel, if it has seeds."""
    cdef DrawSequence sequence
    if node.op not in _policy.SEEDED or not _is_bound(node):
        return 0
    sequence.seed, sequence.seed2 = node.attr["seed"].i, node.attr["seed2"].i
    sequence.guarded = GeneratorOf(
        step.kernel.get().kernel(), node.op in _draws.SAMPLERS, sequence.seed, sequence.seed2
    )
    if sequence.guarded == NULL:
        raise UnplannedError("node_seeded", node.op)
    sequences.push_back(sequence)
    step.seeded = True
    return 0


cdef int _fill(Runtime* where, Device* device, vector[NativeStep]* native, steps,
               int number, vector[DrawSequence]* sequences) except -1:
    """Make the native steps, numbered from `number`; return the next number."""
    cdef NativeStep* step
    cdef size_t i
    native.resize(len(steps))
    for i, plan_step in enumerate(steps):
        step = &native[0][i]
        step.kind = <StepKind><int>_KINDS[plan_step.kind]
        step.number = number
        number += 1
        step.location = location(plan_step.node).encode()
        step.inputs = plan_step.inputs
        step.outputs = plan_step.outputs
        step.shared = plan_step.shared
        step.releases = plan_step.releases
        step.needs = plan_step.needs
        step.control = plan_step.control
        if plan_step.kind in ("kernel", "read"):
            if device == NULL:
                _make(where, plan_step.node, len(plan_step.outputs), &step.kernel)
                _add_sequence(sequences, step, plan_step.node)
            else:
                step.kind = kKernel
                _make_placed(where, device, plan_step.node, len(plan_step.outputs), &step.placed)
                if step.placed.get().num_inputs() != <int>step.inputs.size():
                    raise UnplannedError("kernel_inputs", plan_step.node.op)
        if plan_step.loop is not None:
            number = _fill(where, device, &step.enters, plan_step.loop.enters, number, sequences)
            number = _fill(where, device, &step.body, plan_step.loop.body, number, sequences)
            number = _fill(where, device, &step.exits, plan_step.loop.exits, number, sequences)
            step.entered = plan_step.loop.entered
            step.current = plan_step.loop.current
            step.next = plan_step.loop.next
            step.condition = plan_step.loop.condition
    return number
