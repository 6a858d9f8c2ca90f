// Access to CPython's classes that its C API does not provide, or that differs between versions.
//
// "Read" lists the versions in whose sources a use was read. In any other version, the function
// says that it does not know, and TensorFlow's own code runs.
#ifndef FASTOPS_CPP_CLASSES_H_
#define FASTOPS_CPP_CLASSES_H_

#include <Python.h>

namespace fastops {

// The version of a class. No other class has had it, and a change of the class or of one of its
// bases invalidates it. 0 if the class has no version now; `_PyType_Lookup` assigns one.
// Read: CPython 3.10, 3.11, 3.12, 3.13, 3.14 (assign_version_tag and PyType_Modified)
inline unsigned int ClassVersion(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030f0000
  return 0;
#else
#if PY_VERSION_HEX < 0x030c0000
  if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
#endif
}

// Whether instances of a class have the generic attribute lookup: in the class and in their dict.
inline bool LooksUpGenerically(PyTypeObject* type) {
  return type->tp_getattro == PyObject_GenericGetAttr;
}

// Whether a metaclass has the attribute lookup of `type`, which also searches the bases.
inline bool LooksUpAsClasses(PyTypeObject* type) {
  return type->tp_getattro == PyType_Type.tp_getattro;
}

// The attribute of an instance whose class has the generic attribute lookup. Returns a new
// reference. Returns nullptr if there is no such attribute, or with an exception.
inline PyObject* GenericAttribute(PyObject* value, PyObject* name) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* attribute = nullptr;
  PyObject_GetOptionalAttr(value, name, &attribute);
  return attribute;
#else
  return _PyObject_GenericGetAttrWithDict(value, name, nullptr, 1);
#endif
}

}  // namespace fastops

#endif  // FASTOPS_CPP_CLASSES_H_
