// What fastops keeps for each thread: the settings of `fastops.options`, and who watches its calls.
#ifndef FASTOPS_CPP_OPTIONS_H_
#define FASTOPS_CPP_OPTIONS_H_

#include <Python.h>

namespace fastops {

enum class Path : char { kAuto, kDirect, kCapi, kTensorflow };
enum class Threads : char { kAuto, kCaller, kPool };
enum class OnFallback : char { kIgnore, kWarn, kLog, kRaise };

struct Options {
  Path path = Path::kAuto;
  OnFallback on_fallback = OnFallback::kIgnore;
  Threads threads = Threads::kAuto;  // in which a kernel's tasks run
  bool onednn = true;  // false: the plain kernels, even where this TensorFlow would replace them
};

struct Thread {
  Thread() = default;
  Thread(const Thread& start)
      : options(start.options), number(++last_number), observer(start.observer) {
    Py_XINCREF(observer);
  }

  Options options;
  // No other thread of the process has or had it, which the system's numbers do not promise. The
  // GIL guards the last one.
  const long number = 0;
  inline static long last_number = 0;
  // The op whose call TensorFlow's own function is making: where that function comes through
  // fastops again, it is still the same call. Borrowed.
  PyObject* underway = nullptr;
  // Owned, and leaked by a thread that ends before its profile does.
  PyObject* observer = nullptr;     // the innermost one that is open: an Observer
  PyObject* measurement = nullptr;  // of the innermost call that is measured
};

// What a new thread starts with. The GIL guards it.
inline Thread& DefaultThread() {
  static Thread thread;
  return thread;
}

inline Thread& ThisThread() {
  static thread_local Thread thread = DefaultThread();
  return thread;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_OPTIONS_H_
