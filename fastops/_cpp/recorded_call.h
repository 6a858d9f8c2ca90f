// A replayed call as one record on a tape.
//
// A replay runs many ops. A tape would keep a record of each, but a walk that repeats never looks
// at them: it is replayed, too. So the tape gets one record of the whole call, with the tensors
// that the records of the ops would keep. Any other walk (`Backprop`) passes the ops one by one,
// and before TensorFlow walks over the tape, the record is expanded: the tape is then as if each op
// had been recorded when it ran. So the order of the walk, and with it each sum, is the same.
#ifndef FASTOPS_CPP_RECORDED_CALL_H_
#define FASTOPS_CPP_RECORDED_CALL_H_

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan.h"
#include "tape.h"

namespace fastops {

// What tapes record of the replays of a recording: its ops, and its calls with custom gradients, in
// the order in which they ran. Slots are the numbers of the values of the replay, and after them
// those of the constants. The values before `first_made` are given: arguments and handles.
class ReplaySteps {
 public:
  struct TapedStep {
    const RecordedOp* op;
    PyObject* name;   // borrowed, as are `attrs` and `constants`: the owner keeps them alive
    PyObject* attrs;  // of a call with a custom gradient: the maker of the gradient function
    bool custom;
    std::vector<int> kept;  // slots; only of a call with a custom gradient
    std::vector<int> inputs, outputs;
  };

  // The steps that some watched tensors reach and that lead to a value that Python sees. Tapes drop
  // other records at once.
  struct Reached {
    std::string watched;  // by index in `given_`: 1 for a watched tensor
    std::vector<int> steps;
    std::vector<int> numbers;      // of the records of the steps, from the first one of the call on
    int num_numbers = 0;           // records that are dropped at once have numbers, too
    std::vector<int> inputs;       // slots of what the steps use that they do not make, except for
                                   // values that Python does not see
    std::vector<int> outputs;      // slots: what they make that Python sees
    std::vector<int> objects;      // slots of the EagerTensors that the gradients need
    std::vector<int> values;       // slots of other values that the gradients need
    std::vector<int> shapes;       // slots of all outputs that are not in `values`
    std::vector<int> place;        // of a slot, its index in `objects` or `values`; else -1
    std::vector<int> shape_place;  // of a slot, its index in `shapes`; else -1
    std::vector<int> maker;  // of a slot, the index in `steps` of the step that makes it; or -1
  };

  std::vector<TapedStep> steps;
  std::vector<PyObject*> constants;
  std::vector<int> shown;  // slots of the values that Python sees
  int first_made = 0, first_constant = 0;
  const Runtime* runtime = nullptr;
  // The same object for the replays of equal recordings. It keeps the attributes alive. Borrowed.
  PyObject* kind = nullptr;
  std::vector<tensorflow::DataType> dtypes;  // by slot; empty before the first record

  void AddOp(const RecordedOp* op, PyObject* name, PyObject* attrs, const std::vector<int>& inputs,
             const std::vector<int>& outputs) {
    steps.push_back({op, name, attrs, false, {}, inputs, outputs});
  }
  void AddCustom(const RecordedOp* op, PyObject* name, PyObject* maker,
                 const std::vector<int>& kept, const std::vector<int>& inputs,
                 const std::vector<int>& outputs) {
    steps.push_back({op, name, maker, true, kept, inputs, outputs});
  }

  bool IsMade(int slot) const { return slot >= first_made && slot < first_constant; }
  bool IsShown(int slot) const {
    return std::find(shown.begin(), shown.end(), slot) != shown.end();
  }
  size_t num_slots() const { return first_constant + constants.size(); }
  PyObject* Given(int slot, PyObject* const* values) const {
    return slot < first_constant ? values[slot] : constants[slot - first_constant];
  }

  // The steps that are recorded if the given values that `watched` has are watched. Null if the ops
  // have to be recorded one by one.
  const Reached* Find(const std::string& watched) {
    for (const auto& reached : reached_) {
      if (reached->watched == watched) return reached.get();
    }
    if (reached_.size() >= kMost) return nullptr;
    return reached_.emplace_back(Reach(watched)).get();
  }

  // The slots of the given values and constants that the steps use, each once.
  const std::vector<int>& given() {
    if (!has_given_) {
      std::vector<bool> seen(num_slots());
      for (const TapedStep& step : steps) {
        for (const int slot : step.inputs) {
          if (!IsMade(slot) && !seen[slot]) {
            seen[slot] = true;
            given_.push_back(slot);
          }
        }
      }
      has_given_ = true;
    }
    return given_;
  }

