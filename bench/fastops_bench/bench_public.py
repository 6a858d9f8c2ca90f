"""All public functions and methods that eager programs call, with `fastops.install` and without.

A quick run measures every tenth call. ``python -m fastops bench public -k resize`` shows the calls
that contain "resize", or whose family has this name.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from statistics import median

import pytest
from pytest_fastops.race import Arm
from tensorflow.python.framework import op_callbacks

import fastops
from fastops_bench.public import inputs, recipes, results
from fastops_bench.public.speed import LOST

ROUNDS, BLOCK = 9, 2e-4

BATCH = 24
"""The number of calls per installation. Installing takes longer than timing one call."""

BLOCKS = 5
"""The number of short blocks in a sample, which is their median. On a busy machine, most short
blocks are not disturbed, but a long block would be."""


@dataclass
class Measured:
    """One call: its arms, the number of its ops, and their times in `fastops.profile`."""

    recipe: recipes.Recipe
    stock: Arm
    installed: Arm
    ops: int = 0
    kernel: float = 0.0
    detours: list[str] = field(default_factory=list)
    differs: bool = False

    @property
    def samples(self):
        return {"stock": self.stock.samples, "installed": self.installed.samples}

    @property
    def ratio(self):
        """How many times faster the call is under `install`: the median over rounds."""
        pairs = zip(self.stock.samples, self.installed.samples, strict=True)
        return median(one / other for one, other in pairs)

    def about(self):
        """Return the facts about the call for docs/speed.md, other than times."""
        names = ("ops", "kernel", "detours", "differs")
        return {name: getattr(self, name) for name in names} | {"reason": self.recipe.reason}


def measure(chosen, rounds=ROUNDS, block=BLOCK):
    """Time the calls of one family in turn, in batches; yield each as `Measured`.

    A round of a batch takes a sample of each call without `fastops.install`, then of each with it.
    The next round takes them in the opposite order.
    """
    for first in range(0, len(chosen), BATCH):
        batch = chosen[first : first + BATCH]
        names = recipes.namespace(batch[0].family, inputs.world())
        calls = [
            Measured(each, Arm("stock", each.call, names), Arm("installed", each.call, names))
            for each in batch
        ]
        # TensorFlow walks the Python stack on every op, and the stack of a thread is nearly empty.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(_measure, calls, rounds, block).result()
        yield from calls


def _measure(calls, rounds, block):
    want = _results(calls)
    for call in calls:
        call.stock.calibrate(block)
        call.ops = _count_ops(call.stock)
    with fastops.accelerated():
        got = _results(calls)
        for call in calls:
            call.installed.calibrate(block)
            _profile(call)
    for call, one, other in zip(calls, want, got, strict=True):
        call.differs = not call.recipe.varies and one != other
    _race(calls, rounds)
    # Calls that seem slower are timed for longer: usually another program had the processor.
    _race([call for call in calls if call.ratio < LOST], 2 * rounds)


def _race(calls, rounds):
    for turn in range(rounds if calls else 0):
        first, second = ("stock", "installed") if turn % 2 else ("installed", "stock")
        _sample(calls, first)
        _sample(calls, second)


def _results(calls):
    """Return the outcomes of each call, made three times on new inputs."""
    names = recipes.namespace(calls[0].recipe.family, inputs.world())
    with results.seeded():
        return [[results.outcome(call.recipe.call, names) for _ in range(3)] for call in calls]


def _count_ops(arm):
    """Return how many ops a call runs."""
    seen = []

    def see(op_type, *rest, **named):
        seen.append(op_type)

    op_callbacks.add_op_callback(see)
    try:
        arm.result()
    finally:
        op_callbacks.remove_op_callback(see)
    return len(seen)


def _profile(call):
    """Store the kernel time of a call under `install`, and its ops that were not direct."""
    operations = []
    for _ in range(BLOCKS):
        with fastops.profile() as profile:
            call.installed.result()
        operations.append(profile.kernel_ns)
    call.kernel = median(operations)
    call.detours = [
        f"{name}: {detour.reason}" + f" ({detour.detail})" * bool(detour.detail)
        for name, op in profile.ops.items()
        for detour in op.detours
    ]


def _sample(calls, name):
    with fastops.accelerated() if name == "installed" else nullcontext():
        for call in calls:
            getattr(call, name).sample(BLOCKS)


def families():
    for family in recipes.names():
        titles = [recipe.title for recipe in recipes.of(family)]
        yield pytest.param(family, marks=pytest.mark.covers(*titles))


@pytest.mark.parametrize("family", families())
def test_public(family, effort, wanted, record):
    chosen = [recipe for recipe in recipes.of(family) if wanted(recipe.title)]
    if len(chosen) in (0, len(recipes.of(family))):  # the filter names the family, or there is none
        chosen = recipes.of(family)[:: 1 if effort == "full" else 10]
    effort_settings = {"full": (ROUNDS, BLOCK), "quick": (7, 5e-5), "once": (1, 1e-6)}[effort]
    calls = list(measure(chosen, *effort_settings))
    for call in calls:
        record("public", call.recipe.title, samples=call.samples, **call.about())
    assert not [call.recipe.title for call in calls if call.differs]
