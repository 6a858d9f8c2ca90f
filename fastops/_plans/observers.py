"""Who asks which functions run: a profile."""

import threading
from contextlib import contextmanager

from fastops._plans.runner import observe

_OBSERVERS: list[tuple] = []
"""Pairs of a thread's number, None for all, and of a dict from `Planned` to its calls."""


def observe_all():
    """Have it told from now on which functions run, in any thread.

    Returns
    -------
    dict of Planned to dict of str to list of int
        By executor, the number of calls, and their nanoseconds.
    """
    return _begin(None)[1]


@contextmanager
def observed():
    """Have it told which functions run in this thread, during a block.

    Yields
    ------
    dict of Planned to dict of str to list of int
        See `observe_all`.
    """
    mine = _begin(threading.get_ident())
    try:
        yield mine[1]
    finally:
        observe(-1)
        _OBSERVERS[:] = [one for one in _OBSERVERS if one is not mine]


def _begin(thread):
    mine = thread, {}
    _OBSERVERS.append(mine)
    observe(1)
    return mine


def tell(planned, executor, ns):
    """Tell those who ask that a call of a function was run by that, and how long it took."""
    for thread, calls in list(_OBSERVERS):
        if thread in (None, threading.get_ident()):
            sums = calls.setdefault(planned, {}).setdefault(executor, [0, 0])
            sums[0] += 1
            sums[1] += ns
