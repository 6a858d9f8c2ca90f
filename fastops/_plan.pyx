# distutils: language = c++
"""Plans: the graph of a function as kernels in an order, run by one call."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from fastops._cpp.native cimport (
    ExecutedGraphs,
    HostTensor,
    Inspect,
    IsEagerTensor,
    Message,
    NativePlan,
    Nanoseconds,
    PreparedKernel,
    Runtime,
    Step,
    StepKind,
    Wrap,
    kCopy,
    kKernel,
    kLoop,
    kMerge,
    kNothing,
    kReady,
    kSwitch,
)
from fastops._dispatch cimport generation, in_no_scope, on_host, runtime
from fastops._tf.eager cimport EagerTensor_Handle, TFE_TensorHandle, recording
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

from tensorflow.core.framework import graph_pb2 as _graph_pb2
from tensorflow.core.framework import node_def_pb2 as _node_def_pb2
from tensorflow.python.eager.cancellation import context as _cancellation
from tensorflow.python.eager.polymorphic_function import eager_function_run as _tf_run
from tensorflow.python.framework import op_def_registry as _op_def_registry
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.saved_model.save_context import in_save_context as _in_save_context

from fastops._schedule import UnplannedError, schedule


cdef type _Graph = _tf_ops.Graph
cdef object _default_graph = _tf_ops.get_default_graph
cdef dict _KINDS = {
    "kernel": kKernel,
    "copy": kCopy,
    "switch": kSwitch,
    "merge": kMerge,
    "loop": kLoop,
    "nothing": kNothing,
}

cdef enum:
    LONG = 20000  # nanoseconds after which other threads may run meanwhile

cdef long long _serial = 0


@cython.final
cdef class Plan:
    """A function's graph, ready to run on the host.

    Parameters
    ----------
    name : bytes
        The function's name in the runtime.
    attrs : dict of str to bytes
        Attributes of a call of it.
    inputs : list of EagerTensor
        What it is called with: variables matter by their dtypes and shapes.

    Raises
    ------
    fastops._schedule.UnplannedError
        If something in the graph is TensorFlow's to run.
    """

    cdef NativePlan native
    cdef unsigned long long made_for
    cdef readonly int64_t last_ns  # that the last run took
    cdef readonly object schedule

    def __init__(self, name, attrs, inputs):
        cdef Runtime* where = runtime()
        cdef vector[string] graphs
        cdef vector[TFE_TensorHandle*] handles
        cdef unique_ptr[PreparedKernel] kernel
        cdef Status status
        cdef const Tensor* value
        self.made_for = generation
        self.last_ns = LONG + 1  # until it has run, nobody knows
        if not on_host():
            raise UnplannedError("this thread runs nothing on the host")
        for one in inputs:
            value = NULL
            if not IsEagerTensor(<PyObject*>one) or kReady != Inspect(
                EagerTensor_Handle(<PyObject*>one), where.host, &value
            ):
                raise UnplannedError("an input is not on the host")
            handles.push_back(EagerTensor_Handle(<PyObject*>one))
        call = _call_of(name, attrs)
        status = ExecutedGraphs(where[0], _node(call), handles, &graphs)
        if not status.ok():
            raise UnplannedError(Message(status).decode("utf-8", "replace"))
        if graphs.size() != 1:
            raise UnplannedError(f"the function runs on {graphs.size()} devices")
        graph = _graph_pb2.GraphDef.FromString(graphs[0])
        self.schedule = schedule(graph, len(inputs), _op_def_registry.get)
        self.native.Resize(self.schedule.num_slots)
        for node, slot in self.schedule.constants:
            _make(where, node, 1, &kernel)
            status = self.native.Fix(kernel.get()[0], slot)
            if not status.ok():
                raise UnplannedError(Message(status).decode("utf-8", "replace"))
        self.native.arguments = self.schedule.arguments
        self.native.results = self.schedule.results
        self.native.conditional = self.schedule.conditional
        self.native.transient = [
            slot for slot in range(self.schedule.num_slots) if slot not in self.schedule.persistent
        ]
        _fill(where, &self.native.steps, self.schedule.steps)

    def is_current(self):
        """Tell whether it was made for TensorFlow's context as it is."""
        runtime()
        return self.made_for == generation

    def run(self, inputs):
        """Run it.

        Parameters
        ----------
        inputs : list of EagerTensor
            The arguments, and what the function captured.

        Returns
        -------
        list of EagerTensor, or None
            The results; None where this is TensorFlow's to run now.

        Raises
        ------
        KernelError
            If a kernel fails.
        """
        cdef vector[const Tensor*] given
        if not on_host() or not self.gather(tuple(inputs), &given):
            return None
        return self.execute(given)

    cdef bint gather(self, tuple inputs, vector[const Tensor*]* given) except -1:
        """Borrows the tensors of the inputs. False where the plan does not fit them."""
        cdef const Tensor* value
        cdef Py_ssize_t i
        cdef PyObject* one
        if self.made_for != generation or len(inputs) != <Py_ssize_t>self.native.arguments.size():
            return False
        given.reserve(len(inputs))
        for i in range(len(inputs)):
            one = PyTuple_GET_ITEM(inputs, i)
            value = NULL
            if not IsEagerTensor(one) or kReady != Inspect(
                EagerTensor_Handle(one), runtime().host, &value
            ):
                return False
            given.push_back(value)
        return True

    cdef list execute(self, const vector[const Tensor*]& given):
        cdef vector[Tensor] made
        cdef const Step* failed = NULL
        cdef Status status
        cdef Runtime* where = runtime()
        cdef int64_t begin = Nanoseconds()
        cdef size_t i
        status = self.native.Run(given, self.last_ns > LONG, &made, &failed)
        self.last_ns = Nanoseconds() - begin
        if not status.ok():
            raise KernelError(
                status.raw_code(),
                Message(status).decode("utf-8", "replace"),
                failed.name.decode() if failed != NULL else None,
            )
        return [Wrap(move(made[i]), where.host, where.context) for i in range(made.size())]


