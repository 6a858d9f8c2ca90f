"""Time arms in turn, so that disturbances of the machine affect all of them.

An arm is one statement. It is timed as in `timeit`: in a loop that is compiled with it, with
garbage collection disabled. A round times a block of calls of each arm, and each round begins with
another arm. Ratios are computed within a round and summarized over rounds.
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
SETTLING = 0.25
"""For how many seconds at most the calls before a block go on in a scope."""
SETTLED = 200
"""After how many calls nothing more is expected to be learned of them."""


@dataclass
class Arm:
    """One of the ways to do the work.

    Attributes
    ----------
    name : str
        The name of its column in the table.
    statement : str
        The source code that is timed.
    names : dict
        The names that the statement uses, with their values.
    scope : callable
        Makes a context manager for a block of calls, entered and left outside of the timed part.
    warm : int
        How many calls to make before a block at least. In a scope, more calls follow: recordings
        are made once they pay.
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
        """Warm up, and choose the number of calls for a block of about this length."""
        with self.scope():
            self.settle()
            self.calls = 1
            while (taken := self._timer.timeit(self.calls)) < seconds / 4:
                self.calls *= 2
        self.calls = max(1, round(self.calls * seconds / taken))

    def sample(self, blocks=1):
        """Time a block (or several, and take the median); store the nanoseconds per call."""
        with self.scope():
            self.settle()
            seconds = median(self._timer.timeit(self.calls) for _ in range(blocks))
        self.samples.append(seconds / self.calls * 1e9)

    def settle(self):
        """Make calls until they create nothing more, such as kernels and recordings."""
        calls, end = self.warm, perf_counter_ns() + SETTLING * 1e9
        self._timer.timeit(self.warm)
        while self.scope is not nullcontext and calls < SETTLED and perf_counter_ns() < end:
            self._timer.timeit(5)
            calls += 5

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

    They run in a separate thread with a nearly empty stack: TensorFlow walks the Python stack on
    every op, and the stack of a test runner would double the time of its ops.

    Parameters
    ----------
    arms : list of Arm
        The arms, which store their samples.
    block : float, optional
        The seconds of the calls of an arm in a round; default: one call.
    """

    def __init__(self, arms, block=None):
        self.arms = arms
        self._thread = ThreadPoolExecutor(1)
        for arm in arms if block else ():
            self.call(partial(arm.calibrate, block))

    def call(self, function):
        """Call a function in the thread of the arms."""
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
    """Return the median of values, and the ends of its confidence interval.

    The ends are order statistics, so the interval is valid for any distribution.

    Returns
    -------
    tuple of float
        The median and the ends. The ends are `None` if there are too few values for the confidence
        level.
    """
    values = sorted(values)
    n = len(values)
    # The median is outside of the range from values[k] to values[-1 - k] with twice this
    # probability.
    below, outside, k = 0.0, (1 - confidence) / 2, -1
    for i in range(n):
        below += math.comb(n, i) / 2**n
        if below > outside:
            break
        k = i
    ends = (values[k], values[-1 - k]) if k >= 0 else (None, None)
    return median(values), *ends
