// Gives the GIL away for a while.
#ifndef FASTOPS_CPP_GIL_H_
#define FASTOPS_CPP_GIL_H_

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace fastops {

// Releases the GIL for its lifetime when asked to.
class ScopedGilRelease {
 public:
  explicit ScopedGilRelease(bool release = true)
      : state_(release ? PyEval_SaveThread() : nullptr) {}

  ~ScopedGilRelease() {
    if (state_ == nullptr) return;
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      // The interpreter is shutting down, and Python before 3.14 ends other threads by unwinding
      // them: through destructors that use Python objects without the GIL. Wait for the process
      // to end instead, as 3.14 does.
      while (true) pause();
    }
  }

  ScopedGilRelease(const ScopedGilRelease&) = delete;
  ScopedGilRelease& operator=(const ScopedGilRelease&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_GIL_H_
