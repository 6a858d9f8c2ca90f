// NativePlan: the kernels of a graph in execution order, and the slots that hold their values.
#ifndef FASTOPS_CPP_PLAN_H_
#define FASTOPS_CPP_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/synchronization/notification.h"
#include "draws.h"
#include "invariants.h"
#include "kernel.h"
#include "placed.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensors.h"

namespace fastops {

// One node, or a loop of nodes.
struct NativeStep {
  enum StepKind { kKernel, kRead, kCopy, kSwitch, kMerge, kLoop, kNothing };

  StepKind kind = kKernel;
  int number = 0;        // steps inside of loops are counted, too
  std::string location;  // of the node, for errors
  std::shared_ptr<PreparedKernel> kernel;
  std::shared_ptr<PlacedKernel> placed;  // replaces `kernel` in a plan for another device
  std::vector<int> inputs;               // slots
  std::vector<int> outputs;              // slots; -1 for an output that is not used
  std::vector<int> shared;    // indices of the inputs whose values are still needed later
  std::vector<int> releases;  // slots to empty after this step
  std::vector<int> needs;     // the step is dead if one of these slots is dead
  int control = -1;           // marked dead with the step, for its control dependents
  bool seeded = false;        // a random kernel with seeds: it draws as `SeededKernel` does

  // For a loop. Each loop variable has three slots: `entered` holds its first value, the body reads
  // it from `current`, and leaves its next value in `next`.
  std::vector<NativeStep> enters, body, exits;
  std::vector<int> entered, current, next;
  int condition = -1;

  // Guards. The run fails if an output does not have the shape, or a slot does not have the bytes,
  // that the plan was made for. `sizes` is by output index, `values` by slot.
  std::vector<std::pair<int, tensorflow::TensorShape>> sizes;
  std::vector<std::pair<int, tensorflow::Tensor>> values;

  void Want(int output, const std::vector<int64_t>& wanted) {
    sizes.emplace_back(output, tensorflow::TensorShape(wanted));
  }
  void Check(int slot, const tensorflow::Tensor& value) { values.emplace_back(slot, value); }
};

// The status of a run in which a guard of a step failed.
inline absl::Status Different() {
  return absl::AbortedError("fastops: a value or size differs from the recording");
}
inline bool Differs(const absl::Status& status) { return status == Different(); }

// How often each step ran, and for how many nanoseconds, by step number.
struct Times {
  std::vector<int64_t> runs, ns;
};

// The values of one run. Slots of constants keep their values between runs.
struct Activation {
  std::vector<tensorflow::Tensor> slots;
  std::vector<char> dead;
  Times* times = nullptr;  // null: not measured
  Threads threads = Threads::kAuto;
};

using Borrowed = absl::InlinedVector<const tensorflow::Tensor*, 8>;
using Made = absl::InlinedVector<tensorflow::Tensor, 4>;

// What a plan assumes of the tensors that a call passes: their dtypes, and the dtypes and shapes of
// the resources that handles refer to.
class ArgumentKinds {
 public:
  // Assumes what holds for these tensors.
  void Assign(const Borrowed& tensors) {
    arguments_.clear();
    for (const tensorflow::Tensor* tensor : tensors) {
      arguments_.push_back({tensor->dtype(), ResourcesOf(*tensor)});
    }
  }

  bool Match(const Borrowed& given) const {
    if (given.size() != arguments_.size()) return false;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]->dtype() != arguments_[i].dtype) return false;
      if (given[i]->dtype() != tensorflow::DT_RESOURCE) continue;
      if (!Same(ResourcesOf(*given[i]), arguments_[i].resources)) return false;
    }
    return true;
  }

 private:
  using Resources = std::vector<tensorflow::DtypeAndPartialTensorShape>;

  struct Argument {
    tensorflow::DataType dtype;
    Resources resources;
  };

  static Resources ResourcesOf(const tensorflow::Tensor& tensor) {
    if (tensor.dtype() != tensorflow::DT_RESOURCE || tensor.NumElements() != 1) return {};
    return tensor.flat<tensorflow::ResourceHandle>()(0).dtypes_and_shapes();
  }

  static bool Same(const Resources& left, const Resources& right) {
    if (left.size() != right.size()) return false;
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i].dtype != right[i].dtype || !left[i].shape.IsIdenticalTo(right[i].shape)) {
        return false;
      }
    }
    return true;
  }

  std::vector<Argument> arguments_;
};

// Runs overlap, and read `steps` while the GIL is released. So steps and slots are filled in before
// the plan is first run, and then stay the same. Each run has its own activation, which it takes
// and returns with the GIL. If a thread of TensorFlow runs the steps, scheduling and the
// notification order what the two threads write.
class NativePlan {
 public:
  std::vector<NativeStep> steps;
  std::vector<int> arguments;  // slots; -1 for an argument that is not used
  std::vector<int> results;
  std::vector<int> transient;  // slots to empty after a run that failed
  bool conditional = false;    // whether any slot may be dead
  // Runs the steps in one of TensorFlow's threads. Null: they run in the calling thread. Python
  // functions may depend on their thread: on locals of the thread, on numpy.errstate, on signals.
  const ThreadRunner* runner = nullptr;
  Times times;                          // sums over the measured runs; guarded by the GIL
  std::vector<DrawSequence> sequences;  // of the random kernels with seeds

