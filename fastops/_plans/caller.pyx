# distutils: language = c++
"""Calls of traced functions: the signature of the arguments finds the case of a call."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from fastops._core cimport draws
from fastops._core.preparing cimport generation
from fastops._cpp.plan cimport Borrowed
from fastops._cpp.python cimport PyVectorcall_Call, PyVectorcall_NARGS
from fastops._cpp.signature cimport Signature
from fastops._cpp.vectorcall cimport EnableVectorcall
from fastops._dispatch cimport tell_watchers
from fastops._plans.case cimport Bound, FunctionCase
from fastops._plans.runner cimport (
    CHANGED,
    Course,
    FAILED,
    LEFT,
    Original,
    PLANNED,
    Runner,
    TIMED,
    call_original,
)
from fastops._situation cimport NO_STRATEGY, NO_TAPE, PLAIN, missing, reason_of
from fastops._specialize.cache cimport Cache
from fastops._specialize.policy cimport Account, Estimate, now
from fastops._specialize.signatures cimport read_values
from fastops._specialize.states cimport WAITING

cdef extern from "definitions.h":
    pass

from weakref import WeakSet, ref

from tensorflow.python.util.traceback_utils import filter_traceback as _filter_traceback

from fastops._core.reasons import text_of as _text_of
from fastops._plans import costs

cdef enum:
    _REQUIRED = PLAIN | NO_TAPE | NO_STRATEGY  # conditions on the surroundings of a call

# Reasons why no plan runs a call, in addition to the reasons of runners.
cdef str _CHOSEN = _text_of("executor_chosen")
cdef str _ARGUMENT = _text_of("argument_type")
cdef str _FIRST = _text_of("signature_new")
cdef str _EARLY = _text_of("plan_not_due")
cdef dict _COURSES = {
    CHANGED: _text_of("context_changed"),
    TIMED: _text_of("timing"),
    FAILED: _text_of("plan_failed"),
}


cdef Estimate _making = costs.MAKING
cdef Estimate _binding = costs.BINDING
cdef Estimate _saving = costs.SAVING
cdef double _around_plan = costs.AROUND_PLAN
cdef double _around_call = costs.AROUND_CALL
cdef double _share_in_loops = costs.SHARE_IN_LOOPS


cdef bint pays_for_plan(Account account, double num_nodes, bint loops) noexcept:
    """Whether calls of a trace have cost enough to make its plan.

    If there is a loop, the share that a plan saves is not known, and not assumed to be small.
    """
    return account.is_due_by_share(
        _making.of(num_nodes + _around_plan),
        _saving.of(num_nodes + _around_call),
        _share_in_loops if loops else 0.0,
    )


@cython.final
cdef class UnseenCalls:
    """Counts the calls that TensorFlow does not know of, until `tell_of_calls` reports them.

    Attributes
    ----------
    unseen : int
        The number of these calls.
    """


_callers = WeakSet()


def callers():
    """Return all callers that are alive."""
    return list(_callers)


cdef class Caller:
    """A function whose calls run by cases, one for each signature of the arguments.

    This class finds the case of a call, and decides when its arguments are bound. The methods
    `prepare` and `bind` of derived classes, which are written in Python, bind them.

    Parameters
    ----------
    target : callable
        TensorFlow's function.
    plans : bool
        Whether plans may run calls.
    most : int
        The maximum number of signatures. Beyond it, the oldest signature whose arguments are not
        bound is dropped, or else the oldest one.
    patient : bool
        Whether the arguments of a signature are bound only when it pays: see
        `fastops._specialize.policy`. Otherwise the first call does it.
    """

    def __cinit__(self, *args, **kwargs):
        self.vectorcall = _call
        self.account = Account()
        self.reasons = {}
        self.tally = UnseenCalls()

    def __init__(self, target, plans, most, patient=False):
        self.target = target
        self.plans = plans
        self.cases = Cache(most)
        self.patient = patient
        _callers.add(self)

    def reset_counters(self):
        """Set the counters of calls to zero."""
        self.planned, self.reasons = 0, {}

    cdef int note(self, reason) except -1:
        """Count a call that no plan runs, by the sentence of its reason."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return 0

    def __call__(self, *args, **kwargs):
        # For code that looks up the attribute `__call__`; calls go through `vectorcall`.
        return PyVectorcall_Call(self, args, kwargs)

    def announce(self):
        """Prepare for the first call of a signature; tell whether TensorFlow makes that call."""
        return False

    def tell_of_calls(self):
        """Tell TensorFlow how many calls plans ran, before TensorFlow itself makes a call."""
        self.tally.unseen = 0

    def prepare(self, args, kwargs, called, result):
        """Bind the arguments of a signature, as `fastops._plans.plans.Plans.prepare` does.

        If the call has been made, there may be no `Bound`: the next call is then treated as the
        first one.
        """
        raise NotImplementedError

    def bind(self, args, kwargs):
        """Return the trace of a call, and its `Bound` without a plan; None if TensorFlow must bind.

        TensorFlow has already made a call of the same signature.
        """
        return None

    def size_up(self):
        """Return the size of the function's traces.

        The number of nodes of the largest trace, whether a trace has a loop, whether there is only
        one trace, and whether there is a plan.
        """
        raise NotImplementedError

    def all_cases(self):
        """Return the cases of all signatures in the cache."""
        return self.cases.values()

    def known_cases(self):
        """Return the cases whose arguments are bound for calls that no tape records."""
        return [case for case in self.cases.values() if case.bound is not None]

    def drop(self, bytes key):
        """Drop the case of a signature, and return it, if there is one."""
        case = self.cases.get(key)
        self.cases.drop(key)
        if self.last is not None and self.last.key == key:
            self.last = None
        return case

    def forget(self):
        """Drop all cases: the next call of each signature is treated as the first one."""
        self.cases.clear()
        self.last, self.account = None, Account()
        self.one_trace = self.has_plan = False
        self.failures = 0

    cdef FunctionCase find(self, const Signature& signature):
        cdef FunctionCase case = self.last
        cdef PyObject* stored
        if case is None or not signature.Is(
            PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key)
        ):
            stored = self.cases.find(_key_of(signature))
            if stored == NULL:
                return None
            case = <FunctionCase>stored
        if signature.num_identities() != 0 and not case.refers(signature):
            return None  # an object of the case is gone, and another one has its address
        if (
            case.bound is not None
            and case.bound.runner.waits_for_seed
            and case.bound.runner.era != draws.era
        ):
            self.drop(case.key)
            return None
        return case

    cdef FunctionCase add(self, const Signature& signature):
        cdef FunctionCase case = self.find(signature)
        cdef FunctionCase other
        if case is not None:
            return case
        case = FunctionCase(_key_of(signature))
        if signature.num_identities() != 0:
            case.refer(signature, _dropper(self, case.key))
        if len(self.cases) >= self.cases.most and self.cases.find(case.key) == NULL:
            for other in self.cases.values():
                if other.state() == WAITING:
                    self.cases.drop(other.key)
                    break
        self.cases.replace(case.key, case)
        return case

    cdef bint pays(self, FunctionCase case) except -1:
        """Whether calls of a signature have cost enough to bind its arguments and make a plan.

        Binding the arguments costs the same for all functions. The cost of a plan is in proportion
        to the nodes of the trace. If all signatures have the same trace, the calls of all of them
        pay for its plan.
        """
        cdef Account account = case.account
        cdef int64_t cost = _binding.of(1)
        if not account.is_due(cost) and not self.account.is_due(cost):
            return False  # the function is called rarely
        if case.num_nodes == 0:
            case.num_nodes, case.loops, self.one_trace, self.has_plan = self.size_up()
        if self.one_trace and self.has_plan:
            return account.is_due(cost)
        if self.one_trace:
            account = self.account
        return pays_for_plan(account, case.num_nodes, case.loops)

    cdef int learn(self, FunctionCase case, int64_t ns) except -1:
        """Update the cost estimates by the time that binding and making a plan took.

        If another case uses the runner already, that was the time of binding alone.
        """
        cdef Runner runner = case.bound.runner
        if runner.known:
            _binding.learn(1, ns)
            return 0
        runner.known = True
        runner.num_nodes = case.num_nodes
        runner.call_ns = case.account.shortest_ns
        _making.learn(case.num_nodes + _around_plan, ns)
        if runner.plan is None:
            self.failures += 1
        else:
            self.has_plan = True
        return 0

    cdef object run_taped(self, const Signature& signature, const Original* call, int skipped):
        """Run a call that a tape may record."""
        cdef FunctionCase case = self.find(signature)
        cdef Bound bound = None if case is None else case.taped  # another thread may replace it
        cdef PyObject* variable
        cdef int64_t begin
        cdef size_t i
        if bound is not None:
            self.tally.unseen += 1
            self.last = case
            for i in range(signature.num_leaves()):
                variable = signature.variable(i)
                if variable != NULL:
                    tell_watchers(<object>variable)
            return case.call_taped(bound.inputs(signature), case.concrete.captured_inputs)
        if self.tally.unseen != 0:
            self.tell_of_calls()
        begin = now()
        result = call_original(call)
        if case is None:
            case = self.add(signature)
        if case.taped is None and not case.taped_refused:
            case.taped_account.charge(now() - begin)
            if case.taped_account.calls > 1 and case.taped_account.is_due(_binding.of(1)):
                args, kwargs = _arguments(call, skipped)
                found = self.bind(args, kwargs)
                if found is None:
                    case.taped_refused = True
                else:
                    case.concrete, case.taped = found
                    case.call_taped = _filter_traceback(case.concrete._call_flat)
        return result

    cdef FunctionCase first(self, const Signature& signature, const Original* call, int skipped,
                            bint* called, PyObject** result):
        """Handle a call whose arguments are not bound; return its case if they are now.

        Sets `called` to whether the call has been made, and `result` to its result, a new
        reference. The first `skipped` arguments are not arguments of the function.
        """
        cdef FunctionCase case = None
        cdef Bound bound
        cdef int64_t begin, ns
        # Call TensorFlow from compiled code: no frame of fastops is in the stacks it records.
        first = self.announce()
        begin = now()
        value = call_original(call) if first else None
        if first and self.patient:
            ns = now() - begin
            case = self.add(signature)
            if case.account.calls == 0:
                case.account.drops = self.failures  # each failure doubles the bar
            case.account.charge(ns)
            self.account.charge(ns)
            # Some functions are made for a single call: `tf.vectorized_map` makes such functions.
            if self.account.calls == 1 or not self.pays(case):
                self.note(_FIRST if case.account.calls == 1 else _EARLY)
                called[0] = True
                Py_INCREF(value)
                result[0] = <PyObject*>value
                return None
        args, kwargs = _arguments(call, skipped)
        begin = now()
        bound, made, value = self.prepare(args, kwargs, first, value)
        if made:
            self.note(_FIRST if case is None or case.account.calls == 1 else _EARLY)
        if bound is not None:
            ns = now() - begin
            if case is None:
                case = self.add(signature)
                case.bound = bound
            else:
                case.bound = bound
                self.learn(case, ns)
        elif not made:
            raise SystemError("prepare() bound no arguments of a call that was not executed")
        else:
            case = None
        called[0] = made
        Py_INCREF(value)
        result[0] = <PyObject*>value
        return case


