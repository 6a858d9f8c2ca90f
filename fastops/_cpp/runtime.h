// The state of TensorFlow's runtime that a direct call depends on.
#ifndef FASTOPS_CPP_RUNTIME_H_
#define FASTOPS_CPP_RUNTIME_H_

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "compat.h"
#include "device.h"
#include "tensorflow/core/profiler/lib/traceme.h"
#include "tensorflow/core/util/util.h"

namespace fastops {

// Which devices besides the host may run direct calls.
enum class Devices { kNone, kPlugins, kAll };

// The state that the cached kernels were built for. All pointers are borrowed. A weak reference
// watches `py_context`, and every PreparedKernel keeps `context` alive.
struct Runtime {
  PyObject* py_context = nullptr;
  tensorflow::EagerContext* context = nullptr;
  tensorflow::Device* host = nullptr;
  tensorflow::ProcessFunctionLibraryRuntime* pflr = nullptr;
  std::shared_ptr<HostDevice> kernel_device;    // the host as kernels see it
  std::shared_ptr<CallerDevice> caller_device;  // runs tasks in the calling thread
  bool deterministic = false;
  bool soft_placement = false;
  bool writes_nodes = false;  // TF_NODE_FILE_WRITER is active: devices write nodes to files
  bool only_host = false;     // no accelerator: a value without a device scope lives on the host
  Devices devices = Devices::kPlugins;
  const char* host_name = nullptr;

  void Clear() { *this = Runtime(); }

  // Captures the context that TensorFlow has now. Returns false while there is none.
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

  // Returns a copy of a name that is never freed. TensorFlow's cache of scalars keeps views of
  // device names as keys.
  static const char* Immortal(const std::string& name) {
    static auto* names = new std::set<std::string>;
    return names->insert(name).first->c_str();
  }

  // Whether kernels built for this state may still run. It is cheap, since every call checks it.
  // `_reset_context` changes the context. `connect_to_host` and collectives change its host and its
  // function runtime. Determinism selects kernels, and soft placement selects devices. These are
  // plain reads without TensorFlow's locks, as in TensorFlow's own calls. Pointers are only
  // compared.
  bool Current(PyObject* now) const {
    return now == py_context && tensorflow::GetCEagerContext() == context &&
           context->HostCPU() == host && context->pflr() == pflr &&
           tsl::OpDeterminismRequired() == deterministic &&
           context->AllowSoftPlacement() == soft_placement;
  }
};

// Runs a task in one of the threads in which TensorFlow runs the nodes of graphs.
using ThreadRunner = std::function<void(std::function<void()>)>;

// The runner that TensorFlow passes to the kernels of a device. The device runs functions.
inline ThreadRunner* RunnerOf(tensorflow::EagerContext* context, tensorflow::Device* device) {
  ThreadRunner* runner = context->func_lib(device)->runner();
  return runner != nullptr ? runner : context->runner();
}

// The local device of that name; null if there is none.
inline tensorflow::Device* LocalDevice(const Runtime& runtime, const std::string& name) {
  for (tensorflow::Device* device : runtime.context->ListLocalTfDevices()) {
    if (device->name() == name) return device;
  }
  return nullptr;
}

// Whether a device scope names a custom device. A custom device runs all ops itself.
inline bool IsCustom(const Runtime& runtime, const std::string& device_name) {
  return !device_name.empty() && runtime.context->IsCustomDevice(device_name);
}

// Whether the name of a device scope is that of the only device there is. TensorFlow chooses this
// device without the scope, too.
inline bool IsOnlyDevice(const Runtime& runtime, const char* device_name) {
  return std::strcmp(device_name, runtime.host_name) == 0 &&
         runtime.context->ListLocalTfDevices().size() == 1;
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
  // `Executor()` takes a lock, which costs 13 ns. Skip it while no thread has its own executor. A
  // thread that sets its own executor sees the changed map at once. `empty` reads one word, of
  // which a thread never sees an older value than its own, on any processor. Whether it sees the
  // executors of other threads does not matter.
  if (ThreadExecutors(*runtime.context).empty()) return DefaultExecutor(*runtime.context).Async();
  return runtime.context->Executor().Async();
}

// Whether something observes ops as they run: node files, placement or memory logging, or the
// profiler. Only TensorFlow's own path reports to them. Also true if TensorFlow is set not to run
// eager ops as functions, because it then resolves oneDNN's kernels in another way.
inline bool Observed(const Runtime& runtime) {
  // StoresGraphs does not matter here: the first call of a key has stored the graph already.
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

// Returns the environment variable, if one is set, that makes TensorFlow use kernels in a way that
// fastops does not support: a second set of CPU kernels, or oneDNN kernels that keep the first
// filter they see. Null if none is set.
inline const char* UnknownKernels() {
  for (const char* name : {"TF_ENABLE_ZENDNN_OPTS", "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"}) {
    if (EnvironmentSets(name)) return name;
  }
  return nullptr;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_RUNTIME_H_
