# distutils: language = c++
"""The specialization of the calls of one signature: a state machine.

`fastops._specialize` describes the states. `Specialization.run` decides about each call, in this
order:

1. If a guard of the recordings does not hold, Python runs (MISSED). `missed` tells what differed.
2. The variants are tried in order. The first one that finds the tensor values of its recording
   gives the result (HIT). If an op fails before anything has an effect, Python runs (FAILED).
   If the variants are branches that a call takes by what its random ops draw, the call draws once:
   the variants that are tried next take what the first one has drawn.
3. Otherwise the call may be recorded (RECORD), unless there are too many variants (EXHAUSTED),
   recordings have failed too often (REJECTED), or a recording would not pay yet (WAIT).
"""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.signature cimport Signature
from fastops._specialize.native cimport DONE, Outcome
from fastops._specialize.native cimport FAILED as REPLAY_FAILED
from fastops._specialize.policy cimport (
    Account, MAX_BRANCH_REPEATS, MAX_GUARD_MISSES, MAX_VARIANTS,
)
from fastops._specialize.replay cimport Replay
from fastops._specialize.signatures cimport text_of
from fastops._specialize.states cimport State, name_of_state, state_of

cdef extern from "definitions.h":
    pass

from fastops._core.reasons import text_of as _text_of
from fastops._specialize.recording.recording import is_whole as _is_whole

cdef dict _REASONS = {
    RECORD: _text_of("turn_taken"),
    MISSED: _text_of("global_changed"),
    FAILED: _text_of("op_failed"),
    EXHAUSTED: _text_of("values_decide"),
    WAIT: _text_of("recording_not_due"),
}


cdef str reason_of_decision(Decision decision):
    return _REASONS[decision]


cdef class Specialization:
    """The recordings of the calls of one signature, and its state.

    Parameters
    ----------
    key : bytes
        The signature.
    most_failures : int
        The number of failed recordings after which no more are made.
    account : Account, optional
        The account that calls charge while they run in Python.
    """

    def __init__(self, bytes key, int most_failures, Account account=None):
        self.key, self.most_failures = key, most_failures
        self.account = Account() if account is None else account
        self.variants, self.pending = [], []

    cdef State state(self) noexcept:
        return state_of(
            PyList_GET_SIZE(self.variants) != 0,
            self.failures >= self.most_failures,
            self.first is not None or PyList_GET_SIZE(self.pending) != 0,
        )

    cdef str arguments(self):
        if self.text is None:
            self.text = text_of(self.key)
        return self.text

    cdef bint holds(self) except -1:
        return True

    cdef str change(self):
        return None

    cdef dict guards(self):
        return {}

    cdef Decision run(self, const Signature& signature, PyObject** result) except *:
        cdef Replay replay
        cdef Outcome outcome
        cdef Py_ssize_t i
        cdef list variants = self.variants  # another thread may drop them during a replay
        if self.branches:
            return self.run_branches(variants, signature, result)
        for i in range(PyList_GET_SIZE(variants)):
            replay = <Replay>PyList_GET_ITEM(variants, i)
            if not self.is_current(replay):
                return MISSED
            outcome = replay.run(signature, result)
            if outcome == DONE:
                self.misses = 0
                return HIT
            if outcome == REPLAY_FAILED:
                return FAILED
        if PyList_GET_SIZE(variants) != 0:
            self.missed = (<Replay>variants[0]).changed_value(signature)
        return RECORD

    cdef bint is_current(self, Replay replay) except -1:
        """Whether the guards of a variant hold. If not, note what has changed."""
        if not replay.fits():
            self.missed = replay.change()
            return False
        if not self.holds():
            self.missed = self.change()
            self.misses += 1
            if self.misses >= MAX_GUARD_MISSES:
                self.deoptimize()
            return False
        return True

    cdef Decision run_branches(self, list variants, const Signature& signature,
                               PyObject** result) except *:
        """Run the variants in order. Some of them are branches: no call may draw twice."""
        cdef Replay replay
        cdef Outcome outcome
        cdef list drawn = []
        for replay in variants:  # once a call has drawn, it can no longer be a miss
            if not self.is_current(replay):
                return MISSED
        for replay in variants:
            outcome = replay.run_branch(signature, result, drawn)
            if outcome == DONE:
                self.misses = 0
                return HIT
            if outcome == REPLAY_FAILED:
                return FAILED
        if PyList_GET_SIZE(variants) != 0:
            self.missed = (<Replay>variants[0]).changed_value(signature)
        return RECORD

    cdef int add(self, Replay replay) except -1:
        cdef Replay other
        cdef list known = []
        if not replay.branches:
            self.variants.append(replay)
            return 0
        for other in self.pending:
            if other.values_before == replay.values_before:
                if other.branches == replay.branches:
                    self.repeats += 1
                    if self.repeats >= MAX_BRANCH_REPEATS:
                        self.failures, self.reason = self.most_failures, _text_of("branch_missing")
                    return 0
                known.append(other)
        known.append(replay)
        self.pending.append(replay)
        self.repeats = 0
        if _are_whole(known):
            self.pending = [other for other in self.pending if other not in known]
            self.branches = True
            self.variants = self.variants + known
        return 0

    cdef Decision next(self, int64_t cost_ns) noexcept:
        if PyList_GET_SIZE(self.variants) + PyList_GET_SIZE(self.pending) >= MAX_VARIANTS:
            return EXHAUSTED
        if self.failures >= self.most_failures:
            return REJECTED
        if self.first is None and not self.account.is_due(cost_ns):
            return WAIT
        return RECORD

    cdef int begin(self) except -1:
        if PyList_GET_SIZE(self.variants) + PyList_GET_SIZE(self.pending) == 0:
            self.account.restart()
        else:  # variants differ by values: each call may need one more
            self.account.drop()
        return 0

    cdef int fail(self) except -1:
        self.failures += 1
        return 0

    cdef bint is_given_up(self) noexcept:
        return self.failures >= self.most_failures

    cdef int refuse(self, str reason, str detail) except -1:
        self.fail()
        self.first, self.reason, self.detail = None, reason, detail
        self.account.drop()
        return 0

    cdef int deoptimize(self) except -1:
        self.variants, self.first, self.misses = [], None, 0
        self.pending, self.repeats, self.branches = [], 0, False
        return 0

    def describe(self):
        """Describe the state and the recordings.

        Returns
        -------
        dict
            The ``"arguments"`` of its calls, as text; the ``"state"``; the ``"variants"``, each as
            `Replay.describe` returns it, with all ``"guards"``; what had changed at the last miss,
            ``"missed"``; the ``"reason"`` why the last recording failed, and the ``"detail"`` of
            this reason.
        """
        shared = self.guards()
        variants = [(<Replay>replay).describe() for replay in self.variants]
        for variant in variants:
            variant["guards"].update(shared)
        return {
            "arguments": self.arguments(),
            "state": name_of_state(self.state()),
            "variants": variants,
            "missed": self.missed,
            "reason": self.reason,
            "detail": self.detail,
        }


cdef bint _are_whole(list replays) except -1:
    """Whether replays have all branches of a call."""
    cdef Replay replay
    branches = []
    for replay in replays:
        branches.append(replay.branches)
    return _is_whole(branches)
