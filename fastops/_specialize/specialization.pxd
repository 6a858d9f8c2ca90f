# The specialization of the calls of one signature.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.signature cimport Signature
from fastops._specialize.policy cimport Account
from fastops._specialize.replay cimport Replay
from fastops._specialize.states cimport State


# The decision about a call.
cdef enum Decision:
    HIT          # the call has been replayed
    MISSED       # a guard does not hold: Python runs
    FAILED       # an op of the replay has failed: Python runs, and raises the error
    EXHAUSTED    # tensor values decide which ops run, and no more variants are recorded
    REJECTED     # calls of this signature cannot be recorded
    WAIT         # a recording would not pay yet
    RECORD       # the caller should record the call


# The reason, as text, why a call is not replayed after a decision other than HIT and REJECTED. With
# RECORD, the reason is that another call has the turn.
cdef str reason_of_decision(Decision decision)


cdef class Specialization:
    cdef readonly bytes key
    cdef Account account
    cdef readonly list variants     # Replays, which differ by tensor values that Python read
    cdef bint branches              # whether `variants` has some that follow random ops
    cdef readonly list pending      # Replays of some branches: others have not been recorded yet
    cdef int repeats                # recordings since the last one of a new branch
    cdef readonly object first      # the first recording, until a second one confirms it
    cdef readonly str reason        # why the last recording failed; None if no recording has failed
    cdef readonly str detail        # details of the reason, or None
    cdef readonly int failures      # failed recordings
    cdef int most_failures
    cdef int misses                 # calls since the last hit for which `holds` was false
    cdef readonly str missed        # what had changed at the last miss; None if there was no miss
    cdef str text                   # see `arguments`

    cdef State state(self) noexcept
    # The arguments of its calls as text, for example "(float32[2,3], axis=-1)".
    cdef str arguments(self)
    # Whether the guards hold that all variants share.
    cdef bint holds(self) except -1
    # The first guard of `holds` that does not hold, as text. None if all of them hold again.
    cdef str change(self)
    # What these guards compare: paths, by the kind of guard.
    cdef dict guards(self)
    # Replays the call, or returns another decision. The result is a new reference.
    cdef Decision run(self, const Signature& signature, PyObject** result) except *
    # Whether the guards of a variant hold.
    cdef bint is_current(self, Replay replay) except -1
    # `run`, if some variants are branches that a call takes by what its random ops draw.
    cdef Decision run_branches(self, list variants, const Signature& signature,
                               PyObject** result) except *
    # Adds the replay of a recording.
    cdef int add(self, Replay replay) except -1
    # Decides about a call that has not been replayed. `cost_ns`: the expected cost of a recording.
    cdef Decision next(self, int64_t cost_ns) noexcept
    # Notes that a recording starts.
    cdef int begin(self) except -1
    # Counts a call that raised while it was recorded.
    cdef int fail(self) except -1
    # Whether recordings have failed too often.
    cdef bint is_given_up(self) noexcept
    # Notes that a call could not be recorded.
    cdef int refuse(self, str reason, str detail) except -1
    # Drops the recordings, since their guards no longer hold.
    cdef int deoptimize(self) except -1
