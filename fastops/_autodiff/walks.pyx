# distutils: language = c++
"""Walks over tapes that are recorded and replayed.

A training loop walks over the same records in each step. What such a walk runs depends on the
records, how they are connected, the dtypes and shapes of the tensors that they keep (`WalkShape`),
and on values that Python reads. So a walk is recorded as the call of a public function is: its
arguments are the kept tensors and the gradients of the targets, its results the gradients of the
sources. While it is recorded, TensorFlow's own gradient functions run, in TensorFlow's order.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t
from libc.string cimport memcmp
from libcpp.vector cimport vector

from fastops._autodiff.cases cimport Case, is_configured, new_case
from fastops._core.measuring cimport note_walk
from fastops._core.observer cimport is_measured
from fastops._core.preparing cimport flushes
from fastops._core.tapes cimport (
    describe_ops, describe_walk, expand_calls, object_at, tensor_at, walk,
)
from fastops._core.threads cimport this_thread
from fastops._cpp.signature cimport Signature
from fastops._cpp.tape cimport WalkShape
from fastops._cpp.timer cimport Nanoseconds
from fastops._situation cimport (
    NO_PROMOTION, ONE_REPLICA, PLAIN, missing, reason_of,
)
from fastops._specialize.cache cimport Cache
from fastops._specialize.learned cimport CallCounts
from fastops._specialize.policy cimport (
    Estimate,
    MAX_WALK_BYTES,
    MAX_WALK_RECORDS,
    MAX_WALKS,
    now,
)
from fastops._specialize.recording.record cimport Record
from fastops._specialize.specialization cimport (
    HIT, RECORD, REJECTED, WAIT, Decision, Specialization, reason_of_decision,
)
from fastops._tf.eager cimport recording as taped

cdef extern from "definitions.h":
    pass

from fastops._core.reasons import text_of as _text_of

# Reasons why walks are not replayed. Recordings add reasons of their own.
cdef str _RECORDS = _text_of("walk_records")
cdef str _FUNCTIONS = _text_of("walk_functions")
cdef str _SIZE = _text_of("walk_size")
cdef str _RECORDED = _text_of("recorded")
cdef str _EXPANDED = _text_of("expanded")

cdef CallCounts _counts = CallCounts("GradientTape.gradient")
# Replayed calls that tapes have recorded, and over which was walked: as one record, or op by op.
cdef CallCounts _calls = CallCounts("GradientTape: replayed calls")

cdef enum:
    _REQUIRED = PLAIN | ONE_REPLICA | NO_PROMOTION

# The extra cost of a recorded walk and of making its replay, by the time of a walk.
cdef Estimate _cost = Estimate("recording of walks over tapes", 24.0)

cdef Cache _cases = Cache(MAX_WALKS)  # by `WalkShape`
cdef Case _last = None
cdef unsigned long long _known_after = 0


def forget():
    """Drop all recordings."""
    global _cases, _last, _known_after
    _cases, _last, _known_after = Cache(MAX_WALKS), None, flushes


def describe():
    """Return how many walks were replayed, and how many recordings are in use.

    Returns
    -------
    dict
        The numbers ``"replayed"`` and ``"active"``, and of replayed calls that walks have passed as
        one record or op by op: ``"calls"`` and ``"expanded"``.
    """
    cdef Case case
    active = sum([len(case.known.variants) for case in _cases.values()])
    return {
        "replayed": _counts.used,
        "active": active,
        "calls": _calls.used,
        "expanded": _calls.reasons.get(_EXPANDED, 0),
    }


cdef list _objects(const vector[PyObject*]& items):
    cdef size_t i
    return [<object>items[i] for i in range(items.size())]


cdef Case _case_of(const WalkShape& shape):
    global _last
    cdef PyObject* stored
    cdef Case case = _last
    cdef Cache cases = _cases  # another thread may replace it meanwhile
    cdef vector[PyObject*] attrs, op_names, kinds
    if case is not None and <size_t>PyBytes_GET_SIZE(case.known.key) == shape.size() and (
        memcmp(PyBytes_AS_STRING(case.known.key), shape.data(), shape.size()) == 0
    ):
        return case
    key = PyBytes_FromStringAndSize(shape.data(), shape.size())
    stored = cases.find(key)
    if stored != NULL:
        case = <Case>stored
    else:
        describe_ops(shape, &attrs, &op_names, &kinds)
        case = new_case(key, _objects(attrs), _objects(op_names), _objects(kinds))
        case = cases.put(key, case)
    _last = case
    return case


cdef int _read_arguments(const WalkShape& shape, Case case, bint natively,
                         Signature* signature) except -1:
    """Append the tensors of a walk. Objects are made of kept values only if they are needed."""
    cdef PyObject* item
    cdef size_t i
    for i in range(shape.num_tensors()):
        if shape.IsObject(i) or not natively or i in case.asked:
            item = object_at(shape, i)
            signature.Append(tensor_at(item), item)
        else:
            signature.Append(shape.TensorAt(i), <PyObject*>None)
    return 0


cdef int expand(object tape) except -1:
    return _count_expanded(expand_calls(tape))


cdef int _count_expanded(int64_t num_calls) except -1:
    if num_calls:
        _calls.reasons[_EXPANDED] = _calls.reasons.get(_EXPANDED, 0) + num_calls
    return 0


@cython.final
cdef class WalkNote:
    """What a profile shows of a walk."""

    cdef bint replayed
    cdef str reason
    cdef int64_t records


cdef list _walk(str why, object tape, list targets, list sources, list seeds, WalkNote note):
    """Walk over the tape op by op, and count why the walk is not replayed."""
    cdef int64_t num_calls
    if why is not None:
        count_walk(why)
    gradients = walk(tape, targets, sources, seeds, &num_calls)
    _count_expanded(num_calls)
    if note is not None:
        note.reason = why
    return gradients


cdef int count_walk(str why) except -1:
    _counts.reasons[why] = _counts.reasons.get(why, 0) + 1
    return 0


cdef tuple describe_from(object tape, object target, list sources):
    cdef WalkShape shape
    cdef Case case
    cdef size_t i
    if not is_configured() or missing(_REQUIRED):
        return None
    if _known_after != flushes:
        forget()
    expand(tape)
    if (
        not describe_walk(tape, [target], sources, [], MAX_WALK_RECORDS, &shape)
        or shape.num_records() == 0
        or shape.num_bytes() > MAX_WALK_BYTES
    ):
        return None
    case = _case_of(shape)
    if not case.fits():
        return None
    tensors = [<object>object_at(shape, i) for i in range(shape.num_tensors())]
    return case.known.key, case, tensors


cdef list gradients_on(object tape, list targets, list sources, list seeds):
    cdef WalkNote note
    cdef int64_t begin
    if not is_measured(this_thread()):
        return _gradients_on(tape, targets, sources, seeds, None)
    note = WalkNote.__new__(WalkNote)
    begin = Nanoseconds()
    gradients = _gradients_on(tape, targets, sources, seeds, note)
    if gradients is not None:
        note_walk(
            begin, Nanoseconds(), "replay" if note.replayed else "fastops", note.reason,
            note.records,
        )
    return gradients


cdef list _gradients_on(object tape, list targets, list sources, list seeds, WalkNote note):
    cdef WalkShape shape
    cdef Signature signature
    cdef Case case
    cdef Specialization known
    cdef Decision decision
    cdef Record record
    cdef PyObject* result = NULL
    cdef int64_t begin
    cdef int unmet
    if not is_configured():
        return _walk(None, tape, targets, sources, seeds, note)
    unmet = missing(_REQUIRED)
    if unmet:
        return _walk(reason_of(unmet), tape, targets, sources, seeds, note)
    if _known_after != flushes:
        forget()
    if PyList_GET_SIZE(targets) != 1:
        expand(tape)
    if not describe_walk(tape, targets, sources, seeds, MAX_WALK_RECORDS, &shape):
        return _walk(_RECORDS, tape, targets, sources, seeds, note)
    if note is not None:
        note.records = shape.num_records()
    # A walk drops the tensors of each record that it has passed. A replay keeps them all.
    if shape.num_bytes() > MAX_WALK_BYTES:
        return _walk(_SIZE, tape, targets, sources, seeds, note)
    case = _case_of(shape)
    if not case.fits():
        return _walk(_FUNCTIONS, tape, targets, sources, seeds, note)
    known = case.known
    decision = RECORD
    if PyList_GET_SIZE(known.variants) != 0:
        _read_arguments(shape, case, not taped() and case.is_native(), &signature)
        decision = known.run(signature, &result)
        if decision == HIT:
            made = <object>result
            Py_DECREF(made)
            _counts.used += 1
            _calls.used += shape.num_calls()
            if note is not None:
                note.replayed = True
            return list(made)
    if decision == RECORD:
        decision = known.next(_cost.of(known.account.shortest_ns))
    if decision == RECORD:
        with Record() as record:
            if record.has_turn:
                return _record(record, case, shape, tape, targets, sources, seeds, note)
    if decision != WAIT:
        why = known.reason if decision == REJECTED else reason_of_decision(decision)
        return _walk(why, tape, targets, sources, seeds, note)
    begin = now()
    gradients = _walk(reason_of_decision(WAIT), tape, targets, sources, seeds, note)
    known.account.charge(now() - begin)
    return gradients


cdef list _record(Record record, Case case, const WalkShape& shape, object tape, list targets,
                  list sources, list seeds, WalkNote note):
    """Walk over the tape, and learn from it."""
    cdef Specialization known = case.known
    cdef Signature signature
    cdef size_t i
    cdef int64_t begin = now(), walk_ns = known.account.shortest_ns
    cdef list gradients
    known.begin()
    _read_arguments(shape, case, False, &signature)
    arguments = [<object>signature.object(i) for i in range(signature.num_leaves())]
    record.start({})
    gradients = _walk(_RECORDED, tape, targets, sources, seeds, note)
    record.stop()
    if case.learn(record, signature, arguments, tuple(gradients)):
        _cost.learn(walk_ns, now() - begin - walk_ns)
    return gradients
