// InnerProduct: the primitive of a matrix product with a bias, and perhaps an activation.
#ifndef FASTOPS_CPP_ONEDNN_INNER_PRODUCT_H_
#define FASTOPS_CPP_ONEDNN_INNER_PRODUCT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "onednn/learned_primitive.h"
#include "onednn/symbols.h"

namespace fastops {

struct InnerProductEntry {
  std::array<int64_t, 3> sizes{};  // rows, depth, columns
  std::string key;
  std::unique_ptr<symbols::InnerProductParams> params;
};

// The kernel is MklFusedMatMulOp (mkl_matmul_op_fused.cc) for float32. The weight is not constant,
// and the matrices are so small that the kernel lets oneDNN use one thread.
class InnerProduct : public LearnedPrimitive<InnerProductEntry> {
 public:
  static std::unique_ptr<CachedPrimitive> MakeFor(const tensorflow::NodeDef& node) {
    if (node.op() != "_MklNativeFusedMatMul" ||
        !symbols::AreExported(symbols::InnerProductKey, symbols::AllocateInnerProductScratch,
                              symbols::ExecuteInnerProduct)) {
      return nullptr;
    }
    std::unique_ptr<InnerProduct> made(new InnerProduct);
    return made->Read(node) ? std::move(made) : nullptr;
  }

  bool alone() const override { return true; }

 private:
  InnerProduct() = default;

  bool Read(const tensorflow::NodeDef& node) {
    tensorflow::DataType dtype = tensorflow::DT_INVALID;
    bool transpose_a = true, constant = true;
    std::vector<std::string> fused;
    if (!GetNodeAttr(node, "T", &dtype).ok() || dtype != tensorflow::DT_FLOAT ||
        !GetNodeAttr(node, "transpose_a", &transpose_a).ok() || transpose_a ||
        !GetNodeAttr(node, "transpose_b", &transpose_b_).ok() ||
        !GetNodeAttr(node, "is_filter_const", &constant).ok() || constant ||
        !GetNodeAttr(node, "fused_ops", &fused).ok() || fused.empty() || fused[0] != "BiasAdd") {
      return false;
    }
    if (fused.size() == 1) return true;
    activation_ = fused[1];
    alpha_ = activation_ == "Relu6" ? 6 : activation_ == "Elu" ? 1 : 0;
    return fused.size() == 2 && (alpha_ != 0 || activation_ == "Relu" || activation_ == "Tanh" ||
                                 activation_ == "Sigmoid");
  }

  std::array<int64_t, 3> SizesOf(tensorflow::OpKernelContext* context) const override {
    if (context->num_inputs() != 3) return {};
    const tensorflow::Tensor& source = context->input(0);
    const tensorflow::Tensor& weights = context->input(1);
    const tensorflow::Tensor& bias = context->input(2);
    if (source.dims() != 2 || weights.dims() != 2 || bias.dims() != 1) return {};
    const int64_t rows = source.dim_size(0), depth = source.dim_size(1);
    const int64_t columns = bias.dim_size(0);
    if (rows == 0 || depth == 0 || columns == 0 ||
        weights.dim_size(transpose_b_ ? 1 : 0) != depth ||
        weights.dim_size(transpose_b_ ? 0 : 1) != columns) {
      return {};
    }
    return {rows, depth, columns};
  }

  bool Describe(InnerProductEntry* entry, tensorflow::OpKernelContext*) const override {
    using Format = dnnl::memory::format_tag;
    const auto [rows, depth, columns] = entry->sizes;
    if (!tensorflow::ExecuteSingleThreadedGemm(rows, columns, depth, sizeof(float))) return false;
    entry->params = std::make_unique<symbols::InnerProductParams>(
        dnnl::memory::dims{rows, depth}, dnnl::memory::dims{columns, depth},
        dnnl::memory::dims{columns}, dnnl::memory::dims{rows, columns}, Format::nc,
        transpose_b_ ? Format::oi : Format::io, Format::nc, /*const_weight=*/false);
    for (int i = 0; i < 4; ++i) entry->params->dtypes.append(typeid(float).name());
    if (!activation_.empty()) {
      entry->params->post_op_params.push_back({activation_, {1, alpha_, 0}, ""});
    }
    entry->key = symbols::InnerProductKey(*entry->params);
    return true;
  }

  const char* ClassName() const override { return symbols::kInnerProductClass; }

  absl::Status Execute(const InnerProductEntry& entry, tensorflow::MklPrimitive* primitive,
                       tensorflow::OpKernelContext* context) const override {
    tensorflow::Tensor* result = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(
        0, tensorflow::TensorShape({entry.sizes[0], entry.sizes[2]}), &result));
    return Into(result, entry, primitive, context);
  }

  bool Repeats(const InnerProductEntry& entry, tensorflow::MklPrimitive* primitive,
               tensorflow::OpKernelContext* context) const override {
    const tensorflow::Tensor& want = *context->mutable_output(0);
    tensorflow::Tensor result;
    return context->allocate_temp(want.dtype(), want.shape(), &result).ok() &&
           Into(&result, entry, primitive, context).ok() && SameBytes(result, want);
  }

  static absl::Status Into(tensorflow::Tensor* result, const InnerProductEntry& entry,
                           tensorflow::MklPrimitive* primitive,
                           tensorflow::OpKernelContext* context) {
    PrimitiveState& state = ThreadStates::Here().Get(primitive->GetEngine());
    symbols::ScratchPad scratch;
    return Guarded([&] {
      if (state.needs_scratch) {  // if it needs none, it is not asked again
        symbols::AllocateInnerProductScratch(&scratch, primitive, context);
        state.needs_scratch = scratch.Get() != nullptr;
      }
      symbols::ExecuteInnerProduct(
          primitive, context->input(0).flat<float>().data(), context->input(1).flat<float>().data(),
          context->input(2).flat<float>().data(), result->flat<float>().data(), *entry.params,
          scratch.Get(), StreamOf(primitive, 1));
    });
  }

  std::string activation_;
  float alpha_ = 0;
  bool transpose_b_ = false;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_INNER_PRODUCT_H_
