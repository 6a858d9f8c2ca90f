"""Observers of calls of Keras's objects, replayed or not (used by `fastops.profile`)."""

import threading
from contextlib import contextmanager

OBSERVERS: list[tuple] = []
"""Pairs of a thread's number (None for all threads) and the dict of `observe_all`."""


def observe_all():
    """Count calls from now on, in all threads.

    Returns
    -------
    dict of tuple to int
        The number of calls, by the name of the method, the name of the object, the arguments as
        text (None: they were not read), and the reason why the call was not replayed (None: it was
        replayed).
    """
    return _begin(None)[1]


@contextmanager
def observed():
    """Count calls in this thread during a ``with`` block.

    Yields
    ------
    dict of tuple to int
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


def tell(method, instance, arguments, why):
    """Notify the observers of a call."""
    name = getattr(instance, "name", None)
    title = f"{type(instance).__name__} {name}" if name else type(instance).__name__
    for thread, calls in list(OBSERVERS):
        if thread in (None, threading.get_ident()):
            key = method.rpartition(".")[2], title, arguments, why
            calls[key] = calls.get(key, 0) + 1
