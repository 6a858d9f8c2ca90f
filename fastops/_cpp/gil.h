// Gives the GIL away for a while.
#ifndef FASTOPS_CPP_GIL_H_
#define FASTOPS_CPP_GIL_H_

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace fastops {

// Does something that may take the GIL, or run Python code that may.
//
// While the interpreter shuts down, Python before 3.14 ends other threads there by unwinding them:
// through destructors that use Python objects without the GIL, and into handlers that swallow
// exceptions. Wait for the process to end instead, as 3.14 does.
template <typename Function>
auto TakingGil(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (abi::__forced_unwind&) {
    while (true) pause();
  }
}

// Releases the GIL for its lifetime when asked to.
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
