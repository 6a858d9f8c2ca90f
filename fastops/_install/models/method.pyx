# distutils: language = c++
"""Methods of Keras's and tf_keras's objects whose calls are recorded, and replayed afterwards.

A recording belongs to one object and one signature of the arguments. Its guards compare the state
of the object, Keras's settings, and the globals of the code that ran. Two calls are recorded, and
they must have run the same ops. The replay is then tried on copies of the variables, and must give
the result of the second call. Only after that are calls replayed.

Programs also make objects anew: a metric for each epoch, a loss for each step. If an object of a
class has died, the recordings of later ones are shared: another object uses them if its contents
are equal (`fastops._specialize.guards.template`), with its own variables.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._core.preparing cimport flushes
from fastops._cpp.classes cimport ClassVersion
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._cpp.signature cimport Signature
from fastops._dispatch cimport Op
from fastops._install.models.scopes cimport Scopes
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._situation cimport NO_PROMOTION, ONE_REPLICA, PLAIN, missing, reason_of
from fastops._specialize.cache cimport Cache
from fastops._specialize.guards.template cimport ObjectTemplate
from fastops._specialize.guards.watch cimport Globals, Watch
from fastops._specialize.policy cimport (
    Account,
    Budget,
    Estimate,
    MAX_CLASSES,
    MAX_OBJECT_FAILURES,
    MAX_OBJECT_OPS,
    MAX_OBJECT_SIGNATURES,
    MAX_OBJECT_STATES,
    MAX_OP_SETS,
    MAX_REFUSED_OBJECTS,
    MAX_SIGNATURE_FAILURES,
    MAX_STATE_CHANGES,
    MAX_TEMPLATES,
    MAX_WAIT,
    bar_of,
    cover,
    is_covered,
    now,
)
from fastops._specialize.replay cimport Replay, are_leaves
from fastops._specialize.signatures cimport read_method, text_of
from fastops._specialize.specialization cimport (
    Decision,
    EXHAUSTED,
    FAILED,
    HIT,
    MISSED,
    RECORD,
    REJECTED,
    Specialization,
    WAIT,
)
from fastops._specialize.trial cimport copies_of, try_replay
from fastops._tf.eager cimport recording as taped

cdef extern from "definitions.h":
    pass

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

import weakref
from dataclasses import replace as _replace
from functools import partial
from sys import getprofile as _getprofile

import numpy as np
import tensorflow as _tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsStopped as _tapes_are_stopped

from fastops._core.reasons import text_of as _text_of
from fastops._install.lookups import of_codes as _of_codes
from fastops._install.models.declared import changes as _declarations
from fastops._install.models.declared import codes as _declared_codes
from fastops._install.models.declared import is_declared
from fastops._install.models.observers import OBSERVERS as _told, tell as _tell
from fastops._install.target import generated
from fastops._specialize.recording.alike import alike
from fastops._specialize.guards.discovery import guards_of
from fastops._specialize.guards.places import Places, code_of_users
from fastops._specialize.guards.template import UnsharedError
from fastops._specialize.libraries import is_keras
from fastops._specialize.recording.proof import objection_to_class
from fastops._specialize.recording.record import Record
from fastops._specialize.recording.warned import issue, may_issue
from fastops._specialize.recording.recording import (
    Held,
    NotReplayableError,
    as_refusal,
    recording,
)

cdef enum:
    _REQUIRED = PLAIN | ONE_REPLICA | NO_PROMOTION  # conditions on the surroundings of a call

cdef type _array = np.ndarray
cdef type _zip = zip
cdef object _plain_variable = _ResourceVariable
cdef dict _ops = {}
cdef str _NUMBERS = "biuf"
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
cdef str _FOREIGN = _text_of("foreign_code")

cdef list _observers = _told

# The extra cost of two recorded calls and the trial, by the time of one call. A long call spends
# most of its time in kernels, which a recording does not slow down. So each range of times (below
# 1 ms, 16 ms, 256 ms, and above) has an estimate of its own.
cdef list _costs = [
    Estimate(f"recording of calls of Keras's objects, {range_}", 24.0)
    for range_ in ("below 1 ms", "below 16 ms", "below 256 ms", "longer")
]


cdef int _users[MAX_OP_SETS]  # by slot, the number of objects that use it


cdef Estimate _cost_of(int64_t call_ns):
    cdef int64_t bound = 1_000_000
    cdef int i = 0
    while i < 3 and call_ns >= bound:
        bound *= 16
        i += 1
    return <Estimate>_costs[i]


def methods():
    """Return all `KerasMethod` objects that are alive."""
    return list(_methods)


# ---------------------------------------------------------------------------------------------
# The knowledge about an object
# ---------------------------------------------------------------------------------------------

@cython.final
cdef class MethodCase(Specialization):
    """The recordings for one signature, in one state of the object.

    Attributes
    ----------
    scopes : tuple
        Keras's settings and scopes for the thread.
    globals : Globals
        Guard of the module globals that the recorded code reads.
    contents : Watch
        Guard of the contents of containers among these globals, and of variables that the caller
        passes as arguments.
    codes : dict
        The code that ran in recorded calls, with its globals.
    seen : set of int
        The identities of the objects that `contents` compares.
    functions : dict of int to callable
        The functions of libraries that user code may call, by their identity.
    variables : dict of int to tf.Variable
        The variables among them, by the identity of the handle.
    left : dict
        The attributes that a call leaves in the context of the outermost layer call.
    marks : set of tuple
        Pairs of an argument's index and the name of an attribute that a call sets to None on that
        argument (a mask, for example).
    names : dict
        By kind, how many names a call generates.
    warned : list of fastops._specialize.recording.warned.Warned
        The warnings that a call issues.
    """

    cdef int64_t made_ns  # the extra time that recorded calls took
    cdef tuple scopes
    cdef Globals globals
    cdef Watch contents
    cdef dict codes
    cdef set seen
    cdef dict functions
    cdef dict variables
    cdef dict left
    cdef set marks
    cdef dict names
    cdef list warned
    cdef bint identified  # whether the signature has addresses of variables

    def __init__(self, key, scopes, Account account):
        super().__init__(key, MAX_SIGNATURE_FAILURES, account)
        self.scopes = scopes
        self.codes, self.functions, self.marks, self.warned = {}, {}, set(), []

    cdef int deoptimize(self) except -1:
        Specialization.deoptimize(self)
        self.codes, self.functions, self.marks = {}, {}, set()
        return 0

    cdef int cost(self, int64_t ns) except -1:
        """Add the time of a recorded call; once there is a replay, update the estimate of costs."""
        cdef int64_t call_ns = self.account.shortest_ns
        self.made_ns += ns - call_ns
        if self.first is None:
            _cost_of(call_ns).learn(call_ns, self.made_ns)
            self.made_ns = 0
        return 0

    cdef bint holds(self) except -1:
        """Whether the globals that the code reads, and their contents, are unchanged."""
        cdef Globals asked = self.globals  # keeps it alive: another thread may replace it
        cdef Watch contents = self.contents
        return asked.hold() and contents.hold()

    cdef str changes(self):
        """Return the globals or contents that differ, as text."""
        return self.globals.differs() or self.contents.differs()

    cdef MethodCase unbound(self, dict numbers):
        """Return the same recordings with numbers in the places of the object's variables."""
        return self.copied(numbers, NULL)

    cdef MethodCase bound(self, const vector[PyObject*]* parts):
        """Return the recordings of `unbound` with the variables of another object."""
        return self.copied(None, parts)

    cdef MethodCase copied(self, dict numbers, const vector[PyObject*]* parts):
        cdef Replay replay
        cdef MethodCase case = MethodCase(self.key, self.scopes, self.account)
        case.globals, case.contents = self.globals, self.contents
        case.codes, case.functions = self.codes, self.functions
        case.seen, case.variables = self.seen, self.variables
        case.left, case.names, case.marks = self.left, self.names, set(self.marks)
        case.warned = self.warned
        for replay in self.variants:
            under_tape = () if replay.taped is None else replay.taped.variables
            case.variants.append(
                replay.rebound(
                    _others(replay.variables, numbers, parts), _others(under_tape, numbers, parts),
                    parts == NULL,
                )
            )
        if self.first is not None:
            case.first = _with_others(self.first, numbers, parts)
        return case


