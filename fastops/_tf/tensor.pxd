# tensorflow/core/framework/tensor.h
from libc.stdint cimport int64_t
from libcpp cimport bool

from fastops._tf.protos cimport DataType


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    cdef cppclass Tensor:
        Tensor()
        DataType dtype() const
        int dims() const
        int64_t dim_size(int) const
        int64_t NumElements() const
        bool IsSameSize(const Tensor&) const
        size_t TotalBytes() const
        void* data() const
