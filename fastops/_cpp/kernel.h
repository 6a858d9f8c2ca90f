// PreparedKernel: the kernel for one op with its attributes on the host, resolved once.
#ifndef FASTOPS_CPP_KERNEL_H_
#define FASTOPS_CPP_KERNEL_H_

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "float_mode.h"
#include "gil.h"
#include "handle.h"
#include "invariants.h"
#include "onednn/primitives.h"
#include "onednn/rewrite.h"
#include "runtime.h"
#include "tensorflow/core/common_runtime/eager/kernel_and_device.h"
#include "tensorflow/core/common_runtime/rendezvous_mgr.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/python/util/stack_trace.h"
#include "timer.h"

namespace fastops {

// How to run one call, and facts about its run.
struct Manner {
  bool release_gil = false;
  Threads threads = Threads::kAuto;
  size_t bytes = 0;              // of the inputs
  int64_t* kernel_ns = nullptr;  // the time in the kernel is added here; null: not measured
  bool in_caller = false;        // set if a `ThreadChoice` ran the tasks in this thread
};

class PreparedKernel {
 public:
  // Makes the kernel that TensorFlow would run for `node`. TensorFlow must have run the node with
  // success on the host, or be known to accept it (acceptance.h). `num_outputs` is that of the
  // original op: oneDNN's kernels may have more. Returns null and sets the status if the node has
  // no kernel that may run directly. The GIL is held.
  static std::shared_ptr<PreparedKernel> Make(const Runtime& runtime, tensorflow::NodeDef node,
                                              int num_outputs, bool onednn, bool thorough,
                                              absl::Status* status) {
    std::shared_ptr<PreparedKernel> kernel(new PreparedKernel(runtime, num_outputs, thorough));
    *status = kernel->Init(std::move(node), onednn);
    if (!status->ok()) return nullptr;
    return kernel;
  }

  // Runs the kernel and wraps its results. Returns 0 on success: `results[i]` are new references.
  // Returns 1 if the kernel failed (`status`), and -1 with a Python exception. Results may alias
  // inputs, as in TensorFlow. The GIL is held on entry and exit.
  int Run(const tensorflow::TensorValue* inputs, PyObject** results, absl::Status* status,
          Manner* manner) const {
    FASTOPS_ASSERT(PyGILState_Check());
    return Execute(inputs, manner, [&](tensorflow::OpKernelContext* context) {
      *status = context->status();
      if (!status->ok()) return 1;
      for (int i = 0; i < num_outputs_; ++i) {
        const tensorflow::Tensor* made = context->mutable_output(i);
        const bool typed = made != nullptr && made->dtype() == kernel_->output_type(i);
        if (typed) {
          std::unique_ptr<tensorflow::Tensor> output(context->release_output(i).tensor);
          results[i] = TakingGil([&] { return Wrap(std::move(*output), device_, context_.get()); });
          if (results[i] != nullptr) continue;
        }
        for (int j = 0; j < i; ++j) Py_DECREF(results[j]);
        if (typed) return -1;
        // A kernel that returns the value behind a handle may return one of another dtype.
        // TensorFlow checks the dtype, too.
        *status = made == nullptr
                      ? absl::InternalError("the kernel left an output unset")
                      : absl::InvalidArgumentError(absl::StrCat(
                            "Type mismatch: actual ", tensorflow::DataTypeString(made->dtype()),
                            " vs. expect ", tensorflow::DataTypeString(kernel_->output_type(i))));
        return 1;
      }
      return 0;
    });
  }

  // Runs the kernel for its first output and does not wrap it. Returns false if the kernel fails.
  bool RunUnwrapped(const tensorflow::TensorValue* inputs, tensorflow::Tensor* result,
                    int64_t* kernel_ns) const {
    const auto take = [&](tensorflow::OpKernelContext* context) {
      if (!context->status().ok() || context->mutable_output(0) == nullptr) return 1;
      std::unique_ptr<tensorflow::Tensor> output(context->release_output(0).tensor);
      *result = std::move(*output);
      return 0;
    };
    Manner manner;
    manner.kernel_ns = kernel_ns;
    return 0 == Execute(inputs, &manner, take);
  }

