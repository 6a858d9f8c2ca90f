"""From the graph that TensorFlow executes for a function to an order of its nodes.

The graph is the last one: inlined, optimized by grappler, with oneDNN's kernels in their places and
conditionals and loops lowered to Switch, Merge, Enter, Exit and NextIteration. A schedule keeps
these: what a branch leaves out is dead, and a loop is one step whose body runs again and again.
"""

import dataclasses
import functools
from collections import defaultdict

from fastops._core.tables import policy

ARGUMENTS = frozenset({"_Arg", "_DeviceArg"})
RESULTS = frozenset({"_Retval", "_DeviceRetval"})
COPIES = frozenset({"Identity", "Enter", "Exit", "NextIteration", "LoopCond", "StopGradient"})
"""Ops that hand on their input."""

_STATEFUL = """
Assert AssignAddVariableOp AssignSubVariableOp AssignVariableOp IteratorGetNext
IteratorGetNextAsOptional PrintV2 ReadVariableOp
ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad ResourceApplyAdagradV2
ResourceApplyAdam ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp
ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent ResourceApplyKerasMomentum
ResourceApplyMomentum ResourceApplyPowerSign ResourceApplyProximalAdagrad
ResourceApplyProximalGradientDescent ResourceApplyRMSProp ResourceGather ResourceGatherNd
ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin ResourceScatterMul
ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate ResourceScatterSub
ResourceScatterUpdate ResourceSparseApplyAdagrad ResourceSparseApplyAdagradV2
ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceStridedSliceAssign
RngReadAndSkip RngSkip StatefulRandomBinomial StatefulStandardNormalV2 StatefulTruncatedNormal
StatefulUniform StatefulUniformFullInt StatefulUniformInt VarIsInitializedOp VariableShape
"""
STATEFUL = frozenset(_STATEFUL.split())
"""Stateful ops that a plan runs: their state is behind a handle, which every kernel shares."""

WAITING = frozenset({"IteratorGetNext", "IteratorGetNextAsOptional"})
"""Ops that may wait for other threads, those of Python among them."""

_CALLS = """
Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile While
"""
CALLS = frozenset(_CALLS.split())
"""Ops that call functions, where TensorFlow has not put these in their places. It runs them."""

_HARMLESS = "Assert ReadVariableOp ResourceGather ResourceGatherNd VarIsInitializedOp VariableShape"
HARMLESS = frozenset(_HARMLESS.split())
"""Stateful ops that may run again."""

_RANDOM = """
Multinomial RandomGamma RandomPoissonV2 RandomShuffle RandomStandardNormal RandomUniform
RandomUniformInt TruncatedNormal
"""
RANDOM = frozenset(_RANDOM.split())
"""Ops whose state is in their kernels. Without seeds it does not matter in which."""

SWITCHES = frozenset({"Switch", "_SwitchN"})

PRIVATE = ("_EagerConst", "_Fused", "_Mkl", "_UnaryOpsComposition")
"""How the names of those ops begin that TensorFlow's passes make, and a plan runs."""

_UNPLANNED = "FakeParam HostConst Placeholder PlaceholderWithDefault RefSwitch RefMerge XlaLaunch"
UNPLANNED = frozenset(_UNPLANNED.split())
"""Ops that are TensorFlow's to run, beside those that are in an eager call."""

_OUTPUTS = {"copy": 1, "merge": 2, "read": 1, "switch": 2}
"""How many outputs `_cpp/plan.h` takes steps to have, whether or not anybody asks for them."""


class UnplannedError(Exception):
    """A graph that is TensorFlow's to run, and why."""


@dataclasses.dataclass
class Step:
    """One node, or a loop of them, as `fastops::Step` has it."""

    kind: str
    node: object
    inputs: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)
    shared: list = dataclasses.field(default_factory=list)
    releases: list = dataclasses.field(default_factory=list)
    needs: list = dataclasses.field(default_factory=list)
    control: int = -1
    loop: "Loop | None" = None


@dataclasses.dataclass
class Loop:
    """A frame of nodes that run until a condition no longer holds."""

    enters: list = dataclasses.field(default_factory=list)
    body: list = dataclasses.field(default_factory=list)
    exits: list = dataclasses.field(default_factory=list)
    entered: list = dataclasses.field(default_factory=list)
    current: list = dataclasses.field(default_factory=list)
    next: list = dataclasses.field(default_factory=list)
    condition: int = -1


