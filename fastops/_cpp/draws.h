// Draws by seeds: the first draw of any pair of seeds, and the pairs that have drawn.
#ifndef FASTOPS_CPP_DRAWS_H_
#define FASTOPS_CPP_DRAWS_H_

#include <Python.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compat.h"
#include "invariants.h"
#include "kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/random/philox_random.h"
#include "tensorflow/core/util/guarded_philox_random.h"

namespace fastops {

// The generator of a kernel in a plan, and the pair of seeds with which its sequence begins.
struct DrawSequence {
  tensorflow::GuardedPhiloxRandom* guarded;  // in the kernel
  int64_t seed;
  int64_t seed2;

  // Another thread may run the kernel.
  void Begin() const {
    tensorflow::mutex_lock lock(MutexOf(*guarded));
    StateOf(*guarded) = tensorflow::random::PhiloxRandom(seed, seed2);
  }
};

// A kernel that makes the first draw of any pair of seeds.
//
// TensorFlow makes a kernel for each pair, sets its generator by the pair, and keeps it. Everything
// else about the kernel is the same for all pairs. So one kernel will do, if its generator is set
// before each draw.
class SeededKernel {
 public:
  static constexpr int64_t kSeed = 0x1234567, kSeed2 = 0x7654321;

  // `node` has the seeds above. Returns null if the kernel cannot be made, or if its generator is
  // not where it should be.
  static std::shared_ptr<SeededKernel> Make(const Runtime& runtime, tensorflow::NodeDef node,
                                            int num_outputs, bool sampler) {
    absl::Status status;
    std::shared_ptr<SeededKernel> made(new SeededKernel);
    made->kernel_ =
        PreparedKernel::Make(runtime, std::move(node), num_outputs, false, false, &status);
    if (made->kernel_ == nullptr) return nullptr;
    auto* guarded = GeneratorOf(made->kernel_->kernel(), sampler, kSeed, kSeed2);
    if (guarded == nullptr) return nullptr;
    made->generator_ = &StateOf(*guarded);
    return made;
  }

  // Whether another thread is in the kernel, without the GIL.
  bool busy() const { return busy_; }

  // See PreparedKernel::Run. The draws of Multinomial depend on how the thread pool divides the
  // rows; those of all other kernels do not depend on threads. So tasks run in the pool, as in
  // TensorFlow.
  int Run(int64_t seed, int64_t seed2, const tensorflow::TensorValue* inputs, PyObject** results,
          absl::Status* status, Manner* manner) {
    FASTOPS_ASSERT(PyGILState_Check() && !busy_);
    busy_ = true;
    *generator_ = tensorflow::random::PhiloxRandom(seed, seed2);
    manner->threads = Threads::kPool;
    const int code = kernel_->Run(inputs, results, status, manner);
    busy_ = false;
    return code;
  }

 private:
  SeededKernel() = default;

  std::shared_ptr<PreparedKernel> kernel_;
  tensorflow::random::PhiloxRandom* generator_ = nullptr;
  // Guarded by the GIL, which is released while the kernel draws. A thread that finds it false
  // also sees what the last draw has written to the generator, for which it takes no lock.
  bool busy_ = false;
};

// The pairs of seeds that kernels of one kind have drawn from, since TensorFlow last dropped its
// kernels. It takes 9 to 18 bytes for a pair. The GIL guards it.
class SeedPairs {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  // TensorFlow's kernel is up to date.
  static constexpr uint32_t kTensorFlow = kNone - 1;

  // Whether pairs like this one can be stored. TensorFlow's functions make no others.
  static bool CanStore(int64_t seed, int64_t seed2) {
    return seed >= 0 && seed <= std::numeric_limits<int32_t>::max() && seed2 >= 0 &&
           seed2 <= std::numeric_limits<int32_t>::max();
  }

  // Returns kNone for a pair that has not drawn; kTensorFlow; or the number that was stored.
  uint32_t Find(int64_t seed, int64_t seed2) {
    const auto* seconds = Of(seed);
    const auto entry = seconds->find(static_cast<uint32_t>(seed2));
    return entry == seconds->end() ? kNone : entry->second;
  }

  void Store(int64_t seed, int64_t seed2, uint32_t number) {
    (*Of(seed))[static_cast<uint32_t>(seed2)] = number;
  }

  void Clear() {
    pairs_.clear();
    last_ = nullptr;
  }

  size_t size() const {
    size_t size = 0;
    for (const auto& [seed, seconds] : pairs_) size += seconds->size();
    return size;
  }

  struct Pair {
    int64_t seed;
    int64_t seed2;
    uint32_t number;
  };

  // Returns the pairs whose first draw TensorFlow's kernels have not made.
  std::vector<Pair> Unknown() const {
    std::vector<Pair> pairs;
    for (const auto& [seed, seconds] : pairs_) {
      for (const auto& [seed2, number] : *seconds) {
        if (number != kTensorFlow) pairs.push_back({seed, seed2, number});
      }
    }
    return pairs;
  }

 private:
  using Seconds = absl::flat_hash_map<uint32_t, uint32_t>;

  Seconds* Of(int64_t seed) {
    if (last_ == nullptr || seed != last_seed_) {
      auto& seconds = pairs_[seed];
      if (seconds == nullptr) seconds = std::make_unique<Seconds>();
      last_ = seconds.get();
      last_seed_ = seed;
    }
    return last_;
  }

  absl::flat_hash_map<int64_t, std::unique_ptr<Seconds>> pairs_;
  int64_t last_seed_ = 0;
  Seconds* last_ = nullptr;
};

// What decides how far a draw moves the generator on, as bytes: the shapes of the inputs, and the
// values of those whose bit in `by_value` is set.
inline std::string DrawSizes(const tensorflow::TensorValue* inputs, int num_inputs,
                             unsigned long long by_value) {
  std::string sizes;
  for (int i = 0; i < num_inputs; ++i) {
    const tensorflow::Tensor& tensor = *inputs[i].tensor;
    sizes.push_back(static_cast<char>(tensor.dims()));
    for (int axis = 0; axis < tensor.dims(); ++axis) {
      const int64_t size = tensor.dim_size(axis);
      sizes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    }
    if ((by_value >> i) & 1) sizes.append(tensor.tensor_data());
  }
  return sizes;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_DRAWS_H_
