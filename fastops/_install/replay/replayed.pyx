# distutils: language = c++
"""Public functions whose calls are recorded and replayed.

A replay runs ops as the function would: each is a call of its op, which a tape records, a profile
counts, and TensorFlow makes where a kernel of ours must not. Where a value is not the one by which
Python decided, or an op fails, the function itself is called: nothing has happened yet that
anybody could see.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t

from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._cpp.signature cimport Signature
from fastops._dispatch cimport Op, flushes
from fastops._install.intercept cimport promotes_no_dtypes
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._plans.runner cimport is_plain_but_for_tapes
from fastops._specialize.cache cimport Cache
from fastops._specialize.guards.names cimport Guard, holds as guard_holds
from fastops._specialize.policy cimport (
    Account,
    Budget,
    Estimate,
    MAX_FUNCTION_FAILURES,
    MAX_FUNCTION_SIGNATURES,
    cover,
    is_covered,
    now,
)
from fastops._specialize.replay cimport Replay, are_leaves
from fastops._specialize.signatures cimport read_tensors
from fastops._specialize.specialization cimport Decision, HIT, RECORD, Specialization, WAIT

cdef extern from "definitions.h":
    pass

from fastops._install.lookups import of_codes as _of_codes, of_function as _of_function
from fastops._specialize.recording.record import Record as _Record
from fastops._specialize.recording.recording import as_refusal, prepare_kernels, recording

# What a recorded call and the replay cost beside the call itself, by its time.
cdef Estimate _cost = Estimate("recording of calls of functions", 24.0)


@cython.final
@cython.no_gc_clear
cdef class Replayed(Replacement):
    """In the place of a function that decides by its arguments alone what it runs.

    Parameters
    ----------
    original : callable
        TensorFlow's.
    passed : callable
        As for `Replay`.
    handlers : list of dict
        What users have registered to handle calls of it.
    settings : sequence of tuple
        As for `Replay`.
    always : bool, default False
        Whether it works while nothing is installed, too: of one that is in nobody's place.
    """

    cdef readonly object passed
    cdef readonly object settings
    cdef tuple handlers
    cdef tuple num_handlers
    cdef Cache cases        # by signature
    cdef Specialization last
    cdef dict ops
    cdef dict reasons       # why calls could not be recorded, and how often that was found
    cdef Budget budget      # of recordings that fail
    cdef unsigned long long known_after

    def __init__(self, original, passed, handlers=(), settings=(), always=False):
        super().__init__(original)
        self.always = always
        self.passed = passed
        self.settings = settings
        self.handlers = tuple(handlers)
        self.num_handlers = tuple([len(of) for of in handlers])
        self.ops = {}
        self.forget()
        self.vectorcall = _replayed

    def describe(self):
        """Say what is known of its calls.

        Returns
        -------
        dict
            How many signatures are ``"replayed"``, were ``"seen"`` once, and were ``"refused"``,
            with the ``"reasons"``, and the particulars that were found last, ``"details"``; and how
            many calls were kernels alone, ``"native"``.
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
        """Return what is known of each signature, as `Specialization.describe` says."""
        return [case.describe() for case in self.cases.values()]

    cdef bint handled(self):
        """Whether users have registered what handles calls of it."""
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
        cdef PyObject* found
        if case is None or not signature.Is(
            PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key)
        ):
            key = PyBytes_FromStringAndSize(signature.data(), signature.size())
            found = self.cases.find(key)
            if found == NULL:
                case = self.cases.put(key, Specialization(key, 1))
            else:
                case = <Specialization>found
            self.last = case
        return case

    def op(self, place, name):
        """Return the op for a step: it finds the key of its last call sooner than one for all."""
        found = self.ops.get((place, name))
        if found is None:
            found = self.ops.setdefault((place, name), Op(name))
        return found

    cdef bint learn(self, Specialization case, recorder, list arguments, list holders, result,
                    Guard guard) except -1:
        """Take up what a call of a signature ran. False if later calls cannot be replayed."""
        try:
            found = recording(recorder, arguments, holders, result)
            replay = Replay(found, self.op, self.passed, self.settings, guard)
            prepare_kernels(recorder, found)
        except Exception as problem:  # the call has been made, and nothing is wrong with it
            refused = as_refusal(problem)
            why = refused.sentence
            self.reasons[why] = self.reasons.get(why, 0) + 1
            self.budget.fail()
            case.refuse(why, refused.detail)
            return False
        self.budget.succeed()
        case.variants.append(replay)
        return True


cdef PyObject* _replayed(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    cdef Replayed self = <Replayed>callable
    cdef Signature signature
    cdef PyObject* result = NULL
    cdef Specialization case
    cdef Decision decision
    if self.known_after != flushes:
        self.forget()
    if (
        not live and not self.always
        or self.budget.is_spent()
        or not promotes_no_dtypes()
        or not is_plain_but_for_tapes()
        or self.handled()
        or not read_tensors(&signature, args, PyVectorcall_NARGS(nargsf), keywords)
    ):
        return call_original(self, args, nargsf, keywords)
    case = self.case_of(signature)
    decision = case.run(signature, &result)
    if decision == HIT:
        return result
    if decision == RECORD:
        decision = case.next(_cost.of(case.account.shortest_ns))
    if decision == RECORD:
        return _record(self, case, signature, args, nargsf, keywords)
    if decision == WAIT:
        return _wait(self, case.account, args, nargsf, keywords)
    return call_original(self, args, nargsf, keywords)


cdef PyObject* _wait(Replayed self, Account account, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    """Have the function itself called, for a recording would not pay yet, and charge its time."""
    cdef PyObject* result
    cdef int64_t begin
    if is_covered():
        return call_original(self, args, nargsf, keywords)
    cover(True)
    begin = now()
    try:
        result = call_original(self, args, nargsf, keywords)
    finally:
        cover(False)
    account.charge(now() - begin)
    return result


cdef PyObject* _record(Replayed self, Specialization case, const Signature& signature,
                       PyObject* const* args, size_t nargsf, PyObject* keywords) except NULL:
    cdef PyObject* result = NULL
    cdef Signature after
    cdef size_t i
    cdef int64_t begin = now(), call_ns = case.account.shortest_ns
    case.begin()
    arguments = [<object>signature.object(i) for i in range(signature.num_leaves())]
    holders = [<object>signature.holder(i) for i in range(signature.num_holders())]
    record = _Record({})
    with record:
        result = call_original(self, args, nargsf, keywords)
    if not record.started:
        return result
    # While something stands in for what the code looks up, the recording would not be TensorFlow's.
    guard = _guard_of(self, record.witness)
    if not guard_holds(guard):
        return result
    # A method that changes its object cannot be replayed so.
    if (
        read_tensors(&after, args, PyVectorcall_NARGS(nargsf), keywords)
        and after.Is(PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key))
        and are_leaves(arguments, after)
        and self.learn(case, record.recorder, arguments, holders, <object>result, guard)
    ):
        _cost.learn(call_ns, now() - begin - call_ns)
    return result


cdef Guard _guard_of(Replayed self, witness):
    """The guard of the code that ran; of all that may, where a profile function is in the way."""
    if witness is None:
        return _of_function(self.original)
    return _of_codes([(code, namespace) for (code, _), namespace in witness.codes.items()])


enable(Replayed)
