# distutils: language = c++
"""Plans: the graph of a function as kernels in an order, run by one call."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from fastops._cpp.native cimport (
    Borrowed,
    EnableVectorcall,
    ExecutedGraphs,
    Inspect,
    IsEagerTensor,
    Known,
    Made,
    Message,
    NativePlan,
    Nanoseconds,
    PreparedKernel,
    Runtime,
    Signature,
    Step,
    StepKind,
    Wrap,
    kCopy,
    kKernel,
    kLoop,
    kMerge,
    kNothing,
    kRead,
    kReady,
    kSwitch,
)
from fastops._dispatch cimport generation, on_host, runtime, vectorcall_t
from fastops._intercept cimport Replacement, call_original, enable, live
from fastops._tf.eager cimport (
    EagerTensor_Handle,
    GetEagerContextThreadLocalData,
    TFE_TensorHandle,
    recording,
)
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

from weakref import WeakSet

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2 as _graph_pb2
from tensorflow.core.framework import node_def_pb2 as _node_def_pb2
from tensorflow.python.data.ops.iterator_ops import OwnedIterator as _OwnedIterator
from tensorflow.python.eager import cancellation as _tf_cancellation
from tensorflow.python.eager.context import context as _context
from tensorflow.python.eager.polymorphic_function import eager_function_run as _tf_run
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import op_def_registry as _op_def_registry
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable
from tensorflow.python.saved_model import save_context as _tf_save_context
from tensorflow.python.util.traceback_utils import filter_traceback as _filter_traceback

from fastops._schedule import UnplannedError, schedule

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t)
    object call_object "PyObject_Vectorcall"(PyObject*, PyObject* const*, size_t, PyObject*)
    object PyVectorcall_Call(object, object, object)
    PyObject** PySequence_Fast_ITEMS(PyObject*)


cdef dict _KINDS = {
    "kernel": kKernel,
    "read": kRead,
    "copy": kCopy,
    "switch": kSwitch,
    "merge": kMerge,
    "loop": kLoop,
    "nothing": kNothing,
}

cdef enum:
    LONG = 20000  # nanoseconds after which other threads may run meanwhile

cdef long long _serial = 0
cdef Runtime* _where = runtime()  # always the same place: what stands there is kept up by the gate


@cython.final
cdef class Plan:
    """A function's graph, ready to run on the host.

    Parameters
    ----------
    name : str
        The function's name in the runtime.
    attrs : dict of str to bytes
        Attributes of a call of it.
    inputs : list of EagerTensor or None
        What it is called with. Only handles matter, by what they refer to.
    captured : list of EagerTensor
        What it takes in each call, after those.

    Raises
    ------
    fastops._schedule.UnplannedError
        If something in the graph is TensorFlow's to run.
    """

    cdef NativePlan native
    cdef unsigned long long made_for
    cdef bint waits
    cdef readonly int64_t last_ns  # that the last run took
    cdef readonly object schedule

    def __init__(self, name, attrs, inputs, captured):
        cdef Runtime* where = runtime()
        cdef vector[string] graphs
        cdef vector[TFE_TensorHandle*] handles
        cdef unique_ptr[PreparedKernel] kernel
        cdef Status status
        self.made_for = generation
        self.last_ns = LONG + 1  # until it has run, nobody knows
        if not on_host():
            raise UnplannedError("this thread runs nothing on the host")
        for one in (*inputs, *captured):
            if one is None:
                handles.push_back(NULL)
                continue
            _borrow(one)
            handles.push_back(EagerTensor_Handle(<PyObject*>one))
        call = _call_of(name, attrs)
        status = ExecutedGraphs(where[0], _node(call), handles, &graphs)
        if not status.ok():
            raise UnplannedError(Message(status).decode("utf-8", "replace"))
        if graphs.size() != 1:
            raise UnplannedError(f"the function runs on {graphs.size()} devices")
        graph = _graph_pb2.GraphDef.FromString(graphs[0])
        self.schedule = schedule(
            graph, len(inputs), len(captured), _op_def_registry.get, _function_def
        )
        self.waits = self.schedule.waits
        self.native.Resize(self.schedule.num_slots)
        for node, slot in self.schedule.constants:
            _make(where, node, 1, &kernel)
            status = self.native.Fix(kernel.get()[0], slot)
            if not status.ok():
                raise UnplannedError(Message(status).decode("utf-8", "replace"))
        for one, slot in zip(captured, self.schedule.captured):
            if slot >= 0:
                self.native.Hold(slot, _borrow(one)[0])
        self.native.arguments = self.schedule.arguments
        self.native.results = self.schedule.results
        self.native.conditional = self.schedule.conditional
        self.native.transient = [
            slot for slot in range(self.schedule.num_slots) if slot not in self.schedule.persistent
        ]
        number = _fill(where, &self.native.steps, self.schedule.steps, 0)
        self.native.times.runs.resize(number)
        self.native.times.ns.resize(number)

    def times(self):
        """Return how often steps ran, and for how many nanoseconds, while somebody asked.

        Those inside of a loop come after it.
        """
        return list(self.native.times.runs), list(self.native.times.ns)

    def is_current(self):
        """Tell whether it was made for TensorFlow's context as it is."""
        runtime()
        return self.made_for == generation


