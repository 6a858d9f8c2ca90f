// Signature: the key of the arguments of a call. Calls with equal signatures share one trace.
#ifndef FASTOPS_CPP_SIGNATURE_H_
#define FASTOPS_CPP_SIGNATURE_H_

#include <Python.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "arrays.h"
#include "dicts.h"
#include "handle.h"
#include "opdef.h"
#include "runtime.h"
#include "tensorflow/core/framework/resource_handle.h"

namespace fastops {

// The classes that signatures support, besides Python's own and EagerTensor. Set once, on import.
struct KnownClasses {
  PyTypeObject* variable = nullptr;
  PyTypeObject* array = nullptr;
  PyTypeObject* array_scalar = nullptr;
  PyTypeObject* dtype = nullptr;
  PyTypeObject* iterator = nullptr;
  PyTypeObject* lazy_iterator = nullptr;  // an iterator that makes its resource when it is read
  PyTypeObject* shape = nullptr;
  PyObject* composites = nullptr;  // a frozenset of classes defined by their attributes alone
  // A dict of classes whose methods depend on the attributes of an instance alone. The value for a
  // class is a frozenset of the names of attributes that no method reads.
  PyObject* objects = nullptr;
  // Names of attributes. The first five are for variables, the others for dtypes, iterators and
  // shapes.
  PyObject* handle = nullptr;
  PyObject* static_shape = nullptr;
  PyObject* trainable = nullptr;
  PyObject* cached = nullptr;
  PyObject* caching = nullptr;
  PyObject* number = nullptr;
  PyObject* iterated = nullptr;
  PyObject* dims = nullptr;
  PyObject* copy = nullptr;  // the name of a method of arrays
  // A function that describes an iterator by a string. It returns None for an unsupported iterator.
  PyObject* describe_iterator = nullptr;
};

inline KnownClasses& Known() {
  static KnownClasses known;
  return known;
}

// A growing buffer of bytes. The first 512 bytes need no allocation.
class Bytes {
 public:
  void push_back(char byte) { Append(&byte, 1); }

  void Append(const void* bytes, size_t size) {
    if (size > capacity_ - size_) Grow(size);
    std::memcpy(data_ + size_, bytes, size);
    size_ += size;
  }

  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void Grow(size_t more) {
    capacity_ = 2 * (size_ + more);
    std::unique_ptr<char[]> larger(new char[capacity_]);
    std::memcpy(larger.get(), data_, size_);
    grown_ = std::move(larger);
    data_ = grown_.get();
  }

  char inline_[512];
  std::unique_ptr<char[]> grown_;
  char* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = sizeof(inline_);
};

// Encodes the arguments of a call as bytes: the dtypes and shapes of tensors, arrays and variables;
// the values of Python numbers, strings, None and dtypes; and the structure of lists, tuples and
// dicts.
//
// Also lists the leaves: the tensors that are passed to a trace, in the order of the arguments.
class Signature {
 public:
  Signature() = default;
  ~Signature() {
    for (PyObject* object : owned_) Py_DECREF(object);
    for (PyObject* object : objects_) Py_DECREF(object);
    for (const auto& [leaf, variable] : variables_) Py_DECREF(variable);
  }
  Signature(const Signature&) = delete;
  Signature& operator=(const Signature&) = delete;

  // Accepts tensors and the handles of variables as the only leaves, also in composites and known
  // objects. The signature then encodes which leaves are identical.
  void TakeOnlyTensors() { only_tensors_ = true; }

  // Also encodes the attributes of tensors, and accepts instances of class `kind` by identity: the
  // address of the instance becomes part of the signature.
  void TakeIdentities(PyTypeObject* kind) {
    with_attributes_ = true;
    identified_ = kind;
  }

  // Accepts tensors and variables on any local device. The device becomes part of the signature.
  void TakeDevices() { anywhere_ = true; }

