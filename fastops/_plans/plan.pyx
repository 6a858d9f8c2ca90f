# distutils: language = c++
"""Plans: the graph of a function as prepared kernels in execution order."""

cimport cython
from cpython.object cimport PyObject
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._core.preparing cimport generation
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.graph cimport ExecutedGraphs
from fastops._cpp.handle cimport Inspect, InspectAnywhere, kReady
from fastops._cpp.kernel cimport PreparedKernel
from fastops._cpp.plan cimport (
    Step,
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
from fastops._cpp.runtime cimport LocalDevice, Runtime
from fastops._cpp.text cimport Message
from fastops._dispatch cimport in_order, on_host, runtime
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

from fastops._plans.eligibility import UnplannedError
from fastops._plans.nodes import ARGUMENTS, COPIES, RESULTS, SWITCHES
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
    places : list of str
        For each argument the name of its device, empty for the host.

    Raises
    ------
    fastops._plans.eligibility.UnplannedError
        If plans cannot run the graph.
    """

    def __init__(self, name, attrs, inputs, captured, places):
        cdef Runtime* where = runtime()
        cdef vector[string] graphs, names
        cdef vector[TFE_TensorHandle*] handles
        cdef shared_ptr[PreparedKernel] kernel
        cdef shared_ptr[PlacedKernel] placed
        cdef Status status
        self.made_for = generation
        self.last_ns = LONG_RUN_NS + 1  # unknown before the first run: taken to be long
        if not in_order():
            raise UnplannedError("nothing_direct")
        places = [*places, *map(place_of, captured)]
        for one, place in zip((*inputs, *captured), places):
            names.push_back(place.encode())
            if one is None:
                handles.push_back(NULL)
                continue
            if on_host():
                borrow(one)
            handles.push_back(EagerTensor_Handle(<PyObject*>one))
        call = _call_of(name, attrs)
        status = ExecutedGraphs(where[0], _node(call), handles, names, &graphs, &self.called_on)
        if not status.ok():
            raise UnplannedError("tensorflow_error", Message(status).decode("utf-8", "replace"))
        if graphs.size() != 1:
            raise UnplannedError("several_devices", str(graphs.size()))
        graph = _graph_pb2.GraphDef.FromString(graphs[0])
        self.device = _device_of(where, graph)
        self.schedule = schedule(
            graph, len(inputs), len(captured), _op_def_registry.get, _function_def
        )
        self.waits = self.schedule.waits
        self.native.Resize(self.schedule.num_slots)
        self.check_places(graph, places)
        for node, slot in self.schedule.constants:
            if self.device == NULL:
                _make(where, node, 1, &kernel)
                status = self.native.Fix(kernel.get()[0], slot)
            else:
                _make_placed(where, self.device, node, 1, &placed)
                status = self.native.FixPlaced(placed.get()[0], slot)
            if not status.ok():
                raise UnplannedError("tensorflow_error", Message(status).decode("utf-8", "replace"))
        for one, slot in zip(captured, self.schedule.captured):
            if slot >= 0:
                self.native.Hold(slot, borrow_anywhere(one)[0])
        self.native.arguments = self.schedule.arguments
        self.native.results = self.schedule.results
        self.native.conditional = self.schedule.conditional
        self.native.transient = [
            slot for slot in range(self.schedule.num_slots) if slot not in self.schedule.persistent
        ]
        number = _fill(where, self.device, &self.native.steps, self.schedule.steps, 0)
        self.native.times.runs.resize(number)
        self.native.times.ns.resize(number)

    cdef int check_places(self, graph, places) except -1:
        """Note which results are in the host's memory; raise `UnplannedError` if a copy is needed.

        A plan does not copy values between the memories of the host and the device. A step that
        reads a value, such as a Switch, needs it on the host. A step that passes a value on must
        leave it in the same memory. For the inputs of kernels, TensorFlow has put copying nodes
        into the graph where they are needed.
        """
        cdef list found = [True] * len(self.schedule.results)
        slots = [*self.schedule.arguments, *self.schedule.captured]
        for node in graph.node:
            if self.device == NULL:
                inputs, outputs = [True], [True]
            elif node.op in ARGUMENTS | RESULTS | COPIES | SWITCHES | {"Merge"}:
                inputs, outputs = _in_host_memory(self.device, node)
            if node.op in ARGUMENTS:
                index = node.attr["index"].i
                if slots[index] >= 0 and (places[index] == "") != outputs[0] and (
                    node.attr["T"].type != DT_RESOURCE
                ):
                    raise UnplannedError("argument_device")
            elif node.op in RESULTS:
                found[node.attr["index"].i] = inputs[0]
            elif self.device == NULL:
                continue
            elif node.op in COPIES | SWITCHES | {"Merge"}:
                asked = inputs[1:] if node.op in SWITCHES else []
                asked += inputs[:1] if node.op == "LoopCond" else []
                asked += outputs[1:] if node.op == "Merge" else []
                handed = outputs[:1] + inputs if node.op == "Merge" else outputs + inputs[:1]
                if not all(asked) or len(set(handed)) != 1:
                    raise UnplannedError("memory_moves", node.op)
        self.in_host = found
        return 0

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


cdef const Tensor* borrow(one) except NULL:
    cdef const Tensor* value = NULL
    if not IsEagerTensor(<PyObject*>one) or kReady != Inspect(
        EagerTensor_Handle(<PyObject*>one), runtime().host, &value
    ):
        raise UnplannedError("input_not_on_host")
    return value


cdef const Tensor* borrow_anywhere(one) except NULL:
    cdef const Tensor* value = NULL
    cdef const Device* device = NULL
    if not IsEagerTensor(<PyObject*>one) or kReady != InspectAnywhere(
        EagerTensor_Handle(<PyObject*>one), runtime().host, &value, &device
    ):
        raise UnplannedError("input_not_computed")
    return value


def place_of(tensor):
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


cdef int _fill(Runtime* where, Device* device, vector[Step]* native, steps, int number) except -1:
    """Make the native steps, numbered from `number`; return the next number."""
    cdef Step* step
    cdef size_t i
    native.resize(len(steps))
    for i, one in enumerate(steps):
        step = &native[0][i]
        step.kind = <StepKind><int>_KINDS[one.kind]
        step.number = number
        number += 1
        step.name = one.node.name.encode()
        step.inputs = one.inputs
        step.outputs = one.outputs
        step.shared = one.shared
        step.releases = one.releases
        step.needs = one.needs
        step.control = one.control
        if one.kind in ("kernel", "read"):
            if device == NULL:
                _make(where, one.node, len(one.outputs), &step.kernel)
            else:
                step.kind = kKernel
                _make_placed(where, device, one.node, len(one.outputs), &step.placed)
                if step.placed.get().num_inputs() != <int>step.inputs.size():
                    raise UnplannedError("kernel_inputs", one.node.op)
        if one.loop is not None:
            number = _fill(where, device, &step.enters, one.loop.enters, number)
            number = _fill(where, device, &step.body, one.loop.body, number)
            number = _fill(where, device, &step.exits, one.loop.exits, number)
            step.entered = one.loop.entered
            step.current = one.loop.current
            step.next = one.loop.next
            step.condition = one.loop.condition
    return number
