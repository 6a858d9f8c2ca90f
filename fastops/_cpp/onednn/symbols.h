// The symbols and layouts of TensorFlow's binaries that the code in this folder relies on.
//
// No header of TensorFlow declares them, so each new version of TensorFlow has to be checked
// against each entry. An entry has these lines:
//
//   Source: a file of TensorFlow's sources, or of a library that TensorFlow includes.
//   Name: the function, class or macro in that file. Classes of several files may share an entry,
//   which then has the lines Source and Name for each file.
//   Checked: the versions of TensorFlow in whose sources or binaries the entry was found to hold.
//
// libtensorflow_cc.so.2 exports every symbol: instances of TensorFlow's own templates and inline
// functions. Compiled here, they would call functions of oneDNN that the library does not export.
// The declarations are weak: in a TensorFlow that lacks a symbol, its address is null, and the
// primitives that need the symbol are not made (`AreExported`).
//
// Member functions take the primitive as a MklPrimitive, since no header declares most of its
// classes. The class is compared first, by its mangled name (`kConvolutionClass`). Each of these
// classes has MklPrimitive as its only base, so a pointer to one is a pointer to the other.
//
// tests/house/test_symbols.py reads this file.
#ifndef FASTOPS_CPP_ONEDNN_SYMBOLS_H_
#define FASTOPS_CPP_ONEDNN_SYMBOLS_H_

// Source: third_party/xla/xla/tsl/mkl/build_defs.bzl
// Name: onednn_v3_define
// Checked: 2.19, 2.20, 2.21, 2.22
// TensorFlow is compiled with this macro. Without it, the headers below declare the signatures of
// oneDNN 2.
#ifndef ENABLE_ONEDNN_V3
#define ENABLE_ONEDNN_V3
#endif

#include "oneapi/dnnl/dnnl_version.h"

// Source: third_party/xla/xla/tsl/mkl/build_defs.bzl
// Name: if_onednn_async
// Checked: 2.22
// TensorFlow is compiled with this macro, too, since it has oneDNN 3.12. Pools of threads then have
// one more virtual function, which oneDNN requires: from 3.11 on, says a comment in TensorFlow.
#if DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 11)
#ifndef ENABLE_ONEDNN_ASYNC
#define ENABLE_ONEDNN_ASYNC
#endif
#endif

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/kernels/mkl/mkl_matmul_ops_common.h"
#include "tensorflow/core/kernels/mkl/mkl_pooling_ops_common.h"
#include "tensorflow/core/util/mkl_util.h"

#define FASTOPS_SYMBOL(name) asm(name) __attribute__((weak))

namespace fastops::symbols {

using Stream = std::shared_ptr<dnnl::stream>;
using ScratchPad = tensorflow::UserScratchPad<unsigned char>;

// Whether TensorFlow exports all of these functions.
template <typename... Functions>
bool AreExported(Functions*... functions) {
  return (... && (functions != nullptr));
}

// Functions of all primitives ---------------------------------------------------------------------

// Source: tensorflow/core/util/mkl_util.h
// Name: CreateStream
// Checked: 2.19, 2.20, 2.21, 2.22
dnnl::stream* CreateStream(tsl::OneDnnThreadPool*, const dnnl::engine&)
    FASTOPS_SYMBOL("_ZN10tensorflow12CreateStreamEPN3tsl16OneDnnThreadPoolERKN4dnnl6engineE");

// Source: tensorflow/core/util/mkl_util.h
// Name: MklPrimitiveFactory<float>::GetOp
// Checked: 2.19, 2.20, 2.21
tensorflow::MklPrimitive* GetOp(tensorflow::MklPrimitiveFactory<float>*, const std::string& key)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow19MklPrimitiveFactoryIfE5GetOpERKNSt7__cxx1112basic_stringIcSt11char_"
        "traitsIcESaIcEEE");

// Source: tensorflow/core/util/mkl_util.h
// Name: LRUCache<MklPrimitive>::GetOp
// Checked: 2.22
// `GetOp` calls this function. In TensorFlow 2.22 the call is inlined, and only this function is
// exported.
using PrimitiveCache = tensorflow::LRUCache<tensorflow::MklPrimitive>;
tensorflow::MklPrimitive* GetOpOfCache(PrimitiveCache*, const std::string& key) FASTOPS_SYMBOL(
    "_ZN10tensorflow8LRUCacheINS_12MklPrimitiveEE5GetOpERKNSt7__cxx1112basic_stringIcSt11char_"
    "traitsIcESaIcEEE");

