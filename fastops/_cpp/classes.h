// What of CPython's classes has no name in its C API, or another one from version to version.
#ifndef FASTOPS_CPP_CLASSES_H_
#define FASTOPS_CPP_CLASSES_H_

#include <Python.h>

namespace fastops {

// A number that no class has had before, nor this one before it or one of its bases was last
// changed; 0 where there is none. `_PyType_Lookup` gives a class one.
inline unsigned int ClassVersion(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030c0000
  if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

// Whether instances are asked for attributes in the usual way: the class, and their own dict.
inline bool LooksUpGenerically(PyTypeObject* type) {
  return type->tp_getattro == PyObject_GenericGetAttr;
}

// Whether instances, which are classes, are asked as classes are: their bases, too.
inline bool LooksUpAsClasses(PyTypeObject* type) {
  return type->tp_getattro == PyType_Type.tp_getattro;
}

// The attribute of an instance whose class looks them up in the usual way: a new reference, or
// nullptr where there is none, or with an exception.
inline PyObject* GenericAttribute(PyObject* value, PyObject* name) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* found = nullptr;
  PyObject_GetOptionalAttr(value, name, &found);
  return found;
#else
  return _PyObject_GenericGetAttrWithDict(value, name, nullptr, 1);
#endif
}

}  // namespace fastops

#endif  // FASTOPS_CPP_CLASSES_H_
