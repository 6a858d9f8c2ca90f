# distutils: language = c++
"""Gradient functions of single ops that are recorded and replayed.

A walk that is not replayed as a whole calls a gradient function for each record. So do loops whose
walks never repeat, for example over episodes of different lengths. The gradient function of an op
without a rule is Python code that runs a few small ops. It is recorded once for each kind of
records, and then replayed.

The key of a kind has the op with its attributes, the devices, dtypes and shapes of the tensors that
the record keeps and of the gradients of the outputs, which of these are the same tensor, which are
missing, and which gradients of inputs the tape does not need.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._autodiff.cases cimport Case, is_configured, new_case
from fastops._core.preparing cimport flushes
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.signature cimport Signature
from fastops._cpp.tape cimport TapeDevice, TapeRecord, TapeTensorOf
from fastops._situation cimport NO_PROMOTION, ONE_REPLICA, PLAIN, missing
from fastops._specialize.cache cimport Cache
from fastops._specialize.learned cimport CallCounts
from fastops._specialize.policy cimport Estimate, MAX_OP_TENSORS, MAX_RECORDED_OPS, now
from fastops._specialize.recording.record cimport Record
from fastops._specialize.specialization cimport (
    HIT, RECORD, REJECTED, WAIT, Decision, Specialization, reason_of_decision,
)
from fastops._tf.protos cimport DT_RESOURCE, DT_VARIANT
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

from tensorflow.python.util import nest as _nest

from fastops._core.reasons import text_of as _text_of

# Reasons why a gradient function is not replayed. Recordings add reasons of their own.
cdef str _FUNCTIONS = _text_of("walk_functions")
cdef str _TENSORS = _text_of("gradient_tensors")
cdef str _RECORDED = _text_of("recorded")

cdef CallCounts _counts = CallCounts("GradientTape: gradient functions")

cdef enum:
    _REQUIRED = PLAIN | ONE_REPLICA | NO_PROMOTION

# The cost of a recording and of making its replay. It does not depend on the time of a call.
cdef Estimate _cost = Estimate("recording of gradient functions", 1.0e6)

cdef Cache _cases = Cache(MAX_RECORDED_OPS)  # by key
# The keys that came once. In a loop whose shapes always differ, keys must be cheap, and replace no
# cases.
cdef Cache _once = Cache(MAX_RECORDED_OPS)
cdef unsigned long long _known_after = 0


def forget():
    """Drop all recordings."""
    global _cases, _once, _known_after
    _cases, _once = Cache(MAX_RECORDED_OPS), Cache(MAX_RECORDED_OPS)
    _known_after = flushes


def describe():
    """Return how many calls of gradient functions were replayed, and how many replays there are.

    Returns
    -------
    dict
        The numbers ``"replayed"`` and ``"active"``.
    """
    cdef Case case
    return {
        "replayed": _counts.used,
        "active": sum([len(case.known.variants) for case in _cases.values()]),
    }


# ---------------------------------------------------------------------------------------------
# The key
# ---------------------------------------------------------------------------------------------

cdef inline void _add(string* key, int64_t number) noexcept:
    key.append(<const char*>&number, sizeof(number))


cdef bint _add_tensor(string* key, PyObject* item, PyObject** tensors, int* num_tensors) noexcept:
    """Add a tensor or None. Return False for anything else, and for tensors without a kind."""
    cdef const Tensor* tensor
    cdef int i
    if item == <PyObject*>None:
        _add(key, -1)
        return True
    for i in range(num_tensors[0]):
        if tensors[i] == item:
            _add(key, i)
            return True
    if num_tensors[0] == MAX_OP_TENSORS or not IsEagerTensor(item):
        return False
    tensor = TapeTensorOf(item)
    if tensor == NULL or tensor.dtype() == DT_RESOURCE or tensor.dtype() == DT_VARIANT:
        return False
    _add(key, num_tensors[0])
    tensors[num_tensors[0]] = item
    num_tensors[0] += 1
    _add(key, <int64_t>TapeDevice(item))
    _add(key, tensor.dtype())
    _add(key, tensor.dims())
    for i in range(tensor.dims()):
        _add(key, tensor.dim_size(i))
    return True


cdef bint _describe(TapeRecord* record, PyObject** grads, int num_grads,
                    const vector[int64_t]& unneeded, string* key, PyObject** tensors,
                    int* num_tensors) noexcept:
    """Make the key, and list the tensors that it has, each of them once."""
    cdef int i
    cdef size_t j
    key.reserve(512)
    _add(key, <int64_t>record.op)
    _add(key, <int64_t>record.attrs)
    _add(key, record.num_inputs)
    _add(key, record.num_outputs)
    _add(key, num_grads)
    if record.keeps_inputs:
        for i in range(record.num_inputs):
            if not _add_tensor(key, record.inputs()[i], tensors, num_tensors):
                return False
    if record.keeps_outputs:
        for i in range(record.num_outputs):
            if not _add_tensor(key, record.outputs()[i], tensors, num_tensors):
                return False
    for i in range(num_grads):
        if not _add_tensor(key, grads[i], tensors, num_tensors):
            return False
    for j in range(unneeded.size()):
        _add(key, unneeded[j])
    return True


cdef Case _case_of(TapeRecord* record, const string& key):
    """Return the case of a key; None if the key comes for the first time."""
    cdef Cache cases = _cases, once = _once  # another thread may replace them meanwhile
    cdef PyObject* stored
    stored_key = PyBytes_FromStringAndSize(key.data(), key.size())
    stored = cases.find(stored_key)
    if stored != NULL:
        return <Case>stored
    if once.find(stored_key) == NULL:
        # The entry keeps alive what the key has by address.
        once.put(stored_key, <object>record.attrs)
        return None
    once.drop(stored_key)
    case = new_case(stored_key, [<object>record.attrs], [<object>record.op_name], [])
    return cases.put(stored_key, case)


# ---------------------------------------------------------------------------------------------
# The gradients of a record
# ---------------------------------------------------------------------------------------------

cdef tuple _listed(PyObject** items, int size):
    return tuple([<object>items[i] for i in range(size)])


cdef object gradients_by_function(object function, TapeRecord* record, PyObject** grads,
                                  int num_grads, const vector[int64_t]& unneeded):
    return _nest.flatten(function(
        <object>record.op_name,
        <object>record.attrs,
        record.num_inputs,
        _listed(record.inputs(), record.num_inputs) if record.keeps_inputs else None,
        _listed(record.outputs(), record.num_outputs) if record.keeps_outputs else None,
        _listed(grads, num_grads),
        None if unneeded.empty() else tuple([unneeded[i] for i in range(unneeded.size())]),
        None,
    ))


cdef object _count(str why):
    """Count why a call was not replayed, and return None."""
    _counts.reasons[why] = _counts.reasons.get(why, 0) + 1


cdef object gradients_by_replay(object function, TapeRecord* record, PyObject** grads,
                                int num_grads, const vector[int64_t]& unneeded):
    gradients = None
    if is_configured() and not missing(_REQUIRED):
        gradients = _by_recording(function, record, grads, num_grads, unneeded)
    if gradients is None:
        gradients = gradients_by_function(function, record, grads, num_grads, unneeded)
    return gradients


cdef object _by_recording(object function, TapeRecord* record, PyObject** grads, int num_grads,
                          const vector[int64_t]& unneeded):
    """Return the gradients by a replay or a recorded call; None if the function is to be called."""
    cdef Signature signature
    cdef string key
    cdef PyObject* tensors[MAX_OP_TENSORS]
    cdef int i, num_tensors = 0
    cdef Case case
    cdef Specialization known
    cdef Decision decision = RECORD
    cdef PyObject* result = NULL
    cdef int64_t begin
    if _known_after != flushes:
        forget()
    if not _describe(record, grads, num_grads, unneeded, &key, tensors, &num_tensors):
        return _count(_TENSORS)
    case = _case_of(record, key)
    if case is None:
        return _count(reason_of_decision(WAIT))
    if not case.fits():
        return _count(_FUNCTIONS)
    known = case.known
    for i in range(num_tensors):
        signature.Append(TapeTensorOf(tensors[i]), tensors[i])
    if PyList_GET_SIZE(known.variants) != 0:
        decision = known.run(signature, &result)
        if decision == HIT:
            made = <object>result
            Py_DECREF(made)
            _counts.used += 1
            return made
    if decision == RECORD:
        decision = known.next(_cost.of(1))
    if decision == RECORD:
        with Record() as turn:
            if turn.has_turn:
                return _record(
                    turn, case, signature, _listed(tensors, num_tensors), function, record, grads,
                    num_grads, unneeded,
                )
    _count(known.reason if decision == REJECTED else reason_of_decision(decision))
    if decision != WAIT:
        return None
    begin = now()
    gradients = gradients_by_function(function, record, grads, num_grads, unneeded)
    known.account.charge(now() - begin)
    return gradients


cdef object _record(Record turn, Case case, const Signature& signature, tuple arguments,
                    object function, TapeRecord* record, PyObject** grads, int num_grads,
                    const vector[int64_t]& unneeded):
    """Call the gradient function, and learn from it."""
    cdef int64_t begin = now(), call_ns = case.known.account.shortest_ns
    case.known.begin()
    _count(_RECORDED)
    turn.start({})
    gradients = gradients_by_function(function, record, grads, num_grads, unneeded)
    turn.stop()
    if case.learn(turn, signature, list(arguments), tuple(gradients)):
        _cost.learn(1, now() - begin - call_ns)
    return gradients
