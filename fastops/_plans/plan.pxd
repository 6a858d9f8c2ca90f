from libc.stdint cimport int64_t

from fastops._cpp.plan cimport NativePlan
from fastops._tf.tensor cimport Tensor

cdef enum:
    LONG = 20000  # nanoseconds after which other threads may run meanwhile


cdef class Plan:
    cdef NativePlan native
    cdef unsigned long long made_for
    cdef bint waits
    cdef readonly int64_t last_ns  # that the last run took
    cdef readonly object schedule


# The tensor of an EagerTensor on the host.
cdef const Tensor* borrow(one) except NULL
