# distutils: language = c++
"""Gradients of ops that change shapes, and that split or join tensors."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._autodiff.backward_op cimport (
    BackwardOp,
    attr_of,
    attrs_of,
    computed,
    elements_of,
    grad_of,
    input_of,
    output_of,
    tensor_of,
    wanted,
)
from fastops._autodiff.rules cimport register
from fastops._autodiff.shapes cimport like, shape_of, summed, typed_shape_of
from fastops._call_site cimport CallSite
from fastops._core.declined cimport DECLINED
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
from fastops._tf.protos cimport DT_INT32, DT_INT64, DataType

from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.indexed_slices import IndexedSlices as _IndexedSlices
from tensorflow.python.framework.ops import device_v2 as _device
from tensorflow.python.ops.resource_variable_ops import variable_shape as _variable_shape


cdef CallSite _CONCAT = CallSite("ConcatV2", "values axis")
cdef CallSite _GATHER_ND = CallSite("GatherNd", "params indices")
cdef CallSite _INVERT_PERMUTATION = CallSite("InvertPermutation", "x")
cdef CallSite _PACK = CallSite("Pack", "values axis")
cdef CallSite _PAD = CallSite("Pad", "input paddings")
cdef CallSite _RESHAPE = CallSite("Reshape", "tensor shape")
cdef CallSite _SHAPE = CallSite("Shape", "input out_type")
cdef CallSite _SLICE = CallSite("Slice", "input begin size")
cdef CallSite _SPLIT_V = CallSite("SplitV", "value size_splits axis num_split")
cdef CallSite _SUB = CallSite("Sub", "x y")
cdef CallSite _SUM = CallSite("Sum", "input axis keep_dims")
cdef CallSite _TRANSPOSE = CallSite("Transpose", "x perm")
cdef CallSite _UNPACK = CallSite("Unpack", "value num axis")
cdef CallSite _ZEROS_LIKE = CallSite("ZerosLike", "x")
cdef CallSite _STRIDED_SLICE_GRAD = CallSite(
    "StridedSliceGrad",
    "shape begin end strides dy begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
)


# Shapes

cdef object _reshape(BackwardOp* op):
    return like(op, input_of(op, 0), grad_of(op)), None


cdef object _squeeze(BackwardOp* op):
    return like(op, input_of(op, 0), grad_of(op))


cdef object _transpose(BackwardOp* op):
    return _TRANSPOSE.run((grad_of(op), _INVERT_PERMUTATION.run((input_of(op, 1),)))), None


cdef object _broadcast_to(BackwardOp* op):
    x, shape = input_of(op, 0), input_of(op, 1)
    cdef Sizes axes, unused, sizes
    if (
        not elements_of(shape, &sizes)
        or not reduced_axes(sizes, sizes_of(tensor_of(x)), &unused, &axes)
    ):
        return DECLINED
    shape = typed_shape_of(op, x, dtype_of(tensor_of(shape)))
    return summed(op, grad_of(op), axes, shape), None


cdef object _tile(BackwardOp* op):
    x = input_of(op, 0)
    cdef Sizes multiples, split, axes, sizes = sizes_of(tensor_of(x))
    cdef DataType dtype = dtype_of(tensor_of(input_of(op, 1)))
    cdef size_t i
    if not elements_of(input_of(op, 1), &multiples) or multiples.size() != sizes.size():
        return DECLINED
    for i in range(sizes.size()):
        split.push_back(multiples[i])
        split.push_back(sizes[i])
        axes.push_back(2 * <int64_t>i)
    if op.recorded:
        typed_shape_of(op, x, dtype)
    grad = _RESHAPE.run((grad_of(op), int_tensor(split, dtype, 0)))
    return _SUM.run((grad, int_tensor(axes, DT_INT32, 0), False)), None


cdef object _pad(BackwardOp* op):
    x, paddings = input_of(op, 0), input_of(op, 1)
    cdef Sizes pairs, begin, sizes = sizes_of(tensor_of(x))
    cdef DataType dtype = dtype_of(tensor_of(paddings))
    cdef size_t i
    if not elements_of(paddings, &pairs) or pairs.size() != 2 * sizes.size():
        return DECLINED
    for i in range(sizes.size()):
        begin.push_back(pairs[2 * i])
    shape = typed_shape_of(op, x, dtype)
    grad = _SLICE.run((grad_of(op), int_tensor(begin, dtype, 0), shape))
    return (grad,) + (None,) * (op.num_inputs - 1)


cdef object _slice(BackwardOp* op):
    x, output = input_of(op, 0), output_of(op, 0)
    cdef Sizes begin, pairs, sizes = sizes_of(tensor_of(x)), taken = sizes_of(tensor_of(output))
    cdef DataType dtype = dtype_of(tensor_of(input_of(op, 1)))
    cdef size_t i
    if not elements_of(input_of(op, 1), &begin) or begin.size() != sizes.size():
        return DECLINED
    for i in range(sizes.size()):
        pairs.push_back(begin[i])
        pairs.push_back(sizes[i] - taken[i] - begin[i])
    if op.recorded:
        typed_shape_of(op, output, dtype)
        typed_shape_of(op, x, dtype)
    return _PAD.run((grad_of(op), int_tensor(pairs, dtype, 2))), None, None


cdef object _strided_slice(BackwardOp* op):
    begin, end, strides = input_of(op, 1), input_of(op, 2), input_of(op, 3)
    cdef DataType dtype = dtype_of(tensor_of(begin))
    cdef Sizes begins, ends, steps
    if dtype != DT_INT32 and dtype != DT_INT64:
        return DECLINED
    if op.recorded:
        # TensorFlow's function passes the values of these tensors to its op. So a tape records no
        # path from the op to the tensors, and the rule must use new tensors, too.
        if not (
            elements_of(begin, &begins)
            and elements_of(end, &ends)
            and elements_of(strides, &steps)
        ):
            return DECLINED
        begin, end, strides = (
            int_tensor(begins, dtype, 0), int_tensor(ends, dtype, 0), int_tensor(steps, dtype, 0)
        )
        typed_shape_of(op, input_of(op, 0), dtype)
    shape = int_tensor(sizes_of(tensor_of(input_of(op, 0))), dtype, 0)
    grad = _STRIDED_SLICE_GRAD.run(
        (shape, begin, end, strides, grad_of(op))
        + attrs_of(op, _STRIDED_SLICE_GRAD.names[5:])
    )
    return grad, None, None, None


# Several tensors

cdef object _concat(BackwardOp* op):
    cdef Py_ssize_t i, values = op.num_inputs - 1
    cdef Sizes axes, sizes
    cdef int axis, rank
    if values < 2 or not elements_of(input_of(op, values), &axes) or axes.size() != 1:
        return DECLINED
    rank = rank_of(tensor_of(input_of(op, 0)))
    if not -rank <= axes[0] < rank:
        return DECLINED
    axis = <int>axes[0] + (rank if axes[0] < 0 else 0)
    for i in range(values):
        sizes.push_back(size_of(tensor_of(input_of(op, i)), axis))
    parts = _SPLIT_V.run((grad_of(op), int_tensor(sizes, DT_INT32, 0), axis, values))
    return parts + [None]


cdef list _grads(BackwardOp* op):
    cdef Py_ssize_t i
    return [<object>op.grads[i] for i in range(op.num_grads)]


cdef object _pack(BackwardOp* op):
    return _UNPACK.run((grad_of(op), attr_of(op, "N"), attr_of(op, "axis")))


cdef object _unpack(BackwardOp* op):
    return _PACK.run((_grads(op), attr_of(op, "axis")))


cdef object _split(BackwardOp* op):
    if op.num_grads < 2:
        return DECLINED
    return None, _CONCAT.run((_grads(op), input_of(op, 0)))


cdef object _gather(BackwardOp* op):
    """Return the gradient of a gather of rows, as IndexedSlices."""
    params, indices, axis = input_of(op, 0), input_of(op, 1), input_of(op, 2)
    cdef Sizes axes, count, sizes, shape = sizes_of(tensor_of(params))
    cdef size_t i
    if (
        attr_of(op, "batch_dims") != 0
        or not elements_of(axis, &axes)
        or axes.size() != 1
        or axes[0] != 0
    ):
        return DECLINED
    count.push_back(num_elements(tensor_of(indices)))
    sizes.push_back(count[0])
    for i in range(1, shape.size()):
        sizes.push_back(shape[i])
    dense_shape = _shape_beside(op, params)
    values = _RESHAPE.run((grad_of(op), int_tensor(sizes, DT_INT32, 0)))
    indices = _RESHAPE.run((indices, int_tensor(count, DT_INT32, 0)))
    return _IndexedSlices(values, indices, dense_shape), None, None


cdef object _resource_gather(BackwardOp* op):
    """Return the gradient of a gather of rows of a variable, as IndexedSlices."""
    handle, indices = input_of(op, 0), input_of(op, 1)
    cdef Sizes count, sizes, shape
    cdef size_t i
    dense_shape = _variable_shape(handle)
    if (
        not elements_of(dense_shape, &shape)
        or dtype_of(tensor_of(dense_shape)) != DT_INT32
        or shape.size() == 0
    ):
        return DECLINED
    count.push_back(num_elements(tensor_of(indices)))
    sizes.push_back(count[0])
    for i in range(1, shape.size()):
        sizes.push_back(shape[i])
    values = _RESHAPE.run((grad_of(op), int_tensor(sizes, DT_INT32, 0)))
    indices = _RESHAPE.run((indices, int_tensor(count, DT_INT32, 0)))
    return _IndexedSlices(values, indices, dense_shape), None


cdef object _sparse_to_dense(BackwardOp* op):
    cdef list grads = [None, None, None, None]
    cdef int i
    grad = grad_of(op)
    for i in range(2):
        if wanted(op, i):
            grads[i] = _ZEROS_LIKE.run((input_of(op, i),))
    if computed(op, 2) or computed(op, 3):
        grads[2] = _GATHER_ND.run((grad, input_of(op, 0)))
    if computed(op, 3):
        grads[3] = _SUB.run((_total(grad), _total(grads[2])))
    return grads


cdef object _total(object value):
    """Return the sum of all elements."""
    cdef Sizes axes
    cdef int i
    for i in range(rank_of(tensor_of(value))):
        axes.push_back(i)
    return _SUM.run((value, int_tensor(axes, DT_INT32, 0), False))


cdef object _shape_beside(BackwardOp* op, object params):
    """Return the shape of a tensor, placed on its device, as TensorFlow's function does."""
    if host_tensor(<PyObject*>params) != NULL:
        return shape_of(op, params)
    with _device(params.device):
        return _SHAPE.run((params, _dtypes.int32))


register("BroadcastTo", "array_grad._BroadcastToGrad", _broadcast_to)
register("ConcatV2", "array_grad._ConcatGradV2", _concat)
register("ExpandDims", "array_grad._ExpandDimsGrad", _reshape)
register("GatherV2", "array_grad._GatherV2Grad", _gather)
register("Pack", "array_grad._PackGrad", _pack)
register("Pad PadV2", "array_grad._PadGrad", _pad)
register("Reshape", "array_grad._ReshapeGrad", _reshape)
register("ResourceGather", "resource_variable_ops._GatherGrad", _resource_gather)
register("Slice", "array_grad._SliceGrad", _slice)
register("SparseToDense", "sparse_grad._SparseToDenseGrad", _sparse_to_dense)
register("Split", "array_grad._SplitGrad", _split)
register("Squeeze", "array_grad._SqueezeGrad", _squeeze)
register("StridedSlice", "array_grad._StridedSliceGrad", _strided_slice)
register("Tile", "array_grad._TileGrad", _tile)
register("Transpose", "array_grad._TransposeGrad", _transpose)
register("Unpack", "array_grad._UnpackGrad", _unpack)
