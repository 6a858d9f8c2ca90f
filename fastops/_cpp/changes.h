// Numbers that tell whether dicts have changed.
#ifndef FASTOPS_CPP_CHANGES_H_
#define FASTOPS_CPP_CHANGES_H_

#include <Python.h>

#include <cstdint>

namespace fastops {

#if PY_VERSION_HEX < 0x030c0000

// Where a dict keeps its version, which only rises. The dict must outlive it.
inline const uint64_t* ChangesOf(PyObject* dict) {
  return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}

#else

// One number for all watched dicts. Each extension that includes this has its own, and a watcher.
static uint64_t changes = 1;
static int watcher = -1;

static int OnChange(PyDict_WatchEvent, PyObject*, PyObject*, PyObject*) {
  ++changes;
  return 0;
}

// A number that rises with each change of a dict. nullptr where CPython has no watcher to give.
inline const uint64_t* ChangesOf(PyObject* dict) {
  if (watcher < 0) watcher = PyDict_AddWatcher(OnChange);
  if (watcher < 0 || PyDict_Watch(watcher, dict) < 0) {
    PyErr_Clear();
    return nullptr;
  }
  return &changes;
}

#endif

}  // namespace fastops

#endif  // FASTOPS_CPP_CHANGES_H_