 private:
  static constexpr size_t kMost = 8;  // sets of watched tensors; more are recorded op by op

  std::unique_ptr<Reached> Reach(const std::string& watched) {
    auto reached = std::make_unique<Reached>();
    reached->watched = watched;
    std::vector<bool> on_tape(num_slots()), leads(num_slots());
    std::vector<bool> recorded(steps.size());
    std::vector<int> numbers(steps.size());
    for (size_t i = 0; i < given().size(); ++i) on_tape[given()[i]] = watched[i] != 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      recorded[i] = std::any_of(steps[i].inputs.begin(), steps[i].inputs.end(), [&](int slot) {
        return on_tape[slot] && tensorflow::eager::IsDtypeTrainable(dtypes[slot]);
      });
      if (!recorded[i]) continue;
      numbers[i] = reached->num_numbers++;
      for (const int slot : steps[i].outputs) on_tape[slot] = true;
    }
    for (const int slot : shown) leads[slot] = true;
    for (size_t i = steps.size(); i-- > 0;) {
      const auto& outputs = steps[i].outputs;
      recorded[i] = recorded[i] && std::any_of(outputs.begin(), outputs.end(),
                                               [&](int slot) { return leads[slot]; });
      if (!recorded[i]) continue;
      for (const int slot : steps[i].inputs) leads[slot] = true;
    }
    std::vector<bool> is_shown(num_slots()), is_input(num_slots()), is_kept(num_slots());
    for (const int slot : shown) is_shown[slot] = true;
    reached->place.assign(num_slots(), -1);
    reached->shape_place.assign(num_slots(), -1);
    const auto keep = [&](int slot) {
      if (is_kept[slot]) return;
      is_kept[slot] = true;
      auto& kept = IsMade(slot) && !is_shown[slot] ? reached->values : reached->objects;
      reached->place[slot] = static_cast<int>(kept.size());
      kept.push_back(slot);
    };
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!recorded[i]) continue;
      const TapedStep& step = steps[i];
      reached->steps.push_back(static_cast<int>(i));
      reached->numbers.push_back(numbers[i]);
      for (size_t j = 0; j < step.inputs.size(); ++j) {
        const int slot = step.inputs[j];
        // A program may watch such a value later, also one that the call has made.
        if ((!IsMade(slot) || (is_shown[slot] && !on_tape[slot])) && !is_input[slot]) {
          is_input[slot] = true;
          reached->inputs.push_back(slot);
        }
        if (!step.custom && step.op->keeps_input(static_cast<int>(j))) keep(slot);
      }
      for (size_t j = 0; j < step.outputs.size(); ++j) {
        const int slot = step.outputs[j];
        if (is_shown[slot]) reached->outputs.push_back(slot);
        if (!step.custom && step.op->keeps_output(static_cast<int>(j))) keep(slot);
      }
      for (const int slot : step.kept) keep(slot);
    }
    reached->maker.assign(num_slots(), -1);
    for (size_t at = 0; at < reached->steps.size(); ++at) {
      for (const int slot : steps[reached->steps[at]].outputs) {
        reached->maker[slot] = static_cast<int>(at);
        if (is_kept[slot] && !is_shown[slot]) continue;
        reached->shape_place[slot] = static_cast<int>(reached->shapes.size());
        reached->shapes.push_back(slot);
      }
    }
    return reached;
  }

  std::vector<int> given_;
  bool has_given_ = false;
  std::vector<std::unique_ptr<Reached>> reached_;
};

// The record of one call. The GIL is held wherever it is used.
class CallRecord {
 public:
  using Reached = ReplaySteps::Reached;

