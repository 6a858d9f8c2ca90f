# distutils: language = c++
"""Lowerings of functions that select elements of a tensor: by slices, indices and masks.

The first comment line of each lowering lists the parameters of the function.
"""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM

from fastops._core.tensors cimport dtype_of, host_tensor, ints_of, rank_of, size_of
from fastops._cpp.declarations cimport IsEagerTensor, Sizes
from fastops._cpp.python cimport Py_None
from fastops._install.intercept cimport tensor_dtype
from fastops._install.public.arguments cimport MAX_RANK, is_int32
from fastops._install.public.lowering cimport (
    CHOSEN,
    Draft,
    Lowering,
    NOT_LOWERED,
    done,
    keep,
    may_run,
    op_at,
    register,
)
from fastops._tf.protos cimport DT_BOOL, DT_INVALID
from fastops._tf.tensor cimport Tensor

import numpy as np

from tensorflow.python.framework import ops as _tf_ops


cdef enum:
    OF_NUMPY = -1  # used in place of a dtype for NumPy integers

cdef object _np_int32 = np.int32
cdef object _np_int64 = np.int64
cdef tuple _MASKS = tuple(range(1 << MAX_RANK))


cdef int _gather(Lowering self, Draft* draft) except -1:
    # params, indices, validate_indices, axis, batch_dims
    cdef long long axis
    if draft.values[3] == Py_None:
        draft.values[3] = draft.values[4]
    if not is_int32(draft.values[3], &axis):
        return NOT_LOWERED
    draft.site = 1 if axis == 0 else 0  # the first axis has no batches
    return CHOSEN


cdef int _gather_nd(Lowering self, Draft* draft) except -1:
    # params, indices, batch_dims, name, bad_indices_policy
    if <object>draft.values[2] != 0 or type(<object>draft.values[4]) is not str:
        return NOT_LOWERED
    return CHOSEN if <object>draft.values[4] == "" else NOT_LOWERED


cdef int _boolean_mask(Lowering self, Draft* draft) except -1:
    # tensor, mask, axis
    cdef long long axis = 0
    if draft.values[2] != Py_None and not is_int32(draft.values[2], &axis):
        return NOT_LOWERED
    return _masked(self, 0, draft, <object>draft.values[0], <object>draft.values[1], axis)


cdef int _masked(Lowering self, Py_ssize_t first, Draft* draft, object tensor, object mask,
                 long long axis) except -1:
    """Select the elements of a tensor for which a mask is true, by the sites from `first` on."""
    cdef const Tensor* value = host_tensor(<PyObject*>tensor)
    cdef const Tensor* chosen = host_tensor(<PyObject*>mask)
    cdef long long size = 1
    cdef int i, rank
    if value == NULL or chosen == NULL or dtype_of(chosen) != DT_BOOL or not may_run(self):
        return NOT_LOWERED
    rank = rank_of(chosen)
    if rank == 0 or axis < 0 or axis + rank > rank_of(value):
        return NOT_LOWERED
    for i in range(rank):
        if size_of(chosen, i) != size_of(value, <int>axis + i):
            return NOT_LOWERED
        size *= size_of(chosen, i)
    sizes = [size_of(value, i) for i in range(rank_of(value))]
    sizes[axis:axis + rank] = [size]
    tensor = op_at(self, first)(tensor=tensor, shape=sizes)
    mask = op_at(self, first)(tensor=mask, shape=[-1])
    indices = op_at(self, first + 2)(input=op_at(self, first + 1)(condition=mask), axis=[1])
    return done(draft, op_at(self, first + 3)(params=tensor, indices=indices, axis=axis))


cdef object _index(object item, int* dtype):
    """Return the int that an item of an index stands for; other items are returned unchanged.

    None if the dtype of a tensor differs from that of an earlier one: TensorFlow raises then, since
    it packs them into one tensor. `dtype` has the dtype of the earlier ones.
    """
    cdef Sizes values
    cdef const Tensor* value
    if not IsEagerTensor(<PyObject*>item):
        if type(item) is not _np_int32 and type(item) is not _np_int64:
            return item
        if dtype[0] != DT_INVALID and dtype[0] != OF_NUMPY:
            return None
        dtype[0] = OF_NUMPY
        return int(item)
    value = host_tensor(<PyObject*>item)
    if value == NULL or rank_of(value) != 0 or not ints_of(value, &values):
        return None
    if dtype[0] != DT_INVALID and dtype[0] != <int>dtype_of(value):
        return None
    dtype[0] = <int>dtype_of(value)
    return values[0]


cdef bint read_index(object spec, list begins, list ends, list strides, Masks* masks) except -1:
    cdef Py_ssize_t i
    cdef long long number
    cdef int dtype = DT_INVALID
    if type(spec) is not tuple and type(spec) is not list:
        spec = (spec,)
    if not 0 < len(spec) <= MAX_RANK:
        return False
    masks.begin = masks.end = masks.ellipsis = masks.new_axis = masks.shrink_axis = 0
    for i, item in enumerate(spec):
        start, stop, step = 0, 0, 1
        if type(item) is slice:
            start, stop, step = item.start, item.stop, item.step
            if start is None:
                start = 0
                masks.begin |= 1 << i
            if stop is None:
                stop = 0
                masks.end |= 1 << i
            if step is None:
                step = 1
            start, stop, step = [_index(bound, &dtype) for bound in (start, stop, step)]
        elif item is Ellipsis:
            masks.ellipsis |= 1 << i
        elif item is None:
            masks.new_axis |= 1 << i
        else:
            start = _index(item, &dtype)
            if not is_int32(<PyObject*>start, &number):
                return False
            stop = number + 1
            masks.shrink_axis |= 1 << i
        begins.append(start)
        ends.append(stop)
        strides.append(step)
    for part in (begins, ends, strides):
        for start in part:
            if not is_int32(<PyObject*>start, &number):
                return False
    return True


cdef int _getitem(Lowering self, Draft* draft) except -1:
    # tensor, slice_spec, var
    cdef Masks masks
    cdef list begins = [], ends = [], strides = []
    if _tf_ops._numpy_style_slicing:
        return NOT_LOWERED
    if IsEagerTensor(draft.values[1]) and tensor_dtype(draft.values[1]) == DT_BOOL:
        return _masked(self, 1, draft, <object>draft.values[0], <object>draft.values[1], 0)
    if not read_index(<object>draft.values[1], begins, ends, strides, &masks):
        return NOT_LOWERED
    draft.values[3] = keep(draft, begins)
    draft.values[4] = keep(draft, ends)
    draft.values[5] = keep(draft, strides)
    draft.values[6] = PyTuple_GET_ITEM(_MASKS, masks.begin)
    draft.values[7] = PyTuple_GET_ITEM(_MASKS, masks.end)
    draft.values[8] = PyTuple_GET_ITEM(_MASKS, masks.ellipsis)
    draft.values[9] = PyTuple_GET_ITEM(_MASKS, masks.new_axis)
    draft.values[10] = PyTuple_GET_ITEM(_MASKS, masks.shrink_axis)
    return CHOSEN


register("gather", _gather)
register("gather_nd", _gather_nd)
register("boolean_mask", _boolean_mask)
register("getitem", _getitem)
