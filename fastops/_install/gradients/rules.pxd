cimport cython

from fastops._install.gradients.step cimport Step
from fastops._specialize.guards.names cimport Guard

# Returns what TensorFlow's gradient function returns, or `TENSORFLOW` to have that one called.
ctypedef object (*rule_t)(Step*)

cdef object TENSORFLOW


@cython.final
cdef class Rule:
    cdef rule_t function
    cdef readonly str stands_for
    cdef dict entry                  # of TensorFlow's registry; None where that has something else
    cdef readonly object registered  # the gradient function in it
    cdef readonly bint restated
    cdef readonly Guard guard        # None where nothing is restated
    cdef bint any_grad
    cdef readonly long long taken
    cdef readonly long long left


cdef int register(str op_names, str stands_for, rule_t function, bint any_grad=*) except -1