  // Takes the tensors of the values that only records keep out of `made`. `owner` keeps `replay`
  // alive.
  CallRecord(ReplaySteps* replay, const Reached* reached, PyObject* owner, PyObject* const* values,
             Made* made)
      : replay_(replay), reached_(reached), owner_(Py_NewRef(owner)) {
    objects_.reserve(reached->objects.size());
    for (const int slot : reached->objects) {
      objects_.push_back(Py_NewRef(replay->Given(slot, values)));
    }
    shapes_.reserve(reached->shapes.size());
    for (const int slot : reached->shapes) {
      PyObject* object = values[slot];
      shapes_.push_back(object == nullptr ? (*made)[slot - replay->first_made].shape()
                                          : LocalTensor(object)->shape());
    }
    values_.reserve(reached->values.size());
    for (const int slot : reached->values) {
      values_.push_back(std::move((*made)[slot - replay->first_made]));
    }
    ++num_living;
  }
  ~CallRecord() {
    for (PyObject* object : objects_) Py_DECREF(object);
    for (PyObject* object : kept_) Py_XDECREF(object);
    Py_DECREF(owner_);
    --num_living;
  }
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  const ReplaySteps& replay() const { return *replay_; }
  const Reached& reached() const { return *reached_; }
  // Keeps the attributes of the ops alive. Records of equal calls have the same one.
  PyObject* kind() const { return replay_->kind; }

  size_t num_tensors() const { return objects_.size() + values_.size(); }
  // The tensors that the gradients need: EagerTensors, and then values that Python has not seen.
  bool IsObject(size_t i) const { return i < objects_.size(); }
  // Null for a tensor that is not on this machine, or not computed yet.
  const tensorflow::Tensor* TensorAt(size_t i) const {
    if (IsObject(i)) return LocalTensor(objects_[i]);
    i -= objects_.size();
    return i < kept_.size() && kept_[i] != nullptr ? TapeTensorOf(kept_[i]) : &values_[i];
  }
  // An EagerTensor or a kept value. Borrowed; null with a Python exception.
  PyObject* ObjectAt(size_t i) {
    if (IsObject(i)) return objects_[i];
    i -= objects_.size();
    kept_.resize(values_.size());
    if (kept_[i] == nullptr) kept_[i] = NewKeptValue(std::move(values_[i]), replay_->runtime);
    return kept_[i];
  }
  const std::vector<tensorflow::TensorShape>& shapes() const { return shapes_; }

  // The step with an index in `reached().steps`.
  const ReplaySteps::TapedStep& step(size_t i) const { return replay_->steps[reached_->steps[i]]; }

  // What a tape knows about the value in a slot that a step makes.
  PyTapeTensor Described(int slot, int64_t id) const {
    const int place = reached_->shape_place[slot];
    return {
        id, replay_->dtypes[slot],
        place >= 0 ? shapes_[place] : TensorAt(objects_.size() + reached_->place[slot])->shape()};
  }

  // Makes the record of a step. `as_eager`: of EagerTensors, for a record that is used at once.
  // Null with a Python exception.
  TapeRecord* RecordOf(const ReplaySteps::TapedStep& step, bool as_eager) {
    absl::InlinedVector<PyObject*, 8> inputs, outputs;
    if (!Collect(step.custom ? step.kept : step.inputs, as_eager, &inputs)) return nullptr;
    if (step.custom) {
      return MakeCustomRecord(*step.op, step.name, step.attrs, true, inputs.data(),
                              static_cast<int>(inputs.size()));
    }
    if (!Collect(step.outputs, as_eager, &outputs)) return nullptr;
    return MakeRecord(*step.op, step.name, step.attrs, inputs.data(),
                      static_cast<int>(inputs.size()), outputs.data(),
                      static_cast<int>(outputs.size()));
  }

  // Adds to `tape` the records of the ops, with numbers from `first` on. `ids` has the number of
  // the tensor in each slot. Returns false with a Python exception.
  bool AddTo(TapeOfOps* tape, int64_t first, const std::vector<int64_t>& ids) {
    for (size_t i = 0; i < reached_->steps.size(); ++i) {
      TapeRecord* record = RecordOf(step(i), false);
      if (record == nullptr) return false;
      std::vector<PyTapeTensor> made;
      std::vector<int64_t> used;
      made.reserve(step(i).outputs.size());
      used.reserve(step(i).inputs.size());
      for (const int slot : step(i).inputs) used.push_back(ids[slot]);
      for (const int slot : step(i).outputs) made.push_back(Described(slot, ids[slot]));
      InsertRecord(tape, first + reached_->numbers[i], step(i).op->name(), std::move(made),
                   std::move(used), record);
    }
    return true;
  }

  // New numbers for the values that the call has made; -1 for other slots.
  std::vector<int64_t> NewIds() const {
    std::vector<int64_t> ids(replay_->num_slots(), -1);
    for (int slot = replay_->first_made; slot < replay_->first_constant; ++slot) {
      ids[slot] = NewKeptId();
    }
    return ids;
  }