// Source: tensorflow/core/util/mkl_util.h
// Name: MklPrimitiveFactory<float>::GetLRUCache
// Checked: 2.22
// The cache is a thread-local variable of this function. For such a variable dlsym returns the
// address in the calling thread. It cannot be declared weak: where the symbol is missing, its
// address is undefined, not null.
constexpr char kCache[] = "_ZZN10tensorflow19MklPrimitiveFactoryIfE11GetLRUCacheEvE10lru_cache_";

// Source: tensorflow/core/util/mkl_util.h
// Name: MklPrimitiveFactory<float>::GetLRUCache
// Checked: 2.22
// The guard of the cache. Its first byte says whether the cache of this thread was constructed.
constexpr char kCacheGuard[] =
    "_ZGVZN10tensorflow19MklPrimitiveFactoryIfE11GetLRUCacheEvE10lru_cache_";

// Convolution -------------------------------------------------------------------------------------

// Source: tensorflow/core/kernels/mkl/mkl_conv_ops.cc
// Name: MklConvFwdPrimitive
// Checked: 2.19, 2.20, 2.21, 2.22
constexpr char kConvolutionClass[] = "N10tensorflow19MklConvFwdPrimitiveIffffEE";

// Source: tensorflow/core/kernels/mkl/mkl_conv_ops.cc
// Name: MklConvFwdParams
// Checked: 2.19, 2.20, 2.21, 2.22
// No header declares this struct. An execution reads only the member `post_op_params`, a
// std::vector. It looks there for the scales of quantized operands, which float32 does not have. A
// std::vector of three null pointers is empty. A block of zeros therefore means that there are no
// scales, at whichever offset the vector is. In the versions above the struct has 280 bytes, and
// the vector is in the last 24. The block is larger, so that members may be added.
struct ConvolutionParams {
  alignas(std::max_align_t) std::array<std::byte, 4096> zeros{};
};
inline constexpr ConvolutionParams kNoConvolutionParams{};

// Source: tensorflow/core/util/mkl_util.h
// Name: UserScratchPad<unsigned char>::AllocateSPTensor
// Checked: 2.19, 2.20, 2.21, 2.22
void AllocateConvolutionScratch(ScratchPad*, tensorflow::MklPrimitive*,
                                tensorflow::OpKernelContext*)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow14UserScratchPadIhE16AllocateSPTensorINS_19MklConvFwdPrimitiveIffffEEEEvPT_"
        "PNS_15OpKernelContextE");

// Source: tensorflow/core/kernels/mkl/mkl_conv_ops.cc
// Name: MklConvFwdPrimitive::Execute
// Checked: 2.19, 2.20, 2.21, 2.22
void ExecuteConvolution(tensorflow::MklPrimitive*, const float* source, const float* filter,
                        const void* bias, const float* result, const ConvolutionParams&, Stream,
                        void* scratch)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow19MklConvFwdPrimitiveIffffE7ExecuteEPKfS3_PKvS3_RKNS_"
        "16MklConvFwdParamsESt10shared_ptrIN4dnnl6streamEEPv");

// Inner product -----------------------------------------------------------------------------------

using InnerProductParams = tensorflow::MklDnnMatMulFwdParams;

// Source: tensorflow/core/kernels/mkl/mkl_matmul_ops_common.h
// Name: MklDnnMatMulFwdPrimitive
// Checked: 2.19, 2.20, 2.21, 2.22
constexpr char kInnerProductClass[] = "N10tensorflow24MklDnnMatMulFwdPrimitiveIfffffEE";

// Source: tensorflow/core/kernels/mkl/mkl_matmul_ops_common.h
// Name: MklDnnMatMulFwdPrimitiveFactory::CreateKey
// Checked: 2.19, 2.20, 2.21, 2.22
std::string InnerProductKey(const InnerProductParams&) FASTOPS_SYMBOL(
    "_ZN10tensorflow31MklDnnMatMulFwdPrimitiveFactoryIfffffE9CreateKeyB5cxx11ERKNS_"
    "21MklDnnMatMulFwdParamsE");

// Source: tensorflow/core/util/mkl_util.h
// Name: UserScratchPad<unsigned char>::AllocateSPTensor
// Checked: 2.19, 2.20, 2.21, 2.22
void AllocateInnerProductScratch(ScratchPad*, tensorflow::MklPrimitive*,
                                 tensorflow::OpKernelContext*)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow14UserScratchPadIhE16AllocateSPTensorINS_"
        "24MklDnnMatMulFwdPrimitiveIfffffEEEEvPT_PNS_15OpKernelContextE");

