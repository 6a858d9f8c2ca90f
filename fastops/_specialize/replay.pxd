# A recording that is ready to run.

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from fastops._cpp.options cimport Thread
from fastops._cpp.signature cimport Signature
from fastops._specialize.guards.names cimport Guard
from fastops._specialize.native cimport Native, Outcome


cdef class Replay:
    cdef unsigned long long made_after
    cdef int num_arguments
    cdef int num_values
    cdef tuple checks
    cdef tuple steps
    cdef object result
    cdef int single  # the number of the only value that is the result, or -1
    cdef vector[int] flat  # those of the values that a list or tuple of tensors alone holds
    cdef bint whole        # whether these are what the last op makes, no more and no less
    cdef bint custom
    cdef list passed
    cdef vector[uint64_t] versions  # of the modules among it, when they were last as they were
    cdef list settings
    cdef Guard guard       # of the code that ran; None where others look after it
    cdef readonly tuple variables  # those that the call finds by itself
    cdef tuple handles
    cdef object found      # what it was made of; None if kernels alone will not do
    cdef Native native     # its kernels, if all of it is direct
    cdef Native recorded   # likewise, for runs that tapes are told of
    cdef Replay taped      # in whose place that one runs where a tape records; None: this one
    cdef int runs[2]       # without them, and without these

    # Whether TensorFlow is as it was.
    cdef bint fits(self) except -1
    # The result is a new reference.
    cdef Outcome run(self, const Signature& signature, PyObject** result) except *
    cdef Outcome run_with(self, const Signature& signature, tuple variables, tuple handles,
                          PyObject** result) except *
    cdef long long native_runs(self)
    cdef Outcome run_natively(self, Native native, const Signature& signature, Thread* thread,
                              PyObject** result) except *
    cdef Outcome run_and_look(self, const Signature& signature, Thread* thread, bint recorded,
                              PyObject** result) except *
    cdef object pack(self, PyObject** values, const Signature& signature, tuple variables)
    cdef object row(self, PyObject** values)


cdef tuple handles_of(tuple variables)
# Whether these are the very tensors of a signature.
cdef bint are_leaves(list tensors, const Signature& signature) noexcept
