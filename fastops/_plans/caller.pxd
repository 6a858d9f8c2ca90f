from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.signature cimport Signature
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._plans.case cimport FunctionCase
from fastops._plans.runner cimport Original
from fastops._specialize.cache cimport Cache
from fastops._specialize.policy cimport Account


cdef class UnseenCalls:
    cdef public long long unseen


cdef class Caller:
    cdef vectorcall_t vectorcall
    cdef object target
    cdef bint plans
    cdef Cache cases      # by signature: of type FunctionCase
    cdef FunctionCase last
    cdef bint patient     # arguments are bound only when it pays
    cdef bint one_trace   # calls of all signatures run the same trace
    cdef bint has_plan    # this trace has a plan
    cdef Account account  # of calls of all signatures whose arguments are not bound
    cdef int failures     # number of traces for which no plan could be made
    cdef public UnseenCalls tally          # of calls that TensorFlow does not know of
    cdef readonly long long planned  # number of calls that plans ran
    cdef readonly dict reasons       # number of the other calls, by reason

    cdef int note(self, reason) except -1
    # The case of a signature; None if there is none, or none that is valid.
    cdef FunctionCase find(self, const Signature& signature)
    # The same, but a new signature is added.
    cdef FunctionCase add(self, const Signature& signature)
    cdef bint pays(self, FunctionCase case) except -1
    cdef int learn(self, FunctionCase case, int64_t ns) except -1
    cdef object run_taped(self, const Signature& signature, const Original* call, int skipped)
    cdef FunctionCase first(self, const Signature& signature, const Original* call, int skipped,
                            bint* called, PyObject** result)


# Whether calls of a trace have cost enough to make its plan.
cdef bint pays_for_plan(Account account, double num_nodes, bint loops) noexcept

# Calls a function. The first `skipped` arguments of the call are not arguments of the function.
cdef PyObject* call_as(Caller self, const Original* call, int skipped) except NULL
