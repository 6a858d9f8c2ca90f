// NumPy's arrays as tensors. The GIL is held.
#ifndef FASTOPS_CPP_ARRAYS_H_
#define FASTOPS_CPP_ARRAYS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "handle.h"
#include "runtime.h"

// Only what is inline there: nothing of NumPy needs to be imported for it.
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>

namespace fastops {

// The dtype of the tensor that TensorFlow makes of an array; DT_INVALID for those that it is left
// to. `object` is an ndarray, of no subclass.
inline tensorflow::DataType ArrayDtype(PyObject* object) {
  const auto* array = reinterpret_cast<PyArrayObject*>(object);
  if (!PyArray_ISNOTSWAPPED(array)) return tensorflow::DT_INVALID;
  switch (PyArray_TYPE(array)) {
    case NPY_BOOL:
      return tensorflow::DT_BOOL;
    case NPY_INT8:
      return tensorflow::DT_INT8;
    case NPY_UINT8:
      return tensorflow::DT_UINT8;
    case NPY_INT16:
      return tensorflow::DT_INT16;
    case NPY_UINT16:
      return tensorflow::DT_UINT16;
    case NPY_INT32:
      return tensorflow::DT_INT32;
    case NPY_UINT32:
      return tensorflow::DT_UINT32;
    case NPY_INT64:
      return tensorflow::DT_INT64;
    case NPY_UINT64:
      return tensorflow::DT_UINT64;
    case NPY_HALF:
      return tensorflow::DT_HALF;
    case NPY_FLOAT:
      return tensorflow::DT_FLOAT;
    case NPY_DOUBLE:
      return tensorflow::DT_DOUBLE;
    case NPY_CFLOAT:
      return tensorflow::DT_COMPLEX64;
    case NPY_CDOUBLE:
      return tensorflow::DT_COMPLEX128;
    default:
      return tensorflow::DT_INVALID;
  }
}

// Copies a small array into a new EagerTensor on the host: as `hint` says, DT_INVALID for the
// array's own dtype. Null, with no exception, for what is left to TensorFlow: of large arrays it
// may share the memory, and what is not contiguous, or cast otherwise, goes through NumPy.
inline PyObject* CopyOfArray(PyObject* object, tensorflow::DataType hint, const Runtime& here) {
  constexpr int kDimensions = 8;
  constexpr int64_t kBytes = 16 << 10;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  const int rank = PyArray_NDIM(array);
  const tensorflow::DataType dtype = ArrayDtype(object);
  const bool narrows = dtype == tensorflow::DT_DOUBLE && hint == tensorflow::DT_FLOAT;
  if (dtype == tensorflow::DT_INVALID || rank > kDimensions || !PyArray_ISCARRAY_RO(array) ||
      (hint != tensorflow::DT_INVALID && hint != dtype && !narrows)) {
    return nullptr;
  }
  int64_t sizes[kDimensions];
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    sizes[i] = PyArray_DIM(array, i);
    count *= sizes[i];
    if (count > kBytes) return nullptr;
  }
  const int64_t bytes = count * tensorflow::DataTypeSize(dtype);
  if (bytes > kBytes) return nullptr;
  tensorflow::Tensor tensor(SmallTensorAllocator::Get(), narrows ? hint : dtype,
                            tensorflow::TensorShape(absl::MakeConstSpan(sizes, rank)));
  if (narrows) {
    const auto* values = static_cast<const double*>(PyArray_DATA(array));
    auto* narrow = static_cast<float*>(tensor.data());
    for (int64_t i = 0; i < count; ++i) {
      narrow[i] = static_cast<float>(values[i]);
      // Of what does not fit, NumPy tells its user.
      const bool fits = std::isnormal(narrow[i]) || values[i] == 0.0 || std::isinf(values[i]);
      if (!fits) return nullptr;
    }
  } else if (bytes > 0) {
    std::memcpy(tensor.data(), PyArray_DATA(array), bytes);
  }
  return Wrap(std::move(tensor), here.host, here.context);
}

}  // namespace fastops

#endif  // FASTOPS_CPP_ARRAYS_H_