  // Fills in all parameters of a computation except its inputs.
  void Describe(tensorflow::OpKernelContext::Params* params) const {
    params->op_kernel = kernel_;
    params->device = seen_device_;
    params->input_alloc_attrs = input_attrs_;
    params->output_attr_array = output_attrs_.data();
    params->resource_manager = resource_manager_;
    params->function_library = library_;
    params->cancellation_manager = NeverCancelled();
    params->runner = runner_;
    params->frame_iter = tensorflow::FrameAndIter(0, 0);
    if (thorough_) {
      params->step_container = context_->StepContainer();
      params->collective_executor = collective_->get();
      params->rendezvous = rendezvous_.get();
    }
  }

  // Runs the kernel. `params` comes from `Describe`, with the inputs added. The GIL may be
  // released: members are constant since `Init`, which ran with the GIL, or they are atomic inside.
  void Compute(tensorflow::OpKernelContext::Params* params, tensorflow::OpKernelContext* context,
               Manner* manner) const {
    if (primitive_ != nullptr && primitive_->alone() && RunPrimitive(context)) return;
    tensorflow::OpKernel* kernel = kernel_;
    if (plain_ != nullptr && params->inputs[0].tensor->TotalBytes() <= kMostPlainBytes) {
      params->op_kernel = kernel = plain_;
    }
    if (choice_ == nullptr) {
      kernel->Compute(context);
      return;
    }
    const size_t asked = shape_ < 0 ? 0 : BytesOf(*params->inputs[shape_].tensor);
    const ThreadChoice::Turn turn = choice_->Begin(manner->threads, std::max(manner->bytes, asked));
    manner->in_caller = turn.caller;
    if (turn.caller) params->device = caller_device_.get();
    // A trial measures how long the kernel takes, so the primitive must not replace the kernel.
    const bool may_skip =
        primitive_ != nullptr && (primitive_->alone() || (turn.caller && turn.number < 0));
    if (may_skip && !primitive_->alone() && RunPrimitive(context)) return;
    // `Learn` compares input and result. With this reference the kernel does not put its result
    // into the memory of the first input.
    std::optional<tensorflow::Tensor> source;
    if (may_skip) source = context->input(0);
    if (turn.size < 0) {
      kernel->Compute(context);
    } else {
      CallerPool& pool = caller_device_->pool();
      if (turn.number >= 0) pool.TakeUsed();
      const int64_t start = turn.number < 0 ? 0 : Nanoseconds();
      kernel->Compute(context);
      const int64_t ns = turn.number < 0 ? 0 : Nanoseconds() - start;
      const bool used = pool.TakeUsed();
      if (turn.number >= 0 || used) choice_->End(turn, ns, used);
    }
    if (may_skip && context->status().ok()) primitive_->Learn(context);
  }

  tensorflow::OpKernel* kernel() const { return kernel_; }
  // Chooses the threads of the kernel's tasks; null if there is no choice.
  const ThreadChoice* choice() const { return choice_.get(); }
  // How often oneDNN's primitive ran without the kernel. Concurrent calls may be missed. Relaxed:
  // the number tells nothing about other memory.
  int64_t primitive_runs() const { return primitive_runs_.load(std::memory_order_relaxed); }
  // Whether the kernel runs functions. If one fails, it cancels the rest of its step.
  bool calls_functions() const { return calls_functions_; }
  int num_inputs() const { return static_cast<int>(input_attrs_.size()); }
  int num_outputs() const { return num_outputs_; }

 private:
  bool RunPrimitive(tensorflow::OpKernelContext* context) const {
    if (!primitive_->Compute(context)) return false;
    primitive_runs_.store(primitive_runs() + 1, std::memory_order_relaxed);
    return true;
  }

  PreparedKernel(const Runtime& runtime, int num_outputs, bool thorough)
      : context_(runtime.context),
        kernel_device_(runtime.kernel_device),
        caller_device_(runtime.caller_device),
        device_(runtime.host),
        num_outputs_(num_outputs),
        thorough_(thorough) {
    context_->Ref();
  }

  // Up to this size, TensorFlow's own kernel moves elements faster than oneDNN's.
  static constexpr size_t kMostPlainBytes = size_t{1} << 14;