@dataclasses.dataclass
class Schedule:
    """What a plan is made of.

    Attributes
    ----------
    steps : list of Step
        In their order.
    constants : list of tuple
        Nodes without inputs that are computed once, and their slots.
    arguments, captured, results : list of int
        The slots of what a call gives, of what the function captured, and of the results; -1 for
        what is not used.
    num_slots : int
        Number of slots.
    persistent : set of int
        Slots that keep their values from run to run.
    conditional : bool
        Whether branches or loops leave anything out.
    has_effects : bool
        Whether to run it again is not the same as to run it once.
    waits : bool
        Whether it may wait for other threads.
    """

    steps: list
    constants: list
    arguments: list
    captured: list
    results: list
    num_slots: int
    persistent: set
    conditional: bool
    has_effects: bool
    waits: bool


def schedule(graph, num_arguments, num_captured, op_def, function_def):
    """Return the `Schedule` of a graph.

    Parameters
    ----------
    graph : GraphDef
        The graph of the only partition.
    num_arguments, num_captured : int
        The number of the tensors that a call gives, and of those that the function captured.
    op_def : callable
        Returns the OpDef of an op's name, `None` for what is none.
    function_def : callable
        Returns the FunctionDef of a name, `None` for what the context does not have.

    Raises
    ------
    UnplannedError
        If the graph has something that is TensorFlow's to run.
    """
    return _Scheduler(graph, num_arguments, num_captured, op_def, function_def).run()


