# distutils: language = c++
"""Answers for the functions below `tf.convert_to_tensor` that convert values to tensors.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.conversion cimport (
    has_default_conversion,
    is_list,
    is_number,
    is_numpy,
    is_shape,
)
from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport handle_dtype
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None
from fastops._dispatch cimport constant, pack_list
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._install.intercept cimport DTYPES
from fastops._situation cimport EAGERLY, missing
from fastops._tf.protos cimport DT_INT32, DT_INT64, DT_INVALID, DataType

from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.tensor import Tensor as _Tensor
from tensorflow.python.types.core import Symbol as _Symbol


cdef object _DType = _dtypes.DType
cdef dict _numbers = {  # by name, or type of NumPy or Python, the number of the dtype of `as_dtype`
    key: dtype._type_enum
    for key, dtype in _dtypes._ANY_TO_TF.items()
    if type(key) is str or type(key) is type
}


cdef int _enum_of(PyObject* dtype) except -1:
    """Return the number of a dtype; DT_INVALID for None; DTYPES for any unknown value."""
    cdef PyObject* number
    if dtype == Py_None:
        return DT_INVALID
    kind = type(<object>dtype)
    if kind is _DType:
        return min(<int>(<object>dtype)._type_enum, <int>DTYPES)
    number = NULL
    if kind is type or kind is str:
        number = PyDict_GetItem(_numbers, <object>dtype)
    return <int>DTYPES if number == NULL else min(<int><object>number, <int>DTYPES)


cdef object _sizes_of(object shape, int to, int hint):
    """Convert a fully defined shape to a tensor, as TensorFlow does; or return DECLINED."""
    cdef object size
    if shape._dims is None or to != DT_INVALID and to != DT_INT32 and to != DT_INT64:
        return DECLINED
    for size in <tuple>shape._dims:
        if not PyLong_CheckExact(size) or not 0 <= size < <long long>1 << 31:
            return DECLINED
    if to == DT_INVALID:
        to = hint if hint == DT_INT64 else DT_INT32
    tensor = constant(shape._dims, <DataType>to)
    return DECLINED if tensor is None else tensor


cdef object _convert(PyObject* value, PyObject* dtype, PyObject* preferred, PyObject* accepted):
    """Convert a tensor, number, array, string, list or shape to a tensor; or return DECLINED."""
    cdef int to = _enum_of(dtype), hint = _enum_of(preferred)
    if not PyTuple_CheckExact(<object>accepted) or PyTuple_GET_SIZE(<object>accepted) != 1:
        return DECLINED
    kind = PyTuple_GET_ITEM(<object>accepted, 0)
    if kind != <PyObject*>_Symbol and kind != <PyObject*>_Tensor:
        return DECLINED
    if to >= DTYPES or hint >= DTYPES:
        return DECLINED
    if missing(EAGERLY):  # a graph must capture the tensor
        return DECLINED
    if IsEagerTensor(value):
        return <object>value if to == DT_INVALID or to == <int>handle_dtype(value) else DECLINED
    if is_shape(value):
        return _sizes_of(<object>value, to, hint) if has_default_conversion(value) else DECLINED
    if to == DT_INVALID:
        to = hint
    if not is_number(value) and not is_numpy(value):
        if not is_list(value) and not PyUnicode_CheckExact(<object>value):
            return DECLINED
        if not has_default_conversion(value):
            return DECLINED
        if is_list(value):
            packed = pack_list(<object>value, <DataType>to)
            if packed is not None:
                return packed
    tensor = constant(<object>value, <DataType>to)
    return DECLINED if tensor is None else tensor


cdef object _convert_by_registry(Answer self, PyObject* const* args, Py_ssize_t n,
                                 PyObject* keywords):
    # value, dtype=None, name=None, as_ref=False, preferred_dtype=None, accepted_result_types
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values):
        return DECLINED
    return _convert(values[0], values[1], values[4], values[5])


cdef object _convert_to_tensor(Answer self, PyObject* const* args, Py_ssize_t n,
                               PyObject* keywords):
    # value, dtype=None, name=None, as_ref=False, preferred_dtype=None, dtype_hint=None, ctx=None,
    # accepted_result_types
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values):
        return DECLINED
    if values[4] != Py_None and values[5] != Py_None:
        return DECLINED
    return _convert(
        values[0], values[1], values[5] if values[4] == Py_None else values[4], values[7]
    )


register("helpers", "tensor_conversion_registry.convert", _convert_by_registry)
register("helpers", "ops.convert_to_tensor", _convert_to_tensor)
