from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._cpp.tape cimport TapeRecord


# Returns the gradients of a record, by a replay of TensorFlow's gradient function of the op or by
# the function itself. `function` is TensorFlow's, which looks it up; the other parameters are those
# of `GradientOfRecord`. The record is that of an op, and keeps EagerTensors only.
cdef object gradients_by_replay(object function, TapeRecord* record, PyObject** grads,
                                int num_grads, const vector[int64_t]& unneeded)
# The same by the function itself.
cdef object gradients_by_function(object function, TapeRecord* record, PyObject** grads,
                                  int num_grads, const vector[int64_t]& unneeded)
