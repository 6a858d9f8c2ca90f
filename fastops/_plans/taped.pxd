# Runs a call of a traced function that tapes record; `DECLINED` if TensorFlow has to make the call.
# `concrete` is the trace, `given` and `captured` its tensors.
cdef object call_taped(object concrete, object given, object captured)
