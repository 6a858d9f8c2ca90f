// LearnedPrimitive: a cached primitive for the sizes of inputs that its kernel has computed before.
#ifndef FASTOPS_CPP_ONEDNN_LEARNED_PRIMITIVE_H_
#define FASTOPS_CPP_ONEDNN_LEARNED_PRIMITIVE_H_

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "onednn/cached_primitive.h"
#include "onednn/primitive_cache.h"
#include "onednn/streams.h"
#include "onednn/symbols.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace fastops {

// `Entry` holds the data that a call needs besides the primitive, for inputs of certain `sizes`.
template <typename Entry>
class LearnedPrimitive : public CachedPrimitive {
 public:
  bool Compute(tensorflow::OpKernelContext* context) final {
    const auto sizes = SizesOf(context);
    const int known = known_.load(std::memory_order_acquire);
    for (int i = 0; i < known; ++i) {
      if (entries_[i].sizes != sizes) continue;
      tensorflow::MklPrimitive* primitive = FindPrimitive(entries_[i].key);
      if (primitive == nullptr) return false;
      const PrimitiveState* state = ThreadStates::Here().Find(primitive->GetEngine());
      if (state == nullptr || !state->trusted) return false;
      const absl::Status status = Execute(entries_[i], primitive, context);
      if (!status.ok()) context->SetStatus(status);
      return true;
    }
    return false;
  }

  void Learn(tensorflow::OpKernelContext* context) final {
    if (differs_.load(std::memory_order_relaxed)) return;
    const auto sizes = SizesOf(context);
    if (sizes == decltype(sizes){}) return;
    const int known = known_.load(std::memory_order_acquire);
    for (int i = 0; i < known; ++i) {
      if (entries_[i].sizes != sizes) continue;
      // The cache of this thread has a primitive that is not trusted yet. Each new thread starts
      // like this.
      if (Tells(context)) Compare(entries_[i], context);
      return;
    }
    if (known == kMost) return;
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || known != known_.load(std::memory_order_relaxed)) return;
    Entry& entry = entries_[known];
    if (entry.sizes != sizes) {  // learn only sizes that are seen twice in a row
      entry = {};
      entry.sizes = sizes;
      return;
    }
    if (!Tells(context)) return;
    if (!Describe(&entry, context)) {
      differs_.store(true, std::memory_order_relaxed);
    } else if (Compare(entry, context)) {
      known_.store(known + 1, std::memory_order_release);
    }
  }

 protected:
  // The sizes of the inputs; zeros for inputs for which the kernel might use a different primitive.
  virtual decltype(Entry::sizes) SizesOf(tensorflow::OpKernelContext*) const = 0;
  // Whether the kernel's last result identifies the primitive that made it: a different primitive
  // would have given different bytes.
  virtual bool Tells(tensorflow::OpKernelContext*) const { return true; }
  // Fills in the rest of an entry, given the context of a call that the kernel has computed.
  virtual bool Describe(Entry*, tensorflow::OpKernelContext*) const = 0;
  // The mangled name of the primitive's class.
  virtual const char* ClassName() const = 0;
  // Allocates the outputs and runs the primitive.
  virtual absl::Status Execute(const Entry&, tensorflow::MklPrimitive*,
                               tensorflow::OpKernelContext*) const = 0;
  // Runs the primitive on the inputs into other memory, and compares the result with the kernel's.
  virtual bool Repeats(const Entry&, tensorflow::MklPrimitive*,
                       tensorflow::OpKernelContext*) const = 0;

  template <typename Run>
  static absl::Status Guarded(Run run) {
    try {
      run();
    } catch (const std::exception& error) {
      return absl::AbortedError(absl::StrCat("Operation received an exception: ", error.what()));
    }
    return absl::OkStatus();
  }

  static bool SameBytes(const tensorflow::Tensor& left, const tensorflow::Tensor& right) {
    return std::memcmp(left.data(), right.data(), left.TotalBytes()) == 0;
  }

 private:
  static constexpr int kMost = 4;  // how many sizes one kernel learns, such as batch sizes

  // Trusts the primitive if it gives the same bytes as the kernel. The check is needed because the
  // key does not contain the layout in which the primitive expects constant weights.
  bool Compare(const Entry& entry, tensorflow::OpKernelContext* context) {
    tensorflow::MklPrimitive* primitive = FindPrimitive(entry.key);
    const bool same = primitive != nullptr &&
                      typeid(*primitive).name() == std::string(ClassName()) &&
                      Repeats(entry, primitive, context);
    if (same) {
      ThreadStates::Here().Find(primitive->GetEngine())->trusted = true;
    } else {
      differs_.store(true, std::memory_order_relaxed);
    }
    return same;
  }

  std::mutex mutex_;
  std::array<Entry, kMost> entries_;  // the first known_ do not change; mutex_ guards the next one
  // Stored with release after the entry is complete, and loaded with acquire before entries are
  // read. Under mutex_ a relaxed load suffices, since it is only stored there.
  std::atomic<int> known_{0};
  // The kernel uses a different primitive: stop learning. Relaxed: nothing is read because of it,
  // and a thread that sees it late compares once more.
  std::atomic<bool> differs_{false};
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_LEARNED_PRIMITIVE_H_