class _Scheduler:
    def __init__(self, graph, num_arguments, num_captured, op_def, function_def):
        self.nodes = {node.name: node for node in graph.node}
        self.op_def = op_def
        self.function_def = function_def
        self.called = set()  # functions that nodes call
        self.num_arguments = num_arguments
        self.arguments = [-1] * (num_arguments + num_captured)
        self.has_effects = False
        self.slots = {}
        self.data, self.controls = {}, {}
        self.users = defaultdict(list)
        for node in graph.node:
            self.data[node.name], self.controls[node.name] = edges(node)
            self.check(node)
        for name, inputs in self.data.items():
            for source, _ in inputs:
                self.users[source].append(name)
            for source in self.controls[name]:
                self.users[source].append(name)
        self.asked = {edge for inputs in self.data.values() for edge in inputs}
        self.frames = self.find_frames()
        self.origins = {}  # of slots that may be dead: the sides of switches that they depend on
        self.persistent = set()

    def check(self, node):
        """Raise `UnplannedError` for a node that is TensorFlow's to run."""
        if node.op in ARGUMENTS | RESULTS | COPIES | SWITCHES | {"Const", "Merge", "NoOp"}:
            return
        self.check_state(node)
        if node.op in RANDOM | CALLS:
            return
        found = self.op_def(node.op)
        private = node.op.startswith("_") and not node.op.startswith(PRIVATE)
        if found is None or private or node.op in UNPLANNED:
            raise UnplannedError(f"{node.op} is TensorFlow's to run")
        if node.op in policy.EXCLUDED and node.op not in STATEFUL:
            raise UnplannedError(f"{node.op}: {policy.EXCLUDED[node.op]}")
        if any(arg.is_ref for arg in (*found.input_arg, *found.output_arg)):
            raise UnplannedError(f"{node.op} takes references")
        if any(attr.type in ("func", "list(func)") for attr in found.attr):
            raise UnplannedError(f"{node.op} calls functions")

    def check_state(self, node):
        """Raise `UnplannedError` for a node with a state that another kernel would not share.

        So for the nodes of the functions that it calls: TensorFlow runs these, but as others than
        it would without a plan.
        """
        found = self.op_def(node.op)
        called = functions_of(node) - self.called - ({node.op} if found is not None else set())
        self.called |= called
        for name in sorted(called):
            function = self.function_def(name)
            if function is None:
                raise UnplannedError(f"{node.op} calls {name}, which the context does not have")
            for inner in function.node_def:
                self.check_state(inner)
        if node.op in RANDOM:
            if any(node.attr[name].i for name in ("seed", "seed2") if name in node.attr):
                raise UnplannedError(f"{node.op} has a sequence that is TensorFlow's")
        elif node.op in STATEFUL:
            self.has_effects |= node.op not in HARMLESS
        elif node.op not in CALLS and found is not None and found.is_stateful:
            raise UnplannedError(f"{node.op} has a state that is TensorFlow's")

    def find_frames(self):
        """Return for each node the frames around it, as a tuple of names, outermost first."""
        frames = {}
        order = self.sorted(self.nodes, lambda name: self.sources(name))
        for name in order:
            node = self.nodes[name]
            outer = max((self.frame_after(frames, s) for s in self.sources(name)), key=len,
                        default=())  # fmt: skip
            if node.op == "Enter":
                outer = (*outer, node.attr["frame_name"].s)
            frames[name] = outer
        return frames

    def frame_after(self, frames, name):
        """Return the frames around what a node makes."""
        return frames[name][:-1] if self.nodes[name].op == "Exit" else frames[name]

    def sources(self, name):
        """Return the nodes that must run before another, but for the one that closes a loop."""
        if self.nodes[name].op == "Merge":
            return [s for s, _ in self.data[name] if self.nodes[s].op != "NextIteration"] + [
                *self.controls[name]
            ]
        return [source for source, _ in self.data[name]] + self.controls[name]

    @staticmethod
    def sorted(names, sources):
        """Return names in an order in which each comes after its sources."""
        order, done = [], set()
        for first in names:
            waiting = [(first, iter(sources(first)))] if first not in done else []
            under_way = {first}
            while waiting:
                name, left = waiting[-1]
                for source in left:
                    if source not in done:
                        if source in under_way:
                            raise UnplannedError("the graph has a cycle")
                        under_way.add(source)
                        waiting.append((source, iter(sources(source))))
                        break
                else:
                    waiting.pop()
                    done.add(name)
                    order.append(name)
        return order

    def slot(self, name, output=0):
        """Return the slot of an output; -1 as the output stands for having run at all."""
        return self.slots.setdefault((name, output), len(self.slots))

    def run(self):
        results = {}
        for name, node in self.nodes.items():
            if node.op in RESULTS:
                results[node.attr["index"].i] = self.slot(*self.data[name][0])
            elif node.op in ARGUMENTS:
                if (name, 0) in self.asked:
                    self.arguments[node.attr["index"].i] = self.slot(name)
                self.persistent.add(self.slot(name))
        if sorted(results) != list(range(len(results))):
            raise UnplannedError("the graph does not have all results")
        constants = [
            (node, self.slot(name)) for name, node in self.nodes.items() if self.is_constant(name)
        ]
        self.persistent |= {slot for _, slot in constants}
        conditional = any(node.op in SWITCHES | {"Enter"} for node in self.nodes.values())
        steps = self.frame_steps(())
        results = [results[i] for i in range(len(results))]
        steps = _asked(steps, set(results))
        _release(steps, {*results}, self.persistent)
        arguments, captured = (
            self.arguments[: self.num_arguments],
            self.arguments[self.num_arguments :],
        )
        kept = {slot for _, slot in constants}.union(captured)
        return Schedule(
            steps, constants, arguments, captured, results, len(self.slots), kept, conditional,
            self.has_effects, any(node.op in WAITING | CALLS for node in self.nodes.values()),
        )  # fmt: skip

    def is_constant(self, name):
        return self.nodes[name].op == "Const"

    def frame_steps(self, frame):
        """Return the steps of what is inside of frames, and not deeper."""
        depth = len(frame)
        members = [name for name, inside in self.frames.items() if inside[:depth] == frame]

        def unit(name):
            inside = self.frames[name]
            return name if len(inside) == depth else inside[: depth + 1]

        before = defaultdict(set)
        units = dict.fromkeys(unit(name) for name in members)
        for name in members:
            for source in self.sources(name):
                if self.frames[source][:depth] == frame and unit(source) != unit(name):
                    before[unit(name)].add(unit(source))
        steps = []
        units = sorted(units, key=self.waits)  # TensorFlow runs others while one waits, too
        for one in self.sorted(units, lambda one: sorted(before[one], key=str)):
            if isinstance(one, tuple):
                steps.append(self.loop(one))
            elif (step := self.step(one)) is not None:
                steps.append(step)
        return steps

    @functools.cached_property
    def waiting(self):
        """The nodes that may wait for other threads, and all that wait for these."""
        found = [name for name, node in self.nodes.items() if node.op in WAITING]
        waiting = set(found)
        while found:
            new = set(self.users[found.pop()]) - waiting
            waiting |= new
            found += new
        return waiting

    def waits(self, unit):
        """Tell whether what a node or a frame runs may wait."""
        if isinstance(unit, tuple):
            return any(self.frames[name][: len(unit)] == unit for name in self.waiting)
        return unit in self.waiting

    def loop(self, frame):
        """Return the step of a frame."""
        loop = Loop()
        inner = [name for name, inside in self.frames.items() if inside == frame]
        by_op = defaultdict(list)
        for name in inner:
            by_op[self.nodes[name].op].append(name)
        if len(by_op["LoopCond"]) != 1:
            raise UnplannedError("a loop has no single condition")
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
        # What exits comes from the last round: it is copied after that.
        loop.exits = [self.copy(name) for name in by_op["Exit"]]
        if not needs:
            self.live(loop.exits)
        for one in (*loop.enters, *loop.exits):
            one.needs = []
        return Step("loop", self.nodes[by_op["LoopCond"][0]], needs=needs, loop=loop)

    def live(self, steps):
        """Note that what these steps make is not dead when they run."""
        for step in steps:
            for slot in step.outputs:
                self.origins.pop(slot, None)

    def copy(self, name):
        return self.finish(Step("copy", self.nodes[name]), name)

    def step(self, name):
        """Return the step of a node, `None` for what takes none."""
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
                return None  # the loop's own
            kind = "merge"
        elif node.op == "ReadVariableOp":
            kind = "read"
        else:
            kind = "kernel"
        step = self.finish(Step(kind, node), name)
        return step if kind != "nothing" or step.needs else None

    def finish(self, step, name):
        """Fill in the slots of a step."""
        node = step.node
        step.inputs = [self.slot(*edge) for edge in self.data[name]]
        if self.is_constant(name):
            step.outputs = [self.slot(name)]
        elif step.kind != "nothing":
            outputs = _OUTPUTS.get(step.kind)
            if outputs is None:
                outputs = 1 + max((o for n, o in self.asked_of(name)), default=-1)
            if node.op == "_SwitchN":
                outputs = node.attr["num_outs"].i
            step.outputs = [
                self.slot(name, o) if (name, o) in self.asked else -1 for o in range(outputs)
            ]
        needs = []
        if node.op != "Merge":  # which has a value if one input has, whatever it waits for
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
        if origin and any(name in self.controls[user] for user in self.users[name]):
            step.control = self.slot(name, -1)
            self.origins[step.control] = origin
        return step

    def enough(self, needs):
        """Return those of which the others are alive whenever they are."""
        enough = []
        for slot in sorted(needs, key=lambda slot: -len(self.origins[slot])):
            if not any(self.origins[slot] <= self.origins[other] for other in enough):
                enough.append(slot)
        return enough

    def asked_of(self, name):
        return [edge for edge in self.asked if edge[0] == name]


