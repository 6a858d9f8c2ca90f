# distutils: language = c++
"""Measures the calls of ops while a profile is open."""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._core.observer cimport measurer_of, put
from fastops._core.reasons cimport P_DIRECT
from fastops._core.threads cimport Thread, default_thread, this_thread
from fastops._cpp.timer cimport Nanoseconds

from threading import enumerate as _threads
from threading import get_ident

from fastops._core.reasons import PATHS, REASONS

# The most events that a time line keeps, 80 bytes each. A long program makes more calls than a
# picture can show.
cdef size_t MAX_EVENTS = 200_000


@cython.final
@cython.freelist(16)
cdef class Measurement:
    """One call while it is measured. Nested calls have their own measurements."""
    cdef void begin(self, ProfileRecorder recorder, Thread* thread) noexcept:
        self.outer = <Measurement>thread.measurement if thread.measurement != NULL else None
        self.recorder = recorder
        put(&thread.measurement, self)
        self.start = Nanoseconds()

    cdef void leave(self) noexcept:
        """Stores the time at which TensorFlow takes over."""
        self.inside_left = self.inside_ns
        self.left = Nanoseconds()
        if self.first_left == 0:
            self.first_left = self.left

    cdef void come_back(self) noexcept:
        self.back = Nanoseconds()
        self.tensorflow_ns += self.back - self.left
        self.tensorflow_ns -= self.inside_ns - self.inside_left

    cdef int end(self, str op_name, Thread* thread) except -1:
        """Ends the measurement. The op's name is None if the call did not take place."""
        cdef int64_t dispatch_ns
        cdef ProfileRecorder recorder = self.recorder
        self.stop = Nanoseconds()
        put(&thread.measurement, self.outer)
        dispatch_ns = self.stop - self.start - self.inside_ns
        dispatch_ns -= self.kernel_ns + self.tensorflow_ns
        while op_name is not None and recorder is not None:
            recorder.add(op_name, self, dispatch_ns)
            recorder = _around(recorder)
        # Exclude the overhead of measuring from the dispatch time of all outer calls.
        recorder = self.recorder
        while recorder is not None:
            if recorder.thread == thread:
                recorder.inside_ns += Nanoseconds() - self.start - self.inside_ns
            recorder = _around(recorder)
        if self.outer is not None:
            self.outer.inside_ns += Nanoseconds() - self.start
        return 0


@cython.final
cdef class Tally:
    """Counts and sums the calls of one op."""


