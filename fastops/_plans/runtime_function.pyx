# distutils: language = c++
"""Functions of TensorFlow's runtime, which are called with flat tensors.

TensorFlow makes several of them of a traced function, each an `AtomicFunction`: one for plain
calls, and a forward and a backward function for calls that a tape records. All calls go through
the method `call_flat`. Here forward and backward functions get plans, too.

The kernels of random ops with seeds go on in their sequences from call to call. TensorFlow keeps
them in the executor of the function, where nothing else can reach them. So a plan has to run all
calls from the first one on, or it makes the draws of TensorFlow's calls so far (`Plan.catch_up`).
Then it owns the function: its object is the attribute `call_flat` of the `AtomicFunction`, also
after `uninstall`, since TensorFlow's kernels could not be brought up to date. All sequences begin
again when a global seed is set. How often TensorFlow has run a function is known if fastops has
been installed since all sequences began (`fastops._core.draws`).
"""

cimport cython
from cpython.exc cimport PyErr_WriteUnraisable
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

from fastops._core cimport draws
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.handle cimport Inspect, kReady
from fastops._cpp.plan cimport Borrowed
from fastops._cpp.python cimport PySequence_Fast_ITEMS, PyVectorcall_Call, PyVectorcall_NARGS
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.vectorcall cimport EnableVectorcall
from fastops._dispatch cimport gate, runtime
from fastops._plans.caller cimport pays_for_plan
from fastops._plans.plan cimport borrow
from fastops._plans.runner cimport Course, LEFT, Original, Runner, call_original
from fastops._situation cimport NO_STRATEGY, ONLY_HOST, PLAIN, missing
from fastops._specialize.policy cimport Account, MAX_CALL_OPTIONS, now
from fastops._tf.eager cimport EagerTensor_Handle
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

from weakref import WeakSet, ref as _ref

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.eager.polymorphic_function.concrete_function import (
    _BACKWARD_PREFIX,
    _FORWARD_PREFIX,
    _INFERENCE_PREFIX,
)
from tensorflow.python.framework import ops as _ops

from fastops._plans import costs as _costs
from fastops._plans.runtime_plan import RuntimePlan as _RuntimePlan
from fastops._plans.sequences import NONE as _NONE, VARYING as _VARYING, draws_of as _draws_of

cdef Runtime* _where = runtime()  # the address never changes; `gate` keeps the contents current
cdef str _ATTRIBUTE = "_fastops_function"
cdef str _METHOD = "call_flat"
cdef tuple _DERIVED = (_FORWARD_PREFIX, _INFERENCE_PREFIX + _BACKWARD_PREFIX)

cdef enum:
    _REQUIRED = PLAIN | NO_STRATEGY | ONLY_HOST  # TensorFlow itself stops tapes during the call


