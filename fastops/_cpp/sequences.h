// Converts Python lists and tuples to tensors. The GIL is held.
//
// TensorFlow takes the shape and the dtype from the first element of each level, then converts all
// leaves to that dtype or to the requested one. The code here reads the leaves once, and converts
// them only if TensorFlow would accept all of them.
#ifndef FASTOPS_CPP_SEQUENCES_H_
#define FASTOPS_CPP_SEQUENCES_H_

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "arrays.h"

namespace fastops {

// A leaf: a Python number or string, a NumPy scalar, or an element of an array.
struct Leaf {
  enum LeafKind { kFloat, kDouble, kHalf, kInt, kBool, kNumpyBool, kText };
  LeafKind kind;
  union {
    double number;
    int64_t integer;
    PyObject* text;  // borrowed
  };
};

class Sequence {
 public:
  // Returns false if a list is not rectangular or has a leaf of an unsupported class.
  bool Read(PyObject* object) { return Add(object, 0) && Filled(); }

  // Makes a new EagerTensor. Its dtype is `hint`, or that of the leaves if `hint` is DT_INVALID.
  // Returns null without an exception if TensorFlow has to convert the value.
  PyObject* Convert(tensorflow::DataType hint, const Runtime& here) {
    if (hint == tensorflow::DT_INVALID) {
      hint = Inferred();
    } else if (!IsDirect(hint) && !leaves_.empty() && !CastsFrom(leaves_[0].kind)) {
      return nullptr;
    }
    if (hint == tensorflow::DT_INVALID) return nullptr;
    const bool text = hint == tensorflow::DT_STRING;
    if (!text && tensorflow::DataTypeSize(hint) == 0) return nullptr;
    tensorflow::Tensor tensor = NewTensor(hint, sizes_.data(), rank_);
    if (text) {
      auto* strings = tensor.flat<tensorflow::tstring>().data();
      for (const Leaf& leaf : leaves_) {
        if (leaf.kind != Leaf::kText || !AssignText(leaf.text, strings++)) return nullptr;
      }
    } else {
      const bool converted = WithTypeOf(hint, [&](auto type) {
        auto* out = static_cast<decltype(type)*>(tensor.data());
        for (const Leaf& leaf : leaves_) {
          if (!Store(leaf, out++)) return false;
        }
        return true;
      });
      if (!converted) return nullptr;
    }
    return Wrap(std::move(tensor), here.host, here.context);
  }

 private:
  static constexpr int64_t kLeaves = 1 << 19;

