"""What a plan is made of, as plain data: steps in an order, and the slots of their values."""

import dataclasses


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