  // Makes room for the values of a run.
  void Resize(int num_slots) { constants_.resize(num_slots); }

  // Computes a node without inputs, and stores its value in a slot for all runs.
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

  // Copies everything except for `times` to another plan.
  void CopyTo(NativePlan* other) const {
    other->steps = steps;
    other->arguments = arguments;
    other->results = results;
    other->transient = transient;
    other->conditional = conditional;
    other->constants_ = constants_;
  }

  // Empties a slot that `Hold` has filled.
  void Release(int slot) { constants_[slot] = tensorflow::Tensor(); }

  // Stores a constant in a slot for all runs.
  void Hold(int slot, const tensorflow::Tensor& value) { constants_[slot] = value; }

  // Makes the draws of a number of runs, without their results. Returns false if the number of
  // draws may differ from run to run, since a step has inputs that are not constant, or may not run
  // once.
  bool CatchUp(int64_t runs) const {
    size_t found = 0;
    for (const NativeStep& step : steps) {
      if (!step.seeded) continue;
      ++found;
      if (!step.needs.empty()) return false;
      absl::InlinedVector<tensorflow::Tensor, 4> values;
      absl::InlinedVector<tensorflow::TensorValue, 4> inputs;
      for (int slot : step.inputs) {
        if (!constants_[slot].IsInitialized()) return false;
        values.push_back(constants_[slot]);
      }
      for (auto& value : values) inputs.emplace_back(&value);
      for (int64_t run = 0; run < runs; ++run) {
        tensorflow::Tensor drawn;
        if (!step.kernel->RunUnwrapped(inputs.data(), &drawn, nullptr)) return false;
      }
    }
    return found == sequences.size();  // else some are in loops
  }

  // How often oneDNN's primitive ran without the kernel, in all steps.
  int64_t PrimitiveRuns() const { return PrimitiveRuns(steps); }

