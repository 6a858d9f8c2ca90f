"""Pauses Python's garbage collector during work that makes many objects and drops few."""

import gc
from contextlib import contextmanager

_NEVER = 2**31 - 1


@contextmanager
def without_collections():
    """Pause the collector, since each collection would visit all of TensorFlow's objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def importing():
    """Pause full collections during an import, whose functions and classes stay alive.

    Otherwise they take an eighth of the time of TensorFlow's import. Collections of young objects
    go on: they order objects, and without them each later full collection takes half as long again.
    Afterwards the imported objects count as collected, so that no full collection is due.

    CPython 3.14.0 to 3.14.4 collect in increments. They have no third threshold, and show it as 0:
    nothing is paused there, and nothing has to be put back.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    try:
        yield
    finally:
        if gc.get_threshold() == (young, middle, _NEVER):  # the import has set no others
            gc.set_threshold(young, middle, old)
            _count_as_collected()


def _count_as_collected():
    """Let the collector go on as after a full collection, without one."""
    if gc.isenabled() and gc.get_freeze_count() == 0:  # the program has not frozen any objects
        gc.freeze()
        gc.collect()  # of no objects
        gc.unfreeze()
