from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from fastops._cpp.options cimport Threads
from fastops._cpp.runtime cimport Runtime
from fastops._tf.op_kernel cimport OpKernel, TensorValue
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass Manner:
        bool release_gil
        Threads threads
        size_t bytes
        int64_t* kernel_ns
        bool in_caller

    cdef cppclass FoundThreads "fastops::ThreadChoice::Found":
        int64_t bytes
        Threads threads
        int64_t caller_ns
        int64_t pool_ns

    cdef cppclass ThreadChoice:
        vector[FoundThreads] Describe()

    bool Accepts(const NodeDef&, const TensorValue*, int) except +

    cdef cppclass PreparedKernel:
        @staticmethod
        shared_ptr[PreparedKernel] Make(
            const Runtime&, NodeDef, int, bool, bool, Status*
        ) except +
        # Returns 0, 1 with a status, or -1 with a Python exception.
        int Run(const TensorValue*, PyObject**, Status*, Manner*) except +
        bool RunUnwrapped(const TensorValue*, Tensor*, int64_t*) except +
        OpKernel* kernel()
        const ThreadChoice* choice()
        int64_t primitive_runs()
        int num_outputs()