// Source: tensorflow/core/kernels/mkl/mkl_matmul_ops_common.h
// Name: MklDnnMatMulFwdPrimitive::Execute
// Checked: 2.19, 2.20, 2.21, 2.22
void ExecuteInnerProduct(tensorflow::MklPrimitive*, const float* source, const float* weights,
                         const void* bias, float* result, const InnerProductParams&, void* scratch,
                         Stream)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow24MklDnnMatMulFwdPrimitiveIfffffE7ExecuteEPKfS3_PKvPfRKNS_"
        "21MklDnnMatMulFwdParamsEPvSt10shared_ptrIN4dnnl6streamEE");

// Pooling -----------------------------------------------------------------------------------------

// Source: tensorflow/core/kernels/mkl/mkl_pooling_ops_common.h
// Name: MklPoolingFwdPrimitive
// Checked: 2.19, 2.20, 2.21, 2.22
constexpr char kPoolingClass[] = "N10tensorflow22MklPoolingFwdPrimitiveIfEE";

// Source: oneapi/dnnl/dnnl.hpp
// Name: dnnl::memory::desc
// Checked: 2.19, 2.20, 2.21, 2.22
// A description is a handle and nothing else. Its own constructor would call a hidden function of
// oneDNN, so an empty handle stands for an empty description.
inline const dnnl::memory::desc& EmptyDescription() {
  static const dnnl::handle<dnnl_memory_desc_t> empty;
  static_assert(sizeof(empty) == sizeof(dnnl::memory::desc));
  return static_cast<const dnnl::memory::desc&>(empty);
}

// Source: tensorflow/core/kernels/mkl/mkl_pooling_ops_common.h
// Name: MklPoolingFwdPrimitiveFactory::CreateKey
// Checked: 2.19, 2.20, 2.21, 2.22
std::string PoolingKey(const tensorflow::MklPoolingParams&) FASTOPS_SYMBOL(
    "_ZN10tensorflow29MklPoolingFwdPrimitiveFactoryIfE9CreateKeyB5cxx11ERKNS_16MklPoolingParamsE");

// Source: tensorflow/core/kernels/mkl/mkl_pooling_ops_common.cc
// Name: MklPoolingFwdPrimitive::Execute
// Checked: 2.19, 2.20, 2.21, 2.22
void ExecutePooling(tensorflow::MklPrimitive*, const float* source, float* result, void* workspace,
                    Stream)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow22MklPoolingFwdPrimitiveIfE7ExecuteEPKfPfPvSt10shared_ptrIN4dnnl6streamEE");

// Softmax -----------------------------------------------------------------------------------------

// Source: tensorflow/core/kernels/mkl/mkl_softmax_op.cc
// Name: MklSoftmaxPrimitive
// Checked: 2.19, 2.20, 2.21, 2.22
constexpr char kSoftmaxClass[] = "N10tensorflow19MklSoftmaxPrimitiveIfEE";

// Source: tensorflow/core/kernels/mkl/mkl_softmax_op.cc
// Name: MklSoftmaxPrimitive::Execute
// Checked: 2.19, 2.20, 2.21, 2.22
void ExecuteSoftmax(tensorflow::MklPrimitive*, const float* source, float* result, Stream)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow19MklSoftmaxPrimitiveIfE7ExecuteEPKfPfSt10shared_ptrIN4dnnl6streamEE");

// Batch normalization -----------------------------------------------------------------------------

// Source: tensorflow/core/kernels/mkl/mkl_fused_batch_norm_op.cc
// Name: MklFusedBatchNormFwdPrimitive
// Checked: 2.19, 2.20, 2.21, 2.22
constexpr char kBatchNormClass[] = "N10tensorflow29MklFusedBatchNormFwdPrimitiveIffEE";

// Source: tensorflow/core/kernels/mkl/mkl_fused_batch_norm_op.cc
// Name: MklFusedBatchNormFwdPrimitive::Execute
// Checked: 2.19, 2.20, 2.21, 2.22
void ExecuteBatchNorm(tensorflow::MklPrimitive*, const float* source, const float* scale,
                      const float* shift, float* result, float* mean, float* variance, Stream,
                      float* workspace)
    FASTOPS_SYMBOL(
        "_ZN10tensorflow29MklFusedBatchNormFwdPrimitiveIffE7ExecuteEPKfS3_S3_PfS4_S4_St10shared_"
        "ptrIN4dnnl6streamEES4_");

}  // namespace fastops::symbols

#endif  // FASTOPS_CPP_ONEDNN_SYMBOLS_H_
