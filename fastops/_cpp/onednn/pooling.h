// Pooling: the primitives of max pooling and of average pooling of images.
#ifndef FASTOPS_CPP_ONEDNN_POOLING_H_
#define FASTOPS_CPP_ONEDNN_POOLING_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onednn/learned_primitive.h"
#include "onednn/symbols.h"

namespace fastops {

struct PoolingEntry {
  std::array<int64_t, 4> sizes{};  // batch, rows, columns, channels
  std::string key;
  tensorflow::TensorShape result, workspace;
};

// The kernels are MklMaxPoolingOp and MklAvgPoolingOp for float32, channels last.
class Pooling : public LearnedPrimitive<PoolingEntry> {
 public:
  static std::unique_ptr<CachedPrimitive> MakeFor(const tensorflow::NodeDef& node) {
    const bool max = node.op() == "_MklNativeMaxPool";
    if ((!max && node.op() != "_MklNativeAvgPool") ||
        !symbols::AreExported(symbols::PoolingKey, symbols::ExecutePooling)) {
      return nullptr;
    }
    std::unique_ptr<Pooling> made(new Pooling(max));
    return made->Read(node) ? std::move(made) : nullptr;
  }

  bool alone() const override { return false; }

 private:
  explicit Pooling(bool max) : max_(max) {}

  bool Read(const tensorflow::NodeDef& node) {
    tensorflow::DataType dtype = tensorflow::DT_INVALID;
    std::string format, padding;
    if (!GetNodeAttr(node, "T", &dtype).ok() || dtype != tensorflow::DT_FLOAT ||
        !GetNodeAttr(node, "data_format", &format).ok() || format != "NHWC" ||
        !GetNodeAttr(node, "padding", &padding).ok() ||
        !GetNodeAttr(node, "ksize", &window_).ok() || !Slides(window_) ||
        !GetNodeAttr(node, "strides", &strides_).ok() || !Slides(strides_)) {
      return false;
    }
    padded_ = padding == "SAME";
    return padded_ || padding == "VALID";
  }

  static bool Slides(const std::vector<int32_t>& sizes) {
    return sizes.size() == 4 && sizes[0] == 1 && sizes[3] == 1;
  }

  std::array<int64_t, 4> SizesOf(tensorflow::OpKernelContext* context) const override {
    const tensorflow::Tensor& source = context->input(0);
    if (source.dims() != 4 || source.NumElements() == 0) return {};
    return {source.dim_size(0), source.dim_size(1), source.dim_size(2), source.dim_size(3)};
  }

  bool Describe(PoolingEntry* entry, tensorflow::OpKernelContext* context) const override {
    using Dims = dnnl::memory::dims;
    const tensorflow::Tensor* result = context->mutable_output(0);
    if (result == nullptr || result->dims() != 4 || result->NumElements() == 0) return false;
    entry->result = result->shape();
    if (max_) {
      const tensorflow::Tensor* workspace = context->mutable_output(1);
      if (workspace == nullptr || workspace->dtype() != tensorflow::DT_UINT8) return false;
      entry->workspace = workspace->shape();
    }
    Dims before(2), after(2);
    for (int i = 0; i < 2 && padded_; ++i) {
      const int64_t pads = (entry->result.dim_size(i + 1) - 1) * strides_[i + 1] + window_[i + 1] -
                           entry->sizes[i + 1];
      before[i] = std::max<int64_t>(pads, 0) / 2;
      after[i] = std::max<int64_t>(pads, 0) - before[i];
    }
    const auto& sizes = entry->sizes;
    const tensorflow::TensorShape& made = entry->result;
    entry->key = symbols::PoolingKey(tensorflow::MklPoolingParams(
        {sizes[0], sizes[3], sizes[1], sizes[2]},
        {made.dim_size(0), made.dim_size(3), made.dim_size(1), made.dim_size(2)},
        {window_[1], window_[2]}, {strides_[1], strides_[2]}, /*dilations=*/{0, 0}, before, after,
        max_ ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding,
        dnnl::prop_kind::forward_training, dnnl::memory::format_tag::nhwc,
        symbols::EmptyDescription(),  // the key does not depend on it
        /*native_format=*/true));
    return true;
  }

  const char* ClassName() const override { return symbols::kPoolingClass; }

  absl::Status Execute(const PoolingEntry& entry, tensorflow::MklPrimitive* primitive,
                       tensorflow::OpKernelContext* context) const override {
    tensorflow::Tensor *result = nullptr, *workspace = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(0, entry.result, &result));
    if (max_) TF_RETURN_IF_ERROR(context->allocate_output(1, entry.workspace, &workspace));
    return Into(result, workspace, primitive, context);
  }

  bool Repeats(const PoolingEntry& entry, tensorflow::MklPrimitive* primitive,
               tensorflow::OpKernelContext* context) const override {
    tensorflow::Tensor result, workspace;
    return context->allocate_temp(tensorflow::DT_FLOAT, entry.result, &result).ok() &&
           context->allocate_temp(tensorflow::DT_UINT8, entry.workspace, &workspace).ok() &&
           Into(&result, &workspace, primitive, context).ok() &&
           SameBytes(result, *context->mutable_output(0)) &&
           (!max_ || SameBytes(workspace, *context->mutable_output(1)));
  }

  absl::Status Into(tensorflow::Tensor* result, tensorflow::Tensor* workspace,
                    tensorflow::MklPrimitive* primitive,
                    tensorflow::OpKernelContext* context) const {
    const auto* workers = context->device()->tensorflow_cpu_worker_threads()->workers;
    return Guarded([&] {
      symbols::ExecutePooling(primitive, context->input(0).flat<float>().data(),
                              result->flat<float>().data(), max_ ? workspace->data() : nullptr,
                              StreamOf(primitive, workers->NumThreads()));
    });
  }

  const bool max_;
  bool padded_ = false;
  std::vector<int32_t> window_, strides_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_POOLING_H_
