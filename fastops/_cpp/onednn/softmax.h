// Softmax: the primitive of softmax over the last axis.
#ifndef FASTOPS_CPP_ONEDNN_SOFTMAX_H_
#define FASTOPS_CPP_ONEDNN_SOFTMAX_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "onednn/learned_primitive.h"
#include "onednn/symbols.h"

namespace fastops {

struct SoftmaxEntry {
  std::array<int64_t, 5> sizes{};  // one per axis; unused ones are 0
  std::string key;
};

// The kernel is MklSoftmaxOp (mkl_softmax_op.cc) for float32.
class Softmax : public LearnedPrimitive<SoftmaxEntry> {
 public:
  static std::unique_ptr<CachedPrimitive> MakeFor(const tensorflow::NodeDef& node) {
    tensorflow::DataType dtype = tensorflow::DT_INVALID;
    if (node.op() != "_MklSoftmax" || !symbols::AreExported(symbols::ExecuteSoftmax) ||
        !GetNodeAttr(node, "T", &dtype).ok() || dtype != tensorflow::DT_FLOAT) {
      return nullptr;
    }
    return std::unique_ptr<CachedPrimitive>(new Softmax);
  }

  bool alone() const override { return false; }

 private:
  Softmax() = default;

  std::array<int64_t, 5> SizesOf(tensorflow::OpKernelContext* context) const override {
    const tensorflow::Tensor& source = context->input(0);
    std::array<int64_t, 5> sizes{};
    if (source.dims() > static_cast<int>(sizes.size()) || source.NumElements() == 0) return {};
    for (int i = 0; i < source.dims(); ++i) sizes[i] = source.dim_size(i);
    return sizes;
  }

  bool Describe(SoftmaxEntry* entry, tensorflow::OpKernelContext* context) const override {
    using Format = dnnl::memory::format_tag;
    static constexpr Format kFormats[] = {Format::a, Format::ab, Format::abc, Format::abcd,
                                          Format::abcde};
    const int axes = context->input(0).dims();
    tensorflow::FactoryKeyCreator key;
    key.AddAsKey(std::string("softmax_fwd"));
    key.AddAsKey(dnnl::memory::dims(entry->sizes.begin(), entry->sizes.begin() + axes));
    key.AddAsKey(static_cast<int>(kFormats[axes - 1]));
    key.AddAsKey(axes - 1);
    entry->key = key.GetKey();
    return true;
  }

  const char* ClassName() const override { return symbols::kSoftmaxClass; }

  absl::Status Execute(const SoftmaxEntry&, tensorflow::MklPrimitive* primitive,
                       tensorflow::OpKernelContext* context) const override {
    tensorflow::Tensor* result = nullptr;
    TF_RETURN_IF_ERROR(
        context->forward_input_or_allocate_output({0}, 0, context->input(0).shape(), &result));
    return Into(result, primitive, context);
  }

  bool Repeats(const SoftmaxEntry&, tensorflow::MklPrimitive* primitive,
               tensorflow::OpKernelContext* context) const override {
    const tensorflow::Tensor* want = context->mutable_output(0);
    tensorflow::Tensor result;
    return want != nullptr &&
           context->allocate_temp(tensorflow::DT_FLOAT, want->shape(), &result).ok() &&
           Into(&result, primitive, context).ok() && SameBytes(result, *want);
  }

  static absl::Status Into(tensorflow::Tensor* result, tensorflow::MklPrimitive* primitive,
                           tensorflow::OpKernelContext* context) {
    const auto* workers = context->device()->tensorflow_cpu_worker_threads()->workers;
    return Guarded([&] {
      symbols::ExecuteSoftmax(primitive, context->input(0).flat<float>().data(),
                              result->flat<float>().data(),
                              StreamOf(primitive, workers->NumThreads()));
    });
  }
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_SOFTMAX_H_
