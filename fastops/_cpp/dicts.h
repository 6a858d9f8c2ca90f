// What of CPython's dicts and instances has no name in its C API, or not in every version.
#ifndef FASTOPS_CPP_DICTS_H_
#define FASTOPS_CPP_DICTS_H_

#include <Python.h>

#include <cstdint>

namespace fastops {

// A number that no dict has had before, nor this one before it was last changed; 0 where CPython
// counts no more, so that contents have to be compared.
inline uint64_t DictVersion(PyObject* dict) {
#if PY_VERSION_HEX < 0x030c0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  return 0;
#endif
}

// The dict of an instance, borrowed, which it keeps from then on unless it is given another one.
// nullptr for one that has none.
inline PyObject* InstanceDict(PyObject* instance) {
#if PY_VERSION_HEX < 0x030c0000
  PyObject** place = _PyObject_GetDictPtr(instance);
  if (place == nullptr) return nullptr;
  if (*place != nullptr) return *place;
#else
  if (Py_TYPE(instance)->tp_dictoffset == 0 &&
      !PyType_HasFeature(Py_TYPE(instance), Py_TPFLAGS_MANAGED_DICT)) {
    return nullptr;
  }
#endif
  PyObject* dict = PyObject_GenericGetDict(instance, nullptr);
  if (dict == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(dict);  // the instance holds it
  return dict;
}

// The same, but nullptr while no attribute was ever set, as on most tensors.
inline PyObject* InstanceDictIfAny(PyObject* instance) {
#if PY_VERSION_HEX < 0x030c0000
  PyObject** place = _PyObject_GetDictPtr(instance);
  return place == nullptr ? nullptr : *place;
#else
  return InstanceDict(instance);
#endif
}

// An iterator over the values that a set has itself, whatever its class makes of iteration.
inline PyObject* IterateSet(PyObject* set) { return PySet_Type.tp_iter(set); }

// What a weak reference refers to, borrowed; None once that is gone.
inline PyObject* Referent(PyObject* reference) {
#if PY_VERSION_HEX < 0x030d0000
  return PyWeakref_GET_OBJECT(reference);
#else
  PyObject* found = nullptr;
  if (PyWeakref_GetRef(reference, &found) <= 0) return Py_None;
  Py_DECREF(found);
  return found;
#endif
}

}  // namespace fastops

#endif  // FASTOPS_CPP_DICTS_H_
