# distutils: language = c++
"""Walks over tapes that are recorded and replayed.

A training loop walks over the same records in each step. What such a walk runs depends on the
records, how they are connected, the dtypes and shapes of the tensors that they keep (`WalkShape`),
and on values that Python reads. So a walk is recorded as the call of a public function is: its
arguments are the kept tensors and the gradients of the targets, its results the gradients of the
sources. While it is recorded, TensorFlow's own gradient functions run, in TensorFlow's order.

Walks are replayed only if all gradient functions are from the modules `_MODULES`, or are custom
gradients of known libraries. These functions keep nothing from call to call, and read no state
except that of the context. If an outer tape records, it records the ops of the replay.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t
from libc.string cimport memcmp
from libcpp.vector cimport vector

from fastops._core.preparing cimport flushes
from fastops._core.tapes cimport (
    describe_ops, describe_walk, expand_calls, object_at, tensor_at, walk,
)
from fastops._core.threads cimport this_thread
from fastops._cpp.options cimport Thread
from fastops._cpp.signature cimport Signature
from fastops._cpp.tape cimport WalkShape
from fastops._dispatch cimport Op
from fastops._situation cimport (
    NO_PROMOTION, ONE_REPLICA, PLAIN, missing, reason_of,
)
from fastops._specialize.cache cimport Cache
from fastops._specialize.guards.names cimport Guard, holds as guard_holds
from fastops._specialize.learned cimport CallCounts
from fastops._specialize.policy cimport (
    Estimate,
    MAX_FUNCTION_CASE_FAILURES,
    MAX_WALK_BYTES,
    MAX_WALK_RECORDS,
    MAX_WALKS,
    now,
)
from fastops._specialize.recording.record cimport Record
from fastops._specialize.replay cimport Replay
from fastops._specialize.specialization cimport (
    HIT, RECORD, REJECTED, WAIT, Decision, Specialization, reason_of_decision,
)
from fastops._specialize.trial cimport try_replay
from fastops._tf.eager cimport recording as taped

cdef extern from "definitions.h":
    pass

from tensorflow.python.framework import ops as _tf_ops

from fastops._core.reasons import text_of as _text_of
from fastops._specialize.recording.recording import (
    as_refusal,
    numbers_in,
    prepare_kernels,
    recording,
)

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

cdef dict _registrations = _tf_ops._gradient_registry._registry

# fmt: off
cdef frozenset _MODULES = frozenset([
    f"tensorflow.python.ops.{name}"
    for name in (
        "array_grad", "array_ops", "image_grad", "linalg_grad", "math_grad", "nn_grad",
        "resource_variable_ops",
    )
])
# fmt: on

cdef object _generated = None  # see `configure`
cdef object _guard_of = None
cdef Cache _cases = Cache(MAX_WALKS)  # by `WalkShape`
cdef Case _last = None
cdef unsigned long long _known_after = 0


def configure(generated, guard):
    """Begin to replay walks.

    Parameters
    ----------
    generated : callable
        See the parameter `passed` of `Replay`.
    guard : callable
        Given a list of pairs of a code object and its globals, returns the guard of the code.
    """
    global _generated, _guard_of
    _generated, _guard_of = generated, guard


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


@cython.final
cdef class Case:
    """What is known about walks of one shape."""

    cdef list attrs         # of each recorded op; keeps alive what the key has by address
    cdef list kinds         # of recorded calls, likewise
    cdef list registered    # for each op: its entry in TensorFlow's registry, and the function
    cdef bint custom        # whether a record has a custom gradient
    cdef bint never         # whether a gradient function is missing, unknown, or a user's
    cdef Specialization known
    cdef dict ops
    cdef set asked          # the numbers of the arguments whose objects a replay needs

    cdef bint fits(self) except -1:
        """Whether the gradient functions are those of the first walk."""
        if self.never:
            return False
        for op_name, entry, function in self.registered:
            if (
                PyDict_GetItem(_registrations, op_name) != <PyObject*>entry
                or PyDict_GetItem(<dict>entry, "type") != <PyObject*>function
            ):
                return False
        return True

    cdef int look_up(self, list op_names) except -1:
        cdef dict ops = {}
        self.registered = []
        for attrs, op_name in zip(self.attrs, op_names):
            if type(attrs) is tuple:
                ops[op_name] = None
            else:
                self.custom = True
                # What a user's function reads may change: the guards of walks compare names only.
                self.never = self.never or attrs.of_users
        for op_name in ops:
            entry = _registrations.get(op_name)
            function = None if entry is None else entry["type"]
            if function is None:
                # An op without an entry raises an error. The entry of an op that is registered as
                # not differentiable, such as Shape, has no function.
                self.never = self.never or entry is None
            elif getattr(function, "__module__", None) not in _MODULES:
                self.never = True
            self.registered.append((op_name, entry, function))
        return 0

    def op(self, index, name):
        """Return the `Op` of a step. Each step has one of its own, which remembers its last key."""
        step_op = self.ops.get((index, name))
        if step_op is None:
            step_op = self.ops.setdefault((index, name), Op(name))
        return step_op

    cdef bint is_native(self) except -1:
        """Whether all recordings run as kernels only."""
        cdef Thread* thread = this_thread()
        cdef Replay replay
        for replay in self.known.variants:
            if replay.native is None or not replay.native.may_run(thread):
                return False
        return len(self.known.variants) != 0


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
        case = Case.__new__(Case)
        case.known = Specialization(key, MAX_FUNCTION_CASE_FAILURES)
        describe_ops(shape, &attrs, &op_names, &kinds)
        case.attrs, case.kinds = _objects(attrs), _objects(kinds)
        case.look_up(_objects(op_names))
        case.ops, case.asked = {}, set()
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


cdef list _walk(str why, object tape, list targets, list sources, list seeds):
    """Walk over the tape op by op, and count why the walk is not replayed."""
    cdef int64_t num_calls
    if why is not None:
        _counts.reasons[why] = _counts.reasons.get(why, 0) + 1
    gradients = walk(tape, targets, sources, seeds, &num_calls)
    _count_expanded(num_calls)
    return gradients


cdef tuple describe_from(object tape, object target, list sources):
    cdef WalkShape shape
    cdef Case case
    cdef size_t i
    if _generated is None or missing(_REQUIRED):
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
    cdef WalkShape shape
    cdef Signature signature
    cdef Case case
    cdef Specialization known
    cdef Decision decision
    cdef Record record
    cdef PyObject* result = NULL
    cdef int64_t begin
    cdef int unmet
    if _generated is None:
        return _walk(None, tape, targets, sources, seeds)
    unmet = missing(_REQUIRED)
    if unmet:
        return _walk(reason_of(unmet), tape, targets, sources, seeds)
    if _known_after != flushes:
        forget()
    if PyList_GET_SIZE(targets) != 1:
        expand(tape)
    if not describe_walk(tape, targets, sources, seeds, MAX_WALK_RECORDS, &shape):
        return _walk(_RECORDS, tape, targets, sources, seeds)
    # A walk drops the tensors of each record that it has passed. A replay keeps them all.
    if shape.num_bytes() > MAX_WALK_BYTES:
        return _walk(_SIZE, tape, targets, sources, seeds)
    case = _case_of(shape)
    if not case.fits():
        return _walk(_FUNCTIONS, tape, targets, sources, seeds)
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
            return list(made)
    if decision == RECORD:
        decision = known.next(_cost.of(known.account.shortest_ns))
    if decision == RECORD:
        with Record() as record:
            if record.has_turn:
                return _record(record, case, shape, tape, targets, sources, seeds)
    if decision != WAIT:
        why = known.reason if decision == REJECTED else reason_of_decision(decision)
        return _walk(why, tape, targets, sources, seeds)
    begin = now()
    gradients = _walk(reason_of_decision(WAIT), tape, targets, sources, seeds)
    known.account.charge(now() - begin)
    return gradients


cdef list _record(Record record, Case case, const WalkShape& shape, object tape, list targets,
                  list sources, list seeds):
    """Walk over the tape, and learn from it."""
    cdef Specialization known = case.known
    cdef Signature signature
    cdef Guard guard
    cdef size_t i
    cdef int64_t begin = now(), walk_ns = known.account.shortest_ns
    cdef list gradients
    known.begin()
    _read_arguments(shape, case, False, &signature)
    arguments = [<object>signature.object(i) for i in range(signature.num_leaves())]
    record.start({})
    gradients = _walk(_RECORDED, tape, targets, sources, seeds)
    record.stop()
    if not record.started or record.witness is None:
        return gradients
    if case.custom and record.witness.objection is not None:
        why, detail = record.witness.objection
        known.refuse(_text_of(why), detail)
        return gradients
    guard = _guard_of([
        (code, namespace) for (code, _), namespace in record.witness.codes.items()
    ])
    if not guard_holds(guard):
        return gradients
    try:
        recorded = recording(record.recorder, arguments, [], tuple(gradients))
        replay = Replay(recorded, case.op, _generated, (), guard)
        prepare_kernels(record.recorder, recorded)
        try_replay(replay, signature, [], tuple(gradients), [])
    except Exception as problem:  # the walk has succeeded: only the recording fails
        refused = as_refusal(problem)
        known.refuse(refused.sentence, refused.detail)
        return gradients
    case.asked.update(
        number
        for number in (*numbers_in(recorded.result), *(check.number for check in recorded.checks))
        if number < recorded.num_arguments
    )
    known.variants.append(replay)
    _cost.learn(walk_ns, now() - begin - walk_ns)
    return gradients
