# distutils: language = c++
"""Gradients of reductions."""

from libc.stdint cimport int64_t

from fastops._autodiff.backward_op cimport (
    BackwardOp,
    attr_of,
    elements_of,
    grad_of,
    input_of,
    is_float,
    output_of,
    tensor_of,
)
from fastops._autodiff.rules cimport register
from fastops._autodiff.shapes cimport shape_of
from fastops._call_site cimport CallSite
from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport dtype_of, int_tensor, num_elements, rank_of, sizes_of
from fastops._cpp.declarations cimport Sizes
from fastops._tf.protos cimport DT_BFLOAT16, DT_HALF, DT_INT32

from tensorflow.python.framework import dtypes as _dtypes


cdef CallSite _BROADCAST_TO = CallSite("BroadcastTo", "input shape")
cdef CallSite _CAST = CallSite("Cast", "x DstT")
cdef CallSite _EQUAL = CallSite("Equal", "x y")
cdef CallSite _MUL = CallSite("Mul", "x y")
cdef CallSite _REAL_DIV = CallSite("RealDiv", "x y")
cdef CallSite _RESHAPE = CallSite("Reshape", "tensor shape")
cdef CallSite _SUM = CallSite("Sum", "input axis keep_dims")
cdef CallSite _TILE = CallSite("Tile", "input multiples")


cdef object _kept_shape(object x, object axis, bint* everything):
    """Return the shape of a reduction's result with the reduced axes kept; None for unusual axes.

    `everything` is set if the axes are all axes, in ascending order.
    """
    cdef Sizes axes, sizes = sizes_of(tensor_of(x))
    cdef int64_t i
    cdef int64_t rank = <int64_t>sizes.size()
    if not elements_of(axis, &axes):
        return None
    everything[0] = rank_of(tensor_of(axis)) == 1 and <int64_t>axes.size() == rank
    for i in range(<int64_t>axes.size()):
        if not -rank <= axes[i] < rank:
            return None
        if axes[i] != i:
            everything[0] = False
        sizes[axes[i] + rank if axes[i] < 0 else axes[i]] = 1
    return int_tensor(sizes, DT_INT32, 0)


cdef object _sum_grad(BackwardOp* op):
    cdef bint everything = False
    x, grad = input_of(op, 0), grad_of(op)
    kept = _kept_shape(x, input_of(op, 1), &everything)
    keep_dims = attr_of(op, "keep_dims")
    if kept is None or type(keep_dims) is not bool:
        return DECLINED
    if everything:
        # TensorFlow's function uses a constant for this shape, too, and runs no Shape.
        shape = int_tensor(sizes_of(tensor_of(x)), DT_INT32, 0)
        return _TILE.run((_RESHAPE.run((grad, kept)), shape))
    shape = shape_of(op, x)
    if not keep_dims:
        grad = _RESHAPE.run((grad, kept))
    return _BROADCAST_TO.run((grad, shape))


cdef object _sum(BackwardOp* op):
    grad = _sum_grad(op)
    return grad if grad is DECLINED else (grad, None)


cdef object _mean(BackwardOp* op):
    cdef int64_t factor, results = num_elements(tensor_of(output_of(op, 0)))
    factor = num_elements(tensor_of(input_of(op, 0))) // max(results, <int64_t>1)
    # The factor must be exact in the dtype of the gradient.
    if factor > 1 << 24 or (
        factor > 256 and dtype_of(tensor_of(grad_of(op))) in (DT_HALF, DT_BFLOAT16)
    ):
        return DECLINED
    grad = _sum_grad(op)
    return grad if grad is DECLINED else (_REAL_DIV.run((grad, float(factor))), None)


cdef object _max_or_min(BackwardOp* op):
    cdef bint everything = False
    x, axis, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    kept = _kept_shape(x, axis, &everything)
    keep_dims = attr_of(op, "keep_dims")
    if kept is None or type(keep_dims) is not bool or not is_float(grad):
        return DECLINED
    y = output_of(op, 0)
    if op.recorded:
        shape_of(op, x)
        if keep_dims:
            kept = shape_of(op, y)
    if not keep_dims:
        y = _RESHAPE.run((y, kept))
        grad = _RESHAPE.run((grad, kept))
    chosen = _CAST.run((_EQUAL.run((y, x)), _dtypes.as_dtype(<int>dtype_of(tensor_of(grad)))))
    count = _RESHAPE.run((_SUM.run((chosen, axis, False)), kept))
    return _MUL.run((_REAL_DIV.run((chosen, count)), grad)), None


register("Max", "math_grad._MaxGrad", _max_or_min)
register("Mean", "math_grad._MeanGrad", _mean)
register("Min", "math_grad._MinGrad", _max_or_min)
register("Sum", "math_grad._SumGrad", _sum)
