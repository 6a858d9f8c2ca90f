// CachedOp: a TFE_Op with its attributes encoded once, executed by TensorFlow's own runtime.
#ifndef FASTOPS_CPP_CAPI_H_
#define FASTOPS_CPP_CAPI_H_

#include <memory>
#include <string>
#include <vector>

#include "compat.h"
#include "gil.h"
#include "invariants.h"
#include "tensorflow/c/eager/tfe_op_internal.h"
#include "tensorflow/core/common_runtime/eager/attr_builder.h"
#include "tensorflow/core/common_runtime/eager/eager_operation.h"
#include "tensorflow/python/util/stack_trace.h"

namespace fastops {

class CachedOp {
 public:
  // `context` is borrowed. The cache that owns this object is flushed before the context is freed.
  CachedOp(tensorflow::EagerContext* context, const tensorflow::NodeDef& node, int num_outputs)
      : context_(context), name_(node.op()), num_outputs_(num_outputs) {
    attrs_.Reset(name_.c_str());
    for (const auto& attr : node.attr()) attrs_.Set(attr.first, attr.second);
  }

  // Runs the op on the given inputs. Returns 0 on success: `results[i]` are new references. Returns
  // 1 on an error of TensorFlow (`status`), and -1 with a Python exception. The GIL is held on
  // entry and exit, and released while the op runs.
  int Run(TFE_TensorHandle* const* inputs, int num_inputs, const char* device, PyObject** results,
          absl::Status* status) {
    FASTOPS_ASSERT(PyGILState_Check());
    // Other threads may run the same entry while this thread waits. Take the idle operation for
    // this call, or make a new one.
    std::unique_ptr<tensorflow::EagerOperation> op = std::move(idle_);
    if (op == nullptr) op = std::make_unique<tensorflow::EagerOperation>(context_);
    absl::InlinedVector<tensorflow::AbstractTensorHandle*, 4> outputs(num_outputs_);
    int count = num_outputs_;
    {
      op->Clear();
      *status = op->Reset(name_.c_str(), device, /*remote=*/false, /*executor=*/nullptr);
      if (status->ok()) {
        // An async error is raised later and elsewhere. It needs the stack trace of this call.
        if (op->Executor().Async()) {
          op->SetStackTrace(tensorflow::ManagedStackTrace(
              tensorflow::GetStackTrace(tensorflow::StackTrace::kStackTraceInitialSize)));
        }
        op->MutableAttrs()->CopyAttributes(attrs_);
        for (int i = 0; i < num_inputs && status->ok(); ++i) {
          *status = op->AddInput(tensorflow::unwrap(inputs[i]));
        }
      }
      if (status->ok()) {
        ScopedGilRelease gil;
        *status = op->Execute(absl::MakeSpan(outputs), &count);
      }
    }
    op->Clear();
    if (idle_ == nullptr) idle_ = std::move(op);
    if (!status->ok()) return 1;
    int done = 0;
    for (; done < count; ++done) {
      auto* handle = static_cast<tensorflow::ImmediateExecutionTensorHandle*>(outputs[done]);
      results[done] =
          TakingGil([handle] { return EagerTensorFromHandle(tensorflow::wrap(handle)); });
      if (results[done] == nullptr) break;
    }
    if (done == count) return 0;
    for (int i = 0; i < done; ++i) Py_DECREF(results[i]);
    return -1;
  }

  int num_outputs() const { return num_outputs_; }

 private:
  tensorflow::EagerContext* const context_;
  const std::string name_;
  const int num_outputs_;
  tensorflow::AttrBuilder attrs_;
  std::unique_ptr<tensorflow::EagerOperation> idle_;  // guarded by the GIL
};

}  // namespace fastops

#endif  // FASTOPS_CPP_CAPI_H_
