from fastops._cpp.declarations cimport Sizes
from fastops._install.gradients.step cimport Step
from fastops._tf.protos cimport DataType

cdef object conj(object value)
cdef object shape_of(Step* step, object value)
cdef object typed_shape_of(Step* step, object value, DataType dtype)
cdef object like(Step* step, object value, object grad)
cdef object summed(object grad, const Sizes& axes, object shape)
cdef object unbroadcast(Step* step, object x, object y, object x_grad, object y_grad)
cdef object unbroadcast_batches(Step* step, object x, object y, object x_grad, object y_grad)