  // Reads the arguments of a vectorcall. Returns false, with no exception set, if an argument is
  // not supported. TensorFlow then has to run the call.
  bool Read(const Runtime& runtime, PyObject* const* args, Py_ssize_t positional,
            PyObject* keywords) {
    runtime_ = &runtime;
    for (Py_ssize_t i = 0; i < positional; ++i) {
      if (!Add(args[i], 0)) return false;
    }
    if (keywords == nullptr) return true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i) {
      text_.push_back('=');
      if (!AddText(PyTuple_GET_ITEM(keywords, i)) || !Add(args[positional + i], 0)) return false;
    }
    return true;
  }

  bool Is(const char* text, size_t size) const {
    return size == text_.size() && std::memcmp(text, text_.data(), size) == 0;
  }

  const char* data() const { return text_.data(); }
  size_t size() const { return text_.size(); }
  size_t num_leaves() const { return leaves_.size(); }
  // Borrowed; valid while this object lives.
  const tensorflow::Tensor* leaf(size_t i) const { return leaves_[i]; }
  PyObject* object(size_t i) const { return objects_[i]; }  // the EagerTensor
  // The variable that the leaf is the handle of, or null.
  PyObject* variable(size_t leaf) const {
    for (const auto& [its, variable] : variables_) {
      if (its == leaf) return variable;
    }
    return nullptr;
  }
  // The instances of the class that was passed to `TakeIdentities`.
  size_t num_identities() const { return identities_.size(); }
  PyObject* identity(size_t i) const { return identities_[i]; }
  // The composites and known objects among the arguments, nested ones included.
  size_t num_holders() const { return holders_.size(); }
  PyObject* holder(size_t i) const { return holders_[i]; }

 private:
  static constexpr int kDeepest = 32;
  static constexpr int kMostNested = 4;

  template <typename Number>
  void AppendNumber(char kind, Number number) {
    text_.push_back(kind);
    text_.Append(&number, sizeof(number));
  }

  bool Add(PyObject* value, int depth) {
    PyTypeObject* kind = Py_TYPE(value);
    const KnownClasses& known = Known();
    if (IsEagerTensor(value)) return AddTensor(value);
    if (kind == &PyFloat_Type) {
      AppendNumber('f', PyFloat_AS_DOUBLE(value));
    } else if (kind == &PyLong_Type) {
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
      if (overflow != 0) return false;
      AppendNumber('i', number);
    } else if (kind == &PyBool_Type) {
      text_.push_back(value == Py_True ? 't' : 'F');
    } else if (value == Py_None) {
      text_.push_back('n');
    } else if (kind == &PyUnicode_Type) {
      text_.push_back('s');
      return AddText(value);
    } else if (kind == &PyTuple_Type || kind == &PyList_Type) {
      if (depth == kDeepest) return false;
      AppendNumber(kind == &PyTuple_Type ? '(' : '[', Py_SIZE(value));
      for (Py_ssize_t i = 0; i < Py_SIZE(value); ++i) {
        if (!Add(PySequence_Fast_GET_ITEM(value, i), depth + 1)) return false;
      }
    } else if (kind == &PyDict_Type) {
      if (depth == kDeepest) return false;
      AppendNumber('{', PyDict_GET_SIZE(value));
      PyObject *name, *item;
      for (Py_ssize_t at = 0; PyDict_Next(value, &at, &name, &item);) {
        if (Py_TYPE(name) != &PyUnicode_Type || !AddText(name) || !Add(item, depth + 1)) {
          return false;
        }
      }
    } else if (PyType_IsSubtype(kind, known.dtype)) {
      return AddDtype(value);
    } else if (only_tensors_) {
      if (kind == known.shape) return AddDims(value, depth);
      if (kind == identified_) {
        AppendNumber('K', value);
        identities_.push_back(value);
        owned_.push_back(Py_NewRef(value));
        return true;
      }
      if (kind == known.variable) return IsReadByOp(value) && AddVariable(value);
      if (inside_ && PyType_IsSubtype(kind, known.array_scalar)) return AddIndex(value);
      return AddComposite(value, depth) || AddObject(value, depth);
    } else if (kind == known.variable) {
      return AddVariable(value);
    } else if (kind == known.iterator || kind == known.lazy_iterator) {
      return AddIterator(value);
    } else if (kind == known.array || PyType_IsSubtype(kind, known.array_scalar)) {
      return AddArray(value);
    } else {
      return false;
    }
    return true;
  }

