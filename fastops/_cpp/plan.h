// Plan: the kernels of a graph in an order, and the slots that their values live in.
#ifndef FASTOPS_CPP_PLAN_H_
#define FASTOPS_CPP_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "invariants.h"
#include "kernel.h"
#include "placed.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensors.h"

namespace fastops {

// One node, or a loop of them.
struct Step {
  enum Kind { kKernel, kRead, kCopy, kSwitch, kMerge, kLoop, kNothing };

  Kind kind = kKernel;
  int number = 0;    // counting those inside of loops
  std::string name;  // of the node
  std::shared_ptr<PreparedKernel> kernel;
  std::shared_ptr<PlacedKernel> placed;  // in its place, of a plan for another device
  std::vector<int> inputs;               // slots
  std::vector<int> outputs;              // slots; -1 for what nobody asks for
  std::vector<int> shared;    // places among the inputs whose values others still ask for
  std::vector<int> releases;  // slots that nobody asks for afterwards
  std::vector<int> needs;     // slots of which none may be dead
  int control = -1;           // the slot that is dead when this is, for those who depend on that

  // Of a loop. Each variable has three slots: where it enters, where the body finds it, and where
  // the body leaves the next one.
  std::vector<Step> enters, body, exits;
  std::vector<int> entered, current, next;
  int condition = -1;

  // What the values that it makes must be, or the run is not the one that was planned: by the place
  // among the outputs the sizes, by the slot the very bytes.
  std::vector<std::pair<int, tensorflow::TensorShape>> sizes;
  std::vector<std::pair<int, tensorflow::Tensor>> values;

  void Want(int output, const std::vector<int64_t>& wanted) {
    sizes.emplace_back(output, tensorflow::TensorShape(wanted));
  }
  void Check(int slot, const tensorflow::Tensor& value) { values.emplace_back(slot, value); }
};

// The status of a run in which something is not what its step says that it must be.
inline absl::Status Different() { return absl::AbortedError("fastops: a value or a size differs"); }
inline bool Differs(const absl::Status& status) { return status == Different(); }

// How often steps ran, and for how many nanoseconds, by their numbers.
struct Times {
  std::vector<int64_t> runs, ns;
};

// The values of one run. Slots that hold constants keep them from run to run.
struct Activation {
  std::vector<tensorflow::Tensor> slots;
  std::vector<char> dead;
  Times* times = nullptr;  // null: nobody asks
  Threads threads = Threads::kAuto;
};

using Borrowed = absl::InlinedVector<const tensorflow::Tensor*, 8>;
using Made = absl::InlinedVector<tensorflow::Tensor, 4>;

class Plan {
 public:
  std::vector<Step> steps;
  std::vector<int> arguments;  // slots; -1 for what nobody asks for
  std::vector<int> results;
  std::vector<int> transient;  // slots to empty after a run that failed
  bool conditional = false;    // whether anything may be dead
  Times times;                 // of the runs that were measured; guarded by the GIL

  // Makes room for the values of a run.
  void Resize(int num_slots) { constants_.resize(num_slots); }

  // Computes a node that has no inputs, and keeps its value.
  absl::Status Fix(const PreparedKernel& kernel, int slot) {
    absl::Status status;
    if (!kernel.RunUnwrapped(nullptr, &constants_[slot], nullptr)) {
      return absl::InternalError("a constant could not be computed");
    }
    return status;
  }

  absl::Status FixPlaced(const PlacedKernel& kernel, int slot) {
    std::vector<tensorflow::EagerKernelRet> made;
    TF_RETURN_IF_ERROR(kernel.Compute(tensorflow::EagerKernelArgs(0), &made));
    constants_[slot] = std::get<tensorflow::Tensor>(made[0]);
    return absl::OkStatus();
  }

  // Gives a slot the same value in all runs.
  void Hold(int slot, const tensorflow::Tensor& value) { constants_[slot] = value; }

  // How often kernels left their work to oneDNN's primitive alone.
  int64_t PrimitiveRuns() const { return PrimitiveRuns(steps); }

