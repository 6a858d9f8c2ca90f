from cpython.object cimport PyObject
from libcpp cimport bool

from fastops._cpp.handle cimport InputState
from fastops._tf.device cimport Device
from fastops._tf.eager cimport TFE_TensorHandle
from fastops._tf.op_kernel cimport TensorValue
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    const int FRAME_INPUTS "fastops::Frame::kInputs"
    const int FRAME_UNWRAPPED "fastops::Frame::kUnwrapped"

    cdef cppclass Frame:
        int size
        int num_unwrapped
        size_t bytes
        TensorValue* tensors
        PyObject** objects
        TFE_TensorHandle** handles
        int* list_lengths
        unsigned char* signature
        size_t signature_size
        Frame()
        void Reset(int num_inputs, int num_lists)
        InputState Add(PyObject*, Device*)
        void AddUnwrapped(Tensor)
        void BeginList(int)
        void Own(PyObject*)
        bool SameSignature(const char*, size_t)
        bool SameButForLengths(const char*, size_t)
