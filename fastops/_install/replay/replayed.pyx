# distutils: language = c++
"""Public functions whose calls are recorded and replayed.

A replay runs the ops that the function would run. Tapes record each op, a profile counts it, and an
op that must not run in a private kernel falls back to TensorFlow. If a tensor value differs from
the value that the recorded Python read, or an op fails, the original function is called. Until
then, the replay has had no visible effect.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, Py_TYPE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._core.preparing cimport flushes
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._cpp.signature cimport Signature
from fastops._dispatch cimport Op
from fastops._install.adapters cimport array_type, call_waiting, put_tensor
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._situation cimport NO_PROMOTION, NO_STRATEGY, PLAIN, missing
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
from fastops._specialize.specialization cimport Decision, HIT, RECORD, Specialization, WAIT

cdef extern from "definitions.h":
    pass

from fastops._install.lookups import of_codes as _of_codes, of_function as _of_function
from fastops._specialize.recording.recording import as_refusal, prepare_kernels, recording

cdef enum:
    _REQUIRED = PLAIN | NO_STRATEGY | NO_PROMOTION  # conditions on the surroundings of a call

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
        self.vectorcall = _replayed

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
                recorder, arguments, holders, result, frees_sizes=self.frees_sizes
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
        self.budget.succeed()
        case.variants.append(replay)
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
    if count == 0:
        return False
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
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    if self.known_after != flushes:
        self.forget()
    if (
        not live and not self.always
        or self.budget.is_spent()
        or missing(_REQUIRED)
        or self.handled()
    ):
        return call_original(self, args, nargsf, keywords)
    if PyTuple_GET_SIZE(self.arrays) != 0:
        tensors = []
        if _convert(self, args, n, keywords, tensors, &converted):
            given = converted.data()
    if not read_tensors(&signature, given, n, keywords):
        return call_original(self, args, nargsf, keywords)
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
        return call_waiting(self, case.account, True, args, nargsf, keywords)
    return call_original(self, args, nargsf, keywords)


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
