// The walk back over a tape.
//
// TensorFlow's walk is `ComputeGradient` in its header tensorflow/c/eager/tape.h. It copies each
// record, and keeps its state in hash tables. This walk numbers tensors and ops from zero, and
// takes the records out of the tape. It takes the ops in the same order, asks for the same
// gradients, and adds the same terms in the same order. It passes the ops of a replayed call
// (`CallRecord`) as if each had a record of its own.
#ifndef FASTOPS_CPP_BACKPROP_H_
#define FASTOPS_CPP_BACKPROP_H_

#include <Python.h>

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "number_table.h"
#include "recorded_call.h"
#include "tape.h"

namespace fastops {

// One walk. The GIL is held. As TensorFlow does, it returns an error status both for errors of its
// own and with a Python exception.
class Backprop {
 public:
  // Adds tensors. Takes a list; returns a new reference, or null with a Python exception.
  using Add = PyObject* (*)(PyObject* list);

  // `tape` is TensorFlow's object, which the caller keeps alive.
  Backprop(PyObject* tape, Add add)
      : tape_(TapeOf(tape)),
        producers_(Access(tape_, TapeTensors())),
        records_(const_cast<OpsOfTape&>(Access(tape_, TapeOps()))),
        add_(add) {}
  ~Backprop() {
    for (Value& value : values_) {
      for (PyObject* grad : value.grads) Py_XDECREF(grad);
    }
    for (PassedOp& step : steps_) Finish(&step);
    for (Call& call : calls_) Release(&call.record);
  }
  Backprop(const Backprop&) = delete;
  Backprop& operator=(const Backprop&) = delete;

  // Walks from the targets to the sources, all of them EagerTensors on this machine. `seeds` are
  // the gradients of the targets. Fills `result` with a new reference for each source, None for one
  // that is not connected.
  absl::Status Run(const std::vector<PyObject*>& targets, const std::vector<PyObject*>& sources,
                   const std::vector<PyObject*>& seeds, std::vector<PyObject*>* result) {
    std::vector<int> ends;
    Prepare(targets, sources, &ends);
    for (size_t i = 0; i < targets.size(); ++i) {
      values_[ends[i]].grads.push_back(Py_NewRef(seeds[i]));
    }
    size_t num_left = 0;
    for (const PassedOp& step : steps_) num_left += step.reached;
    while (!ready_.empty()) {
      PassedOp& step = steps_[ready_.front()];
      ready_.pop_front();
      --num_left;
      const absl::Status status = Pass(step);
      if (!status.ok()) return status;
      Finish(&step);
    }
    if (num_left != 0) return absl::InternalError("Invalid tape state.");
    for (size_t i = 0; i < sources.size(); ++i) {
      Value& source = values_[ends[targets.size() + i]];
      if (source.grads.size() > 1 && !Aggregate(&source)) {
        const absl::Status raised = Dropped(*result);
        result->clear();
        return raised;
      }
      result->push_back(Py_NewRef(source.grads.empty() ? Py_None : source.grads[0]));
    }
    return absl::OkStatus();
  }

  // The replayed calls that the walk has met.
  size_t num_calls() const { return calls_.size(); }

 private:
  using Node = OpsOfTape::node_type;
  using Entry = OpsOfTape::mapped_type;
  static constexpr int kNone = -1;

  // TensorFlow adds up the gradients of a tensor early if there are many, and they are large.
  static constexpr size_t kMinTerms = 4;
  static constexpr uint64_t kMinBytes = 128 * 1024 * 1024;