cdef const Tensor* _borrow(one) except NULL:
    """The tensor of an EagerTensor on the host."""
    cdef const Tensor* value = NULL
    if not IsEagerTensor(<PyObject*>one) or kReady != Inspect(
        EagerTensor_Handle(<PyObject*>one), runtime().host, &value
    ):
        raise UnplannedError("an input is not on the host")
    return value


# ---------------------------------------------------------------------------------------------
# Running a function
# ---------------------------------------------------------------------------------------------

# A call as TensorFlow's function takes it.
cdef struct Original:
    PyObject* target
    PyObject* const* args
    size_t nargsf
    PyObject* keywords


cdef object _call_original(const Original* call):
    return call_object(call.target, call.args, call.nargsf, call.keywords)


cdef int _observed = 0  # how many ask what runs


def observe(change):
    """Add to the number of those who ask what runs."""
    global _observed
    _observed += change


cdef enum Course:  # that a call took
    PLANNED
    LEFT  # to TensorFlow, for the runner's reason
    CHANGED
    TIMED
    FAILED


cdef class Runner:
    """Decides for each call of a traced function who runs it, and has it run.

    The decisions that are not made on every call are those of a class in Python.
    """

    cdef public Plan plan     # None: TensorFlow runs all
    cdef public object reason  # why that is
    cdef public bint settled  # the plan runs whatever it can
    cdef public list options  # the objects of call options that the plan is right for
    cdef object bare  # runs it, and is found in tracebacks where TensorFlow's function would be
    cdef unsigned long long bare_for  # the context for which `run_bare` is right; 0: for none

    def allow_bare(self):
        """Let TensorFlow run calls without looking at their arguments, in the present context."""
        runtime()
        self.bare = _filter_traceback(self.concrete._inference_function.call_preflattened)
        self.bare_for = generation

    def run_bare(self, inputs):
        """Have TensorFlow run it as its function does once it knows the trace; no tape records."""
        cdef int64_t begin = Nanoseconds()
        result = self.bare(inputs + self.concrete.captured_inputs)
        if _observed:
            self.observe("tensorflow", Nanoseconds() - begin)
        return result

    cdef bint fits(self, Plan plan) except -1:
        """Whether TensorFlow is as it was when a plan was made. `is_plain` has been asked."""
        cdef PyObject* options
        if plan.made_for != generation:
            return False
        options = GetEagerContextThreadLocalData(_where.py_context).function_call_options.get()
        for known in self.options:
            if <PyObject*>known == options:
                return True
        return False

    def is_ready(self):
        """Tell whether TensorFlow is as it was when the plan was made."""
        runtime()
        return self.plan is not None and _where.py_context != NULL and self.fits(self.plan)

    cdef object run_as(self, const Borrowed& given, object pack, const Original* call,
                       Course* course):
        """Have a call run: the plan takes `given`, TensorFlow the call as it is.

        The results of the plan go to `pack`, as a list; without it, there is but one. Tells which
        course the call took.
        """
        cdef Made made
        cdef const Step* failed = NULL
        cdef Status status
        cdef Plan plan = self.plan
        cdef int64_t begin
        cdef size_t i
        begin = Nanoseconds()
        if plan is None or not self.fits(plan) or not (self.settled or self.is_plans_turn()):
            course[0] = LEFT
            result = _call_original(call)
            if _observed:
                self.observe("tensorflow", Nanoseconds() - begin)
            if plan is not None and not self.fits(plan):
                course[0] = CHANGED
                self.renew()
            elif plan is not None:
                course[0] = TIMED
                self.note_time("tensorflow", Nanoseconds() - begin)
            return result
        status = plan.native.Run(
            given, plan.last_ns > LONG or plan.waits, _observed > 0, &made, &failed
        )
        plan.last_ns = Nanoseconds() - begin
        if _observed:
            self.observe("plan", plan.last_ns)
        course[0] = PLANNED if status.ok() else FAILED
        if not status.ok():
            error = self.failure(
                plan,
                status.raw_code(),
                Message(status).decode("utf-8", "replace"),
                failed.name.decode() if failed != NULL else None,
            )
            if error is not None:
                raise error
            return _call_original(call)  # nothing has happened yet: let TensorFlow fail
        if not self.settled:
            self.note_time("plan", plan.last_ns)
        if pack is None:
            return Wrap(move(made[0]), _where.host, _where.context)
        return pack([Wrap(move(made[i]), _where.host, _where.context) for i in range(made.size())])

    def run(self, inputs):
        """Run the function for the tensors that it takes.

        Parameters
        ----------
        inputs : sequence of EagerTensor
            Without what is captured.

        Returns
        -------
        list of EagerTensor
            The results.
        """
        cdef tuple taken = tuple(inputs)
        cdef Borrowed given
        cdef const Tensor* value
        cdef Py_ssize_t i
        cdef PyObject* one
        cdef Original call
        cdef Course course = LEFT
        if self.plan is None or not is_plain():
            return self.run_original(*taken)
        for i in range(len(taken)):
            one = PyTuple_GET_ITEM(taken, i)
            value = NULL
            if not IsEagerTensor(one) or kReady != Inspect(
                EagerTensor_Handle(one), _where.host, &value
            ):
                return self.run_original(*taken)
            given.push_back(value)
        original = self.run_original
        call = Original(
            <PyObject*>original, PySequence_Fast_ITEMS(<PyObject*>taken), len(taken), NULL
        )
        return self.run_as(given, list, &call, &course)


