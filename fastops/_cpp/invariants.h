// Assertions. They are checked only in builds with assertions, which docs/debugging.md describes.
#ifndef FASTOPS_CPP_INVARIANTS_H_
#define FASTOPS_CPP_INVARIANTS_H_

#include <Python.h>

// If the condition is false, aborts the process with the Python traceback. TensorFlow's own
// assertions are off in all builds, since they change the layout of its structs.
#ifdef FASTOPS_ASSERTIONS
#define FASTOPS_ASSERT(condition) \
  ((condition) ? (void)0 : Py_FatalError("fastops: not " #condition))
#else
#define FASTOPS_ASSERT(condition) ((void)0)
#endif

#endif  // FASTOPS_CPP_INVARIANTS_H_
