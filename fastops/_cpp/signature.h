// Signature: the key of the arguments of a call. Calls with equal signatures share one trace or one
// recording. signature_text.h prints signatures.
#ifndef FASTOPS_CPP_SIGNATURE_H_
#define FASTOPS_CPP_SIGNATURE_H_

#include <Python.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "arrays.h"
#include "classes.h"
#include "dicts.h"
#include "handle.h"
#include "opdef.h"
#include "runtime.h"
#include "tensorflow/core/framework/resource_handle.h"

namespace fastops {

// How a signature takes the instances of a class that it does not know.
enum class ClassUse : char {
  kRefused,
  kIdentity,    // by identity
  kNamedTuple,  // as a tuple: the items are the fields
};

// The classes that signatures support, besides Python's own and EagerTensor. Set once, on import.
struct KnownClasses {
  PyTypeObject* variable = nullptr;
  PyTypeObject* array = nullptr;
  PyTypeObject* array_scalar = nullptr;
  PyTypeObject* dtype = nullptr;
  PyTypeObject* iterator = nullptr;
  PyTypeObject* lazy_iterator = nullptr;  // the base of iterators that make their resource late
  PyTypeObject* shape = nullptr;
  PyObject* composites = nullptr;  // a frozenset of classes defined by their attributes alone
  PyObject* scalars = nullptr;     // a frozenset of classes of Python and NumPy that name dtypes
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
  // Finds out how instances of a class are taken. Sets no exception.
  ClassUse (*use_of)(PyTypeObject*) = nullptr;
  // A tuple of names of attributes that tell `tf.function` how to take an instance.
  PyObject* tracing_names = nullptr;
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

// The parts of a signature. Each part begins with one of these bytes. What follows is in the
// comments: numbers as the machine stores them, and texts as their size and their bytes.
struct SignaturePart {
  enum Byte : char {
    kNone = 'n',
    kTrue = 't',
    kFalse = 'F',
    kInt = 'i',        // a long long
    kFloat = 'f',      // a double
    kString = 's',     // a text
    kTuple = '(',      // the number of items, items
    kSequence = '[',   // a list: the number of items, items
    kNamed = 'U',      // a namedtuple: kIdentity and its class, a tuple
    kDict = '{',       // the number of items; for each one a text and a part
    kDtype = 'd',      // a long: TensorFlow's number
    kScalar = 'c',     // a class of Python or NumPy that names a dtype: its address
    kShape = 'h',      // a tuple of sizes, or None
    kIndex = 'N',      // an integer of NumPy: its class, an int
    kEager = 'T',      // a tensor: dtype, device, sizes, alias; then its attributes
    kAttribute = '@',  // of a tensor: a text; True or a tensor
    kVariable = 'V',   // kTrue if it is trainable, device, dtype, sizes, a shape, alias
    kIterator = 'I',   // device, a text
    kComposite = 'C',  // alias; if it is new: its class, a dict of attributes
    kObject = 'O',     // alias; if it is new: its class, its members, kEnd
    kMember = '.',     // of an object: a text and a part
    kEnd = ';',
    kIdentity = 'K',  // an address
    kKeyword = '=',   // a text: the name of the argument that follows
  };
};

// Policies: what a signature takes beside Python's values (None, bools, ints, floats, strings, and
// lists, tuples and dicts of them), dtypes, tensors and variables. All other arguments are refused.
//
// Tensors and the handles of variables are leaves: they are passed to the trace or to the replay,
// and the signature has their dtypes and shapes. All else is part of the signature by its value.

// For calls of traced functions. A leaf is what TensorFlow passes to a trace.
struct OfTraces {
  // Arrays and scalars of NumPy are leaves, as tensors with copies of their elements.
  static constexpr bool kTakesArrays = true;
  // Iterators of datasets are leaves, as their handles.
  static constexpr bool kTakesIterators = true;
  // Opens composites and known objects: the tensors in them are leaves. Also takes shapes, and
  // classes of scalars, which are never freed.
  static constexpr bool kOpensObjects = false;
  // Tells which tensors are the same object. (Of variables, all policies tell it.)
  static constexpr bool kTellsAliases = false;
  // Refuses variables whose reads do not all run an op, and variables of handles. Keeps the others
  // for `variable`.
  static constexpr bool kReadsVariables = false;
  // Tells the attributes of tensors: flags, and other tensors, which are leaves.
  static constexpr bool kTellsAttributes = false;
  // Takes instances of one class by identity: their address is part of the signature.
  static constexpr bool kTakesIdentities = false;
  // Takes all objects by identity that `tf.function` takes by identity, and namedtuples. The
  // classes of namedtuples are taken by identity.
  static constexpr bool kTakesObjects = true;
};

// For calls of functions that are recorded.
struct OfRecordings {
  static constexpr bool kTakesArrays = false;
  static constexpr bool kTakesIterators = false;
  static constexpr bool kOpensObjects = true;
  static constexpr bool kTellsAliases = true;
  static constexpr bool kReadsVariables = true;
  static constexpr bool kTellsAttributes = false;
  static constexpr bool kTakesIdentities = false;
  static constexpr bool kTakesObjects = false;
};

// For calls of methods that are recorded. The object itself is not among the arguments.
struct OfMethods : OfRecordings {
  static constexpr bool kTellsAttributes = true;
  static constexpr bool kTakesIdentities = true;
};

// Encodes the arguments of a call as bytes, in the order of the arguments, and lists the leaves.
// Tensors and variables may be on any local device; unless the host is the only one, the signature
// tells the device.
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

