# Steps shared by the stand-ins whose calls are recorded.

from cpython.object cimport PyObject, PyTypeObject, Py_TYPE

from fastops._install.replacement cimport Replacement
from fastops._specialize.policy cimport Account


cdef PyTypeObject* array_type  # numpy.ndarray


cdef inline bint has_arrays(PyObject* const* args, Py_ssize_t n) noexcept:
    """Whether some of the arguments are NumPy arrays."""
    cdef Py_ssize_t i
    for i in range(n):
        if Py_TYPE(<object>args[i]) == array_type:
            return True
    return False


# Puts a tensor in the place of an argument that is an array; the dtype None stands for that of the
# array. The tensor is added to `tensors`, which keeps it alive. False if the array is not one of
# bools or real numbers, or if TensorFlow cannot convert it.
cdef bint put_tensor(PyObject** place, list tensors, object dtype=*) except -1

# Calls the original, since a recording would not pay yet, and charges its time to the account. If
# `covers`, calls inside this call are covered: they charge no accounts of their own, since a
# recording would replay them, too. A call that is covered itself charges nothing.
cdef PyObject* call_waiting(Replacement stand_in, Account account, bint covers,
                            PyObject* const* args, size_t nargsf,
                            PyObject* keywords) except NULL
