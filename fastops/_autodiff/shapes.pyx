# distutils: language = c++
"""Functions for rules that compute shapes of values, and bring gradients into these shapes."""

from cpython.object cimport PyObject

from fastops._autodiff.backward_op cimport BackwardOp, is_complex, tensor_of
from fastops._call_site cimport CallSite
from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport host_tensor, int_tensor, reduced_axes, size_of, sizes_of
from fastops._cpp.declarations cimport Sizes
from fastops._tf.protos cimport DT_INT32, DataType
from fastops._tf.tensor cimport Tensor

from tensorflow.python.framework import dtypes as _dtypes


cdef CallSite _CONJ = CallSite("Conj", "input")
cdef CallSite _RESHAPE = CallSite("Reshape", "tensor shape")
cdef CallSite _SHAPE = CallSite("Shape", "input out_type")
cdef CallSite _SUM = CallSite("Sum", "input axis keep_dims")

cdef object _INT32 = _dtypes.int32
cdef object _INT64 = _dtypes.int64


cdef object conj(object value):
    return _CONJ.run((value,)) if is_complex(value) else value


cdef object shape_of(BackwardOp* op, object value):
    """Return the shape of a value as a tensor of int32."""
    return typed_shape_of(op, value, DT_INT32)


cdef object typed_shape_of(BackwardOp* op, object value, DataType dtype):
    """Return the shape of a value as int32 or int64; by TensorFlow's op if ops are recorded."""
    if op.recorded:
        return _SHAPE.run((value, _INT32 if dtype == DT_INT32 else _INT64))
    return int_tensor(sizes_of(tensor_of(value)), dtype, 0)


cdef object like(BackwardOp* op, object value, object grad):
    """Reshape a gradient to the shape of its value."""
    shape = shape_of(op, value)
    return _RESHAPE.run((grad, shape))


cdef bint _sum_copies(object value, const Sizes& axes) noexcept:
    """Whether all axes have size one. TensorFlow's kernel for the host then copies all bits."""
    cdef const Tensor* tensor = host_tensor(<PyObject*>value)
    cdef size_t i
    if tensor == NULL:
        return False
    for i in range(axes.size()):
        if size_of(tensor, <int>axes[i]) != 1:
            return False
    return True


cdef object summed(BackwardOp* op, object grad, const Sizes& axes, object shape):
    """Sum a gradient along axes, and reshape it: only sizes of one may be added or removed."""
    if op.recorded or not _sum_copies(grad, axes):
        grad = _SUM.run((grad, int_tensor(axes, DT_INT32, 0), True))
    return _RESHAPE.run((grad, shape))


cdef object unbroadcast(BackwardOp* op, object x, object y, object x_grad, object y_grad):
    """Sum the gradients of two operands to the shapes of the operands."""
    cdef Sizes x_axes, y_axes
    if x_grad is None and y_grad is None:
        return None, None
    if not reduced_axes(sizes_of(tensor_of(x)), sizes_of(tensor_of(y)), &x_axes, &y_axes):
        return DECLINED
    # TensorFlow runs Shape for both operands. The op that computes axes from the shapes is never
    # recorded.
    x_shape = None if x_grad is None and not op.recorded else shape_of(op, x)
    y_shape = None if y_grad is None and not op.recorded else shape_of(op, y)
    if x_grad is not None:
        x_grad = summed(op, x_grad, x_axes, x_shape)
    if y_grad is not None:
        y_grad = summed(op, y_grad, y_axes, y_shape)
    return x_grad, y_grad


cdef object unbroadcast_batches(BackwardOp* op, object x, object y, object x_grad, object y_grad):
    """Sum the gradients of two batches of matrices to the shapes of these batches."""
    cdef Sizes x_sizes = sizes_of(tensor_of(x)), y_sizes = sizes_of(tensor_of(y))
    cdef Sizes x_axes, y_axes
    x_sizes.resize(x_sizes.size() - 2)
    y_sizes.resize(y_sizes.size() - 2)
    if x_sizes == y_sizes:
        return x_grad, y_grad
    if not reduced_axes(x_sizes, y_sizes, &x_axes, &y_axes):
        return DECLINED
    x_shape = None if x_grad is None else shape_of(op, x)
    y_shape = None if y_grad is None else shape_of(op, y)
    if x_grad is not None:
        x_grad = _RESHAPE.run((_SUM.run((x_grad, int_tensor(x_axes, DT_INT32, 0), False)), x_shape))
    if y_grad is not None:
        y_grad = _RESHAPE.run((_SUM.run((y_grad, int_tensor(y_axes, DT_INT32, 0), False)), y_shape))
    return x_grad, y_grad
