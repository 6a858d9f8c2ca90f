from fastops._cpp.declarations cimport Sizes

cdef object conj(object value)
cdef object like(object value, object grad)
cdef object summed(object grad, const Sizes& axes, object value)
cdef object unbroadcast(object x, object y, object x_grad, object y_grad)
cdef object unbroadcast_batches(object x, object y, object x_grad, object y_grad)
