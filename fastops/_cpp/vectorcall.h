// Gives a Cython class CPython's vectorcall protocol, which Cython does not offer for classes.
#ifndef FASTOPS_CPP_VECTORCALL_H_
#define FASTOPS_CPP_VECTORCALL_H_

#include <Python.h>

namespace fastops {

// `offset` is the offset of a vectorcallfunc in the instances. Call this once, before any instance
// is called.
inline void EnableVectorcall(PyTypeObject* type, Py_ssize_t offset) {
  type->tp_vectorcall_offset = offset;
  type->tp_call = PyVectorcall_Call;
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  PyType_Modified(type);
}

}  // namespace fastops

#endif  // FASTOPS_CPP_VECTORCALL_H_