  // Runs all steps. The arguments are borrowed, the results are appended to `made`. The GIL is held
  // on entry and exit, and released in between if `release_gil`. Adds to `times` if `measured`.
  absl::Status Run(const Borrowed& given, bool release_gil, Threads threads, bool measured,
                   Made* made, const NativeStep** failed) {
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
    for (size_t i = 0; i < given.size(); ++i) {  // own them: other threads may free them
      if (arguments[i] >= 0) activation->slots[arguments[i]] = *given[i];
    }
    {
      ScopedGilRelease gil(release_gil);
      if (runner == nullptr) {
        status = RunAll(activation.get(), made, failed);
      } else {
        FASTOPS_ASSERT(release_gil);  // the other thread takes it
        absl::Notification done;
        (*runner)([&] {
          status = RunAll(activation.get(), made, failed);
          done.Notify();
        });
        done.WaitForNotification();
      }
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
  // Runs all steps, and takes the results.
  absl::Status RunAll(Activation* values, Made* made, const NativeStep** failed) const {
    ScopedFloatMode mode;
    if (conditional) values->dead.assign(values->slots.size(), 0);
    absl::Status status = RunSteps(steps, values, failed);
    if (status.ok()) {
      made->reserve(results.size());
      for (int slot : results) {
        if (conditional && values->dead[slot]) {
          status = absl::InternalError("a result has no value");
          break;
        }
        made->push_back(values->slots[slot]);
      }
    }
    for (int slot : transient) values->slots[slot] = tensorflow::Tensor();
    return status;
  }

  static int64_t PrimitiveRuns(const std::vector<NativeStep>& steps) {
    int64_t runs = 0;
    for (const NativeStep& step : steps) {
      if (step.kernel != nullptr) runs += step.kernel->primitive_runs();
      runs += PrimitiveRuns(step.enters) + PrimitiveRuns(step.body) + PrimitiveRuns(step.exits);
    }
    return runs;
  }

  // Takes an idle activation or makes one, since runs may overlap. The GIL is held.
  std::unique_ptr<Activation> Take() {
    if (!idle_.empty()) {
      std::unique_ptr<Activation> activation = std::move(idle_.back());
      idle_.pop_back();
      return activation;
    }
    auto activation = std::make_unique<Activation>();
    activation->slots = constants_;  // shares the buffers, so no kernel reuses one
    return activation;
  }

  absl::Status RunSteps(const std::vector<NativeStep>& steps, Activation* values,
                        const NativeStep** failed) const {
    for (const NativeStep& step : steps) {
      if (conditional && IsDead(step, *values)) {
        for (int slot : step.outputs) {
          if (slot >= 0) values->dead[slot] = 1;
        }
        if (step.control >= 0) values->dead[step.control] = 1;
        if (step.kind == NativeStep::kLoop) Kill(step, values);
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
        case NativeStep::kKernel:
          status = Compute(step, values);
          break;
        case NativeStep::kRead:
          if (!Read(step, values)) status = Compute(step, values);
          break;
        case NativeStep::kCopy:
          if (step.outputs[0] >= 0) Move(step, step.inputs[0], step.outputs[0], values);
          break;
        case NativeStep::kNothing:
          break;
        case NativeStep::kSwitch: {
          size_t taken = 0;
          status = Side(values->slots[step.inputs[1]], step.outputs.size(), &taken);
          if (!status.ok()) break;
          for (size_t side = 0; side < step.outputs.size(); ++side) {
            if (side != taken && step.outputs[side] >= 0) values->dead[step.outputs[side]] = 1;
          }
          if (step.outputs[taken] >= 0) Move(step, step.inputs[0], step.outputs[taken], values);
          break;
        }
        case NativeStep::kMerge:
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
        case NativeStep::kLoop:
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

  bool IsDead(const NativeStep& step, const Activation& values) const {
    for (int slot : step.needs) {
      if (values.dead[slot]) return true;
    }
    if (step.kind != NativeStep::kMerge) return false;
    for (int slot : step.inputs) {
      if (!values.dead[slot]) return false;
    }
    return true;
  }

  static bool AsWanted(const NativeStep& step, const Activation& values) {
    for (const auto& [output, shape] : step.sizes) {
      if (values.slots[step.outputs[output]].shape() != shape) return false;
    }
    for (const auto& [slot, value] : step.values) {
      if (!SameBytes(values.slots[slot], value)) return false;
    }
    return true;
  }

  static void Kill(const NativeStep& loop, Activation* values) {
    for (const NativeStep& exit : loop.exits) {
      for (int slot : exit.outputs) {
        if (slot >= 0) values->dead[slot] = 1;
      }
      if (exit.control >= 0) values->dead[exit.control] = 1;
    }
  }

  // Moves a value to another slot. Copies it if a later step still needs the old slot.
  static void Move(const NativeStep& step, int from, int to, Activation* values) {
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

  // Determines which output of a switch gets the value. `tensor` is a condition or an index. An
  // index out of range selects the last output.
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

  absl::Status RunLoop(const NativeStep& loop, Activation* values,
                       const NativeStep** failed) const {
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

  // Reads a variable as its kernel does, without the kernel. Returns false in unusual cases, which
  // the kernel handles.
  static bool Read(const NativeStep& step, Activation* values) {
    const tensorflow::Tensor& handle = values->slots[step.inputs[0]];
    if (handle.dtype() != tensorflow::DT_RESOURCE || handle.NumElements() != 1) return false;
    const auto& resource = handle.flat<tensorflow::ResourceHandle>()(0);
    if (!resource.IsRefCounting()) return false;
    const auto lookup = resource.GetResource<tensorflow::Var>();
    if (!lookup.ok()) return false;
    tensorflow::Var* variable = *lookup;
    tensorflow::tf_shared_lock lock(*variable->mu());
    const tensorflow::Tensor& value = *variable->tensor();
    if (variable->copy_on_read_mode.load() || !variable->is_initialized ||
        value.dtype() != step.kernel->kernel()->output_type(0)) {
      return false;
    }
    if (step.outputs[0] >= 0) values->slots[step.outputs[0]] = value;
    return true;
  }

  static absl::Status ComputePlaced(const NativeStep& step, Activation* values) {
    tensorflow::EagerKernelArgs inputs(step.inputs.size());
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      *inputs.MutableInput(i) = tensorflow::TensorValue(&values->slots[step.inputs[i]]);
    }
    absl::InlinedVector<tensorflow::Tensor, 4> kept;
    for (int i : step.shared) kept.push_back(values->slots[step.inputs[i]]);
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

  static absl::Status Compute(const NativeStep& step, Activation* values) {
    if (step.placed != nullptr) return ComputePlaced(step, values);
    absl::InlinedVector<tensorflow::TensorValue, 8> inputs(step.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = tensorflow::TensorValue(&values->slots[step.inputs[i]]);
    }
    // A kernel reuses an input buffer with a single reference. These references prevent that for
    // values that are still needed.
    absl::InlinedVector<tensorflow::Tensor, 4> kept;
    for (int i : step.shared) kept.push_back(values->slots[step.inputs[i]]);
    tensorflow::OpKernelContext::Params params;
    step.kernel->Describe(&params);
    params.inputs = absl::MakeConstSpan(inputs.data(), inputs.size());
    std::optional<tensorflow::CancellationManager> cancellation;
    if (step.kernel->calls_functions()) params.cancellation_manager = &cancellation.emplace();
    tensorflow::OpKernelContext context(&params);
    Manner manner;
    if (step.kernel->choice() != nullptr) {
      manner.threads = step.seeded ? Threads::kPool : values->threads;
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
