"""Checks that a graph defines the order in which its nodes read and write variables."""

from graphlib import CycleError, TopologicalSorter

from fastops._core.reasons import RefusedError
from fastops._plans.nodes import HARMLESS, STATEFUL, WAITING, edges

KNOWN = STATEFUL - WAITING - {"PrintV2"}
"""Stateful ops without a state of their own, beside the variables that they take."""


class StateError(RefusedError):
    """A part of a graph gets no plan: TensorFlow's session runs it."""


def writes(node):
    """Tell whether a node changes the variables that it takes."""
    return node.op in KNOWN and node.op not in HARMLESS


def check_order(nodes, variables, callers):
    """Raise `StateError` unless each write is ordered before or after all other accesses.

    Parameters
    ----------
    nodes : iterable of NodeDef
        The nodes to run.
    variables : dict of str to hashable
        The variables by the names of their handles. The handles are not among the nodes.
    callers : set of str
        The nodes that call functions. These functions do not write variables.
    """
    nodes = {node.name: node for node in nodes}
    taken = {name: edges(node) for name, node in nodes.items()}
    sources = {
        name: {source for source in (*(origin for origin, _ in data), *controls) if source in nodes}
        for name, (data, controls) in taken.items()
    }
    try:
        order = list(TopologicalSorter(sources).static_order())
    except CycleError:
        raise StateError("written_in_loop") from None
    held = {(name, 0): variable for name, variable in variables.items()}
    numbers, accesses = {}, {}  # numbers: of the nodes that access variables
    for name in order:
        node = nodes[name]
        mine = {held[edge] for edge in taken[name][0] if edge in held}
        if node.op == "Identity" and mine:
            held[name, 0] = mine.pop()
            continue
        if bool(mine) != (node.op in KNOWN - {"Assert"}) and node.name not in callers:
            raise StateError("variable_passed_on", name)
        if mine:
            numbers[name] = len(numbers)
        for variable in mine:
            accesses.setdefault(variable, []).append(node)
    # Data inputs do not order inlined functions and nodes after a Merge: a part of these may run
    # before all inputs are there.
    for name in order:
        if name in callers or nodes[name].op == "Merge":
            sources[name] = sources[name].intersection(taken[name][1])
    before = _before(order, sources, numbers)
    for variable, around in accesses.items():
        written = any(map(writes, around))
        for access in around:
            if written and access.name in callers:
                raise StateError("read_in_function", f"{access.name} reads {variable[-1]}")
            if not writes(access):
                continue
            for other in around:
                if other is not access and not (
                    before[access.name] >> numbers[other.name] & 1
                    or before[other.name] >> numbers[access.name] & 1
                ):
                    first, second = sorted((access.name, other.name))
                    raise StateError("access_order", f"{first} and {second} access {variable[-1]}")


def _before(order, sources, numbers):
    """Return for each node a bit set of the numbered nodes that come before it."""
    before = {}
    for name in order:
        before[name] = 0
        for source in sources[name]:
            before[name] |= before[source]
            if source in numbers:
                before[name] |= 1 << numbers[source]
    return before
