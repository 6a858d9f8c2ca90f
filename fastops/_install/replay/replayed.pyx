# distutils: language = c++
"""Public functions whose calls are recorded and replayed.

A replay runs the ops that the function would run. Tapes record each op, a profile counts it, and an
op that must not run in a private kernel falls back to TensorFlow. If a tensor value differs from
the value that the recorded Python read, or an op fails, the original function is called. Until
then, the replay has had no visible effect.

While a profile observes calls, `_observed` handles them: it calls `_replayed`, and notifies the
observers of the calls that were replayed. So `_replayed` need not check for observers before it
returns the result of a replay.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject, Py_TYPE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._core.preparing cimport flushes
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._cpp.signature cimport Signature
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._dispatch cimport Op
from fastops._install.adapters cimport array_type, call_waiting, has_arrays, put_tensor
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._situation cimport (
    IN_ORDER, NO_PROMOTION, ONE_REPLICA, PLAIN, missing, reason_of,
)
from fastops._specialize.cache cimport Cache
from fastops._specialize.guards.names cimport Guard, holds as guard_holds
from fastops._specialize.policy cimport (
    Budget,
    Estimate,
    MAX_FUNCTION_CASE_FAILURES,
    MAX_FUNCTION_FAILURES,
    MAX_FUNCTION_SIGNATURES,
    now,
)
from fastops._specialize.recording.record cimport Record
from fastops._specialize.replay cimport Replay, are_leaves
from fastops._specialize.signatures cimport read_tensors
from fastops._specialize.specialization cimport (
    Decision,
    HIT,
    MISSED,
    RECORD,
    REJECTED,
    Specialization,
    WAIT,
    reason_of_decision,
)

cdef extern from "definitions.h":
    pass

import threading
import weakref
from functools import partial
from inspect import unwrap

from fastops._core.reasons import text_of as _text_of
from fastops._install.lookups import of_codes as _of_codes, of_function as _of_function
from fastops._specialize.observers import (
    OBSERVERS as _told, SWITCHES as _switches, tell as _tell,
)
from fastops._specialize.recording.recording import as_refusal, prepare_kernels, recording

cdef enum:
    _REQUIRED = PLAIN | ONE_REPLICA | NO_PROMOTION  # conditions on the surroundings of a call

# Reasons why calls are not replayed. Recordings add reasons of their own.
cdef str _REFUSED = _text_of("function_refused")
cdef str _HANDLER = _text_of("dispatch_handler")
cdef str _ARGUMENT = _text_of("method_argument_type")
cdef str _RECORDED = _text_of("recorded")

cdef list _observers = _told
_underway = threading.local()  # `calls`: for each observed call, whether the original makes it
_alive = weakref.WeakValueDictionary()  # by identity, since stand-ins are equal to their originals

# The extra cost of a recorded call and of making its replay, by the time of the call.
cdef Estimate _cost = Estimate("recording of calls of functions", 24.0)


@cython.final
@cython.no_gc_clear
cdef class Replayed(Replacement):
    """Stand-in for a function that chooses its ops by its arguments alone.

    Parameters
    ----------
    original : callable
        TensorFlow's function.
    passed : callable
        See `Replay`.
    handlers : list of dict
        The dispatch handlers that users have registered for the function.
    settings : sequence of tuple
        See `Replay`.
    always : bool, default False
        Whether it also works while nothing is installed. True for a stand-in that is used
        directly and patched in nowhere.
    arrays : sequence of tuple
        Pairs of the position and the name of each argument that may be a NumPy array: the function
        first makes a tensor of it, without asking for a dtype.
    frees_sizes : bool, default False
        See `fastops._specialize.recording.recording.recording`.
    """

    cdef readonly object passed
    cdef readonly object settings
    cdef tuple arrays
    cdef bint frees_sizes
    cdef tuple handlers
    cdef tuple num_handlers
    cdef Cache cases        # by signature
    cdef Specialization last
    cdef dict ops
    cdef dict reasons       # by reason, how many recordings failed
    cdef Budget budget      # how many recordings may fail
    cdef unsigned long long known_after

    def __init__(self, original, passed, handlers=(), settings=(), always=False, arrays=(),
                 frees_sizes=False):
        super().__init__(original)
        self.always = always
        self.arrays, self.frees_sizes = tuple(arrays), frees_sizes
        self.passed = passed
        self.settings = settings
        self.handlers = tuple(handlers)
        self.num_handlers = tuple([len(of) for of in handlers])
        self.ops = {}
        self.forget()
        self.vectorcall = _observed if _observers else _replayed
        _alive[id(self)] = self

    def describe(self):
        """Describe the calls of the function.

        Returns
        -------
        dict
            Numbers of signatures: ``"replayed"``, ``"seen"`` (no recording yet) and ``"refused"``
            (a recording failed). ``"reasons"``: by reason, how many recordings failed.
            ``"details"``: by reason, its latest particulars. ``"native"``: number of replays that
            ran private kernels only.
        """
        cdef Specialization case
        cdef Replay replay
        known = self.cases.values()
        return {
            "replayed": sum([1 for case in known if case.variants]),
            "seen": sum([1 for case in known if not case.variants and not case.failures]),
            "refused": sum([1 for case in known if case.failures]),
            "reasons": dict(self.reasons),
            "details": {case.reason: case.detail for case in known if case.detail is not None},
            "native": sum([replay.native_runs() for case in known for replay in case.variants]),
        }

    def recordings(self):
        """Describe each signature: see `Specialization.describe`."""
        return [case.describe() for case in self.cases.values()]

    cdef bint handled(self):
        """Whether users have registered dispatch handlers since this stand-in was made."""
        cdef Py_ssize_t i
        for i in range(PyTuple_GET_SIZE(self.handlers)):
            if len(<dict>self.handlers[i]) != self.num_handlers[i]:
                return True
        return False

    cdef int observe(self, bint on) except -1:
        """Let `_observed` (`on`) or `_replayed` handle the calls. Verified calls stay verified."""
        cdef vectorcall_t before = _observed, after = _replayed
        if on:
            before, after = after, before
        if self.vectorcall == before:
            self.vectorcall = after
        elif self.while_holding == before:
            self.while_holding = after
        return 0

    cdef PyObject* leave(self, str why, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
        """Call the original function. Observers get the reason, unless it is None."""
        if _observers:
            note_left(self, None, why)
        return call_original(self, args, nargsf, keywords)

    cdef int tell(self, Specialization case, str why, str detail=None) except -1:
        """Notify observers of a call: why it is not replayed (None: it is), and the particulars."""
        arguments = describe = None
        if case is not None:
            arguments, describe = case.arguments(), partial(_description, self, case.key)
        _tell(None, _title_of(self.original), arguments, why, detail, describe)
        return 0

    cdef int forget(self) except -1:
        self.cases, self.last, self.reasons = Cache(MAX_FUNCTION_SIGNATURES), None, {}
        self.budget = Budget(MAX_FUNCTION_FAILURES)
        self.known_after = flushes
        return 0

    cdef Specialization case_of(self, const Signature& signature):
        cdef Specialization case = self.last
        cdef PyObject* stored
        if case is None or not signature.Is(
            PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key)
        ):
            key = PyBytes_FromStringAndSize(signature.data(), signature.size())
            stored = self.cases.find(key)
            if stored == NULL:
                case = self.cases.put(key, Specialization(key, MAX_FUNCTION_CASE_FAILURES))
            else:
                case = <Specialization>stored
            self.last = case
        return case

    def op(self, index, name):
        """Return the `Op` of a step. Each step has one of its own, which remembers its last key."""
        step_op = self.ops.get((index, name))
        if step_op is None:
            step_op = self.ops.setdefault((index, name), Op(name))
        return step_op

    cdef bint learn(self, Specialization case, recorder, list arguments, list holders, result,
                    Guard guard) except -1:
        """Make a replay of a recorded call. Return False if calls cannot be replayed."""
        try:
            recorded = recording(
                recorder, arguments, holders, result, frees_sizes=self.frees_sizes, branches=True
            )
            replay = Replay(recorded, self.op, self.passed, self.settings, guard)
            prepare_kernels(recorder, recorded)
        except Exception as problem:  # the user's call has succeeded: only the recording fails
            refused = as_refusal(problem)
            why = refused.sentence
            self.reasons[why] = self.reasons.get(why, 0) + 1
            self.budget.fail()
            case.refuse(why, refused.detail)
            return False
        case.add(replay)
        if case.failures != 0:  # one of the branches is missing
            self.reasons[case.reason] = self.reasons.get(case.reason, 0) + 1
            self.budget.fail()
            return False
        self.budget.succeed()
        return True


cdef bint _convert(Replayed self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   list tensors, vector[PyObject*]* converted) except -1:
    """Put tensors in the places of arrays, as the function would. False if it takes none there."""
    cdef Py_ssize_t i, count = 0, named = 0
    cdef int position
    cdef str name
    if keywords != NULL:
        named = PyTuple_GET_SIZE(<object>keywords)
    converted.assign(args, args + n + named)
    for i in range(n + named):
        if Py_TYPE(<object>args[i]) == array_type:
            count += 1
    for position, name in self.arrays:
        i = position
        if i >= n:
            i = n
            while i < n + named and <object>PyTuple_GET_ITEM(<object>keywords, i - n) != name:
                i += 1
            if i == n + named:
                continue
        if Py_TYPE(<object>args[i]) != array_type:
            continue
        if not put_tensor(converted.data() + i, tensors):
            return False
        count -= 1
    return count == 0


cdef PyObject* _replayed(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    cdef Replayed self = <Replayed>callable
    cdef Signature signature
    cdef PyObject* result = NULL
    cdef PyObject* const* given = args
    cdef vector[PyObject*] converted
    cdef list tensors
    cdef Specialization case
    cdef Decision decision
    cdef Record record
    cdef int unmet
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf), num_given = n
    if keywords != NULL:
        num_given += PyTuple_GET_SIZE(<object>keywords)
    if self.known_after != flushes:
        self.forget()
    if not live and not self.always:
        return self.leave(None, args, nargsf, keywords)
    if self.budget.is_spent():
        return self.leave(_REFUSED, args, nargsf, keywords)
    unmet = missing(_REQUIRED)
    if unmet:
        # A graph or recorded call may have many such calls. Profiles have the reasons of their ops.
        return self.leave(
            None if unmet == IN_ORDER else reason_of(unmet), args, nargsf, keywords
        )
    if self.handled():
        return self.leave(_HANDLER, args, nargsf, keywords)
    if PyTuple_GET_SIZE(self.arrays) != 0 and has_arrays(args, num_given):
        tensors = []
        if _convert(self, args, n, keywords, tensors, &converted):
            given = converted.data()
    if not read_tensors(&signature, given, n, keywords):
        return self.leave(_ARGUMENT, args, nargsf, keywords)
    case = self.case_of(signature)
    decision = case.run(signature, &result)
    if decision == HIT:
        return result
    if decision == RECORD:
        decision = case.next(_cost.of(case.account.shortest_ns))
    if decision == RECORD:
        with Record() as record:
            if record.has_turn:
                return _record(self, record, case, signature, given, n, keywords)
    if decision == WAIT:
        if _observers:
            note_left(self, case, reason_of_decision(WAIT))
        # Some branches may never come. So calls that wait for one do not cover the calls inside.
        return call_waiting(
            self, case.account, PyList_GET_SIZE(case.pending) == 0, args, nargsf, keywords
        )
    if _observers:
        note_undone(self, case, decision)
    return call_original(self, args, nargsf, keywords)


cdef PyObject* _observed(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    """Handle a call, and notify observers if it is replayed. `note_left` notifies of others."""
    cdef Replayed self = <Replayed>callable
    cdef list calls = _underway.__dict__.setdefault("calls", [])
    cdef PyObject* result
    calls.append(False)
    try:
        result = _replayed(callable, args, nargsf, keywords)
    finally:
        left = calls.pop()
    if not left:
        self.tell(self.last, None)  # `last` may be of another thread's call
    return result


cdef int note_left(Replayed self, Specialization case, str why, str detail=None) except -1:
    """Notify observers of a call that is left to the original."""
    cdef list calls = _underway.__dict__.get("calls")
    if calls:
        calls[len(calls) - 1] = True
    if why is not None:
        self.tell(case, why, detail)
    return 0


cdef int note_undone(Replayed self, Specialization case, Decision decision) except -1:
    """Notify observers of a call that is neither replayed nor recorded, though it could be."""
    if decision == REJECTED:
        return note_left(self, case, case.reason, case.detail)
    return note_left(
        self, case, reason_of_decision(decision), case.missed if decision == MISSED else None
    )


def _description(Replayed function, bytes key):
    """Describe the calls of a signature. None if the recordings have been dropped."""
    cdef PyObject* stored = function.cases.find(key)
    cdef Specialization case = None if stored == NULL else <Specialization>stored
    return None if case is None else case.describe()


def _title_of(function):
    """Return the public name of a function of TensorFlow, or the module and name of another."""
    exported = unwrap(function, stop=lambda wrapper: hasattr(wrapper, "_tf_api_names"))
    names = getattr(exported, "_tf_api_names", None)
    if names:
        return f"tf.{min(names, key=len)}"
    holder = getattr(function, "__self__", None)
    if hasattr(holder, "__qualname__"):  # a function that the user declares to be pure
        function = holder
    return f"{function.__module__}.{function.__qualname__}"


def _switch(on):
    """Begin (`on`) or end the observation of the calls of all functions."""
    cdef Replayed function
    for function in list(_alive.values()):
        function.observe(on)


_switches.append(_switch)


cdef PyObject* _record(Replayed self, Record record, Specialization case,
                       const Signature& signature, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    """Make a call, and learn from it."""
    cdef PyObject* result = NULL
    cdef Signature after
    cdef size_t i
    cdef int64_t begin = now(), call_ns = case.account.shortest_ns
    case.begin()
    arguments = [<object>signature.object(i) for i in range(signature.num_leaves())]
    holders = [<object>signature.holder(i) for i in range(signature.num_holders())]
    if _observers:
        note_left(self, case, _RECORDED)
    record.start({})
    result = call_original(self, args, nargsf, keywords)
    record.stop()
    if not record.started:
        return result
    # If a function that the code looks up is patched, the recording would not show TensorFlow.
    guard = _guard_of(self, record.witness)
    if not guard_holds(guard):
        return result
    # A call that changes its arguments, such as a method that changes its object, is not replayed.
    if (
        read_tensors(&after, args, PyVectorcall_NARGS(nargsf), keywords)
        and after.Is(PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key))
        and are_leaves(arguments, after)
        and self.learn(case, record.recorder, arguments, holders, <object>result, guard)
    ):
        _cost.learn(call_ns, now() - begin - call_ns)
    return result


cdef Guard _guard_of(Replayed self, witness):
    """Return the guard of the code that ran.

    If a profiler was active, that code is unknown: the guard covers all code that may run.
    """
    if witness is None:
        return _of_function(self.original)
    return _of_codes([(code, namespace) for (code, _), namespace in witness.codes.items()])


enable(Replayed)