@cython.final
cdef class ProfileRecorder(Observer):
    """Sums up the calls of a thread between `open` and `close`, for a profile.

    Recorders of one thread nest: each call is added to the innermost recorder and to all outer
    ones. The methods of `Observer` act on the innermost call that is measured on the thread.
    """
    def __cinit__(self):
        self.measures = True
        self.tallies = {}
        self.threads = {}
        self.walks = []

    def open(self, *, new_threads=False, keep=False):
        """Begins to record the calls of this thread.

        With `new_threads`, also records the calls of threads that start later. With `keep`, also
        stores each call for `timeline`.
        """
        cdef Thread* thread = this_thread()
        self.keeps = keep
        self.opener = thread.number
        self._name(thread.number)
        self.put_on(thread)
        if new_threads:
            put(&default_thread().observer, self)
        self.start = Nanoseconds()

    def close(self):
        """Ends the recording. Any thread may call this."""
        if self.is_open:
            self.stop = Nanoseconds()
            self.take_off()

    def times(self):
        """Returns the nanoseconds since `open`, and how many of them were spent in recorded calls.

        Both include the overhead of recording.
        """
        return (Nanoseconds() if self.is_open else self.stop) - self.start, self.inside_ns

    def interval(self):
        """Returns the number of the thread that called `open`, and the start and end times.

        The end is now if the recorder is still open.
        """
        return self.opener, self.start, Nanoseconds() if self.is_open else self.stop

    def timeline(self):
        """Returns the calls in the order in which they ended, and a dict of thread names by number.

        A call is a tuple: the op's name, the thread's number, path, reason, then times in
        nanoseconds. These are the start and end of the call, the start and duration of its kernel,
        and when TensorFlow took over and returned. Times that do not apply are 0. Only the first
        MAX_EVENTS calls are kept.
        """
        cdef Event* event
        cdef size_t i
        calls = []
        for i in range(self.events.size()):
            event = &self.events[i]
            calls.append((
                (<Tally>event.tally).op_name, event.thread, PATHS[event.path],
                REASONS[event.reason].id, event.start, event.stop, event.kernel_start,
                event.kernel_ns, event.left, event.back,
            ))
        return calls, dict(self.threads)

    def noted_walks(self):
        """Returns the walks over tapes, in the order in which they ended.

        A walk is a tuple: the thread's number, the begin and the end, by what it was made, the
        reason, and the number of records. Only the first MAX_EVENTS walks are kept.
        """
        return list(self.walks)

    def _name(self, number):
        """Stores the name of this thread. A thread that Python did not start gets its number."""
        here = get_ident()
        names = [thread.name for thread in _threads() if thread.ident == here]
        self.threads[number] = names[0] if names else f"thread {number}"

    def calls(self):
        """Returns a dict from op names to sums.

        The sums of an op are a tuple: the number of calls by path; the times in dispatch, kernel
        and TensorFlow; the number of calls whose tasks ran in the calling thread; and a dict that
        counts the calls that were not direct by (path, reason, detail, changes).
        """
        cdef Tally tally
        return {
            name: (
                tuple([tally.calls[i] for i in range(NUM_PATHS)]),
                tally.dispatch_ns,
                tally.kernel_ns,
                tally.tensorflow_ns,
                tally.in_caller,
                dict(tally.reasons),
            )
            for name, tally in list(self.tallies.items())
        }

    cdef int begin(self, Thread* thread) except -1:
        cdef Measurement measured = Measurement.__new__(Measurement)
        measured.begin(self, thread)
        return 0

    cdef int end(self, str op_name, Thread* thread) except -1:
        cdef Measurement measured = <Measurement>thread.measurement
        return measured.end(op_name, thread)

    cdef int is_new(self, tuple changes) except -1:
        (<Measurement>this_thread().measurement).changes = changes
        return 0

    cdef int64_t* begin_kernel(self) noexcept:
        cdef Measurement measured = <Measurement>this_thread().measurement
        measured.kernel_start = Nanoseconds()
        return &measured.kernel_ns

    cdef int end_kernel(self, object entry, bint in_caller) except -1:
        cdef Measurement measured = <Measurement>this_thread().measurement
        if entry is None:
            measured.kernel_start = 0
        measured.in_caller = in_caller
        measured.entry = entry
        return 0

    cdef int leave(self) except -1:
        (<Measurement>this_thread().measurement).leave()
        return 0

    cdef int come_back(self) except -1:
        (<Measurement>this_thread().measurement).come_back()
        return 0

    cdef int fell_back(self, str op_name, int path, int reason, str detail) except -1:
        cdef Measurement measured = <Measurement>this_thread().measurement
        measured.path = path
        measured.reason = reason
        measured.detail = detail
        return 0

    cdef int add(self, str op_name, Measurement measured, int64_t dispatch_ns) except -1:
        cdef PyObject* stored
        cdef Tally tally
        if not self.is_open:
            return 0
        stored = PyDict_GetItem(self.tallies, op_name)
        if stored == NULL:
            tally = Tally.__new__(Tally)
            tally.op_name = op_name
            tally.reasons = {}
            self.tallies[op_name] = tally
        else:
            tally = <Tally>stored
        if self.entries is not None:
            self.entries.append(measured.entry)
        if self.keeps and self.events.size() < MAX_EVENTS:
            self.keep(tally, measured)
        tally.calls[measured.path] += 1
        tally.in_caller += measured.in_caller
        tally.dispatch_ns += dispatch_ns
        tally.kernel_ns += measured.kernel_ns
        tally.tensorflow_ns += measured.tensorflow_ns
        if measured.path != P_DIRECT:
            key = (PATHS[measured.path], REASONS[measured.reason].id, measured.detail,
                   measured.changes)
            tally.reasons[key] = tally.reasons.get(key, 0) + 1
        return 0

    cdef int keep(self, Tally tally, Measurement measured) except -1:
        cdef Event event
        cdef long number = this_thread().number
        if (self.events.size() == 0 or self.events.back().thread != number) and (
            number not in self.threads
        ):
            self._name(number)
        event.tally = <void*>tally
        event.thread = number
        event.path = measured.path
        event.reason = measured.reason
        event.start = measured.start
        event.stop = measured.stop
        event.kernel_start = measured.kernel_start
        event.kernel_ns = measured.kernel_ns
        event.left = measured.first_left
        event.back = measured.back
        self.events.push_back(event)
        return 0


cdef int note_walk(int64_t start, int64_t stop, str executor, str reason,
                   int64_t records) except -1:
    cdef Thread* thread = this_thread()
    cdef PyObject* innermost = measurer_of(thread)
    cdef ProfileRecorder recorder = None if innermost == NULL else <ProfileRecorder>innermost
    walk = (thread.number, start, stop, executor, reason, records)
    while recorder is not None:
        if recorder.is_open and <size_t>len(recorder.walks) < MAX_EVENTS:
            recorder.walks.append(walk)
        recorder = _around(recorder)
    return 0


cdef ProfileRecorder _around(ProfileRecorder recorder):
    """Returns the next outer recorder, or None."""
    cdef Observer observer = recorder.outer
    while observer is not None and type(observer) is not ProfileRecorder:
        observer = observer.outer
    return <ProfileRecorder>observer
