# distutils: language = c++
"""Calls of traced functions: the signature of the arguments finds the case that runs a call."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from fastops._core cimport draws
from fastops._core.preparing cimport generation
from fastops._cpp.dicts cimport Referent
from fastops._cpp.plan cimport Borrowed
from fastops._cpp.python cimport PyVectorcall_Call, PyVectorcall_NARGS
from fastops._cpp.signature cimport Signature
from fastops._cpp.vectorcall cimport EnableVectorcall
from fastops._plans.plan cimport borrow_anywhere
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

cdef extern from "definitions.h":
    pass

from weakref import WeakSet, ref

from tensorflow.python.util.traceback_utils import filter_traceback as _filter_traceback

from fastops._core.reasons import text_of as _text_of
from fastops._plans import costs

cdef enum:
    _REQUIRED = PLAIN | NO_TAPE | NO_STRATEGY  # conditions on the surroundings of a call

# Reasons why no plan runs a call, beside the reasons of runners.
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

    A plan saves TensorFlow's overhead, not the time of kernels. A smaller share of overhead in a
    call means that the plan takes longer to pay back, and also that it saves less. So the bar is
    the cost divided by the square of this share: a function whose calls are half overhead needs
    four times the calls' cost of a function without kernel time. If there is a loop, the share is
    not known, and not assumed to be small.
    """
    cdef int64_t call_ns = max(account.shortest_ns, 1)
    cdef double share = min(_saving.of(num_nodes + _around_call) / <double>call_ns, 1.0)
    if loops:
        share = max(share, _share_in_loops)
    return account.is_due(
        <int64_t>min(_making.of(num_nodes + _around_plan) / (share * share), 1e18)
    )


@cython.final
cdef class Waiting:
    """Calls of one signature without a case: TensorFlow makes them until a case pays."""

    def __cinit__(self):
        self.account = Account()


@cython.final
cdef class Case:
    """Runs the calls of one signature.

    Parameters
    ----------
    runner : Runner
        Runs the calls, by its plan or by TensorFlow.
    takes : list of int or EagerTensor
        For each tensor that the function takes: the number of the signature's leaf, or the constant
        tensor that all calls of the signature pass.
    pack : callable or None
        Makes the function's result of a list of tensors. None: the only tensor is the result.
    """

    def __init__(self, Runner runner not None, takes, pack):
        self.runner = runner
        self.pack = pack
        self.last_leaf = -1
        self.constant_objects = [source for source in takes if not isinstance(source, int)]
        for source in takes:
            if isinstance(source, int):
                self.leaves.push_back(source)
                self.last_leaf = max(self.last_leaf, source)
            else:
                self.constants.push_back(borrow_anywhere(source)[0])
                self.leaves.push_back(-<int>self.constants.size())

    cdef int refer(self, const Signature& signature, dropped) except -1:
        """Keep weak references to the objects that the signature takes by identity.

        The key has their addresses, which later objects may get. `dropped` is called when one of
        the objects is gone.
        """
        cdef size_t i
        self.references = []
        for i in range(signature.num_identities()):
            self.references.append(ref(<object>signature.identity(i), dropped))
        return 0

    cdef bint refers(self, const Signature& signature) except -1:
        """Whether a signature with an equal key has the same objects."""
        cdef size_t i
        for i in range(signature.num_identities()):
            if Referent(<PyObject*>self.references[i]) != signature.identity(i):
                return False
        return True

    cdef int gather(self, const Signature& signature, Borrowed* given) except -1:
        cdef size_t i
        cdef int leaf
        if self.last_leaf >= <int>signature.num_leaves():
            raise SystemError("a plan reads a leaf that the signature does not have")
        for i in range(self.leaves.size()):
            leaf = self.leaves[i]
            if leaf >= 0:
                given.push_back(signature.leaf(leaf))
            else:
                given.push_back(&self.constants[-leaf - 1])
        return 0

    cdef list inputs(self, const Signature& signature):
        """Return the tensors that the function takes as EagerTensors."""
        cdef int leaf
        return [
            <object>signature.object(leaf) if leaf >= 0 else self.constant_objects[-leaf - 1]
            for leaf in self.leaves
        ]


