from fastops._autodiff.backward_op cimport BackwardOp
from fastops._cpp.declarations cimport Sizes
from fastops._tf.protos cimport DataType

cdef object conj(object value)
cdef object shape_of(BackwardOp* op, object value)
cdef object typed_shape_of(BackwardOp* op, object value, DataType dtype)
cdef object like(BackwardOp* op, object value, object grad)
cdef object summed(BackwardOp* op, object grad, const Sizes& axes, object shape)
cdef object unbroadcast(BackwardOp* op, object x, object y, object x_grad, object y_grad)
cdef object unbroadcast_batches(BackwardOp* op, object x, object y, object x_grad, object y_grad)
