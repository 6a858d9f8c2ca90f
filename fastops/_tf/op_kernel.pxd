# tensorflow/core/framework/op_kernel.h
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    cdef cppclass OpKernel:
        pass

    cdef cppclass TensorValue:
        TensorValue()
        TensorValue(Tensor*)
