"""The flow of values through a graph: the users, loops and order of its nodes."""

import functools
from collections import defaultdict

from fastops._plans.eligibility import UnplannedError
from fastops._plans.nodes import WAITING, edges


class Dataflow:
    """The nodes of a graph, and the edges between them.

    Parameters
    ----------
    graph : GraphDef
        The graph.

    Attributes
    ----------
    nodes : dict of str to NodeDef
        The nodes by name.
    data, controls : dict of str to list
        The data inputs and the control inputs of each node, as `edges` returns them.
    users : dict of str to list of str
        For each node, the nodes with a data or control input from it.
    asked : set of tuple
        The outputs that are data inputs of other nodes, as pairs of node and output.
    last_asked : dict of str to int
        For each node, the number of its last output in `asked`.
    frames : dict of str to tuple
        The loops around each node, by the names of their frames, outermost first.
    """

    def __init__(self, graph):
        self.nodes = {node.name: node for node in graph.node}
        self.data, self.controls = {}, {}
        self.users = defaultdict(list)
        for node in graph.node:
            self.data[node.name], self.controls[node.name] = edges(node)
        for name, inputs in self.data.items():
            for source, _ in inputs:
                self.users[source].append(name)
            for source in self.controls[name]:
                self.users[source].append(name)
        self.asked = {edge for inputs in self.data.values() for edge in inputs}
        self.last_asked = {}
        for name, output in self.asked:
            self.last_asked[name] = max(output, self.last_asked.get(name, output))
        self.frames = self.find_frames()

    def find_frames(self):
        """Return for each node the frames around it, as a tuple of names, outermost first."""
        frames = {}
        order = in_order(self.nodes, lambda name: self.sources(name))
        for name in order:
            node = self.nodes[name]
            outer = max((self.frame_after(frames, s) for s in self.sources(name)), key=len,
                        default=())  # fmt: skip
            if node.op == "Enter":
                outer = (*outer, node.attr["frame_name"].s)
            frames[name] = outer
        return frames

    def frame_after(self, frames, name):
        """Return the frames around the outputs of a node."""
        return frames[name][:-1] if self.nodes[name].op == "Exit" else frames[name]

    def sources(self, name):
        """Return the nodes that must run before a node, without the back edges of loops."""
        if self.nodes[name].op == "Merge":
            return [s for s, _ in self.data[name] if self.nodes[s].op != "NextIteration"] + [
                *self.controls[name]
            ]
        return [source for source, _ in self.data[name]] + self.controls[name]

    @functools.cached_property
    def waiting(self):
        """The nodes that may wait for other threads, and all nodes that depend on these."""
        pending = [name for name, node in self.nodes.items() if node.op in WAITING]
        waiting = set(pending)
        while pending:
            new = set(self.users[pending.pop()]) - waiting
            waiting |= new
            pending += new
        return waiting

    def waits(self, unit):
        """Tell whether a node, or a node in a frame, may wait or depends on one that may."""
        if isinstance(unit, tuple):
            return any(self.frames[name][: len(unit)] == unit for name in self.waiting)
        return unit in self.waiting


def in_order(names, sources):
    """Return the names in an order in which each name comes after its sources."""
    order, done = [], set()
    for first in names:
        waiting = [(first, iter(sources(first)))] if first not in done else []
        under_way = {first}
        while waiting:
            name, left = waiting[-1]
            for source in left:
                if source not in done:
                    if source in under_way:
                        raise UnplannedError("cycle")
                    under_way.add(source)
                    waiting.append((source, iter(sources(source))))
                    break
            else:
                waiting.pop()
                done.add(name)
                order.append(name)
    return order