class KernelError(Exception):
    """A kernel of a plan failed: the code of its status, its message, and the node's name."""


# ---------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------

PASS = object()
"""What stands for a result where the call is TensorFlow's."""

cdef frozenset _LITERALS = frozenset([type(value) for value in (0, 0.5, True, "", None)])


def is_plain():
    """Tell whether this thread calls functions without anything around that they look at.

    That is: eagerly on the host, on no tape, in no device scope, under no strategy, in no export.
    """
    if not on_host() or not in_no_scope() or recording() or _tf_run.RUN_FUNCTIONS_EAGERLY:
        return False
    graph = _default_graph()
    return (
        type(graph) is _Graph
        and not graph._distribution_strategy_stack
        and _cancellation() is None
        and not _in_save_context()
    )


def signature_of(tuple args):
    """Return what the arguments of a call have in common with those of others like it.

    Dtypes and shapes of tensors, the very values of Python's numbers, strings and None; `None`
    where an argument is anything else.
    """
    cdef string text
    cdef const Tensor* value
    cdef PyObject* one
    cdef Py_ssize_t i
    cdef int64_t number
    cdef int j
    cdef list literals = None
    for i in range(len(args)):
        one = PyTuple_GET_ITEM(args, i)
        if IsEagerTensor(one):
            value = HostTensor(one)
            if value == NULL:
                return None
            text.push_back(<char>value.dtype())
            text.push_back(<char>value.dims())
            for j in range(value.dims()):
                number = value.dim_size(j)
                text.append(<char*>&number, sizeof(number))
            continue
        if type(<object>one) not in _LITERALS:
            return None
        text.push_back(<char>-1)
        if literals is None:
            literals = []
        # 1, 1.0 and True are equal, and so are 0.0 and -0.0.
        literals.append((type(<object>one), repr(<object>one)))
    return text if literals is None else (text, *literals)


@cython.final
cdef class Entry:
    """What a call of one signature does.

    Parameters
    ----------
    plan : Plan
        The plan.
    takes : tuple of int
        Which of the call's arguments are the function's, in its order.
    captured : tuple of EagerTensor
        What it takes besides.
    pack : callable
        Makes the results of the list that the plan returns.
    """

    cdef readonly Plan plan
    cdef readonly tuple takes
    cdef readonly tuple captured
    cdef readonly object pack

    def __init__(self, Plan plan not None, takes, captured, pack):
        self.plan = plan
        self.takes = takes
        self.captured = captured
        self.pack = pack

    def run(self, tuple args):
        """Return what the plan makes of a call's arguments, or `PASS`."""
        cdef vector[const Tensor*] given
        cdef tuple inputs = tuple([args[i] for i in self.takes]) + self.captured
        if not self.plan.gather(inputs, &given):
            return PASS
        return self.pack(self.plan.execute(given))


# ---------------------------------------------------------------------------------------------
# Making a plan
# ---------------------------------------------------------------------------------------------

cdef object _call_of(name, attrs):
    global _serial
    _serial += 1
    call = _node_def_pb2.NodeDef(name="fastops", op=name)
    for attr, value in attrs.items():
        call.attr[attr].s = value
    call.attr["_fastops"].i = _serial  # so that it is an instance of its own
    return call


cdef NodeDef _node(node) except *:
    cdef NodeDef native
    cdef string text = node.SerializeToString()
    if not native.ParseFromString(text):
        raise UnplannedError(f"{node.name} cannot be read")
    return native


cdef int _make(Runtime* where, node, int num_outputs,
               unique_ptr[PreparedKernel]* kernel) except -1:
    cdef Status status
    kernel[0] = move(
        PreparedKernel.Make(where[0], _node(node), num_outputs, False, True, &status)
    )
    if kernel[0].get() == NULL:
        raise UnplannedError(f"{node.op}: {Message(status).decode('utf-8', 'replace')}")
    return 0


cdef int _fill(Runtime* where, vector[Step]* native, steps) except -1:
    cdef Step* step
    cdef size_t i
    native.resize(len(steps))
    for i, one in enumerate(steps):
        step = &native[0][i]
        step.kind = <StepKind><int>_KINDS[one.kind]
        step.name = one.node.name.encode()
        step.inputs = one.inputs
        step.outputs = one.outputs
        step.shared = one.shared
        step.releases = one.releases
        step.needs = one.needs
        step.control = one.control
        if one.kind == "kernel":
            _make(where, one.node, len(one.outputs), &step.kernel)
        if one.loop is not None:
            _fill(where, &step.enters, one.loop.enters)
            _fill(where, &step.body, one.loop.body)
            _fill(where, &step.exits, one.loop.exits)
            step.entered = one.loop.entered
            step.current = one.loop.current
            step.next = one.loop.next
            step.condition = one.loop.condition
    return 0