  // A tensor that an op uses or makes, with its gradients up to now.
  struct Value {
    int64_t id;
    int64_t producer;  // the number that the tape has for the op that makes it
    int maker;         // the index of that op in `steps_`, or `kNone`
    int num_uses;
    int64_t num_elements;  // of a gradient; 0 if not known
    bool of_call;          // a replayed call makes it, so that the tape may not know it
    bool is_source;
    absl::InlinedVector<PyObject*, 2> grads;
  };
  // An op.
  struct PassedOp {
    Node node;                                   // its record, if this walk uses up the tape
    const Entry* record;                         // null for an op of a call
    int64_t number;                              // by which TensorFlow's walk knows it
    int call, at;                                // of an op of a call: which, and its index there
    int num_missing;                             // how many of its outputs still wait for gradients
    int first_operand, num_inputs, num_outputs;  // in `operands_`: inputs and then outputs
    bool reached;
  };
  // A replayed call.
  struct Call {
    Node record;
    int first_step;
    int num_left;             // steps to pass
    std::vector<int> values;  // by slot; `kNone` for one that was not met
    CallRecord& get() const { return *AsCallRecord(*record.mapped().backward_function); }
  };

  static absl::Status Raised() { return absl::InternalError("gradient function threw exceptions"); }

  // Finds the ops that lead from the targets to the sources, and those to begin with. `ends` gets
  // the indexes of the targets and the sources in `values_`.
  void Prepare(const std::vector<PyObject*>& targets, const std::vector<PyObject*>& sources,
               std::vector<int>* ends) {
    Indexes& indexes = OfThisThread();
    indexes.values.Clear();
    indexes.steps.Clear();
    if (!tape_.IsPersistent()) {
      steps_.reserve(records_.size());
      values_.reserve(records_.size() + targets.size() + sources.size());
    }
    for (PyObject* target : targets) ends->push_back(ValueOf(PyEagerTensor_ID(target)));
    std::vector<int> pending = *ends, order;
    while (!pending.empty()) {
      const int maker = values_[pending.back()].maker;
      pending.pop_back();
      if (maker == kNone || steps_[maker].reached) continue;
      steps_[maker].reached = true;
      order.push_back(maker);
      ReadOperands(maker);
      const PassedOp& step = steps_[maker];
      if (step.record == nullptr) ++calls_[step.call].num_left;
      for (int i = 0; i < step.num_inputs; ++i) {
        const int input = operands_[step.first_operand + i];
        Value& value = values_[input];
        if (++value.num_uses != 1 || value.maker == kNone) continue;
        ++steps_[value.maker].num_missing;
        pending.push_back(input);
      }
    }
    for (PyObject* source : sources) {
      const int64_t id = PyEagerTensor_ID(source);
      const auto [slot, is_new] = indexes.values.Add(id, static_cast<int64_t>(values_.size()));
      ends->push_back(static_cast<int>(slot->value));
      if (is_new) AddValue(id);
      values_[ends->back()].is_source = true;
    }
    indexes.values.Trim();
    indexes.steps.Trim();
    Begin(order);
    if (!tape_.IsPersistent()) UseUp();
  }

  // Finds the ops that wait for no gradients. TensorFlow takes them from a hash table of all ops. A
  // table of the same type, to which the same numbers are added in the same order, has the same
  // order.
  void Begin(const std::vector<int>& order) {
    for (const int step : order) {
      if (steps_[step].num_missing == 0) ready_.push_back(step);
    }
    if (ready_.size() < 2) return;
    ready_.clear();
    std::unordered_map<int64_t, int> table;
    for (const int step : order) table.emplace(steps_[step].number, step);
    for (const auto& [number, step] : table) {
      if (steps_[step].num_missing == 0) ready_.push_front(step);
    }
  }

  // Deletes the records that the walk does not reach.
  void UseUp() {
    OpsOfTape left;
    left.swap(records_);
    for (const auto& [number, entry] : left) {
      entry.backward_function_deleter(entry.backward_function);
    }
  }

  Value& AddValue(int64_t id) {
    return values_.emplace_back(Value{id, -1, kNone, 0, 0, false, false, {}});
  }

  // The index of the tensor with a number of the tape.
  int ValueOf(int64_t id) {
    const auto [slot, is_new] = OfThisThread().values.Add(id, static_cast<int64_t>(values_.size()));
    const int index = static_cast<int>(slot->value);
    if (!is_new) return index;
    AddValue(id);
    const auto found = producers_.find(id);
    if (found == producers_.end() || found->second == -1) return index;
    const int maker = MakerOf(id, found->second);
    Value& value = values_[index];
    value.producer = found->second;
    value.maker = maker;
    if (maker != kNone && steps_[maker].record == nullptr) {
      Call& call = calls_[steps_[maker].call];
      value.of_call = true;
      call.values[SlotOf(call, id)] = index;
    }
    return index;
  }

