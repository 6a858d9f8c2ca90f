# distutils: language = c++
"""Steps shared by the stand-ins whose calls are recorded.

These stand-ins are the adapters of `fastops._specialize`: those for functions (`replay`) and those
for methods of objects (`models`).
"""

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t

from fastops._dispatch cimport constant
from fastops._install.replacement cimport Replacement, call_original
from fastops._specialize.policy cimport Account, cover, is_covered, now
from fastops._tf.protos cimport DT_INVALID, DataType

from numpy import ndarray as _ndarray
from tensorflow import as_dtype as _as_dtype, convert_to_tensor as _convert_to_tensor

cdef str _NUMBERS = "biuf"  # kinds of dtypes

array_type = <PyTypeObject*>_ndarray


cdef bint put_tensor(PyObject** place, list tensors, object dtype=None) except -1:
    cdef int to = DT_INVALID
    array = <object>place[0]
    if array.dtype.kind not in _NUMBERS:
        return False
    if dtype is not None:
        to = _as_dtype(dtype)._type_enum
    tensor = constant(array, <DataType>to)
    try:
        tensors.append(_convert_to_tensor(array, dtype) if tensor is None else tensor)
    except Exception:  # the original will raise the error
        return False
    place[0] = PyList_GET_ITEM(tensors, len(tensors) - 1)
    return True


cdef PyObject* call_waiting(Replacement stand_in, Account account, bint covers,
                            PyObject* const* args, size_t nargsf,
                            PyObject* keywords) except NULL:
    cdef PyObject* result
    cdef int64_t begin
    if is_covered():
        return call_original(stand_in, args, nargsf, keywords)
    cover(covers)
    begin = now()
    try:
        result = call_original(stand_in, args, nargsf, keywords)
    finally:
        cover(False)
    account.charge(now() - begin)
    return result
