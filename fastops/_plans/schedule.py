"""Puts the nodes of the graph that TensorFlow executes for a function into an order of steps.

The graph is the one after all of TensorFlow's passes: inlined, optimized by grappler, with oneDNN's
ops, and with conditionals and loops lowered to Switch, Merge, Enter, Exit and NextIteration. A
schedule keeps this form: values of the branch that is not taken are dead, and a loop is one step
whose body runs once in each iteration.
"""

from collections import defaultdict

from fastops._plans.dataflow import Dataflow, in_order
from fastops._plans.eligibility import Eligibility, UnplannedError
from fastops._plans.liveness import release, without_unasked
from fastops._plans.nodes import ARGUMENTS, CALLS, COPIES, PYTHON, RESULTS, SWITCHES, WAITING
from fastops._plans.steps import Loop, PlanStep, Schedule

_OUTPUTS = {"copy": 1, "merge": 2, "read": 1, "switch": 2}
"""How many outputs `_cpp/plan.h` expects of a step, including unused ones."""


def schedule(graph, num_arguments, num_captured, op_def, function_def, seeds):
    """Return the `Schedule` of a graph.

    Parameters
    ----------
    graph : GraphDef
        The graph of the only partition.
    num_arguments, num_captured : int
        The number of tensors that a call passes, and of tensors that the function captured.
    op_def : callable
        Returns the OpDef for a name, `None` if there is no such op.
    function_def : callable
        Returns the FunctionDef for a name, `None` if the context has no such function.
    seeds : bool
        Whether random ops may have seeds. The plan then owns their sequences.

    Raises
    ------
    UnplannedError
        If plans cannot run the graph.
    """
    return _Scheduler(graph, num_arguments, num_captured, op_def, function_def, seeds).run()


