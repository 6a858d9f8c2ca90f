"""Observers of calls of traced functions: profiles."""

import threading
import time
from contextlib import contextmanager

from fastops._core.threads import thread_number
from fastops._plans.runner import observe
from fastops._specialize.policy import MAX_PROFILED_TIMES

_OBSERVERS: list[tuple] = []
"""Pairs of the id of the observed thread (None: all threads) and a `Runs`."""


class Runs(dict):
    """The number of calls and their nanoseconds, by `Planned` and by executor.

    Attributes
    ----------
    times : list of tuple
        For each call: the number of the thread, the function, the executor, and when the call began
        and ended by the monotonic clock. If there are too many calls, only the first ones.
    """

    def __init__(self):
        super().__init__()
        self.times = []


def observe_all():
    """Observe calls of traced functions in all threads from now on.

    Returns
    -------
    Runs
        The calls, as they are made.
    """
    return _begin(None)[1]


@contextmanager
def observed():
    """Observe calls of traced functions in this thread, during a block.

    Yields
    ------
    Runs
        The calls, as they are made.
    """
    mine = _begin(threading.get_ident())
    try:
        yield mine[1]
    finally:
        observe(-1)
        _OBSERVERS[:] = [observer for observer in _OBSERVERS if observer is not mine]


def _begin(thread):
    mine = thread, Runs()
    _OBSERVERS.append(mine)
    observe(1)
    return mine


def tell(planned, executor, ns):
    """Report a call of a function to the observers: its executor and its time."""
    now = time.monotonic_ns()
    for thread, calls in list(_OBSERVERS):
        if thread in (None, threading.get_ident()):
            if len(calls.times) < MAX_PROFILED_TIMES:
                calls.times.append((thread_number(), planned, executor, now - ns, now))
            sums = calls.setdefault(planned, {}).setdefault(executor, [0, 0])
            sums[0] += 1
            sums[1] += ns
