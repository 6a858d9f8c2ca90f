# distutils: language = c++
"""Stand-in for methods of Keras's and tf_keras's objects: calls are recorded, and replayed later.

`RecordedMethod` decides about each call, in this order:

1. Calls in unusual surroundings, and calls of objects that cannot be recorded, run in Python.
2. The library's settings and the arguments are read. Arrays among the arguments become tensors.
3. If the object is in a known state, and the recordings of the signature fit, the call is replayed.
4. Otherwise it runs in Python. It is recorded if a recording pays by now (`learning`).

What is known about objects is in `fastops._specialize.objects`.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libcpp.vector cimport vector

from fastops._cpp.dicts cimport InstanceDictIfAny
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._cpp.signature cimport Signature
from fastops._install.adapters cimport array_type, call_waiting, has_arrays, put_tensor
from fastops._install.models.learning cimport MethodRecording
from fastops._install.models.receivers cimport Receivers
from fastops._install.models.scopes cimport Scopes
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._situation cimport NO_PROMOTION, ONE_REPLICA, PLAIN, missing, reason_of
from fastops._specialize.objects.case cimport MethodCase, cost_for
from fastops._specialize.objects.receiver cimport Receiver
from fastops._specialize.objects.state cimport ObjectState
from fastops._specialize.policy cimport Account, is_covered
from fastops._specialize.recording.record cimport Record
from fastops._specialize.replay cimport are_leaves
from fastops._specialize.signatures cimport read_method, text_of
from fastops._specialize.specialization cimport (
    Decision,
    EXHAUSTED,
    FAILED,
    HIT,
    MISSED,
    RECORD,
    REJECTED,
    WAIT,
)
from fastops._tf.eager cimport recording as taped

cdef extern from "definitions.h":
    pass

import weakref
from functools import partial

from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable

from fastops._core.reasons import text_of as _text_of
from fastops._install.models.declared import codes as _declared_codes
from fastops._install.models.input_specs import axes_of as _axes_of
from fastops._specialize.observers import OBSERVERS as _told, tell as _tell
from fastops._specialize.recording.recording import NotReplayableError, parts_of
from fastops._specialize.recording.sizes import SizeReads
from fastops._specialize.recording.warned import issue, may_issue

cdef enum:
    _REQUIRED = PLAIN | ONE_REPLICA | NO_PROMOTION  # conditions on the surroundings of a call

cdef type _tensor = EagerTensor
cdef type _zip = zip
cdef object _plain_variable = _ResourceVariable
_methods = weakref.WeakSet()

# Reasons why calls are not replayed. Recordings add reasons of their own.
cdef str _OTHERS = _text_of("user_class")
cdef str _SCOPES = _text_of("scope_open")
cdef str _ARGUMENT = _text_of("method_argument_type")
cdef str _CODE = _text_of("global_changed")
cdef str _FAILED = _text_of("op_failed")
cdef str _VALUES = _text_of("values_decide")
cdef str _FIRST = _text_of("recording_not_due")
cdef str _RECORDED = _text_of("recorded")
cdef str _PROFILED = _text_of("profiler_active")
cdef str _WARNING = _text_of("warning_raises")

cdef list _observers = _told


def methods():
    """Return all `RecordedMethod` objects that are alive."""
    return list(_methods)


@cython.final
@cython.no_gc_clear
cdef class RecordedMethod(Replacement):
    """Stand-in for a method that chooses its ops by its object and its arguments.

    Parameters
    ----------
    original : callable
        The library's method.
    unasked : dict of type to set of str
        See `fastops._specialize.guards.places.Places`.
    variable : type
        The library's class of variables.
    scopes : Scopes
        The settings and scopes that the library keeps for a thread.
    takes_arrays : callable, optional
        Given an object, returns whether the method first converts NumPy arrays to tensors. It may
        return the name of the dtype to which the method converts them.
    takes_zips : callable, optional
        Given an object, returns whether the method first converts its only argument to a list.
    names : dict of type to set of str, optional
        See `fastops._specialize.guards.template.ObjectTemplate`. None: objects share no recordings.
    converted : int, optional
        How many arguments the method converts, if not all of them.
    takes_plain : bool, default False
        Whether the second argument may be a list of TensorFlow's own variables, which are then
        taken by identity in the place of the library's.
    written : str or None, default "call"
        The name of the method in which users write what a call does; None if TensorFlow's code does
        it for all classes.
    """

    cdef readonly dict unasked
    cdef dict names
    cdef Py_ssize_t converted  # -1: all arguments
    cdef object variable
    cdef bint takes_plain
    cdef Scopes scopes
    cdef object takes_arrays
    cdef object takes_zips
    cdef Receivers receivers
    cdef readonly long long replayed
    cdef readonly dict reasons  # by reason, how many calls were not replayed

    def __init__(
        self, original, unasked, variable, scopes, takes_arrays=None, takes_zips=None, names=None,
        converted=None, takes_plain=False, written="call",
    ):
        super().__init__(original)
        self.names, self.takes_plain = names, takes_plain
        self.converted = -1 if converted is None else converted
        self.unasked, self.variable, self.scopes = unasked, variable, scopes
        self.takes_arrays, self.takes_zips = takes_arrays, takes_zips
        self.receivers = Receivers(written)
        self.vectorcall = _called
        self.reset_counters()
        _methods.add(self)

    def describe(self, instance=None):
        """Describe the calls of an object, or of all objects.

        Returns
        -------
        dict
            ``"replayed"``: number of replayed calls. ``"recorded"``: number of recordings.
            ``"reasons"``: by reason, how many recordings failed. ``"details"``: by reason, its
            latest particulars. ``"refused"``: why the object was given up, or None. ``"native"``:
            number of replays that ran private kernels only.
        """
        cdef Receiver receiver
        description = {"replayed": 0, "recorded": 0, "native": 0, "reasons": {}, "details": {}}
        description["refused"] = None
        for key, receiver in list(self.receivers.known.items()):
            if instance is None or key == id(instance):
                receiver.count_in(description)
        return description

    def recordings(self, instance):
        """Return the dependencies and the ops of each recording of an object.

        Returns
        -------
        list of dict
            ``"arguments"``: the arguments of its calls, as text. ``"scopes"``: the scopes that were
            open. ``"places"``: the paths of what is compared of the object. ``"ignored"``: the
            paths of attributes that are not compared. ``"codes"``: the names of the code that ran.
            ``"missed"``: what had changed at the last call that missed the recording, or None. The
            other entries, such as ``"ops"`` and ``"guards"``, are from `Replay.describe`, with two
            more kinds of guards: ``"globals"`` has the globals that the code reads; ``"contents"``
            has the paths of what these globals, and variables among the arguments, hold.
        """
        cdef Receiver receiver = self.receivers.known.get(id(instance))
        return [] if receiver is None else receiver.recordings()

    def forget(self):
        """Forget what was learned of objects that have died."""
        self.receivers.classes.clear()

    def reset_counters(self):
        """Reset the counts of calls."""
        self.replayed, self.reasons = 0, {}

    cdef PyObject* leave(self, str why, PyObject* const* args, size_t nargsf,
                         PyObject* keywords, str detail=None, bytes key=None,
                         tuple scopes=None) except NULL:
        """Call the original method, and count the reason.

        Observers also get the detail, and the signature's key and the scopes if they have been
        read.
        """
        self.note(why, args[0], detail, key, scopes)
        return call_original(self, args, nargsf, keywords)

    cdef int note(self, str why, PyObject* root, str detail, bytes key, tuple scopes) except -1:
        """Count why a call is not replayed, and notify observers."""
        self.reasons[why] = self.reasons.get(why, 0) + 1
        if _observers:
            self.tell(root, why, detail, key, scopes)
        return 0

    cdef PyObject* wait(self, Receiver receiver, Account account, bytes key, tuple scopes,
                        PyObject* const* args, size_t nargsf, PyObject* keywords) except NULL:
        """Call the original method, since a recording would not pay yet, and charge its time.

        An object may wait too long because its signature or state keeps changing: a cache grows, or
        a number counts the calls. Then the calls inside it get accounts, because these may stay the
        same.
        """
        cdef PyObject* result
        cdef bint charges = not is_covered()
        cdef bint covers = not receiver.waits_too_long(account)
        cdef str detail = (receiver.changed() or receiver.failure) if _observers else None
        self.note(_FIRST, args[0], detail, key, scopes)
        result = call_waiting(self, account, covers, args, nargsf, keywords)
        if charges:
            receiver.wait(account)
        return result

    cdef bint convert(self, PyObject* const* args, Py_ssize_t n, Py_ssize_t named, list tensors,
                      vector[PyObject*]* converted) except -1:
        """Put tensors in the places of arrays, as the method would. False if it takes none there.

        `n` is the number of positional arguments, `named` that of the others.
        """
        cdef Py_ssize_t i
        taken = self.takes_arrays(<object>args[0])
        if not taken or 0 <= self.converted < n - 1 and has_arrays(
            args + 1 + self.converted, n - 1 - self.converted
        ):
            return False
        dtype = taken if type(taken) is str else None
        converted.assign(args, args + n + named)
        for i in range(1, n):
            if Py_TYPE(<object>args[i]) == array_type:
                if not put_tensor(converted.data() + i, tensors, dtype):
                    return False
        return True

    cdef PyTypeObject* identified(self, PyObject* const* args, Py_ssize_t n) noexcept:
        """Return the class of the variables that the arguments of a call are to contain."""
        cdef PyObject* first = NULL
        if self.takes_plain and n == 3:
            if PyTuple_CheckExact(<object>args[2]) and PyTuple_GET_SIZE(<object>args[2]) != 0:
                first = PyTuple_GET_ITEM(<object>args[2], 0)
            elif PyList_CheckExact(<object>args[2]) and PyList_GET_SIZE(<object>args[2]) != 0:
                first = PyList_GET_ITEM(<object>args[2], 0)
        if first != NULL and Py_TYPE(<object>first) == <PyTypeObject*>_plain_variable:
            return <PyTypeObject*>_plain_variable
        return <PyTypeObject*>self.variable

    cdef bint keeps(self, MethodRecording recording, PyObject* const* given, Py_ssize_t n,
                    PyObject* keywords) except -1:
        """Whether a recorded call has left its arguments as they were, but for cleared attributes.

        The signature includes the attributes, so they have their earlier values meanwhile.
        """
        cdef Signature after
        cdef bytes key = recording.case.key
        cdef list cleared = recording.cleared()
        for tensor, name, value in cleared:
            setattr(tensor, name, value)
        try:
            return (
                read_method(&after, given + 1, n - 1, keywords, self.identified(given, n))
                and after.Is(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
                and are_leaves(recording.arguments, after)
            )
        finally:
            for tensor, name, _ in cleared:
                setattr(tensor, name, None)

    cdef PyObject* finish(self, PyObject* root, ObjectState state, MethodCase case,
                          const Signature& signature, tuple scopes,
                          PyObject* replayed) except NULL:
        """Do what a replayed call does beside its ops, and count the call.

        Steals the reference to what the replay has returned, and returns the call's result.
        """
        cdef tuple pair
        self.replayed += 1
        if _observers:
            self.tell(root, None, None, case.key, case.scopes)
        if case.left is not None:
            self.scopes.call_context().__dict__.update(case.left)
        if case.marks:
            # An attribute may hold another of the arguments, and nothing else may.
            marked = [(<object>signature.object(leaf), name) for leaf, name in case.marks]
            for tensor, name in marked:
                setattr(tensor, name, None)
        if case.names is not None:
            self.scopes.give_names(case.names)
        if state.losses is not None:
            self.scopes.clear(state.losses, scopes)
        if not case.adds_losses:
            return replayed
        pair = <tuple>replayed
        Py_DECREF(pair)  # the local variable holds it
        result, losses = pair
        self.scopes.add_losses(state.losses, losses)
        Py_INCREF(result)
        return <PyObject*>result

    cdef int fail(self, Receiver receiver, MethodCase case, error) except -1:
        """Count a failed recording."""
        refused = self.receivers.fail(receiver, error)
        if case is not None:
            case.refuse(refused.sentence, refused.detail)
        return 0

    cdef int tell(self, PyObject* root, str why, str detail, bytes key, tuple scopes) except -1:
        """Notify observers of a call: why it is not replayed (None: it is), and the particulars."""
        arguments = describe = None
        if key is not None:
            arguments = text_of(key)
            describe = partial(_description, self, weakref.ref(<object>root), (key, scopes))
        _tell(
            self.original.__qualname__.rpartition(".")[2], _title_of(<object>root), arguments, why,
            detail, describe,
        )
        return 0


def _title_of(instance):
    """Return the class and the name of an object."""
    title, name = type(instance).__name__, getattr(instance, "name", None)
    return f"{title} {name}" if name else title


def _description(RecordedMethod method, reference, tuple key):
    """Describe the calls of an object with a signature in some scopes. None if it has died."""
    cdef Receiver receiver = method.receivers.known.get(id(reference()))
    return None if receiver is None else receiver.description(key)


cdef PyObject* _called(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef RecordedMethod self = <RecordedMethod>callable
    cdef Signature signature
    cdef Receiver receiver
    cdef ObjectState state
    cdef MethodCase case = None, batch
    cdef Decision decision
    cdef PyObject* result = NULL
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    cdef vector[PyObject*] converted
    cdef PyObject* const* given = args
    cdef list tensors
    cdef tuple scopes
    cdef int unmet
    cdef Record record
    cdef Account account
    cdef bytes key
    if not live or n == 0:
        return call_original(self, args, nargsf, keywords)
    unmet = missing(_REQUIRED)
    if unmet:
        return self.leave(reason_of(unmet), args, nargsf, keywords)
    receiver = self.receivers.find(args[0])
    if receiver is None:
        why = self.receivers.objection(type(<object>args[0])) if _observers else None
        return self.leave(_OTHERS, args, nargsf, keywords, why)
    if receiver.reason is not None:
        return self.leave(receiver.reason, args, nargsf, keywords, receiver.detail)
    if (
        self.takes_zips is not None
        and n == 2
        and keywords == NULL
        and Py_TYPE(<object>args[1]) == <PyTypeObject*>_zip
        and self.takes_zips(<object>args[0])
    ):
        pairs = list(<object>args[1])
        converted.assign(args, args + n)
        converted[1] = <PyObject*>pairs
        # Start over: a generator in the zip may have run any code.
        return _called(callable, converted.data(), n, NULL)
    scopes = self.scopes.read(args[0])
    if scopes is None:
        return self.leave(_SCOPES, args, nargsf, keywords)
    if taped():
        scopes = scopes + (True,)
    if self.takes_arrays is not None and has_arrays(args + 1, n - 1):
        tensors = []
        if not self.convert(
            args, n, 0 if keywords == NULL else PyTuple_GET_SIZE(<object>keywords), tensors,
            &converted,
        ):
            return self.leave(_ARGUMENT, args, nargsf, keywords)
        given = converted.data()
        scopes = scopes + ("arrays",)
    if not read_method(&signature, given + 1, n - 1, keywords, self.identified(given, n)):
        return self.leave(_ARGUMENT, args, nargsf, keywords)
    if _has_masks(signature):
        return self.leave(_ARGUMENT, args, nargsf, keywords)
    state = receiver.state()
    if state is None:
        state = receiver.share(args[0])
    if state is not None:
        case = state.case_of(signature, scopes)
    if case is not None:
        if case.warned and not may_issue(case.warned):
            return self.leave(_WARNING, args, nargsf, keywords, None, case.key, scopes)
        decision = case.run(signature, &result)
        if decision == HIT:
            receiver.replayed += 1
            result = self.finish(args[0], state, case, signature, scopes, result)
            return result if not case.warned else _warning(case.warned, result)
        if decision == MISSED:
            detail = (case.changes() or case.missed) if _observers else None
            return self.leave(_CODE, args, nargsf, keywords, detail, case.key, scopes)
        if decision == FAILED or case.any_batch:
            return self.leave(_FAILED, args, nargsf, keywords, None, case.key, scopes)
        account, key = case.account, case.key
        decision = case.next(cost_for(account))
        if decision == EXHAUSTED:
            return self.leave(_VALUES, args, nargsf, keywords, None, key, scopes)
        if decision == REJECTED:
            return self.leave(
                case.reason or _FAILED, args, nargsf, keywords, case.detail, key, scopes
            )
    else:
        receiver.calls += 1
        if state is None and receiver.replayed != 0:
            receiver.miss()
        key = PyBytes_FromStringAndSize(signature.data(), signature.size())
        # Calls that differ in the batch size only may share a recording, so they share an account.
        batch = None if state is None else state.batch_of(signature, scopes)
        if batch is not None and batch.is_given_up():
            account = receiver.account_of((key, scopes))
        else:
            account = receiver.account_of((<bytes>signature.OfAnyBatch() or key, scopes))
        due = batch is not None and batch.first is not None or (
            receiver.calls > 1 or receiver.of_class.brief
        ) and account.is_due(cost_for(account))
        decision = RECORD if due else WAIT
    if decision == WAIT:
        return self.wait(receiver, account, key, scopes, args, nargsf, keywords)
    with Record() as record:
        if record.has_turn:
            return _record(
                self, record, receiver, state, case, account, scopes, signature, given, args, n,
                nargsf, keywords,
            )
    return call_original(self, args, nargsf, keywords)


cdef PyObject* _record(RecordedMethod self, Record record, Receiver receiver, ObjectState state,
                       MethodCase case, Account account, tuple scopes, const Signature& signature,
                       PyObject* const* given, PyObject* const* args, Py_ssize_t n, size_t nargsf,
                       PyObject* keywords) except NULL:
    """Make a call, and learn from it."""
    cdef PyObject* result = NULL
    cdef MethodRecording recording
    cdef bint keeps_arguments
    if record.is_profiled:
        return self.leave(_PROFILED, args, nargsf, keywords)
    recording = MethodRecording(self.scopes, self.unasked, <object>args[0], scopes)
    if case is None:
        receiver.begin(account, state is None and len(receiver.states) != 0)
    elif case.first is None:
        receiver.begin(account, len(case.variants) != 0)
    detail = receiver.changed() if _observers and state is None else None
    try:
        if not recording.prepare(receiver, state, case, account, signature):
            return call_original(self, args, nargsf, keywords)
    except Exception as why:  # another thread is changing the object, a variable has no value
        self.fail(receiver, recording.case, why)
        return call_original(self, args, nargsf, keywords)
    case = recording.case
    self.reasons[_RECORDED] = self.reasons.get(_RECORDED, 0) + 1
    if _observers:
        self.tell(args[0], _RECORDED, detail, case.key, scopes)
    record.start(
        _declared_codes(), None if recording.batch is None else SizeReads(_axes_of)
    )
    try:
        result = call_original(self, given, nargsf, keywords)
    except Exception:
        case.fail()
        raise
    record.stop()
    if not record.started or record.witness is None:
        return result
    try:
        keeps_arguments = self.keeps(recording, given, n, keywords)
        if _share_containers(<object>result, given, n, keywords):
            raise NotReplayableError("container_returned")
        if recording.learn(record, keeps_arguments, signature, <object>result):
            self.receivers.budget_of(receiver).lift()
        if self.names is not None and not _has_texts(<object>result):
            receiver.of_class.publish(args[0], recording.state, case, self.names)
    except Exception as why:  # the user's call has succeeded, so only the recording fails
        self.fail(receiver, case, why)
    return result


cdef bint _has_masks(const Signature& signature) except -1:
    """Whether a variable among the arguments has a mask, which the signature does not have."""
    cdef size_t i
    cdef PyObject* variable
    cdef PyObject* attributes
    cdef PyObject* mask
    for i in range(signature.num_leaves()):
        variable = signature.variable(i)
        if variable == NULL:
            continue
        attributes = InstanceDictIfAny(variable)
        if attributes != NULL:
            mask = PyDict_GetItem(<object>attributes, "_keras_mask")
            if mask != NULL and <object>mask is not None:
                return True
    return False


cdef bint _share_containers(object result, PyObject* const* args, Py_ssize_t n,
                            PyObject* keywords) except -1:
    """Whether a list or dict among the arguments is in the result, too."""
    cdef Py_ssize_t i
    if type(result) is _tensor:
        return False
    if keywords != NULL:
        n += PyTuple_GET_SIZE(<object>keywords)
    given = {
        id(part)
        for part in parts_of(*[<object>args[i] for i in range(1, n)])
        if isinstance(part, (dict, list))
    }
    return any([id(part) in given for part in parts_of(result)])


cdef bint _has_texts(object result) except -1:
    """Whether a result has texts, such as the names of metrics: objects with other names differ."""
    return type(result) is not _tensor and any([
        isinstance(part, (str, dict)) for part in parts_of(result)
    ])


cdef PyObject* _warning(list warned, PyObject* result) except NULL:
    """Issue the warnings of a call, and return the result."""
    try:
        issue(warned)
    except BaseException:
        Py_DECREF(<object>result)
        raise
    return result


enable(RecordedMethod)