  bool IsWatched(int slot) const {
    const auto& given = replay_->given();
    const auto found = std::find(given.begin(), given.end(), slot);
    return found != given.end() && reached_->watched[found - given.begin()] != 0;
  }

  static inline int64_t num_living = 0, num_expanded = 0;

 private:
  // An EagerTensor. Borrowed; null with a Python exception.
  PyObject* EagerAt(size_t i) {
    if (IsObject(i)) return objects_[i];
    const size_t at = i - objects_.size();
    kept_.resize(values_.size());
    if (kept_[at] == nullptr) {
      kept_[at] = Wrap(std::move(values_[at]), replay_->runtime->host, replay_->runtime->context);
    }
    return kept_[at] == nullptr ? nullptr : Unkept(kept_[at]);
  }

  // Collects what is in some slots: None for a tensor that no gradient needs.
  bool Collect(const std::vector<int>& slots, bool as_eager,
               absl::InlinedVector<PyObject*, 8>* objects) {
    for (const int slot : slots) {
      const int place = reached_->place[slot];
      PyObject* object = Py_None;
      if (place >= 0) {
        const bool is_value = replay_->IsMade(slot) && !replay_->IsShown(slot);
        const size_t i = is_value ? objects_.size() + place : place;
        object = as_eager ? EagerAt(i) : ObjectAt(i);
      }
      if (object == nullptr) return false;
      objects->push_back(object);
    }
    return true;
  }

  ReplaySteps* replay_;
  const Reached* reached_;
  PyObject* owner_;
  std::vector<PyObject*> objects_;
  std::vector<tensorflow::Tensor> values_;
  std::vector<PyObject*> kept_;  // what `values_` become: kept values or EagerTensors
  std::vector<tensorflow::TensorShape> shapes_;
};

// Walks over the records of the ops of a call, and returns a list of the gradients of its inputs.
// `grads` are the gradients of its outputs, or None.
inline PyObject* WalkOverCall(CallRecord* call, PyObject* grads,
                              const std::vector<int64_t>& unneeded) {
  const ReplaySteps::Reached& reached = call->reached();
  std::vector<int64_t> ids = call->NewIds();
  TapeOfOps tape(/*persistent=*/false);
  std::vector<int64_t> targets, sources;
  std::vector<size_t> numbers;  // of the sources among the inputs
  std::vector<PyObject*> seeds;
  for (size_t i = 0; i < reached.inputs.size(); ++i) {
    const int slot = reached.inputs[i];
    ids[slot] = NewKeptId();
    if (call->IsWatched(slot)) tape.Watch(ids[slot]);
    if (std::find(unneeded.begin(), unneeded.end(), i) != unneeded.end()) continue;
    sources.push_back(ids[slot]);
    numbers.push_back(i);
  }
  if (!call->AddTo(&tape, 0, ids)) return nullptr;
  for (size_t i = 0; i < reached.outputs.size(); ++i) {
    PyObject* grad = PySequence_Fast_GET_ITEM(grads, i);
    if (grad == Py_None) continue;
    targets.push_back(ids[reached.outputs[i]]);
    seeds.push_back(Py_NewRef(grad));
  }
  std::vector<PyObject*> found(sources.size());
  const absl::Status status =
      tape.ComputeGradient(*py_vspace, targets, sources, {}, seeds, absl::MakeSpan(found));
  if (!status.ok()) {
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_RuntimeError, std::string(status.message()).c_str());
    }
    return nullptr;
  }
  PyObject* list = PyList_New(reached.inputs.size());
  for (size_t i = 0; i < reached.inputs.size(); ++i) PyList_SET_ITEM(list, i, Py_NewRef(Py_None));
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != nullptr) PyList_SetItem(list, numbers[i], found[i]);
  }
  return list;
}

// The backward function of the record of a call. It runs only in a walk that has begun without
// expanding the record, as somebody who keeps TensorFlow's function from before `install` may do.
struct BackwardOfCall {
  CallRecord* call;

  PyObject* operator()(PyObject* grads, const std::vector<int64_t>& unneeded) const {
    return PyErr_Occurred() ? nullptr : WalkOverCall(call, grads, unneeded);
  }
};

inline CallRecord* AsCallRecord(const PyBackwardFunction& backward) {
  const auto* own = backward.target<BackwardOfCall>();
  return own == nullptr ? nullptr : own->call;
}

