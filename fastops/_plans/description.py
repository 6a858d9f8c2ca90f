"""Descriptions of plans: as a table, as plain data, as a picture."""

import os
import shutil
import subprocess
from dataclasses import asdict, dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from fastops._core.printing import Printed

_COLUMNS = ("node", "op", "takes", "makes", "takes over", "frees", "runs", "ns a run")
_TEXTS = _COLUMNS[:2]


@dataclass(frozen=True)
class PlanNode:
    """A step of a plan.

    Attributes
    ----------
    name, op : str
        The name and op of the node in the graph that TensorFlow executes.
    kind : str
        ``"kernel"``; ``"read"`` of a variable; ``"copy"``, ``"switch"``, ``"merge"`` and
        ``"nothing"``, which run no kernel; ``"loop"``, whose body follows.
    depth : int
        The number of loops around the step.
    inputs, outputs : tuple of int
        The slots that the step reads and fills; -1 for an output that is not used.
    takes_over : tuple of int
        Slots whose buffers no other step needs: the kernel may write its result into them.
    frees : tuple of int
        Slots that are empty after the step.
    carries : tuple of tuple of int
        For each variable of a loop, three slots: of the value that enters the loop, of the current
        value in the body, and of the next value that the body makes.
    runs, ns : int
        The number of runs and their total nanoseconds, while a `fastops.profile` was open.
    """

    name: str
    op: str
    kind: str
    depth: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    takes_over: tuple[int, ...]
    frees: tuple[int, ...]
    carries: tuple[tuple[int, int, int], ...]
    runs: int
    ns: int


class PlanDescription(Printed):
    """The steps of a plan in their order. It prints as a table.

    Attributes
    ----------
    title : str
        The function that the plan runs.
    nodes : tuple of PlanNode
        The steps.
    arguments, captured, results : tuple of int
        The slots of the call's tensors, of the captured tensors, and of the results.
    """

    def __init__(self, title, schedule, runs, ns):
        self.title = title
        self.arguments = tuple(schedule.arguments)
        self.captured = tuple(schedule.captured)
        self.results = tuple(schedule.results)
        times = iter(zip(runs, ns, strict=True))
        self.nodes = tuple(_nodes(schedule.steps, schedule.persistent, times))

    def to_dict(self):
        """Return the description as plain data: dicts, lists, strings and ints."""
        return {
            "title": self.title,
            "arguments": list(self.arguments),
            "captured": list(self.captured),
            "results": list(self.results),
            "nodes": [
                {name: _plain(value) for name, value in asdict(node).items()} for node in self.nodes
            ],
        }

    def to_dot(self):
        """Return the plan as a graph in the language of graphviz.

        Returns
        -------
        str
            The nodes are in execution order. Edges are values: dashed if the step may take over the
            buffer, dotted from one iteration of a loop to the next. Constants are left out.
        """
        lines = ["digraph plan {", "  rankdir=TB; node [shape=box, fontname=sans, fontsize=10];"]
        made, rounds = {}, {}
        for kind, slots in (("argument", self.arguments), ("captured", self.captured)):
            for i, slot in enumerate(slots):
                if slot >= 0:
                    made[slot] = f"{kind}{i}"
                    lines.append(f'  {kind}{i} [label="{kind} {i}", shape=ellipse];')
        for number, node in enumerate(self.nodes):
            label = f"{number}: {node.op}\\n{_quoted(node.name)}"
            if node.runs:
                label += f"\\n{node.ns / node.runs:,.0f} ns"
            lines.append(f'  n{number} [label="{label}"];')
            rounds |= {current: (entered, left) for entered, current, left in node.carries}
            for slot in node.inputs:
                if slot in rounds and slot not in made:
                    made[slot] = made.get(rounds[slot][0])
                if made.get(slot) is None:
                    continue
                style = " [style=dashed]" if slot in node.takes_over else ""
                lines.append(f"  {made[slot]} -> n{number}{style};")
            made |= {slot: f"n{number}" for slot in node.outputs if slot >= 0}
        for entered, left in rounds.values():
            if entered in made and left in made:
                back = "[style=dotted, constraint=false]"
                lines.append(f"  {made[left]} -> {made[entered]} {back};")
        for i, slot in enumerate(self.results):
            lines.append(f'  result{i} [label="result {i}", shape=ellipse];')
            if slot in made:
                lines.append(f"  {made[slot]} -> result{i};")
        return "\n".join([*lines, "}", ""])

    def save(self, path):
        """Write a picture of the plan.

        Parameters
        ----------
        path : str or os.PathLike
            The file. ``.dot`` and ``.gv`` files get the language of graphviz; for other extensions,
            such as ``.svg`` and ``.png``, the program ``dot`` of graphviz draws the picture.

        Raises
        ------
        RuntimeError
            If the program ``dot`` is not installed, or if it fails.
        """
        path = os.fspath(path)
        extension = os.path.splitext(path)[1][1:].lower()
        if extension in ("dot", "gv"):
            with open(path, "w") as file:
                file.write(self.to_dot())
            return
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError(
                f"to draw {path} takes the program dot of graphviz, which is not installed: "
                "a file that ends in .dot can be written without it"
            )
        done = subprocess.run(
            [program, f"-T{extension or 'svg'}", "-o", path],
            input=self.to_dot(),
            text=True,
            capture_output=True,
        )
        if done.returncode:
            raise RuntimeError(f"{path} cannot be drawn: {done.stderr.strip()}")

    def __rich__(self):
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, title=self.title, title_justify="left"
        )  # fmt: skip
        for column in _COLUMNS:
            table.add_column(column, justify="left" if column in _TEXTS else "right")
        for node in self.nodes:
            slots = (node.inputs, node.outputs, node.takes_over, node.frees)
            cells = (
                "  " * node.depth + node.name,
                node.op,
                *(" ".join("-" if slot < 0 else str(slot) for slot in part) for part in slots),
                f"{node.runs:,}" if node.runs else "",
                f"{node.ns / node.runs:,.0f}" if node.runs else "",
            )
            table.add_row(*map(Text, cells))
        return table


def _plain(value):
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def _nodes(steps, persistent, times, depth=0):
    """Yield the nodes of steps and of the steps inside loops, in the order of `times`."""
    for step in steps:
        runs, ns = next(times)
        kept = {*persistent, *(step.inputs[i] for i in step.shared)}
        yield PlanNode(
            step.node.name,
            step.node.op,
            step.kind,
            depth,
            tuple(step.inputs),
            tuple(step.outputs),
            tuple(slot for slot in dict.fromkeys(step.inputs) if slot not in kept),
            tuple(step.releases),
            _carries(step.loop),
            runs,
            ns,
        )
        if step.loop is not None:
            for part in (step.loop.enters, step.loop.body, step.loop.exits):
                yield from _nodes(part, persistent, times, depth + 1)


def _carries(loop):
    return () if loop is None else tuple(zip(loop.entered, loop.current, loop.next, strict=True))


def _quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')
