// The checks that TensorFlow makes on a call before it makes the first kernel for a key.
#ifndef FASTOPS_CPP_ACCEPTANCE_H_
#define FASTOPS_CPP_ACCEPTANCE_H_

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/public/version.h"

namespace fastops {

// Whether the OpDef allows a node, the inputs have its dtypes, and the op's shape function accepts
// it with unknown shapes. Kernels rely on these checks: some abort the process on nodes that only
// these checks reject. This function does not check whether a kernel exists.
//
// List lengths are bounded, too, because TensorFlow would make as many types as the attribute says.
inline bool Accepts(const tensorflow::NodeDef& node, const tensorflow::TensorValue* inputs,
                    int num_inputs) {
  const tensorflow::OpRegistrationData* registered = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUp(node.op(), &registered).ok()) return false;
  const tensorflow::OpDef& definition = registered->op_def;
  constexpr int64_t kLongest = 0xFFFF;
  const auto too_long = [&node](const tensorflow::OpDef::ArgDef& arg) {
    const auto length = node.attr().find(arg.number_attr());
    return length != node.attr().end() && length->second.i() > kLongest;
  };
  if (absl::c_any_of(definition.input_arg(), too_long) ||
      absl::c_any_of(definition.output_arg(), too_long)) {
    return false;
  }
  tensorflow::DataTypeVector types;
  if (!tensorflow::ValidateNodeDef(node, definition).ok() ||
      !tensorflow::InputTypesForNode(node, definition, &types).ok() ||
      types.size() != static_cast<size_t>(num_inputs)) {
    return false;
  }
  for (int i = 0; i < num_inputs; ++i) {
    if (inputs[i].tensor->dtype() != types[i]) return false;
  }
  if (registered->shape_inference_fn == nullptr) return true;
  tensorflow::shape_inference::InferenceContext context(
      TF_GRAPH_DEF_VERSION, tensorflow::AttrSlice(node), definition,
      std::vector<tensorflow::PartialTensorShape>(num_inputs), {}, {}, {});
  return context.construction_status().ok() && context.Run(registered->shape_inference_fn).ok();
}

}  // namespace fastops

#endif  // FASTOPS_CPP_ACCEPTANCE_H_