  // The index of the op that makes a tensor, of which the tape has the number; `kNone` if its
  // record was deleted.
  int MakerOf(int64_t id, int64_t number) {
    const auto [slot, is_new] = OfThisThread().steps.Add(number, kNone);
    if (is_new) {
      const auto found = records_.find(number);
      if (found == records_.end()) return kNone;
      slot->value = static_cast<int64_t>(steps_.size());
      if (AsCallRecord(*found->second.backward_function) != nullptr) {
        AddCall(records_.extract(found), number);
      } else {
        steps_.push_back({{}, &found->second, number, kNone, 0, 0, 0, 0, 0, false});
        if (!tape_.IsPersistent()) steps_.back().node = records_.extract(found);
      }
    }
    const int step = static_cast<int>(slot->value);
    if (step == kNone || steps_[step].record != nullptr) return step;
    const Call& call = calls_[steps_[step].call];
    return step + call.get().reached().maker[SlotOf(call, id)];
  }

  // Adds the ops of a call. Only tapes that are used up have calls.
  void AddCall(Node record, int64_t number) {
    Call call{std::move(record), static_cast<int>(steps_.size()), 0, {}};
    const ReplaySteps::Reached& reached = call.get().reached();
    const int64_t first = number + 1 - reached.num_numbers;
    for (size_t i = 0; i < reached.steps.size(); ++i) {
      steps_.push_back({{},
                        nullptr,
                        first + reached.numbers[i],
                        static_cast<int>(calls_.size()),
                        static_cast<int>(i),
                        0,
                        0,
                        0,
                        0,
                        false});
    }
    call.values.assign(call.get().replay().num_slots(), kNone);
    calls_.push_back(std::move(call));
  }

  // The slot of an output of a call.
  static int SlotOf(const Call& call, int64_t id) {
    const auto& outputs = call.record.mapped().output_tensor_info;
    size_t i = 0;
    while (outputs[i].GetID() != id) ++i;
    return call.get().reached().outputs[i];
  }

  // The index of the tensor in a slot of a call.
  int ValueIn(int call_index, int slot) {
    const Call& call = calls_[call_index];
    if (call.values[slot] != kNone) return call.values[slot];
    const ReplaySteps::Reached& reached = call.get().reached();
    const Entry& entry = call.record.mapped();
    int index;
    size_t i = 0;
    while (i < reached.inputs.size() && reached.inputs[i] != slot) ++i;
    if (i < reached.inputs.size()) {
      index = ValueOf(entry.input_tensor_id[i]);  // which may add to `calls_`
    } else {
      int64_t id = -1;  // which no tensor has
      for (i = 0; i < reached.outputs.size(); ++i) {
        if (reached.outputs[i] == slot) id = entry.output_tensor_info[i].GetID();
      }
      index = static_cast<int>(values_.size());
      if (id != -1) OfThisThread().values.Add(id, index);
      Value& value = AddValue(id);
      if (reached.maker[slot] != kNone) {  // else the op that makes it is not recorded
        value.maker = call.first_step + reached.maker[slot];
        value.of_call = true;
      }
    }
    calls_[call_index].values[slot] = index;
    return index;
  }

  // Appends the inputs and the outputs of an op to `operands_`.
  void ReadOperands(int index) {
    const size_t first = operands_.size();
    size_t num_inputs;
    if (const Entry* record = steps_[index].record) {
      num_inputs = record->input_tensor_id.size();
      for (const int64_t id : record->input_tensor_id) operands_.push_back(ValueOf(id));
      for (const PyTapeTensor& output : record->output_tensor_info) {
        operands_.push_back(ValueOf(output.GetID()));
      }
    } else {
      const int call = steps_[index].call;
      const ReplaySteps::TapedStep& taped = calls_[call].get().step(steps_[index].at);
      num_inputs = taped.inputs.size();
      for (const int slot : taped.inputs) operands_.push_back(ValueIn(call, slot));
      for (const int slot : taped.outputs) operands_.push_back(ValueIn(call, slot));
    }
    PassedOp& step = steps_[index];
    step.first_operand = static_cast<int>(first);
    step.num_inputs = static_cast<int>(num_inputs);
    step.num_outputs = static_cast<int>(operands_.size() - first - num_inputs);
  }

