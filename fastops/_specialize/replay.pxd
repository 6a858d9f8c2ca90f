# Replays of recordings.

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from fastops._cpp.options cimport Thread
from fastops._cpp.signature cimport Signature
from fastops._specialize.guards.names cimport Guard
from fastops._specialize.native cimport Native, Outcome


cdef class Replay:
    cdef unsigned long long made_after  # the number of flushes of kernels before it was made
    cdef int num_arguments
    cdef int num_values
    cdef tuple checks
    cdef tuple steps
    cdef object result
    cdef int single  # the number of the value that is the result; -1: not one value
    cdef vector[int] flat  # numbers of the values, if the result is a flat list or tuple
    cdef bint whole         # whether the values in `flat` are exactly the last op's outputs
    cdef bint without_tape  # whether it runs only while no tape records
    cdef tuple branches     # see `Recording`
    cdef list values_before  # see `Recording`; None if there are no branches
    cdef list passed        # generated functions of the ops: module dict, name, function
    cdef vector[uint64_t] versions  # of the dicts in `passed`, when they were last checked
    cdef list settings      # attributes of modules that must not change
    cdef Guard guard        # of the code that ran; None if the caller guards it
    cdef readonly tuple variables  # variables that are not arguments of the call
    cdef tuple handles
    cdef object recording  # None if the replay cannot run as kernels only
    cdef Native native     # the kernels of a run without a tape, if all ops are direct
    cdef Native recorded   # the kernels of a run that a tape records
    cdef Replay taped      # the replay to run while a tape records; None: this one
    cdef int runs[2]       # kernel searches without a tape, and with one
    cdef int differed      # the last step whose outputs differed from the recorded ones
    cdef Replay shared     # the same replay without variables, whose kernels it uses; or None

    # Whether the guards of the replay hold.
    cdef bint fits(self) except -1
    # The first guard of `fits` that does not hold, as text. None if all of them hold again.
    cdef str change(self)
    # Which value or size differed from the recorded one in the last run, as text.
    cdef str changed_value(self, const Signature& signature)
    # The function of an op, or the setting, that differs from the recorded one, as text. None if
    # there is none.
    cdef str changed_name(self)
    # A name for the value with a number, for example "output 0 of op 3, Where".
    cdef str name_of(self, int number)
    # Runs the replay, as kernels only if possible. The result is a new reference.
    cdef Outcome run(self, const Signature& signature, PyObject** result) except *
    # Runs one of the branches that a call may take. `drawn` has what the random ops of the call
    # have drawn: the first random ops take this, and what the others draw is added.
    cdef Outcome run_branch(self, const Signature& signature, PyObject** result,
                            list drawn) except *
    # `drawn`: what random ops make, in their order, instead of drawing. If `goes_on`, there may be
    # more random ops: see `run_branch`.
    cdef Outcome run_with(self, const Signature& signature, tuple variables, tuple handles,
                          PyObject** result, list drawn=*, bint goes_on=*) except *
    # The same replay with other variables.
    cdef Replay rebound(self, list variables, list taped_variables, bint alone)
    # Lets the replays of other objects use the kernels that were found.
    cdef int share(self) except -1
    # How often the replay has run as kernels only.
    cdef long long native_runs(self)
    # Runs the replay as kernels only.
    cdef Outcome run_natively(self, Native native, const Signature& signature, Thread* thread,
                              PyObject** result) except *
    # Runs the replay op by op, and looks for the kernels of later runs.
    cdef Outcome run_and_look(self, const Signature& signature, Thread* thread, bint recorded,
                              PyObject** result) except *
    # Makes the result of a call from the values.
    cdef object pack(self, PyObject** values, const Signature& signature, tuple variables)
    # Makes the result from the values if it is a flat list or tuple of tensors.
    cdef object row(self, PyObject** values)


# The handles of variables. None for a number, which replaces a variable that is missing.
cdef tuple handles_of(tuple variables)
# Whether a signature has exactly these tensors as its leaves.
cdef bint are_leaves(list tensors, const Signature& signature) noexcept
