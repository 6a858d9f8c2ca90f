# distutils: language = c++
"""The objects whose methods are called, with their known states and their failed recordings."""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject

from fastops._specialize.cache cimport Cache
from fastops._specialize.objects.case cimport MethodCase, cost_for
from fastops._specialize.objects.state cimport ClassRecordings, ObjectState
from fastops._specialize.policy cimport (
    Account,
    Budget,
    MAX_OBJECT_FAILURES,
    MAX_OBJECT_SIGNATURES,
    MAX_OBJECT_STATES,
    MAX_OP_SETS,
    MAX_STATE_CHANGES,
    MAX_TEMPLATES,
    is_overdue,
)
from fastops._specialize.replay cimport Replay

cdef extern from "definitions.h":
    pass

import weakref
from functools import partial

from fastops._core.reasons import text_of as _text_of

cdef str _CHANGES = _text_of("state_changes")

cdef int _users[MAX_OP_SETS]  # by slot, the number of objects that use it


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

    cdef int succeed(self) except -1:
        self.failures.succeed()
        self.failure = None
        self.changes, self.waited_ns = 0, 0
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

    cdef void wait(self, Account account) noexcept:
        self.waited_ns += account.shortest_ns
        self.charged = account

    cdef bint waits_too_long(self, Account account) noexcept:
        # Nothing is known yet of a new signature. Its calls may take as long as those of another.
        cdef Account known = account if account.calls != 0 else self.charged
        return known is not None and is_overdue(self.waited_ns, cost_for(known))

    cdef int begin(self, Account account, bint anew) except -1:
        cdef unsigned long long replays = self.replayed - self.paid_until
        account.begin(cost_for(account), <double>replays * account.shortest_ns, anew)
        self.paid_until = self.replayed
        return 0

    cdef str changed(self):
        cdef ObjectState last
        if not self.states:
            return None
        last = self.states[0]
        return last.watch.differs()

    cdef int miss(self) except -1:
        cdef ObjectState last
        cdef MethodCase case
        if not self.states:
            return 0
        last = self.states[0]
        change = last.watch.differs()
        for case in last.all_cases():
            case.missed = change
        return 0

    cdef ObjectState state(self):
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

    cdef ObjectState recordable(self, ObjectState state, root, unasked, unasked_of):
        if state is None:
            state = ObjectState(root, unasked, unasked_of)
            self.changes += 1
            if self.changes > MAX_STATE_CHANGES:
                self.close(_CHANGES)
                return None
            self.states.insert(0, state)
            del self.states[MAX_OBJECT_STATES:]
        elif state.places is None:
            self.states.remove(state)
            state = state.completed(root, unasked, unasked_of)
            self.states.insert(0, state)
        return state

    cdef int count_in(self, dict description) except -1:
        cdef ObjectState state
        cdef MethodCase case
        cdef Replay replay
        cdef dict reasons = description["reasons"]
        description["replayed"] += self.replayed
        for state in self.states:
            for case in state.all_cases():
                description["recorded"] += len(case.variants)
                description["native"] += sum([replay.native_runs() for replay in case.variants])
        for why, count in self.reasons.items():
            reasons[why] = reasons.get(why, 0) + count
        description["details"].update(self.details)
        if self.reason is not None:
            detail = "" if self.detail is None else f": {self.detail}"
            description["refused"] = f"{self.reason}{detail}"
        return 0

    cdef list recordings(self):
        cdef ObjectState state
        cdef MethodCase case
        described = []
        for state in self.states:
            for case in state.all_cases():
                for variant in case.describe()["variants"]:
                    described.append({
                        "arguments": case.arguments(),
                        "scopes": case.scopes,
                        "places": state.watch.paths(),
                        "ignored": state.watch.ignored(),
                        "codes": sorted({code.co_name for code, _ in case.codes}),
                        "missed": case.missed,
                        **variant,
                    })
        return described

    cdef dict description(self, tuple key):
        cdef ObjectState state
        cdef MethodCase case
        cdef PyObject* stored
        for state in self.states:
            stored = state.cases.find(key)
            if stored == NULL:
                stored = state.batches.find(key)
            if stored != NULL:
                case = <MethodCase>stored  # another thread may drop it meanwhile
                described = case.describe()
                for variant in described["variants"]:
                    variant["guards"]["places"] = state.watch.paths()
                return described
        return None


cdef Receiver receive(dict receivers, PyObject* root, ClassRecordings of_class):
    key = <size_t>root
    try:
        reference = weakref.ref(<object>root, partial(_died, receivers, key, of_class))
    except TypeError:
        return None
    receiver = Receiver(reference, of_class)
    receivers[key] = receiver
    return receiver


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
