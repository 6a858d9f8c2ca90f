from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.plan cimport ArgumentKinds
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._plans.runner cimport Original, Runner
from fastops._specialize.policy cimport Account


cdef class RuntimeFunction:
    cdef vectorcall_t vectorcall
    cdef object __weakref__
    cdef object reference          # weak, to TensorFlow's object
    cdef object method             # TensorFlow's `call_flat`
    cdef readonly Runner runner    # None: TensorFlow runs all calls
    cdef readonly str draws        # see `fastops._plans.sequences.draws_of`
    cdef readonly bint owned       # the plan runs all calls
    cdef Account account
    cdef ArgumentKinds kinds       # what the plan assumes of its arguments
    cdef bint making               # a thread makes the plan
    cdef bint refused              # there can be no plan
    cdef bint due                  # the next call may make a plan that owns the function
    cdef double num_nodes          # 0: not counted yet
    cdef bint loops                # nodes run more than once in a call
    cdef bint derived              # runs under tapes: forward and backward functions
    cdef long long runs            # by TensorFlow, since all sequences have begun
    cdef unsigned long long era    # the draws by seeds that `runs` belongs to
    cdef list options              # the call options objects of these runs
    cdef object rng                # of the context, when the plan has begun its sequences
    cdef object context            # a weak reference to TensorFlow's context

    cdef int begin_era(self) except -1
    cdef int note_run(self) except -1
    cdef bint may_own(self, const Original* call, Py_ssize_t size) except -1
    cdef int try_plan(self, const Original* call, Py_ssize_t size) except -1
    cdef bint is_usual(self, object context) except -1
    cdef object run_owned(self, PyObject* const* args, Py_ssize_t size, PyObject* keywords)
    cdef bint is_due(self, int64_t ns) except -1
    cdef object run_plan(self, PyObject* const* args, Py_ssize_t size, const Original* call,
                         bint* fits)


# Makes a call of `AtomicFunction.call_flat`, which has `size` arguments. The first one is the
# `AtomicFunction`.
cdef object call_flat(const Original* call, Py_ssize_t size)