  // Reads the arguments of a vectorcall. Returns false, with no exception set, if the policy
  // refuses one of them. TensorFlow then has to run the call. `identified`: the class whose
  // instances are taken by identity, or null.
  template <typename Policy>
  bool Read(const Runtime& runtime, PyObject* const* args, Py_ssize_t positional,
            PyObject* keywords, PyTypeObject* identified) {
    runtime_ = &runtime;
    anywhere_ = !runtime.only_host;
    identified_ = identified;
    for (Py_ssize_t i = 0; i < positional; ++i) {
      if (!Add<Policy>(args[i], 0)) return false;
    }
    if (keywords == nullptr) return true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i) {
      text_.push_back(SignaturePart::kKeyword);
      if (!AddText(PyTuple_GET_ITEM(keywords, i)) || !Add<Policy>(args[positional + i], 0)) {
        return false;
      }
    }
    return true;
  }

  // Appends a leaf to a signature whose bytes are not used, since its caller has a key of its own.
  // `object` is the EagerTensor, or None if the replay does not need it.
  void Append(const tensorflow::Tensor* tensor, PyObject* object) { AddLeaf(tensor, object); }

  bool Is(const char* text, size_t size) const {
    return size == text_.size() && std::memcmp(text, text_.data(), size) == 0;
  }

  const char* data() const { return text_.data(); }
  size_t size() const { return text_.size(); }
  // The bytes of all calls that differ from this one only in the first sizes of their tensors.
  // Empty if no tensor has sizes. They are the bytes of no signature: no size is negative.
  std::string OfAnyBatch() const {
    constexpr int64_t kAny = -1;
    std::string text;
    if (firsts_.empty()) return text;
    text.assign(text_.data(), text_.size());
    for (size_t first : firsts_) std::memcpy(text.data() + first, &kAny, sizeof(kAny));
    return text;
  }
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
  // The instances that were taken by identity.
  size_t num_identities() const { return identities_.size(); }
  PyObject* identity(size_t i) const { return identities_[i]; }
  // The composites and known objects among the arguments, nested ones included.
  size_t num_holders() const { return holders_.size(); }
  PyObject* holder(size_t i) const { return holders_[i]; }

 private:
  static constexpr int kDeepest = 32;
  static constexpr int kMostNested = 4;

  template <typename Number>
  void AppendNumber(SignaturePart::Byte part, Number number) {
    text_.push_back(part);
    text_.Append(&number, sizeof(number));
  }

