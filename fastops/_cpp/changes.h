// Counters that show whether a dict has changed.
#ifndef FASTOPS_CPP_CHANGES_H_
#define FASTOPS_CPP_CHANGES_H_

#include <Python.h>

#include <cstdint>

namespace fastops {

#if PY_VERSION_HEX < 0x030c0000

// Read: CPython 3.10, 3.11 (DICT_NEXT_VERSION)
// The address of a dict's version, which changes with each change of the dict. The dict must
// outlive the pointer.
inline const uint64_t* ChangesOf(PyObject* dict) {
  return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}

#elif PY_VERSION_HEX < 0x030f0000

// Read: CPython 3.12, 3.13, 3.14 (_PyDict_NotifyEvent, also for the attributes of an instance)
// One counter for all watched dicts. Each extension module that includes this file has its own
// counter and its own watcher.
static uint64_t changes = 1;
static int watcher = -1;

static int OnChange(PyDict_WatchEvent, PyObject*, PyObject*, PyObject*) {
  ++changes;
  return 0;
}

// The address of a counter that is incremented with each change of a dict. nullptr if CPython has
// no free watcher.
inline const uint64_t* ChangesOf(PyObject* dict) {
  if (watcher < 0) watcher = PyDict_AddWatcher(OnChange);
  if (watcher < 0 || PyDict_Watch(watcher, dict) < 0) {
    PyErr_Clear();
    return nullptr;
  }
  return &changes;
}

#else

// It is not known whether the watchers of this version of CPython see all changes.
inline const uint64_t* ChangesOf(PyObject*) { return nullptr; }

#endif

}  // namespace fastops

#endif  // FASTOPS_CPP_CHANGES_H_
