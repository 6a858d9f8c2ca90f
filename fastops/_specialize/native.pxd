# The kernels of a replay.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.utility cimport pair
from libcpp.vector cimport vector

from fastops._cpp.options cimport Thread
from fastops._cpp.plan cimport NativePlan
from fastops._cpp.signature cimport Signature
from fastops._cpp.tape cimport RecordedOp, ReplaySteps
from fastops._tf.tensor cimport Tensor


cdef enum Outcome:
    DONE
    DIFFERS  # a value or size differs from the recording, before anything had an effect
    FAILED   # an op failed, before anything had an effect


# A call with a custom gradient, as tapes record it. Its tensors are numbered values and constants.
cdef class Custom:
    cdef const RecordedOp* op
    cdef str name
    cdef object closure
    cdef bint stopped
    cdef int num_kept
    cdef int num_inputs
    cdef int num_outputs
    cdef list constants
    cdef vector[int] tensors  # the numbers of values; -1 - i for constant i

    cdef int record(self, PyObject** values) except -1


# What a tape records of a run, and what keeps it alive.
cdef class TapeSteps:
    cdef ReplaySteps steps
    cdef object kind
    cdef tuple ops
    cdef list attrs, customs, constants


cdef class Native:
    cdef NativePlan plan
    cdef tuple ops             # the op of each step
    cdef list attrs            # of each step, as tapes record them; None without a tape
    cdef list customs          # of each step: what tapes record after it, of type `Custom`
    cdef TapeSteps taped       # None if tapes record each op by itself
    cdef tuple constants       # inputs of steps, after the numbered values
    cdef int num_values
    cdef tuple accessed        # variables that steps access and that are not arguments
    cdef vector[int] accessed_at  # their indexes among the variables of the recording
    cdef vector[int] given     # numbers of the arguments that are handles of accessed variables
    cdef vector[int] made      # numbers of the values that the result needs
    cdef vector[bint] shown    # which of these Python sees. A tape keeps the others
    cdef int first_lasting     # number of the first step with an effect
    cdef bint onednn
    cdef bint waits            # whether a step runs on a device other than the host
    cdef vector[pair[int, int]] makers  # if `waits`: step and output of each value in `made`
    cdef int64_t last_ns       # time of the last run
    cdef int differed          # the last step whose outputs differed from the recorded ones
    cdef long long runs        # number of successful runs

    # Whether this thread's calls of the ops would run exactly these kernels. False while a profile
    # is open. The caller checks whether a tape records.
    cdef bint may_run(self, Thread* thread) except -1
    # Sets the values that the result needs, as new references. If a tape records, sets all values.
    cdef Outcome run(self, const Signature& signature, PyObject** values, Thread* thread) except *
    # The same kernels with other variables.
    cdef Native rebound(self, tuple variables, tuple handles)
    cdef int take(self, Tensor& tensor, size_t i, bint keeps, PyObject** values) except -1
    cdef object wrapped(self, Tensor& tensor, size_t i)
    cdef int record(self, PyObject** values) except -1


# Whether the calls of all steps were direct, by their entries. If `recorded`, tapes must also have
# recorded each step that is not stopped.
cdef bint are_direct(list entries, steps, bint recorded) except -1
