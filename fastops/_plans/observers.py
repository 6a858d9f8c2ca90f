"""Who asks which functions run: a profile."""

import threading
import time
from contextlib import contextmanager

from fastops._core.threads import thread_number
from fastops._plans.runner import observe

_OBSERVERS: list[tuple] = []
"""Pairs of a thread's number, None for all, and of its `Runs`."""

_MOST_TIMES = 200_000
"""How many times are kept: more than a picture can show."""


class Runs(dict):
    """By `Planned`, and by executor, the number of calls, and their nanoseconds.

    Attributes
    ----------
    times : list of tuple
        The number of the thread, the function, the executor, and when by the monotonic clock the
        call began and ended; of the first ones only, if there are many.
    """

    def __init__(self):
        super().__init__()
        self.times = []


def observe_all():
    """Have it told from now on which functions run, in any thread.

    Returns
    -------
    Runs
        What it is told.
    """
    return _begin(None)[1]


@contextmanager
def observed():
    """Have it told which functions run in this thread, during a block.

    Yields
    ------
    Runs
        What it is told.
    """
    mine = _begin(threading.get_ident())
    try:
        yield mine[1]
    finally:
        observe(-1)
        _OBSERVERS[:] = [one for one in _OBSERVERS if one is not mine]


def _begin(thread):
    mine = thread, Runs()
    _OBSERVERS.append(mine)
    observe(1)
    return mine


def tell(planned, executor, ns):
    """Tell those who ask that a call of a function was run by that, and how long it took."""
    now = time.monotonic_ns()
    for thread, calls in list(_OBSERVERS):
        if thread in (None, threading.get_ident()):
            if len(calls.times) < _MOST_TIMES:
                calls.times.append((thread_number(), planned, executor, now - ns, now))
            sums = calls.setdefault(planned, {}).setdefault(executor, [0, 0])
            sums[0] += 1
            sums[1] += ns
