"""Who asks which functions run: a profile."""

import threading
from contextlib import contextmanager

from fastops._plans.runner import observe

_OBSERVERS: list[tuple] = []
"""Pairs of a thread's number, None for all, and of a dict from `Planned` to its calls."""


@contextmanager
def observed(everywhere=False):
    """Tell which functions run, in this thread or in all.

    Yields
    ------
    dict of Planned to dict of str to list of int
        By executor, the number of calls, and their nanoseconds.
    """
    mine = None if everywhere else threading.get_ident(), {}
    _OBSERVERS.append(mine)
    observe(1)
    try:
        yield mine[1]
    finally:
        observe(-1)
        _OBSERVERS[:] = [one for one in _OBSERVERS if one is not mine]


def tell(planned, executor, ns):
    """Tell those who ask that a call of a function was run by that, and how long it took."""
    for thread, calls in list(_OBSERVERS):
        if thread in (None, threading.get_ident()):
            sums = calls.setdefault(planned, {}).setdefault(executor, [0, 0])
            sums[0] += 1
            sums[1] += ns
