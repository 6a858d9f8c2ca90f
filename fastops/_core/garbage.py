"""Python's garbage collector, during work that makes many objects and drops few."""

import gc
from contextlib import contextmanager


@contextmanager
def without_collections():
    """Keep the collector from running, which looks at all of TensorFlow's objects each time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def importing():
    """Keep it from running during an import, whose functions and classes stay.

    Otherwise it takes a quarter of the time in which TensorFlow is imported. Afterwards all objects
    are of the oldest generation, as they would be.
    """
    with without_collections():
        try:
            yield
        finally:
            if not gc.get_freeze_count():  # what the program has frozen would come back
                gc.freeze()
                gc.unfreeze()