  // Runs all steps. The arguments are borrowed, the results moved out. The GIL is held on entry and
  // exit; others run meanwhile if `release_gil`. Adds to `times` if `measured`.
  absl::Status Run(const Borrowed& given, bool release_gil, Threads threads, bool measured,
                   Made* made, const Step** failed) {
    FASTOPS_ASSERT(PyGILState_Check() && given.size() <= arguments.size());
    std::unique_ptr<Activation> activation = Take();
    activation->threads = threads;
    Times mine;
    if (measured) {
      mine.runs.resize(times.runs.size());
      mine.ns.resize(times.ns.size());
      activation->times = &mine;
    }
    absl::Status status;
    for (size_t i = 0; i < given.size(); ++i) {  // who holds them may let go without the GIL
      if (arguments[i] >= 0) activation->slots[arguments[i]] = *given[i];
    }
    {
      ScopedGilRelease gil(release_gil);
      ScopedFloatMode mode;
      if (conditional) activation->dead.assign(activation->slots.size(), 0);
      status = RunSteps(steps, activation.get(), failed);
      if (status.ok()) {
        made->reserve(results.size());
        for (int slot : results) {
          if (conditional && activation->dead[slot]) {
            status = absl::InternalError("a result has no value");
            break;
          }
          made->push_back(activation->slots[slot]);
        }
      }
      for (int slot : transient) activation->slots[slot] = tensorflow::Tensor();
    }
    activation->times = nullptr;
    idle_.push_back(std::move(activation));
    for (size_t i = 0; i < mine.runs.size(); ++i) {
      times.runs[i] += mine.runs[i];
      times.ns[i] += mine.ns[i];
    }
    return status;
  }

 private:
  static int64_t PrimitiveRuns(const std::vector<Step>& steps) {
    int64_t runs = 0;
    for (const Step& step : steps) {
      if (step.kernel != nullptr) runs += step.kernel->primitive_runs();
      runs += PrimitiveRuns(step.enters) + PrimitiveRuns(step.body) + PrimitiveRuns(step.exits);
    }
    return runs;
  }

  // Runs may overlap: take values that nobody uses, or make some. The GIL is held.
  std::unique_ptr<Activation> Take() {
    if (!idle_.empty()) {
      std::unique_ptr<Activation> activation = std::move(idle_.back());
      idle_.pop_back();
      return activation;
    }
    auto activation = std::make_unique<Activation>();
    activation->slots = constants_;  // shares their buffers, so that no kernel takes one over
    return activation;
  }

  absl::Status RunSteps(const std::vector<Step>& steps, Activation* values,
                        const Step** failed) const {
    for (const Step& step : steps) {
      if (conditional && IsDead(step, *values)) {
        for (int slot : step.outputs) {
          if (slot >= 0) values->dead[slot] = 1;
        }
        if (step.control >= 0) values->dead[step.control] = 1;
        if (step.kind == Step::kLoop) Kill(step, values);
        continue;
      }
      if (conditional) {
        for (int slot : step.outputs) {
          if (slot >= 0) values->dead[slot] = 0;
        }
        if (step.control >= 0) values->dead[step.control] = 0;
      }
      absl::Status status;
      const int64_t begin = values->times == nullptr ? 0 : Nanoseconds();
      switch (step.kind) {
        case Step::kKernel:
          status = Compute(step, values);
          break;
        case Step::kRead:
          if (!Read(step, values)) status = Compute(step, values);
          break;
        case Step::kCopy:
          if (step.outputs[0] >= 0) Move(step, step.inputs[0], step.outputs[0], values);
          break;
        case Step::kNothing:
          break;
        case Step::kSwitch: {
          size_t taken = 0;
          status = Side(values->slots[step.inputs[1]], step.outputs.size(), &taken);
          if (!status.ok()) break;
          for (size_t side = 0; side < step.outputs.size(); ++side) {
            if (side != taken && step.outputs[side] >= 0) values->dead[step.outputs[side]] = 1;
          }
          if (step.outputs[taken] >= 0) Move(step, step.inputs[0], step.outputs[taken], values);
          break;
        }
        case Step::kMerge:
          for (size_t i = 0; i < step.inputs.size(); ++i) {
            if (values->dead[step.inputs[i]]) continue;
            if (step.outputs[0] >= 0) Move(step, step.inputs[i], step.outputs[0], values);
            if (step.outputs[1] >= 0) {
              tensorflow::Tensor index(static_cast<int32_t>(i));
              values->slots[step.outputs[1]] = std::move(index);
            }
            break;
          }
          break;
        case Step::kLoop:
          status = RunLoop(step, values, failed);
          break;
      }
      if (values->times != nullptr) {
        ++values->times->runs[step.number];
        values->times->ns[step.number] += Nanoseconds() - begin;
      }
      if (status.ok() && !AsWanted(step, *values)) status = Different();
      if (!status.ok()) {
        if (*failed == nullptr) *failed = &step;
        return status;
      }
      for (int slot : step.releases) values->slots[slot] = tensorflow::Tensor();
    }
    return absl::OkStatus();
  }

