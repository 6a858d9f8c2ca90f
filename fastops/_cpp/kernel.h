// PreparedKernel: one op with its attributes on one device, resolved once.
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

// How one call is to be made, and what became of it.
struct Manner {
  bool release_gil = false;
  Threads threads = Threads::kAuto;
  size_t bytes = 0;              // of the inputs
  int64_t* kernel_ns = nullptr;  // to add the time in the kernel to; null: nobody asks
  bool in_caller = false;        // whether the tasks ran in this thread, where that was a choice
};

class PreparedKernel {
 public:
  // Makes the kernel that TensorFlow would run for `node`, which it has run with success on the
  // host, or would (acceptance.h). `num_outputs` is that of the original op: oneDNN's kernels may
  // have more. Null with a status when the direct path is not open. The GIL is held.
  static std::shared_ptr<PreparedKernel> Make(const Runtime& runtime, tensorflow::NodeDef node,
                                              int num_outputs, bool onednn, bool thorough,
                                              absl::Status* status) {
    std::shared_ptr<PreparedKernel> kernel(new PreparedKernel(runtime, num_outputs, thorough));
    *status = kernel->Init(std::move(node), onednn);
    if (!status->ok()) return nullptr;
    return kernel;
  }

  // Runs the kernel and wraps its results. On success `results[i]` are new references and 0 is
  // returned; 1 when the kernel failed (`status`), -1 with a Python exception. Results may alias
  // inputs, as TensorFlow's do. The GIL is held on entry and exit.
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
        // A kernel may return what a handle holds, whatever its dtype: TensorFlow looks at it, too.
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

  // Runs the kernel for its first output and leaves it unwrapped. False when the kernel fails.
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

  // Fills in what a computation is told, but for its inputs.
  void Describe(tensorflow::OpKernelContext::Params* params) const {
    params->op_kernel = kernel_;
    params->device = kernel_device_.get();
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

  // Computes with what `Describe` has filled in, and the inputs.
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
    // A trial is to tell how long the kernel takes.
    const bool may_skip =
        primitive_ != nullptr && (primitive_->alone() || (turn.caller && turn.number < 0));
    if (may_skip && !primitive_->alone() && RunPrimitive(context)) return;
    // `Learn` compares input and result. This reference keeps the kernel from putting its result
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
  // In which threads it computes; null where that is no choice.
  const ThreadChoice* choice() const { return choice_.get(); }
  // About how often oneDNN's primitive ran without the kernel; concurrent calls may go uncounted.
  int64_t primitive_runs() const { return primitive_runs_.load(std::memory_order_relaxed); }
  // Whether it runs functions, and cancels what else its step runs where one fails.
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

  // Up to so many bytes TensorFlow's own kernel moves elements faster than oneDNN's does.
  static constexpr size_t kMostPlainBytes = size_t{1} << 14;

  // Computes, and hands the context to `consume`, whose result it returns.
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
    runner_ = library_->runner() != nullptr ? library_->runner() : context_->runner();
    TF_RETURN_IF_ERROR(MakeKernel(node, &owner_, &kernel_));
    if (MovesElements(node)) {
      TF_RETURN_IF_ERROR(MakeKernel(WithoutOneDnn(node), &plain_owner_, &plain_));
    }
    primitive_ = MakePrimitive(node);
    keeps_trace_ = node.op() == "VarHandleOp";
    calls_functions_ = CallsFunctions(node);
    // Of the asynchronous kernels that plans get to have it is known that they compute in the same
    // way while a thread waits for them, without the GIL. No eager call calls functions.
    if (kernel_->AsAsync() != nullptr && !calls_functions_ &&
        !IsIteration(kernel_->type_string()) && !AnswersAtOnce(kernel_->type_string())) {
      return absl::UnimplementedError("asynchronous kernel");
    }
    if (kernel_->is_deferred()) return absl::UnimplementedError("deferred kernel");
    // Those that call functions, and the asynchronous ones, have threads of their own to wait for.
    if (!calls_functions_ && kernel_->AsAsync() == nullptr) {
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
    ScopedFloatMode mode;  // kernels are made so, too: they convert attributes
    TF_RETURN_IF_ERROR((*owner)->Init(/*log_device_placement=*/false, node, nullptr, std::nullopt));
    *kernel = const_cast<tensorflow::OpKernel*>((*owner)->kernel());
    return absl::OkStatus();
  }

  // Whether an op of oneDNN's gives the bytes that it was given, in another order: those of
  // TensorFlow's own op. Of bfloat16 it makes zeros of small numbers where the order stays, and
  // other dtypes than these two it leaves to TensorFlow.
  static bool MovesElements(const tensorflow::NodeDef& node) {
    if (node.op() != "_MklTranspose" && node.op() != "_MklConjugateTranspose") return false;
    const auto found = node.attr().find("T");
    return found != node.attr().end() && found->second.type() == tensorflow::DT_FLOAT;
  }

  static tensorflow::NodeDef WithoutOneDnn(tensorflow::NodeDef node) {
    node.set_op(node.op().substr(std::strlen("_Mkl")));
    node.mutable_attr()->erase("_kernel");
    return node;
  }

  static bool IsIteration(const std::string& op) {
    return op == "IteratorGetNext" || op == "IteratorGetNextAsOptional";
  }

  // Asynchronous as all that queues do, but nothing to wait for.
  static bool AnswersAtOnce(const std::string& op) {
    return op == "QueueIsClosedV2" || op == "QueueSizeV2";
  }

  // The input that is the shape of the result, -1 if there is none.
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

  // About how many bytes a result of this shape has. No more than counts; 0 for what is no shape.
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

  // Where the program is, as TensorFlow asks at each call. The GIL is held.
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
  tensorflow::OpKernel* kernel_ = nullptr;  // borrowed from owner_
  tensorflow::OpKernel* plain_ = nullptr;   // without oneDNN, for small inputs; likewise, or null
  tensorflow::Device* const device_;        // borrowed from context_, like the next three
  tensorflow::ResourceMgr* resource_manager_ = nullptr;
  tensorflow::FunctionLibraryRuntime* library_ = nullptr;
  std::function<void(std::function<void()>)>* runner_ = nullptr;
  absl::InlinedVector<tensorflow::AllocatorAttributes, 8> input_attrs_;
  absl::InlinedVector<tensorflow::AllocatorAttributes, 4> output_attrs_;
  const int num_outputs_;
  int shape_ = -1;
  bool calls_functions_ = false;
  bool keeps_trace_ = false;  // of the call that made what it makes, for messages about that
  std::unique_ptr<tensorflow::CollectiveExecutor::Handle> collective_;
  std::unique_ptr<tensorflow::RendezvousInterface> rendezvous_;
  const bool thorough_;  // also give what only kernels unknown to fastops may ask for
};

}  // namespace fastops

#endif  // FASTOPS_CPP_KERNEL_H_
