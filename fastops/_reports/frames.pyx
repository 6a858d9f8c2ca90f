# distutils: language = c++
"""Which Python a thread runs, and when: noted by a profile function of that thread."""

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

# 16 bytes each.
cdef size_t MOST_MOMENTS = 2_000_000

cdef enum:
    RETURNS = -1    # of a function of Python
    C_RETURNS = -2


cdef struct Moment:
    int64_t when
    int32_t what    # the number of what is called, or one of the above
    int32_t lost    # nanoseconds that noting it for the first time took


cdef tuple _title(object function):
    """The module and the name of a function in C. No fault in either is to end the program."""
    try:
        return str(function.__module__ or ""), str(function.__name__)
    except Exception:
        return "", "?"


@cython.final
cdef class Log:
    """What a thread runs, as long as somebody reads it."""

    cdef vector[Moment] moments
    cdef unordered_map[const void*, int32_t] numbers  # of code, and of definitions of C functions
    cdef list called      # by number: code, or the module and name of a C function
    cdef int readers

    def __cinit__(self):
        self.called = []

    cdef int32_t number(self, const void* key, PyObject* what, bint is_code) except -1:
        found = self.numbers.find(key)
        if found != self.numbers.end():
            return deref(found).second
        if is_code:
            self.called.append(<object>what)  # kept, so that no other is at its place
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
    cdef Log log = <Log>told  # held: it may be taken off meanwhile
    if log.readers == 0 or log.moments.size() >= MOST_MOMENTS:
        PyEval_SetProfile(NULL, None)
        return 0
    return log.see(event, frame, given)


@cython.final
cdef class Frames:
    """The calls of functions, in Python and in C, that this thread makes from `open` to `close`.

    Attributes
    ----------
    thread : int
        The thread's number.
    is_refused : bool
        Whether nothing is noted, since somebody else has a profile function.
    """

    cdef Log log
    cdef size_t first
    cdef size_t last
    cdef bint is_open
    cdef readonly long thread
    cdef readonly bint is_refused

    def open(self):
        """Begin. Readers of one thread share its log."""
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
        """End, on whichever thread: on its own at once, else as soon as that one goes on."""
        if self.is_open:
            self.is_open = False
            self.last = self.log.moments.size()
            self.log.readers -= 1
            if self.log.readers == 0 and sys.getprofile() is self.log:
                PyEval_SetProfile(NULL, None)

    def moments(self):
        """When it was noted what: nanoseconds, a number, and nanoseconds that the noting lost.

        The number is that of what is called, -1 where a function of Python returns, and -2 where
        one in C does.
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
        """By number what is called: code, or the module and the name of a function in C."""
        return [] if self.log is None else list(self.log.called)

    def is_cut(self):
        """Whether there was more than is kept."""
        return self.log is not None and self.log.moments.size() >= MOST_MOMENTS


def times(calls, int count):
    """Measure what noting takes.

    Parameters
    ----------
    calls : callable
        What does something as often as it is told to.
    count : int
        How often.

    Returns
    -------
    tuple of int, int and Frames
        Nanoseconds of all of it, and of the same while this thread's calls are noted, each the
        least of some rounds; and what was noted in the last one.
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
