"""Measures the overhead of the profile function that records calls of functions."""

from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from inspect import signature
from math import copysign
from pathlib import PurePath
from threading import Thread

from fastops._reports.frames import times

_CALLS = 2000

_HIGHEST_SLOWDOWN = 3.0
"""The maximum slowdown of an interpreter. A higher result means a disturbed measurement."""


@dataclass(frozen=True)
class Costs:
    """The overhead that the profile function adds to measured times.

    Attributes
    ----------
    of_python, of_c : float
        Nanoseconds for the call and return of a function in Python, and of a function in C.
    slowdown : float
        The factor by which Python's own code is slower. Up to Python 3.11 the interpreter does not
        use its specialized instructions while a profile function is set.
    """

    of_python: float = 0.0
    of_c: float = 0.0
    slowdown: float = 1.0


def _nothing():
    pass


def _call_python(count):
    for _ in range(count):
        _nothing()


def _call_c(count):
    for _ in range(count):
        copysign(1.0, -1.0)


def _run_library(count):
    """Run code that is typical of libraries: small functions, attributes, branches, containers."""
    for _ in range(count // 50):
        signature(_run_library)
        PurePath("some", "where").with_suffix(".txt").as_posix()
        Fraction(3, 4) + Fraction(5, 6)
        deepcopy({"a": [1, 2], "b": ("c", None)})


@cache
def costs_of_noting():
    """Return the `Costs`.

    They are measured once in a process, in a new thread, where no other profile function is set.
    """
    costs = []
    thread = Thread(target=lambda: costs.append(_measured()), daemon=True)
    thread.start()
    thread.join()
    return costs[0] if costs else Costs()


def _measured():
    """Compute the costs from three programs: their times with and without noting, and calls."""
    plain_python, noted_python, _ = times(_call_python, _CALLS)
    plain_c, noted_c, _ = times(_call_c, _CALLS)
    plain, noted, frames = times(_run_library, _CALLS)
    called = frames.called()
    calls = [what for _, what, _ in frames.moments() if what >= 0]
    in_c = sum(isinstance(called[what], tuple) for what in calls) / _CALLS
    in_python = len(calls) / _CALLS - in_c
    # Subtract the calls, by the costs that the first two programs give for one call.
    noted -= in_python * noted_python + in_c * noted_c
    plain -= in_python * plain_python + in_c * plain_c
    slowdown = min(max(noted / plain, 1.0), _HIGHEST_SLOWDOWN) if plain > 0 else 1.0
    return Costs(
        max(0.0, (noted_python - slowdown * plain_python) / _CALLS),
        max(0.0, (noted_c - slowdown * plain_c) / _CALLS),
        slowdown,
    )
