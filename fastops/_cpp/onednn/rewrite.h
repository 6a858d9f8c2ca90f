// Finds the oneDNN kernel that TensorFlow would run in place of an op's own kernel.
//
// TensorFlow replaces ops in two places: a rewrite of the eager operation after placement
// (mkl_eager_op_rewrite.cc) and a pass over the graph that the operation is wrapped in
// (mkl_layout_pass.cc). The code here applies both in that order. It applies them only to a node
// that TensorFlow accepts, since the pass aborts the process on inconsistent nodes.
#ifndef FASTOPS_CPP_ONEDNN_REWRITE_H_
#define FASTOPS_CPP_ONEDNN_REWRITE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/eager/eager_op_rewrite_registry.h"
#include "tensorflow/core/common_runtime/eager/eager_operation.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

#ifdef INTEL_MKL
#include "tensorflow/core/common_runtime/mkl_layout_pass.h"
#include "tensorflow/core/graph/mkl_graph_util.h"
#endif

namespace fastops {

#ifdef INTEL_MKL

inline absl::Status RewriteEager(tensorflow::EagerContext* context, tensorflow::Device* device,
                                 tensorflow::NodeDef* node) {
  tensorflow::EagerOperation op(context);
  TF_RETURN_IF_ERROR(op.Reset(node->op().c_str(), device->name().c_str(), false, nullptr));
  for (const auto& attr : node->attr()) op.MutableAttrs()->Set(attr.first, attr.second);
  op.SetDevice(device);
  std::unique_ptr<tensorflow::EagerOperation> rewritten;
  TF_RETURN_IF_ERROR(tensorflow::EagerOpRewriteRegistry::Global()->RunRewrite(
      tensorflow::EagerOpRewriteRegistry::POST_PLACEMENT, &op, &rewritten));
  if (rewritten != nullptr) {
    node->set_op(rewritten->Name());
    (*node->mutable_attr())["_kernel"].set_s(tensorflow::mkl_op_registry::kMklNameChangeOpLabel);
  }
  return absl::OkStatus();
}

inline absl::Status RewriteGraph(tensorflow::Device* device, tensorflow::NodeDef* node) {
  const tensorflow::OpDef* def = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(node->op(), &def));
  tensorflow::DataTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(tensorflow::InOutTypesForNode(*node, *def, &inputs, &outputs));

  auto graph = std::make_unique<tensorflow::Graph>(tensorflow::OpRegistry::Global());
  absl::Status status;
  auto add = [&](tensorflow::NodeDef node_def) {
    node_def.set_device(device->name());
    tensorflow::Node* added = graph->AddNode(std::move(node_def), &status);
    if (added != nullptr) added->set_assigned_device_name(device->name());
    return added;
  };
  auto boundary = [&](const char* op, int index, tensorflow::DataType type) {
    tensorflow::NodeDef node_def;
    node_def.set_name(absl::StrCat(op, index));
    node_def.set_op(op);
    (*node_def.mutable_attr())["T"].set_type(type);
    (*node_def.mutable_attr())["index"].set_i(index);
    return add(std::move(node_def));
  };

  tensorflow::NodeDef plain = *node;
  plain.clear_input();
  tensorflow::Node* op = add(std::move(plain));
  TF_RETURN_IF_ERROR(status);
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    tensorflow::Node* arg = boundary("_Arg", i, inputs[i]);
    TF_RETURN_IF_ERROR(status);
    graph->AddEdge(arg, 0, op, i);
    graph->AddControlEdge(graph->source_node(), arg);
  }
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    tensorflow::Node* retval = boundary("_Retval", i, outputs[i]);
    TF_RETURN_IF_ERROR(status);
    graph->AddEdge(op, i, retval, 0);
    graph->AddControlEdge(retval, graph->sink_node());
  }
  if (!tensorflow::RunMklLayoutRewritePass(&graph)) return absl::OkStatus();

  const tensorflow::Node* result = nullptr;
  for (const tensorflow::Node* candidate : graph->op_nodes()) {
    if (candidate->IsArg() || candidate->IsRetval()) continue;
    if (result != nullptr) return absl::UnimplementedError("oneDNN makes several nodes of one");
    result = candidate;
  }
  if (result == nullptr || result->num_inputs() != static_cast<int>(inputs.size())) {
    return absl::UnimplementedError("oneDNN changes the inputs");
  }
  node->set_op(result->def().op());
  *node->mutable_attr() = result->def().attr();
  return absl::OkStatus();
}

// Rewrites `node` to the node that TensorFlow executes. Does not change it if TensorFlow does not
// replace it.
inline absl::Status ResolveOneDnn(tensorflow::EagerContext* context, tensorflow::Device* device,
                                  tensorflow::NodeDef* node) {
  const std::string original = node->op();
  TF_RETURN_IF_ERROR(RewriteEager(context, device, node));
  if (node->op() == original) TF_RETURN_IF_ERROR(RewriteGraph(device, node));
  if (node->op() == original) return absl::OkStatus();
  const tensorflow::OpDef* def = nullptr;  // oneDNN's op may have more attributes
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(node->op(), &def));
  tensorflow::AddDefaultsToNodeDef(*def, node);
  return absl::OkStatus();
}

#else

// A TensorFlow build without oneDNN does not replace ops.
inline absl::Status ResolveOneDnn(tensorflow::EagerContext*, tensorflow::Device*,
                                  tensorflow::NodeDef*) {
  return absl::OkStatus();
}

#endif

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_REWRITE_H_
