// MakePrimitive: makes the cached primitive for a kernel, if fastops has one for this kernel.
#ifndef FASTOPS_CPP_ONEDNN_PRIMITIVES_H_
#define FASTOPS_CPP_ONEDNN_PRIMITIVES_H_

#include <cstdlib>
#include <memory>

#include "onednn/cached_primitive.h"
#include "tensorflow/core/framework/node_def.pb.h"

#if defined(INTEL_MKL) && defined(__x86_64__) && defined(__linux__) && \
    __has_include("oneapi/dnnl/dnnl_version.h")
#include "oneapi/dnnl/dnnl_version.h"
#if DNNL_VERSION_MAJOR >= 3 && __has_include("tensorflow/core/kernels/mkl/mkl_pooling_ops_common.h")
#define FASTOPS_PRIMITIVES
#include "onednn/batch_norm.h"
#include "onednn/convolution.h"
#include "onednn/inner_product.h"
#include "onednn/pooling.h"
#include "onednn/primitive_cache.h"
#include "onednn/softmax.h"
#endif
#endif

namespace fastops {

// Returns null if fastops has no cached primitive for the node's kernel, or if this TensorFlow does
// not export the functions that the primitive needs.
inline std::unique_ptr<CachedPrimitive> MakePrimitive(const tensorflow::NodeDef& node) {
#ifdef FASTOPS_PRIMITIVES
  // With this variable, kernels may keep a copy of their weights and assume that they never change.
  if (std::getenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS") != nullptr) return nullptr;
  if (!symbols::AreExported(symbols::CreateStream) || !CanFindPrimitives()) return nullptr;
  if (auto made = InnerProduct::MakeFor(node)) return made;
  if (auto made = Pooling::MakeFor(node)) return made;
  if (auto made = Convolution::MakeFor(node)) return made;
  if (auto made = BatchNorm::MakeFor(node)) return made;
  if (auto made = Softmax::MakeFor(node)) return made;
#endif
  return nullptr;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_PRIMITIVES_H_
