// The state of each thread: the settings of `fastops.options`, and the observers of its calls.
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
  Threads threads = Threads::kAuto;  // where a kernel's tasks run
  bool onednn = true;  // false: run plain kernels even if TensorFlow would run oneDNN's
};

struct Thread {
  Thread() = default;
  Thread(const Thread& start)
      : options(start.options), number(++last_number), observer(start.observer) {
    Py_XINCREF(observer);
  }

  Options options;
  // Unique for the life of the process. (The operating system reuses thread ids.) The GIL guards
  // `last_number`.
  const long number = 0;
  inline static long last_number = 0;
  // The op whose call TensorFlow's own function is running, borrowed. If that function calls
  // fastops with the same op, the nested call is not counted again.
  PyObject* underway = nullptr;
  // Both are owned. A thread that ends before its profile leaks them.
  PyObject* observer = nullptr;     // the innermost Observer of the thread
  PyObject* measurement = nullptr;  // the Measurement of the innermost measured call
};

// The state that new threads start with. The GIL guards it.
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
