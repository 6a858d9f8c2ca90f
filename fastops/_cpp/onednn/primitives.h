// HeldPrimitive: oneDNN's primitive that a kernel of TensorFlow's has made, without the kernel.
//
// Such a kernel describes its operands anew in each call, spells a key, looks for the primitive in
// a cache of its thread, makes a stream, and describes the operands once more: of 2.2 us for a row
// of a perceptron the primitive takes 0.5. What is executed here is the primitive that the kernel
// has made and keeps in that cache, on the same memory, so that the result has the same bytes.
// Where the cache of this thread has none under the key, the kernel runs.
#ifndef FASTOPS_CPP_ONEDNN_PRIMITIVES_H_
#define FASTOPS_CPP_ONEDNN_PRIMITIVES_H_

#include <cstdlib>
#include <memory>

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace fastops {

class HeldPrimitive {
 public:
  virtual ~HeldPrimitive() = default;

  // Null for nodes whose kernels have none that is known here, or that this TensorFlow exports.
  static std::unique_ptr<HeldPrimitive> Make(const tensorflow::NodeDef& node);

  // Whether it hands nothing to threads; if it does, its tasks run in the calling one.
  virtual bool alone() const = 0;

  // Computes what the kernel would, and says whether it did; if not, nothing has happened.
  virtual bool Compute(tensorflow::OpKernelContext* context) = 0;

  // After the kernel has computed that, in the same thread.
  virtual void Learn(tensorflow::OpKernelContext* context) = 0;
};

}  // namespace fastops

#if defined(__x86_64__) && defined(__linux__) && __has_include("oneapi/dnnl/dnnl_version.h")
#include "oneapi/dnnl/dnnl_version.h"
#if DNNL_VERSION_MAJOR >= 3 && __has_include("tensorflow/core/kernels/mkl/mkl_pooling_ops_common.h")
#define FASTOPS_PRIMITIVES
#include "onednn/batch_norm.h"
#include "onednn/convolution.h"
#include "onednn/inner_product.h"
#include "onednn/pooling.h"
#include "onednn/softmax.h"
#endif
#endif

namespace fastops {

inline std::unique_ptr<HeldPrimitive> HeldPrimitive::Make(const tensorflow::NodeDef& node) {
#ifdef FASTOPS_PRIMITIVES
  // Kernels that may take it for granted that no weight changes keep a copy of theirs.
  if (std::getenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS") != nullptr) return nullptr;
  if (!theirs::CreateStream || !theirs::GetOp) return nullptr;
  if (auto held = InnerProduct::MakeFor(node)) return held;
  if (auto held = Pooling::MakeFor(node)) return held;
  if (auto held = Convolution::MakeFor(node)) return held;
  if (auto held = BatchNorm::MakeFor(node)) return held;
  if (auto held = Softmax::MakeFor(node)) return held;
#endif
  return nullptr;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_PRIMITIVES_H_
