from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.options cimport OnFallback, Options, Thread


# An observer of the calls of ops. There are three kinds: a profile (`measuring.pyx`), the recorder
# of a call that will be replayed (`_specialize/recording/recorder.pyx`), and `on_fallback`
# (`Reporter`). Each overrides the methods that it needs. The methods of the base class do nothing.
#
# Profiles and recorders are put on a thread. They nest, and `Thread.observer` is the innermost one.
# A call of an op notifies at most one of them (`Invocation.observer` in `_dispatch`): the innermost
# profile, or the recorder if there is no profile.
cdef class Observer:
    cdef Observer outer       # the next outer observer of the thread, or None
    cdef Thread* thread       # the thread it was put on; only compared, never dereferenced
    cdef bint is_open
    cdef bint measures        # it is a profile: `begin` and `end` are called around each call
    cdef bint records         # it is a recorder: the ops belong to a recording or to a trial
    cdef object callback      # for a recorder: the op callback through which TensorFlow reaches it
    cdef Options options      # for a recorder: the options of the recorded calls
    # For a recorder: whether the innermost call of TensorFlow's function still has to be counted.
    # If that function calls fastops with the same op and the nested call is direct, the outer call
    # is counted as direct.
    cdef bint uncounted

    cdef int put_on(self, Thread* thread) except -1
    cdef int take_off(self) except -1

    # Called around each measured call.
    cdef int begin(self, Thread* thread) except -1
    cdef int end(self, str op_name, Thread* thread) except -1
    # Called if the key of the call is new, with the differences from the most similar known key.
    # See `Schema.changes`.
    cdef int is_new(self, tuple changes) except -1
    # Called around the kernel of a direct call. `begin_kernel` returns where to add the nanoseconds
    # of the kernel, or null. The entry is None if the kernel did not run.
    cdef int64_t* begin_kernel(self) noexcept
    cdef int end_kernel(self, object entry, bint in_caller) except -1
    # Called when TensorFlow takes over the call, and when it returns.
    cdef int leave(self) except -1
    cdef int come_back(self) except -1
    # Called if the call does not take the direct path. `detail` adds details to the reason's text.
    cdef int fell_back(self, str op_name, int path, int reason, str detail) except -1
    # Called after an op ran directly, since TensorFlow's op callbacks are not called for it.
    cdef int ran(self, str op_name, tuple inputs, tuple attrs, list outputs) except -1


# Returns the innermost profile of a thread, borrowed; null if there is none. Drops closed
# observers.
cdef PyObject* measurer_of(Thread* thread) noexcept
# Returns the recorder of a thread, borrowed; null if there is none.
cdef PyObject* recorder_of(Thread* thread) noexcept
# Returns the reporter for a value of `fastops.options(on_fallback=...)` other than "ignore".
cdef Observer reporter_of(OnFallback how)


cdef inline bint is_measured(Thread* thread) noexcept:
    return thread.observer != NULL and measurer_of(thread) != NULL


cdef inline bint is_recorded(Thread* thread) noexcept:
    return thread.observer != NULL and recorder_of(thread) != NULL


# Replaces an owned reference of a thread. None clears it.
cdef void put(PyObject** slot, object value) noexcept