def functions_of(node):
    """Return the names that a node may call functions by, its op's among them."""
    attrs = node.attr.values()
    lists = (one.name for attr in attrs for one in attr.list.func)
    return {node.op, *(attr.func.name for attr in attrs if attr.HasField("func")), *lists}


def edges(node):
    """Return the inputs of a node as pairs of node and output, and the nodes that it waits for."""
    data, controls = [], []
    for text in node.input:
        if text.startswith("^"):
            controls.append(text[1:])
        else:
            name, _, output = text.partition(":")
            data.append((name, int(output or 0)))
    return data, controls


def _asked(steps, asked):
    """Return the steps without those that only say whether something is dead, to nobody."""
    asked = asked | {slot for step in _all(steps) for slot in step.needs}
    asked |= {slot for step in _all(steps) if step.kind == "merge" for slot in step.inputs}

    def keep(steps):
        for step in steps:
            if step.loop is not None:
                step.loop.body = list(keep(step.loop.body))
            if step.kind in ("nothing", "copy") and not _tells(step, asked):
                continue
            yield step

    return list(keep(steps))


def _tells(step, asked):
    """Whether a step moves a value, or makes a slot dead that somebody asks for."""
    if step.kind == "copy" and any(slot >= 0 for slot in step.outputs):
        return True
    return not asked.isdisjoint({*step.outputs, step.control})


def _all(steps):
    for step in steps:
        yield step
        if step.loop is not None:
            yield from _all(step.loop.enters + step.loop.body + step.loop.exits)


def _release(steps, kept, persistent):
    """Say of each step which of its inputs others still ask for, and which slots it is the last of.

    Parameters
    ----------
    steps : list of Step
        In their order.
    kept : set of int
        Slots whose values are asked for after the steps.
    persistent : set of int
        Slots whose values are not theirs to let go.
    """
    later = kept | persistent
    for step in reversed(steps):
        if step.loop is None:
            step.shared = [
                place
                for place, slot in enumerate(step.inputs)
                if slot in later or step.inputs.count(slot) > 1
            ]
            step.releases = [slot for slot in dict.fromkeys(step.inputs) if slot not in later]
        else:
            loop = step.loop
            _release(loop.exits, later, persistent)
            inside = set().union(*map(_used, loop.body))
            mine = {*loop.current}.union(*map(_made, loop.body))
            left = {slot for leave in loop.exits for slot in leave.inputs}
            asked = {*(inside - mine), loop.condition, *loop.next, *left}
            _release(loop.body, asked, persistent)
            _release(loop.enters, later | inside | {*loop.entered}, persistent)
        later |= _used(step)


def _made(step):
    """Return the slots that a step fills, with those of what is inside of it."""
    made = {slot for slot in step.outputs if slot >= 0}
    if step.loop is not None:
        for part in (step.loop.enters, step.loop.body, step.loop.exits):
            made = made.union(*map(_made, part))
        made |= {*step.loop.current}
    return made


def _used(step):
    """Return the slots that a step reads, with those of what is inside of it."""
    used = set(step.inputs)
    if step.loop is not None:
        for part in (step.loop.enters, step.loop.body, step.loop.exits):
            for one in part:
                used |= _used(one)
        used |= {*step.loop.entered, *step.loop.current, *step.loop.next, step.loop.condition}
    return used
