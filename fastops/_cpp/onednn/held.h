// Held: what the held primitives have in common, for which sizes they are known and how to run one.
#ifndef FASTOPS_CPP_ONEDNN_HELD_H_
#define FASTOPS_CPP_ONEDNN_HELD_H_

// As TensorFlow is built with a oneDNN of version 3.
#ifndef ENABLE_ONEDNN_V3
#define ENABLE_ONEDNN_V3
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "onednn/primitives.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/util/mkl_util.h"

// Names a function that TensorFlow's library exports, an instance of a template or an inline
// function: compiled here, it would call functions of oneDNN's that the library hides. Weak, since
// nothing says that every TensorFlow exports it.
#define FASTOPS_THEIRS(symbol) asm("_ZN10tensorflow" symbol) __attribute__((weak))

namespace fastops {

namespace theirs {

using Stream = std::shared_ptr<dnnl::stream>;

dnnl::stream* CreateStream(tsl::OneDnnThreadPool*, const dnnl::engine&)
    FASTOPS_THEIRS("12CreateStreamEPN3tsl16OneDnnThreadPoolERKN4dnnl6engineE");

tensorflow::MklPrimitive* GetOp(tensorflow::MklPrimitiveFactory<float>*, const std::string& key)
    FASTOPS_THEIRS(
        "19MklPrimitiveFactoryIfE5GetOpERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");

}  // namespace theirs

// Says it has as many threads as the kernel's pool, so that work is split as it splits it, and runs
// all parts in the calling one.
class OwnThread : public tsl::OneDnnThreadPool {
 public:
  int threads = 1;

  int get_num_threads() const override { return threads; }
  bool get_in_parallel() const override { return Within(); }
  void parallel_for(int n, const std::function<void(int, int)>& task) override {
    const int jobs = std::min(n, threads);
    const bool outer = std::exchange(Within(), true);
    for (int i = 0; i < jobs; ++i) tsl::run_jobs(threads < n, i, n, jobs, task);
    Within() = outer;
  }

 private:
  static bool& Within() {
    static thread_local bool within = false;
    return within;
  }
};

// What is kept of a primitive in one thread. Each has an engine of its own, and takes that engine's
// streams alone; while the engine is kept, none of another primitive has its address.
struct Kept {
  OwnThread pool;
  dnnl::engine engine;
  theirs::Stream stream;
  bool trusted = false;  // it has given the bytes of a kernel's result
};

// Those of this thread, and the one that was asked for last, as each call does more than once.
struct AllKept {
  static constexpr size_t kMost = 1024;  // as TensorFlow keeps primitives

  static AllKept& Here() {
    static thread_local AllKept here;
    return here;
  }

  // Null for one that has not been run here.
  Kept* Find(const dnnl::engine& engine) {
    if (last == nullptr || last->engine.get(true) != engine.get(true)) {
      const auto found = all.find(engine.get(true));
      last = found == all.end() ? nullptr : &found->second;
    }
    return last;
  }

  Kept& Get(const dnnl::engine& engine) {
    if (Find(engine) == nullptr) {
      if (all.size() == kMost) all.clear();
      last = &all[engine.get(true)];
      last->engine = engine;
    }
    if (last->stream == nullptr) last->stream.reset(theirs::CreateStream(&last->pool, engine));
    return *last;
  }

  std::unordered_map<dnnl_engine_t, Kept> all;
  Kept* last = nullptr;
};

inline const theirs::Stream& StreamOf(tensorflow::MklPrimitive* primitive, int threads) {
  Kept& kept = AllKept::Here().Get(primitive->GetEngine());
  kept.pool.threads = threads;
  return kept.stream;
}

// `Entry` has what one call needs beyond the primitive, for inputs of certain `sizes`.
template <typename Entry>
class Held : public HeldPrimitive {
 public:
  bool Compute(tensorflow::OpKernelContext* context) final {
    const auto sizes = SizesOf(context);
    const int known = known_.load(std::memory_order_acquire);
    for (int i = 0; i < known; ++i) {
      if (entries_[i].sizes != sizes) continue;
      tensorflow::MklPrimitive* primitive = Find(entries_[i].key);
      if (primitive == nullptr) return false;
      const Kept* kept = AllKept::Here().Find(primitive->GetEngine());
      if (kept == nullptr || !kept->trusted) return false;
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
      if (Tells(context)) Compare(entries_[i], context);  // another primitive, as of another thread
      return;
    }
    if (known == kMost) return;
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || known != known_.load(std::memory_order_relaxed)) return;
    Entry& entry = entries_[known];
    if (entry.sizes != sizes) {  // once is no habit
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
  // The sizes of inputs of which it is beyond doubt what the kernel computes; else none.
  virtual decltype(Entry::sizes) SizesOf(tensorflow::OpKernelContext*) const = 0;
  // Whether what the kernel has just computed would differ from most of what might be confused with
  // it.
  virtual bool Tells(tensorflow::OpKernelContext*) const { return true; }
  // Fills in the rest of an entry, for what the kernel has just computed.
  virtual bool Describe(Entry*, tensorflow::OpKernelContext*) const = 0;
  // Of the primitive, mangled.
  virtual const char* ClassName() const = 0;
  // Makes the outputs.
  virtual absl::Status Execute(const Entry&, tensorflow::MklPrimitive*,
                               tensorflow::OpKernelContext*) const = 0;
  // Runs the primitive on the inputs into other memory, and compares it with the outputs.
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

  static bool SameBytes(const tensorflow::Tensor& one, const tensorflow::Tensor& other) {
    return std::memcmp(one.data(), other.data(), one.TotalBytes()) == 0;
  }

 private:
  static constexpr int kMost = 4;  // sizes, as of batches

  // The primitive that kernels of this thread have made under a key; it may be gone.
  static tensorflow::MklPrimitive* Find(const std::string& key) {
    tensorflow::MklPrimitiveFactory<float> factory;  // has nothing of its own
    return theirs::GetOp(&factory, key);
  }

  // Nearly all that the kernel decides by is in the key: if it has just used a primitive under this
  // key, it has used what is described here. To be sure, and since the order in which the primitive
  // wants constant weights is not in the key, it must give the same for once.
  bool Compare(const Entry& entry, tensorflow::OpKernelContext* context) {
    tensorflow::MklPrimitive* primitive = Find(entry.key);
    const bool same = primitive != nullptr &&
                      typeid(*primitive).name() == std::string(ClassName()) &&
                      Repeats(entry, primitive, context);
    if (same) {
      AllKept::Here().Find(primitive->GetEngine())->trusted = true;
    } else {
      differs_.store(true, std::memory_order_relaxed);
    }
    return same;
  }

  std::mutex mutex_;
  std::array<Entry, kMost> entries_;  // up to known_ they stay as they are; the next is mutex_'s
  std::atomic<int> known_{0};
  std::atomic<bool> differs_{false};  // the kernel does something else: nothing is to be learnt
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_HELD_H_
