// The settings of `fastops.options`, one set a thread.
#ifndef FASTOPS_CPP_OPTIONS_H_
#define FASTOPS_CPP_OPTIONS_H_

namespace fastops {

enum class Path : char { kAuto, kDirect, kCapi, kTensorflow };
enum class OnFallback : char { kIgnore, kWarn, kRaise };

struct Options {
  Path path = Path::kAuto;
  OnFallback on_fallback = OnFallback::kIgnore;
  bool onednn = true;  // false: the plain kernels, even where this TensorFlow would replace them
};

// What a new thread starts with. Set once at import, from the environment.
inline Options& DefaultOptions() {
  static Options options;
  return options;
}

inline Options& ThreadOptions() {
  static thread_local Options options = DefaultOptions();
  return options;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_OPTIONS_H_