@cython.final
cdef class RuntimeFunction:
    """Runs the calls of one function of the runtime, by a plan or by TensorFlow.

    Parameters
    ----------
    atomic : AtomicFunction
        TensorFlow's object. It has a reference to this one.
    method : function
        TensorFlow's `AtomicFunction.call_flat`.
    """

    def __cinit__(self):
        self.vectorcall = _call
        self.account = Account()

    def __init__(self, atomic, method):
        context = atomic._bound_context
        self.reference, self.method, self.context = _ref(atomic), method, _ref(context)
        self.draws = _draws_of(atomic.cached_definition, _definitions(context))
        self.derived = atomic.name.decode().startswith(_DERIVED)
        self.options = []

    def __call__(self, *args, **kwargs):
        # For code that looks up the attribute `__call__`; calls go through `vectorcall`.
        return PyVectorcall_Call(self, args, kwargs)

    cdef int begin_era(self) except -1:
        """Count the runs anew, if all sequences have begun again."""
        if self.era != draws.era:
            self.era, self.runs, self.options, self.refused = draws.era, 0, [], False
        return 0

    cdef int note_run(self) except -1:
        """Note that TensorFlow runs the function."""
        self.begin_era()
        self.runs += 1
        options = self.context().function_call_options
        for known in self.options:
            if known is options:
                return 0
        self.options.append(options)
        return 0

    cdef bint may_own(self, const Original* call, Py_ssize_t size) except -1:
        """Have a plan run all calls from this one on, if it can."""
        try:
            return self.own(inputs_of(call, size))
        except Exception:  # internal error: report it, and leave the function to TensorFlow
            PyErr_WriteUnraisable(self)
            self.refused = True
            return False

    def own(self, inputs):
        """Have a plan run all calls from now on.

        Parameters
        ----------
        inputs : list of EagerTensor
            The tensors of a call, as an example.

        Returns
        -------
        bool
            Whether the plan owns the function.
        """
        cdef Runner runner
        if self.owned:
            return True
        self.begin_era()
        if self.making or self.refused or not draws.live or len(self.options) > MAX_CALL_OPTIONS:
            return False
        options = self.context().function_call_options.as_attrs()
        if any([other.as_attrs() != options for other in self.options]):
            return False
        self.make(inputs)
        runner = self.runner
        if runner.plan is None or not runner.plan.catch_up(self.runs):
            self.refused = True
            self.runner = None
            return False
        runner.settled = self.owned = True
        self.rng = self.context()._rng
        setattr(self.reference(), _METHOD, self)
        _owned.add(self)
        return True

    def make(self, inputs):
        """Make the plan, if there can be one, given the tensors of a call."""
        cdef Borrowed given
        self.making = True  # TensorFlow makes calls of other threads meanwhile
        try:
            runner = _RuntimePlan(self.reference(), inputs, self.draws != _NONE)
            if runner.plan is not None:
                for tensor in inputs:
                    given.push_back(borrow(tensor))
                self.kinds.Assign(given)
            self.runner = runner
        finally:
            self.making = False

    cdef bint is_due(self, int64_t ns) except -1:
        """Whether calls have cost enough to make a plan, after one that took `ns` nanoseconds."""
        self.account.charge(ns)
        if self.account.calls == 1:
            return False
        if self.num_nodes == 0:
            self.num_nodes, self.loops = _costs.size_of(self.reference())
        return pays_for_plan(self.account, self.num_nodes, self.loops)

    cdef int try_plan(self, const Original* call, Py_ssize_t size) except -1:
        """Make the plan of a function without seeds, if there can be one."""
        try:
            self.make(inputs_of(call, size))
            self.refused = self.runner.plan is None
        except Exception:  # internal error: report it, and leave the function to TensorFlow
            PyErr_WriteUnraisable(self)
            self.refused = True
        return 0

    cdef bint is_usual(self, object context) except -1:
        """Whether a call has the options that the plan was made for.

        TensorFlow has other kernels for other options. Each thread has an options object.
        """
        options = context.function_call_options
        cdef Runner runner = self.runner
        for known in runner.options:
            if known is options:
                return True
        if options.as_attrs() != runner.options[0].as_attrs():
            return False
        if len(runner.options) < MAX_CALL_OPTIONS:
            runner.options.append(options)
        return True

    cdef object run_owned(self, PyObject* const* args, Py_ssize_t size, PyObject* keywords):
        cdef PyObject* device_name = NULL
        cdef Original call
        cdef bint fits = False
        context, atomic = self.context(), self.reference()
        taken = [atomic, *[<object>args[i] for i in range(size)]]
        call = Original(
            <PyObject*>self.method, PySequence_Fast_ITEMS(<PyObject*>taken), size + 1, NULL
        )
        gate(&device_name)  # captures the context again if settings have changed
        if keywords != NULL:  # TensorFlow's method takes none, and says so
            return self.method(atomic, **dict.fromkeys(<tuple>keywords))
        if (
            context is not _tf_context._context
            or _where.host == NULL
            or not context.executing_eagerly()
            or not self.is_usual(context)
        ):
            return call_original(&call)
        if not draws.installed and context._rng is not self.rng:
            self.begin_again()
        result = self.run_plan(args, size, &call, &fits)
        if fits:
            return result
        # A value may be still to come, or not be a tensor yet. TensorFlow refuses all others.
        context.sync_executors()
        tensors = tuple([_ops.convert_to_tensor(value) for value in taken[1:]])
        result = self.run_plan(PySequence_Fast_ITEMS(<PyObject*>tensors), size, &call, &fits)
        return result if fits else call_original(&call)

    def begin_again(self):
        """Begin all sequences again, since a global seed has been set."""
        cdef Runner runner = self.runner
        runner.plan.begin_again()
        self.rng = self.context()._rng

    cdef object run_plan(self, PyObject* const* args, Py_ssize_t size, const Original* call,
                         bint* fits):
        """Run a call by the plan. Sets `fits` to whether the plan may run it."""
        cdef Borrowed given
        cdef const Tensor* value
        cdef Runner runner = self.runner  # another thread may replace the attribute meanwhile
        cdef Course course = LEFT
        cdef Py_ssize_t i
        for i in range(size):
            value = NULL
            if not IsEagerTensor(args[i]) or kReady != Inspect(
                EagerTensor_Handle(args[i]), _where.host, &value
            ):
                fits[0] = False
                return None
            given.push_back(value)
        fits[0] = self.kinds.Match(given)
        return runner.run_as(given, list, call, &course) if fits[0] else None