# ---------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------

# Why no plan makes a call, beside what a runner says.
cdef str _CHOSEN = "its executor was chosen"
cdef str _AROUND = "a tape, graph, device, strategy or the like is around it"
cdef str _ARGUMENT = "TensorFlow is to read an argument"
cdef str _FIRST = "the first call of its signature"
cdef dict _COURSES = {
    CHANGED: "TensorFlow's context has changed",
    TIMED: "who is faster is measured",
    FAILED: "its plan has failed",
}

cdef dict _run_globals = _tf_run.__dict__
cdef dict _cancellation_globals = _tf_cancellation.__dict__
cdef object _graphs = _tf_ops._default_graph_stack
cdef object _saving = _tf_save_context._save_context
cdef type _Graph = _tf_ops.Graph
cdef str _EAGERLY = "RUN_FUNCTIONS_EAGERLY"
cdef str _CANCELLED = "_active_context"
cdef str _STRATEGIES = "_distribution_strategy_stack"


cpdef bint is_plain() except -1:
    """Tell whether this thread calls functions without anything around that they look at.

    That is: eagerly on the host, on no tape, in no device scope, under no strategy, in no export.
    """
    cdef PyObject* device_name
    if not on_host():
        return False
    device_name = GetEagerContextThreadLocalData(_where.py_context).device_name.get()
    if (
        device_name != <PyObject*>None and <object>device_name != ""
        or recording()
        or PyDict_GetItem(_run_globals, _EAGERLY) != <PyObject*>_FALSE
        or PyDict_GetItem(_cancellation_globals, _CANCELLED) != <PyObject*>None
        or _saving._in_save_context
        or _graphs.stack
    ):
        return False
    graph = _graphs._global_default_graph
    if graph is None:
        return True
    # `_distribution_strategy_stack`, without making one for each thread.
    return type(graph) is _Graph and not getattr(graph._thread_local, _STRATEGIES, None)


