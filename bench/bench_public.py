"""Every public function and method that eager programs call, with `fastops.install` and without.

`make speed` measures all of them and writes docs/speed.md. While you write,
``.venv/bin/python bench/bench_public.py -k resize`` prints the same table for the calls that have
that in their text or name, or whose family it is.
"""

import argparse
import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pytest
import tensorflow as tf
from public import inputs, recipes, results, speed
from pytest_fastops.race import Arm
from tensorflow.python.framework import op_callbacks

import fastops

ROUNDS, BLOCK = 9, 2e-4

BATCH = 24
"""So many calls share an installation, which takes longer than to time one of them."""

BLOCKS = 5
"""So many short blocks make a sample, their median: on a busy machine most of them are left alone,
where a long one would not be."""


@dataclass
class Measured:
    """One call: its arms, how many ops it runs, and what `fastops.profile` says of them."""

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


def measure(chosen, rounds=ROUNDS, block=BLOCK):
    """Time calls of one family in turn, a batch at a time; yield each as `Measured`.

    A round of a batch takes a sample of each call without `fastops.install`, then of each with it,
    and the next round the other way round.
    """
    for first in range(0, len(chosen), BATCH):
        batch = chosen[first : first + BATCH]
        names = recipes.namespace(batch[0].family, inputs.world())
        calls = [
            Measured(each, Arm("stock", each.call, names), Arm("installed", each.call, names))
            for each in batch
        ]
        # TensorFlow walks the Python stack on every op: that of a thread is nearly empty.
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
    # What seems to lose is asked for longer: most often another program had the processor.
    _race([call for call in calls if speed.Row.of(call).ratio < speed.LOST], 2 * rounds)


def _race(calls, rounds):
    for turn in range(rounds if calls else 0):
        first, second = ("stock", "installed") if turn % 2 else ("installed", "stock")
        _sample(calls, first)
        _sample(calls, second)


def _results(calls):
    """Return what each call gives when it is made three times, on inputs of their own."""
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
    """Set what the kernels of an installed call take, and which of its ops ran in another way."""
    found = []
    for _ in range(BLOCKS):
        with fastops.profile() as profile:
            call.installed.result()
        found.append(profile.kernel_ns)
    call.kernel = median(found)
    call.detours = [
        f"{name}: {detour.reason}" + f" ({detour.detail})" * bool(detour.detail)
        for name, op in profile.ops.items()
        for detour in op.detours
    ]


def _sample(calls, name):
    with fastops.accelerated() if name == "installed" else nullcontext():
        for call in calls:
            getattr(call, name).sample(BLOCKS)


@pytest.mark.parametrize("family", recipes.names())
def test_public(family, benchmark, quick):
    chosen = recipes.of(family)

    def run():
        return list(measure(chosen[::10], 1, 1e-6) if quick else measure(chosen))

    benchmark.group = "public"
    calls = benchmark.pedantic(run, rounds=1)
    benchmark.extra_info["ops"] = {call.recipe.title: call.ops for call in calls}
    benchmark.extra_info["calls"] = {call.recipe.title: call.samples for call in calls}
    assert not [call.recipe.title for call in calls if call.differs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", default="", help="a part of a call or its name, or a family")
    parser.add_argument("--quick", action="store_true", help="try everything, measure nothing well")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each block is timed")
    parser.add_argument("--output", type=Path, help="write the table here instead of printing it")
    args = parser.parse_args()
    tf.get_logger().setLevel("ERROR")  # what is deprecated is measured, too
    rounds, block = (1, 1e-6) if args.quick else (args.rounds, BLOCK)
    chosen = [
        recipe
        for recipe in recipes.all_recipes()
        if args.k in recipe.call or args.k in recipe.name or args.k == recipe.family
    ]
    if not chosen:
        parser.error(f"no call has {args.k!r} in it")
    rows = []
    for family, some in itertools.groupby(chosen, lambda recipe: recipe.family):
        for call in measure(list(some), rounds, block):
            rows.append(speed.Row.of(call))
            text = f"\r{len(rows):>5} of {len(chosen)}  {family:<12}"
            print(text, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    table = speed.render(rows)
    if args.output:
        args.output.write_text(table)
    else:
        print(table)


if __name__ == "__main__":
    main()