cdef list _others(variables, dict numbers, const vector[PyObject*]* parts):
    """Return the numbers of variables, or the variables for numbers."""
    if parts == NULL:
        return [numbers.get(<size_t><PyObject*>variable, variable) for variable in variables]
    return [
        <object>parts[0][<int>variable] if type(variable) is int else variable
        for variable in variables
    ]


cdef object _with_others(recording, dict numbers, const vector[PyObject*]* parts):
    """Return a recording with the numbers of its variables, or with variables for numbers."""
    under_tape = recording.taped
    if under_tape is not None:
        under_tape = _with_others(under_tape, numbers, parts)
    variables = _others(recording.variables, numbers, parts)
    return _replace(recording, variables=variables, taped=under_tape)


@cython.final
cdef class SharedRecordings:
    """The recordings of all objects whose contents are those of a template.

    Attributes
    ----------
    template : ObjectTemplate
        The contents.
    cases : Cache
        By signature and scopes, the `MethodCase` without the variables of an object.
    """

    cdef ObjectTemplate template
    cdef Cache cases

    def __init__(self, ObjectTemplate template not None):
        self.template, self.cases = template, Cache(MAX_OBJECT_SIGNATURES)


@cython.final
cdef class ClassRecordings:
    """What is known about the objects of a class, once one of them has died.

    Attributes
    ----------
    outlived : bool
        Whether an object has died.
    brief : bool
        Whether the object that has died last was called at most twice. Then calls are recorded even
        if they are the first ones of an object.
    accounts : Cache
        The accounts of objects that have died before their calls were replayed.
    shared : list of SharedRecordings
        The recordings for each of the latest templates.
    """

    cdef bint outlived
    cdef bint brief
    cdef Cache accounts
    cdef list shared

    def __init__(self):
        self.accounts, self.shared = Cache(MAX_OBJECT_SIGNATURES), []

    cdef ObjectState find(self, PyObject* root):
        """Return a state with the recordings that fit an object; None if none fit."""
        cdef SharedRecordings shared
        cdef ObjectState state = ObjectState.__new__(ObjectState)
        for shared in self.shared:
            state.watch = shared.template.bind(root, &state.parts)
            if state.watch is not None:
                state.shared = shared
                return state
        return None

    cdef int publish(self, PyObject* root, ObjectState state, MethodCase case,
                     dict names) except -1:
        """Share the recordings of an object, unless they are good for no other object."""
        cdef ObjectState fitting
        cdef size_t i
        # The addresses in a signature may be those of other variables later.
        if not self.outlived or case.identified or case.warned or code_of_users(case.codes):
            return 0
        fitting = self.find(root)
        if fitting is None:
            try:
                self.shared.insert(0, SharedRecordings(ObjectTemplate(state.watch, names)))
            except UnsharedError:
                return 0
            del self.shared[MAX_TEMPLATES:]
            fitting = self.find(root)
            if fitting is None:
                return 0
        numbers = {}
        for i in range(fitting.parts.size()):
            if fitting.parts[i] != NULL:
                numbers[<size_t>fitting.parts[i]] = <int>i
        if case.globals.has_any(set(numbers)) or case.contents.has_any(set(numbers)):
            return 0
        fitting.shared.cases.replace((case.key, case.scopes), case.unbound(numbers))
        return 0


