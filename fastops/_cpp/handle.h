// Unwraps EagerTensors into tensors, and wraps tensors as EagerTensors.
#ifndef FASTOPS_CPP_HANDLE_H_
#define FASTOPS_CPP_HANDLE_H_

#include <utility>

#include "compat.h"

namespace fastops {

enum class InputState { kReady, kForeign, kRemote, kOtherDevice, kNotReady, kPoisoned };

// Reads the tensor of an EagerTensor on the host, without blocking. On kReady, `*tensor` is
// borrowed from the handle, which the EagerTensor keeps alive. The GIL is held.
//
// The tensor itself is read without a lock. One that is never pending was complete before its
// EagerTensor was made, with the GIL. For others `IsReady` and `IsPoisoned` take the lock under
// which the thread that computed it has marked it as complete. So its content is visible, too.
inline InputState Inspect(TFE_TensorHandle* opaque, const tensorflow::Device* host,
                          const tensorflow::Tensor** tensor) {
  auto* base = tensorflow::unwrap(opaque);
  if (!tensorflow::TensorHandle::classof(base)) return InputState::kForeign;
  auto* handle = static_cast<tensorflow::TensorHandle*>(base);
  const tensorflow::LocalTensorHandleData* data = LocalData(*handle);
  if (data == nullptr) return InputState::kRemote;
  if (handle->device() != nullptr) return InputState::kOtherDevice;  // null means the host
  // TensorFlow runs an op on the device of its resource. A handle in host memory may refer to a
  // resource on another device.
  if (handle->dtype == tensorflow::DT_RESOURCE && handle->resource_device() != nullptr &&
      handle->resource_device() != host) {
    return InputState::kOtherDevice;
  }
  if (!NeverPending(*data)) {
    if (!data->IsReady()) return InputState::kNotReady;
    if (!data->IsPoisoned().ok()) return InputState::kPoisoned;
  }
  *tensor = &TensorOf(*data);
  return InputState::kReady;
}

// Reads the tensor of an EagerTensor on any local device, without blocking. On kReady, `*tensor` is
// borrowed from the handle. `*device` is the device of the tensor, or of the resource that it
// refers to; null means the host. The GIL is held.
inline InputState InspectAnywhere(TFE_TensorHandle* opaque, const tensorflow::Device* host,
                                  const tensorflow::Tensor** tensor,
                                  const tensorflow::Device** device) {
  auto* base = tensorflow::unwrap(opaque);
  if (!tensorflow::TensorHandle::classof(base)) return InputState::kForeign;
  auto* handle = static_cast<tensorflow::TensorHandle*>(base);
  const tensorflow::LocalTensorHandleData* data = LocalData(*handle);
  if (data == nullptr) return InputState::kRemote;
  if (!NeverPending(*data)) {
    if (!data->IsReady()) return InputState::kNotReady;
    if (!data->IsPoisoned().ok()) return InputState::kPoisoned;
  }
  *device = handle->dtype == tensorflow::DT_RESOURCE ? handle->resource_device() : handle->device();
  if (*device == host) *device = nullptr;
  *tensor = &TensorOf(*data);
  return InputState::kReady;
}

// The dtype of an EagerTensor on any device and in any state; DT_INVALID for a custom device.
inline tensorflow::DataType HandleDtype(TFE_TensorHandle* opaque) {
  auto* base = tensorflow::unwrap(opaque);
  if (!tensorflow::TensorHandle::classof(base)) return tensorflow::DT_INVALID;
  return static_cast<tensorflow::TensorHandle*>(base)->dtype;
}

// The tensor of an EagerTensor on the host, borrowed; null for any other object, and for a tensor
// that is not computed yet.
inline const tensorflow::Tensor* HostTensor(PyObject* object) {
  const tensorflow::Tensor* tensor = nullptr;
  if (!IsEagerTensor(object) ||
      Inspect(EagerTensor_Handle(object), nullptr, &tensor) != InputState::kReady) {
    return nullptr;
  }
  return tensor;
}

// The tensor of an EagerTensor on any local device, borrowed. Null for any other object, and for a
// tensor that is not computed yet. Use only its dtype and shape: the host may not be able to read
// its elements.
inline const tensorflow::Tensor* LocalTensor(PyObject* object) {
  const tensorflow::Tensor* tensor = nullptr;
  const tensorflow::Device* device = nullptr;
  if (!IsEagerTensor(object) || InspectAnywhere(EagerTensor_Handle(object), nullptr, &tensor,
                                                &device) != InputState::kReady) {
    return nullptr;
  }
  return tensor;
}

// Wraps a result of a function that was called on device `called_on`, as TensorFlow does. `device`
// is the device of the result's memory; null means the host.
inline PyObject* WrapPlaced(tensorflow::Tensor&& tensor, tensorflow::Device* device,
                            tensorflow::Device* called_on, tensorflow::EagerContext* context) {
  auto* handle = tensorflow::TensorHandle::CreateLocalHandle(
      std::move(tensor), context->CanonicalDevice(device), /*op_device=*/called_on,
      /*resource_device=*/nullptr, context);
  return EagerTensorFromHandle(
      tensorflow::wrap(static_cast<tensorflow::ImmediateExecutionTensorHandle*>(handle)));
}

// Wraps a result on the host as TensorFlow does. Returns a new reference, or null with a Python
// exception. The GIL is held.
inline PyObject* Wrap(tensorflow::Tensor&& tensor, tensorflow::Device* device,
                      tensorflow::EagerContext* context) {
  auto* handle = tensorflow::TensorHandle::CreateLocalHandle(
      std::move(tensor), /*d=*/nullptr, /*op_device=*/device, /*resource_device=*/nullptr, context);
  return EagerTensorFromHandle(
      tensorflow::wrap(static_cast<tensorflow::ImmediateExecutionTensorHandle*>(handle)));
}

}  // namespace fastops

#endif  // FASTOPS_CPP_HANDLE_H_
