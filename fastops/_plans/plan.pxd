from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from fastops._cpp.plan cimport NativePlan
from fastops._tf.device cimport Device
from fastops._tf.tensor cimport Tensor

cdef class Plan:
    cdef NativePlan native
    cdef Device* device            # where it runs; null for the host
    cdef Device* called_on         # to which TensorFlow gives the call
    cdef vector[bool] in_host      # results that are in the host's memory all the same
    cdef unsigned long long made_for
    cdef bint waits
    cdef readonly int64_t last_ns  # that the last run took
    cdef readonly object schedule

    cdef int check_places(self, graph, places) except -1


# The tensor of an EagerTensor on the host.
cdef const Tensor* borrow(one) except NULL
# And of one in the memory of any local device.
cdef const Tensor* borrow_anywhere(one) except NULL
