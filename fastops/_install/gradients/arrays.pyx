# distutils: language = c++
"""Gradients of ops that change shapes, and that split or join tensors."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._core.tensors cimport (
    dtype_of,
    host_tensor,
    int_tensor,
    num_elements,
    rank_of,
    reduced_axes,
    size_of,
    sizes_of,
)
from fastops._cpp.declarations cimport Sizes
from fastops._install.gradients.rules cimport TENSORFLOW, register
from fastops._install.gradients.shapes cimport like, shape_of, summed, typed_shape_of
from fastops._install.gradients.step cimport (
    Step,
    attr_of,
    attrs_of,
    elements_of,
    grad_of,
    input_of,
    output_of,
    tensor_of,
)
from fastops._install.intercept cimport Call
from fastops._tf.protos cimport DT_INT32, DT_INT64, DataType

from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.indexed_slices import IndexedSlices as _IndexedSlices
from tensorflow.python.framework.ops import device_v2 as _device


cdef Call _CONCAT = Call("ConcatV2", "values axis")
cdef Call _INVERT_PERMUTATION = Call("InvertPermutation", "x")
cdef Call _PACK = Call("Pack", "values axis")
cdef Call _PAD = Call("Pad", "input paddings")
cdef Call _RESHAPE = Call("Reshape", "tensor shape")
cdef Call _SHAPE = Call("Shape", "input out_type")
cdef Call _SLICE = Call("Slice", "input begin size")
cdef Call _SPLIT_V = Call("SplitV", "value size_splits axis num_split")
cdef Call _SUM = Call("Sum", "input axis keep_dims")
cdef Call _TRANSPOSE = Call("Transpose", "x perm")
cdef Call _UNPACK = Call("Unpack", "value num axis")
cdef Call _STRIDED_SLICE_GRAD = Call(
    "StridedSliceGrad",
    "shape begin end strides dy begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
)


# Shapes

cdef object _reshape(Step* step):
    return like(step, input_of(step, 0), grad_of(step)), None


cdef object _squeeze(Step* step):
    return like(step, input_of(step, 0), grad_of(step))


cdef object _transpose(Step* step):
    return _TRANSPOSE.run((grad_of(step), _INVERT_PERMUTATION.run((input_of(step, 1),)))), None


cdef object _broadcast_to(Step* step):
    x, shape = input_of(step, 0), input_of(step, 1)
    cdef Sizes axes, unused, sizes
    if (
        not elements_of(shape, &sizes)
        or not reduced_axes(sizes, sizes_of(tensor_of(x)), &unused, &axes)
    ):
        return TENSORFLOW
    shape = typed_shape_of(step, x, dtype_of(tensor_of(shape)))
    return summed(grad_of(step), axes, shape), None


cdef object _tile(Step* step):
    x = input_of(step, 0)
    cdef Sizes multiples, split, axes, sizes = sizes_of(tensor_of(x))
    cdef DataType dtype = dtype_of(tensor_of(input_of(step, 1)))
    cdef size_t i
    if not elements_of(input_of(step, 1), &multiples) or multiples.size() != sizes.size():
        return TENSORFLOW
    for i in range(sizes.size()):
        split.push_back(multiples[i])
        split.push_back(sizes[i])
        axes.push_back(2 * <int64_t>i)
    if step.recorded:
        typed_shape_of(step, x, dtype)
    grad = _RESHAPE.run((grad_of(step), int_tensor(split, dtype, 0)))
    return _SUM.run((grad, int_tensor(axes, DT_INT32, 0), False)), None


cdef object _pad(Step* step):
    x, paddings = input_of(step, 0), input_of(step, 1)
    cdef Sizes pairs, begin, sizes = sizes_of(tensor_of(x))
    cdef DataType dtype = dtype_of(tensor_of(paddings))
    cdef size_t i
    if not elements_of(paddings, &pairs) or pairs.size() != 2 * sizes.size():
        return TENSORFLOW
    for i in range(sizes.size()):
        begin.push_back(pairs[2 * i])
    shape = typed_shape_of(step, x, dtype)
    grad = _SLICE.run((grad_of(step), int_tensor(begin, dtype, 0), shape))
    return (grad,) + (None,) * (step.num_inputs - 1)


cdef object _slice(Step* step):
    x, output = input_of(step, 0), output_of(step, 0)
    cdef Sizes begin, pairs, sizes = sizes_of(tensor_of(x)), taken = sizes_of(tensor_of(output))
    cdef DataType dtype = dtype_of(tensor_of(input_of(step, 1)))
    cdef size_t i
    if not elements_of(input_of(step, 1), &begin) or begin.size() != sizes.size():
        return TENSORFLOW
    for i in range(sizes.size()):
        pairs.push_back(begin[i])
        pairs.push_back(sizes[i] - taken[i] - begin[i])
    if step.recorded:
        typed_shape_of(step, output, dtype)
        typed_shape_of(step, x, dtype)
    return _PAD.run((grad_of(step), int_tensor(pairs, dtype, 2))), None, None


cdef object _strided_slice(Step* step):
    begin, end, strides = input_of(step, 1), input_of(step, 2), input_of(step, 3)
    cdef DataType dtype = dtype_of(tensor_of(begin))
    cdef Sizes begins, ends, steps
    if dtype != DT_INT32 and dtype != DT_INT64:
        return TENSORFLOW
    if step.recorded:
        # TensorFlow's function passes the values of these tensors to its op. So a tape records no
        # path from the op to the tensors, and the rule must use new tensors, too.
        if not (
            elements_of(begin, &begins)
            and elements_of(end, &ends)
            and elements_of(strides, &steps)
        ):
            return TENSORFLOW
        begin, end, strides = (
            int_tensor(begins, dtype, 0), int_tensor(ends, dtype, 0), int_tensor(steps, dtype, 0)
        )
        typed_shape_of(step, input_of(step, 0), dtype)
    shape = int_tensor(sizes_of(tensor_of(input_of(step, 0))), dtype, 0)
    grad = _STRIDED_SLICE_GRAD.run(
        (shape, begin, end, strides, grad_of(step))
        + attrs_of(step, _STRIDED_SLICE_GRAD.names[5:])
    )
    return grad, None, None, None


# Several tensors

cdef object _concat(Step* step):
    cdef Py_ssize_t i, values = step.num_inputs - 1
    cdef Sizes axes, sizes
    cdef int axis, rank
    if values < 2 or not elements_of(input_of(step, values), &axes) or axes.size() != 1:
        return TENSORFLOW
    rank = rank_of(tensor_of(input_of(step, 0)))
    if not -rank <= axes[0] < rank:
        return TENSORFLOW
    axis = <int>axes[0] + (rank if axes[0] < 0 else 0)
    for i in range(values):
        sizes.push_back(size_of(tensor_of(input_of(step, i)), axis))
    parts = _SPLIT_V.run((grad_of(step), int_tensor(sizes, DT_INT32, 0), axis, values))
    return parts + [None]


cdef list _grads(Step* step):
    cdef Py_ssize_t i
    return [<object>step.grads[i] for i in range(step.num_grads)]


cdef object _pack(Step* step):
    return _UNPACK.run((grad_of(step), attr_of(step, "N"), attr_of(step, "axis")))


cdef object _unpack(Step* step):
    return _PACK.run((_grads(step), attr_of(step, "axis")))


cdef object _split(Step* step):
    if step.num_grads < 2:
        return TENSORFLOW
    return None, _CONCAT.run((_grads(step), input_of(step, 0)))


cdef object _gather(Step* step):
    """Return the gradient of a gather of rows, as IndexedSlices."""
    params, indices, axis = input_of(step, 0), input_of(step, 1), input_of(step, 2)
    cdef Sizes axes, count, sizes, shape = sizes_of(tensor_of(params))
    cdef size_t i
    if (
        attr_of(step, "batch_dims") != 0
        or not elements_of(axis, &axes)
        or axes.size() != 1
        or axes[0] != 0
    ):
        return TENSORFLOW
    count.push_back(num_elements(tensor_of(indices)))
    sizes.push_back(count[0])
    for i in range(1, shape.size()):
        sizes.push_back(shape[i])
    dense_shape = _shape_beside(step, params)
    values = _RESHAPE.run((grad_of(step), int_tensor(sizes, DT_INT32, 0)))
    indices = _RESHAPE.run((indices, int_tensor(count, DT_INT32, 0)))
    return _IndexedSlices(values, indices, dense_shape), None, None


cdef object _shape_beside(Step* step, object params):
    """Return the shape of a tensor, placed on its device, as TensorFlow's function does."""
    if host_tensor(<PyObject*>params) != NULL:
        return shape_of(step, params)
    with _device(params.device):
        return _SHAPE.run((params, _dtypes.int32))


register("BroadcastTo", "array_grad._BroadcastToGrad", _broadcast_to)
register("ConcatV2", "array_grad._ConcatGradV2", _concat)
register("ExpandDims", "array_grad._ExpandDimsGrad", _reshape)
register("GatherV2", "array_grad._GatherV2Grad", _gather)
register("Pack", "array_grad._PackGrad", _pack)
register("Pad PadV2", "array_grad._PadGrad", _pad)
register("Reshape", "array_grad._ReshapeGrad", _reshape)
register("Slice", "array_grad._SliceGrad", _slice)
register("Split", "array_grad._SplitGrad", _split)
register("Squeeze", "array_grad._SqueezeGrad", _squeeze)
register("StridedSlice", "array_grad._StridedSliceGrad", _strided_slice)
register("Tile", "array_grad._TileGrad", _tile)
register("Transpose", "array_grad._TransposeGrad", _transpose)
register("Unpack", "array_grad._UnpackGrad", _unpack)
