// What a walk over a tape depends on: its description, by which equal walks are found.
#ifndef FASTOPS_CPP_WALK_H_
#define FASTOPS_CPP_WALK_H_

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "number_table.h"
#include "recorded_call.h"
#include "tape.h"

namespace fastops {

// What a walk over a tape depends on, except for the values of tensors: the records that lead from
// the targets to the sources, how they are connected, and the dtypes and shapes of the tensors that
// they keep. Walks with equal keys call the same functions in the same order.
class WalkShape {
 public:
  // A tensor that a record keeps, each of them once: an EagerTensor or a kept value, or a tensor of
  // the record of a call.
  struct Kept {
    PyObject* object;  // null for a tensor of a call
    CallRecord* call;
    size_t number;
  };

  // Returns false for a walk that this class cannot describe: it passes more than `most` ops,
  // TensorFlow has made some of them, some are not `described`, or a tensor is not on this machine.
  // It also returns false for several targets if there are records of calls: the order of the walk
  // is then that of numbers which only the records of ops have.
  bool Read(PyObject* object, const std::vector<PyObject*>& targets,
            const std::vector<PyObject*>& sources, size_t most) {
    const TapeOfOps& tape = TapeOf(object);
    const auto& producers = Access(tape, TapeTensors());
    const auto& records = Access(tape, TapeOps());
    size_t num_ops = 0;
    Tables& tables = OfThisThread();
    tables.Clear();
    absl::InlinedVector<int64_t, 32> order;  // the numbers of the records, as they are visited
    absl::InlinedVector<int64_t, 32> pending;
    key_.reserve(256);
    for (PyObject* target : targets) {
      const int64_t id = PyEagerTensor_ID(target);
      Add(Number(&tables, id).first);
      pending.push_back(id);
    }
    while (!pending.empty()) {
      const auto producer = producers.find(pending.back());
      pending.pop_back();
      if (producer == producers.end() || producer->second == -1) continue;
      const auto found = records.find(producer->second);
      if (found == records.end()) continue;
      const auto [record_slot, is_new] = tables.records.Add(found->first, 0);
      if (!is_new && record_slot->value == kVisited) continue;
      record_slot->value = kVisited;
      const auto& entry = found->second;
      const auto* backward = entry.backward_function->template target<Backward>();
      CallRecord* call = nullptr;
      if (backward == nullptr) {
        call = AsCallRecord(*entry.backward_function);
        if (call == nullptr || targets.size() != 1) return false;
        ++num_calls_;
        num_ops += call->reached().steps.size();
        Add(reinterpret_cast<int64_t>(call->kind()));
        key_.append(call->reached().watched);
      } else {
        const TapeRecord& record = *backward->record;
        if (!record.described) return false;
        ++num_ops;
        Add(reinterpret_cast<int64_t>(record.op));
        Add(reinterpret_cast<int64_t>(record.attrs));
      }
      if (num_ops > most) return false;
      Add(entry.input_tensor_id.size());
      Add(entry.output_tensor_info.size());
      for (const int64_t id : entry.input_tensor_id) {
        const auto [number, slot] = Number(&tables, id);
        Add(number);
        if (slot->flag) continue;  // another record uses it, too
        slot->flag = true;
        const auto from = producers.find(id);
        const bool watched = from != producers.end();
        Add(watched);
        if (!watched) continue;
        pending.push_back(id);
        tables.records.Add(from->second, 0).first->flag = true;
      }
      for (const PyTapeTensor& output : entry.output_tensor_info) {
        Add(Number(&tables, output.GetID()).first);
        Add(output.GetDType());
        if (output.shape() == nullptr) return false;
        AddShape(*output.shape());
      }
      if (call == nullptr ? !AddTensors(&tables, *backward->record) : !AddTensors(&tables, call)) {
        return false;
      }
      read_.push_back(&entry);
      order.push_back(found->first);
    }
    if (targets.size() > 1) AddFirst(&tables, order);
    for (PyObject* source : sources) Add(Number(&tables, PyEagerTensor_ID(source)).first);
    return true;
  }

  const char* data() const { return key_.data(); }
  size_t size() const { return key_.size(); }

  // Adds tensors on which the walk depends besides those of the records, as the gradients of the
  // targets are. Returns false if one is not on this machine.
  bool AddMore(const std::vector<PyObject*>& tensors) {
    for (PyObject* tensor : tensors) {
      const tensorflow::Tensor* local = TapeTensorOf(tensor);
      if (local == nullptr) return false;
      AddKind(tensor, *local);
      tensors_.push_back({tensor, nullptr, 0});
    }
    return true;
  }

  // The tensors that the records keep, each of them once, and the added ones.
  size_t num_tensors() const { return tensors_.size(); }
  bool IsObject(size_t i) const {
    return tensors_[i].call == nullptr && IsEagerTensor(tensors_[i].object);
  }
  const tensorflow::Tensor* TensorAt(size_t i) const {
    const Kept& kept = tensors_[i];
    return kept.call == nullptr ? TapeTensorOf(kept.object) : kept.call->TensorAt(kept.number);
  }
  // Its EagerTensor. Borrowed; null with a Python exception.
  PyObject* ObjectAt(size_t i) const {
    const Kept& kept = tensors_[i];
    PyObject* object = kept.call == nullptr ? kept.object : kept.call->ObjectAt(kept.number);
    return object == nullptr ? nullptr : Unkept(object);
  }
  size_t num_bytes() const { return num_bytes_; }

