cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._autodiff.backward_op cimport BackwardOp
from fastops._cpp.tape cimport TapeRecord
from fastops._specialize.guards.names cimport Guard

# Returns the result of TensorFlow's gradient function, or `DECLINED` to fall back to it.
ctypedef object (*rule_t)(BackwardOp*)


@cython.final
cdef class Rule:
    cdef rule_t function
    cdef rule_t first                # for the code that the rule was written for
    cdef rule_t later                # for the variant in later versions of TensorFlow, or NULL
    cdef readonly str stands_for
    cdef dict entry                  # entry in TensorFlow's registry; None if it is not as expected
    cdef readonly object registered  # the gradient function in this entry
    cdef readonly bint restated
    cdef readonly Guard guard        # None until the rule may run
    cdef bint any_grad
    cdef readonly long long taken
    cdef readonly long long left


cdef int register(str op_names, str stands_for, rule_t function, bint any_grad=*,
                  rule_t later=*) except -1
# Begins a walk in this thread. If `odd`, no rule runs in it: a gradient may have another shape or
# dtype than its tensor, and TensorFlow's functions then raise errors where a rule computes nothing.
cdef void begin_walk(bint odd) noexcept
# Ends the walk that was begun last.
cdef void end_walk() noexcept
# Whether a gradient has the shape and dtype of its tensor. Both are EagerTensors.
cdef bint is_alike(object gradient, object tensor) except -1
# Returns the gradients of a record. The parameters are those of `GradientOfRecord`.
cdef object gradients_of_record(TapeRecord* record, PyObject** grads, int num_grads,
                                const vector[int64_t]& unneeded)
# Returns the gradients of an op. The parameters are those of ``backprop._gradient_function``.
cdef object gradients_by_rule(object op_name, object attrs, object inputs, object outputs,
                              object grads, object unused)
