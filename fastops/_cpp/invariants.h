// What must hold: looked at in builds with assertions alone, which docs/debugging.md tells of.
#ifndef FASTOPS_CPP_INVARIANTS_H_
#define FASTOPS_CPP_INVARIANTS_H_

#include <Python.h>

// Ends the process with the program's traceback. TensorFlow's own assertions stay out of all
// builds: its structs have another layout with them.
#ifdef FASTOPS_ASSERTIONS
#define FASTOPS_ASSERT(condition) \
  ((condition) ? (void)0 : Py_FatalError("fastops: not " #condition))
#else
#define FASTOPS_ASSERT(condition) ((void)0)
#endif

#endif  // FASTOPS_CPP_INVARIANTS_H_
