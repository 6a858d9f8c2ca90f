from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._cpp.plan cimport Borrowed
from fastops._cpp.signature cimport Signature
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._plans.runner cimport Original, Runner
from fastops._specialize.cache cimport Cache
from fastops._specialize.policy cimport Account
from fastops._tf.tensor cimport Tensor


cdef class Case:
    cdef readonly Runner runner
    cdef vector[int] leaves
    cdef int last_leaf
    cdef vector[Tensor] constants
    cdef list constant_objects
    cdef object pack
    cdef bytes key

    cdef int gather(self, const Signature& signature, Borrowed* given) except -1
    cdef list inputs(self, const Signature& signature)


cdef class Tally:
    cdef public long long unseen


# Calls of a signature that has no case yet, since that would not pay.
cdef class Waiting:
    cdef Account account
    cdef double num_nodes  # of the trace, with those around a call of it; 0: not counted yet


cdef class Caller:
    cdef vectorcall_t vectorcall
    cdef object target
    cdef bint plans
    cdef Cache cases      # by signature
    cdef Case last
    cdef bint patient     # a case is made when that pays, not at once
    cdef bint one_trace   # calls of all signatures run the same trace
    cdef bint has_plan    # and it has been made a plan
    cdef Cache waiting    # likewise
    cdef Account account  # of calls of all signatures without a case
    cdef int failures     # of cases that came without a plan
    cdef public Tally tally          # of calls that TensorFlow knows nothing of
    cdef readonly long long planned  # calls that plans have made
    cdef readonly dict reasons       # and others, by the reason

    cdef int note(self, reason) except -1
    cdef Waiting wait_for(self, bytes key)
    cdef bint pays(self, Waiting waiting) except -1
    cdef int learn(self, Case case, Waiting waiting, int64_t ns) except -1
    cdef Case first(self, bytes key, const Original* call, int skipped, bint* called,
                    PyObject** result)


# Calls a function, given a call of which some first arguments are not the function's.
cdef PyObject* call_as(Caller self, const Original* call, int skipped) except NULL
