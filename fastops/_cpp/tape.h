// Records of ops on TensorFlow's tapes, made without Python.
//
// The tapes are TensorFlow's own objects, of the class in its header tensorflow/c/eager/tape.h. So
// a tape keeps what it would keep, and everything else that reads or fills a tape works as ever.
// What differs is the backward function of a record, which holds a `TapeRecord` instead of a
// closure over Python objects.
#ifndef FASTOPS_CPP_TAPE_H_
#define FASTOPS_CPP_TAPE_H_

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compat.h"
#include "handle.h"
#include "runtime.h"

namespace fastops {

// An op as tapes record it: its name, and the inputs and outputs that its gradient does not need.
class RecordedOp {
 public:
  explicit RecordedOp(const std::string& name)
      : name_(name),
        unused_inputs_(OpGradientUnusedInputIndices(name)),
        unused_outputs_(OpGradientUnusedOutputIndices(name)) {}

  const std::string& name() const { return name_; }
  bool keeps_inputs() const { return !unused_inputs_ || !unused_inputs_->empty(); }
  bool keeps_outputs() const { return !unused_outputs_ || !unused_outputs_->empty(); }
  bool keeps_input(int i) const { return Keeps(unused_inputs_, i); }
  bool keeps_output(int i) const { return Keeps(unused_outputs_, i); }

 private:
  using Indices = decltype(OpGradientUnusedInputIndices(""));

  // An empty set stands for all indices.
  static bool Keeps(const Indices& unused, int i) {
    return !unused || (!unused->empty() && unused->find(i) == unused->end());
  }

