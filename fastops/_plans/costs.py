"""Expected costs and savings of plans, in proportion to the number of nodes of a trace."""

import weakref

from fastops._specialize.policy import Estimate

MAKING = Estimate("making a plan, by nodes", 300_000.0)
"""The cost of making the plan of a trace: nanoseconds for each node."""

BINDING = Estimate("binding one more signature", 1_000_000.0)

SAVING = Estimate("saving by a plan in a call, by nodes", 1_000.0)
"""The time that a plan saves in each call: nanoseconds for each node. TensorFlow's executor spends
about this time on finding that a node is ready, making the context of its kernel, and passing on
its outputs."""

AROUND_PLAN = 16
"""The fixed cost of making a plan, expressed as a number of nodes."""

AROUND_CALL = 100
"""TensorFlow's fixed cost of a call, expressed as a number of nodes."""

LOOPS = frozenset({"StatelessWhile", "While"})

SHARE_IN_LOOPS = 0.5
"""The assumed share of TensorFlow's overhead in a call that runs a loop. The number of iterations
is unknown, and so is the number of nodes that run."""

_sizes: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
"""The number of nodes of each graph. A traced graph does not change."""

UNKNOWN = 100
"""The assumed number of nodes of a function whose nodes cannot be counted."""


def traces_of(traced):
    """Return the traces that a `tf.function` keeps."""
    traces = {}
    for name in ("_variable_creation_config", "_no_variable_creation_config"):
        cache = getattr(getattr(traced, name, None), "function_cache", None)
        if cache is not None:
            traces[id(cache)] = cache.values()
    return [concrete for values in traces.values() for concrete in values]


def num_nodes(graph):
    """Return the number of nodes of a graph, including the functions that it may call.

    Parameters
    ----------
    graph : FuncGraph
        The graph of a trace.
    """
    count = _sizes.get(graph)
    if count is None:
        count = graph.num_operations()
        for function in list(graph._functions.values()):  # includes nested functions
            inner = function.graph
            count += UNKNOWN if inner is None else inner.num_operations()
        _sizes[graph] = count
    return count


def has_loops(traces):
    """Tell whether a trace has a loop: its nodes run more than once in a call."""
    try:
        return any(
            operation.type in LOOPS
            for concrete in traces
            for graph in (concrete.graph, *(f.graph for f in concrete.graph._functions.values()))
            if graph is not None
            for operation in graph.get_operations()
        )
    except (AttributeError, TypeError, ValueError):  # TensorFlow's classes have changed
        return False


def size_of(trace):
    """Return the number of nodes of a trace, or of a function, and whether it has loops."""
    return largest([trace]), has_loops([trace])


def largest(traces):
    """Return the number of nodes of the largest trace."""
    try:
        return max((num_nodes(concrete.graph) for concrete in traces), default=UNKNOWN)
    except (AttributeError, TypeError, ValueError):  # TensorFlow's classes have changed
        return UNKNOWN
