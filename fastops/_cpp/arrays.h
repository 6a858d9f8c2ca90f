// Converts NumPy arrays and scalars to tensors. The GIL is held.
#ifndef FASTOPS_CPP_ARRAYS_H_
#define FASTOPS_CPP_ARRAYS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "casts.h"
#include "handle.h"
#include "runtime.h"

// Only inline functions of this header are used, so NumPy's C API need not be imported.
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>

namespace fastops {

constexpr int kArrayDimensions = 8;
// The largest arrays that are copied where TensorFlow may share the memory of an array.
constexpr int64_t kArrayBytes = 16 << 10;
// The largest arrays that are copied where TensorFlow copies, too. The copy of a larger one takes
// so long that other threads should run meanwhile.
constexpr int64_t kCopiedBytes = 4 << 20;

// Does the same as PyArray_ISNOTSWAPPED. Since NumPy 2.5 that macro calls a function that has to be
// imported.
inline bool InNativeOrder(PyArrayObject* array) {
  return PyArray_ISNBO(PyArray_DESCR(array)->byteorder);
}

// NumPy's classes, and the type numbers of dtypes that are not built into NumPy.
struct ArrayTypes {
  PyTypeObject* array = nullptr;
  std::vector<std::pair<PyTypeObject*, tensorflow::DataType>> scalars;
  std::vector<std::pair<int, tensorflow::DataType>> numbers;

  static const ArrayTypes& Get() {
    static const auto* types = new ArrayTypes();
    return *types;
  }

 private:
  ArrayTypes() {
    PyObject* numpy = PyImport_ImportModule("numpy");
    array = reinterpret_cast<PyTypeObject*>(Attribute(numpy, "ndarray"));
    for (const auto& [name, dtype] :
         std::initializer_list<Named>{{"float32", tensorflow::DT_FLOAT},
                                      {"float64", tensorflow::DT_DOUBLE},
                                      {"int64", tensorflow::DT_INT64},
                                      {"int32", tensorflow::DT_INT32},
                                      {"bool_", tensorflow::DT_BOOL},
                                      {"uint8", tensorflow::DT_UINT8},
                                      {"int8", tensorflow::DT_INT8},
                                      {"int16", tensorflow::DT_INT16},
                                      {"uint16", tensorflow::DT_UINT16},
                                      {"uint32", tensorflow::DT_UINT32},
                                      {"uint64", tensorflow::DT_UINT64},
                                      {"float16", tensorflow::DT_HALF},
                                      {"complex64", tensorflow::DT_COMPLEX64},
                                      {"complex128", tensorflow::DT_COMPLEX128}}) {
      if (PyObject* type = Attribute(numpy, name)) {
        scalars.emplace_back(reinterpret_cast<PyTypeObject*>(type), dtype);
      }
    }
    PyObject* ml_dtypes = PyImport_ImportModule("ml_dtypes");
    for (const auto& [name, dtype] :
         std::initializer_list<Named>{{"bfloat16", tensorflow::DT_BFLOAT16},
                                      {"float8_e5m2", tensorflow::DT_FLOAT8_E5M2},
                                      {"float8_e4m3fn", tensorflow::DT_FLOAT8_E4M3FN},
                                      {"int4", tensorflow::DT_INT4},
                                      {"uint4", tensorflow::DT_UINT4}}) {
      PyObject* type = Attribute(ml_dtypes, name);
      if (type == nullptr) continue;
      PyObject* description = PyObject_CallMethod(numpy, "dtype", "O", type);
      PyObject* number = Attribute(description, "num");
      if (number != nullptr) numbers.emplace_back(PyLong_AsLong(number), dtype);
      Py_XDECREF(number);
      Py_XDECREF(description);
      Py_DECREF(type);
    }
    Py_XDECREF(ml_dtypes);
    Py_XDECREF(numpy);
    PyErr_Clear();  // this NumPy lacks some types
  }

  using Named = std::pair<const char*, tensorflow::DataType>;

