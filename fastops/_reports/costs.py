"""What it takes to note the call of a function."""

from functools import cache
from math import copysign
from threading import Thread

from fastops._reports.frames import costs

_CALLS = 2000


def _nothing():
    pass


def _call_python(times):
    for _ in range(times):
        _nothing()


def _call_c(times):
    for _ in range(times):
        copysign(1.0, -1.0)


@cache
def costs_of_noting():
    """Return the nanoseconds for a function in Python, and in C: of the call and its return.

    They are measured once in a process, in a thread of its own, where nobody else notes anything.
    """
    found = []
    thread = Thread(target=lambda: found.append(costs(_call_python, _call_c, _CALLS)), daemon=True)
    thread.start()
    thread.join()
    return found[0] if found else (0.0, 0.0)
