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

    # Borrows the tensor of one that is ready.
    InputState Inspect(TFE_TensorHandle*, const Device* host, const Tensor**)
    # Of a tensor on any local device, with that: null for the host.
    InputState InspectAnywhere(
        TFE_TensorHandle*, const Device* host, const Tensor**, const Device**
    )
    DataType HandleDtype(TFE_TensorHandle*)
    # Borrowed; null for what is not an EagerTensor on the host, computed.
    const Tensor* HostTensor(PyObject*)
    # The same in the memory of any local device: what it holds is not for the host to look at.
    const Tensor* LocalTensor(PyObject*)
    object Wrap(Tensor, Device*, EagerContext*)
    # In the memory of a device, null for the host, made by what was called on another.
    object WrapPlaced(Tensor, Device*, Device*, EagerContext*)
