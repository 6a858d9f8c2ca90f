// Small tensors that gradient functions need, and what they ask of others: made and answered
// without running an op. The GIL is held.
#ifndef FASTOPS_CPP_TENSORS_H_
#define FASTOPS_CPP_TENSORS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "device.h"
#include "handle.h"
#include "tensorflow/core/framework/bfloat16.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/util/bcast.h"

namespace fastops {

// Whether an EagerTensor is held by this process and not packed of several.
inline bool IsLocal(PyObject* object) {
  auto* base = tensorflow::unwrap(EagerTensor_Handle(object));
  return tensorflow::TensorHandle::classof(base) &&
         LocalData(*static_cast<tensorflow::TensorHandle*>(base)) != nullptr;
}

inline Sizes ShapeOf(const tensorflow::Tensor& tensor) {
  auto sizes = tensor.shape().dim_sizes();
  return Sizes(sizes.begin(), sizes.end());
}

// Whether a tensor has exactly the sizes in a tuple of Python ints; no other tuple matches.
inline bool HasShape(const tensorflow::Tensor& tensor, PyObject* sizes) {
  if (!PyTuple_CheckExact(sizes) || PyTuple_GET_SIZE(sizes) != tensor.dims()) return false;
  for (int i = 0; i < tensor.dims(); ++i) {
    PyObject* size = PyTuple_GET_ITEM(sizes, i);
    if (!PyLong_CheckExact(size) || PyLong_AsLongLong(size) != tensor.dim_size(i)) {
      PyErr_Clear();  // of an int that does not fit
      return false;
    }
  }
  return true;
}

// Whether two tensors have one dtype, one shape and the same bytes. Of strings, the texts count.
inline bool SameBytes(const tensorflow::Tensor& one, const tensorflow::Tensor& other) {
  if (one.dtype() != other.dtype() || !one.IsSameSize(other)) return false;
  if (one.dtype() == tensorflow::DT_STRING) {
    auto mine = one.flat<tensorflow::tstring>(), theirs = other.flat<tensorflow::tstring>();
    return std::equal(mine.data(), mine.data() + mine.size(), theirs.data());
  }
  const absl::string_view bytes = one.tensor_data();
  return tensorflow::DataTypeCanUseMemcpy(one.dtype()) && bytes == other.tensor_data();
}

// The elements of a tensor of int32 or int64. False for other dtypes.
inline bool IntsOf(const tensorflow::Tensor& tensor, Sizes* values) {
  if (tensor.dtype() == tensorflow::DT_INT32) {
    auto flat = tensor.flat<int32_t>();
    values->assign(flat.data(), flat.data() + flat.size());
  } else if (tensor.dtype() == tensorflow::DT_INT64) {
    auto flat = tensor.flat<int64_t>();
    values->assign(flat.data(), flat.data() + flat.size());
  } else {
    return false;
  }
  return true;
}

// Whether a tensor is a scalar of bool, and what it says.
inline bool IsTruth(const tensorflow::Tensor& tensor, bool* truth) {
  if (tensor.dtype() != tensorflow::DT_BOOL || tensor.dims() != 0) return false;
  *truth = tensor.scalar<bool>()();
  return true;
}

inline PyObject* WrapOnHost(tensorflow::Tensor&& tensor) {
  tensorflow::EagerContext* context = tensorflow::GetCEagerContext();
  return Wrap(std::move(tensor), context->HostCPU(), context);
}

// A new EagerTensor with the same bytes in a buffer of its own.
inline PyObject* CopyOf(const tensorflow::Tensor& tensor) {
  return WrapOnHost(tensorflow::tensor::DeepCopy(tensor));
}

// A new EagerTensor of int32 or int64, a vector or a matrix of `columns`. Null with a Python
// exception.
inline PyObject* IntTensor(const Sizes& values, tensorflow::DataType dtype, int columns = 0) {
  const int64_t size = values.size();
  tensorflow::Tensor tensor(dtype, columns == 0
                                       ? tensorflow::TensorShape({size})
                                       : tensorflow::TensorShape({size / columns, columns}));
  if (dtype == tensorflow::DT_INT32) {
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
  } else {
    std::copy(values.begin(), values.end(), tensor.flat<int64_t>().data());
  }
  return WrapOnHost(std::move(tensor));
}

// A new EagerTensor of ones; None for a dtype that has no gradients. Null with a Python exception.
inline PyObject* OnesLike(const tensorflow::Tensor& like) {
  tensorflow::Tensor tensor(like.dtype(), like.shape());
  switch (like.dtype()) {
#define FASTOPS_ONES(Enum, Type)                              \
  case tensorflow::Enum:                                      \
    tensor.flat<Type>().setConstant(static_cast<Type>(1.0f)); \
    break
    FASTOPS_ONES(DT_HALF, Eigen::half);
    FASTOPS_ONES(DT_BFLOAT16, tensorflow::bfloat16);
    FASTOPS_ONES(DT_FLOAT, float);
    FASTOPS_ONES(DT_DOUBLE, double);
    FASTOPS_ONES(DT_COMPLEX64, tensorflow::complex64);
    FASTOPS_ONES(DT_COMPLEX128, tensorflow::complex128);
#undef FASTOPS_ONES
    default:
      Py_RETURN_NONE;
  }
  return WrapOnHost(std::move(tensor));
}

// Element `index` along the first axis of a tensor, as a new EagerTensor: what StridedSlice makes
// of `tensor[index]`. As there, it shares the tensor's memory where it lies aligned in it. Null
// without an exception for a dtype or an index that this is not for.
inline PyObject* RowOf(const tensorflow::Tensor& tensor, int64_t index) {
  constexpr tensorflow::DataTypeSet kDtypes =
      tensorflow::kRealNumberTypes | tensorflow::ToSet(tensorflow::DT_BOOL) |
      tensorflow::ToSet(tensorflow::DT_COMPLEX64) | tensorflow::ToSet(tensorflow::DT_COMPLEX128);
  if (tensor.dims() == 0 || index < 0 || index >= tensor.dim_size(0) ||
      !kDtypes.Contains(tensor.dtype())) {
    return nullptr;
  }
  tensorflow::TensorShape shape = tensor.shape();
  shape.RemoveDim(0);
  const int64_t bytes = shape.num_elements() * tensorflow::DataTypeSize(tensor.dtype());
  if (tensor.dim_size(0) == 1 || (tensor.dims() > 1 && bytes % EIGEN_MAX_ALIGN_BYTES == 0)) {
    tensorflow::Tensor row;
    if (!row.CopyFrom(tensor.Slice(index, index + 1), shape)) return nullptr;
    return WrapOnHost(std::move(row));
  }
  tensorflow::Tensor row(SmallTensorAllocator::Get(), tensor.dtype(), shape);
  std::memcpy(row.data(), static_cast<const char*>(tensor.data()) + index * bytes, bytes);
  return WrapOnHost(std::move(row));
}

// Along which axes the gradients of two operands are summed up: what the op BroadcastGradientArgs
// computes. False for shapes that do not fit.
inline bool ReducedAxes(const Sizes& x, const Sizes& y, Sizes* x_axes, Sizes* y_axes) {
  tensorflow::BCast broadcast(tensorflow::BCast::Vec(x.begin(), x.end()),
                              tensorflow::BCast::Vec(y.begin(), y.end()));
  if (!broadcast.IsValid()) return false;
  x_axes->assign(broadcast.grad_x_reduce_idx().begin(), broadcast.grad_x_reduce_idx().end());
  y_axes->assign(broadcast.grad_y_reduce_idx().begin(), broadcast.grad_y_reduce_idx().end());
  return true;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_TENSORS_H_
