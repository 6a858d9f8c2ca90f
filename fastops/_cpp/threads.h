// In which threads a kernel's tasks run: those of TensorFlow's pool, or the one that called it.
//
// Kernels split their work by the number of threads, and wait for all parts. To hand a part to
// another thread and to wait for it takes 5 to 50 us, many times what a kernel has to do for a
// small tensor. A pool that says it has as many threads and runs each task at once splits the work
// in the same way, so that every bit of the result stays the same.
#ifndef FASTOPS_CPP_THREADS_H_
#define FASTOPS_CPP_THREADS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "options.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow/core/platform/threadpool_interface.h"
#include "timer.h"

namespace fastops {

// Runs tasks in the thread that schedules them, before `Schedule` returns. Who schedules tasks and
// then waits for them finds them done. No task of TensorFlow's kernels, of Eigen's or of oneDNN's
// waits for one that is scheduled after it (oneDNN's DNNL_THR_SYNC is 0 where it is given a pool).
class CallerPool : public tsl::thread::ThreadPoolInterface {
 public:
  // `pool` is borrowed: whose number of threads this one says it has.
  explicit CallerPool(Eigen::ThreadPoolInterface* pool) : pool_(pool) {}

  void Schedule(std::function<void()> task) override {
    if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
    // Tasks schedule tasks. Eigen's contractions would nest one in another for each block of the
    // inner dimension: beyond this depth they are given real threads, so that no stack overflows.
    if (Depth() == kDeepest) {
      pool_->Schedule(std::move(task));
      return;
    }
    ++Depth();
    task();
    --Depth();
  }
  void ScheduleWithHint(std::function<void()> task, int, int) override {
    Schedule(std::move(task));
  }
  void Cancel() override {}
  int NumThreads() const override { return pool_->NumThreads(); }
  // oneDNN asks whether it is within a task already: -1 says no.
  int CurrentThreadId() const override { return Depth() > 0 ? 0 : pool_->CurrentThreadId(); }

  // Whether there was a task since somebody asked, of whichever thread.
  bool TakeUsed() {
    return used_.load(std::memory_order_relaxed) &&
           used_.exchange(false, std::memory_order_relaxed);
  }

 private:
  static constexpr int kDeepest = 32;

  static int& Depth() {
    static thread_local int depth = 0;
    return depth;
  }

  Eigen::ThreadPoolInterface* const pool_;
  std::atomic<bool> used_{false};
};

// Which of the two is faster for a kernel, by the size of its inputs: found out in calls that are
// made anyway, and the faster one is taken from then on. Threads may ask at once; what they then
// get wrong is which one is faster.
class ThreadChoice {
 public:
  // What one call does.
  struct Turn {
    bool caller;
    int size = -1;    // that somebody wants to hear of; negative: nobody does
    int number = -1;  // of the trial; negative: it is none
  };

  // What was found for inputs of less than so many bytes.
  struct Found {
    int64_t bytes;
    Threads threads;             // kAuto: not known yet
    int64_t caller_ns, pool_ns;  // the least; 0: not measured
  };

  Turn Begin(Threads wanted, size_t bytes) {
    if (wanted != Threads::kAuto) return {wanted == Threads::kCaller};
    const int size = SizeOf(bytes);
    Size& one = sizes_[size];
    switch (one.state.load(std::memory_order_relaxed)) {
      case kIdle:
        return {true, size};
      case kCallerForGood:
        return {true};
      case kPoolForGood:
        return {false};
      case kOpen:
        break;
    }
    const int number = one.calls.fetch_add(1, std::memory_order_relaxed) % kPeriod;
    if (number >= kTrials) {
      return {one.settled.load(std::memory_order_relaxed) == Threads::kCaller};
    }
    // With many processors the caller alone may take many times as long: what takes the pool so
    // long that handing it on is but a small part is not tried.
    const bool caller =
        number / kBlock % 2 == 1 && one.pool_ns.load(std::memory_order_relaxed) < kLong;
    return {caller, size, number};
  }

  // After a turn that somebody wants to hear of. `used`: whether there was anything to hand on; it
  // counts where the caller kept it.
  void End(const Turn& turn, int64_t ns, bool used) {
    Size& one = sizes_[turn.size];
    if (turn.caller && used == (turn.number < 0)) {
      // Nothing to choose, as long as that is so: other shapes have the same size.
      one.settled.store(Threads::kCaller, std::memory_order_relaxed);
      one.calls.store(0, std::memory_order_relaxed);
      one.state.store(used ? kOpen : kIdle, std::memory_order_relaxed);
      return;
    }
    if (turn.number < 0) return;
    std::atomic<int64_t>& least = turn.caller ? one.caller_ns : one.pool_ns;
    const int64_t before = least.load(std::memory_order_relaxed);
    if (turn.number == 0) {  // what was found in an earlier period counts no more
      one.caller_ns.store(0, std::memory_order_relaxed);
      one.pool_ns.store(0, std::memory_order_relaxed);
    } else if (turn.number % kBlock != 0 && (before == 0 || ns < before)) {
      least.store(ns, std::memory_order_relaxed);
    }
    if (turn.number != kTrials - 1) return;
    const int64_t caller = one.caller_ns.load(std::memory_order_relaxed);
    const int64_t pool = one.pool_ns.load(std::memory_order_relaxed);
    // Where little is to be gained it is TensorFlow's.
    const bool callers = caller != 0 && 10 * caller <= 9 * pool;
    one.settled.store(callers ? Threads::kCaller : Threads::kPool, std::memory_order_relaxed);
    if (caller == 0 || std::max(caller, pool) < kClear * std::min(caller, pool)) return;
    one.state.store(callers ? kCallerForGood : kPoolForGood, std::memory_order_relaxed);
  }

  // In the order of sizes, those of which there were calls.
  std::vector<Found> Describe() const {
    std::vector<Found> found;
    for (int size = 0; size < kSizes; ++size) {
      const Size& one = sizes_[size];
      if (one.calls.load() == 0 && one.state.load() == kOpen) continue;
      found.push_back(
          {int64_t{1} << 2 * size, one.settled.load(), one.caller_ns.load(), one.pool_ns.load()});
    }
    return found;
  }

 private:
  static constexpr int kSizes = 24;  // powers of four
  // Trials: some with the pool, some in the caller, and so once more. The first of each makes what
  // the others find, and wakes the pool's threads, which fall asleep where they have nothing to do.
  static constexpr int kBlock = 8;
  static constexpr int kTrials = 4 * kBlock;   // then the faster one is known,
  static constexpr int kPeriod = 1 << 11;      // and after so many calls asked for again,
  static constexpr int kClear = 4;             // unless it is so many times as fast
  static constexpr int64_t kLong = 1'000'000;  // ns

  enum State : char {
    kOpen,
    kIdle,  // there has been nothing to hand on
    kCallerForGood,
    kPoolForGood,
  };

  struct Size {
    std::atomic<State> state{kOpen};
    std::atomic<Threads> settled{Threads::kAuto};
    std::atomic<unsigned> calls{0};
    std::atomic<int64_t> caller_ns{0}, pool_ns{0};
  };

  static int SizeOf(size_t bytes) {
    const int bits = bytes == 0 ? 0 : 64 - __builtin_clzll(bytes);
    return std::min((bits + 1) / 2, kSizes - 1);
  }

  std::array<Size, kSizes> sizes_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_THREADS_H_
