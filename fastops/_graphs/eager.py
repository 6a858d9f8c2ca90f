"""Leaves the graph under construction: programs may use a session while they build a graph."""

from contextlib import contextmanager

from tensorflow.python.eager import context
from tensorflow.python.framework import ops


@contextmanager
def outside_of_graphs():
    """Leave the graph under construction, during a block. It may be the session's own graph."""
    graphs = ops._default_graph_stack
    stack, graphs.stack = graphs.stack, []
    try:
        with context.eager_mode():
            yield
    finally:
        graphs.stack = stack
