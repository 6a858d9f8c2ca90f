// What differs between TensorFlow versions, or is not public in them. Nothing else may, but for
// sessions in session.h.
#ifndef FASTOPS_CPP_COMPAT_H_
#define FASTOPS_CPP_COMPAT_H_

#include <Python.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "declarations.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/kernel_and_device.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/python/eager/pywrap_tfe.h"

namespace tensorflow {
// Exported by lib_pywrap_tensorflow_common; its header, pywrap_tensor.h, needs NumPy's.
TFE_TensorHandle* ConvertToEagerTensor(TFE_Context* context, PyObject* value, DataType dtype,
                                       const char* device_name);

// Likewise, but in no header: without the cache of Python numbers.
TFE_TensorHandle* ConvertToEagerTensorUncached(TFE_Context* context, PyObject* value,
                                               DataType dtype, const char* device_name);

// Exported by libtensorflow_cc; its declaration has moved between headers.
EagerContext* GetCEagerContext();
}  // namespace tensorflow

namespace tsl {
// Exported by libtensorflow_framework; the wheel does not ship its header.
bool OpDeterminismRequired();
}  // namespace tsl

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

// A kernel that runs a function as an eager call does. TensorFlow 2.19 is not told whether it does
// so only once.
template <typename Kernel = tensorflow::KernelAndDeviceFunc>
Kernel* NewFunctionKernel(tensorflow::FunctionLibraryRuntime* library,
                          tensorflow::ProcessFunctionLibraryRuntime* process,
                          std::vector<tensorflow::Device*> input_devices,
                          std::unordered_map<int, tensorflow::DtypeAndPartialTensorShape> resources,
                          std::function<void(std::function<void()>)>* runner,
                          std::unique_ptr<tensorflow::CollectiveExecutor::Handle> collective,
                          tensorflow::Device* host, const std::string& name, bool soft_placement) {
  auto make = [&](auto... function_runs_at_most_once) {
    return new Kernel(
        library, process, std::move(input_devices), /*composite_devices=*/{}, std::move(resources),
        runner, std::move(collective), host, name, /*outputs_on_op_device=*/false,
        /*allow_small_function_optimizations=*/false, /*allow_control_flow_sync_execution=*/false,
        /*shape_inference_on_tfe_dialect_import=*/true, /*int_args_and_retvals_on_device=*/false,
        function_runs_at_most_once..., /*xla_compile_device_type=*/std::nullopt, soft_placement,
        /*rendezvous_factory=*/tensorflow::Rendezvous::Factory(), /*get_op_id=*/nullptr);
  };
  constexpr bool is_told =
      std::is_constructible_v<Kernel, decltype(library), decltype(process), decltype(input_devices),
                              absl::flat_hash_map<std::string, const std::vector<std::string>*>,
                              decltype(resources), decltype(runner), decltype(collective),
                              decltype(host), decltype(name), bool, bool, bool, bool, bool,
                              /*function_runs_at_most_once*/ bool, std::nullopt_t, bool,
                              tensorflow::Rendezvous::Factory, std::nullptr_t>;
  if constexpr (is_told) {
    return make(false);
  } else {
    return make();
  }
}

inline auto& ThreadExecutors(const tensorflow::EagerContext& context) {
  return Access(context, ContextThreadExecutors());
}

inline const tensorflow::EagerExecutor& DefaultExecutor(const tensorflow::EagerContext& context) {
  return Access(context, ContextExecutor());
}

}  // namespace fastops

#endif  // FASTOPS_CPP_COMPAT_H_
