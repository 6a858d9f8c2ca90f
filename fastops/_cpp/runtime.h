// The state of TensorFlow's runtime that a direct call depends on.
#ifndef FASTOPS_CPP_RUNTIME_H_
#define FASTOPS_CPP_RUNTIME_H_

#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "compat.h"
#include "device.h"
#include "tensorflow/core/profiler/lib/traceme.h"
#include "tensorflow/core/util/util.h"

namespace fastops {

// On which devices beside the host calls may be direct.
enum class Devices { kNone, kPlugins, kAll };

// What the cached kernels were made for. All pointers are borrowed: `py_context` is watched by a
// weak reference, `context` is kept alive by every PreparedKernel.
struct Runtime {
  PyObject* py_context = nullptr;
  tensorflow::EagerContext* context = nullptr;
  tensorflow::Device* host = nullptr;
  tensorflow::ProcessFunctionLibraryRuntime* pflr = nullptr;
  std::shared_ptr<HostDevice> kernel_device;    // the host as kernels see it
  std::shared_ptr<CallerDevice> caller_device;  // and without threads of its own
  bool deterministic = false;
  bool soft_placement = false;
  bool writes_nodes = false;  // the devices write down what runs on them
  bool only_host = false;     // no accelerator: a value without a device scope lives on the host
  Devices devices = Devices::kPlugins;
  const char* host_name = nullptr;

  void Clear() { *this = Runtime(); }

  // Captures the context that TensorFlow publishes now. False while there is none.
  bool Capture(PyObject* new_py_context, Devices direct_on) {
    Clear();
    devices = direct_on;
    context = tensorflow::GetCEagerContext();
    if (context == nullptr) return false;
    py_context = new_py_context;
    host = context->HostCPU();
    pflr = context->pflr();
    kernel_device = std::make_shared<HostDevice>(host);
    caller_device = std::make_shared<CallerDevice>(host);
    deterministic = tsl::OpDeterminismRequired();
    soft_placement = context->AllowSoftPlacement();
    const char* nodes = std::getenv("TF_NODE_FILE_WRITER_DIRECTORY");
    writes_nodes = nodes != nullptr && *nodes != '\0';
    only_host = true;
    for (const tensorflow::Device* device : context->ListLocalTfDevices()) {
      if (device->device_type() != tensorflow::DEVICE_CPU) only_host = false;
    }
    host_name = Immortal(host->name());
    return true;
  }

  // TensorFlow keeps views of device names as keys of its cache of scalars.
  static const char* Immortal(const std::string& name) {
    static auto* names = new std::set<std::string>;
    return names->insert(name).first->c_str();
  }

  // Whether kernels made for this state may still run. Cheap: this is asked on every call.
  // `_reset_context` changes the context, `connect_to_host` and collectives its host and its
  // function runtime; determinism chooses kernels, soft placement devices.
  bool Current(PyObject* now) const {
    return now == py_context && tensorflow::GetCEagerContext() == context &&
           context->HostCPU() == host && context->pflr() == pflr &&
           tsl::OpDeterminismRequired() == deterministic &&
           context->AllowSoftPlacement() == soft_placement;
  }
};

// The local device of that name; null where there is none.
inline tensorflow::Device* LocalDevice(const Runtime& runtime, const std::string& name) {
  for (tensorflow::Device* device : runtime.context->ListLocalTfDevices()) {
    if (device->name() == name) return device;
  }
  return nullptr;
}

// Whether a device scope is one of a custom device, which runs all ops itself.
inline bool IsCustom(const Runtime& runtime, const std::string& device_name) {
  return !device_name.empty() && runtime.context->IsCustomDevice(device_name);
}

// Whether TensorFlow places a node on the host. `device_name` may be empty: no preference.
inline bool PlacedOnHost(const Runtime& runtime, const tensorflow::NodeDef& node,
                         const std::string& device_name) {
  tensorflow::DeviceNameUtils::ParsedName preferred;
  tensorflow::Device* selected = nullptr;
  return (device_name.empty() ||
          tensorflow::DeviceNameUtils::ParseFullName(device_name, &preferred)) &&
         runtime.context->SelectDevice(preferred, node, &selected).ok() && selected == runtime.host;
}

inline bool Remote(const Runtime& runtime) {
  return runtime.context->remote_device_mgr() != nullptr;
}

// The executor that TensorFlow would use on this thread: the thread-local one may be async.
inline bool Async(const Runtime& runtime) {
  // Asking `Executor()` takes a lock, 13 ns. While no thread has an executor of its own there is
  // nothing to look up; a thread that sets its own sees the map change at once.
  if (ThreadExecutors(*runtime.context).empty()) return DefaultExecutor(*runtime.context).Async();
  return runtime.context->Executor().Async();
}

// Something watches ops as they run, and only TensorFlow's own path reports to it; or TensorFlow
// was told not to run ops as functions, and resolves oneDNN's kernels in another way.
inline bool Observed(const Runtime& runtime) {
  // Not StoresGraphs: the first call of a key has stored its graph.
  return runtime.writes_nodes || runtime.context->LogDevicePlacement() ||
         runtime.context->LogMemory() || tsl::profiler::TraceMe::Active() ||
         !runtime.context->RunEagerOpAsFunction();
}

// Whether TensorFlow stores the graph of an op when it makes a kernel for it.
inline bool StoresGraphs(const Runtime& runtime) { return runtime.context->ShouldStoreGraphs(); }

inline bool OneDnnEnabled() { return tensorflow::IsMKLEnabled(); }

inline bool EnvironmentSets(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && *value != '0';
}

// The variable, if one is set, that makes TensorFlow choose or treat kernels in a way that fastops
// does not know: a second set of CPU kernels, or oneDNN kernels that keep the first filter they
// see.
inline const char* UnknownKernels() {
  for (const char* name : {"TF_ENABLE_ZENDNN_OPTS", "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"}) {
    if (EnvironmentSets(name)) return name;
  }
  return nullptr;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_RUNTIME_H_