def _died(dict receivers, key, ClassRecordings of_class, _):
    """Keep the accounts of an object that has died: the next ones of its class continue them."""
    cdef Receiver receiver = receivers.pop(key, None)
    of_class.outlived = True
    if receiver is None:
        return
    of_class.brief = receiver.calls <= 2
    if receiver.replayed == 0:
        for call, account in receiver.accounts.entries.items():
            of_class.accounts.replace(call, account)


@cython.final
cdef class ObjectState:
    """One state of an object, with the calls that were recorded in it."""

    cdef Watch watch
    cdef object places
    cdef dict variables
    cdef dict tables
    cdef set seen
    cdef Cache cases
    cdef MethodCase last
    cdef list losses                # see `Scopes.stores_of`
    cdef SharedRecordings shared    # recordings that fit the object, too; None if there are none
    cdef vector[PyObject*] parts    # if so, the parts of the object by their number in the template

    def __cinit__(self):
        self.cases = Cache(MAX_OBJECT_SIGNATURES)

    def __init__(self, root, unasked):
        self.places = Places([root], unasked)
        self.watch = Watch(self.places)
        self.variables, self.tables = self.places.variables, self.places.tables
        self.seen = self.places.seen
        self.places.entries = self.places.kept = None  # the watch has taken them over

    cdef ObjectState completed(self, root, unasked):
        """Return a state in which calls may be recorded."""
        cdef ObjectState state
        if self.places is not None:
            return self
        state = ObjectState(root, unasked)
        state.cases, state.shared, state.parts = self.cases, self.shared, self.parts
        state.losses = self.losses
        return state

    cdef MethodCase case_of(self, const Signature& signature, tuple scopes):
        cdef MethodCase case = self.last
        cdef PyObject* stored
        if (
            case is not None
            and signature.Is(PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key))
            and case.scopes == scopes
        ):
            return case
        key = _key(signature), scopes
        stored = self.cases.find(key)
        if stored == NULL:
            if self.shared is not None:
                stored = self.shared.cases.find(key)
            if stored == NULL:
                return None
            case = (<MethodCase>stored).bound(&self.parts)
            if not case.holds():
                self.shared.cases.drop(key)
                return None
            self.last = self.cases.put(key, case)
            return self.last
        self.last = <MethodCase>stored
        return self.last


