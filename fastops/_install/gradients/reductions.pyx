# distutils: language = c++
"""Gradients of reductions."""

from libc.stdint cimport int64_t

from fastops._core.tensors cimport dtype_of, int_tensor, num_elements, rank_of, sizes_of
from fastops._cpp.declarations cimport Sizes
from fastops._install.gradients.rules cimport TENSORFLOW, register
from fastops._install.gradients.shapes cimport shape_of
from fastops._install.gradients.step cimport (
    Step,
    attr_of,
    elements_of,
    grad_of,
    input_of,
    is_float,
    output_of,
    tensor_of,
)
from fastops._install.intercept cimport Call
from fastops._tf.protos cimport DT_BFLOAT16, DT_HALF, DT_INT32

from tensorflow.python.framework import dtypes as _dtypes


cdef Call _BROADCAST_TO = Call("BroadcastTo", "input shape")
cdef Call _CAST = Call("Cast", "x DstT")
cdef Call _EQUAL = Call("Equal", "x y")
cdef Call _MUL = Call("Mul", "x y")
cdef Call _REAL_DIV = Call("RealDiv", "x y")
cdef Call _RESHAPE = Call("Reshape", "tensor shape")
cdef Call _SUM = Call("Sum", "input axis keep_dims")
cdef Call _TILE = Call("Tile", "input multiples")


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


cdef object _sum_grad(Step* step):
    cdef bint everything = False
    x, grad = input_of(step, 0), grad_of(step)
    kept = _kept_shape(x, input_of(step, 1), &everything)
    keep_dims = attr_of(step, "keep_dims")
    if kept is None or type(keep_dims) is not bool:
        return TENSORFLOW
    if everything:
        # TensorFlow's function uses a constant for this shape, too, and runs no Shape.
        shape = int_tensor(sizes_of(tensor_of(x)), DT_INT32, 0)
        return _TILE.run((_RESHAPE.run((grad, kept)), shape))
    shape = shape_of(step, x)
    if not keep_dims:
        grad = _RESHAPE.run((grad, kept))
    return _BROADCAST_TO.run((grad, shape))


cdef object _sum(Step* step):
    grad = _sum_grad(step)
    return grad if grad is TENSORFLOW else (grad, None)


cdef object _mean(Step* step):
    cdef int64_t factor, results = num_elements(tensor_of(output_of(step, 0)))
    factor = num_elements(tensor_of(input_of(step, 0))) // max(results, <int64_t>1)
    # The factor must be exact in the dtype of the gradient.
    if factor > 1 << 24 or (
        factor > 256 and dtype_of(tensor_of(grad_of(step))) in (DT_HALF, DT_BFLOAT16)
    ):
        return TENSORFLOW
    grad = _sum_grad(step)
    return grad if grad is TENSORFLOW else (_REAL_DIV.run((grad, float(factor))), None)


cdef object _max_or_min(Step* step):
    cdef bint everything = False
    x, axis, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    kept = _kept_shape(x, axis, &everything)
    keep_dims = attr_of(step, "keep_dims")
    if kept is None or type(keep_dims) is not bool or not is_float(grad):
        return TENSORFLOW
    y = output_of(step, 0)
    if step.recorded:
        shape_of(step, x)
        if keep_dims:
            kept = shape_of(step, y)
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
