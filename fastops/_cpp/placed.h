// PlacedKernels: the kernels for one op with its attributes on devices other than the host,
// resolved once.
#ifndef FASTOPS_CPP_PLACED_H_
#define FASTOPS_CPP_PLACED_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compat.h"
#include "gil.h"
#include "invariants.h"
#include "kernel.h"
#include "runtime.h"
#include "tensorflow/core/common_runtime/eager/kernel_and_device.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"

namespace fastops {

// Runs TensorFlow's own KernelAndDeviceOp. It has the device's context, stream and allocators, and
// knows which inputs and outputs are in host memory. TensorFlow wraps each eager call in a
// function; this class skips that function and the code that leads to it.
class PlacedKernel : public std::enable_shared_from_this<PlacedKernel> {
 public:
  // Makes the kernel for `node` on a device. Returns null if the device is not supported, or if the
  // kernel might behave differently from TensorFlow's own call. The GIL is held.
  static std::shared_ptr<PlacedKernel> Make(const Runtime& runtime, tensorflow::Device* device,
                                            tensorflow::NodeDef node, int num_outputs) {
    if (!IsSupported(runtime, *device)) return nullptr;
    std::shared_ptr<PlacedKernel> kernel(new PlacedKernel(runtime.context, device, num_outputs));
    node.set_device(device->name());
    return kernel->Init(node) ? kernel : nullptr;
  }

  tensorflow::Device* device() const { return device_; }
  int num_outputs() const { return num_outputs_; }
  int num_inputs() const { return kernel_->num_inputs(); }
  tensorflow::DataType output_dtype(int index) const { return kernel_->output_dtypes()[index]; }

  // Submits the computation to the device. The inputs must be in the memory that the kernel
  // expects.
  absl::Status Compute(const tensorflow::EagerKernelArgs& inputs,
                       std::vector<tensorflow::EagerKernelRet>* outputs) const {
    return kernel_->Run(context_->StepContainer(), inputs, outputs,
                        /*cancellation_manager=*/nullptr, /*eager_func_params=*/std::nullopt,
                        /*stack_trace=*/std::nullopt,
                        /*coordination_service_agent=*/nullptr);
  }

  // Runs the kernel and wraps its results. Returns 0 on success: `results[i]` are new references.
  // Returns 1 if the kernel failed (`status`), and -1 with a Python exception. Returns 2 and does
  // nothing if an input would have to be copied or waited for. The GIL is held on entry and exit.
  // It is released in between, since a device may be slow to accept work.
  int Run(TFE_TensorHandle* const* inputs, int num_inputs, PyObject** results,
          absl::Status* status) const {
    FASTOPS_ASSERT(PyGILState_Check());
    if (num_inputs != kernel_->num_inputs()) return 2;
    tensorflow::EagerKernelArgs arguments(num_inputs);
    for (int i = 0; i < num_inputs; ++i) {
      const tensorflow::Tensor* tensor = Take(inputs[i], i);
      if (tensor == nullptr) return 2;
      *arguments.MutableInput(i) = tensorflow::TensorValue(const_cast<tensorflow::Tensor*>(tensor));
    }
    std::vector<tensorflow::EagerKernelRet> outputs;
    {
      ScopedGilRelease gil;
      *status = Compute(arguments, &outputs);
    }
    if (!status->ok()) return 1;
    for (int i = 0; i < num_outputs_; ++i) {
      auto& made = std::get<tensorflow::Tensor>(outputs[i]);
      if (made.dtype() != kernel_->output_dtypes()[i]) {
        *status = absl::InvalidArgumentError(
            absl::StrCat("Type mismatch: actual ", tensorflow::DataTypeString(made.dtype()),
                         " vs. expect ", tensorflow::DataTypeString(kernel_->output_dtypes()[i])));
        for (int j = 0; j < i; ++j) Py_DECREF(results[j]);
        return 1;
      }
      results[i] = TakingGil([&] { return Wrapped(std::move(made), i); });
      if (results[i] != nullptr) continue;
      for (int j = 0; j < i; ++j) Py_DECREF(results[j]);
      return -1;
    }
    return 0;
  }

  // Tells whether TensorFlow copies no output of a call.
  bool ReturnsAllAsMade() const {
    for (int i = 0; i < num_outputs_; ++i) {
      if (!IsMadeWhereReturned(i)) return false;
    }
    return true;
  }

