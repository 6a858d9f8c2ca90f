from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from fastops._cpp.plan cimport NativePlan
from fastops._tf.device cimport Device
from fastops._tf.tensor cimport Tensor

cdef class Plan:
    cdef NativePlan native
    cdef Device* device            # the device that runs the kernels; null for the host
    cdef Device* called_on         # the device on which TensorFlow would place the call
    cdef vector[bool] in_host      # by result: whether it is in the host's memory
    cdef unsigned long long made_for
    cdef bint waits
    cdef readonly bint seeded      # random ops have seeds: the plan owns their sequences
    cdef unsigned long long era    # of the draws by seeds: see `fastops._core.draws`
    cdef readonly int64_t last_ns  # time of the last run
    cdef readonly object schedule

    cdef int check_memory(self, graph, devices) except -1
    # Begins the sequences of random ops again.
    cdef int begin_again(self) except -1


# The tensor of an EagerTensor on the host.
cdef const Tensor* borrow(tensor) except NULL
# The tensor of an EagerTensor in the memory of any local device.
cdef const Tensor* borrow_anywhere(tensor) except NULL
