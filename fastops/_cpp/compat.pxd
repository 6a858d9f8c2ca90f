from cpython.object cimport PyObject

from fastops._tf.eager cimport TFE_Context, TFE_TensorHandle
from fastops._tf.protos cimport DataType


cdef extern from "declarations.h" namespace "tensorflow":
    # On failure, both return null with a Python exception.
    TFE_TensorHandle* ConvertToEagerTensor(
        TFE_Context* context, PyObject* value, DataType dtype, const char* device
    )
    TFE_TensorHandle* ConvertToEagerTensorUncached(
        TFE_Context* context, PyObject* value, DataType dtype, const char* device
    )