// Records a call on the one tape that is active. `values` has the given values, and the values that
// Python sees; `made` the others, which the record takes. Returns false, having done nothing, if
// the ops have to be recorded one by one.
inline bool RecordCall(ReplaySteps* replay, PyObject* owner, PyObject* const* values, Made* made) {
  TapeOfOps* tape = (*GetTapeSet()->begin())->tape;
  const auto& producers = Access(*tape, TapeTensors());
  std::string watched;
  bool any = false;
  for (const int slot : replay->given()) {
    watched.push_back(producers.find(TapeId(replay->Given(slot, values))) != producers.end());
    any = any || watched.back() != 0;
  }
  if (!any) return true;
  if (replay->dtypes.empty()) {
    for (size_t i = 0; i < replay->num_slots(); ++i) {
      const int slot = static_cast<int>(i);
      const bool hidden = replay->IsMade(slot) && values[slot] == nullptr;
      replay->dtypes.push_back(hidden ? (*made)[slot - replay->first_made].dtype()
                                      : TapeDtype(replay->Given(slot, values)));
    }
  }
  for (int slot = replay->first_made; slot < replay->first_constant; ++slot) {
    if (NeedsHandleData(replay->dtypes[slot])) return false;
    if (values[slot] != nullptr && LocalTensor(values[slot]) == nullptr) return false;
  }
  const ReplaySteps::Reached* reached = replay->Find(watched);
  if (reached == nullptr) return false;
  // The numbers of the records of the ops stay free.
  auto& next = const_cast<int64_t&>(Access(*tape, TapeNextOp()));
  next += reached->num_numbers;
  if (reached->steps.empty()) return true;
  std::vector<int64_t> inputs;
  std::vector<PyTapeTensor> outputs;
  inputs.reserve(reached->inputs.size());
  outputs.reserve(reached->outputs.size());
  for (const int slot : reached->inputs) inputs.push_back(TapeId(replay->Given(slot, values)));
  for (const int slot : reached->outputs) {
    outputs.emplace_back(PyEagerTensor_ID(values[slot]), replay->dtypes[slot],
                         LocalTensor(values[slot])->shape());
  }
  auto* call = new CallRecord(replay, reached, owner, values, made);
  static const std::string name = "fastops.ReplayedCall";
  Insert(tape, next - 1, name, std::move(outputs), std::move(inputs),
         new PyBackwardFunction(BackwardOfCall{call}), [](PyBackwardFunction* backward) {
           delete AsCallRecord(*backward);
           delete backward;
         });
  return true;
}

// Replaces the records of calls on a tape by those of their ops. Returns false with a Python
// exception.
inline bool ExpandCalls(PyObject* object) {
  if (CallRecord::num_living == 0) return true;
  TapeOfOps* tape = &TapeOf(object);
  auto& records = const_cast<OpsOfTape&>(Access(*tape, TapeOps()));
  auto& usage = const_cast<UsageOfTape&>(Access(*tape, TapeUsage()));
  std::vector<int64_t> numbers;
  for (const auto& [number, entry] : records) {
    if (AsCallRecord(*entry.backward_function) != nullptr) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  for (const int64_t number : numbers) {
    auto node = records.extract(number);
    const auto& entry = node.mapped();
    CallRecord* call = AsCallRecord(*entry.backward_function);
    const ReplaySteps::Reached& reached = call->reached();
    std::vector<int64_t> ids = call->NewIds();
    std::vector<int64_t> uses;  // of the outputs
    for (size_t i = 0; i < reached.inputs.size(); ++i) {
      ids[reached.inputs[i]] = entry.input_tensor_id[i];
    }
    for (size_t i = 0; i < reached.outputs.size(); ++i) {
      const int64_t id = entry.output_tensor_info[i].GetID();
      ids[reached.outputs[i]] = id;
      const auto found = usage.find(id);
      uses.push_back(found == usage.end() ? 0 : found->second);
    }
    const int64_t first = number + 1 - reached.num_numbers;
    const bool added = call->AddTo(tape, first, ids);
    if (added) {
      for (const int64_t id : entry.input_tensor_id) --usage[id];
      for (size_t i = 0; i < uses.size(); ++i) {
        // Python may have dropped the output.
        const int64_t id = entry.output_tensor_info[i].GetID();
        if (uses[i] == 0) {
          tape->DeleteTrace(id);
        } else {
          usage[id] += uses[i] - 1;
        }
      }
    }
    entry.backward_function_deleter(entry.backward_function);
    if (!added) return false;
    ++CallRecord::num_expanded;
  }
  return true;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_RECORDED_CALL_H_
