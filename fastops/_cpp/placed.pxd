from cpython.object cimport PyObject
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string

from fastops._cpp.runtime cimport Runtime
from fastops._tf.eager cimport TFE_TensorHandle
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass PlacedKernels:
        @staticmethod
        unique_ptr[PlacedKernels] Make(
            const Runtime&, NodeDef, int, const string&, TFE_TensorHandle**, int
        ) except +
        # 0, 1 with a status, -1 with a Python exception, or 2 where nothing was done
        int Run(const Runtime&, TFE_TensorHandle**, int, PyObject**, Status*) except +
