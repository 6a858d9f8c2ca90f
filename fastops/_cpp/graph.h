// The graph that TensorFlow executes for a function, after its passes, grappler and oneDNN.
#ifndef FASTOPS_CPP_GRAPH_H_
#define FASTOPS_CPP_GRAPH_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "runtime.h"
#include "tensorflow/core/common_runtime/eager/kernel_and_device.h"
#include "tensorflow/core/framework/function.h"

namespace fastops {

// Instantiates a function as an eager call does, and returns the serialized graphs of its
// partitions. `call` is the node of the call. It needs an attribute that makes it unique, because
// TensorFlow returns no graphs for an instance that exists already. `inputs` matters only for
// handles and may contain nulls. `names` are the names of the devices of the inputs, empty for the
// host. `preferred` is set to the device on which TensorFlow runs the call, and all nodes that are
// not placed elsewhere.
inline absl::Status ExecutedGraphs(const Runtime& runtime, const tensorflow::NodeDef& call,
                                   const std::vector<TFE_TensorHandle*>& inputs,
                                   const std::vector<std::string>& names,
                                   std::vector<std::string>* graphs,
                                   tensorflow::Device** preferred) {
  std::unordered_map<int, tensorflow::DtypeAndPartialTensorShape> resources;
  std::vector<tensorflow::Device*> devices(inputs.size(), runtime.host);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!names[i].empty()) devices[i] = LocalDevice(runtime, names[i]);
    if (devices[i] == nullptr) return absl::NotFoundError("an input is on no local device");
    if (inputs[i] == nullptr) continue;
    auto* handle = static_cast<tensorflow::TensorHandle*>(tensorflow::unwrap(inputs[i]));
    if (handle->dtype != tensorflow::DT_RESOURCE) continue;
    std::vector<tensorflow::DtypeAndPartialTensorShape> shapes;
    TF_RETURN_IF_ERROR(handle->GetResourceHandleDtypesAndShapes(&shapes));
    if (!shapes.empty()) resources[i] = shapes[0];
    if (handle->resource_device() != nullptr) devices[i] = handle->resource_device();
  }
  tensorflow::EagerContext* context = runtime.context;
  TF_RETURN_IF_ERROR(context->SelectDevice({}, call, preferred));
  tensorflow::FunctionLibraryRuntime* library = context->func_lib(*preferred);
  if (library == nullptr) return absl::NotFoundError("the device runs no functions");
  tensorflow::core::RefCountPtr<tensorflow::KernelAndDeviceFunc> function(
      NewFunctionKernel(library, runtime.pflr, std::move(devices), std::move(resources),
                        RunnerOf(context, *preferred), context->GetCollectiveExecutorHandle(),
                        runtime.host, call.op(), context->AllowSoftPlacement()));
  tensorflow::GraphCollector collector;
  TF_RETURN_IF_ERROR(function->Init(/*log_device_placement=*/false, call, &collector, {}));
  tensorflow::mutex_lock lock(collector.mu);
  for (const tensorflow::GraphDef& graph : collector.partitioned_graphs) {
    graphs->push_back(graph.SerializeAsString());
  }
  return absl::OkStatus();
}

}  // namespace fastops

#endif  // FASTOPS_CPP_GRAPH_H_
