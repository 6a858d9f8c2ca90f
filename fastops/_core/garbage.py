"""Pauses Python's garbage collector during work that makes many objects and drops few."""

import gc
from contextlib import contextmanager


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
    """Pause the collector during an import, whose functions and classes stay alive.

    Otherwise collections take a quarter of the time of TensorFlow's import. Afterwards all objects
    are in the oldest generation, as they would be after collections.
    """
    with without_collections():
        try:
            yield
        finally:
            if not gc.get_freeze_count():  # do not unfreeze objects that the program froze
                gc.freeze()
                gc.unfreeze()