cdef list inputs_of(const Original* call, Py_ssize_t size):
    """Return the tensors of a call."""
    cdef Py_ssize_t i
    return [<object>call.args[i] for i in range(1, size)]


cdef object _definitions(context):
    """Return a function that finds the FunctionDef for a name."""
    return lambda name: context.get_function_def(name) if context.has_function(name) else None


_owned = WeakSet()


def leave():
    """Note the state of the functions that plans own, before `uninstall`."""
    cdef RuntimeFunction function
    for function in list(_owned):
        context = function.context()
        if context is not None:
            if function.runner.plan.era != draws.era:
                function.begin_again()
            function.rng = context._rng


def enter():
    """Begin the sequences again that TensorFlow has begun again while fastops was not installed."""
    cdef RuntimeFunction function
    for function in list(_owned):
        context = function.context()
        if context is not None and context._rng is not function.rng:
            function.begin_again()


def known(atomic):
    """Return the `RuntimeFunction` of an `AtomicFunction`; None if there is none."""
    return getattr(atomic, _ATTRIBUTE, None)


cdef RuntimeFunction _of(atomic, method):
    cdef RuntimeFunction function = getattr(atomic, _ATTRIBUTE, None)
    if function is None:
        # Another thread may have made one meanwhile.
        function = vars(atomic).setdefault(_ATTRIBUTE, RuntimeFunction(atomic, method))
    return function


cdef object call_flat(const Original* call, Py_ssize_t size):
    cdef RuntimeFunction self
    cdef Runner runner
    cdef bint fits = False, drawing
    cdef int64_t begin
    context = _tf_context._context
    if context is None or not context.executing_eagerly():
        return call_original(call)
    try:
        self = _of(<object>call.args[0], <object>call.target)
    except Exception as problem:  # internal error: report it, and let TensorFlow make the call
        PyErr_WriteUnraisable(problem)
        return call_original(call)
    drawing = self.draws is not _NONE
    if drawing and (self.draws is _VARYING or self.due) and not missing(_REQUIRED):
        if self.may_own(call, size):
            runner = self.runner
            runner.known = True  # what making a plan costs is learned elsewhere
            return self.run_owned(call.args + 1, size - 1, NULL)
    if drawing:
        self.note_run()
    elif self.refused:
        return call_original(call)
    if not self.derived or missing(_REQUIRED):
        return call_original(call)
    runner = self.runner  # another thread may replace the attribute meanwhile
    if runner is None:
        begin = now()
        result = call_original(call)
        if self.is_due(now() - begin):
            if drawing:
                self.due = True
            elif self.runner is None and not self.making:  # no other thread has made the plan
                self.try_plan(call, size)
        return result
    if runner.plan is None:
        return call_original(call)
    if runner.is_outdated():
        return runner.run_changed(inputs_of(call, size), call)
    result = self.run_plan(call.args + 1, size - 1, call, &fits)
    return result if fits else call_original(call)


cdef PyObject* _call(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    result = (<RuntimeFunction>callable).run_owned(args, PyVectorcall_NARGS(nargsf), keywords)
    Py_INCREF(result)
    return <PyObject*>result


cdef int _set_up() except -1:
    cdef RuntimeFunction instance = RuntimeFunction.__new__(RuntimeFunction)
    EnableVectorcall(
        <PyTypeObject*>RuntimeFunction, <char*>&instance.vectorcall - <char*><void*>instance
    )
    return 0


_set_up()
