"""What plans cost and save: by the nodes of traced functions, which are counted here."""

import weakref

from fastops._specialize.policy import Estimate

MAKING = Estimate("making a plan, by nodes", 300_000.0)
"""A plan of a trace whose arguments are bound: nanoseconds for a node."""

BINDING = Estimate("binding one more signature", 1_000_000.0)

SAVING = Estimate("saving by a plan in a call, by nodes", 1_000.0)
"""Not a cost: nanoseconds for a node. TensorFlow's executor takes about so many to find a node
ready, to make the context of its kernel, and to hand on its outputs."""

AROUND_PLAN = 16
"""Nodes that a plan is made of in the time of all that is made once for a plan."""

AROUND_CALL = 100
"""Nodes that TensorFlow runs in the time of all that is done once in a call."""

_sizes: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
"""By graph, its number of nodes. A graph that was traced does not change."""

UNKNOWN = 100
"""Nodes that a function is taken to have, where they cannot be counted."""


def traces_of(traced):
    """Return the traces that a `tf.function` keeps."""
    found = {}
    for name in ("_variable_creation_config", "_no_variable_creation_config"):
        cache = getattr(getattr(traced, name, None), "function_cache", None)
        if cache is not None:
            found[id(cache)] = cache.values()
    return [concrete for values in found.values() for concrete in values]


def num_nodes(graph):
    """Return the number of nodes of a graph, and of the functions that it may call.

    Parameters
    ----------
    graph : FuncGraph
        The graph of a trace.
    """
    count = _sizes.get(graph)
    if count is None:
        count = graph.num_operations()
        for function in list(graph._functions.values()):  # those that these call are among them
            inner = function.graph
            count += UNKNOWN if inner is None else inner.num_operations()
        _sizes[graph] = count
    return count


def largest(traces):
    """Return the number of nodes of the largest of some traces."""
    try:
        return max((num_nodes(concrete.graph) for concrete in traces), default=UNKNOWN)
    except (AttributeError, TypeError, ValueError):  # not of the classes that were read
        return UNKNOWN