@cython.final
cdef class Receiver:
    """An object whose method is called.

    Attributes
    ----------
    reference : weakref
        A reference to the object.
    slot : int
        The number of the set of `Op` objects that its replays run. Objects with the same slot share
        them. -1 before there is a replay.
    states : list of ObjectState
        The known states, the most recently used first.
    accounts : dict of tuple to Account
        By signature and scopes, the cost of calls that are not replayed.
    reason, detail : str
        Once the object has been given up, the reason and its particulars.
    """

    cdef object reference
    cdef int slot
    cdef list states
    cdef ClassRecordings of_class
    cdef long long calls               # that were not replayed
    cdef int searches                  # for shared recordings: how many may still be made
    cdef Cache accounts
    cdef int64_t waited_ns             # charged to all accounts since the last success
    cdef unsigned long long paid_until  # number of replays that earlier recordings have counted
    cdef str reason
    cdef str detail
    cdef dict reasons                  # by reason, how many recordings failed
    cdef dict details                  # by reason, its latest particulars
    cdef str failure                   # why the latest recording failed; None after a success
    cdef Budget failures               # how many recordings may fail
    cdef int changes                   # number of new states since the last success
    cdef readonly unsigned long long replayed

    def __init__(self, reference, ClassRecordings of_class not None):
        self.reference, self.of_class, self.slot = reference, of_class, -1
        self.searches = MAX_TEMPLATES
        self.states, self.accounts = [], Cache(MAX_OBJECT_SIGNATURES)
        self.reasons, self.details = {}, {}
        self.failures = Budget(MAX_OBJECT_FAILURES)

    def __dealloc__(self):
        if self.slot >= 0:
            _users[self.slot] -= 1

    cdef int take_slot(self) noexcept:
        """Take the slot with the fewest users: models that live one after another share one."""
        cdef int i, least = 0
        if self.slot < 0:
            for i in range(MAX_OP_SETS):
                if _users[i] < _users[least]:
                    least = i
            self.slot = least
            _users[least] += 1
        return self.slot

    cdef int fail(self, str why, str detail) except -1:
        self.reasons[why] = self.reasons.get(why, 0) + 1
        self.failure = why
        if detail is not None:
            self.details[why] = detail
            self.failure = f"{why}: {detail}"
        if self.failures.fail():
            self.close(why, detail)
        return 0

    cdef int close(self, str why, str detail=None) except -1:
        self.reason, self.detail, self.states = why, detail, []
        self.accounts.clear()
        return 0

    cdef Account account_of(self, tuple key):
        cdef PyObject* stored = self.accounts.find(key)
        if stored != NULL:
            return <Account>stored
        stored = self.of_class.accounts.find(key)
        if stored == NULL:
            return self.accounts.put(key, Account())
        account = <Account>stored
        self.of_class.accounts.drop(key)
        return self.accounts.put(key, account)

    cdef int begin(self, Account account, bint anew) except -1:
        """Update the account when a recording begins.

        `anew`: the earlier recordings do not fit this call. If earlier replays have saved as much
        as a recording costs, the bar is reset.
        """
        cdef unsigned long long replays = self.replayed - self.paid_until
        if replays * account.shortest_ns >= <double>_cost_of(account.shortest_ns).of(
            account.shortest_ns
        ):
            account.forgive()
        elif anew:
            account.drop()
        else:
            account.restart()
        self.paid_until = self.replayed
        return 0

    cdef str changed(self):
        """Return the change since the last known state, as text for observers."""
        cdef ObjectState last
        if not _observers or not self.states:
            return None
        last = self.states[0]
        return last.watch.differs()

    cdef ObjectState state(self):
        """Return the known state whose guards hold now, or None."""
        cdef Py_ssize_t i
        cdef ObjectState state
        for i in range(PyList_GET_SIZE(self.states)):
            state = <ObjectState>PyList_GET_ITEM(self.states, i)
            if state.watch.hold():
                if i > 0:
                    self.states.insert(0, self.states.pop(i))
                return state
        return None

    cdef ObjectState share(self, PyObject* root):
        """Return a state with the recordings of objects that have died; None if none fit."""
        cdef ObjectState state
        if self.searches == 0 or PyList_GET_SIZE(self.of_class.shared) == 0:
            return None
        self.searches -= 1
        state = self.of_class.find(root)
        if state is None:
            return None
        self.states.insert(0, state)
        del self.states[MAX_OBJECT_STATES:]
        return state


cdef bytes _key(const Signature& signature):
    return PyBytes_FromStringAndSize(signature.data(), signature.size())