@cython.final
cdef class Case:
    """Calls of one signature, and what runs them.

    Parameters
    ----------
    runner : Runner
        Who runs them.
    takes : list of int or EagerTensor
        For each tensor that the function takes: which of the signature's leaves it is, or what it
        is in all of these calls.
    pack : callable or None
        Makes the results of a list of tensors. None: there is one, and it is the result.
    """

    cdef readonly Runner runner
    cdef vector[int] leaves
    cdef int last_leaf
    cdef vector[Tensor] constants
    cdef list constant_objects
    cdef object pack
    cdef bytes key

    def __init__(self, Runner runner not None, takes, pack):
        self.runner = runner
        self.pack = pack
        self.last_leaf = -1
        self.constant_objects = [one for one in takes if not isinstance(one, int)]
        for one in takes:
            if isinstance(one, int):
                self.leaves.push_back(one)
                self.last_leaf = max(self.last_leaf, one)
            else:
                self.constants.push_back(_borrow(one)[0])
                self.leaves.push_back(-<int>self.constants.size())

    cdef int gather(self, const Signature& signature, Borrowed* given) except -1:
        cdef size_t i
        cdef int leaf
        if self.last_leaf >= <int>signature.num_leaves():
            raise SystemError("a signature has fewer leaves than it is known to have")
        for i in range(self.leaves.size()):
            leaf = self.leaves[i]
            if leaf >= 0:
                given.push_back(signature.leaf(leaf))
            else:
                given.push_back(&self.constants[-leaf - 1])
        return 0

    cdef list inputs(self, const Signature& signature):
        """The same as EagerTensors."""
        cdef int leaf
        return [
            <object>signature.object(leaf) if leaf >= 0 else self.constant_objects[-leaf - 1]
            for leaf in self.leaves
        ]


_callers = WeakSet()


def callers():
    """Return all that live."""
    return list(_callers)


