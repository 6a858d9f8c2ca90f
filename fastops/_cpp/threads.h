// Chooses where a kernel's tasks run: in TensorFlow's thread pool or in the calling thread.
//
// Kernels split their work by the number of threads, and wait for all parts. Passing a part to
// another thread and waiting for it takes 5 to 50 us, many times the work of a kernel on a small
// tensor. `CallerPool` reports the same number of threads as TensorFlow's pool, but runs each task
// at once. Kernels then split the work in the same way, so every bit of the result is the same.
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

// Runs tasks in the thread that schedules them, before `Schedule` returns. By the time a kernel
// waits for its tasks, they have already run. No task of TensorFlow's kernels, of Eigen or of
// oneDNN waits for a task that is scheduled later. (In oneDNN, DNNL_THR_SYNC is 0 for thread pools
// that the caller provides.)
class CallerPool : public tsl::thread::ThreadPoolInterface {
 public:
  // `pool` is borrowed. This pool reports the same number of threads.
  explicit CallerPool(Eigen::ThreadPoolInterface* pool) : pool_(pool) {}

  void Schedule(std::function<void()> task) override {
    if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
    // Tasks schedule tasks. Eigen's contractions would nest one task in another for each block of
    // the inner dimension. Deeper tasks get real threads, so that the stack does not overflow.
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
  // oneDNN calls this to find out whether it runs inside a task. -1 means no.
  int CurrentThreadId() const override { return Depth() > 0 ? 0 : pool_->CurrentThreadId(); }

  // Whether any thread has scheduled a task since the last call of this. Relaxed: the flag
  // publishes nothing. A kernel waits for its tasks, and by that sees their writes, the flag's
  // among them. The flag of another thread's kernel may be taken, which `ThreadChoice` allows.
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

// Finds out which of the two is faster for a kernel, by the size of its inputs. It times some of
// the program's own calls, then uses the faster one for the rest. Races between threads are benign:
// the worst outcome is the slower choice.
//
// All its atomics are relaxed. Each is used alone, and none says that another was written: any mix
// of old and new values chooses one of the two, and both compute the same bits.
class ThreadChoice {
 public:
  // How one call runs.
  struct Turn {
    bool caller;
    int size = -1;    // the index to pass to `End`; negative: `End` is not needed
    int number = -1;  // of the trial; negative: the call is not a trial
  };

  // The findings for inputs of less than `bytes` bytes.
  struct Found {
    int64_t bytes;
    Threads threads;             // kAuto: not known yet
    int64_t caller_ns, pool_ns;  // the shortest times; 0: not measured
  };

  Turn Begin(Threads wanted, size_t bytes) {
    if (wanted != Threads::kAuto) return {wanted == Threads::kCaller};
    const int size = SizeOf(bytes);
    Size& stats = sizes_[size];
    switch (stats.state.load(std::memory_order_relaxed)) {
      case kIdle:
        return {true, size};
      case kCallerForGood:
        return {true};
      case kPoolForGood:
        return {false};
      case kOpen:
        break;
    }
    const int number = stats.calls.fetch_add(1, std::memory_order_relaxed) % kPeriod;
    if (number >= kTrials) {
      return {stats.settled.load(std::memory_order_relaxed) == Threads::kCaller};
    }
    // With many processors the caller alone may take many times as long as the pool. If the pool
    // takes long, passing tasks to it is a small part of that, so the caller is not tried.
    const bool caller =
        number / kBlock % 2 == 1 && stats.pool_ns.load(std::memory_order_relaxed) < kLong;
    return {caller, size, number};
  }

  // Reports a turn with a size. `used`: whether the kernel scheduled tasks. It matters only for
  // turns in the caller.
  void End(const Turn& turn, int64_t ns, bool used) {
    Size& stats = sizes_[turn.size];
    if (turn.caller && used == (turn.number < 0)) {
      // A kernel without tasks leaves nothing to choose. Other shapes of the same size may have
      // tasks; then the trials start again.
      stats.settled.store(Threads::kCaller, std::memory_order_relaxed);
      stats.calls.store(0, std::memory_order_relaxed);
      stats.state.store(used ? kOpen : kIdle, std::memory_order_relaxed);
      return;
    }
    if (turn.number < 0) return;
    std::atomic<int64_t>& least = turn.caller ? stats.caller_ns : stats.pool_ns;
    const int64_t before = least.load(std::memory_order_relaxed);
    if (turn.number == 0) {  // discard the times of the last period
      stats.caller_ns.store(0, std::memory_order_relaxed);
      stats.pool_ns.store(0, std::memory_order_relaxed);
    } else if (turn.number % kBlock != 0 && (before == 0 || ns < before)) {
      least.store(ns, std::memory_order_relaxed);
    }
    if (turn.number != kTrials - 1) return;
    const int64_t caller = stats.caller_ns.load(std::memory_order_relaxed);
    const int64_t pool = stats.pool_ns.load(std::memory_order_relaxed);
    // Use TensorFlow's pool unless the caller is at least 10 % faster.
    const bool callers = caller != 0 && 10 * caller <= 9 * pool;
    stats.settled.store(callers ? Threads::kCaller : Threads::kPool, std::memory_order_relaxed);
    if (caller == 0 || std::max(caller, pool) < kClear * std::min(caller, pool)) return;
    stats.state.store(callers ? kCallerForGood : kPoolForGood, std::memory_order_relaxed);
  }

  // The findings for all sizes that had calls, in ascending order.
  std::vector<Found> Describe() const {
    std::vector<Found> findings;
    for (int size = 0; size < kSizes; ++size) {
      const Size& stats = sizes_[size];
      if (stats.calls.load() == 0 && stats.state.load() == kOpen) continue;
      findings.push_back({int64_t{1} << 2 * size, stats.settled.load(), stats.caller_ns.load(),
                          stats.pool_ns.load()});
    }
    return findings;
  }

 private:
  static constexpr int kSizes = 24;  // powers of four
  // Trials alternate between blocks in the pool and blocks in the caller. The first trial of a
  // block is not counted: it fills caches, and wakes the pool's threads, which sleep when idle.
  static constexpr int kBlock = 8;
  static constexpr int kTrials = 4 * kBlock;   // trials in each period
  static constexpr int kPeriod = 1 << 11;      // calls after which the trials are repeated
  static constexpr int kClear = 4;             // a choice this many times faster is final
  static constexpr int64_t kLong = 1'000'000;  // ns in the pool; then the caller is not tried

  enum SizeState : char {
    kOpen,
    kIdle,  // the kernel has scheduled no tasks
    kCallerForGood,
    kPoolForGood,
  };

  struct Size {
    std::atomic<SizeState> state{kOpen};
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
