# distutils: language = c++
"""The context manager that records a call. It takes the turn, and controls hooks and collections.

In a process, only one call at a time is recorded and learned from. A call that begins meanwhile, in
another thread or inside the recorded call, runs in Python.
"""

cimport cython

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

import os
import sys
import threading

from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsStopped as _tapes_are_stopped

from fastops._specialize.recording import hooks
from fastops._specialize.recording.recorder import Recorder
from fastops._specialize.recording.witness import Witness

cdef Record _current = None  # the record of the call whose turn it is


def _after_fork():
    """In a forked child, end the turn of a thread that the child does not have."""
    if _current is not None and _current.thread != threading.get_ident():
        hooks.drop()
        _current.end_turn()


os.register_at_fork(after_in_child=_after_fork)


@cython.final
cdef class Record:
    """Records a call, in a ``with`` block that also contains what is learned from the call.

    A stand-in uses it like this::

        with Record() as record:
            if record.has_turn:
                ...                      # prepare
                record.start(declared)
                ...                      # call the original
                record.stop()
                ...                      # learn from the call, if record.started
                return
        ...                              # call the original without a recording

    ==================================  ===========================================================
    Between                             in effect
    ==================================  ===========================================================
    the begin and the end of the block  the turn: no other call is recorded or learned from. There
                                        are no garbage collections: finalizers would be recorded as
                                        part of the call, and a recording keeps most objects that
                                        it makes
    `start` and `stop`                  the recorder with its hooks, and the profile function of
                                        the witness
    ==================================  ===========================================================

    The end of the block ends all of this, after any exception, too.

    Attributes
    ----------
    has_turn : bool
        Whether the call may be recorded. It may not while another call has the turn, or while tapes
        are stopped: recording restarts them.
    is_profiled : bool
        Whether a profiler, debugger or coverage tool is active. A witness would replace its profile
        function, so there is no witness.
    started : bool
        Whether `start` has put the hooks in place. It does not if a user has replaced a function
        that a hook would replace.
    recorder : Recorder
        The ops, and the tensor values that Python read.
    witness : Witness or None
        The Python code that ran.
    """

    def __enter__(self):
        global _current
        if _current is None and not _tapes_are_stopped():
            self.is_profiled = sys.getprofile() is not None
            self.thread = threading.get_ident()
            self.collects = PyGC_Disable()
            self.has_turn, _current = True, self
        return self

    cpdef int start(self, dict declared, sizes=None) except -1:
        """Record what this thread runs from now on.

        `declared` has the methods of users that are declared to be pure: see `Witness`. For
        `sizes` see `Recorder`.
        """
        self.recorder, witness = Recorder(sizes), Witness(declared)
        self.started = self.records = self.recorder.start()
        if self.started and witness.start():
            self.witness = witness
        return 0

    cpdef int stop(self) except -1:
        """Stop recording."""
        if self.records:
            self.records = False
            try:
                if self.witness is not None:
                    self.witness.stop()
            finally:  # the hooks must not stay
                self.recorder.stop()
        return 0

    cdef int end_turn(self) noexcept:
        global _current
        _current = None
        if self.collects:
            PyGC_Enable()
        return 0

    def __exit__(self, *error):
        try:
            self.stop()
        finally:
            if self.has_turn:
                self.end_turn()
        return False
