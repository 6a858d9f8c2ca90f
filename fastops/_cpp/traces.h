// Removes the lines of fastops from tracebacks, so that they look as without fastops.
#ifndef FASTOPS_CPP_TRACES_H_
#define FASTOPS_CPP_TRACES_H_

#include <Python.h>

namespace fastops {

// Adds a line of fastops to the traceback of the present exception only if it has no traceback yet.
// An exception from TensorFlow's functions has one, and then looks as if the program had called
// them itself. An exception without any traceback would break Cython's `except` clauses.
inline int AddTraceback(PyFrameObject* frame) {
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  const bool passes_through = traceback != nullptr;
  PyErr_Restore(kind, value, traceback);
  return passes_through ? 0 : PyTraceBack_Here(frame);
}

}  // namespace fastops

// Cython's generated code calls this in every function that an exception leaves.
#define PyTraceBack_Here(frame) fastops::AddTraceback(frame)

#endif  // FASTOPS_CPP_TRACES_H_