class _Scheduler:
    """Puts the nodes into an order, and gives every value a slot."""

    def __init__(self, graph, num_arguments, num_captured, op_def, function_def, seeds):
        eligibility = Eligibility(op_def, function_def, seeds)
        for node in graph.node:
            eligibility.check(node)
        self.has_effects, self.seeded = eligibility.has_effects, eligibility.seeded
        self.flow = Dataflow(graph)
        self.nodes, self.data, self.controls = self.flow.nodes, self.flow.data, self.flow.controls
        self.num_arguments = num_arguments
        self.arguments = [-1] * (num_arguments + num_captured)
        self.slots = {}
        self.origins = {}  # by slot that may be dead: the switch sides it depends on
        self.persistent = set()

    def slot(self, name, output=0):
        """Return the slot of an output. Output -1 is the control output: that the node has run."""
        return self.slots.setdefault((name, output), len(self.slots))

    def run(self):
        """Return the `Schedule`."""
        results = {}
        for name, node in self.nodes.items():
            if node.op in RESULTS:
                results[node.attr["index"].i] = self.slot(*self.data[name][0])
            elif node.op in ARGUMENTS:
                if (name, 0) in self.flow.asked:
                    self.arguments[node.attr["index"].i] = self.slot(name)
                self.persistent.add(self.slot(name))
        if sorted(results) != list(range(len(results))):
            raise UnplannedError("results_missing")
        constants = [
            (node, self.slot(name)) for name, node in self.nodes.items() if self.is_constant(name)
        ]
        self.persistent |= {slot for _, slot in constants}
        conditional = any(node.op in SWITCHES | {"Enter"} for node in self.nodes.values())
        steps = self.frame_steps(())
        results = [results[i] for i in range(len(results))]
        steps = without_unasked(steps, set(results))
        release(steps, {*results}, self.persistent)
        arguments, captured = (
            self.arguments[: self.num_arguments],
            self.arguments[self.num_arguments :],
        )
        kept = {slot for _, slot in constants}.union(captured)
        ops = {node.op for node in self.nodes.values()}
        python, waits = not ops.isdisjoint(PYTHON), not ops.isdisjoint(WAITING | CALLS)
        if python and waits:
            raise UnplannedError("python_waits")
        return Schedule(
            steps, constants, arguments, captured, results, len(self.slots), kept, conditional,
            self.has_effects, waits or python, python, self.seeded,
        )  # fmt: skip

    def is_constant(self, name):
        """Tell whether a node is a constant, which is computed once when the plan is made."""
        return self.nodes[name].op == "Const"

    def frame_steps(self, frame):
        """Return the steps of a frame; each frame inside it is one step."""
        depth = len(frame)
        members = [name for name, inside in self.flow.frames.items() if inside[:depth] == frame]

        def unit(name):
            inside = self.flow.frames[name]
            return name if len(inside) == depth else inside[: depth + 1]

        before = defaultdict(set)
        units = dict.fromkeys(unit(name) for name in members)
        for name in members:
            for source in self.flow.sources(name):
                if self.flow.frames[source][:depth] == frame and unit(source) != unit(name):
                    before[unit(name)].add(unit(source))
        steps = []
        units = sorted(units, key=self.flow.waits)  # last: nodes that may wait for threads
        for item in in_order(units, lambda item: sorted(before[item], key=str)):
            if isinstance(item, tuple):
                steps.append(self.loop(item))
            elif (step := self.step(item)) is not None:
                steps.append(step)
        return steps

    def loop(self, frame):
        """Return the step of a frame, which is a loop."""
        loop = Loop()
        inner = [name for name, inside in self.flow.frames.items() if inside == frame]
        by_op = defaultdict(list)
        for name in inner:
            by_op[self.nodes[name].op].append(name)
        if len(by_op["LoopCond"]) != 1:
            raise UnplannedError("loop_condition")
        for name in by_op["Merge"]:
            ops = [self.nodes[source].op for source, _ in self.data[name]]
            if ops == ["Enter", "NextIteration"]:
                (entered, _), (following, _) = self.data[name]
                loop.entered.append(self.slot(entered))
                loop.next.append(self.slot(following))
                loop.current.append(self.slot(name))
        loop.condition = self.slot(by_op["LoopCond"][0])
        loop.enters = [self.copy(name) for name in by_op["Enter"]]
        needs = [slot for enter in loop.enters for slot in enter.needs]
        self.live(loop.enters)
        loop.body = self.frame_steps(frame)
        # The exits copy values of the last iteration, so they run after the loop.
        loop.exits = [self.copy(name) for name in by_op["Exit"]]
        if not needs:
            self.live(loop.exits)
        for step in (*loop.enters, *loop.exits):
            step.needs = []
        return PlanStep("loop", self.nodes[by_op["LoopCond"][0]], needs=needs, loop=loop)

    def live(self, steps):
        """Note that the outputs of these steps are never dead."""
        for step in steps:
            for slot in step.outputs:
                self.origins.pop(slot, None)

    def copy(self, name):
        """Return the step of a node that copies its input into or out of a loop."""
        return self.finish(PlanStep("copy", self.nodes[name]), name)

    def step(self, name):
        """Return the step of a node; `None` if it needs no step."""
        node = self.nodes[name]
        if node.op in ARGUMENTS | RESULTS or node.op in ("Enter", "Exit"):
            return None
        if node.op == "NoOp" or self.is_constant(name):
            kind = "nothing"
        elif node.op in COPIES:
            kind = "copy"
        elif node.op in SWITCHES:
            kind = "switch"
        elif node.op == "Merge":
            if any(self.nodes[source].op == "NextIteration" for source, _ in self.data[name]):
                return None  # the step of the loop handles it
            kind = "merge"
        elif node.op == "ReadVariableOp":
            kind = "read"
        else:
            kind = "kernel"
        step = self.finish(PlanStep(kind, node), name)
        return step if kind != "nothing" or step.needs else None

    def finish(self, step, name):
        """Fill in the slots of a step, and return it."""
        node = step.node
        step.inputs = [self.slot(*edge) for edge in self.data[name]]
        if self.is_constant(name):
            step.outputs = [self.slot(name)]
        elif step.kind != "nothing":
            outputs = _OUTPUTS.get(step.kind)
            if outputs is None:
                outputs = 1 + self.flow.last_asked.get(name, -1)
            if node.op == "_SwitchN":
                outputs = node.attr["num_outs"].i
            step.outputs = [
                self.slot(name, o) if (name, o) in self.flow.asked else -1 for o in range(outputs)
            ]
        needs = []
        if node.op != "Merge":  # a Merge is alive if one of its inputs is
            needs += [self.slot(*edge) for edge in self.data[name]]
            needs += [self.slot(source, -1) for source in self.controls[name]]
        step.needs = self.enough([slot for slot in dict.fromkeys(needs) if slot in self.origins])
        origin = frozenset().union(*(self.origins[slot] for slot in step.needs))
        if node.op == "Merge" and all(self.slot(*edge) in self.origins for edge in self.data[name]):
            origin |= {name}
        if step.kind == "switch":
            for side, slot in enumerate(step.outputs):
                self.origins[slot] = origin | {(step.inputs[1], side)}
            origin |= {name}
        elif origin:
            self.origins.update(dict.fromkeys(step.outputs, origin))
        self.origins.pop(-1, None)
        if origin and any(name in self.controls[user] for user in self.flow.users[name]):
            step.control = self.slot(name, -1)
            self.origins[step.control] = origin
        return step

    def enough(self, needs):
        """Return a subset of `needs`: if these slots are alive, all of `needs` are."""
        enough = []
        for slot in sorted(needs, key=lambda slot: -len(self.origins[slot])):
            if not any(self.origins[slot] <= self.origins[other] for other in enough):
                enough.append(slot)
        return enough