cdef class Caller:
    """A function that knows its calls by what their arguments have in common.

    Parameters
    ----------
    target : callable
        TensorFlow's function.
    plans : bool
        Whether calls may run as plans.
    most : int
        Signatures that are kept; beyond, the one that came first goes.
    """

    cdef vectorcall_t vectorcall
    cdef object target
    cdef bint plans
    cdef dict cases
    cdef Case last
    cdef Py_ssize_t most
    cdef public long long unseen  # calls that TensorFlow knows nothing of
    cdef readonly long long planned  # calls that plans have made
    cdef readonly dict reasons  # and others, by the reason

    def __cinit__(self, *args, **kwargs):
        self.vectorcall = _call
        self.cases = {}
        self.reasons = {}

    def __init__(self, target, plans, most):
        self.target = target
        self.plans = plans
        self.most = most
        _callers.add(self)

    def reset_counters(self):
        """Begin anew to count calls."""
        self.planned, self.reasons = 0, {}

    cdef int note(self, reason) except -1:
        """Count a call that no plan makes."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return 0

    def __call__(self, *args, **kwargs):
        # For callers that ask for the attribute; a call itself goes to `vectorcall`.
        return PyVectorcall_Call(self, args, kwargs)

    def announce(self):
        """Tell whether TensorFlow makes the first call of a signature, which is next."""
        return False

    def prepare(self, args, kwargs, called, result):
        """See to the first call of a signature, as `fastops._function.Plans` does.

        It may return no case for a call that has been made: the next one is as the first.
        """
        raise NotImplementedError

    def known_cases(self):
        """Return the cases of all signatures that are kept."""
        return list(self.cases.values())

    def forget(self):
        """Let go of all cases: the next calls are as the first ones."""
        self.cases, self.last = {}, None

    cdef Case first(self, bytes key, const Original* call, int skipped, bint* called,
                    PyObject** result):
        """See to the first call with arguments of a signature; return the case of such calls.

        Sets whether it has been made, and what came of it, a new reference. That many of the
        arguments are not the function's.
        """
        cdef Case case
        cdef Py_ssize_t i, positional = PyVectorcall_NARGS(call.nargsf)
        cdef tuple names = () if call.keywords == NULL else <tuple>call.keywords
        args = tuple([<object>call.args[i] for i in range(skipped, positional)])
        kwargs = {name: <object>call.args[positional + i] for i, name in enumerate(names)}
        # From here, so that nothing of fastops is in the stacks that TensorFlow notes.
        first = self.announce()
        value = _call_original(call) if first else None
        case, made, value = self.prepare(args, kwargs, first, value)
        if case is not None:
            case.key = key
            while len(self.cases) >= self.most:
                self.cases.pop(next(iter(self.cases)), None)
            self.cases[key] = case
        elif not made:
            raise SystemError("a call has neither been made nor has it a case")
        called[0] = made
        Py_INCREF(value)
        result[0] = <PyObject*>value
        return case


cdef PyObject* _call(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef Caller self = <Caller>callable
    cdef Original call = Original(<PyObject*>self.target, args, nargsf, keywords)
    return _call_as(self, &call, 0)


cdef PyObject* _call_as(Caller self, const Original* call, int skipped) except NULL:
    """Call a function, given a call of which some first arguments are not the function's."""
    cdef PyObject* made = NULL
    cdef Signature signature
    cdef Borrowed given
    cdef Case case
    cdef Course course = LEFT
    cdef bytes key
    cdef bint called = False
    cdef str obstacle = None
    if not self.plans:
        obstacle = _CHOSEN
    elif not is_plain():
        obstacle = _AROUND
    elif not signature.Read(
        _where[0], call.args + skipped, PyVectorcall_NARGS(call.nargsf) - skipped, call.keywords
    ):
        obstacle = _ARGUMENT
    if obstacle is not None:
        self.note(obstacle)
        result = _call_original(call)
        Py_INCREF(result)
        return <PyObject*>result
    case = self.last
    if case is None or not signature.Is(PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key)):
        key = PyBytes_FromStringAndSize(signature.data(), signature.size())
        case = self.cases.get(key)
        if case is None:
            case = self.first(key, call, skipped, &called, &made)
            if called:
                self.note(_FIRST)
                return made
            Py_DECREF(<object>made)
        self.last = case
    case.gather(signature, &given)
    if case.runner.plan is None and case.runner.bare_for == generation:
        result = case.runner.run_bare(case.inputs(signature))
        self.unseen += 1
        course = LEFT
    else:
        result = case.runner.run_as(given, case.pack, call, &course)
        if course == PLANNED:
            self.unseen += 1
            self.planned += 1
    if course != PLANNED:
        self.note(case.runner.reason if course == LEFT else _COURSES[course])
    Py_INCREF(result)
    return <PyObject*>result


@cython.final
@cython.no_gc_clear
cdef class FunctionCall(Replacement):
    """In the place of the method by which traced functions are called.

    Parameters
    ----------
    original : callable
        TensorFlow's.
    planner : callable
        Returns the `Caller` of a function that has none yet.
    """

    cdef object planner

    def __init__(self, original, planner):
        super().__init__(original)
        self.planner = planner
        self.vectorcall = _function_call


