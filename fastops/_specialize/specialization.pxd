# What is known of the calls of one signature.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.signature cimport Signature
from fastops._specialize.policy cimport Account


cdef enum State:
    WAITING
    RECORDED
    ACTIVE
    REFUSED

# What becomes of a call.
cdef enum Decision:
    HIT          # it has been replayed
    MISSED       # a guard does not hold: Python runs
    FAILED       # an op of the replay has failed: Python runs, and raises what there is to raise
    EXHAUSTED    # tensor values decide what runs, and no more variants are recorded
    REJECTED     # calls of this signature cannot be recorded
    WAIT         # a recording would not pay yet
    RECORD       # it is to be recorded


cdef class Specialization:
    cdef readonly bytes key
    cdef Account account
    cdef readonly list variants     # of Replay: they differ by tensor values that Python read
    cdef readonly object first      # the first recording, until a second one confirms it
    cdef readonly str reason        # why the last recording failed; None if none has
    cdef readonly str detail        # and the particulars, if there are any
    cdef readonly int failures      # of recordings
    cdef int most_failures
    cdef int misses                 # of guards, since the last hit

    cdef State state(self) noexcept
    # Whether what the recordings depend on, beside the arguments, is as it was.
    cdef bint holds(self) except -1
    # Replays the call, or says what else becomes of it. The result is a new reference.
    cdef Decision run(self, const Signature& signature, PyObject** result) except *
    # Says what becomes of a call that has not been replayed, where a recording costs so much.
    cdef Decision next(self, int64_t cost_ns) noexcept
    # Takes up that a recording begins.
    cdef int begin(self) except -1
    # Counts a call that raised while it was recorded.
    cdef int fail(self) except -1
    # Takes up that a call could not be recorded.
    cdef int refuse(self, str reason, str detail) except -1
    # Drops the recordings: what they depend on has changed for good.
    cdef int deoptimize(self) except -1