  std::string name_;
  Indices unused_inputs_, unused_outputs_;
};

// The one object for an op. The GIL is held.
inline const RecordedOp* RecordedOpNamed(const std::string& name) {
  static auto* const ops = new std::unordered_map<std::string, RecordedOp>;
  return &ops->try_emplace(name, name).first->second;
}

// A tensor that only records keep: the output of an op of a replay, which Python has not seen. It
// is a Python object, so that records treat it like an EagerTensor, but it costs a third of one.
struct KeptValue {
  PyObject ob_base;
  int64_t id;  // by which tapes know it: negative, since EagerTensors have the others
  tensorflow::Tensor tensor;
  PyObject* wrapped;  // its EagerTensor, as soon as a gradient function has asked for it
};

inline const Runtime* kept_values_runtime = nullptr;

inline void FreeKeptValue(PyObject* object) {
  auto* value = reinterpret_cast<KeptValue*>(object);
  const int64_t id = value->id;
  Py_XDECREF(value->wrapped);
  value->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(object);
  PyObject_Free(object);
  Py_DECREF(type);
  TFE_Py_TapeSetDeleteTrace(id);  // as the end of an EagerTensor does
}

// Null with a Python exception.
inline PyTypeObject* MakeKeptValueType() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(FreeKeptValue)}, {}};
  static PyType_Spec spec = {"fastops.KeptValue", sizeof(KeptValue), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

inline bool NeedsHandleData(tensorflow::DataType dtype) {
  return dtype == tensorflow::DT_VARIANT || dtype == tensorflow::DT_RESOURCE;
}

// Whether a tensor may be kept. A tape holds the EagerTensors of handles, to make zeros like them.
inline bool CanKeep(const tensorflow::Tensor& tensor) { return !NeedsHandleData(tensor.dtype()); }

// A number that no tensor has. The GIL is held.
inline int64_t NewKeptId() {
  static int64_t last_id = -1;  // which stands for no tensor
  return --last_id;
}

// Returns a new reference, or null with a Python exception. The GIL is held.
inline PyObject* NewKeptValue(tensorflow::Tensor&& tensor, const Runtime* runtime) {
  static PyTypeObject* type = nullptr;
  if (type == nullptr && (type = MakeKeptValueType()) == nullptr) return nullptr;
  auto* value = PyObject_New(KeptValue, type);
  if (value == nullptr) return nullptr;
  kept_values_runtime = runtime;
  value->id = NewKeptId();
  new (&value->tensor) tensorflow::Tensor(std::move(tensor));
  value->wrapped = nullptr;
  return reinterpret_cast<PyObject*>(value);
}

// Null for an EagerTensor.
inline KeptValue* AsKeptValue(PyObject* object) {
  return IsEagerTensor(object) ? nullptr : reinterpret_cast<KeptValue*>(object);
}

inline int64_t TapeId(PyObject* object) {
  const KeptValue* value = AsKeptValue(object);
  return value == nullptr ? PyEagerTensor_ID(object) : value->id;
}

inline tensorflow::DataType TapeDtype(PyObject* object) {
  const KeptValue* value = AsKeptValue(object);
  return value == nullptr ? tensorflow::unwrap(EagerTensor_Handle(object))->DataType()
                          : value->tensor.dtype();
}

// Null for a tensor that is not on this machine, or not computed yet. Borrowed.
inline const tensorflow::Tensor* TapeTensorOf(PyObject* object) {
  const KeptValue* value = AsKeptValue(object);
  return value == nullptr ? LocalTensor(object) : &value->tensor;
}

// The device of such a tensor, or of the resource that it refers to. Null means the host, which has
// all kept values.
inline const tensorflow::Device* TapeDevice(PyObject* object) {
  const tensorflow::Tensor* tensor = nullptr;
  const tensorflow::Device* device = nullptr;
  if (AsKeptValue(object) == nullptr) {
    InspectAnywhere(EagerTensor_Handle(object), nullptr, &tensor, &device);
  }
  return device;
}

// The EagerTensor of a kept value, or the EagerTensor itself. Borrowed; null with a Python
// exception.
inline PyObject* Unkept(PyObject* object) {
  KeptValue* value = AsKeptValue(object);
  if (value == nullptr) return object;
  if (value->wrapped == nullptr) {
    tensorflow::Tensor tensor = value->tensor;
    value->wrapped =
        Wrap(std::move(tensor), kept_values_runtime->host, kept_values_runtime->context);
  }
  return value->wrapped;
}

// Makes a record that has room for some tensors. It belongs to nobody yet.
inline TapeRecord* AllocateRecord(const RecordedOp& op, PyObject* op_name, PyObject* attrs,
                                  int num_inputs, int num_outputs) {
  const int more = num_inputs + num_outputs - 1;
  auto* record = static_cast<TapeRecord*>(
      std::malloc(sizeof(TapeRecord) + (more > 0 ? more : 0) * sizeof(PyObject*)));
  record->references = 0;
  record->op = &op;
  record->op_name = Py_NewRef(op_name);
  record->attrs = Py_NewRef(attrs);
  record->num_inputs = num_inputs;
  record->num_outputs = num_outputs;
  record->described = true;
  return record;
}

// Makes the record of a call of an op.
inline TapeRecord* MakeRecord(const RecordedOp& op, PyObject* op_name, PyObject* attrs,
                              PyObject* const* inputs, int num_inputs, PyObject* const* outputs,
                              int num_outputs) {
  TapeRecord* record = AllocateRecord(op, op_name, attrs, num_inputs, num_outputs);
  record->keeps_inputs = op.keeps_inputs();
  record->keeps_outputs = op.keeps_outputs();
  for (int i = 0; i < num_inputs; ++i) {
    record->inputs()[i] = Py_NewRef(op.keeps_input(i) ? inputs[i] : Py_None);
  }
  for (int i = 0; i < num_outputs; ++i) {
    record->outputs()[i] = Py_NewRef(op.keeps_output(i) ? outputs[i] : Py_None);
  }
  return record;
}

// Makes the record of a call with a custom gradient. `kept` are the tensors that its gradient
// needs. `maker` makes the gradient function of them; `described` tells whether calls with the same
// maker have the same gradients.
inline TapeRecord* MakeCustomRecord(const RecordedOp& op, PyObject* op_name, PyObject* maker,
                                    bool described, PyObject* const* kept, int num_kept) {
  TapeRecord* record = AllocateRecord(op, op_name, maker, num_kept, 0);
  record->keeps_inputs = true;
  record->keeps_outputs = false;
  record->described = described;
  for (int i = 0; i < num_kept; ++i) record->inputs()[i] = Py_NewRef(kept[i]);
  return record;
}

// Puts EagerTensors in the places of kept values, for gradient functions. Returns false with a
// Python exception.
inline bool Unkeep(TapeRecord* record) {
  for (int i = 0; i < record->num_inputs + record->num_outputs; ++i) {
    PyObject* tensor = record->tensors[i];
    if (tensor == Py_None || IsEagerTensor(tensor)) continue;
    PyObject* wrapped = Unkept(tensor);
    if (wrapped == nullptr) return false;
    record->tensors[i] = Py_NewRef(wrapped);
    Py_DECREF(tensor);
  }
  return true;
}

// Gives up a reference to a record.
inline void DropRecord(TapeRecord* record) {
  if (--record->references != 0) return;
  for (int i = 0; i < record->num_inputs + record->num_outputs; ++i) Py_DECREF(record->tensors[i]);
  Py_DECREF(record->op_name);
  Py_DECREF(record->attrs);
  std::free(record);
}

inline GradientOfRecord gradient_of_record = nullptr;

// The backward function of a record. TensorFlow's own walk calls it with a tuple.
struct Backward {
  TapeRecord* record;

  PyObject* operator()(PyObject* grads, const std::vector<int64_t>& unneeded) const {
    if (PyErr_Occurred() || !Unkeep(record)) return nullptr;
    PyObject* made = gradient_of_record(record, PySequence_Fast_ITEMS(grads),
                                        static_cast<int>(PyTuple_GET_SIZE(grads)), unneeded);
    if (made == nullptr || PyTuple_CheckExact(made) || PyList_CheckExact(made)) return made;
    PyObject* list = PyList_New(1);
    if (list == nullptr) {
      Py_DECREF(made);
      return nullptr;
    }
    PyList_SET_ITEM(list, 0, made);
    return list;
  }
};

using OpsOfTape = tensorflow::eager::OpTape<PyBackwardFunction, PyTapeTensor>;
using UsageOfTape = std::unordered_map<int64_t, int64_t>;

// Adds a record with a number to a tape, as `RecordOperation` of TensorFlow's class does with the
// next number. That function copies its arguments.
inline void Insert(TapeOfOps* tape, int64_t number, const std::string& op_type,
                   std::vector<PyTapeTensor>&& outputs, std::vector<int64_t>&& inputs,
                   PyBackwardFunction* backward, void (*deleter)(PyBackwardFunction*)) {
  auto& usage = const_cast<UsageOfTape&>(Access(*tape, TapeUsage()));
  auto& producers = const_cast<tensorflow::eager::TensorTape&>(Access(*tape, TapeTensors()));
  auto& records = const_cast<OpsOfTape&>(Access(*tape, TapeOps()));
  for (const int64_t id : inputs) ++usage[id];
  for (const PyTapeTensor& output : outputs) {
    producers[output.GetID()] = number;
    usage[output.GetID()] = 1;
  }
  records.try_emplace(number, OpsOfTape::mapped_type{op_type, std::move(outputs), std::move(inputs),
                                                     backward, deleter});
}

// Adds the record of an op.
inline void InsertRecord(TapeOfOps* tape, int64_t number, const std::string& op_type,
                         std::vector<PyTapeTensor>&& outputs, std::vector<int64_t>&& inputs,
                         TapeRecord* record) {
  ++record->references;
  Insert(tape, number, op_type, std::move(outputs), std::move(inputs),
         new PyBackwardFunction(Backward{record}), [](PyBackwardFunction* backward) {
           DropRecord(backward->target<Backward>()->record);
           delete backward;
         });
}

// Whether nothing but tapes records in this thread. TensorFlow has to tell accumulators of ops.
inline bool OnlyTapesRecord() {
  const AccumulatorSet* accumulators = GetAccumulatorSet();
  return accumulators != nullptr && accumulators->empty() && GetTapeSet() != nullptr;
}

// Whether exactly one tape records in this thread, and can be used only once. Then no other tape
// can record what its gradient functions run on the values that its records keep.
inline bool LoneTapeRecords() {
  if (!OnlyTapesRecord()) return false;
  const auto& tapes = *GetTapeSet();
  return tapes.size() == 1 && !(*tapes.begin())->tape->IsPersistent();
}

// Records a call on all active tapes that one of its inputs concerns. All tensors are EagerTensors
// or kept values. `make` makes the record, which holds what its gradient needs. Returns false,
// having done nothing, if TensorFlow has to record the call.
template <typename Make>
inline bool RecordAs(const RecordedOp& op, PyObject* const* inputs, int num_inputs,
                     PyObject* const* outputs, int num_outputs, Make make) {
  if (!OnlyTapesRecord()) return false;
  absl::InlinedVector<int64_t, 8> ids(num_inputs);
  absl::InlinedVector<tensorflow::DataType, 8> dtypes(num_inputs);
  for (int i = 0; i < num_inputs; ++i) {
    ids[i] = TapeId(inputs[i]);
    dtypes[i] = TapeDtype(inputs[i]);
  }
  TapeRecord* record = nullptr;
  for (TFE_Py_Tape* object : *GetTapeSet()) {
    TapeOfOps* tape = object->tape;
    if (!tape->ShouldRecord(ids, dtypes)) continue;
    if (record == nullptr) {
      for (int i = 0; i < num_outputs; ++i) {
        if (TapeTensorOf(outputs[i]) == nullptr) return false;
      }
      record = make();
    }
    std::vector<PyTapeTensor> made;
    made.reserve(num_outputs);
    for (int i = 0; i < num_outputs; ++i) {
      const tensorflow::Tensor* tensor = TapeTensorOf(outputs[i]);
      const int64_t id = TapeId(outputs[i]);
      if (NeedsHandleData(tensor->dtype())) {
        made.emplace_back(id, tensor->dtype(), outputs[i]);
      } else {
        made.emplace_back(id, tensor->dtype(), tensor->shape());
      }
    }
    auto& next = const_cast<int64_t&>(Access(*tape, TapeNextOp()));
    InsertRecord(tape, next++, op.name(), std::move(made), {ids.begin(), ids.end()}, record);
  }
  return true;
}

// Records a call of an op.
inline bool RecordOnTapes(const RecordedOp& op, PyObject* op_name, PyObject* attrs,
                          PyObject* const* inputs, int num_inputs, PyObject* const* outputs,
                          int num_outputs) {
  return RecordAs(op, inputs, num_inputs, outputs, num_outputs, [&] {
    return MakeRecord(op, op_name, attrs, inputs, num_inputs, outputs, num_outputs);
  });
}

// Records a call with a custom gradient: see `MakeCustomRecord`.
inline bool RecordCustomOnTapes(const RecordedOp& op, PyObject* op_name, PyObject* maker,
                                bool described, PyObject* const* kept, int num_kept,
                                PyObject* const* inputs, int num_inputs, PyObject* const* outputs,
                                int num_outputs) {
  return RecordAs(op, inputs, num_inputs, outputs, num_outputs,
                  [&] { return MakeCustomRecord(op, op_name, maker, described, kept, num_kept); });
}

// The object with TensorFlow's functions for gradients. A program may register another.
inline const void* SpaceOfTensorFlow() { return py_vspace; }

}  // namespace fastops

#endif  // FASTOPS_CPP_TAPE_H_
