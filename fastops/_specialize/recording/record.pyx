# distutils: language = c++
"""The context manager for a call that is recorded."""

cimport cython

from fastops._specialize.recording.recorder import Recorder
from fastops._specialize.recording.witness import Witness


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

    cdef readonly object recorder
    cdef readonly object witness
    cdef readonly bint started

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
