from cpython.object cimport PyObject, PyTypeObject

from fastops._cpp.signature cimport Signature


# Reads the signature of a call of a traced function. False if an argument has a type that
# signatures do not support.
cdef bint read_values(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                      PyObject* keywords) noexcept
# Reads a signature whose leaves are tensors only, including the tensors inside composite tensors
# and known objects. False if an argument has a type that signatures do not support.
cdef bint read_tensors(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                       PyObject* keywords) noexcept
# Reads the signature of a method's arguments, like `read_tensors`. The signature includes the
# attributes of tensors. Instances of the class `identified` are compared by identity.
cdef bint read_method(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                      PyObject* keywords, PyTypeObject* identified) noexcept