  // Runs the kernel, then calls `consume` with the context and returns its result.
  template <typename Consume>
  int Execute(const tensorflow::TensorValue* inputs, Manner* manner, Consume consume) const {
    tensorflow::OpKernelContext::Params params;
    Describe(&params);
    if (keeps_trace_) params.stack_trace = Trace();
    params.inputs = absl::MakeConstSpan(inputs, input_attrs_.size());

    tensorflow::OpKernelContext context(&params);
    {
      ScopedGilRelease gil(manner->release_gil);
      ScopedTimer timer(manner->kernel_ns);
      ScopedFloatMode mode;
      Compute(&params, &context, manner);
    }
    return consume(&context);
  }

  absl::Status Init(tensorflow::NodeDef node, bool onednn) {
    node.set_device(device_->name());
    if (onednn) TF_RETURN_IF_ERROR(ResolveOneDnn(context_.get(), device_, &node));
    library_ = context_->func_lib(device_);
    runner_ = RunnerOf(context_.get(), device_);
    TF_RETURN_IF_ERROR(MakeKernel(node, &owner_, &kernel_));
    if (MovesElements(node)) {
      TF_RETURN_IF_ERROR(MakeKernel(WithoutOneDnn(node), &plain_owner_, &plain_));
    }
    primitive_ = MakePrimitive(node);
    keeps_trace_ = node.op() == "VarHandleOp";
    calls_functions_ = CallsFunctions(node);
    // The asynchronous kernels accepted here are known to compute the same if a thread without the
    // GIL waits for them. Kernels that call functions run in plans only, never for an eager call.
    if (kernel_->AsAsync() != nullptr && !calls_functions_ &&
        !IsIteration(kernel_->type_string()) && !AnswersAtOnce(kernel_->type_string())) {
      return absl::UnimplementedError("asynchronous kernel");
    }
    if (kernel_->is_deferred()) return absl::UnimplementedError("deferred kernel");
    // TensorFlow compares the device that runs a Python function with those of its results.
    const bool runs_python = RunsPython(node.op());
    seen_device_ = runs_python ? device_ : kernel_device_.get();
    // Kernels that call functions and asynchronous kernels wait for threads of their own.
    if (!calls_functions_ && kernel_->AsAsync() == nullptr && !runs_python) {
      choice_ = std::make_unique<ThreadChoice>();
      shape_ = FindShape(node.op());
    }
    input_attrs_.resize(kernel_->num_inputs());
    output_attrs_.resize(kernel_->num_outputs());
    resource_manager_ = device_->resource_manager();
    if (thorough_) {
      collective_ = context_->GetCollectiveExecutorHandle();
      rendezvous_ =
          std::make_unique<tensorflow::PrivateIntraProcessRendezvous>(context_->local_device_mgr());
    }
    return absl::OkStatus();
  }

  using Owner = tensorflow::core::RefCountPtr<tensorflow::KernelAndDeviceOp>;

  absl::Status MakeKernel(const tensorflow::NodeDef& node, Owner* owner,
                          tensorflow::OpKernel** kernel) {
    owner->reset(new tensorflow::KernelAndDeviceOp(
        /*rendezvous=*/nullptr, /*log_memory=*/false, library_, runner_,
        context_->GetCollectiveExecutorHandle(), device_));
    ScopedFloatMode mode;  // TensorFlow sets it here, too: kernels convert attributes
    TF_RETURN_IF_ERROR((*owner)->Init(/*log_device_placement=*/false, node, nullptr, std::nullopt));
    *kernel = const_cast<tensorflow::OpKernel*>((*owner)->kernel());
    return absl::OkStatus();
  }

  // Whether a oneDNN op only reorders the bytes of its input, so that TensorFlow's own op gives the
  // same bytes. For bfloat16 it does not: oneDNN's op flushes small numbers to zero if the order
  // stays. For dtypes other than float32 and bfloat16, oneDNN's op calls TensorFlow's code.
  static bool MovesElements(const tensorflow::NodeDef& node) {
    if (node.op() != "_MklTranspose" && node.op() != "_MklConjugateTranspose") return false;
    const auto type_attr = node.attr().find("T");
    return type_attr != node.attr().end() && type_attr->second.type() == tensorflow::DT_FLOAT;
  }

  static tensorflow::NodeDef WithoutOneDnn(tensorflow::NodeDef node) {
    node.set_op(node.op().substr(std::strlen("_Mkl")));
    node.mutable_attr()->erase("_kernel");
    return node;
  }

