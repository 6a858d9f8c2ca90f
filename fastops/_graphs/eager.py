"""Leaving the graph under construction: a session may be used while one is built."""

from contextlib import contextmanager

from tensorflow.python.eager import context
from tensorflow.python.framework import ops


@contextmanager
def outside_of_graphs():
    """Leave the graph under construction, which a session's may be, for a while."""
    graphs = ops._default_graph_stack
    stack, graphs.stack = graphs.stack, []
    try:
        with context.eager_mode():
            yield
    finally:
        graphs.stack = stack
