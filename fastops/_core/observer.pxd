from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.options cimport OnFallback, Options, Thread


# An observer of the calls of ops: a profile (`measuring.pyx`), the recorder of a call that is going
# to be replayed (`_install/replay/recorder.pyx`), or `on_fallback` (`Reporter`). It overrides the
# methods that it needs; those of the base class do nothing.
#
# Profiles and recorders are put on a thread, each inside of those that are open there;
# `Thread.observer` is the innermost. A call of an op tells at most one of them
# (`Invocation.observer` in `_dispatch`): the innermost profile, or else the recorder.
cdef class Observer:
    cdef Observer outer       # the next one on the thread, or None
    cdef Thread* thread       # on which it was put; compared, never followed
    cdef bint is_open
    cdef bint measures        # calls: `begin` and `end` are called around each
    cdef bint records         # ops: they are part of a call that is recorded, or of a trial
    cdef object callback      # of one that records, the op callback by which TensorFlow reaches it
    cdef Options options      # of one that records, those of its calls
    # Of one that records: whether the innermost call that TensorFlow's function makes has still to
    # be counted. If that function comes back with the op and it is direct, the call was direct.
    cdef bint uncounted

    cdef int put_on(self, Thread* thread) except -1
    cdef int take_off(self) except -1

    # Where a call is measured.
    cdef int begin(self, Thread* thread) except -1
    cdef int end(self, str op_name, Thread* thread) except -1
    # The key of the call is new: what differs from the nearest known one, see `Schema.changes`.
    cdef int is_new(self, tuple changes) except -1
    # Around the kernel of a direct call. Where its nanoseconds are added; null: nowhere. Of the
    # entry None says that the kernel has not run.
    cdef int64_t* begin_kernel(self) noexcept
    cdef int end_kernel(self, object entry, bint in_caller) except -1
    # Around the time in which TensorFlow has the call.
    cdef int leave(self) except -1
    cdef int come_back(self) except -1
    # The call does not take the direct path. The detail is what the reason's text leaves open.
    cdef int fell_back(self, str op_name, int path, int reason, str detail) except -1
    # An op ran directly, of which TensorFlow's op callbacks are not told.
    cdef int ran(self, str op_name, tuple inputs, tuple attrs, list outputs) except -1


# The innermost observer of a thread that measures calls, borrowed; null if there is none. Drops
# those that were closed.
cdef PyObject* measurer_of(Thread* thread) noexcept
# The one that records ops, borrowed; null if there is none.
cdef PyObject* recorder_of(Thread* thread) noexcept
# What `fastops.options(on_fallback=...)` asks for, anything but "ignore".
cdef Observer reporter_of(OnFallback how)


cdef inline bint is_measured(Thread* thread) noexcept:
    return thread.observer != NULL and measurer_of(thread) != NULL


cdef inline bint is_recorded(Thread* thread) noexcept:
    return thread.observer != NULL and recorder_of(thread) != NULL


# Puts an object, or for None nothing, where a thread keeps a reference.
cdef void put(PyObject** place, object value) noexcept
