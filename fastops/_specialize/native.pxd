# The kernels of a replay.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.utility cimport pair
from libcpp.vector cimport vector

from fastops._cpp.options cimport Thread
from fastops._cpp.plan cimport NativePlan
from fastops._cpp.signature cimport Signature
from fastops._tf.tensor cimport Tensor


cdef enum Outcome:
    DONE
    DIFFERS  # from the recorded call, before anything was done that stays
    FAILED   # likewise


cdef class Native:
    cdef NativePlan plan
    cdef tuple ops             # of the steps
    cdef list attrs            # that tapes are told of each; None where they are told of none
    cdef tuple constants       # inputs of steps, after the numbered values
    cdef int num_values
    cdef tuple accessed        # variables that are read, but for those among the arguments
    cdef vector[int] given     # the numbers of the handles of these
    cdef vector[int] made      # the numbers of the values that the result asks for
    cdef int first_lasting     # the step of which the first thing stays
    cdef bint onednn
    cdef bint waits            # whether a step is another device's, that may be slow to take it
    cdef vector[pair[int, int]] makers  # if so, by the value's place: the step, and which output
    cdef int64_t last_ns       # that the last run took
    cdef long long runs        # that have succeeded

    # Whether the calls of the ops on this thread would run these kernels, and no profile is open.
    # The caller checks for tapes.
    cdef bint may_run(self, Thread* thread) except -1
    # Fills in the values that the result asks for, new references; all of them if tapes are told.
    cdef Outcome run(self, const Signature& signature, PyObject** values, Thread* thread) except *
    cdef object wrapped(self, Tensor& tensor, size_t i)
    cdef int record(self, PyObject** values) except -1


# Whether the calls of all steps were direct, by what was noted of each, and tapes heard of those
# that they are to hear of.
cdef bint are_direct(list entries, steps, bint recorded) except -1
