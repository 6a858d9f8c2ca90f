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
    cdef list references  # weak references to the objects that the signature takes by identity

    cdef int refer(self, const Signature& signature, dropped) except -1
    cdef bint refers(self, const Signature& signature) except -1
    cdef int gather(self, const Signature& signature, Borrowed* given) except -1
    cdef list inputs(self, const Signature& signature)


# The trace of a signature, for calls that a tape records.
cdef class Binding:
    cdef object concrete
    cdef object run       # runs it, with TensorFlow's filter of tracebacks
    cdef Case case        # says which tensors the trace takes; None: TensorFlow binds all calls
    cdef Account account  # of calls so far, until there is a trace


cdef class UnseenCalls:
    cdef public long long unseen


# Calls of a signature that has no case yet, since a case would not pay yet.
cdef class Waiting:
    cdef Account account
    cdef double num_nodes  # of the largest trace; 0: not counted yet
    cdef bint loops        # a trace has a loop


cdef class Caller:
    cdef vectorcall_t vectorcall
    cdef object target
    cdef bint plans
    cdef Cache cases      # by signature
    cdef Case last
    cdef bint patient     # a case is made only when it pays
    cdef bint one_trace   # calls of all signatures run the same trace
    cdef bint has_plan    # this trace has a plan
    cdef Cache waiting    # by signature: of type Waiting
    cdef Cache bindings   # by signature: of type Binding
    cdef Account account  # of calls of all signatures without a case
    cdef int failures     # number of traces for which no plan could be made
    cdef public UnseenCalls tally          # of calls that TensorFlow does not know of
    cdef readonly long long planned  # number of calls that plans ran
    cdef readonly dict reasons       # number of the other calls, by reason

    cdef int note(self, reason) except -1
    cdef Waiting wait_for(self, bytes key)
    cdef bint pays(self, Waiting waiting) except -1
    cdef int learn(self, Case case, Waiting waiting, int64_t ns) except -1
    cdef object run_taped(self, const Signature& signature, const Original* call, int skipped)
    cdef Case first(self, bytes key, const Signature& signature, const Original* call, int skipped,
                    bint* called, PyObject** result)


# Whether calls of a trace have cost enough to make its plan.
cdef bint pays_for_plan(Account account, double num_nodes, bint loops) noexcept

# Calls a function. The first `skipped` arguments of the call are not arguments of the function.
cdef PyObject* call_as(Caller self, const Original* call, int skipped) except NULL
