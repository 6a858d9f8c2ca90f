// What differs between TensorFlow versions, or is not public in them. Nothing else may, but for
// sessions in session.h.
#ifndef FASTOPS_CPP_COMPAT_H_
#define FASTOPS_CPP_COMPAT_H_

#include <Python.h>

#include <variant>

#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/python/eager/pywrap_tfe.h"

namespace tensorflow {
// Exported by lib_pywrap_tensorflow_common, declared in pywrap_tensor.h, which needs NumPy's headers.
TFE_TensorHandle* ConvertToEagerTensor(TFE_Context* context, PyObject* value, DataType dtype,
                                       const char* device_name);

// Likewise, without its cache of Python numbers, and declared nowhere.
TFE_TensorHandle* ConvertToEagerTensorUncached(TFE_Context* context, PyObject* value,
                                               DataType dtype, const char* device_name);

// Exported by libtensorflow_cc; its declaration has moved between headers.
EagerContext* GetCEagerContext();
}  // namespace tensorflow

namespace tsl {
// Exported by libtensorflow_framework; the wheel does not ship its header.
bool OpDeterminismRequired();
}  // namespace tsl

// Exported by lib_pywrap_tensorflow_common, defined in pywrap_tensor.cc.
extern "C" PyTypeObject* EagerTensorType;

namespace fastops {

// TensorFlow keeps the following members private, and its accessors block or lock. The standard
// lets an explicit template instantiation name private members ([temp.explicit]/13).
template <typename Owner, typename Tag, auto Member>
struct Expose {
  friend auto& Access(const Owner& owner, Tag) { return owner.*Member; }
};

#define FASTOPS_EXPOSE(Owner, Name, member) \
  struct Name {};                           \
  auto& Access(const Owner&, Name);         \
  template struct Expose<Owner, Name, &Owner::member>

// Whether a tensor is computed yet: `TensorHandle::Tensor()` blocks until it is, and with the GIL
// held that can deadlock.
FASTOPS_EXPOSE(tensorflow::TensorHandle, HandleData, data_);
FASTOPS_EXPOSE(tensorflow::LocalTensorHandleData, LocalControl, ctrl_);
FASTOPS_EXPOSE(tensorflow::LocalTensorHandleData, LocalTensor, tensor_);
// The executors of threads, and that of all others.
FASTOPS_EXPOSE(tensorflow::EagerContext, ContextThreadExecutors, thread_local_executor_);
FASTOPS_EXPOSE(tensorflow::EagerContext, ContextExecutor, default_executor_);

// Null unless the handle's tensor is local.
inline const tensorflow::LocalTensorHandleData* LocalData(const tensorflow::TensorHandle& handle) {
  return std::get_if<tensorflow::LocalTensorHandleData>(&Access(handle, HandleData()));
}

// True for a tensor that was computed before it got its handle. Others may be pending.
inline bool NeverPending(const tensorflow::LocalTensorHandleData& data) {
  return Access(data, LocalControl()).index() == 0;  // NonBlockingControl
}

inline const tensorflow::Tensor& TensorOf(const tensorflow::LocalTensorHandleData& data) {
  return Access(data, LocalTensor());
}

inline auto& ThreadExecutors(const tensorflow::EagerContext& context) {
  return Access(context, ContextThreadExecutors());
}

inline const tensorflow::EagerExecutor& DefaultExecutor(const tensorflow::EagerContext& context) {
  return Access(context, ContextExecutor());
}

}  // namespace fastops

#endif  // FASTOPS_CPP_COMPAT_H_
