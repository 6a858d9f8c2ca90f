from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.plan cimport Borrowed
from fastops._plans.plan cimport Plan

# A call of TensorFlow's function, in vectorcall form.
cdef struct Original:
    PyObject* target
    PyObject* const* args
    size_t nargsf
    PyObject* keywords


# The course that a call took.
cdef enum Course:
    PLANNED  # the plan ran it
    LEFT     # TensorFlow ran it, for the runner's reason
    CHANGED  # TensorFlow ran it, and the outdated plan was renewed
    TIMED    # TensorFlow ran it, and its time is compared with the plan's
    FAILED   # the plan failed


cdef class Runner:
    cdef public Plan plan     # None: TensorFlow runs all calls
    cdef public str sentence  # why there is no plan
    cdef public str detail    # the particulars of this reason, or None
    cdef public bint settled  # no more calls are timed against TensorFlow
    cdef public list options  # the call options objects that the plan is valid for
    cdef object bare  # calls the trace, with TensorFlow's filter of tracebacks
    cdef bint known                    # a case uses this runner
    cdef readonly double num_nodes     # of the trace; 0: not counted yet
    cdef readonly int64_t call_ns      # time of the shortest call before there was a plan
    cdef bint waits_for_seed           # there may be a plan when a global seed is set again
    cdef unsigned long long era        # of the draws by seeds, when this object was made
    cdef unsigned long long bare_for  # the generation for which `run_bare` is valid; 0: none

    cdef bint fits(self, Plan plan) except -1
    cdef bint is_outdated(self) except -1
    cdef object run_changed(self, list inputs, const Original* call)
    cdef object run_as(self, const Borrowed& given, object pack, const Original* call,
                       Course* course)


cdef object call_original(const Original* call)
