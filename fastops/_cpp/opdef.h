// Reads the OpDef of an op from the running TensorFlow.
#ifndef FASTOPS_CPP_OPDEF_H_
#define FASTOPS_CPP_OPDEF_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "declarations.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.h"

namespace fastops {

#define FASTOPS_DTYPE(name, number) static_assert(name == tensorflow::name);
FASTOPS_DTYPES(FASTOPS_DTYPE)
#undef FASTOPS_DTYPE

inline bool IsHandleType(tensorflow::DataType type) {
  return type == tensorflow::DT_RESOURCE || type == tensorflow::DT_VARIANT;
}

// Reads the facts about an op. Returns false if this TensorFlow has no such op.
inline bool Describe(const std::string& name, OpFacts* facts) {
  const tensorflow::OpDef* def = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(name, &def).ok()) return false;
  *facts = OpFacts();
  facts->def = def;
  facts->stateful = def->is_stateful();
  auto find = [def](const std::string& attr) -> const tensorflow::OpDef::AttrDef* {
    for (const auto& candidate : def->attr()) {
      if (candidate.name() == attr) return &candidate;
    }
    return nullptr;
  };
  std::vector<std::string> type_attrs;
  for (const auto& arg : def->input_arg()) {
    InputArg input;
    input.name = arg.name();
    input.type_attr = arg.type_attr();
    input.number_attr = arg.number_attr();
    input.list_attr = arg.type_list_attr();
    input.fixed = arg.type();
    if (!input.number_attr.empty()) input.kind = InputArg::kHomogeneous;
    if (!input.list_attr.empty()) input.kind = InputArg::kHeterogeneous;
    if (!input.type_attr.empty()) {
      auto it = std::find(type_attrs.begin(), type_attrs.end(), input.type_attr);
      input.attr = static_cast<int>(it - type_attrs.begin());
      if (it == type_attrs.end()) type_attrs.push_back(input.type_attr);
      const auto* attr = find(input.type_attr);
      if (attr != nullptr && attr->has_default_value()) {
        input.fallback = attr->default_value().type();
      }
      if (attr != nullptr) {
        for (const int type : attr->allowed_values().list().type()) {
          input.allowed.push_back(static_cast<tensorflow::DataType>(type));
        }
      }
    }
    if (input.kind != InputArg::kSingle) ++facts->num_lists;
    facts->inputs.push_back(std::move(input));
  }
  for (const auto& arg : def->output_arg()) {
    const bool list = !arg.number_attr().empty() || !arg.type_list_attr().empty();
    facts->structure = list ? OpFacts::kList : OpFacts::kTensor;
  }
  if (def->output_arg_size() > 1) facts->structure = OpFacts::kTuple;
  return true;
}

inline const tensorflow::OpDef::AttrDef* FindAttr(const OpFacts& facts, const std::string& name) {
  for (const auto& attr : facts.def->attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

// Whether an op has input or output lists whose lengths are attributes.
inline bool HasLengths(const OpFacts& facts) {
  const auto has = [](const auto& arg) { return !arg.number_attr().empty(); };
  return absl::c_any_of(facts.def->input_arg(), has) ||
         absl::c_any_of(facts.def->output_arg(), has);
}

// Whether an attribute is the length of a list, and `length` is a valid value for it.
inline bool MayBeLength(const OpFacts& facts, const std::string& attr, int64_t length) {
  const auto names = [&attr](const auto& arg) { return arg.number_attr() == attr; };
  return (absl::c_any_of(facts.def->input_arg(), names) ||
          absl::c_any_of(facts.def->output_arg(), names)) &&
         length >= FindAttr(facts, attr)->minimum();
}

// Whether TensorFlow's libraries find the attributes that inline code of its headers puts into a
// node. Both hash the names, and a compiler with other macros than TensorFlow's may compile another
// hash function. The libraries may find single names in spite of that, but not all of them.
inline bool FindsAttributes() {
  tensorflow::NodeDef node;
  for (char name = 'a'; name <= 'z'; ++name) (*node.mutable_attr())[std::string(3, name)].set_i(1);
  for (char name = 'a'; name <= 'z'; ++name) {
    if (tensorflow::AttrSlice(node).FindByString(std::string(3, name)) == nullptr) return false;
  }
  return true;
}

// The number of flat outputs of a node, or -1.
inline int OutputTypes(const tensorflow::NodeDef& node, const OpFacts& facts,
                       tensorflow::DataTypeVector* types) {
  types->clear();
  if (!tensorflow::OutputTypesForNode(node, *facts.def, types).ok()) return -1;
  return static_cast<int>(types->size());
}

// The length of output argument `index` if it is a list; -1 for a single tensor.
inline int OutputLength(const tensorflow::NodeDef& node, const OpFacts& facts, int index) {
  const auto& arg = facts.def->output_arg(index);
  if (!arg.number_attr().empty()) return node.attr().at(arg.number_attr()).i();
  if (!arg.type_list_attr().empty()) {
    return node.attr().at(arg.type_list_attr()).list().type_size();
  }
  return -1;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_OPDEF_H_
