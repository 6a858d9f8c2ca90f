"""Who asks which calls of Keras's objects are replayed: a profile."""

import threading
from contextlib import contextmanager

OBSERVERS: list[tuple] = []
"""Pairs of a thread's number, None for all, and of a dict: see `observe_all`."""


def observe_all():
    """Have it told from now on what becomes of calls, in any thread.

    Returns
    -------
    dict of tuple to int
        By the method's name, the object's, and why the call is not replayed (None: it is), how many
        there were.
    """
    return _begin(None)[1]


@contextmanager
def observed():
    """Have it told what becomes of calls in this thread, during a block.

    Yields
    ------
    dict of tuple to int
        See `observe_all`.
    """
    mine = _begin(threading.get_ident())
    try:
        yield mine[1]
    finally:
        OBSERVERS[:] = [one for one in OBSERVERS if one is not mine]


def _begin(thread):
    mine = thread, {}
    OBSERVERS.append(mine)
    return mine


def tell(method, instance, why):
    """Tell those who ask of a call."""
    name = getattr(instance, "name", None)
    title = f"{type(instance).__name__} {name}" if name else type(instance).__name__
    for thread, calls in list(OBSERVERS):
        if thread in (None, threading.get_ident()):
            key = method.rpartition(".")[2], title, why
            calls[key] = calls.get(key, 0) + 1