@cython.final
cdef class Binding:
    """The trace of a signature, for calls that a tape records.

    TensorFlow chooses the functions that run and makes the record. It does not have to bind the
    arguments again, nor to look for the trace.
    """

    def __cinit__(self):
        self.account = Account()


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

    This class finds the case of a call. The method `prepare` of derived classes, which are written
    in Python, makes the case of a new signature.

    Parameters
    ----------
    target : callable
        TensorFlow's function.
    plans : bool
        Whether plans may run calls.
    most : int
        The maximum number of signatures. Beyond it, the oldest signature is dropped.
    patient : bool
        Whether a case is made only when it pays: see `fastops._specialize.policy`. Otherwise the
        first call of a signature makes its case.
    """

    def __cinit__(self, *args, **kwargs):
        self.vectorcall = _call
        self.account = Account()
        self.reasons = {}
        self.tally = UnseenCalls()

    def __init__(self, target, plans, most, patient=False):
        self.target = target
        self.plans = plans
        self.cases, self.waiting, self.bindings = Cache(most), Cache(most), Cache(most)
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
        """Tell whether TensorFlow makes the first call of a signature. That call comes next."""
        return False

    def tell_of_calls(self):
        """Report the calls that plans ran to TensorFlow, before TensorFlow makes a call."""
        self.tally.unseen = 0

    def prepare(self, args, kwargs, called, result):
        """Make the case of a signature, as `fastops._plans.plans.Plans.prepare` does.

        If the call has been made, there may be no case: the next call is then treated as the first
        one.
        """
        raise NotImplementedError

    def drop(self, bytes key):
        """Drop the case of a signature, and return it, if there is one."""
        case = self.cases.get(key)
        self.cases.drop(key)
        self.waiting.drop(key)
        self.bindings.drop(key)
        if self.last is not None and self.last.key == key:
            self.last = None
        return case

    def bind(self, args, kwargs):
        """Return the trace of a call, and its `Case` without a plan; None if TensorFlow must bind.

        TensorFlow has made such a call.
        """
        return None

    def known_cases(self):
        """Return the cases of all signatures in the cache."""
        return self.cases.values()

    def forget(self):
        """Drop all cases: the next call of each signature is treated as the first one."""
        self.cases.clear()
        self.waiting.clear()
        self.bindings.clear()
        self.last, self.account = None, Account()
        self.one_trace = self.has_plan = False
        self.failures = 0

    def size_up(self):
        """Return the size of the function's traces.

        The number of nodes of the largest trace, whether a trace has a loop, whether there is only
        one trace, and whether there is a plan.
        """
        raise NotImplementedError

    cdef Waiting wait_for(self, bytes key):
        """Return the `Waiting` of a signature; make it if there is none."""
        cdef Waiting waiting = self.waiting.get(key)
        if waiting is None:
            waiting = Waiting()
            waiting.account.drops = self.failures  # each failure doubles the bar
            waiting = self.waiting.put(key, waiting)
        return waiting

    cdef bint pays(self, Waiting waiting) except -1:
        """Whether calls of a signature have cost enough to make a case.

        Binding the arguments costs the same for all functions. The cost of a plan is in proportion
        to the nodes of the trace. If all signatures have the same trace, the calls of all of them
        pay for its plan.
        """
        cdef Account account = waiting.account
        cdef int64_t cost = _binding.of(1)
        if not account.is_due(cost) and not self.account.is_due(cost):
            return False  # the function is called rarely
        if waiting.num_nodes == 0:
            waiting.num_nodes, waiting.loops, self.one_trace, self.has_plan = self.size_up()
        if self.one_trace and self.has_plan:
            return account.is_due(cost)
        if self.one_trace:
            account = self.account
        return pays_for_plan(account, waiting.num_nodes, waiting.loops)

    cdef int learn(self, Case case, Waiting waiting, int64_t ns) except -1:
        """Update the cost estimates by the time that making a case took.

        If another case uses the runner already, that was the time of binding alone.
        """
        self.waiting.drop(case.key)
        if case.runner.known:
            _binding.learn(1, ns)
            return 0
        case.runner.known = True
        case.runner.num_nodes = waiting.num_nodes
        case.runner.call_ns = waiting.account.shortest_ns
        _making.learn(waiting.num_nodes + _around_plan, ns)
        if case.runner.plan is None:
            self.failures += 1
        else:
            self.has_plan = True
        return 0

    cdef object run_taped(self, const Signature& signature, const Original* call, int skipped):
        """Run a call that a tape may record."""
        cdef bytes key = PyBytes_FromStringAndSize(signature.data(), signature.size())
        cdef Binding binding = self.bindings.get(key)
        cdef int64_t begin
        if binding is not None and binding.case is not None and (
            signature.num_identities() == 0 or binding.case.refers(signature)
        ):
            self.tally.unseen += 1
            return binding.run(binding.case.inputs(signature), binding.concrete.captured_inputs)
        if self.tally.unseen != 0:
            self.tell_of_calls()
        if binding is None:
            binding = self.bindings.put(key, Binding())
        begin = now()
        result = call_original(call)
        if binding.concrete is None:
            binding.account.charge(now() - begin)
            if binding.account.calls > 1 and binding.account.is_due(_binding.of(1)):
                args, kwargs = _arguments(call, skipped)
                found = self.bind(args, kwargs)
                binding.concrete = False  # TensorFlow binds all calls
                if found is not None:
                    binding.concrete, binding.case = found
                    binding.run = _filter_traceback(binding.concrete._call_flat)
                    if signature.num_identities() != 0:
                        binding.case.refer(signature, _dropper(self, key))
        return result

    cdef Case first(self, bytes key, const Signature& signature, const Original* call, int skipped,
                    bint* called, PyObject** result):
        """Handle a call whose signature has no case; return the new case, if any.

        Sets `called` to whether the call has been made, and `result` to its result, a new
        reference. The first `skipped` arguments are not arguments of the function.
        """
        cdef Case case
        cdef Waiting waiting = None
        cdef int64_t begin, ns
        # Call TensorFlow from compiled code: no frame of fastops is in the stacks it records.
        first = self.announce()
        begin = now()
        value = call_original(call) if first else None
        if first and self.patient:
            ns = now() - begin
            waiting = self.wait_for(key)
            waiting.account.charge(ns)
            self.account.charge(ns)
            # Programs make functions for a single call: `tf.vectorized_map` does.
            if self.account.calls == 1 or not self.pays(waiting):
                self.note(_FIRST if waiting.account.calls == 1 else _EARLY)
                called[0] = True
                Py_INCREF(value)
                result[0] = <PyObject*>value
                return None
        args, kwargs = _arguments(call, skipped)
        begin = now()
        case, made, value = self.prepare(args, kwargs, first, value)
        if case is not None:
            case.key = key
            if signature.num_identities() != 0:
                case.refer(signature, _dropper(self, key))
            if waiting is not None:
                self.learn(case, waiting, now() - begin)
            self.cases.replace(key, case)
        elif not made:
            raise SystemError("prepare() returned no case for a call that was not executed")
        if made:
            self.note(_FIRST if waiting is None or waiting.account.calls == 1 else _EARLY)
        called[0] = made
        Py_INCREF(value)
        result[0] = <PyObject*>value
        return case


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
    cdef PyObject* known
    cdef Signature signature
    cdef Borrowed given
    cdef Case case
    cdef Course course = LEFT
    cdef bytes key
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
    case = self.last
    if case is None or not signature.Is(PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key)):
        key = PyBytes_FromStringAndSize(signature.data(), signature.size())
        known = self.cases.find(key)
        case = None if known == NULL else <Case>known
    else:
        key = case.key
    if case is not None and signature.num_identities() != 0 and not case.refers(signature):
        case = None  # an object of the case is gone, and another one has its address
    if case is not None and case.runner.waits_for_seed and case.runner.era != draws.era:
        self.drop(key)
        case = None
    if case is None:
        case = self.first(key, signature, call, skipped, &called, &made)
        if called:
            return made
        Py_DECREF(<object>made)
    if case is not self.last:
        self.last = case
    case.gather(signature, &given)
    if case.runner.is_outdated():
        result = case.runner.run_changed(case.inputs(signature), call)
        course = CHANGED
    elif case.runner.plan is None and case.runner.bare_for == generation:
        result = case.runner.run_bare(case.inputs(signature))
        self.tally.unseen += 1
        course = LEFT
    else:
        result = case.runner.run_as(given, case.pack, call, &course)
        if course == PLANNED:
            self.tally.unseen += 1
            self.planned += 1
    if course != PLANNED:
        self.note(case.runner.sentence if course == LEFT else _COURSES[course])
    Py_INCREF(result)
    return <PyObject*>result


cdef int _set_up() except -1:
    cdef Caller instance = Caller.__new__(Caller)
    EnableVectorcall(<PyTypeObject*>Caller, <char*>&instance.vectorcall - <char*><void*>instance)
    return 0


_set_up()