  // Appends the attributes of each recorded op (the maker, if it has a custom gradient) and its
  // name, and the kinds of calls. Borrowed.
  size_t num_records() const { return read_.size(); }
  size_t num_calls() const { return num_calls_; }
  void Describe(std::vector<PyObject*>* attrs, std::vector<PyObject*>* op_names,
                std::vector<PyObject*>* kinds) const {
    for (const Entry* entry : read_) {
      if (const CallRecord* call = AsCallRecord(*entry->backward_function)) {
        kinds->push_back(call->kind());
        for (const int i : call->reached().steps) {
          attrs->push_back(call->replay().steps[i].attrs);
          op_names->push_back(call->replay().steps[i].name);
        }
      } else {
        const TapeRecord& record = *entry->backward_function->template target<Backward>()->record;
        attrs->push_back(record.attrs);
        op_names->push_back(record.op_name);
      }
    }
  }

 private:
  using Entry = OpsOfTape::mapped_type;
  static constexpr int64_t kVisited = 1;

  struct Tables {
    NumberTable tensors;  // by TensorFlow's numbers; the flag: a record uses it
    NumberTable records;  // by their numbers; the flag: a record uses its outputs
    NumberTable objects;  // their indexes in `tensors_`

    void Clear() {
      tensors.Clear();
      records.Clear();
      objects.Clear();
    }
  };
  // No Python runs while a walk is read, so one set of tables is enough.
  static Tables& OfThisThread() {
    static thread_local Tables tables;
    return tables;
  }

  // Most numbers are small: they take one byte.
  void Add(int64_t number) {
    if (number >= 0 && number < 0xff) {
      key_.push_back(static_cast<char>(number));
      return;
    }
    key_.push_back(static_cast<char>(0xff));
    key_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }

  void AddShape(const tensorflow::TensorShape& shape) {
    const int dims = shape.dims();
    Add(dims);
    for (int i = 0; i < dims; ++i) Add(shape.dim_size(i));
  }

  // Adds the records that wait for no gradients, in the order in which a walk takes them. That is
  // the order in a hash table of TensorFlow's with the numbers of all records. A table of the same
  // type, to which the same numbers are added in the same order, has the same order.
  template <typename Numbers>
  void AddFirst(Tables* tables, const Numbers& order) {
    const auto first = [&](int64_t number) { return !tables->records.Find(number)->flag; };
    if (std::count_if(order.begin(), order.end(), first) < 2) return;
    std::unordered_map<int64_t, size_t> table;
    for (size_t i = 0; i < order.size(); ++i) table.emplace(order[i], i);
    for (const auto& [number, i] : table) {
      if (first(number)) Add(i);
    }
  }

  // Numbers the tensors in the order in which they are met.
  std::pair<int64_t, NumberTable::Slot*> Number(Tables* tables, int64_t id) {
    const auto [slot, is_new] = tables->tensors.Add(id, num_numbers_);
    num_numbers_ += is_new;
    return {slot->value, slot};
  }

  // Adds the device, dtype and shape of a tensor, and those of the resource that a handle refers
  // to.
  void AddKind(PyObject* object, const tensorflow::Tensor& tensor) {
    Add(reinterpret_cast<int64_t>(TapeDevice(object)));
    Add(tensor.dtype());
    AddShape(tensor.shape());
    if (tensor.dtype() != tensorflow::DT_RESOURCE || tensor.NumElements() != 1) return;
    const auto& resources = tensor.flat<tensorflow::ResourceHandle>()(0).dtypes_and_shapes();
    Add(resources.size());
    for (const auto& [dtype, shape] : resources) {
      Add(dtype);
      Add(shape.dims());
      for (int i = 0; i < shape.dims(); ++i) Add(shape.dim_size(i));
    }
  }

  bool AddObject(Tables* tables, PyObject* object) {
    const auto [slot, is_new] = tables->objects.Add(reinterpret_cast<int64_t>(object),
                                                    static_cast<int64_t>(tensors_.size()));
    Add(slot->value);
    if (!is_new) return true;
    const tensorflow::Tensor* local = TapeTensorOf(object);
    if (local == nullptr) return false;
    tensors_.push_back({object, nullptr, 0});
    num_bytes_ += local->TotalBytes();
    AddKind(object, *local);
    return true;
  }

  bool AddTensors(Tables* tables, const TapeRecord& record) {
    for (int i = 0; i < record.num_inputs + record.num_outputs; ++i) {
      PyObject* tensor = record.tensors[i];
      if (tensor == Py_None) {
        Add(-1);
      } else if (!AddObject(tables, tensor)) {
        return false;
      }
    }
    return true;
  }

  bool AddTensors(Tables* tables, CallRecord* call) {
    for (size_t i = 0; i < call->num_tensors(); ++i) {
      if (call->IsObject(i)) {
        if (!AddObject(tables, call->ObjectAt(i))) return false;
        continue;
      }
      const tensorflow::Tensor& tensor = *call->TensorAt(i);
      tensors_.push_back({nullptr, call, i});
      num_bytes_ += tensor.TotalBytes();
      Add(tensor.dtype());
      AddShape(tensor.shape());
    }
    const std::vector<int>& slots = call->reached().shapes;
    for (size_t i = 0; i < slots.size(); ++i) {
      Add(call->replay().dtypes[slots[i]]);
      AddShape(call->shapes()[i]);
    }
    return true;
  }

  std::string key_;
  int64_t num_numbers_ = 0;
  absl::InlinedVector<Kept, 32> tensors_;
  size_t num_bytes_ = 0, num_calls_ = 0;
  absl::InlinedVector<const Entry*, 32> read_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_WALK_H_
