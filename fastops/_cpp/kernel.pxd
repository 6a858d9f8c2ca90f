from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.memory cimport unique_ptr

from fastops._cpp.runtime cimport Runtime
from fastops._tf.op_kernel cimport TensorValue
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass PreparedKernel:
        @staticmethod
        unique_ptr[PreparedKernel] Make(
            const Runtime&, NodeDef, int, bool, bool, Status*
        ) except +
        # 0, 1 with a status, or -1 with a Python exception
        int Run(const TensorValue*, bool, PyObject**, Status*, int64_t*) except +
        bool RunUnwrapped(const TensorValue*, Tensor*, int64_t*) except +
        int num_outputs()
