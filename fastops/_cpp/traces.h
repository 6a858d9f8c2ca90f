// Tracebacks show the program's lines and TensorFlow's, as without fastops.
#ifndef FASTOPS_CPP_TRACES_H_
#define FASTOPS_CPP_TRACES_H_

#include <Python.h>

namespace fastops {

// Adds a line of ours to the traceback of the present exception only where it has none so far:
// those that pass through, from TensorFlow's functions, look as if called by the program itself.
// An exception that has none at all is more than Cython's `except` clauses can stand.
inline int AddTraceback(PyFrameObject* frame) {
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  const bool passes_through = traceback != nullptr;
  PyErr_Restore(kind, value, traceback);
  return passes_through ? 0 : PyTraceBack_Here(frame);
}

}  // namespace fastops

// What the code that Cython adds to a module calls at every function that an exception leaves.
#define PyTraceBack_Here(frame) fastops::AddTraceback(frame)

#endif  // FASTOPS_CPP_TRACES_H_