  // Wraps an output. Returns a new reference, or null with a Python exception. The GIL is held.
  PyObject* Wrapped(tensorflow::Tensor&& tensor, int index) const {
    auto* handle = tensorflow::TensorHandle::CreateLocalHandle(
        std::move(tensor), context_->CanonicalDevice(kernel_->OutputDevice(index)),
        /*op_device=*/device_, kernel_->OutputResourceDevice(index), context_.get());
    return EagerTensorFromHandle(
        tensorflow::wrap(static_cast<tensorflow::ImmediateExecutionTensorHandle*>(handle)));
  }

  // Supported devices have streams, and their vendor's plugin does not rewrite graphs. (TensorFlow
  // makes a graph for each eager call.) TensorFlow's own GPUs are supported only if the user has
  // set `Devices::kAll`.
  static bool IsSupported(const Runtime& runtime, const tensorflow::Device& device) {
    const auto* accelerator = device.tensorflow_accelerator_device_info();
    return runtime.devices != Devices::kNone && device.IsLocal() && accelerator != nullptr &&
           accelerator->default_context != nullptr &&
           (accelerator->default_context->IsPluggableDevice()
                ? tensorflow::DeviceFactory::IsPluggableDevice(device.device_type())
                : runtime.devices == Devices::kAll &&
                      device.device_type() == tensorflow::DEVICE_GPU) &&
           !accelerator->use_pjrt_tensor_buffer && !runtime.context->PinSmallOpsToCPU() &&
           tensorflow::grappler::PluginGraphOptimizerRegistry::CreateOptimizers(
               {device.device_type()})
               .empty();
  }

 private:
  PlacedKernel(tensorflow::EagerContext* context, tensorflow::Device* device, int num_outputs)
      : context_(context), device_(device), num_outputs_(num_outputs) {
    context_->Ref();
  }

  bool Init(const tensorflow::NodeDef& node) {
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func() || value.list().func_size() > 0) return false;
    }
    tensorflow::FunctionLibraryRuntime* library = context_->func_lib(device_);
    if (library == nullptr) return false;
    ThreadRunner* runner = RunnerOf(context_.get(), device_);
    kernel_.reset(new tensorflow::KernelAndDeviceOp(
        /*rendezvous=*/nullptr, /*log_memory=*/false, library, runner,
        context_->GetCollectiveExecutorHandle(), context_->HostCPU()));
    ScopedFloatMode mode;  // as in PreparedKernel
    if (!kernel_->Init(/*log_device_placement=*/false, node, nullptr, std::nullopt).ok()) {
      return false;
    }
    auto* made = const_cast<tensorflow::OpKernel*>(kernel_->kernel());
    if (made->AsAsync() != nullptr || made->is_deferred()) return false;
    if (SharesCounter(device_->device_type(), node.op())) return false;
    if (made->num_outputs() != num_outputs_) return false;
    for (int i = 0; i < num_outputs_; ++i) {
      if (output_dtype(i) == tensorflow::DT_INT32 && !IsMadeWhereReturned(i)) return false;
    }
    return true;
  }

  // TensorFlow's kernels for a GPU count their threads in one variable for the whole process, which
  // the host resets without waiting for the kernel before. If calls follow each other so fast that
  // the kernels overlap, the generator's state is not updated.
  static bool SharesCounter(const std::string& device_type, const std::string& op) {
    static const std::set<std::string> ops = {"StatefulStandardNormalV2", "StatefulTruncatedNormal",
                                              "StatefulUniform", "StatefulUniformFullInt",
                                              "StatefulUniformInt"};
    return device_type == tensorflow::DEVICE_GPU && ops.count(op) > 0;
  }

  // TensorFlow runs a call as a function, which returns int32 tensors and strings in host memory
  // and all others on the device. It copies an output that the kernel makes elsewhere.
  bool IsMadeWhereReturned(int index) const {
    return kernel_->kernel()->output_memory_types()[index] ==
           tensorflow::MTypeFromDType(output_dtype(index));
  }

  // The tensor of an input, if it is computed and in the memory that the kernel expects; else null.
  const tensorflow::Tensor* Take(TFE_TensorHandle* opaque, int index) const {
    auto* base = tensorflow::unwrap(opaque);
    if (!tensorflow::TensorHandle::classof(base)) return nullptr;
    auto* handle = static_cast<tensorflow::TensorHandle*>(base);
    const tensorflow::LocalTensorHandleData* data = LocalData(*handle);
    if (data == nullptr || handle->dtype != kernel_->input_dtypes()[index]) return nullptr;
    if (!NeverPending(*data) && (!data->IsReady() || !data->IsPoisoned().ok())) return nullptr;
    if (handle->DeviceOrHostCPU(*context_) != kernel_->InputDevice(index)) return nullptr;
    if (handle->dtype == tensorflow::DT_RESOURCE && handle->resource_device() != device_) {
      return nullptr;
    }
    return &TensorOf(*data);
  }

  // Declared first, destroyed last: the kernel points into the context's devices.
  const tensorflow::core::RefCountPtr<tensorflow::EagerContext> context_;
  tensorflow::Device* const device_;  // borrowed from the context
  const int num_outputs_;
  tensorflow::core::RefCountPtr<tensorflow::KernelAndDeviceOp> kernel_;
};

