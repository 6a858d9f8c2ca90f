"""Time arms in turn, so that a temporary disturbance of the machine affects all of them."""

import gc
import statistics
import timeit
from typing import NamedTuple

ROUNDS = 21
BLOCK = 0.01
"""The seconds of a block of calls. A block of small ops has far fewer calls than fit into the
device's queue."""

MOST_CALLS = 400
"""The maximum number of calls in a block. If the queue of a stream is full, a call waits for the
device."""


class Timed(NamedTuple):
    """Microseconds per call: the median over rounds, and half the distance between quartiles."""

    median: float
    spread: float


def in_turn(arms, synchronize, whole=False, rounds=ROUNDS, block=BLOCK):
    """Time statements in turn.

    Parameters
    ----------
    arms : dict of str to (str, dict)
        By name, a statement and the names that it uses.
    synchronize : callable
        Waits until the device has finished its work.
    whole : bool
        Whether waiting is part of the time, which is then the time until the result is computed.
        Otherwise, only the host time is measured.
    rounds, block
        The number of rounds, and the length of a block.

    Returns
    -------
    dict of str to Timed
    """
    timers = {
        name: timeit.Timer(statement, globals=names) for name, (statement, names) in arms.items()
    }
    calls = {name: _calibrate(timer, synchronize, block) for name, timer in timers.items()}
    samples = {name: [] for name in arms}
    order = list(arms)
    gc.collect()
    for number in range(rounds):
        first = number % len(order)
        for name in order[first:] + order[:first]:
            samples[name].append(_time(timers[name], calls[name], synchronize, whole))
    return {name: _timed(rounds) for name, rounds in samples.items()}


def _calibrate(timer, synchronize, block):
    timer.timeit(3)
    synchronize()
    calls = 1
    while calls < MOST_CALLS and _time(timer, calls, synchronize, True) * calls < block * 1e6:
        calls *= 2
    return min(calls, MOST_CALLS)


def _time(timer, calls, synchronize, whole):
    """Return the microseconds per call in a block."""
    timer.timeit(2)
    synchronize()
    if whole:
        begin = timer.timer()
        timer.timeit(calls)
        synchronize()
        seconds = timer.timer() - begin
    else:
        seconds = timer.timeit(calls)
        synchronize()
    return seconds / calls * 1e6


def _timed(samples):
    if len(samples) < 4:
        return Timed(statistics.median(samples), 0.0)
    low, _, high = statistics.quantiles(samples, n=4)
    return Timed(statistics.median(samples), (high - low) / 2)