  bool IsDead(const Step& step, const Activation& values) const {
    for (int slot : step.needs) {
      if (values.dead[slot]) return true;
    }
    if (step.kind != Step::kMerge) return false;
    for (int slot : step.inputs) {
      if (!values.dead[slot]) return false;
    }
    return true;
  }

  static bool AsWanted(const Step& step, const Activation& values) {
    for (const auto& [output, shape] : step.sizes) {
      if (values.slots[step.outputs[output]].shape() != shape) return false;
    }
    for (const auto& [slot, value] : step.values) {
      if (!SameBytes(values.slots[slot], value)) return false;
    }
    return true;
  }

  static void Kill(const Step& loop, Activation* values) {
    for (const Step& exit : loop.exits) {
      for (int slot : exit.outputs) {
        if (slot >= 0) values->dead[slot] = 1;
      }
      if (exit.control >= 0) values->dead[exit.control] = 1;
    }
  }

  // Hands a value on, and lets go of it where nobody else asks for it.
  static void Move(const Step& step, int from, int to, Activation* values) {
    if (step.shared.empty()) {
      values->slots[to] = std::move(values->slots[from]);
    } else {
      values->slots[to] = values->slots[from];
    }
  }

  static absl::Status Truth(const tensorflow::Tensor& tensor, bool* value) {
    if (tensor.dtype() != tensorflow::DT_BOOL || tensor.dims() != 0) {
      return absl::InvalidArgumentError("a condition must be a scalar of bool");
    }
    *value = tensor.scalar<bool>()();
    return absl::OkStatus();
  }

  // Which of a switch's outputs has a value: by a condition, or an index of which any that is out
  // of range means the last.
  static absl::Status Side(const tensorflow::Tensor& tensor, size_t sides, size_t* taken) {
    if (tensor.dtype() == tensorflow::DT_INT32 && tensor.dims() == 0) {
      const int32_t index = tensor.scalar<int32_t>()();
      *taken = index >= 0 && static_cast<size_t>(index) < sides ? index : sides - 1;
      return absl::OkStatus();
    }
    bool condition = false;
    TF_RETURN_IF_ERROR(Truth(tensor, &condition));
    *taken = condition;
    return absl::OkStatus();
  }

  absl::Status RunLoop(const Step& loop, Activation* values, const Step** failed) const {
    TF_RETURN_IF_ERROR(RunSteps(loop.enters, values, failed));
    for (size_t i = 0; i < loop.current.size(); ++i) {
      values->slots[loop.current[i]] = std::move(values->slots[loop.entered[i]]);
    }
    while (true) {
      TF_RETURN_IF_ERROR(RunSteps(loop.body, values, failed));
      bool goes_on = false;
      TF_RETURN_IF_ERROR(Truth(values->slots[loop.condition], &goes_on));
      if (!goes_on) break;
      for (int slot : loop.next) {
        if (values->dead[slot]) return absl::InternalError("a variable of a loop has no value");
      }
      for (size_t i = 0; i < loop.current.size(); ++i) {
        values->slots[loop.current[i]] = std::move(values->slots[loop.next[i]]);
      }
    }
    return RunSteps(loop.exits, values, failed);
  }