// Determines which inputs and outputs of a node are in host memory when it runs on a device.
inline absl::Status InHostMemory(const tensorflow::Device& device, const tensorflow::NodeDef& node,
                                 std::vector<bool>* inputs, std::vector<bool>* outputs) {
  tensorflow::MemoryTypeVector types[2];
  TF_RETURN_IF_ERROR(tensorflow::MemoryTypesForNode(tensorflow::OpRegistry::Global(),
                                                    tensorflow::DeviceType(device.device_type()),
                                                    node, &types[0], &types[1]));
  for (const auto type : types[0]) inputs->push_back(type == tensorflow::HOST_MEMORY);
  for (const auto type : types[1]) outputs->push_back(type == tensorflow::HOST_MEMORY);
  return absl::OkStatus();
}

// The kernels of one key. TensorFlow runs an op on the device of its resource, whatever the device
// scope, so a key may need one kernel per device. The GIL is held.
class PlacedKernels {
 public:
  // Makes the first kernel for `node`, which TensorFlow has just run with success on these inputs.
  // Returns null if the node has no kernel that may run directly.
  static std::unique_ptr<PlacedKernels> Make(const Runtime& runtime,
                                             const tensorflow::NodeDef& node, int num_outputs,
                                             const std::string& device_name,
                                             TFE_TensorHandle* const* inputs, int num_inputs) {
    tensorflow::Device* device = ResourceDevice(inputs, num_inputs);
    const bool at_resources = device != nullptr;
    if (!at_resources) {
      tensorflow::DeviceNameUtils::ParsedName preferred;
      if (!device_name.empty() &&
          !tensorflow::DeviceNameUtils::ParseFullName(device_name, &preferred)) {
        return nullptr;
      }
      if (!runtime.context->SelectDevice(preferred, node, &device).ok()) return nullptr;
    }
    auto kernel = PlacedKernel::Make(runtime, device, node, num_outputs);
    if (kernel == nullptr || !kernel->ReturnsAllAsMade()) return nullptr;
    std::unique_ptr<PlacedKernels> made(new PlacedKernels);
    made->kernels_.push_back(std::move(kernel));
    if (at_resources) made->node_ = std::make_unique<tensorflow::NodeDef>(node);
    return made;
  }

  // The kernel for a call with these inputs; null if there is none.
  PlacedKernel* For(const Runtime& runtime, TFE_TensorHandle* const* inputs, int num_inputs) {
    return node_ == nullptr ? kernels_[0].get() : At(runtime, ResourceDevice(inputs, num_inputs));
  }

 private:
  PlacedKernels() = default;

  // The kernel for resources on a device. It is made if the device has the type of the first one.
  PlacedKernel* At(const Runtime& runtime, tensorflow::Device* device) {
    for (const auto& kernel : kernels_) {
      if (kernel->device() == device) return kernel.get();
    }
    const PlacedKernel& first = *kernels_[0];
    if (device == nullptr || device->device_type() != first.device()->device_type()) return nullptr;
    auto kernel = PlacedKernel::Make(runtime, device, *node_, first.num_outputs());
    if (kernel == nullptr) return nullptr;
    kernels_.push_back(std::move(kernel));
    return kernels_.back().get();
  }

  // The device of the first resource; null if there is no resource. All resources must be on one
  // device, which `PlacedKernel::Take` checks.
  static tensorflow::Device* ResourceDevice(TFE_TensorHandle* const* inputs, int num_inputs) {
    for (int i = 0; i < num_inputs; ++i) {
      auto* base = tensorflow::unwrap(inputs[i]);
      if (!tensorflow::TensorHandle::classof(base)) continue;
      auto* handle = static_cast<tensorflow::TensorHandle*>(base);
      if (handle->dtype != tensorflow::DT_RESOURCE || LocalData(*handle) == nullptr) continue;
      return handle->resource_device();
    }
    return nullptr;
  }

  std::vector<std::shared_ptr<PlacedKernel>> kernels_;  // at least one
  std::unique_ptr<tensorflow::NodeDef> node_;           // null: no resource determines the device
};

}  // namespace fastops

#endif  // FASTOPS_CPP_PLACED_H_