  bool Add(PyObject* object, int depth) {
    if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
      if (!Fits(depth, size)) return false;
      for (Py_ssize_t i = 0; i < size; ++i) {
        if (!Add(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return false;
      }
      return true;
    }
    if (IsArray(object)) return AddArray(object, depth);
    Leaf leaf;
    return Load(object, &leaf) && AddLeaf(leaf, depth);
  }

  // Adds an array within a list. It counts as a sequence of NumPy scalars.
  bool AddArray(PyObject* object, int depth) {
    ArrayView view;
    if (!ViewOf(object, &view, kLeaves) || view.rank == 0 || view.count == 0 || !view.contiguous) {
      return false;
    }
    for (int i = 0; i < view.rank; ++i) {
      if (!Fits(depth + i, view.sizes[i])) return false;
    }
    const char* data = view.data;
    for (int64_t i = 0; i < view.count; ++i, data += view.item) {
      Leaf leaf;
      if (!LoadNumber(view.dtype, data, &leaf) || !AddLeaf(leaf, depth + view.rank)) return false;
    }
    return true;
  }

  // Whether a sequence has the size of the first sequence on its level.
  bool Fits(int depth, int64_t size) {
    if (depth >= kArrayDimensions || (rank_known_ && depth >= rank_)) return false;
    if (depth < levels_) return sizes_[depth] == size;
    sizes_[levels_++] = size;
    return true;
  }

  bool AddLeaf(const Leaf& leaf, int depth) {
    if (!rank_known_) {
      rank_known_ = true;
      rank_ = depth;
    }
    if (depth != rank_ || static_cast<int64_t>(leaves_.size()) == kLeaves) return false;
    leaves_.push_back(leaf);
    return true;
  }

  bool Filled() {
    if (!rank_known_) {  // no leaves: the first empty level is the last one
      rank_ = levels_;
      return levels_ > 0;
    }
    return rank_ == levels_;
  }

  static bool Load(PyObject* object, Leaf* leaf) {
    if (PyFloat_CheckExact(object)) {
      leaf->kind = Leaf::kFloat;
      leaf->number = PyFloat_AS_DOUBLE(object);
      return true;
    }
    if (PyLong_CheckExact(object)) {
      int overflow = 0;
      leaf->kind = Leaf::kInt;
      leaf->integer = PyLong_AsLongLongAndOverflow(object, &overflow);
      return overflow == 0;
    }
    if (PyBool_Check(object)) {
      leaf->kind = Leaf::kBool;
      leaf->integer = object == Py_True;
      return true;
    }
    if (PyUnicode_CheckExact(object) || PyBytes_CheckExact(object)) {
      leaf->kind = Leaf::kText;
      leaf->text = object;
      return true;
    }
    const tensorflow::DataType dtype = ArrayDtype(object);
    return dtype != tensorflow::DT_INVALID &&
           LoadNumber(dtype, reinterpret_cast<const char*>(object) + sizeof(PyObject), leaf);
  }

  static bool LoadNumber(tensorflow::DataType dtype, const char* data, Leaf* leaf) {
    switch (dtype) {
      case tensorflow::DT_FLOAT:
        leaf->kind = Leaf::kFloat;
        break;
      case tensorflow::DT_DOUBLE:
        leaf->kind = Leaf::kDouble;
        break;
      case tensorflow::DT_HALF:
        leaf->kind = Leaf::kHalf;
        break;
      case tensorflow::DT_BOOL:
        leaf->kind = Leaf::kNumpyBool;
        leaf->integer = *data != 0;
        return true;
      default:
        leaf->kind = Leaf::kInt;
        if (!tensorflow::DataTypeIsInteger(dtype)) return false;
        if (dtype == tensorflow::DT_UINT64) {
          uint64_t value;
          std::memcpy(&value, data, sizeof(value));
          if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
        }
        return CastAll(dtype, data, tensorflow::DT_INT64, &leaf->integer, 1);
    }
    return CastAll(dtype, data, tensorflow::DT_DOUBLE, &leaf->number, 1);
  }

  // Whether TensorFlow converts the leaves to this dtype directly. For other dtypes it makes a
  // tensor first and casts it.
  static bool IsDirect(tensorflow::DataType dtype) {
    constexpr tensorflow::DataTypeSet kDirect =
        tensorflow::ToSet(tensorflow::DT_FLOAT) | tensorflow::ToSet(tensorflow::DT_DOUBLE) |
        tensorflow::ToSet(tensorflow::DT_HALF) | tensorflow::ToSet(tensorflow::DT_INT32) |
        tensorflow::ToSet(tensorflow::DT_INT64) | tensorflow::ToSet(tensorflow::DT_UINT64) |
        tensorflow::ToSet(tensorflow::DT_COMPLEX128) | tensorflow::ToSet(tensorflow::DT_STRING) |
        tensorflow::ToSet(tensorflow::DT_BOOL);
    return kDirect.Contains(dtype);
  }

  static bool CastsFrom(Leaf::LeafKind first) {
    return first == Leaf::kFloat || first == Leaf::kDouble || first == Leaf::kInt;
  }

  static bool IsFloat(const Leaf& leaf) { return leaf.kind <= Leaf::kHalf; }

  tensorflow::DataType Inferred() const {
    if (leaves_.empty()) return tensorflow::DT_FLOAT;
    switch (leaves_[0].kind) {
      case Leaf::kFloat:
        return tensorflow::DT_FLOAT;
      case Leaf::kDouble:
        return tensorflow::DT_DOUBLE;
      case Leaf::kHalf:
        return tensorflow::DT_HALF;
      case Leaf::kText:
        return tensorflow::DT_STRING;
      case Leaf::kBool:
      case Leaf::kNumpyBool:
        return tensorflow::DT_BOOL;
      case Leaf::kInt:
        break;
    }
    auto dtype = tensorflow::DT_INT32;
    for (const Leaf& leaf : leaves_) {
      if (IsFloat(leaf)) return tensorflow::DT_FLOAT;
      if (leaf.kind == Leaf::kText) return tensorflow::DT_INVALID;
      if (leaf.integer != static_cast<int32_t>(leaf.integer)) dtype = tensorflow::DT_INT64;
    }
    return dtype;
  }

  template <typename To>
  static bool Store(const Leaf& leaf, To* to) {
    if (leaf.kind == Leaf::kText) return false;
    if constexpr (std::is_same_v<To, bool>) {
      *to = leaf.integer;
      return leaf.kind == Leaf::kBool || leaf.kind == Leaf::kNumpyBool;
    } else {
      if (leaf.kind == Leaf::kNumpyBool) return false;
      if constexpr (std::is_integral_v<To>) {
        if (IsFloat(leaf)) return false;
        *to = static_cast<To>(leaf.integer);
        return static_cast<int64_t>(*to) == leaf.integer && (*to < 0) == (leaf.integer < 0);
      } else if constexpr (kIsComplex<To>) {
        return (IsFloat(leaf) || leaf.kind == Leaf::kInt) && StoreReal(leaf, to);
      } else {
        return StoreReal(leaf, to);
      }
    }
  }

  // Converts through double, as TensorFlow does.
  template <typename To>
  static bool StoreReal(const Leaf& leaf, To* to) {
    const double number = IsFloat(leaf) ? leaf.number : static_cast<double>(leaf.integer);
    if constexpr (std::is_same_v<To, float> || std::is_same_v<To, double>) {
      *to = static_cast<To>(number);
      return !std::isinf(*to) || std::isinf(number);
    } else if constexpr (kIsShort<To>) {
      const auto single = static_cast<float>(number);
      *to = static_cast<To>(single);
      return !std::isnan(number) && HasCome(number, *to) &&
             (IsFloat(leaf) || std::abs(single) <= 0x1p24f);
    } else {
      return Cast(number, to);
    }
  }

  absl::InlinedVector<Leaf, 32> leaves_;
  std::array<int64_t, kArrayDimensions> sizes_;
  int levels_ = 0;  // how many levels have a known size
  int rank_ = 0;
  bool rank_known_ = false;
};

// Converts a list, a tuple or a string to a new EagerTensor on the host, of dtype `hint` unless
// that is DT_INVALID. Returns null, with no exception, if TensorFlow has to convert the value.
inline PyObject* TensorOfSequence(PyObject* object, tensorflow::DataType hint,
                                  const Runtime& here) {
  Sequence sequence;
  return sequence.Read(object) ? sequence.Convert(hint, here) : nullptr;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_SEQUENCES_H_
