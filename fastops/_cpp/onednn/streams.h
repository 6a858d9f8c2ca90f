// The oneDNN streams in which the calling thread runs primitives.
#ifndef FASTOPS_CPP_ONEDNN_STREAMS_H_
#define FASTOPS_CPP_ONEDNN_STREAMS_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>

#include "onednn/symbols.h"

namespace fastops {

// Runs all parts of the work in the calling thread. Reports as many threads as the kernel's pool
// has, so that oneDNN splits the work in the same way.
class SerialPool : public tsl::OneDnnThreadPool {
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

// The state of one primitive in one thread. Each primitive has an engine of its own and accepts
// only streams of that engine. The engine is kept alive here, so no other primitive's engine can
// get its address.
struct PrimitiveState {
  SerialPool pool;
  dnnl::engine engine;
  symbols::Stream stream;
  bool trusted = false;       // the primitive has given the same bytes as the kernel
  bool needs_scratch = true;  // the primitive needs memory to work in, or this is not known yet
};

// The states of all primitives of this thread. Each call looks up the same state several times, so
// `last` caches the last result.
struct ThreadStates {
  static constexpr size_t kMost = 1024;  // the capacity of TensorFlow's cache of primitives

  static ThreadStates& Here() {
    static thread_local ThreadStates here;
    return here;
  }

  // Returns null for a primitive that has not run in this thread.
  PrimitiveState* Find(const dnnl::engine& engine) {
    if (last == nullptr || last->engine.get(true) != engine.get(true)) {
      const auto entry = all.find(engine.get(true));
      last = entry == all.end() ? nullptr : &entry->second;
    }
    return last;
  }

  PrimitiveState& Get(const dnnl::engine& engine) {
    if (Find(engine) == nullptr) {
      if (all.size() == kMost) all.clear();
      last = &all[engine.get(true)];
      last->engine = engine;
    }
    if (last->stream == nullptr) last->stream.reset(symbols::CreateStream(&last->pool, engine));
    return *last;
  }

  std::unordered_map<dnnl_engine_t, PrimitiveState> all;
  PrimitiveState* last = nullptr;
};

// The stream of a primitive in this thread. It splits work as for `threads` threads.
inline const symbols::Stream& StreamOf(tensorflow::MklPrimitive* primitive, int threads) {
  PrimitiveState& state = ThreadStates::Here().Get(primitive->GetEngine());
  state.pool.threads = threads;
  return state.stream;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_STREAMS_H_