  static bool RunsPython(const std::string& op) {
    return op == "EagerPyFunc" || op == "PyFunc" || op == "PyFuncStateless";
  }

  static bool IsIteration(const std::string& op) {
    return op == "IteratorGetNext" || op == "IteratorGetNextAsOptional";
  }

  // All kernels of queues are asynchronous, but these have nothing to wait for.
  static bool AnswersAtOnce(const std::string& op) {
    return op == "QueueIsClosedV2" || op == "QueueSizeV2";
  }

  // The index of the input that is the shape of the result; -1 if there is none.
  static int FindShape(const std::string& op) {
    const tensorflow::OpDef* definition = nullptr;
    if (!tensorflow::OpRegistry::Global()->LookUpOpDef(op, &definition).ok()) return -1;
    for (int i = 0; i < definition->input_arg_size(); ++i) {
      const auto& arg = definition->input_arg(i);
      if (!arg.number_attr().empty() || !arg.type_list_attr().empty()) return -1;
      if (arg.name() == "shape" || arg.name() == "dims") return i;
    }
    return -1;
  }

  // Estimates the bytes of a result of this shape, up to a limit. Returns 0 if the tensor is not a
  // shape.
  static size_t BytesOf(const tensorflow::Tensor& shape) {
    constexpr int64_t kEnough = int64_t{1} << 40;
    int64_t bytes = sizeof(float);
    if (shape.dims() != 1) return 0;
    for (int64_t i = 0; i < shape.NumElements(); ++i) {
      int64_t size = 0;
      if (shape.dtype() == tensorflow::DT_INT32) {
        size = shape.flat<int32_t>()(i);
      } else if (shape.dtype() == tensorflow::DT_INT64) {
        size = shape.flat<int64_t>()(i);
      }
      if (size <= 0) return 0;
      bytes = size > kEnough / bytes ? kEnough : bytes * size;
    }
    return bytes;
  }

  // The present stack trace of the program. TensorFlow takes one at each call. The GIL is held.
  static tensorflow::ManagedStackTrace Trace() {
    return tensorflow::ManagedStackTrace(
        tensorflow::GetStackTrace(tensorflow::StackTrace::kStackTraceInitialSize));
  }

  static bool CallsFunctions(const tensorflow::NodeDef& node) {
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func() || value.list().func_size() > 0) return true;
    }
    return false;
  }

  static tensorflow::CancellationManager* NeverCancelled() {
    static auto* manager = new tensorflow::CancellationManager;
    return manager;
  }

  // Declared first, destroyed last: the kernel points into the context's devices.
  const tensorflow::core::RefCountPtr<tensorflow::EagerContext> context_;
  const std::shared_ptr<HostDevice> kernel_device_;
  const std::shared_ptr<CallerDevice> caller_device_;
  std::unique_ptr<ThreadChoice> choice_;
  std::unique_ptr<CachedPrimitive> primitive_;  // null: the kernel has none
  mutable std::atomic<int64_t> primitive_runs_{0};
  Owner owner_;
  Owner plain_owner_;
  tensorflow::OpKernel* kernel_ = nullptr;     // borrowed from owner_
  tensorflow::OpKernel* plain_ = nullptr;      // without oneDNN, for small inputs; null if not used
  tensorflow::Device* seen_device_ = nullptr;  // the device as the kernel sees it; borrowed
  tensorflow::Device* const device_;           // borrowed from context_, like the next three
  tensorflow::ResourceMgr* resource_manager_ = nullptr;
  tensorflow::FunctionLibraryRuntime* library_ = nullptr;
  ThreadRunner* runner_ = nullptr;
  absl::InlinedVector<tensorflow::AllocatorAttributes, 8> input_attrs_;
  absl::InlinedVector<tensorflow::AllocatorAttributes, 4> output_attrs_;
  const int num_outputs_;
  int shape_ = -1;
  bool calls_functions_ = false;
  bool keeps_trace_ = false;  // error messages show where a variable was made
  std::unique_ptr<tensorflow::CollectiveExecutor::Handle> collective_;
  std::unique_ptr<tensorflow::RendezvousInterface> rendezvous_;
  const bool thorough_;  // set step container, collectives and rendezvous, for custom ops
};

}  // namespace fastops

#endif  // FASTOPS_CPP_KERNEL_H_