cdef bytes _key_of(const Signature& signature):
    return PyBytes_FromStringAndSize(signature.data(), signature.size())


cdef tuple _arguments(const Original* call, int skipped):
    """Return the arguments of a call: a tuple, and a dict of those with keywords."""
    cdef Py_ssize_t i, positional = PyVectorcall_NARGS(call.nargsf)
    cdef tuple names = () if call.keywords == NULL else <tuple>call.keywords
    args = tuple([<object>call.args[i] for i in range(skipped, positional)])
    return args, {name: <object>call.args[positional + i] for i, name in enumerate(names)}


def _dropper(caller, key):
    """Return a callback of weak references that drops the case of a signature."""
    reference = ref(caller)

    def dropped(_):
        caller = reference()
        if caller is not None:
            caller.drop(key)

    return dropped


cdef PyObject* _call(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef Caller self = <Caller>callable
    cdef Original call = Original(<PyObject*>self.target, args, nargsf, keywords)
    return call_as(self, &call, 0)


cdef PyObject* call_as(Caller self, const Original* call, int skipped) except NULL:
    """Call a function. The first `skipped` arguments of the call are not its arguments."""
    cdef PyObject* made = NULL
    cdef Signature signature
    cdef Borrowed given
    cdef FunctionCase case
    cdef Bound bound
    cdef Course course = LEFT
    cdef bint called = False, taped = False
    cdef int unmet
    cdef str obstacle = None
    if not self.plans:
        obstacle = _CHOSEN
    else:
        unmet = missing(_REQUIRED)
        taped = unmet == NO_TAPE and not missing(_REQUIRED & ~NO_TAPE)
        if unmet:
            obstacle = reason_of(unmet)
    if (obstacle is None or taped) and not read_values(
        &signature, call.args + skipped, PyVectorcall_NARGS(call.nargsf) - skipped, call.keywords
    ):
        obstacle = _ARGUMENT
        taped = False
    if taped:
        self.note(obstacle)
        result = self.run_taped(signature, call, skipped)
        Py_INCREF(result)
        return <PyObject*>result
    if obstacle is not None:
        self.note(obstacle)
        if self.tally.unseen != 0:
            self.tell_of_calls()
        result = call_original(call)
        Py_INCREF(result)
        return <PyObject*>result
    case = self.find(signature)
    if case is None or case.bound is None:
        case = self.first(signature, call, skipped, &called, &made)
        if called:
            return made
        Py_DECREF(<object>made)
    if case is not self.last:
        self.last = case
    bound = case.bound  # another thread may replace it
    bound.gather(signature, &given)
    if bound.runner.is_outdated():
        result = bound.runner.run_changed(bound.inputs(signature), call)
        course = CHANGED
    elif bound.runner.plan is None and bound.runner.bare_for == generation:
        result = bound.runner.run_bare(bound.inputs(signature))
        self.tally.unseen += 1
        course = LEFT
    else:
        result = bound.runner.run_as(given, bound.pack, call, &course)
        if course == PLANNED:
            self.tally.unseen += 1
            self.planned += 1
    if course != PLANNED:
        self.note(bound.runner.sentence if course == LEFT else _COURSES[course])
    Py_INCREF(result)
    return <PyObject*>result


cdef int _set_up() except -1:
    cdef Caller instance = Caller.__new__(Caller)
    EnableVectorcall(<PyTypeObject*>Caller, <char*>&instance.vectorcall - <char*><void*>instance)
    return 0


_set_up()