  Value& Input(const PassedOp& step, int i) { return values_[operands_[step.first_operand + i]]; }
  Value& Output(const PassedOp& step, int i) {
    return values_[operands_[step.first_operand + step.num_inputs + i]];
  }

  // Whether the tape watches a tensor now. A gradient function may have changed that.
  bool IsWatched(const Value& value) const {
    return value.of_call || producers_.find(value.id) != producers_.end();
  }

  // Computes the gradients of the inputs of an op from those of its outputs.
  absl::Status Pass(const PassedOp& step) {
    absl::InlinedVector<PyObject*, 4> grads, made(step.num_inputs);
    absl::InlinedVector<int, 4> zeros;
    bool any = false;
    unneeded_.clear();
    for (int i = 0; i < step.num_inputs; ++i) {
      const Value& input = Input(step, i);
      if (!input.is_source && !IsWatched(input)) unneeded_.push_back(i);
    }
    for (int i = 0; i < step.num_outputs; ++i) {
      Value& output = Output(step, i);
      if (output.grads.empty()) {
        if (!AcceptsNone(step, i)) zeros.push_back(i);
        grads.push_back(nullptr);
        continue;
      }
      any = true;
      if (output.grads.size() > 1 && !Aggregate(&output)) return Dropped(grads);
      grads.push_back(output.grads[0]);
      if (output.is_source) {
        Py_INCREF(output.grads[0]);
      } else {
        output.grads.clear();
      }
    }
    if (any) {
      for (const int i : zeros) grads[i] = ZerosLike(step, i);
      const absl::Status status = Differentiate(step, absl::MakeSpan(grads), absl::MakeSpan(made));
      if (!status.ok()) return status;
    }
    for (int i = 0; i < step.num_inputs; ++i) {
      Value& input = Input(step, i);
      if (made[i] != nullptr) {
        input.grads.push_back(made[i]);
        if (input.grads.size() > kMinTerms && IsLarge(&input) && !Aggregate(&input)) {
          return Dropped(absl::MakeConstSpan(made).subspan(i + 1));
        }
      }
      if (--input.num_uses == 0) Complete(&input);
    }
    return absl::OkStatus();
  }

  static absl::Status Dropped(absl::Span<PyObject* const> grads) {
    for (PyObject* grad : grads) Py_XDECREF(grad);
    return Raised();
  }

  // All ops that use a tensor have been passed.
  void Complete(Value* value) {
    if (!value->of_call) {
      const auto found = producers_.find(value->id);
      if (found == producers_.end()) {
        absl::InlinedVector<PyObject*, 2> grads;
        grads.swap(value->grads);
        for (PyObject* grad : grads) Py_DECREF(grad);
        return;
      }
      if (found->second == -1 || found->second != value->producer) return;
    }
    if (value->maker != kNone && --steps_[value->maker].num_missing == 0) {
      ready_.push_back(value->maker);
    }
  }

  // Replaces the gradients of a tensor by their sum.
  bool Aggregate(Value* value) {
    absl::InlinedVector<PyObject*, 2> grads;
    grads.swap(value->grads);
    PyObject* sum = Sum(absl::MakeConstSpan(grads));
    if (sum == nullptr) return false;
    value->grads.push_back(sum);
    return true;
  }

