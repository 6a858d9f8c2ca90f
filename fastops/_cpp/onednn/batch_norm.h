// BatchNorm: the primitive of batch normalization by moving averages.
#ifndef FASTOPS_CPP_ONEDNN_BATCH_NORM_H_
#define FASTOPS_CPP_ONEDNN_BATCH_NORM_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include "onednn/learned_primitive.h"
#include "onednn/symbols.h"
#include "tensorflow/core/kernels/fused_batch_norm_op.h"
#include "tensorflow/core/util/tensor_format.h"

namespace fastops {

struct BatchNormEntry {
  std::array<int64_t, 4> sizes{};  // batch, rows, columns, channels
  std::string key;
};

// The kernel is MklFusedBatchNormOp (mkl_fused_batch_norm_op.cc) for float32 and channels last, in
// inference mode.
class BatchNorm : public LearnedPrimitive<BatchNormEntry> {
 public:
  static std::unique_ptr<CachedPrimitive> MakeFor(const tensorflow::NodeDef& node) {
    if (node.op() != "_MklNativeFusedBatchNormV3" ||
        !symbols::AreExported(symbols::ExecuteBatchNorm)) {
      return nullptr;
    }
    std::unique_ptr<BatchNorm> made(new BatchNorm);
    return made->Read(node) ? std::move(made) : nullptr;
  }

  bool alone() const override { return false; }

 private:
  BatchNorm() = default;

  bool Read(const tensorflow::NodeDef& node) {
    tensorflow::DataType dtype = tensorflow::DT_INVALID;
    bool training = true;
    std::string format;
    return GetNodeAttr(node, "T", &dtype).ok() && dtype == tensorflow::DT_FLOAT &&
           GetNodeAttr(node, "is_training", &training).ok() && !training &&
           GetNodeAttr(node, "data_format", &format).ok() && format == "NHWC" &&
           GetNodeAttr(node, "epsilon", &epsilon_).ok();
  }

  std::array<int64_t, 4> SizesOf(tensorflow::OpKernelContext* context) const override {
    if (context->num_inputs() != 5) return {};
    const tensorflow::Tensor& source = context->input(0);
    if (source.dims() != 4 || source.NumElements() == 0) return {};
    for (int i = 1; i < 5; ++i) {
      const tensorflow::Tensor& each = context->input(i);
      if (each.dims() != 1 || each.dim_size(0) != source.dim_size(3)) return {};
    }
    return {source.dim_size(0), source.dim_size(1), source.dim_size(2), source.dim_size(3)};
  }

  bool Describe(BatchNormEntry* entry, tensorflow::OpKernelContext*) const override {
    const auto [batch, rows, columns, channels] = entry->sizes;
    tensorflow::FactoryKeyCreator key;
    key.AddAsKey(std::string("bn_fwd"));
    key.AddAsKey(dnnl::memory::dims{batch, channels, rows, columns});
    key.AddAsKey(static_cast<int>(channels));
    key.AddAsKey(epsilon_);
    key.AddAsKey(/*training=*/false);
    key.AddAsKey(tensorflow::FORMAT_NHWC);
    key.AddAsKey(tensorflow::functor::FusedBatchNormActivationMode::kIdentity);
    for (int i = 0; i < 2; ++i) key.AddAsKey(typeid(float).name());
    entry->key = key.GetKey();
    return true;
  }

  const char* ClassName() const override { return symbols::kBatchNormClass; }

  absl::Status Execute(const BatchNormEntry& entry, tensorflow::MklPrimitive* primitive,
                       tensorflow::OpKernelContext* context) const override {
    const tensorflow::TensorShape averages({entry.sizes[3]});
    std::array<tensorflow::Tensor*, 6> results;
    const tensorflow::TensorShape& source = context->input(0).shape();
    for (int i = 0; i < 6; ++i) {
      const tensorflow::TensorShape none({0});  // only training uses the workspace
      TF_RETURN_IF_ERROR(context->allocate_output(i,
                                                  i == 0   ? source
                                                  : i == 5 ? none
                                                           : averages,
                                                  &results[i]));
    }
    for (int i = 1; i < 5; ++i) Copy(context->input(i % 2 ? 3 : 4), results[i]);
    return Into(results[0], primitive, context);
  }

  bool Repeats(const BatchNormEntry& entry, tensorflow::MklPrimitive* primitive,
               tensorflow::OpKernelContext* context) const override {
    for (int i = 1; i < 5; ++i) {
      const tensorflow::Tensor* made = context->mutable_output(i);
      const tensorflow::Tensor& average = context->input(i % 2 ? 3 : 4);
      if (made == nullptr || made->shape() != average.shape() || !SameBytes(*made, average)) {
        return false;
      }
    }
    const tensorflow::Tensor *want = context->mutable_output(0), *none = context->mutable_output(5);
    tensorflow::Tensor result;
    return want != nullptr && want->shape() == context->input(0).shape() && none != nullptr &&
           none->shape() == tensorflow::TensorShape({0}) &&
           context->allocate_temp(tensorflow::DT_FLOAT, want->shape(), &result).ok() &&
           Into(&result, primitive, context).ok() && SameBytes(result, *want);
  }

  static void Copy(const tensorflow::Tensor& from, tensorflow::Tensor* to) {
    std::memcpy(to->data(), from.data(), from.TotalBytes());
  }

  static absl::Status Into(tensorflow::Tensor* result, tensorflow::MklPrimitive* primitive,
                           tensorflow::OpKernelContext* context) {
    const auto* workers = context->device()->tensorflow_cpu_worker_threads()->workers;
    // Mean and variance are not const in the signature, since training writes them. Here they are
    // only read.
    const auto of = [&](int i) {
      return const_cast<float*>(context->input(i).flat<float>().data());
    };
    return Guarded([&] {
      symbols::ExecuteBatchNorm(primitive, of(0), of(1), of(2), result->flat<float>().data(), of(3),
                                of(4), StreamOf(primitive, workers->NumThreads()), nullptr);
    });
  }

  float epsilon_ = 0;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_BATCH_NORM_H_
