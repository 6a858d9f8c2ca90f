"""Observers of calls that recordings may replay (used by `fastops.profile`)."""

import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

OBSERVERS: list[tuple] = []
"""Pairs of a thread's number (None for all threads) and the dict of `observe_all`."""

SWITCHES: list = []
"""Functions to call when observing begins, with True, and when it ends, with False."""


@dataclass(slots=True)
class Observed:
    """Calls of one kind.

    A kind is a tuple: the method (None for a function), the name of the function or object, the
    arguments as text (None: they were not read), and the reason why the calls were not replayed
    (None: they were).

    Attributes
    ----------
    describe : callable or None
        Returns what `Specialization.describe` returns, or None. None if the arguments were not
        read.
    calls : int
        The number of calls.
    detail : str or None
        The latest particulars of the reason.
    """

    describe: Callable | None
    calls: int = 0
    detail: str | None = None


def observe_all():
    """Count calls from now on, in all threads.

    Returns
    -------
    dict of tuple to Observed
        The calls so far, by kind. Each new call is added.
    """
    return _begin(None)[1]


@contextmanager
def observed():
    """Count calls in this thread during a ``with`` block.

    Yields
    ------
    dict of tuple to Observed
        The calls so far, by kind. Each new call is added.
    """
    mine = _begin(threading.get_ident())
    try:
        yield mine[1]
    finally:
        OBSERVERS[:] = [observer for observer in OBSERVERS if observer is not mine]
        if not OBSERVERS:
            _switch(False)


def _begin(thread):
    mine = thread, {}
    OBSERVERS.append(mine)
    _switch(True)
    return mine


def _switch(on):
    for switch in SWITCHES:
        switch(on)


def tell(method, name, arguments, why, detail, describe):
    """Notify the observers of a call. See `Observed` for the parameters."""
    for thread, calls in list(OBSERVERS):
        if thread in (None, threading.get_ident()):
            known = calls.setdefault((method, name, arguments, why), Observed(describe))
            known.calls += 1
            if detail is not None:
                known.detail = detail
