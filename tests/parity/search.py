"""Search for crashes and differences: malformed calls by number, and properties by seed."""

import dataclasses
from functools import partial

from support import outcome

from fastops import _registry
from parity import checks, malformed

FIRST_CALLS = 100
"""The number of calls of each op that are also made as first calls under `install`. Each keeps an
op alive."""


@dataclasses.dataclass
class Bag:
    """The results of some calls of a search.

    Attributes
    ----------
    tried, raised, left_out : int
        The numbers of calls made, of calls that raise, and of calls left out because they are known
        to end the process.
    problems : list of str
        Differences from TensorFlow.
    """

    tried: int = 0
    raised: int = 0
    left_out: int = 0
    problems: list = dataclasses.field(default_factory=list)


def hunt(task, progress, report):
    """Make the malformed calls of a `parity.campaign.Task`; report a `Bag` for each."""
    fatal = [set(mistakes) for mistakes in task.fatal]
    for number, call in malformed.hunted(task.op_name, task.start, task.stop):
        mistakes = "; ".join(call.mistakes)
        bag = Bag()
        if any(known <= set(call.mistakes) for known in fatal):
            bag.left_out = 1
        elif task.arm == "both":
            problem, raised = checks.compare_malformed(
                task.op_name,
                call,
                partial(progress, number, mistakes),
                first=number < FIRST_CALLS,
            )
            bag.tried, bag.raised = 1, raised
            if problem:
                bag.problems.append(f"{task.op_name}, {mistakes} (call {number}): {problem}")
        else:
            progress(number, mistakes, task.arm)
            find = {"tensorflow": checks.reference, "fastops": _registry.op}[task.arm]
            function = find(task.op_name)
            if task.arm == "fastops" and number < FIRST_CALLS:
                with checks.at_once(task.op_name) as op:
                    outcome(partial(call.of, op))
            for _ in range(2):
                outcome(partial(call.of, function))
        report(bag)
