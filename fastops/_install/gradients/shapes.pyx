# distutils: language = c++
"""Gradients brought into the shapes of the values that they belong to."""

from fastops._core.tensors cimport int_tensor, reduced_axes, sizes_of
from fastops._cpp.declarations cimport Sizes
from fastops._install.gradients.rules cimport TENSORFLOW
from fastops._install.gradients.step cimport is_complex, shape_of, tensor_of
from fastops._install.intercept cimport Call
from fastops._tf.protos cimport DT_INT32


cdef Call _CONJ = Call("Conj", "input")
cdef Call _RESHAPE = Call("Reshape", "tensor shape")
cdef Call _SUM = Call("Sum", "input axis keep_dims")


cdef object conj(object value):
    return _CONJ.run((value,)) if is_complex(value) else value


cdef object like(object value, object grad):
    """A gradient in the shape of the value that it belongs to."""
    return _RESHAPE.run((grad, shape_of(value)))


cdef object summed(object grad, const Sizes& axes, object value):
    grad = _SUM.run((grad, int_tensor(axes, DT_INT32, 0), True))
    return like(value, grad)


cdef object unbroadcast(object x, object y, object x_grad, object y_grad):
    """The gradients of two operands in the shapes that these have."""
    cdef Sizes x_axes, y_axes
    if x_grad is None and y_grad is None:
        return None, None
    if not reduced_axes(sizes_of(tensor_of(x)), sizes_of(tensor_of(y)), &x_axes, &y_axes):
        return TENSORFLOW
    if x_grad is not None:
        x_grad = summed(x_grad, x_axes, x)
    if y_grad is not None:
        y_grad = summed(y_grad, y_axes, y)
    return x_grad, y_grad


cdef object unbroadcast_batches(object x, object y, object x_grad, object y_grad):
    """Likewise of two batches of matrices."""
    cdef Sizes x_sizes = sizes_of(tensor_of(x)), y_sizes = sizes_of(tensor_of(y))
    cdef Sizes x_axes, y_axes
    x_sizes.resize(x_sizes.size() - 2)
    y_sizes.resize(y_sizes.size() - 2)
    if x_sizes == y_sizes:
        return x_grad, y_grad
    if not reduced_axes(x_sizes, y_sizes, &x_axes, &y_axes):
        return TENSORFLOW
    if x_grad is not None:
        x_grad = like(x, _SUM.run((x_grad, int_tensor(x_axes, DT_INT32, 0), False)))
    if y_grad is not None:
        y_grad = like(y, _SUM.run((y_grad, int_tensor(y_axes, DT_INT32, 0), False)))
    return x_grad, y_grad
