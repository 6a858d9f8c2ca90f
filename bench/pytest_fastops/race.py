"""How is measured: arms timed in turn, so that what slows the machine down slows all of them.

An arm is one statement, timed as `timeit` times it: inside a loop that is compiled with it, with
the garbage collector off. A round times a block of calls of each arm, beginning with another arm
each time; ratios are taken within a round and summarised over rounds.
"""

import math
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from time import perf_counter_ns

CONFIDENCE = 0.95


@dataclass
class Arm:
    """One way to do the work.

    Attributes
    ----------
    name : str
        Its column in the table.
    statement : str
        What is timed.
    names : dict
        What the statement sees.
    scope : callable
        Makes the context that a block of calls runs in, entered and left outside the timing.
    warm : int
        How many calls come before a block: what a scope makes on first use is made by them.
    """

    name: str
    statement: str
    names: dict
    scope: Callable[[], AbstractContextManager] = nullcontext
    warm: int = 2
    calls: int = 1
    samples: list[float] = field(default_factory=list)

    def __post_init__(self):
        self._timer = timeit.Timer(self.statement, globals=self.names)

    def calibrate(self, seconds):
        """Warm up, and choose how many calls make a block of about this length."""
        with self.scope():
            self._timer.timeit(self.warm + 1)
            self.calls = 1
            while (taken := self._timer.timeit(self.calls)) < seconds / 4:
                self.calls *= 2
        self.calls = max(1, round(self.calls * seconds / taken))

    def sample(self, blocks=1):
        """Time a block, in nanoseconds per call; of several, keep the median."""
        with self.scope():
            self._timer.timeit(self.warm)
            seconds = median(self._timer.timeit(self.calls) for _ in range(blocks))
        self.samples.append(seconds / self.calls * 1e9)

    def singly(self, calls):
        """Time calls one by one, in the scope that the caller has entered; return nanoseconds."""
        once = eval(f"lambda: {self.statement}", self.names)
        taken = []
        for _ in range(calls):
            begin = perf_counter_ns()
            once()
            taken.append(perf_counter_ns() - begin)
        return taken

    def repeat(self, calls):
        """Make some calls, in the scope that the caller has entered."""
        self._timer.timeit(calls)

    def result(self):
        with self.scope():
            return eval(self.statement, self.names)


class Race:
    """Arms that are timed in turn.

    They run in a thread of their own, whose stack is nearly empty: TensorFlow walks the Python
    stack on every op, and that of a test runner would double what its ops take.

    Parameters
    ----------
    arms : list of Arm
        They hold the samples.
    block : float, optional
        Seconds that the calls of an arm take in a round; by default one call is made.
    """

    def __init__(self, arms, block=None):
        self.arms = arms
        self._thread = ThreadPoolExecutor(1)
        for arm in arms if block else ():
            self.call(partial(arm.calibrate, block))

    def call(self, function):
        """Have something done in the thread of the arms."""
        return self._thread.submit(function).result()

    def round(self):
        self.call(self._round)

    def _round(self):
        first = len(self.arms[0].samples) % len(self.arms)
        for arm in self.arms[first:] + self.arms[:first]:
            arm.sample()

    def close(self):
        """End the thread."""
        self._thread.shutdown()

    def samples(self):
        return {arm.name: arm.samples for arm in self.arms}


def median_interval(values, confidence=CONFIDENCE):
    """Return the median of some values, and the ends of its confidence interval.

    The ends are order statistics: the interval holds for any distribution.

    Returns
    -------
    tuple of float
        The ends are `None` for so few values that even their range holds the median less surely.
    """
    values = sorted(values)
    n = len(values)
    # The median is outside of values[k] to values[-1 - k] with twice this probability.
    below, outside, k = 0.0, (1 - confidence) / 2, -1
    for i in range(n):
        below += math.comb(n, i) / 2**n
        if below > outside:
            break
        k = i
    ends = (values[k], values[-1 - k]) if k >= 0 else (None, None)
    return median(values), *ends
