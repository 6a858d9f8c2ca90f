from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.plan cimport Borrowed
from fastops._plans.plan cimport Plan

# A call as TensorFlow's function takes it.
cdef struct Original:
    PyObject* target
    PyObject* const* args
    size_t nargsf
    PyObject* keywords


cdef enum Course:  # that a call took
    PLANNED
    LEFT  # to TensorFlow, for the runner's reason
    CHANGED
    TIMED
    FAILED


cdef class Runner:
    cdef public Plan plan     # None: TensorFlow runs all
    cdef public object reason  # why that is
    cdef public bint settled  # the plan runs whatever it can
    cdef public list options  # the objects of call options that the plan is right for
    cdef object bare  # runs it, and is found in tracebacks where TensorFlow's function would be
    cdef bint known                    # a case has it
    cdef readonly double num_nodes     # of the trace; 0: not counted
    cdef readonly int64_t call_ns      # of the shortest call before there was a plan
    cdef unsigned long long bare_for  # the context for which `run_bare` is right; 0: for none

    cdef bint fits(self, Plan plan) except -1
    cdef bint is_outdated(self) except -1
    cdef object run_changed(self, list inputs, const Original* call)
    cdef object run_as(self, const Borrowed& given, object pack, const Original* call,
                       Course* course)


cdef object call_original(const Original* call)
cpdef bint is_plain() except -1
# The same, wherever TensorFlow places what is called.
cpdef bint is_plain_anywhere() except -1
# As that, but for tapes.
cdef bint is_plain_but_for_tapes() except -1
# The same, or in the only replica of TensorFlow's default strategy.
cdef bint is_plain_or_one_replica() except -1
