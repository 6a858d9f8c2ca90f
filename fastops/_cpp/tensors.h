// Makes and reads small tensors without running an op, mainly for gradient functions. The GIL is
// held.
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

// Whether an EagerTensor is in this process and not packed from several tensors.
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
      PyErr_Clear();  // the int is too large
      return false;
    }
  }
  return true;
}

// Whether two tensors have the same dtype, shape and bytes. Strings are compared by content.
inline bool SameBytes(const tensorflow::Tensor& left, const tensorflow::Tensor& right) {
  if (left.dtype() != right.dtype() || !left.IsSameSize(right)) return false;
  if (left.dtype() == tensorflow::DT_STRING) {
    auto mine = left.flat<tensorflow::tstring>(), theirs = right.flat<tensorflow::tstring>();
    return std::equal(mine.data(), mine.data() + mine.size(), theirs.data());
  }
  const absl::string_view bytes = left.tensor_data();
  return tensorflow::DataTypeCanUseMemcpy(left.dtype()) && bytes == right.tensor_data();
}

// Reads the elements of a tensor of int32 or int64. Returns false for other dtypes.
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

// Whether a tensor is a bool scalar. Sets `truth` to its value.
inline bool IsTruth(const tensorflow::Tensor& tensor, bool* truth) {
  if (tensor.dtype() != tensorflow::DT_BOOL || tensor.dims() != 0) return false;
  *truth = tensor.scalar<bool>()();
  return true;
}

inline PyObject* WrapOnHost(tensorflow::Tensor&& tensor) {
  tensorflow::EagerContext* context = tensorflow::GetCEagerContext();
  return Wrap(std::move(tensor), context->HostCPU(), context);
}

// Makes a new EagerTensor with a copy of the bytes.
inline PyObject* CopyOf(const tensorflow::Tensor& tensor) {
  return WrapOnHost(tensorflow::tensor::DeepCopy(tensor));
}

// Makes a new EagerTensor of int32 or int64: a vector, or a matrix of `columns` columns if that is
// not 0. On failure, returns null with a Python exception.
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

// Makes a new EagerTensor of ones. Returns None for a dtype that has no gradients. On failure,
// returns null with a Python exception.
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

// Makes a new EagerTensor of element `index` along the first axis, as StridedSlice does for
// `tensor[index]`. Like StridedSlice, it shares the tensor's memory if the element is aligned
// there. Returns null without an exception if the dtype or the index is not supported.
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

// Computes the axes along which the gradients of two operands are summed, as the op
// BroadcastGradientArgs does. Returns false if the shapes do not broadcast.
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