# ---------------------------------------------------------------------------------------------
# Methods
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class KerasMethod(Replacement):
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
        Given an object, returns whether the method first converts NumPy arrays to tensors.
    takes_zips : callable, optional
        Given an object, returns whether the method first converts its only argument to a list.
    names : dict of type to set of str, optional
        See `fastops._specialize.guards.template.ObjectTemplate`. None: objects share no recordings.
    inputs_only : bool, default False
        Whether the method converts arrays in its first argument only.
    takes_plain : bool, default False
        Whether the second argument may be a list of TensorFlow's own variables, which are then
        taken by identity in the place of the library's.
    """

    cdef readonly dict unasked
    cdef dict names
    cdef bint inputs_only
    cdef object variable
    cdef bint takes_plain
    cdef Scopes scopes
    cdef object takes_arrays
    cdef object takes_zips
    cdef dict receivers
    cdef Cache refused   # by class, how many objects may be given up
    cdef Cache classes   # by class: `ClassRecordings`
    cdef dict others     # by version, classes whose objects are not replayed
    cdef object known_declarations
    cdef unsigned long long known_after
    cdef readonly long long replayed
    cdef readonly dict reasons  # by reason, how many calls were not replayed

    def __init__(
        self, original, unasked, variable, scopes, takes_arrays=None, takes_zips=None, names=None,
        inputs_only=False, takes_plain=False,
    ):
        super().__init__(original)
        self.names, self.inputs_only, self.takes_plain = names, inputs_only, takes_plain
        self.unasked, self.variable, self.scopes = unasked, variable, scopes
        self.takes_arrays, self.takes_zips = takes_arrays, takes_zips
        self.receivers, self.refused, self.classes = {}, Cache(MAX_CLASSES), Cache(MAX_CLASSES)
        self.others, self.known_declarations = {}, 0
        self.known_after = flushes
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
        cdef ObjectState state
        cdef MethodCase case
        cdef Replay replay
        told = {"replayed": 0, "recorded": 0, "native": 0, "reasons": {}, "details": {}}
        told["refused"] = None
        for key, receiver in list(self.receivers.items()):
            if instance is not None and key != id(instance):
                continue
            told["replayed"] += receiver.replayed
            for state in receiver.states:
                for case in state.cases.values():
                    told["recorded"] += len(case.variants)
                    told["native"] += sum([replay.native_runs() for replay in case.variants])
            for why, count in receiver.reasons.items():
                told["reasons"][why] = told["reasons"].get(why, 0) + count
            told["details"].update(receiver.details)
            if receiver.reason is not None:
                detail = "" if receiver.detail is None else f": {receiver.detail}"
                told["refused"] = f"{receiver.reason}{detail}"
        return told

    def recordings(self, instance):
        """Return the dependencies and the ops of each recording of an object.

        Returns
        -------
        list of dict
            ``"arguments"``: the arguments of its calls, as text. ``"scopes"``: the scopes that were
            open. ``"places"``: the paths of what is compared of the object. ``"ignored"``: the
            paths of attributes that are not compared. ``"codes"``: the names of the code that ran.
            The other entries, such as ``"ops"``, are from
            `Replay.describe`.
        """
        cdef Receiver receiver = self.receivers.get(id(instance))
        cdef ObjectState state
        cdef MethodCase case
        cdef Replay replay
        described = []
        for state in [] if receiver is None else receiver.states:
            for case in state.cases.values():
                for replay in case.variants:
                    described.append({
                        "arguments": case.arguments(),
                        "scopes": case.scopes,
                        "places": state.watch.paths(),
                        "ignored": state.watch.ignored(),
                        "codes": sorted({code.co_name for code, _ in case.codes}),
                        **replay.describe(),
                    })
        return described

    cdef Receiver receiver_of(self, PyObject* root):
        """Return the `Receiver` of an object; None if calls of its class are not replayed."""
        cdef PyObject* stored
        key = <size_t>root
        stored = PyDict_GetItem(self.receivers, key)
        if stored != NULL:
            return <Receiver>stored
        kind = <object>Py_TYPE(<object>root)
        if self.known_declarations != _declarations[0]:
            self.known_declarations = _declarations[0]
            self.others.clear()
        version = ClassVersion(<PyTypeObject*>kind)
        if version != 0 and self.others.get(version):
            return None
        if not is_keras(kind) and not is_declared(kind):
            why = objection_to_class(kind)
            if why is not None:
                if len(self.others) >= MAX_CLASSES:
                    self.others.clear()
                self.others[version] = why
                return None
        stored = self.refused.find(kind)
        if stored != NULL and (<Budget>stored).is_spent():
            return None
        stored = self.classes.find(kind)
        of_class = self.classes.put(kind, ClassRecordings()) if stored == NULL else <object>stored
        try:
            reference = weakref.ref(<object>root, partial(_died, self.receivers, key, of_class))
        except TypeError:
            return None
        receiver = Receiver(reference, of_class)
        self.receivers[key] = receiver
        return receiver

    cdef int reconsider(self) except -1:
        """Forget the objects that were given up: their classes may be declared now."""
        cdef Receiver receiver
        for key, receiver in list(self.receivers.items()):
            if receiver.reason is not None:
                del self.receivers[key]
        self.refused.clear()
        return 0

    cdef PyObject* leave(self, str why, PyObject* const* args, size_t nargsf,
                         PyObject* keywords, str detail=None, bytes key=None) except NULL:
        """Call the original method, and count the reason.

        Observers also get the detail, and the signature's key if it has been read.
        """
        self.reasons[why] = self.reasons.get(why, 0) + 1
        if _observers:
            self.tell(args[0], why, detail, None if key is None else text_of(key))
        return call_original(self, args, nargsf, keywords)

    cdef PyObject* wait(self, Receiver receiver, Account account, bytes key, PyObject* const* args,
                        size_t nargsf, PyObject* keywords) except NULL:
        """Call the original method, since a recording would not pay yet, and charge its time.

        Calls inside it do not charge accounts of their own, since a recording will replay them,
        too. An object may wait too long because its signature or state keeps changing. Then the
        calls inside it get accounts, because parts of the object may not change.
        """
        cdef PyObject* result
        cdef int64_t begin
        detail = receiver.changed() or receiver.failure
        if is_covered():
            return self.leave(_FIRST, args, nargsf, keywords, detail, key)
        cover(account.calls == 0 or not _waits_too_long(receiver, account))
        begin = now()
        try:
            result = self.leave(_FIRST, args, nargsf, keywords, detail, key)
        finally:
            cover(False)
        begin = now() - begin
        account.charge(begin)
        receiver.waited_ns += account.shortest_ns
        return result

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

    cdef int tell(self, PyObject* root, str why, str detail, str arguments) except -1:
        """Notify observers of a call: why it is not replayed (None: it is), and the particulars."""
        if detail is not None:
            why = f"{why}: {detail}"
        _tell(self.original.__qualname__, <object>root, arguments, why)
        return 0

    def forget(self):
        """Forget what was learned of objects that have died."""
        self.classes.clear()

    def reset_counters(self):
        """Reset the counts of calls."""
        self.replayed, self.reasons = 0, {}

    cdef int note(self, Receiver receiver, MethodCase case, error) except -1:
        """Count a failed recording."""
        refused = as_refusal(error)
        kind = type(receiver.reference())
        if refused.sentence == _FOREIGN and not is_keras(kind) and not is_declared(kind):
            receiver.reasons[refused.sentence] = 1
            receiver.details[refused.sentence] = refused.detail
            receiver.close(refused.sentence, refused.detail)
        else:
            receiver.fail(refused.sentence, refused.detail)
        if case is not None:
            case.refuse(refused.sentence, refused.detail)
        # Another object of Keras's class may call another function of the user.
        if receiver.reason is not None and not (
            refused.sentence == _FOREIGN and is_keras(kind)
        ):
            self.budget_of(receiver).fail()
        return 0

    cdef Budget budget_of(self, Receiver receiver):
        """Return the budget of the object's class: how many of its objects may be given up."""
        kind = type(receiver.reference())
        cdef PyObject* entry = self.refused.find(kind)
        return (
            self.refused.put(kind, Budget(MAX_REFUSED_OBJECTS)) if entry == NULL else <Budget>entry
        )


