# distutils: language = c++
"""The context manager for a call that is recorded, and the turns of calls that are.

One call at a time is recorded and learned from in the process. A call that comes meanwhile, in
another thread or inside the recorded call, runs in Python.
"""

cimport cython

import os
import threading

from fastops._specialize.recording.recorder import Recorder
from fastops._specialize.recording.witness import Witness

cdef object _recording_thread = None    # the id of the thread whose turn it is


cdef bint begin_turn() except -1:
    global _recording_thread
    thread = threading.get_ident()
    if _recording_thread is not None:
        return False
    _recording_thread = thread
    return True


cdef void end_turn() noexcept:
    global _recording_thread
    _recording_thread = None


def _after_fork():
    """End the turn of a thread that a forked child does not have."""
    if _recording_thread != threading.get_ident():
        end_turn()


os.register_at_fork(after_in_child=_after_fork)


@cython.final
cdef class Record:
    """Records what this thread runs in a ``with`` block.

    Parameters
    ----------
    declared : dict of code to str
        Methods of users that are declared to be pure: see `Witness`.

    Attributes
    ----------
    started : bool
        Whether the block is recorded. It is not while another thread records a call, or while tapes
        are stopped: recording restarts them.
    recorder : Recorder
        The ops, and the tensor values that Python read.
    witness : Witness or None
        The Python code that ran; None while a profiler, debugger or coverage tool is active.
    """

    def __init__(self, declared):
        self.recorder, self.witness = Recorder(), Witness(declared)

    def __enter__(self):
        self.started = self.recorder.start()
        try:
            if not self.started or not self.witness.start():
                self.witness = None
        except BaseException:  # an audit hook raised, and `__exit__` will not be called
            if self.started:
                self.recorder.stop()
            raise
        return self

    def __exit__(self, *error):
        if self.started:
            try:
                if self.witness is not None:
                    self.witness.stop()
            finally:  # the hooks must not stay
                self.recorder.stop()
        return False