cdef PyObject* _function_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                              PyObject* keywords) except NULL:
    cdef FunctionCall self = <FunctionCall>callable
    cdef Original call = Original(<PyObject*>self.original, args, nargsf, keywords)
    if not live or PyVectorcall_NARGS(nargsf) == 0:
        return call_original(self, args, nargsf, keywords)
    caller = getattr(<object>args[0], _CALLER, None)
    if caller is None:
        caller = self.planner(<object>args[0])
        setattr(<object>args[0], _CALLER, caller)
    return _call_as(caller, &call, 1)


@cython.final
@cython.no_gc_clear
cdef class Method(Replacement):
    """In the place of a method for which something else will do in plain calls: see `is_plain`.

    Parameters
    ----------
    original : callable
        TensorFlow's.
    answer : callable
        Given the original and the object, returns what the method does, called without arguments.
    """

    cdef object answer

    def __init__(self, original, answer):
        super().__init__(original)
        self.answer = answer
        self.vectorcall = _method_call


cdef PyObject* _method_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                            PyObject* keywords) except NULL:
    cdef Method self = <Method>callable
    if not live or keywords != NULL or PyVectorcall_NARGS(nargsf) != 1 or not is_plain():
        return call_original(self, args, nargsf, keywords)
    result = self.answer(self.original, <object>args[0])
    Py_INCREF(result)
    return <PyObject*>result


def _describe_iterator(iterator):
    """Return what a trace for an iterator depends on, as text; None if only TensorFlow knows."""
    try:
        return iterator._fastops_text
    except AttributeError:
        specs = tf.nest.flatten(iterator.element_spec)
        plain = all(type(spec) is tf.TensorSpec for spec in specs)
        iterator._fastops_text = repr(iterator.element_spec) if plain else None
    return iterator._fastops_text


cdef int _set_up() except -1:
    cdef Caller one = Caller.__new__(Caller)
    EnableVectorcall(<PyTypeObject*>Caller, <char*>&one.vectorcall - <char*><void*>one)
    known = &Known()
    known.variable = <PyTypeObject*>_ResourceVariable
    known.array = <PyTypeObject*>np.ndarray
    known.array_scalar = <PyTypeObject*>np.generic
    known.dtype = <PyTypeObject*>_dtypes.DType
    known.iterator = <PyTypeObject*>_OwnedIterator
    known.handle = <PyObject*>_HANDLE
    known.trainable = <PyObject*>_TRAINABLE
    known.number = <PyObject*>_NUMBER
    known.iterated = <PyObject*>_ITERATED
    known.copy = <PyObject*>_COPY
    known.describe_iterator = <PyObject*>_DESCRIBE
    return 0


cdef object _FALSE = False
cdef str _HANDLE = "_handle"
cdef str _TRAINABLE = "_trainable"
cdef str _NUMBER = "as_datatype_enum"
cdef str _ITERATED = "_iterator_resource"
cdef str _COPY = "copy"
cdef object _DESCRIBE = _describe_iterator
cdef str _CALLER = "_fastops_caller"

_set_up()
enable(FunctionCall)
enable(Method)


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


def _function_def(name):
    """Return the FunctionDef that the context has for a name; None if there is none."""
    here = _context()
    return here.get_function_def(name) if here.has_function(name) else None


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


cdef int _fill(Runtime* where, vector[Step]* native, steps, int number) except -1:
    """Makes the steps, whose numbers begin with that; returns the next."""
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
            _make(where, one.node, len(one.outputs), &step.kernel)
        if one.loop is not None:
            number = _fill(where, &step.enters, one.loop.enters, number)
            number = _fill(where, &step.body, one.loop.body, number)
            number = _fill(where, &step.exits, one.loop.exits, number)
            step.entered = one.loop.entered
            step.current = one.loop.current
            step.next = one.loop.next
            step.condition = one.loop.condition
    return number
