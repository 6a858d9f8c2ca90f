// Convolution: the primitive of a convolution of one image, perhaps with bias and activation.
#ifndef FASTOPS_CPP_ONEDNN_CONVOLUTION_H_
#define FASTOPS_CPP_ONEDNN_CONVOLUTION_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "onednn/learned_primitive.h"
#include "onednn/symbols.h"

namespace fastops {

struct ConvolutionEntry {
  std::array<int64_t, 6> sizes{};  // rows, columns, channels; of the filter: rows, columns, results
  std::string key;
  tensorflow::TensorShape result;
};

// The kernels are MklConvOp and MklFusedConvOp (mkl_conv_ops.cc) for float32, channels last and one
// image. For several images the primitive expects the filter in a layout of its own.
class Convolution : public LearnedPrimitive<ConvolutionEntry> {
 public:
  static std::unique_ptr<CachedPrimitive> MakeFor(const tensorflow::NodeDef& node) {
    const bool fused = node.op() == "_MklNativeFusedConv2D";
    if ((!fused && node.op() != "_MklNativeConv2D") ||
        !symbols::AreExported(symbols::AllocateConvolutionScratch, symbols::ExecuteConvolution)) {
      return nullptr;
    }
    std::unique_ptr<Convolution> made(new Convolution(fused));
    return made->Read(node) ? std::move(made) : nullptr;
  }

  bool alone() const override { return false; }

 private:
  explicit Convolution(bool biased) : biased_(biased) {}

  bool Read(const tensorflow::NodeDef& node) {
    tensorflow::DataType dtype = tensorflow::DT_INVALID;
    bool constant = true;
    std::string format, padding;
    std::vector<std::string> fused;
    if (!GetNodeAttr(node, "T", &dtype).ok() || dtype != tensorflow::DT_FLOAT ||
        !GetNodeAttr(node, "is_filter_const", &constant).ok() || constant ||
        !GetNodeAttr(node, "data_format", &format).ok() || format != "NHWC" ||
        !GetNodeAttr(node, "padding", &padding).ok() ||
        !GetNodeAttr(node, "strides", &strides_).ok() || !OfImages(strides_) ||
        !GetNodeAttr(node, "dilations", &dilations_).ok() || !OfImages(dilations_)) {
      return false;
    }
    padded_ = padding == "SAME";
    if (!padded_ && padding != "VALID") return false;
    if (!biased_) return true;
    if (!GetNodeAttr(node, "fused_ops", &fused).ok() || fused.empty() || fused.size() > 2 ||
        fused[0] != "BiasAdd") {
      return false;
    }
    if (fused.size() == 2) activation_ = fused[1];
    return activation_.empty() || activation_ == "Relu" || activation_ == "Relu6" ||
           activation_ == "Elu";
  }

  static bool OfImages(const std::vector<int32_t>& sizes) {
    return sizes.size() == 4 && sizes[0] == 1 && sizes[3] == 1;
  }

  std::array<int64_t, 6> SizesOf(tensorflow::OpKernelContext* context) const override {
    if (context->num_inputs() != (biased_ ? 3 : 2)) return {};
    const tensorflow::Tensor& source = context->input(0);
    const tensorflow::Tensor& filter = context->input(1);
    if (source.dims() != 4 || filter.dims() != 4 || source.dim_size(0) != 1 ||
        source.NumElements() == 0 || filter.NumElements() == 0 ||
        source.dim_size(3) != filter.dim_size(2)) {
      return {};
    }
    if (biased_ &&
        (context->input(2).dims() != 1 || context->input(2).dim_size(0) != filter.dim_size(3))) {
      return {};
    }
    return {source.dim_size(1), source.dim_size(2), source.dim_size(3),
            filter.dim_size(0), filter.dim_size(1), filter.dim_size(3)};
  }

  // Whether a primitive that expects the filter in a different layout would have given a different
  // result.
  bool Tells(tensorflow::OpKernelContext* context) const override {
    const auto filter = context->input(1).flat<float>();
    const auto result = context->mutable_output(0)->flat<float>();
    std::set<uint32_t> values;
    for (int64_t i = 0; i < filter.size(); ++i) values.insert(absl::bit_cast<uint32_t>(filter(i)));
    return static_cast<int64_t>(values.size()) * 2 > filter.size() &&
           std::any_of(result.data(), result.data() + result.size(),
                       [](float value) { return value != 0; });
  }

