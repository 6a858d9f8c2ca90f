from cpython.object cimport PyObject

from fastops._tf.eager cimport TFE_Context, TFE_TensorHandle
from fastops._tf.protos cimport DataType


cdef extern from "compat.h" namespace "tensorflow":
    # Null with a Python exception.
    TFE_TensorHandle* ConvertToEagerTensorUncached(
        TFE_Context* context, PyObject* value, DataType dtype, const char* device
    )
