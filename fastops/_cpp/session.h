// The variables of a session. A session has devices of its own, and its variables live there.
#ifndef FASTOPS_CPP_SESSION_H_
#define FASTOPS_CPP_SESSION_H_

#include <Python.h>

#include <string>
#include <utility>
#include <vector>

#include "compat.h"
#include "runtime.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/public/session.h"

namespace fastops {

class NativeSessionVariables {
 public:
  // Adds the variable that a "VarHandleOp" node refers to. Variables are numbered in this order.
  absl::Status Add(const tensorflow::NodeDef& node) {
    SessionVariable entry;
    TF_RETURN_IF_ERROR(GetNodeAttr(node, "container", &entry.container));
    TF_RETURN_IF_ERROR(GetNodeAttr(node, "shared_name", &entry.name));
    TF_RETURN_IF_ERROR(GetNodeAttr(node, "dtype", &entry.kind.dtype));
    TF_RETURN_IF_ERROR(GetNodeAttr(node, "shape", &entry.kind.shape));
    entries_.push_back(std::move(entry));
    return absl::OkStatus();
  }

  // Looks up the variables with the numbers in `which`. Returns false if one does not exist, has no
  // value or is not on the host. Appends to `changed` those that were replaced since the last
  // lookup.
  bool Find(tensorflow::Session* session, const std::vector<int>& which,
            std::vector<int>* changed) {
    const tensorflow::DeviceMgr* devices = nullptr;
    if (!session->LocalDeviceManager(&devices).ok()) return false;
    tensorflow::Device* host = devices->HostCPU();
    if (host == nullptr) return false;
    const tensorflow::ResourceMgr& resources = *host->resource_manager();
    for (int i : which) {
      SessionVariable& entry = entries_[i];
      tensorflow::Var* current = nullptr;
      const std::string& container =
          entry.container.empty() ? resources.default_container() : entry.container;
      if (!resources.Lookup(container, entry.name, &current).ok()) {
        entry.variable.reset();  // the session has freed the variable, so free it here, too
        changed->push_back(i);
        return false;
      }
      tensorflow::core::RefCountPtr<tensorflow::Var> variable(current);
      {
        tensorflow::tf_shared_lock lock(*current->mu());
        if (!current->is_initialized) return false;
      }
      if (current == entry.variable.get()) continue;
      entry.variable = std::move(variable);
      changed->push_back(i);
    }
    return true;
  }

  // Makes a handle for a variable that `Find` has found, for kernels of the eager context.
  absl::Status Handle(int i, const Runtime& runtime, tensorflow::Tensor* tensor) const {
    const SessionVariable& entry = entries_[i];
    entry.variable->Ref();  // the handle owns this reference
    auto handle = tensorflow::ResourceHandle::MakeRefCountingHandle<tensorflow::Var>(
        entry.variable.get(), runtime.host->name(), {entry.kind});
    // Assignments look up the variable by name, even if the handle refers to the variable directly.
    TF_RETURN_IF_ERROR(runtime.host->resource_manager()->CreateUnowned(
        handle.container(), handle.name(), entry.variable.get()));
    *tensor = tensorflow::Tensor(tensorflow::DT_RESOURCE, tensorflow::TensorShape({}));
    tensor->scalar<tensorflow::ResourceHandle>()() = std::move(handle);
    return absl::OkStatus();
  }

 private:
  struct SessionVariable {
    std::string container, name;
    tensorflow::DtypeAndPartialTensorShape kind;
    tensorflow::core::RefCountPtr<tensorflow::Var> variable;
  };

  std::vector<SessionVariable> entries_;
};

// Wraps a handle on the host as TensorFlow does. Returns a new reference, or null with a Python
// exception. The GIL is held.
inline PyObject* WrapHandle(tensorflow::Tensor&& tensor, const Runtime& runtime) {
  auto* handle = tensorflow::TensorHandle::CreateLocalHandle(std::move(tensor), runtime.host,
                                                             runtime.host, runtime.context);
  return EagerTensorFromHandle(
      tensorflow::wrap(static_cast<tensorflow::ImmediateExecutionTensorHandle*>(handle)));
}

}  // namespace fastops

#endif  // FASTOPS_CPP_SESSION_H_
