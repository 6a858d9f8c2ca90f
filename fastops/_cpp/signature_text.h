// Prints a signature as a call, for example (float32[2,3], training=True, axis=-1, <Dense object>).
#ifndef FASTOPS_CPP_SIGNATURE_TEXT_H_
#define FASTOPS_CPP_SIGNATURE_TEXT_H_

#include <Python.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime.h"
#include "signature.h"
#include "tensorflow/core/framework/types.h"

namespace fastops {

// Reads the bytes of a signature. They may be older than the objects that they name, so no address
// in them is followed. Any bytes can be read; for bytes that are no signature the text is empty.
class SignaturePrinter {
 public:
  // `aliases`: whether the signature tells which tensors are the same.
  SignaturePrinter(const char* bytes, size_t size, const Runtime& runtime, bool aliases)
      : at_(bytes), end_(bytes + size), runtime_(runtime), aliases_(aliases) {}

  std::string Print() {
    std::string made = "(";
    while (at_ != end_ && !failed_) {
      if (made.size() > 1) made += ", ";
      if (Skip(SignaturePart::kKeyword)) made += Text() + "=";
      made += Value();
    }
    return failed_ ? std::string() : made + ")";
  }

 private:
  static constexpr int kDeepest = 200;

  std::string Fail() {
    failed_ = true;
    return {};
  }

  template <typename Number>
  Number Take() {
    Number number{};
    if (failed_ || static_cast<size_t>(end_ - at_) < sizeof(number)) {
      failed_ = true;
      return number;
    }
    std::memcpy(&number, at_, sizeof(number));
    at_ += sizeof(number);
    return number;
  }

  bool Skip(char part) {
    if (failed_ || at_ == end_ || *at_ != part) return false;
    ++at_;
    return true;
  }

  std::string Text() {
    const auto size = Take<Py_ssize_t>();
    if (failed_ || size < 0 || size > end_ - at_) return Fail();
    std::string made(at_, size);
    at_ += size;
    return made;
  }

  std::string Value() {
    if (++depth_ > kDeepest) return Fail();
    std::string made = ValueOf(Take<char>());
    --depth_;
    return made;
  }

  std::string ValueOf(char part) {
    switch (part) {
      case SignaturePart::kNone:
        return "None";
      case SignaturePart::kTrue:
        return "True";
      case SignaturePart::kFalse:
        return "False";
      case SignaturePart::kInt:
        return absl::StrCat(Take<long long>());
      case SignaturePart::kFloat:
        return Float(Take<double>());
      case SignaturePart::kString:
        return Quoted(Text());
      case SignaturePart::kTuple:
        return Items("(", ")");
      case SignaturePart::kSequence:
        return Items("[", "]");
      case SignaturePart::kDict:
        return Dict();
      case SignaturePart::kDtype:
        return "tf." + Dtype(Take<long>());
      case SignaturePart::kShape:
        if (Skip(SignaturePart::kTuple)) return "TensorShape(" + Items("[", "]") + ")";
        return Skip(SignaturePart::kNone) ? "TensorShape(None)" : Fail();
      case SignaturePart::kIndex:
        Take<PyTypeObject*>();
        return Value();
      case SignaturePart::kEager:
        return Tensor();
      case SignaturePart::kVariable:
        return Variable();
      case SignaturePart::kIterator: {
        const std::string device = Device();
        ++num_leaves_;
        return "<iterator of " + Text() + device + ">";
      }
      case SignaturePart::kComposite:
        return Composite();
      case SignaturePart::kObject:
        return Object();
      case SignaturePart::kNamed:
        if (!Skip(SignaturePart::kIdentity)) return Fail();
        Take<PyTypeObject*>();
        return "<namedtuple " + (Skip(SignaturePart::kTuple) ? Items("(", ")") : Fail()) + ">";
      case SignaturePart::kScalar:
        return Take<PyTypeObject*>()->tp_name;
      case SignaturePart::kIdentity:
        return absl::StrFormat("<object at %p>", Take<const void*>());
      default:
        return Fail();
    }
  }

  static std::string Float(double number) {
    char* text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (text == nullptr) {
      PyErr_Clear();
      return "?";
    }
    std::string made = text;
    PyMem_Free(text);
    return made;
  }

  // A text as Python writes it.
  static std::string Quoted(const std::string& text) {
    PyObject* string = PyUnicode_DecodeUTF8(text.data(), text.size(), "replace");
    PyObject* shown = string == nullptr ? nullptr : PyObject_Repr(string);
    const char* bytes = shown == nullptr ? nullptr : PyUnicode_AsUTF8(shown);
    std::string made = bytes == nullptr ? "?" : bytes;
    if (bytes == nullptr) PyErr_Clear();
    Py_XDECREF(shown);
    Py_XDECREF(string);
    return made;
  }

  Py_ssize_t Count() {
    const auto count = Take<Py_ssize_t>();
    if (count < 0) failed_ = true;
    return count;
  }

  std::string Items(const char* begin, const char* end) {
    const Py_ssize_t count = Count();
    std::string made = begin;
    for (Py_ssize_t i = 0; i < count && !failed_; ++i) {
      if (i > 0) made += ", ";
      made += Value();
    }
    return made + (count == 1 && *begin == '(' ? "," : "") + end;
  }

  std::string Dict() {
    const Py_ssize_t count = Count();
    std::string made = "{";
    for (Py_ssize_t i = 0; i < count && !failed_; ++i) {
      if (i > 0) made += ", ";
      made += Quoted(Text()) + ": ";
      made += Value();
    }
    return made + "}";
  }

