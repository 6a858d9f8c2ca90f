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
