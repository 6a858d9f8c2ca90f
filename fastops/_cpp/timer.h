// Time in nanoseconds, from a monotonic clock.
#ifndef FASTOPS_CPP_TIMER_H_
#define FASTOPS_CPP_TIMER_H_

#include <chrono>
#include <cstdint>

namespace fastops {

inline int64_t Nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Adds the duration of its scope to a sum. Does nothing if `sum` is null.
class ScopedTimer {
 public:
  explicit ScopedTimer(int64_t* sum) : sum_(sum), start_(sum == nullptr ? 0 : Nanoseconds()) {}
  ~ScopedTimer() {
    if (sum_ != nullptr) *sum_ += Nanoseconds() - start_;
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  int64_t* const sum_;
  const int64_t start_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_TIMER_H_