  // The name of a dtype in Python.
  static std::string Dtype(int number) {
    switch (number) {
      case tensorflow::DT_FLOAT:
        return "float32";
      case tensorflow::DT_DOUBLE:
        return "float64";
      case tensorflow::DT_HALF:
        return "float16";
      default:
        return tensorflow::DataTypeString(static_cast<tensorflow::DataType>(number));
    }
  }

  std::string Sizes() {
    const int rank = static_cast<unsigned char>(Take<char>());
    std::string made = "[";
    for (int i = 0; i < rank && !failed_; ++i) {
      const int64_t side = Take<int64_t>();
      absl::StrAppend(&made, i > 0 ? "," : "");
      if (side < 0) {  // any size: see `Signature::OfAnyBatch`
        made += "None";
      } else {
        absl::StrAppend(&made, side);
      }
    }
    return made + "]";
  }

  // Where a leaf is; empty for the host. A device that is gone has no name.
  std::string Device() {
    if (runtime_.only_host) return {};
    const auto* device = Take<const tensorflow::Device*>();
    if (device == nullptr) return {};
    if (runtime_.context != nullptr) {
      for (const tensorflow::Device* known : runtime_.context->ListLocalTfDevices()) {
        if (known != device) continue;
        const std::string& name = known->name();
        const size_t at = name.find("device:");
        return " on " + (at == std::string::npos ? name : name.substr(at + 7));
      }
    }
    return " on another device";
  }

  // Tells whether a leaf is an earlier one. Counts the leaf.
  std::string Alias() {
    const auto alias = Take<size_t>();
    const size_t number = num_leaves_++;
    return alias == number ? std::string() : absl::StrCat(" (same as leaf ", alias, ")");
  }

  std::string Tensor() {
    std::string made = Dtype(static_cast<unsigned char>(Take<char>()));
    const std::string device = Device();
    made += Sizes() + device;
    if (aliases_) {
      made += Alias();
    } else {
      ++num_leaves_;
    }
    std::string attributes;
    while (Skip(SignaturePart::kAttribute)) {
      attributes += attributes.empty() ? "" : ", ";
      attributes += Text() + "=";
      attributes += Value();
    }
    return attributes.empty() ? made : made + " {" + attributes + "}";
  }

  std::string Variable() {
    const bool trainable = Take<char>() == SignaturePart::kTrue;
    const std::string device = Device();
    std::string made = Dtype(static_cast<unsigned char>(Take<char>()));
    made += Sizes() + device;
    Value();  // the static shape, which seldom differs
    return absl::StrCat("<", trainable ? "" : "untrainable ", "variable ", made, ">", Alias());
  }

  // The class of a holder by its address, if it is among the known ones.
  static std::string ClassName(const PyObject* kind) {
    PyObject *known, *iterator;
    if (Known().composites != nullptr &&
        (iterator = PyObject_GetIter(Known().composites)) != nullptr) {
      std::string name;
      while ((known = PyIter_Next(iterator)) != nullptr) {
        if (known == kind) name = NameOf(known);
        Py_DECREF(known);
      }
      Py_DECREF(iterator);
      if (!name.empty()) return name;
    }
    PyErr_Clear();
    PyObject* value;
    if (Known().objects != nullptr) {
      for (Py_ssize_t at = 0; PyDict_Next(Known().objects, &at, &known, &value);) {
        if (known == kind) return NameOf(known);
      }
    }
    return "unknown";
  }

  static std::string NameOf(PyObject* kind) {
    const std::string name = reinterpret_cast<PyTypeObject*>(kind)->tp_name;
    return name.substr(name.rfind('.') + 1);
  }

  // Tells whether a holder is new, and otherwise its name. Counts the holder.
  bool IsNew(std::string* name) {
    const auto alias = Take<size_t>();
    if (failed_) return false;
    if (alias < holders_.size()) {
      *name = holders_[alias];
      return false;
    }
    *name = ClassName(Take<const PyObject*>());
    holders_.push_back(*name);
    return true;
  }

  std::string Composite() {
    std::string name;
    if (!IsNew(&name)) return "<the same " + name + ">";
    if (!Skip(SignaturePart::kDict)) return Fail();
    const Py_ssize_t count = Count();
    std::string made = name + "(";
    for (Py_ssize_t i = 0; i < count && !failed_; ++i) {
      if (i > 0) made += ", ";
      made += Text() + "=";
      made += Value();
    }
    return made + ")";
  }

  std::string Object() {
    std::string name;
    if (!IsNew(&name)) return "<the same " + name + " object>";
    while (Skip(SignaturePart::kMember)) {
      Text();
      Value();
    }
    return Skip(SignaturePart::kEnd) ? "<" + name + " object>" : Fail();
  }

  const char* at_;
  const char* const end_;
  const Runtime& runtime_;
  const bool aliases_;
  bool failed_ = false;
  int depth_ = 0;
  size_t num_leaves_ = 0;
  std::vector<std::string> holders_;  // their names
};

// Prints the bytes of a signature that was read under a policy; an empty text if they are none.
template <typename Policy>
std::string Print(const char* bytes, size_t size, const Runtime& runtime) {
  return SignaturePrinter(bytes, size, runtime, Policy::kTellsAliases).Print();
}

}  // namespace fastops

#endif  // FASTOPS_CPP_SIGNATURE_TEXT_H_