  template <typename Policy>
  bool Add(PyObject* value, int depth) {
    PyTypeObject* kind = Py_TYPE(value);
    const KnownClasses& known = Known();
    if (IsEagerTensor(value)) return AddTensor<Policy>(value);
    if (kind == &PyFloat_Type) {
      AppendNumber(SignaturePart::kFloat, PyFloat_AS_DOUBLE(value));
      return true;
    }
    if (kind == &PyLong_Type) return AddInt(value);
    if (kind == &PyBool_Type) {
      text_.push_back(value == Py_True ? SignaturePart::kTrue : SignaturePart::kFalse);
      return true;
    }
    if (value == Py_None) {
      text_.push_back(SignaturePart::kNone);
      return true;
    }
    if (kind == &PyUnicode_Type) {
      text_.push_back(SignaturePart::kString);
      return AddText(value);
    }
    if (kind == &PyTuple_Type || kind == &PyList_Type) {
      if (depth == kDeepest) return false;
      AppendNumber(kind == &PyTuple_Type ? SignaturePart::kTuple : SignaturePart::kSequence,
                   Py_SIZE(value));
      for (Py_ssize_t i = 0; i < Py_SIZE(value); ++i) {
        if (!Add<Policy>(PySequence_Fast_GET_ITEM(value, i), depth + 1)) return false;
      }
      return true;
    }
    if (kind == &PyDict_Type) {
      if (depth == kDeepest) return false;
      AppendNumber(SignaturePart::kDict, PyDict_GET_SIZE(value));
      PyObject *name, *item;
      for (Py_ssize_t at = 0; PyDict_Next(value, &at, &name, &item);) {
        if (Py_TYPE(name) != &PyUnicode_Type || !AddText(name) || !Add<Policy>(item, depth + 1)) {
          return false;
        }
      }
      return true;
    }
    if (PyType_IsSubtype(kind, known.dtype)) return AddDtype(value);
    if constexpr (Policy::kOpensObjects) {
      if (kind == known.shape) return AddDims<Policy>(value, depth);
      if (kind == &PyType_Type && PySet_Contains(known.scalars, value) == 1) {
        AppendNumber(SignaturePart::kScalar, value);
        return true;
      }
    }
    if constexpr (Policy::kTakesIdentities) {
      if (kind == identified_) return AddIdentity(value);
    }
    if (kind == known.variable) return AddVariable<Policy>(value);
    if constexpr (Policy::kTakesIterators) {
      if (kind == known.iterator ||
          (known.lazy_iterator != nullptr && kind->tp_base == known.lazy_iterator)) {
        return AddIterator(value);
      }
    }
    if constexpr (Policy::kTakesArrays) {
      if (kind == known.array || PyType_IsSubtype(kind, known.array_scalar)) {
        return AddArray<Policy>(value);
      }
    }
    if constexpr (Policy::kOpensObjects) {
      if (inside_ && PyType_IsSubtype(kind, known.array_scalar)) return AddIndex(value);
      return AddComposite<Policy>(value, depth) || AddObject<Policy>(value, depth);
    }
    if constexpr (Policy::kTakesObjects) {
      const ClassUse use = UseOf(kind);
      if (use == ClassUse::kIdentity) return !HasTracingName(value) && AddIdentity(value);
      if (use == ClassUse::kNamedTuple && depth < kDeepest) return AddNamed<Policy>(value, depth);
    }
    return false;
  }

  // Caches `use_of` by class. A class that has changed has another version.
  static ClassUse UseOf(PyTypeObject* kind) {
    struct Finding {
      PyTypeObject* kind;
      unsigned int version;
      ClassUse use;
    };
    static constexpr size_t kFindings = 512;
    static Finding findings[kFindings];
    Finding& finding = findings[(reinterpret_cast<size_t>(kind) >> 4) % kFindings];
    const unsigned int version = ClassVersion(kind);
    if (version != 0 && finding.kind == kind && finding.version == version) return finding.use;
    const ClassUse use = Known().use_of(kind);  // looks up attributes, which assigns a version
    finding = {kind, ClassVersion(kind), use};
    return use;
  }