  // Reads a variable as its kernel does, without the kernel. False where anything is unusual.
  static bool Read(const Step& step, Activation* values) {
    const tensorflow::Tensor& handle = values->slots[step.inputs[0]];
    if (handle.dtype() != tensorflow::DT_RESOURCE || handle.NumElements() != 1) return false;
    const auto& resource = handle.flat<tensorflow::ResourceHandle>()(0);
    if (!resource.IsRefCounting()) return false;
    const auto found = resource.GetResource<tensorflow::Var>();
    if (!found.ok()) return false;
    tensorflow::Var* variable = *found;
    tensorflow::tf_shared_lock lock(*variable->mu());
    const tensorflow::Tensor& value = *variable->tensor();
    if (variable->copy_on_read_mode.load() || !variable->is_initialized ||
        value.dtype() != step.kernel->kernel()->output_type(0)) {
      return false;
    }
    if (step.outputs[0] >= 0) values->slots[step.outputs[0]] = value;
    return true;
  }

  static absl::Status ComputePlaced(const Step& step, Activation* values) {
    tensorflow::EagerKernelArgs inputs(step.inputs.size());
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      *inputs.MutableInput(i) = tensorflow::TensorValue(&values->slots[step.inputs[i]]);
    }
    absl::InlinedVector<tensorflow::Tensor, 4> kept;
    for (int place : step.shared) kept.push_back(values->slots[step.inputs[place]]);
    std::vector<tensorflow::EagerKernelRet> made;
    TF_RETURN_IF_ERROR(step.placed->Compute(inputs, &made));
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      auto& output = std::get<tensorflow::Tensor>(made[i]);
      if (output.dtype() != step.placed->output_dtype(i)) {
        return absl::InternalError("the kernel made an output of another dtype");
      }
      values->slots[step.outputs[i]] = std::move(output);
    }
    return absl::OkStatus();
  }

  static absl::Status Compute(const Step& step, Activation* values) {
    if (step.placed != nullptr) return ComputePlaced(step, values);
    absl::InlinedVector<tensorflow::TensorValue, 8> inputs(step.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = tensorflow::TensorValue(&values->slots[step.inputs[i]]);
    }
    // A kernel takes over a buffer that nobody else refers to.
    absl::InlinedVector<tensorflow::Tensor, 4> kept;
    for (int place : step.shared) kept.push_back(values->slots[step.inputs[place]]);
    tensorflow::OpKernelContext::Params params;
    step.kernel->Describe(&params);
    params.inputs = absl::MakeConstSpan(inputs.data(), inputs.size());
    std::optional<tensorflow::CancellationManager> cancellation;
    if (step.kernel->calls_functions()) params.cancellation_manager = &cancellation.emplace();
    tensorflow::OpKernelContext context(&params);
    Manner manner;
    if (step.kernel->choice() != nullptr) {
      manner.threads = values->threads;
      for (int slot : step.inputs) manner.bytes += values->slots[slot].TotalBytes();
    }
    step.kernel->Compute(&params, &context, &manner);
    TF_RETURN_IF_ERROR(context.status());
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      std::unique_ptr<tensorflow::Tensor> output(context.release_output(i).tensor);
      if (output == nullptr) return absl::InternalError("the kernel left an output unset");
      if (output->dtype() != step.kernel->kernel()->output_type(i)) {
        return absl::InternalError("the kernel made an output of another dtype");
      }
      values->slots[step.outputs[i]] = std::move(*output);
    }
    return absl::OkStatus();
  }

  std::vector<tensorflow::Tensor> constants_;
  std::vector<std::unique_ptr<Activation>> idle_;  // guarded by the GIL
};

}  // namespace fastops

#endif  // FASTOPS_CPP_PLAN_H_
