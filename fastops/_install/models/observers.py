"""Observers of calls of Keras's objects, replayed or not (used by `fastops.profile`)."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass

OBSERVERS: list[tuple] = []
"""Pairs of a thread's number (None for all threads) and the dict of `observe_all`."""


@dataclass(slots=True)
class Observed:
    """Calls with the same key.

    Attributes
    ----------
    calls : int
        The number of calls.
    detail : str or None
        The latest particulars of the reason.
    """

    calls: int = 0
    detail: str | None = None


def observe_all():
    """Count calls from now on, in all threads.

    Returns
    -------
    dict of tuple to Observed
        By the name of the method, the name of the object, the arguments as text (None: they were
        not read), and the sentence of the reason why the calls were not replayed (None: they were).
    """
    return _begin(None)[1]


@contextmanager
def observed():
    """Count calls in this thread during a ``with`` block.

    Yields
    ------
    dict of tuple to Observed
        See `observe_all`.
    """
    mine = _begin(threading.get_ident())
    try:
        yield mine[1]
    finally:
        OBSERVERS[:] = [observer for observer in OBSERVERS if observer is not mine]


def _begin(thread):
    mine = thread, {}
    OBSERVERS.append(mine)
    return mine


def tell(method, instance, arguments, why, detail):
    """Notify the observers of a call."""
    name = getattr(instance, "name", None)
    title = f"{type(instance).__name__} {name}" if name else type(instance).__name__
    for thread, calls in list(OBSERVERS):
        if thread in (None, threading.get_ident()):
            key = method.rpartition(".")[2], title, arguments, why
            known = calls.setdefault(key, Observed())
            known.calls += 1
            if detail is not None:
                known.detail = detail