  // Takes the references.
  PyObject* Sum(absl::Span<PyObject* const> grads) const {
    for (PyObject* grad : grads) {
      if (!IsEagerTensor(grad)) return py_vspace->AggregateGradients(grads);
    }
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(grads.size()));
    for (size_t i = 0; i < grads.size(); ++i) {
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), grads[i]);
    }
    PyObject* sum = add_(list);
    Py_DECREF(list);
    return sum;
  }

  static bool IsLarge(Value* value) {
    if (value->num_elements == 0) value->num_elements = py_vspace->NumElements(value->grads[0]);
    return value->grads.size() * value->num_elements * 4 > kMinBytes;
  }

  const std::string& NameOf(const PassedOp& step) const {
    return step.record != nullptr ? step.record->op_type
                                  : calls_[step.call].get().step(step.at).op->name();
  }

  bool AcceptsNone(const PassedOp& step, int output) const {
    const auto& accepting = *tensorflow::eager::FunctionsAcceptingNoneForIndicesMap();
    const auto found = accepting.find(NameOf(step));
    return found != accepting.end() && found->second.find(output) != found->second.end();
  }

  PyObject* ZerosLike(const PassedOp& step, int output) const {
    if (step.record != nullptr) return step.record->output_tensor_info[output].ZerosLike();
    const CallRecord& call = calls_[step.call].get();
    return call.Described(call.step(step.at).outputs[output], 0).ZerosLike();
  }

  // Calls the gradient function of an op. Takes the references in `grads`; `made` gets new ones.
  absl::Status Differentiate(const PassedOp& step, absl::Span<PyObject*> grads,
                             absl::Span<PyObject*> made) {
    if (PyErr_Occurred()) return Dropped(grads);
    TapeRecord* record;
    if (step.record == nullptr) {
      CallRecord& call = calls_[step.call].get();
      record = call.RecordOf(call.step(step.at), true);
      if (record == nullptr) return Dropped(grads);
    } else if (const auto* own = step.record->backward_function->template target<Backward>()) {
      record = own->record;
    } else {
      return py_vspace->CallBackwardFunction(step.record->op_type, step.record->backward_function,
                                             unneeded_, grads, made);
    }
    ++record->references;
    for (PyObject*& grad : grads) {
      if (grad == nullptr) grad = Py_NewRef(Py_None);
    }
    PyObject* result = nullptr;
    if (Unkeep(record)) {
      result = gradient_of_record(record, grads.data(), static_cast<int>(grads.size()), unneeded_);
    }
    DropRecord(record);
    for (PyObject* grad : grads) Py_DECREF(grad);
    if (result == nullptr) return Raised();
    PyObject** items = &result;
    size_t length = 1;
    if (PyTuple_CheckExact(result) || PyList_CheckExact(result)) {
      items = PySequence_Fast_ITEMS(result);
      length = PySequence_Fast_GET_SIZE(result);
    }
    if (length != made.size()) {
      Py_DECREF(result);
      return absl::InternalError(absl::StrCat("Recorded operation '", NameOf(step),
                                              "' returned too few gradients. Expected ",
                                              made.size(), " but received ", length));
    }
    for (size_t i = 0; i < length; ++i) {
      made[i] = items[i] == Py_None ? nullptr : Py_NewRef(items[i]);
    }
    Py_DECREF(result);
    return absl::OkStatus();
  }

  // Lets go of what the gradient of an op needed, if this walk uses up the tape.
  void Finish(PassedOp* step) {
    if (step->record != nullptr) {
      Release(&step->node);
    } else if (step->reached) {
      step->reached = false;
      Call& call = calls_[step->call];
      if (--call.num_left == 0) Release(&call.record);
    }
  }
  static void Release(Node* node) {
    if (node->empty()) return;
    const Node taken = std::move(*node);
    taken.mapped().backward_function_deleter(taken.mapped().backward_function);
  }

  struct Indexes {
    NumberTable values;  // by the numbers of tensors
    NumberTable steps;   // by the numbers of records
  };
  // No Python runs while they are used, so one set of tables is enough.
  static Indexes& OfThisThread() {
    static thread_local Indexes indexes;
    return indexes;
  }

  TapeOfOps& tape_;
  const tensorflow::eager::TensorTape& producers_;
  OpsOfTape& records_;
  Add add_;
  std::vector<Value> values_;
  std::vector<PassedOp> steps_;
  std::vector<Call> calls_;
  std::vector<int> operands_;
  std::deque<int> ready_;
  std::vector<int64_t> unneeded_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_BACKPROP_H_
