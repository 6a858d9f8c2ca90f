from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._core.observer cimport Observer
from fastops._core.reasons cimport NUM_PATHS
from fastops._core.threads cimport Thread


cdef class Measurement:
    cdef Measurement outer    # the measured call that contains this one, or None
    cdef ProfileRecorder recorder    # the innermost recorder, to which the call is added
    cdef int path
    cdef object entry         # for a direct call, the Entry or Placing that ran it
    cdef bint in_caller       # whether the kernel's tasks ran in this thread
    cdef int reason
    cdef str detail           # details that the text of the reason does not give, or None
    cdef tuple changes        # see Schema.changes
    cdef int64_t start
    cdef int64_t stop
    cdef int64_t left         # when the call last went to TensorFlow
    cdef int64_t first_left   # when the call first went to TensorFlow; 0: never
    cdef int64_t back         # when the call last came back from TensorFlow
    cdef int64_t kernel_start  # just before the kernel ran; 0: it did not run
    cdef int64_t inside_left  # the value of `inside_ns` at `left`
    cdef int64_t inside_ns    # time in nested measured calls
    cdef int64_t kernel_ns
    cdef int64_t tensorflow_ns

    cdef void begin(self, ProfileRecorder recorder, Thread* thread) noexcept
    cdef void leave(self) noexcept
    cdef void come_back(self) noexcept
    cdef int end(self, str op_name, Thread* thread) except -1


# A call on the time line. Times are from the monotonic clock.
cdef struct Event:
    void* tally               # the op's Tally; borrowed from the recorder
    long thread               # the thread's number
    int path
    int reason
    int64_t start
    int64_t stop
    int64_t kernel_start
    int64_t kernel_ns
    int64_t left
    int64_t back


cdef class ProfileRecorder(Observer):
    cdef int64_t start
    cdef int64_t stop
    cdef int64_t inside_ns    # time in calls on the opener's thread, including their recording
    cdef dict tallies         # op name -> Tally
    cdef bint keeps           # whether to store each call in `events`
    cdef vector[Event] events  # in the order in which calls ended, at most MAX_EVENTS
    cdef dict threads         # the names of the calls' threads, by number
    cdef long opener          # the number of the thread that called `open`
    cdef list entries         # the calls' entries in the order of the calls; None: not collected
    cdef list walks           # walks over tapes, in the order in which they ended: see `note_walk`

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


# Notes a walk over a tape in all profiles of this thread: its begin and end, by what it was made,
# why it was not replayed (or None), and how many records it has passed.
cdef int note_walk(int64_t start, int64_t stop, str executor, str reason,
                   int64_t records) except -1
