from cpython.object cimport PyObject, PyTypeObject

from fastops._cpp.signature cimport Signature


# Reads the signature of a call of a traced function, under the policy `OfTraces`. False if an
# argument has a type that the policy refuses.
cdef bint read_values(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                      PyObject* keywords) noexcept
# Reads the signature of a call of a function that is recorded, under the policy `OfRecordings`. Its
# leaves are tensors only, including the tensors inside composite tensors and known objects.
cdef bint read_tensors(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                       PyObject* keywords) noexcept
# Reads the signature of a call of a method that is recorded, under the policy `OfMethods`. It
# includes the attributes of tensors. Instances of the class `identified` are compared by identity.
cdef bint read_method(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                      PyObject* keywords, PyTypeObject* identified) noexcept
# Returns the call that the key of a recording stands for, as text, for example
# "(float32[2,3], axis=-1)". None if the bytes are no signature.
cdef str text_of(bytes key)
# The same for the key of a call of a traced function.
cdef str text_of_values(bytes key)