  // Whether an instance has an attribute of its own that tells `tf.function` how to take it. The
  // class has none.
  static bool HasTracingName(PyObject* value) {
    PyObject* attributes = InstanceDictIfAny(value);
    if (attributes == nullptr) return false;
    PyObject* names = Known().tracing_names;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      const int has = PyDict_Contains(attributes, PyTuple_GET_ITEM(names, i));
      if (has < 0) PyErr_Clear();
      if (has != 0) return true;
    }
    return false;
  }

  template <typename Policy>
  bool AddNamed(PyObject* value, int depth) {
    text_.push_back(SignaturePart::kNamed);
    AddIdentity(reinterpret_cast<PyObject*>(Py_TYPE(value)));
    AppendNumber(SignaturePart::kTuple, PyTuple_GET_SIZE(value));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      if (!Add<Policy>(PyTuple_GET_ITEM(value, i), depth + 1)) return false;
    }
    return true;
  }

  bool AddInt(PyObject* value) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    AppendNumber(SignaturePart::kInt, number);
    return true;
  }

  bool AddIdentity(PyObject* value) {
    AppendNumber(SignaturePart::kIdentity, value);
    identities_.push_back(value);
    owned_.push_back(Py_NewRef(value));
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
        AppendNumber(SignaturePart::kDtype, number);
        return true;
      }
    }
    PyObject* number = PyObject_GetAttr(dtype, Known().number);
    const long code = number == nullptr ? -1 : PyLong_AsLong(number);
    Py_XDECREF(number);
    PyErr_Clear();
    // A dtype of a handle may carry more than its number.
    if (code <= 0 || IsHandleType(static_cast<tensorflow::DataType>(code))) return false;
    if (known.size() < known.capacity()) known.emplace_back(Py_NewRef(dtype), code);
    AppendNumber(SignaturePart::kDtype, code);
    return true;
  }

  template <typename Policy>
  bool AddDims(PyObject* shape, int depth) {
    PyObject* dims = PyObject_GetAttr(shape, Known().dims);
    if (dims == nullptr) {
      PyErr_Clear();
      return false;
    }
    owned_.push_back(dims);
    text_.push_back(SignaturePart::kShape);
    return Add<Policy>(dims, depth);
  }

  template <typename Policy>
  bool AddComposite(PyObject* value, int depth) {
    auto* kind = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (PySet_Contains(Known().composites, kind) != 1) {
      PyErr_Clear();  // the class is not hashable
      return false;
    }
    if (!IsNew(SignaturePart::kComposite, value)) return true;
    PyObject* attributes = PyObject_GenericGetDict(value, nullptr);
    if (attributes == nullptr) {
      PyErr_Clear();
      return false;
    }
    owned_.push_back(attributes);
    text_.Append(&kind, sizeof(kind));
    return Add<Policy>(attributes, depth);
  }

  // Whether a composite or an object appears for the first time. Encodes its number.
  bool IsNew(SignaturePart::Byte part, PyObject* holder) {
    size_t alias = 0;
    while (alias < holders_.size() && holders_[alias] != holder) ++alias;
    AppendNumber(part, alias);
    if (alias < holders_.size()) return false;
    holders_.push_back(holder);
    owned_.push_back(Py_NewRef(holder));
    return true;
  }

  // Encodes the attributes of an object that its methods read. Tensors among them become leaves.
  // The call may change the attributes, so the values that were read are owned.
  template <typename Policy>
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
    if (!IsNew(SignaturePart::kObject, value)) return true;
    text_.Append(&kind, sizeof(kind));
    const bool outside = !inside_;
    inside_ = true;
    PyObject *name, *item;
    for (Py_ssize_t at = 0; PyDict_Next(attributes, &at, &name, &item);) {
      if (IsBookkeeping(name)) continue;
      if (PySet_GET_SIZE(unasked) != 0 && PySet_Contains(unasked, name) == 1) continue;
      owned_.push_back(Py_NewRef(item));
      text_.push_back(SignaturePart::kMember);
      if (Py_TYPE(name) != &PyUnicode_Type || !AddText(name) || !Add<Policy>(item, depth + 1)) {
        return false;
      }
    }
    text_.push_back(SignaturePart::kEnd);
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
    AppendNumber(SignaturePart::kIndex, Py_TYPE(scalar));
    return AddInt(number);
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

  template <typename Policy>
  bool AddTensor(PyObject* object) {
    const tensorflow::Tensor* tensor = TensorOf(object);
    // A trace depends on the resource behind a handle, which the handle does not describe. A
    // resource of an object is accepted, since the object's attributes describe it.
    if (tensor == nullptr) return false;
    if (IsHandleType(tensor->dtype()) && !(inside_ && tensor->dtype() == tensorflow::DT_RESOURCE)) {
      return false;
    }
    text_.push_back(SignaturePart::kEager);
    text_.push_back(static_cast<char>(tensor->dtype()));
    AddDevice();
    if (tensor->dims() > 0) firsts_.push_back(text_.size() + 1);  // after the number of sizes
    AddShape(tensor->shape());
    if constexpr (Policy::kTellsAliases) {
      size_t alias = 0;
      while (alias < objects_.size() && objects_[alias] != object) ++alias;
      text_.Append(&alias, sizeof(alias));
    }
    AddLeaf(tensor, object);
    if constexpr (Policy::kTellsAttributes) return AddAttributes<Policy>(object);
    return true;
  }

  // Encodes the attributes of a tensor. They may be flags or other tensors, such as Keras's masks.
  template <typename Policy>
  bool AddAttributes(PyObject* tensor) {
    PyObject* attributes = InstanceDictIfAny(tensor);
    if (attributes == nullptr) return true;
    if (++nested_ > kMostNested) return false;
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(attributes, &at, &name, &value);) {
      if (value == Py_None) continue;
      text_.push_back(SignaturePart::kAttribute);
      if (!PyUnicode_Check(name) || !AddText(name)) return false;
      if (value == Py_True) {
        text_.push_back(SignaturePart::kTrue);
      } else if (!IsEagerTensor(value) || !AddTensor<Policy>(value)) {
        return false;
      }
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

  template <typename Policy>
  bool AddArray(PyObject* array) {
    if (PyUnicode_Check(array) || PyBytes_Check(array)) return false;  // a string
    if (anywhere_) return false;  // TensorFlow chooses the device of the tensor
    // Copy the array, as TensorFlow does for a function. A tensor that shares the memory of the
    // array could become a result or the value of a variable.
    if (PyObject* tensor = CopyOfArray(array, tensorflow::DT_INVALID, *runtime_, kCopiedBytes)) {
      owned_.push_back(tensor);
      return AddTensor<Policy>(tensor);
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
    return AddTensor<Policy>(tensor);
  }

  // Whether each read of a variable runs an op: it has no cached value and no caching device.
  static bool IsReadByOp(PyObject* variable) {
    for (PyObject* name : {Known().cached, Known().caching}) {
      PyObject* attribute = PyObject_GetAttr(variable, name);
      if (attribute == nullptr) PyErr_Clear();
      Py_XDECREF(attribute);
      if (attribute != Py_None) return false;
    }
    return true;
  }

  template <typename Policy>
  bool AddVariable(PyObject* variable) {
    if constexpr (Policy::kReadsVariables) {
      if (!IsReadByOp(variable)) return false;
    }
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
    if (held.size() != 1 || (Policy::kReadsVariables && IsHandleType(held[0].dtype))) return false;
    text_.push_back(SignaturePart::kVariable);
    text_.push_back(trainable == Py_True ? SignaturePart::kTrue : SignaturePart::kFalse);
    AddDevice();
    text_.push_back(static_cast<char>(held[0].dtype));
    AddShape(held[0].shape);
    // The static shape that Python sees. After `set_shape` it may be more specific.
    PyObject* shape = PyObject_GetAttr(variable, Known().static_shape);
    if (shape != nullptr) owned_.push_back(shape);
    if (shape == nullptr || Py_TYPE(shape) != Known().shape || !AddDims<Policy>(shape, 0)) {
      PyErr_Clear();
      return false;
    }
    // One variable passed twice needs a different trace than two variables.
    size_t alias = 0;
    while (alias < leaves_.size() && leaves_[alias] != tensor) ++alias;
    text_.Append(&alias, sizeof(alias));
    variables_.emplace_back(leaves_.size(), Py_NewRef(variable));
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
    text_.push_back(SignaturePart::kIterator);
    AddDevice();
    AddLeaf(tensor, handle);
    return AddText(text);
  }

  const Runtime* runtime_ = nullptr;
  bool anywhere_ = false;                       // whether the host is not the only device
  const tensorflow::Device* device_ = nullptr;  // null: the host
  int nested_ = 0;                              // how deep attributes of tensors are nested
  PyTypeObject* identified_ = nullptr;
  bool inside_ = false;  // whether an object's attributes are being read
  Bytes text_;
  absl::InlinedVector<size_t, 8> firsts_;  // where in `text_` the first size of each tensor is
  absl::InlinedVector<const tensorflow::Tensor*, 8> leaves_;
  absl::InlinedVector<PyObject*, 8> objects_;
  absl::InlinedVector<PyObject*, 8> owned_;
  absl::InlinedVector<PyObject*, 4> holders_;
  absl::InlinedVector<PyObject*, 4> identities_;
  absl::InlinedVector<std::pair<size_t, PyObject*>, 2> variables_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_SIGNATURE_H_
