# distutils: language = c++
"""Notes which Python functions a thread runs, and when, by a profile function of the thread."""

cimport cython
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int32_t, int64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import sys

from fastops._core.threads cimport this_thread
from fastops._cpp.profiling cimport (
    CodeOf, DefinitionOf, PyEval_SetProfile, PyFrameObject, PyTrace_C_CALL,
    PyTrace_CALL, PyTrace_RETURN,
)
from fastops._cpp.timer cimport Nanoseconds
from fastops._specialize.policy cimport MAX_PROFILED_FRAMES

cdef enum:
    RETURNS = -1    # a function in Python returns
    C_RETURNS = -2  # a function in C returns


cdef struct Moment:
    int64_t when
    int32_t what    # the number of the called function, or one of the above
    int32_t lost    # nanoseconds for noting a function for the first time


cdef tuple _title(object function):
    """The module and the name of a function in C. Errors in its attributes are not raised."""
    try:
        return str(function.__module__ or ""), str(function.__name__)
    except Exception:
        return "", "?"


@cython.final
cdef class Log:
    """The log of a thread's calls. It is written while it has readers."""

    cdef vector[Moment] moments
    cdef unordered_map[const void*, int32_t] numbers  # by code or C definition
    cdef list called      # by number: code, or the module and name of a C function
    cdef int readers

    def __cinit__(self):
        self.called = []

    cdef int32_t number(self, const void* key, PyObject* what, bint is_code) except -1:
        entry = self.numbers.find(key)
        if entry != self.numbers.end():
            return deref(entry).second
        if is_code:
            self.called.append(<object>what)  # keeps it alive, so that its address stays unique
        else:
            self.called.append(_title(<object>what))
        self.numbers[key] = <int32_t>(len(self.called) - 1)
        return <int32_t>(len(self.called) - 1)

    cdef int see(self, int event, PyFrameObject* frame, PyObject* given) except -1:
        cdef Moment moment
        cdef const void* key
        cdef size_t known = self.numbers.size()
        moment.when = Nanoseconds()
        moment.lost = 0
        if event == PyTrace_CALL:
            key = CodeOf(frame)
            moment.what = self.number(key, <PyObject*>key, True)
        elif event == PyTrace_RETURN:
            moment.what = RETURNS
        elif event == PyTrace_C_CALL:
            key = DefinitionOf(given)
            moment.what = self.number(key if key != NULL else <void*>given, given, False)
        else:
            moment.what = C_RETURNS
        if self.numbers.size() != known:
            moment.lost = <int32_t>(Nanoseconds() - moment.when)
        self.moments.push_back(moment)
        return 0


cdef int _see(PyObject* told, PyFrameObject* frame, int event, PyObject* given) except -1:
    cdef Log log = <Log>told  # a reference: the profile function may be removed meanwhile
    if log.readers == 0 or log.moments.size() >= <size_t>MAX_PROFILED_FRAMES:
        PyEval_SetProfile(NULL, None)
        return 0
    return log.see(event, frame, given)


@cython.final
cdef class Frames:
    """Notes the calls of functions in Python and C by this thread, from `open` to `close`.

    Attributes
    ----------
    thread : int
        The thread's number.
    is_refused : bool
        Whether nothing is noted, since another tool has set a profile function.
    """

    cdef Log log
    cdef size_t first
    cdef size_t last
    cdef bint is_open
    cdef readonly long thread
    cdef readonly bint is_refused

    def open(self):
        """Start. All readers of a thread share its log."""
        before = sys.getprofile()
        self.thread = this_thread().number
        self.is_refused = before is not None and not isinstance(before, Log)
        if self.is_refused:
            return
        self.log = <Log>before if before is not None else Log()
        self.log.readers += 1
        self.is_open = True
        self.first = self.log.moments.size()
        if before is None:
            PyEval_SetProfile(_see, self.log)

    def close(self):
        """Stop. If another thread calls this, noting stops at the noted thread's next event."""
        if self.is_open:
            self.is_open = False
            self.last = self.log.moments.size()
            self.log.readers -= 1
            if self.log.readers == 0 and sys.getprofile() is self.log:
                PyEval_SetProfile(NULL, None)

    def moments(self):
        """Return the moments: time in nanoseconds, a number, and nanoseconds lost by noting.

        The number is that of the called function, -1 if a function in Python returns, and -2 if a
        function in C returns.
        """
        cdef size_t i
        cdef size_t last
        if self.log is None:
            return []
        last = self.log.moments.size() if self.is_open else self.last
        return [
            (self.log.moments[i].when, self.log.moments[i].what, self.log.moments[i].lost)
            for i in range(self.first, last)
        ]

    def called(self):
        """Return the called functions by number: code, or the module and name of a C function."""
        return [] if self.log is None else list(self.log.called)

    def is_cut(self):
        """Return whether the log is full, so that calls are missing."""
        return self.log is not None and self.log.moments.size() >= <size_t>MAX_PROFILED_FRAMES


def times(calls, int count):
    """Measure the overhead of noting.

    Parameters
    ----------
    calls : callable
        Takes a number, and does something this number of times.
    count : int
        The number to pass.

    Returns
    -------
    tuple of int, int and Frames
        Nanoseconds of the call without noting, and with noting, each the minimum of several rounds;
        and the notes of the last round.
    """
    cdef int64_t start
    cdef int64_t took
    cdef Frames frames
    plain = noted = None
    for _ in range(7):
        start = Nanoseconds()
        calls(count)
        took = Nanoseconds() - start
        plain = took if plain is None else min(plain, took)
        frames = Frames()
        frames.open()
        start = Nanoseconds()
        calls(count)
        took = Nanoseconds() - start
        frames.close()
        noted = took if noted is None else min(noted, took)
    return plain, noted, frames
