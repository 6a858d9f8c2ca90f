from libc.stdint cimport int64_t

from fastops._core.threads cimport Thread


cdef class Measurement:
    cdef Measurement outer    # the measured call that this one is made in
    cdef Recorder recorder    # who is told
    cdef int path
    cdef object entry         # of a direct call, how it was run
    cdef bint in_caller       # whether the kernel's tasks ran in this thread
    cdef int reason
    cdef str detail           # what the text of the reason leaves open, or None
    cdef tuple changes        # see Schema.changes
    cdef int64_t start
    cdef int64_t left         # when the call went to TensorFlow
    cdef int64_t inside_left  # what `inside_ns` was then
    cdef int64_t inside_ns    # time in the measured calls inside
    cdef int64_t kernel_ns
    cdef int64_t tensorflow_ns

    cdef void begin(self, Thread* thread) noexcept
    cdef void leave(self) noexcept
    cdef void come_back(self) noexcept
    cdef int end(self, str op_name, Thread* thread) except -1


cdef class Recorder:
    cdef Recorder outer
    cdef Thread* thread       # the one that opened it; compared, never followed
    cdef bint is_open
    cdef int64_t start
    cdef int64_t stop
    cdef int64_t inside_ns    # time in calls on that thread, and in recording them
    cdef dict tallies         # op name -> Tally
    cdef list entries         # of the calls, in their order; None where nobody asks

    cdef int add(self, str op_name, Measurement measured, int64_t dispatch_ns) except -1


# Whether calls are recorded for a thread. Lets go of recorders that were closed.
cdef bint is_recording(Thread* thread) noexcept