  bool Describe(ConvolutionEntry* entry, tensorflow::OpKernelContext* context) const override {
    using Dims = dnnl::memory::dims;
    const tensorflow::Tensor* result = context->mutable_output(0);
    if (result == nullptr || result->dims() != 4 || result->NumElements() == 0) return false;
    entry->result = result->shape();
    const auto [rows, columns, channels, height, width, results] = entry->sizes;
    const Dims source = {rows, columns}, window = {height, width};
    Dims before(2), after(2);
    for (int i = 0; i < 2 && padded_; ++i) {
      const int64_t pads = (result->dim_size(i + 1) - 1) * strides_[i + 1] +
                           (window[i] - 1) * dilations_[i + 1] + 1 - source[i];
      before[i] = std::max<int64_t>(pads, 0) / 2;
      after[i] = std::max<int64_t>(pads, 0) - before[i];
    }
    tensorflow::FactoryKeyCreator key;
    key.AddAsKey(std::string("conv_fwd_"));
    key.AddAsKey(Dims{1, channels, rows, columns});
    key.AddAsKey(Dims{results, channels, height, width});
    if (biased_) key.AddAsKey(Dims{results});
    key.AddAsKey(Dims{1, results, result->dim_size(1), result->dim_size(2)});
    key.AddAsKey(Dims{strides_[1], strides_[2]});
    key.AddAsKey(Dims{dilations_[1] - 1, dilations_[2] - 1});
    key.AddAsKey(before);
    key.AddAsKey(after);
    key.AddAsKey(std::string("ffff"));  // the dtypes
    key.AddAsKey(tensorflow::MklTensorFormat::FORMAT_NHWC);
    if (!activation_.empty()) {
      key.AddAsKey(std::string("activation"));
      key.AddAsKey(activation_ == "Relu"    ? dnnl::algorithm::eltwise_relu
                   : activation_ == "Relu6" ? dnnl::algorithm::eltwise_clip
                                            : dnnl::algorithm::eltwise_elu);
      key.AddAsKey(1.0f);
      key.AddAsKey(activation_ == "Elu" ? 1.0f : 0.0f);
      key.AddAsKey(activation_ == "Relu6" ? 6.0f : 0.0f);
    }
    entry->key = key.GetKey();
    return true;
  }

  const char* ClassName() const override { return symbols::kConvolutionClass; }

  absl::Status Execute(const ConvolutionEntry& entry, tensorflow::MklPrimitive* primitive,
                       tensorflow::OpKernelContext* context) const override {
    tensorflow::Tensor* result = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(0, entry.result, &result));
    return Into(result, primitive, context);
  }

  bool Repeats(const ConvolutionEntry& entry, tensorflow::MklPrimitive* primitive,
               tensorflow::OpKernelContext* context) const override {
    tensorflow::Tensor result;
    return context->allocate_temp(tensorflow::DT_FLOAT, entry.result, &result).ok() &&
           Into(&result, primitive, context).ok() && SameBytes(result, *context->mutable_output(0));
  }

  absl::Status Into(tensorflow::Tensor* result, tensorflow::MklPrimitive* primitive,
                    tensorflow::OpKernelContext* context) const {
    const auto* workers = context->device()->tensorflow_cpu_worker_threads()->workers;
    symbols::ScratchPad scratch;
    return Guarded([&] {
      symbols::AllocateConvolutionScratch(&scratch, primitive, context);
      symbols::ExecuteConvolution(
          primitive, context->input(0).flat<float>().data(), context->input(1).flat<float>().data(),
          biased_ ? context->input(2).flat<float>().data() : nullptr, result->flat<float>().data(),
          symbols::kNoConvolutionParams, StreamOf(primitive, workers->NumThreads()), scratch.Get());
    });
  }

  const bool biased_;
  bool padded_ = false;
  std::string activation_;
  std::vector<int32_t> strides_, dilations_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_CONVOLUTION_H_
