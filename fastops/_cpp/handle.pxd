from cpython.object cimport PyObject

from fastops._tf.device cimport Device
from fastops._tf.eager cimport EagerContext, TFE_TensorHandle
from fastops._tf.protos cimport DataType
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    enum InputState "fastops::InputState":
        kReady "fastops::InputState::kReady"
        kForeign "fastops::InputState::kForeign"
        kRemote "fastops::InputState::kRemote"
        kOtherDevice "fastops::InputState::kOtherDevice"
        kNotReady "fastops::InputState::kNotReady"
        kPoisoned "fastops::InputState::kPoisoned"

    # Reads the tensor of an EagerTensor on the host. On kReady, the tensor is borrowed.
    InputState Inspect(TFE_TensorHandle*, const Device* host, const Tensor**)
    # Reads the tensor of an EagerTensor on any local device, and the device: null for the host.
    InputState InspectAnywhere(
        TFE_TensorHandle*, const Device* host, const Tensor**, const Device**
    )
    DataType HandleDtype(TFE_TensorHandle*)
    # Borrowed; null for any object but a computed EagerTensor on the host.
    const Tensor* HostTensor(PyObject*)
    # Borrowed; null for any object but a computed EagerTensor on a local device. Use only its dtype
    # and shape: the host may not be able to read its elements.
    const Tensor* LocalTensor(PyObject*)
    object Wrap(Tensor, Device*, EagerContext*)
    # The first device is that of the memory (null: the host), the second one ran the function.
    object WrapPlaced(Tensor, Device*, Device*, EagerContext*)