cdef str _why_other(PyObject* root):
    """Return why objects of a class of a user are not replayed, for observers."""
    return objection_to_class(type(<object>root)) if _observers else None


cdef bint _waits_too_long(Receiver receiver, Account account) noexcept:
    cdef int64_t call_ns = account.shortest_ns
    return receiver.waited_ns >= MAX_WAIT * bar_of(_cost_of(call_ns).of(call_ns))


cdef Op _op(key):
    """Return the `Op` of a step. Each step has one of its own, which remembers its last key."""
    op = _ops.get(key)
    return _ops.setdefault(key, Op(key[2])) if op is None else op


cdef bint _has_arrays(PyObject* const* args, Py_ssize_t n) noexcept:
    cdef Py_ssize_t i
    for i in range(n):
        if Py_TYPE(<object>args[i]) == <PyTypeObject*>_array:
            return True
    return False


cdef PyObject* _called(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef KerasMethod self = <KerasMethod>callable
    cdef Signature signature
    cdef Receiver receiver
    cdef ObjectState state
    cdef MethodCase case = None
    cdef Decision decision
    cdef PyObject* result = NULL
    cdef Py_ssize_t i, n = PyVectorcall_NARGS(nargsf), named
    cdef vector[PyObject*] converted
    cdef PyObject* const* given = args
    cdef list tensors = None
    cdef tuple scopes
    cdef int collects, unmet
    cdef Account account
    cdef bytes key
    if not live or n == 0:
        return call_original(self, args, nargsf, keywords)
    unmet = missing(_REQUIRED)
    if unmet:
        return self.leave(reason_of(unmet), args, nargsf, keywords)
    if self.known_after != flushes:
        self.receivers.clear()
        self.classes.clear()
        self.known_after = flushes
    receiver = self.receiver_of(args[0])
    if receiver is None:
        return self.leave(_OTHERS, args, nargsf, keywords, _why_other(args[0]))
    if receiver.reason is not None and self.known_declarations != _declarations[0]:
        self.reconsider()
        receiver = self.receiver_of(args[0])
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
    named = 0 if keywords == NULL else len(<tuple>keywords)
    if self.takes_arrays is not None and _has_arrays(args + 1, n - 1):
        if not self.takes_arrays(<object>args[0]) or (
            self.inputs_only and _has_arrays(args + 2, n - 2)
        ):
            return self.leave(_ARGUMENT, args, nargsf, keywords)
        tensors = []
        converted.assign(args, args + n + named)
        for i in range(1, n):
            if Py_TYPE(<object>args[i]) == <PyTypeObject*>_array:
                if (<object>args[i]).dtype.kind not in _NUMBERS:
                    return self.leave(_ARGUMENT, args, nargsf, keywords)
                try:
                    tensors.append(_tf.convert_to_tensor(<object>args[i]))
                except Exception:  # the original method will raise the error
                    return self.leave(_ARGUMENT, args, nargsf, keywords)
                converted[i] = PyList_GET_ITEM(tensors, len(tensors) - 1)
        given = converted.data()
        scopes = scopes + ("arrays",)
    if not read_method(&signature, given + 1, n - 1, keywords, self.identified(given, n)):
        return self.leave(_ARGUMENT, args, nargsf, keywords)
    state = receiver.state()
    if state is None:
        state = receiver.share(args[0])
    if state is not None:
        case = state.case_of(signature, scopes)
    if case is not None:
        if case.warned and not may_issue(case.warned):
            return self.leave(_WARNING, args, nargsf, keywords, None, case.key)
        decision = case.run(signature, &result)
        if decision == HIT:
            receiver.replayed += 1
            self.replayed += 1
            if _observers:
                self.tell(args[0], None, None, case.arguments())
            if case.left is not None:
                self.scopes.call_context().__dict__.update(case.left)
            for leaf, name in case.marks:
                setattr(<object>signature.object(leaf), name, None)
            if case.names is not None:
                self.scopes.give_names(case.names)
            if state.losses is not None:
                self.scopes.clear(state.losses, scopes)
            return result if not case.warned else _warning(case.warned, result)
        if decision == MISSED:
            detail = case.changes() if _observers else None
            return self.leave(_CODE, args, nargsf, keywords, detail, case.key)
        if decision == FAILED:
            return self.leave(_FAILED, args, nargsf, keywords, None, case.key)
        account, key = case.account, case.key
        decision = case.next(_cost_of(account.shortest_ns).of(account.shortest_ns))
        if decision == EXHAUSTED:
            return self.leave(_VALUES, args, nargsf, keywords, None, key)
        if decision == REJECTED:
            return self.leave(case.reason or _FAILED, args, nargsf, keywords, case.detail, key)
    else:
        receiver.calls += 1
        key = _key(signature)
        account = receiver.account_of((key, scopes))
        due = (receiver.calls > 1 or receiver.of_class.brief) and account.is_due(
            _cost_of(account.shortest_ns).of(account.shortest_ns)
        )
        decision = RECORD if due else WAIT
    if decision == WAIT:
        return self.wait(receiver, account, key, args, nargsf, keywords)
    # A recording keeps most objects that it makes, so garbage collections would be useless work.
    collects = PyGC_Disable()
    try:
        return _record(
            self, receiver, state, case, account, scopes, signature, given, args, n, nargsf,
            keywords,
        )
    finally:
        if collects:
            PyGC_Enable()


# ---------------------------------------------------------------------------------------------
# Recordings
# ---------------------------------------------------------------------------------------------

cdef PyObject* _record(KerasMethod self, Receiver receiver, ObjectState state, MethodCase case,
                       Account account, tuple scopes, const Signature& signature,
                       PyObject* const* given, PyObject* const* args, Py_ssize_t n, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef PyObject* result = NULL
    cdef Signature after
    cdef Py_ssize_t i
    cdef list copies = None
    cdef dict around = None
    cdef int64_t begin
    if _tapes_are_stopped():  # recording restarts the tapes, so it cannot run in stop_recording()
        return call_original(self, args, nargsf, keywords)
    if _getprofile() is not None:  # recording would have to replace this profile function
        return self.leave(_PROFILED, args, nargsf, keywords)
    begin = now()
    if case is None:
        receiver.begin(account, state is None and len(receiver.states) != 0)
    elif case.first is None:
        receiver.begin(account, len(case.variants) != 0)
    detail = receiver.changed() if state is None else None
    root = <object>args[0]
    arguments = [<object>signature.object(i) for i in range(<Py_ssize_t>signature.num_leaves())]
    holders = [<object>signature.holder(i) for i in range(<Py_ssize_t>signature.num_holders())]
    identities = [
        <object>signature.identity(i) for i in range(<Py_ssize_t>signature.num_identities())
    ]
    context = self.scopes.call_context()
    if context is not None:
        around = dict(context.__dict__)
    try:
        if state is None:
            state = ObjectState(root, self.unasked)
            receiver.changes += 1
            if receiver.changes > MAX_STATE_CHANGES:
                receiver.close(_text_of("state_changes"))
                return call_original(self, args, nargsf, keywords)
            receiver.states.insert(0, state)
            del receiver.states[MAX_OBJECT_STATES:]
        elif state.places is None:
            receiver.states.remove(state)
            state = state.completed(root, self.unasked)
            receiver.states.insert(0, state)
        if state.losses is None:
            state.losses = self.scopes.stores_of(root)
        names = self.scopes.names_given()
    except Exception as why:  # for example, another thread is changing the object
        self.note(receiver, case, why)
        return call_original(self, args, nargsf, keywords)
    if case is None:
        case = MethodCase(_key(signature), scopes, account)
        state.cases.replace((case.key, scopes), case)
    second = case.first is not None and case.holds()
    marked = [set(vars(tensor)) for tensor in arguments]
    if second:
        try:
            copies = copies_of(case.first.variables)
        except Exception as why:  # for example, a variable has no value
            self.note(receiver, case, why)
            return call_original(self, args, nargsf, keywords)
    self.reasons[_RECORDED] = self.reasons.get(_RECORDED, 0) + 1
    if _observers:
        self.tell(args[0], _RECORDED, detail, case.arguments())
    record = Record(_declared_codes())
    try:
        with record:
            result = call_original(self, given, nargsf, keywords)
    except Exception:
        case.fail()
        raise
    if not record.started or record.witness is None:
        return result
    try:
        if record.witness.objection is not None:
            raise NotReplayableError(*record.witness.objection)
        if not (
            read_method(&after, given + 1, n - 1, keywords, self.identified(given, n))
            and after.Is(PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key))
            and are_leaves(arguments, after)
        ):
            raise NotReplayableError("arguments_changed")
        changed = state.watch.differs()
        if changed is not None:
            raise NotReplayableError(
                "object_changed", record.witness.proof.blamed_for(changed)
            )
        if self.scopes.reads_losses(record.witness.codes):
            raise NotReplayableError("adds_losses")
        given_now = {
            kind: count - names.get(kind, 0)
            for kind, count in self.scopes.names_given().items()
            if count != names.get(kind, 0)
        } or None
        if second or case.variants:
            if case.names != given_now:
                raise NotReplayableError("names_differ")
            if case.warned != record.recorder.warned:
                raise NotReplayableError("warnings_differ")
        case.names, case.warned = given_now, record.recorder.warned
        case.marks.update(
            (leaf, name)
            for leaf, tensor in enumerate(arguments)
            for name in vars(tensor)
            if name not in marked[leaf]
        )
        _learn(self, receiver, state, case, record.recorder, record.witness, arguments, holders,
               identities, second, copies,
               _left(self.scopes, context, around, scopes, args[0]), signature, <object>result)
        case.cost(now() - begin)
        if self.names is not None:
            receiver.of_class.publish(args[0], state, case, self.names)
    except Exception as why:  # the user's call has succeeded, so only the recording fails
        self.note(receiver, case, why)
    return result


cdef PyObject* _warning(list warned, PyObject* result) except NULL:
    """Issue the warnings of a call, and return the result."""
    try:
        issue(warned)
    except BaseException:
        Py_DECREF(<object>result)
        raise
    return result


cdef dict _left(Scopes of, object context, dict around, tuple scopes, PyObject* root):
    """Return the attributes that a call has set in the context of an outer call; None if none."""
    cdef tuple read
    if of.call_context() is not context:
        raise NotReplayableError("scope_left_open")
    if context is None:
        read = of.read(root)
        if read is None or scopes[: len(read)] != read:
            raise NotReplayableError("settings_changed")
        return None
    changed = {
        name: value
        for name, value in context.__dict__.items()
        if name not in around or around[name] is not value
    }
    for value in changed.values():
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise NotReplayableError("call_context")
    return changed or None


cdef int _learn(KerasMethod self, Receiver receiver, ObjectState state, MethodCase case, recorder,
                witness, list arguments, list holders, list identities, bint second, list copies,
                dict left, const Signature& signature, result) except -1:
    """Learn from a recorded call: keep the first recording, or make the replay."""
    cdef Replay replay
    cdef list foreign = [
        value for value in identities if <size_t><PyObject*>value not in state.seen
    ]
    case.identified = bool(identities)
    if _holds_container(result, state.seen):
        raise NotReplayableError("container_returned")
    if (second or case.variants) and not case.holds():
        raise NotReplayableError("read_changed", witness.proof.blamed_for(case.changes()))
    if not (second or case.variants) or not case.codes.keys() >= witness.codes.keys():
        codes, functions = witness.codes, witness.proof.functions
        if second or case.variants:
            codes, functions = {**case.codes, **codes}, {**case.functions, **functions}
        pairs = [(code, namespace) for (code, _), namespace in codes.items()]
        globals_now, places = guards_of(
            codes, state.places, self.unasked, [*foreign, *functions.values()],
            partial(_of_codes, pairs),
        )
        case.functions = functions
        second = second and case.codes.keys() >= witness.codes.keys()
        case.codes, case.globals, case.contents = codes, globals_now, Watch(places)
        case.seen, case.variables = places.seen, places.variables
    if _holds_container(result, case.seen):
        raise NotReplayableError("container_returned")
    given = {id(argument) for argument in arguments if argument.dtype != _tf.resource}
    if (
        state.watch.has_any(given) or case.globals.has_any(given) or case.contents.has_any(given)
    ):
        raise NotReplayableError("argument_kept")
    variables = {**state.variables, **case.variables}
    held = Held(state.seen | case.seen, recorder.first_id, taped(), state.tables)
    recorded = recording(recorder, arguments, holders, result, variables, held, MAX_OBJECT_OPS)
    for step in recorded.steps:
        if step.seed is None and step.lasts and step.outputs:
            raise NotReplayableError("no_trial", step.op_name)
    if not second or case.left != left:
        case.first, case.left = recorded, left
        return 0
    if not alike(case.first, recorded):
        case.first = recorded
        raise NotReplayableError("ops_differ")
    slot = receiver.take_slot()
    replay = Replay(recorded, lambda position, name: _op((slot, position, name)), generated, ())
    try_replay(replay, signature, copies, result, recorded.drawn.outputs)
    case.variants.append(replay)
    case.first = None
    receiver.failures.succeed()
    receiver.failure = None
    receiver.changes, receiver.waited_ns = 0, 0
    self.budget_of(receiver).lift()
    return 0


cdef bint _holds_container(value, set seen) except -1:
    if isinstance(value, (list, dict)) and <size_t><PyObject*>value in seen:
        return True
    if isinstance(value, dict):
        value = list((<dict>value).values())
    if isinstance(value, (list, tuple)):
        for item in value:
            if _holds_container(item, seen):
                return True
    return False


enable(KerasMethod)