  bool AddText(PyObject* text) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes == nullptr) {
      PyErr_Clear();
      return false;
    }
    text_.Append(&size, sizeof(size));
    text_.Append(bytes, size);
    return true;
  }

  bool AddDtype(PyObject* dtype) {
    // TensorFlow's dtypes are never freed, and reading the number from one is slow.
    static absl::InlinedVector<std::pair<PyObject*, long>, 32> known;
    for (const auto& [object, number] : known) {
      if (object == dtype) {
        AppendNumber('d', number);
        return true;
      }
    }
    PyObject* number = PyObject_GetAttr(dtype, Known().number);
    const long found = number == nullptr ? -1 : PyLong_AsLong(number);
    Py_XDECREF(number);
    PyErr_Clear();
    // A dtype of a handle may carry more than its number.
    if (found <= 0 || IsHandleType(static_cast<tensorflow::DataType>(found))) return false;
    if (known.size() < known.capacity()) known.emplace_back(Py_NewRef(dtype), found);
    AppendNumber('d', found);
    return true;
  }

  bool AddDims(PyObject* shape, int depth) {
    PyObject* dims = PyObject_GetAttr(shape, Known().dims);
    if (dims == nullptr) {
      PyErr_Clear();
      return false;
    }
    owned_.push_back(dims);
    text_.push_back('h');
    return Add(dims, depth);
  }

  bool AddComposite(PyObject* value, int depth) {
    auto* kind = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (PySet_Contains(Known().composites, kind) != 1) {
      PyErr_Clear();  // the class is not hashable
      return false;
    }
    if (!IsNew('C', value)) return true;
    PyObject* attributes = PyObject_GenericGetDict(value, nullptr);
    if (attributes == nullptr) {
      PyErr_Clear();
      return false;
    }
    owned_.push_back(attributes);
    text_.Append(&kind, sizeof(kind));
    return Add(attributes, depth);
  }

  // Whether a composite or an object appears for the first time. Encodes its number.
  bool IsNew(char kind, PyObject* holder) {
    size_t alias = 0;
    while (alias < holders_.size() && holders_[alias] != holder) ++alias;
    AppendNumber(kind, alias);
    if (alias < holders_.size()) return false;
    holders_.push_back(holder);
    owned_.push_back(Py_NewRef(holder));
    return true;
  }

  // Encodes the attributes of an object that its methods read. Tensors among them become leaves.
  // The call may change the attributes, so the values that were read are owned.
  bool AddObject(PyObject* value, int depth) {
    auto* kind = reinterpret_cast<PyObject*>(Py_TYPE(value));
    PyObject* unasked =
        Known().objects == nullptr ? nullptr : PyDict_GetItemWithError(Known().objects, kind);
    PyObject* attributes =
        unasked == nullptr || depth == kDeepest ? nullptr : PyObject_GenericGetDict(value, nullptr);
    if (attributes == nullptr) {
      PyErr_Clear();
      return false;
    }
    owned_.push_back(attributes);
    if (!IsNew('O', value)) return true;
    text_.Append(&kind, sizeof(kind));
    const bool outside = !inside_;
    inside_ = true;
    PyObject *name, *item;
    for (Py_ssize_t at = 0; PyDict_Next(attributes, &at, &name, &item);) {
      if (IsBookkeeping(name)) continue;
      if (PySet_GET_SIZE(unasked) != 0 && PySet_Contains(unasked, name) == 1) continue;
      owned_.push_back(Py_NewRef(item));
      text_.push_back('.');
      if (Py_TYPE(name) != &PyUnicode_Type || !AddText(name) || !Add(item, depth + 1)) {
        return false;
      }
    }
    text_.push_back(';');
    if (outside) inside_ = false;
    return true;
  }

  // Whether an attribute only serves TensorFlow's tracking of attributes for checkpoints.
  static bool IsBookkeeping(PyObject* name) {
    static constexpr char kPrefix[] = "_self_";
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (text == nullptr) PyErr_Clear();
    return text != nullptr && std::strncmp(text, kPrefix, sizeof(kPrefix) - 1) == 0;
  }

  bool AddIndex(PyObject* scalar) {
    PyObject* number = PyIndex_Check(scalar) ? PyNumber_Index(scalar) : nullptr;
    if (number == nullptr) {
      PyErr_Clear();
      return false;
    }
    owned_.push_back(number);
    AppendNumber('N', Py_TYPE(scalar));
    return Add(number, 0);
  }

  const tensorflow::Tensor* TensorOf(PyObject* object) {
    const tensorflow::Tensor* tensor = nullptr;
    if (!IsEagerTensor(object)) return nullptr;
    const InputState state =
        anywhere_ ? InspectAnywhere(EagerTensor_Handle(object), runtime_->host, &tensor, &device_)
                  : Inspect(EagerTensor_Handle(object), runtime_->host, &tensor);
    return state == InputState::kReady ? tensor : nullptr;
  }

  // Encodes the device of the tensor that `TensorOf` returned last.
  void AddDevice() {
    if (anywhere_) text_.Append(&device_, sizeof(device_));
  }

  bool AddTensor(PyObject* object) {
    const tensorflow::Tensor* tensor = TensorOf(object);
    // A trace depends on the resource behind a handle, which the handle does not describe. A
    // resource of an object is accepted, since the object's attributes describe it.
    if (tensor == nullptr) return false;
    if (IsHandleType(tensor->dtype()) && !(inside_ && tensor->dtype() == tensorflow::DT_RESOURCE)) {
      return false;
    }
    text_.push_back('T');
    text_.push_back(static_cast<char>(tensor->dtype()));
    AddDevice();
    AddShape(tensor->shape());
    if (only_tensors_) {
      size_t alias = 0;
      while (alias < objects_.size() && objects_[alias] != object) ++alias;
      text_.Append(&alias, sizeof(alias));
    }
    AddLeaf(tensor, object);
    return !with_attributes_ || AddAttributes(object);
  }

  // Encodes the attributes of a tensor. They may be flags or other tensors, such as Keras's masks.
  bool AddAttributes(PyObject* tensor) {
    PyObject* attributes = InstanceDictIfAny(tensor);
    if (attributes == nullptr) return true;
    if (++nested_ > kMostNested) return false;
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(attributes, &at, &name, &value);) {
      if (value == Py_None) continue;
      text_.push_back('@');
      if (!PyUnicode_Check(name) || !AddText(name)) return false;
      if (value != Py_True && !(IsEagerTensor(value) && AddTensor(value))) return false;
    }
    --nested_;
    return true;
  }

  template <typename Shape>
  void AddShape(const Shape& shape) {
    text_.push_back(static_cast<char>(shape.dims()));
    for (int i = 0; i < shape.dims(); ++i) {
      const int64_t side = shape.dim_size(i);
      text_.Append(&side, sizeof(side));
    }
  }

  // Owns the object, since another thread may change the list that it comes from.
  void AddLeaf(const tensorflow::Tensor* tensor, PyObject* object) {
    leaves_.push_back(tensor);
    objects_.push_back(Py_NewRef(object));
  }

  bool AddArray(PyObject* array) {
    if (PyUnicode_Check(array) || PyBytes_Check(array)) return false;  // a string
    if (anywhere_) return false;  // TensorFlow chooses the device of the tensor
    // Copy the array, as TensorFlow does for a function. A tensor that shares the memory of the
    // array could become a result or the value of a variable.
    if (PyObject* tensor = CopyOfArray(array, tensorflow::DT_INVALID, *runtime_)) {
      owned_.push_back(tensor);
      return AddTensor(tensor);
    }
    PyObject* copy = PyObject_CallMethodNoArgs(array, Known().copy);
    TFE_TensorHandle* handle = nullptr;
    if (copy != nullptr) {
      owned_.push_back(copy);
      handle = tensorflow::ConvertToEagerTensorUncached(tensorflow::wrap(runtime_->context), copy,
                                                        tensorflow::DT_INVALID, nullptr);
    }
    PyObject* tensor = handle == nullptr ? nullptr : EagerTensorFromHandle(handle);
    if (tensor != nullptr) owned_.push_back(tensor);
    if (tensor == nullptr || PyErr_Occurred()) {
      PyErr_Clear();  // TensorFlow will raise the proper error
      return false;
    }
    return AddTensor(tensor);
  }

  // Whether each read of a variable runs an op: it has no cached value and no caching device.
  static bool IsReadByOp(PyObject* variable) {
    for (PyObject* name : {Known().cached, Known().caching}) {
      PyObject* found = PyObject_GetAttr(variable, name);
      if (found == nullptr) PyErr_Clear();
      Py_XDECREF(found);
      if (found != Py_None) return false;
    }
    return true;
  }

  bool AddVariable(PyObject* variable) {
    PyObject* handle = PyObject_GetAttr(variable, Known().handle);
    PyObject* trainable = PyObject_GetAttr(variable, Known().trainable);
    if (handle != nullptr) owned_.push_back(handle);
    if (trainable != nullptr) owned_.push_back(trainable);
    if (handle == nullptr || trainable == nullptr) {
      PyErr_Clear();
      return false;
    }
    const tensorflow::Tensor* tensor = TensorOf(handle);
    if (tensor == nullptr || tensor->dtype() != tensorflow::DT_RESOURCE) return false;
    const auto& held = tensor->scalar<tensorflow::ResourceHandle>()().dtypes_and_shapes();
    if (held.size() != 1 || (only_tensors_ && IsHandleType(held[0].dtype))) return false;
    text_.push_back('V');
    text_.push_back(trainable == Py_True ? 't' : 'F');
    AddDevice();
    text_.push_back(static_cast<char>(held[0].dtype));
    AddShape(held[0].shape);
    // The static shape that Python sees. After `set_shape` it may be more specific.
    PyObject* shape = PyObject_GetAttr(variable, Known().static_shape);
    if (shape != nullptr) owned_.push_back(shape);
    if (shape == nullptr || Py_TYPE(shape) != Known().shape || !AddDims(shape, 0)) {
      PyErr_Clear();
      return false;
    }
    // One variable passed twice needs a different trace than two variables.
    size_t alias = 0;
    while (alias < leaves_.size() && leaves_[alias] != tensor) ++alias;
    text_.Append(&alias, sizeof(alias));
    if (only_tensors_) variables_.emplace_back(leaves_.size(), Py_NewRef(variable));
    AddLeaf(tensor, handle);
    return true;
  }

  bool AddIterator(PyObject* iterator) {
    PyObject* text = PyObject_CallOneArg(Known().describe_iterator, iterator);
    PyObject* handle = PyObject_GetAttr(iterator, Known().iterated);
    if (text != nullptr) owned_.push_back(text);
    if (handle != nullptr) owned_.push_back(handle);
    if (text == nullptr || handle == nullptr) {
      PyErr_Clear();
      return false;
    }
    const tensorflow::Tensor* tensor = TensorOf(handle);
    if (text == Py_None || tensor == nullptr) return false;
    text_.push_back('I');
    AddDevice();
    AddLeaf(tensor, handle);
    return AddText(text);
  }

  const Runtime* runtime_ = nullptr;
  bool only_tensors_ = false;
  bool anywhere_ = false;
  const tensorflow::Device* device_ = nullptr;  // null: the host
  bool with_attributes_ = false;
  int nested_ = 0;  // how deep attributes of tensors are nested
  PyTypeObject* identified_ = nullptr;
  bool inside_ = false;  // whether an object's attributes are being read
  Bytes text_;
  absl::InlinedVector<const tensorflow::Tensor*, 8> leaves_;
  absl::InlinedVector<PyObject*, 8> objects_;
  absl::InlinedVector<PyObject*, 8> owned_;
  absl::InlinedVector<PyObject*, 4> holders_;
  absl::InlinedVector<PyObject*, 4> identities_;
  absl::InlinedVector<std::pair<size_t, PyObject*>, 2> variables_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_SIGNATURE_H_
