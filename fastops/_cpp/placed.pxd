from cpython.object cimport PyObject
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.runtime cimport Runtime
from fastops._tf.device cimport Device
from fastops._tf.eager cimport EagerContext, TFE_TensorHandle
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass PlacedKernel:
        # Null if the kind of device or the kernel is not supported.
        @staticmethod
        shared_ptr[PlacedKernel] Make(const Runtime&, Device*, NodeDef, int) except +

        @staticmethod
        bool IsSupported(const Runtime&, const Device&)

        int num_inputs()
        # Returns 0, 1 with a status, -1 with a Python exception, or 2 if nothing was done.
        int Run(TFE_TensorHandle**, int, PyObject**, Status*) except +
        object Wrapped(Tensor, int)
        shared_ptr[PlacedKernel] shared_from_this() except +

    Status InHostMemory(
        const Device&, const NodeDef&, vector[bool]* inputs, vector[bool]* outputs
    ) except +

    cdef cppclass PlacedKernels:
        @staticmethod
        unique_ptr[PlacedKernels] Make(
            const Runtime&, NodeDef, int, const string&, TFE_TensorHandle**, int
        ) except +
        # Null if there is no kernel for these inputs.
        PlacedKernel* For(const Runtime&, TFE_TensorHandle**, int) except +
