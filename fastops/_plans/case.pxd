# What is known about the calls of one signature of a traced function.

from libcpp.vector cimport vector

from fastops._cpp.plan cimport Borrowed
from fastops._cpp.signature cimport Signature
from fastops._plans.runner cimport Runner
from fastops._specialize.policy cimport Account
from fastops._specialize.states cimport State
from fastops._tf.tensor cimport Tensor


cdef class Bound:
    cdef readonly Runner runner
    cdef object pack
    cdef vector[int] leaves         # see the parameter `takes`; -1 - i for the constant i
    cdef int last_leaf
    cdef vector[Tensor] constants
    cdef list constant_objects

    # Collects the tensors that the trace takes.
    cdef int gather(self, const Signature& signature, Borrowed* given) except -1
    # The same as EagerTensors.
    cdef list inputs(self, const Signature& signature)


cdef class FunctionCase:
    cdef readonly bytes key
    cdef list references            # weak ones to the objects that the signature takes by identity
    cdef readonly Bound bound
    cdef readonly Bound taped
    cdef bint taped_refused         # TensorFlow has to bind the calls that a tape may record
    cdef object concrete            # the trace of `taped`
    cdef object call_taped          # runs this trace, with TensorFlow's filter of tracebacks
    cdef Account account            # of calls that no tape records, until `bound` is set
    cdef Account taped_account      # of the other calls, until `taped` or `taped_refused` is set
    cdef double num_nodes           # of the function's largest trace; 0: not counted yet
    cdef bint loops                 # a trace has a loop

    cdef State state(self) noexcept
    # Keeps weak references to the objects that the signature takes by identity: the key has their
    # addresses, which later objects may get. `dropped` is called when one of the objects is gone.
    cdef int refer(self, const Signature& signature, dropped) except -1
    # Whether a signature with an equal key has the same objects.
    cdef bint refers(self, const Signature& signature) except -1
