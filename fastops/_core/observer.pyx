# distutils: language = c++
"""Observers of the calls of ops: the base class, and functions to find a thread's observers."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t

from fastops._core.threads cimport default_thread, this_thread

from fastops._core import fallback as _fallback
from fastops._core.reasons import PATHS, REASONS
from fastops._core.threads import ON_FALLBACK


cdef class Observer:
    """The base class of observers. Its methods do nothing."""

    cdef int put_on(self, Thread* thread) except -1:
        """Makes this the innermost observer of a thread."""
        _drop_closed(thread)
        self.outer = <Observer>thread.observer if thread.observer != NULL else None
        self.thread = thread
        self.is_open = True
        put(&thread.observer, self)
        return 0

    cdef int take_off(self) except -1:
        """Closes the observer. Any thread may call this.

        Other threads that have the observer drop it when they next look up their observers.
        """
        self.is_open = False
        _drop_closed(this_thread())
        _drop_closed(default_thread())
        return 0

    cdef int begin(self, Thread* thread) except -1:
        return 0

    cdef int end(self, str op_name, Thread* thread) except -1:
        return 0

    cdef int is_new(self, tuple changes) except -1:
        return 0

    cdef int64_t* begin_kernel(self) noexcept:
        return NULL

    cdef int end_kernel(self, object entry, bint in_caller) except -1:
        return 0

    cdef int leave(self) except -1:
        return 0

    cdef int come_back(self) except -1:
        return 0

    cdef int fell_back(self, str op_name, int path, int reason, str detail) except -1:
        return 0

    cdef int ran(self, str op_name, tuple inputs, tuple attrs, list outputs) except -1:
        return 0


@cython.final
cdef class Reporter(Observer):
    """Warns, logs or raises if a call does not take the direct path."""

    cdef str how

    def __cinit__(self, str how):
        self.how = how

    cdef int fell_back(self, str op_name, int path, int reason, str detail) except -1:
        found = REASONS[reason]
        _fallback.report(op_name, PATHS[path], found.id, found.sentence, detail, self.how)
        return 0


cdef tuple _REPORTERS = tuple([Reporter(how) for how in ON_FALLBACK])


cdef Observer reporter_of(OnFallback how):
    return <Observer>_REPORTERS[<int>how]


cdef void _drop_closed(Thread* thread) noexcept:
    while thread.observer != NULL and not (<Observer>thread.observer).is_open:
        put(&thread.observer, (<Observer>thread.observer).outer)


cdef PyObject* measurer_of(Thread* thread) noexcept:
    cdef PyObject* observer
    _drop_closed(thread)
    observer = thread.observer
    while observer != NULL and observer != <PyObject*>None:
        if (<Observer>observer).measures and (<Observer>observer).is_open:
            return observer
        observer = <PyObject*>(<Observer>observer).outer
    return NULL


cdef PyObject* recorder_of(Thread* thread) noexcept:
    cdef PyObject* observer = thread.observer
    while observer != NULL and observer != <PyObject*>None:
        if (
            (<Observer>observer).records
            and (<Observer>observer).is_open
            and (<Observer>observer).thread == thread  # new threads inherit observers
        ):
            return observer
        observer = <PyObject*>(<Observer>observer).outer
    return NULL


cdef void put(PyObject** slot, object value) noexcept:
    cdef PyObject* before = slot[0]
    slot[0] = NULL
    if value is not None:
        Py_INCREF(value)
        slot[0] = <PyObject*>value
    Py_XDECREF(before)
