// Access to CPython's dicts and instances that its C API does not provide in every version.
#ifndef FASTOPS_CPP_DICTS_H_
#define FASTOPS_CPP_DICTS_H_

#include <Python.h>

#include <cstdint>

namespace fastops {

// The version of a dict. No other dict has had it, and each change of the dict gives it a new one.
// Read: CPython 3.10, 3.11 (DICT_NEXT_VERSION)
// 0 in newer versions of CPython, which have no versions of dicts; compare the contents then.
inline uint64_t DictVersion(PyObject* dict) {
#if PY_VERSION_HEX < 0x030c0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  return 0;
#endif
}

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
// The array in which CPython 3.11 keeps the attributes of an instance that has no dict yet; nullptr
// if the instance has a dict. The second byte before the array is the number of attributes.
// Read: CPython 3.11 (_PyObject_ValuesPointer and _PyDictValues_AddToInsertionOrder)
inline uint8_t* InlineValues(PyObject* instance) {
  if (!PyType_HasFeature(Py_TYPE(instance), Py_TPFLAGS_MANAGED_DICT)) return nullptr;
  return reinterpret_cast<uint8_t**>(instance)[-4];
}
#endif

// The dict of an instance, borrowed. It is created if necessary, and the instance keeps it until
// its `__dict__` is replaced. nullptr for an instance that cannot have a dict.
inline PyObject* InstanceDict(PyObject* instance) {
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
  if (InlineValues(instance) != nullptr) {
    // CPython 3.11 may collect garbage while it allocates the dict. The collection calls
    // TensorFlow's `EagerTensor_traverse`, which makes the dict of a tensor, too. The process would
    // crash once one of two dicts with the same array frees the array.
    const int collects = PyGC_Disable();
    PyObject** slot = _PyObject_GetDictPtr(instance);
    if (collects) PyGC_Enable();
    if (slot == nullptr) PyErr_Clear();
    return slot == nullptr ? nullptr : *slot;
  }
#endif
#if PY_VERSION_HEX < 0x030c0000
  PyObject** slot = _PyObject_GetDictPtr(instance);
  if (slot == nullptr) return nullptr;
  if (*slot != nullptr) return *slot;
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

// The dict of an instance, borrowed. Before CPython 3.12, nullptr if no attribute was ever set, as
// for most tensors.
inline PyObject* InstanceDictIfAny(PyObject* instance) {
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
  const uint8_t* values = InlineValues(instance);
  if (values != nullptr) return values[-2] == 0 ? nullptr : InstanceDict(instance);
#endif
#if PY_VERSION_HEX < 0x030c0000
  PyObject** slot = _PyObject_GetDictPtr(instance);
  return slot == nullptr ? nullptr : *slot;
#else
  return InstanceDict(instance);
#endif
}

// An iterator over the elements of a set. It ignores an `__iter__` of a subclass.
inline PyObject* IterateSet(PyObject* set) { return PySet_Type.tp_iter(set); }

// The object that a weak reference refers to, borrowed; None if the object is gone.
inline PyObject* Referent(PyObject* reference) {
#if PY_VERSION_HEX < 0x030d0000
  return PyWeakref_GET_OBJECT(reference);
#else
  PyObject* referent = nullptr;
  if (PyWeakref_GetRef(reference, &referent) <= 0) return Py_None;
  Py_DECREF(referent);
  return referent;
#endif
}

}  // namespace fastops

#endif  // FASTOPS_CPP_DICTS_H_
