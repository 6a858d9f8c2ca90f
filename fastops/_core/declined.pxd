# Returned in place of a result by code that stands in for a function of TensorFlow or Keras, for a
# call that it does not handle. The caller then calls that function.
cdef object DECLINED