  static PyObject* Attribute(PyObject* object, const char* name) {
    PyObject* attribute = object == nullptr ? nullptr : PyObject_GetAttrString(object, name);
    PyErr_Clear();
    return attribute;
  }
};

// A view of an array or a scalar: numbers of one dtype at regular strides. It borrows the data.
struct ArrayView {
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  int rank = 0;
  int64_t count = 1;
  int item = 0;            // bytes per number
  bool contiguous = true;  // C-contiguous, aligned and in native byte order
  bool swapped = false;
  const char* data = nullptr;
  std::array<int64_t, kArrayDimensions> sizes, strides;
};

inline bool IsArray(PyObject* object) { return Py_TYPE(object) == ArrayTypes::Get().array; }

// The dtype to which TensorFlow converts an array with this type number.
inline tensorflow::DataType NumberDtype(int number) {
  switch (number) {
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
      for (const auto& [known, dtype] : ArrayTypes::Get().numbers) {
        if (known == number) return dtype;
      }
      return tensorflow::DT_INVALID;
  }
}

// The dtype to which TensorFlow converts an array or a scalar. DT_INVALID if it does not hold
// numbers, and for all other objects, including instances of subclasses.
inline tensorflow::DataType ArrayDtype(PyObject* object) {
  if (IsArray(object)) return NumberDtype(PyArray_TYPE(reinterpret_cast<PyArrayObject*>(object)));
  for (const auto& [type, dtype] : ArrayTypes::Get().scalars) {
    if (Py_TYPE(object) == type) return dtype;
  }
  return tensorflow::DT_INVALID;
}

// Makes a view of an object. Returns false if the object must not be copied here, and for arrays
// of more than `most` elements.
inline bool ViewOf(PyObject* object, ArrayView* view, int64_t most = kArrayBytes) {
  view->dtype = ArrayDtype(object);
  if (view->dtype == tensorflow::DT_INVALID) return false;
  view->item = tensorflow::DataTypeSize(view->dtype);
  if (!IsArray(object)) {
    // A scalar holds its value after the object header.
    view->data = reinterpret_cast<const char*>(object) + sizeof(PyObject);
    // The classes of these two derive from Python's own numbers. TensorFlow therefore caches them,
    // and treats 0.0 and -0.0 as equal.
    if (view->dtype == tensorflow::DT_DOUBLE || view->dtype == tensorflow::DT_COMPLEX128) {
      const auto* parts = reinterpret_cast<const double*>(view->data);
      for (int i = 0; i < view->item / 8; ++i) {
        if (parts[i] == 0.0) return false;
      }
    }
    return true;
  }
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  view->rank = PyArray_NDIM(array);
  if (view->rank > kArrayDimensions) return false;
  for (int i = 0; i < view->rank; ++i) {
    view->sizes[i] = PyArray_DIM(array, i);
    view->strides[i] = PyArray_STRIDE(array, i);
    view->count *= view->sizes[i];
    if (view->count > most) return false;
  }
  view->data = static_cast<const char*>(PyArray_DATA(array));
  view->swapped = !InNativeOrder(array);
  view->contiguous = !view->swapped && PyArray_CHKFLAGS(array, NPY_ARRAY_CARRAY_RO);
  return true;
}

// Calls `visit` with the address of each element, in C order. Stops if `visit` returns false.
template <typename Visit>
bool EachElement(const ArrayView& view, Visit visit, const char* data, int axis = 0) {
  if (axis == view.rank) return visit(data);
  for (int64_t i = 0; i < view.sizes[axis]; ++i, data += view.strides[axis]) {
    if (!EachElement(view, visit, data, axis + 1)) return false;
  }
  return true;
}

// Copies the numbers into contiguous memory, in native byte order.
inline void CopyNumbers(const ArrayView& view, void* to) {
  if (view.count == 0) return;
  if (view.contiguous) {
    std::memcpy(to, view.data, view.count * view.item);
    return;
  }
  auto* out = static_cast<char*>(to);
  const int part = tensorflow::DataTypeIsComplex(view.dtype) ? view.item / 2 : view.item;
  EachElement(
      view,
      [&](const char* element) {
        std::memcpy(out, element, view.item);
        if (view.swapped) {
          for (int i = 0; i < view.item; i += part) std::reverse(out + i, out + i + part);
        }
        out += view.item;
        return true;
      },
      view.data);
}

inline tensorflow::Tensor NewTensor(tensorflow::DataType dtype, const int64_t* sizes, int rank) {
  return tensorflow::Tensor(SmallTensorAllocator::Get(), dtype,
                            tensorflow::TensorShape(absl::MakeConstSpan(sizes, rank)));
}

// Stores a Python string as TensorFlow does. Returns false unless the class is str or bytes.
inline bool AssignText(PyObject* object, tensorflow::tstring* text) {
  if (PyBytes_CheckExact(object)) {
    text->assign(PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
    return true;
  }
  if (!PyUnicode_CheckExact(object)) return false;
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(object, &size);
  if (utf8 == nullptr) {
    PyErr_Clear();
    return false;
  }
  text->assign(utf8, size);
  return true;
}

// Copies an array of strings, or of objects that are strings, into a new EagerTensor on the host.
// Returns null, with no exception, if TensorFlow has to convert the array.
inline PyObject* CopyOfStrings(PyArrayObject* array, const Runtime& here) {
  const int kind = PyArray_TYPE(array);
  const int rank = PyArray_NDIM(array);
  if ((kind != NPY_STRING && kind != NPY_UNICODE && kind != NPY_OBJECT) ||
      rank > kArrayDimensions || !InNativeOrder(array) || !PyArray_ISALIGNED(array)) {
    return nullptr;
  }
  ArrayView view;
  view.rank = rank;
  for (int i = 0; i < rank; ++i) {
    view.sizes[i] = PyArray_DIM(array, i);
    view.strides[i] = PyArray_STRIDE(array, i);
    view.count *= view.sizes[i];
    if (view.count > kArrayBytes / static_cast<int64_t>(sizeof(tensorflow::tstring)))
      return nullptr;
  }
  PyObject* size = PyObject_GetAttrString(reinterpret_cast<PyObject*>(array), "itemsize");
  if (size == nullptr) return nullptr;
  const Py_ssize_t item = PyLong_AsSsize_t(size);
  Py_DECREF(size);
  tensorflow::Tensor tensor = NewTensor(tensorflow::DT_STRING, view.sizes.data(), rank);
  auto* text = tensor.flat<tensorflow::tstring>().data();
  const bool copied = EachElement(
      view,
      [&](const char* element) {
        if (kind == NPY_OBJECT) {
          PyObject* object = *reinterpret_cast<PyObject* const*>(element);
          return object != nullptr && AssignText(object, text++);
        }
        if (kind == NPY_STRING) {  // padded with zeros
          Py_ssize_t length = item;
          while (length > 0 && element[length - 1] == '\0') --length;
          (text++)->assign(element, length);
          return true;
        }
        const auto* letters = reinterpret_cast<const Py_UCS4*>(element);
        Py_ssize_t length = item / sizeof(Py_UCS4);
        while (length > 0 && letters[length - 1] == 0) --length;
        PyObject* string = PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, letters, length);
        const bool is_text = string != nullptr && AssignText(string, text++);
        Py_XDECREF(string);
        return is_text;
      },
      static_cast<const char*>(PyArray_DATA(array)));
  PyErr_Clear();
  return copied ? Wrap(std::move(tensor), here.host, here.context) : nullptr;
}

// Copies an array or a scalar into a new EagerTensor on the host. The dtype is `hint`, or that of
// the array if `hint` is DT_INVALID. Returns null, with no exception, if TensorFlow has to convert
// the value: it has more than `most` bytes, or its elements are not in order.
inline PyObject* CopyOfArray(PyObject* object, tensorflow::DataType hint, const Runtime& here,
                             int64_t most) {
  ArrayView view;
  if (!ViewOf(object, &view, most)) {
    if (!IsArray(object) || (hint != tensorflow::DT_INVALID && hint != tensorflow::DT_STRING)) {
      return nullptr;
    }
    return CopyOfStrings(reinterpret_cast<PyArrayObject*>(object), here);
  }
  if (hint == tensorflow::DT_INVALID) hint = view.dtype;
  const int64_t largest = std::max(view.item, tensorflow::DataTypeSize(hint));
  const int64_t bytes = view.count * largest;
  if (bytes > most || (bytes > kArrayBytes && !view.contiguous)) return nullptr;
  tensorflow::Tensor tensor;
  if (hint == view.dtype) {
    tensor = NewTensor(hint, view.sizes.data(), view.rank);
    CopyNumbers(view, tensor.data());
  } else {
    if (tensorflow::DataTypeSize(hint) == 0) return nullptr;
    tensor = NewTensor(hint, view.sizes.data(), view.rank);
    const void* values = view.data;
    tensorflow::Tensor aligned;
    if (!view.contiguous) {
      aligned = NewTensor(view.dtype, view.sizes.data(), view.rank);
      CopyNumbers(view, aligned.data());
      values = aligned.data();
    }
    if (!CastAll(view.dtype, values, hint, tensor.data(), view.count)) return nullptr;
  }
  return Wrap(std::move(tensor), here.host, here.context);
}

}  // namespace fastops

#endif  // FASTOPS_CPP_ARRAYS_H_
