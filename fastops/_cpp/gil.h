// Releases the GIL and takes it again.
//
// Most data here is guarded by the GIL. The GIL is a mutex, so a thread that takes it sees all that
// other threads have written before they released it, on every processor. Data that a thread reads
// while it has released the GIL has to be its own, or constant since it was last published with the
// GIL, or atomic. On Arm other threads may see plain or relaxed writes in another order than on
// x86-64. So each atomic has a comment that says why its order suffices.
#ifndef FASTOPS_CPP_GIL_H_
#define FASTOPS_CPP_GIL_H_

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace fastops {

// Calls a function that may take the GIL, or that may run Python code which takes it.
//
// While the interpreter shuts down, Python before 3.14 ends other threads when they take the GIL.
// It unwinds them, through destructors that use Python objects without the GIL, and into handlers
// that swallow exceptions. Instead, let the thread wait for the process to end, as Python 3.14
// does.
template <typename Function>
auto TakingGil(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (abi::__forced_unwind&) {
    while (true) pause();
  }
}

// Releases the GIL for its lifetime if `release` is true.
class ScopedGilRelease {
 public:
  explicit ScopedGilRelease(bool release = true)
      : state_(release ? PyEval_SaveThread() : nullptr) {}

  ~ScopedGilRelease() {
    if (state_ == nullptr) return;
    TakingGil([this] { PyEval_RestoreThread(state_); });
  }

  ScopedGilRelease(const ScopedGilRelease&) = delete;
  ScopedGilRelease& operator=(const ScopedGilRelease&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_GIL_H_
