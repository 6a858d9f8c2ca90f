from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._core.observer cimport Observer
from fastops._core.reasons cimport NUM_PATHS
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
    cdef int64_t stop
    cdef int64_t left         # when the call went to TensorFlow, last
    cdef int64_t first_left   # and first; 0: it did not
    cdef int64_t back         # when it came back, last
    cdef int64_t kernel_start  # just before the kernel ran; 0: it did not
    cdef int64_t inside_left  # what `inside_ns` was then
    cdef int64_t inside_ns    # time in the measured calls inside
    cdef int64_t kernel_ns
    cdef int64_t tensorflow_ns

    cdef void begin(self, Recorder recorder, Thread* thread) noexcept
    cdef void leave(self) noexcept
    cdef void come_back(self) noexcept
    cdef int end(self, str op_name, Thread* thread) except -1


# A call on the time line. Times are those of the monotonic clock.
cdef struct Event:
    void* tally               # of the op: borrowed, the recorder keeps all
    long thread               # the thread's number
    int path
    int reason
    int64_t start
    int64_t stop
    int64_t kernel_start
    int64_t kernel_ns
    int64_t left
    int64_t back


cdef class Recorder(Observer):
    cdef int64_t start
    cdef int64_t stop
    cdef int64_t inside_ns    # time in calls on that thread, and in recording them
    cdef dict tallies         # op name -> Tally
    cdef bint keeps           # each call with its times, too
    cdef vector[Event] events  # in the order in which they ended, no more than MOST_EVENTS
    cdef dict threads         # the names of their threads, by number
    cdef long opener          # the number of the thread that opened it
    cdef list entries         # of the calls, in their order; None where nobody asks

    cdef int add(self, str op_name, Measurement measured, int64_t dispatch_ns) except -1
    cdef int keep(self, Tally tally, Measurement measured) except -1


cdef class Tally:
    cdef str op_name
    cdef long long calls[NUM_PATHS]
    cdef long long in_caller
    cdef int64_t dispatch_ns
    cdef int64_t kernel_ns
    cdef int64_t tensorflow_ns
    cdef dict reasons         # (path, reason, detail, changes) -> number of calls
