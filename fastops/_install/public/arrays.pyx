# distutils: language = c++
"""Lowerings of functions that read or change shapes, and that split or join tensors.

The first comment line of each lowering lists the parameters of the function.
"""

from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, Py_TYPE
from cpython.tuple cimport PyTuple_CheckExact

from fastops._core.conversion cimport is_numpy
from fastops._core.tensors cimport host_tensor, num_elements, rank_of, size_of
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None, Py_True, PyLong_Type
from fastops._dispatch cimport constant
from fastops._install.intercept cimport tensor_dtype
from fastops._install.public.arguments cimport (
    MAX_RANK,
    are_tensors,
    is_int32,
    static_shape,
    tensor_rank,
)
from fastops._install.public.lowering cimport (
    CHOSEN,
    Draft,
    Lowering,
    NOT_LOWERED,
    done,
    is_number,
    keep,
    register,
)
from fastops._situation cimport EAGERLY, missing
from fastops._tf.protos cimport DT_INT32, DT_INVALID
from fastops._tf.tensor cimport Tensor

import numpy as np

from tensorflow.core.config import flags as _tf_flags
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.framework import tensor_shape as _tensor_shape


cdef object _EMPTY = np.zeros(0, np.float32)  # TensorFlow converts an empty list to this
cdef object _DType = _dtypes.DType
cdef object _TensorShape = _tensor_shape.TensorShape
cdef object _int32_dtype = _dtypes.int32
cdef object _wide_shapes = _tf_flags.config().tf_shape_default_int64
cdef list _DOWNWARDS = [tuple(range(rank - 1, -1, -1)) for rank in range(MAX_RANK + 1)]


cdef int _reshape(Lowering self, Draft* draft) except -1:
    # tensor, shape
    # Since TensorFlow 2.22, a scalar is not a shape.
    cdef PyObject* shape = draft.values[1]
    if PyList_CheckExact(<object>shape) or PyTuple_CheckExact(<object>shape):
        return CHOSEN
    if IsEagerTensor(shape):
        return CHOSEN if tensor_rank(shape) == 1 else NOT_LOWERED
    if is_numpy(shape):
        return CHOSEN if (<object>shape).ndim == 1 else NOT_LOWERED
    return CHOSEN if isinstance(<object>shape, _TensorShape) else NOT_LOWERED


cdef int _squeeze(Lowering self, Draft* draft) except -1:
    # input, axis
    cdef PyObject* axis = draft.values[1]
    if axis == Py_None:
        return CHOSEN
    if Py_TYPE(<object>axis) == &PyLong_Type:
        draft.values[1] = keep(draft, [<object>axis])
        return CHOSEN
    if type(<object>axis) is not list and type(<object>axis) is not tuple:
        return NOT_LOWERED
    for number in <object>axis:
        if type(number) is not int:
            return NOT_LOWERED
    return CHOSEN


cdef int _transpose(Lowering self, Draft* draft) except -1:
    # a, perm, conjugate
    cdef int rank
    if draft.values[2] == Py_True:
        return NOT_LOWERED
    if draft.values[1] == Py_None:
        rank = tensor_rank(draft.values[0])
        if not 0 <= rank <= MAX_RANK:
            return NOT_LOWERED
        draft.values[1] = PyList_GET_ITEM(_DOWNWARDS, rank)
    return CHOSEN


cdef int _shape(Lowering self, Draft* draft) except -1:
    # input, out_type
    if draft.values[1] == Py_None:
        if _wide_shapes.value():
            return NOT_LOWERED
        draft.values[1] = <PyObject*>_int32_dtype
    if (
        PyList_CheckExact(<object>draft.values[0]) and not PyList_GET_SIZE(<object>draft.values[0])
    ):
        empty = constant(_EMPTY, DT_INVALID)
        if empty is None:
            return NOT_LOWERED
        draft.values[0] = keep(draft, empty)
    return CHOSEN if type(<object>draft.values[1]) is _DType else NOT_LOWERED


