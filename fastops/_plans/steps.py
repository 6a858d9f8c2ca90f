"""The parts of a plan as plain data: steps in execution order, and the slots of values."""

import dataclasses


@dataclasses.dataclass
class PlanStep:
    """One node, or one loop of nodes. ``NativeStep`` in ``_cpp/plan.h`` explains the fields."""

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
    """A frame: nodes that run again and again while a condition holds."""

    enters: list = dataclasses.field(default_factory=list)
    body: list = dataclasses.field(default_factory=list)
    exits: list = dataclasses.field(default_factory=list)
    entered: list = dataclasses.field(default_factory=list)
    current: list = dataclasses.field(default_factory=list)
    next: list = dataclasses.field(default_factory=list)
    condition: int = -1


@dataclasses.dataclass
class Schedule:
    """The steps, constants and slots of a plan.

    Attributes
    ----------
    steps : list of PlanStep
        The steps in execution order.
    constants : list of tuple
        Pairs of a constant node, which is computed once, and its slot.
    arguments, captured, results : list of int
        The slots of the call's tensors, of the captured tensors, and of the results; -1 for a
        tensor that is not used.
    num_slots : int
        Number of slots.
    persistent : set of int
        Slots that keep their values from run to run.
    conditional : bool
        Whether the graph has branches or loops, so that values may be dead.
    has_effects : bool
        Whether a run changes state, so that a failed run must not be repeated.
    waits : bool
        Whether a run may wait for other threads.
    python : bool
        Whether steps run Python, so that the plan runs in one of TensorFlow's threads.
    seeded : bool
        Whether there are random ops with seeds, whose sequences go on from run to run.
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
    python: bool
    seeded: bool