cdef int _size(Lowering self, Draft* draft) except -1:
    # input, out_type
    cdef const Tensor* value = host_tensor(draft.values[0])
    if value == NULL or num_elements(value) >= <long long>1 << 31:
        return NOT_LOWERED
    if draft.values[1] != Py_None and <object>draft.values[1] is not _int32_dtype:
        return NOT_LOWERED
    if draft.values[1] == Py_None and _wide_shapes.value():
        return NOT_LOWERED
    return _number(draft, num_elements(value))


cdef int _rank_of(Lowering self, Draft* draft) except -1:
    # input
    cdef const Tensor* value = host_tensor(draft.values[0])
    return NOT_LOWERED if value == NULL else _number(draft, rank_of(value))


cdef int _number(Draft* draft, object number) except -1:
    tensor = constant(number, DT_INT32)
    return NOT_LOWERED if tensor is None else done(draft, tensor)


cdef int _concat(Lowering self, Draft* draft) except -1:
    # values, axis
    if are_tensors(draft.values[0], 2):
        return CHOSEN
    values = _alike(<object>draft.values[0])
    if values is None:
        return NOT_LOWERED
    draft.values[0] = keep(draft, values)
    return CHOSEN


cdef list _alike(object values):
    """Convert a list of tensors, numbers and lists to tensors of one dtype; None if impossible.

    The dtype is that of the tensors in the list, which must all have the same one.
    """
    cdef list made
    cdef int dtype = DT_INVALID
    if type(values) is not list and type(values) is not tuple or len(values) < 2:
        return None
    if missing(EAGERLY):
        return None
    for value in values:
        if IsEagerTensor(<PyObject*>value):
            if dtype == DT_INVALID:
                dtype = tensor_dtype(<PyObject*>value)
                of_dtype = value.dtype
            elif dtype != <int>tensor_dtype(<PyObject*>value):
                return None
        elif (
            not is_number(<PyObject*>value)
            and type(value) is not list and type(value) is not tuple
        ):
            return None
    if dtype == DT_INVALID:
        return None
    made = []
    for value in values:
        if not IsEagerTensor(<PyObject*>value):
            value = _tf_ops.convert_to_tensor(value, of_dtype)
            if not IsEagerTensor(<PyObject*>value):
                return None
        made.append(value)
    return made


cdef int _stack(Lowering self, Draft* draft) except -1:
    # values, axis
    return CHOSEN if are_tensors(draft.values[0], 1) else NOT_LOWERED


cdef int _unstack(Lowering self, Draft* draft) except -1:
    # value, num, axis
    cdef const Tensor* value = host_tensor(draft.values[0])
    cdef long long axis
    if draft.values[1] != Py_None:
        return CHOSEN if Py_TYPE(<object>draft.values[1]) == &PyLong_Type else NOT_LOWERED
    if value == NULL or not is_int32(draft.values[2], &axis):
        return NOT_LOWERED
    if axis < 0:
        axis += rank_of(value)
    if not 0 <= axis < rank_of(value):
        return NOT_LOWERED
    draft.values[1] = keep(draft, size_of(value, <int>axis))
    return CHOSEN


cdef int _split(Lowering self, Draft* draft) except -1:
    # value, num_or_size_splits, axis, num
    cdef long long number
    if is_int32(draft.values[1], &number):
        return CHOSEN
    sizes = <object>draft.values[1]
    if draft.values[3] != Py_None or not sizes or static_shape(sizes) is None:
        return NOT_LOWERED
    sizes = constant(sizes, DT_INT32)
    if sizes is None:
        return NOT_LOWERED
    draft.values[3] = keep(draft, len(<object>draft.values[1]))
    draft.values[1] = keep(draft, sizes)
    draft.site = 1
    return CHOSEN


cdef int _pad(Lowering self, Draft* draft) except -1:
    # tensor, paddings, mode, constant_values
    if Py_TYPE(<object>draft.values[3]) != &PyLong_Type or <object>draft.values[3] != 0:
        return NOT_LOWERED
    return CHOSEN if <object>draft.values[2] == "CONSTANT" else NOT_LOWERED


register("reshape", _reshape)
register("squeeze", _squeeze)
register("transpose", _transpose)
register("shape", _shape)
register("size", _size)
register("rank_of", _rank_of)
register("concat", _concat)
register("stack", _stack)
register("unstack", _unstack)
register("split", _split)
register("pad", _pad)
