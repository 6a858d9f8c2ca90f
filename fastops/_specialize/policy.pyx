# distutils: language = c++
"""When it pays to make a recording or a plan.

What is made for later calls costs time now, and nobody knows how many calls will come. The rule is
that of renting or buying: something is made once the calls that it would have served have cost a
share of what making it is expected to cost (`SHARE`). A program that ends before has lost nothing;
one that ends right after has lost no more than the cost, which is in proportion to its time.

1. An `Account` belongs to one signature of one object or function. Each of its calls that runs
   without what could be made charges the account with its time.
2. An `Estimate` says what making costs, by a size. It begins with a figure that is rather too high,
   and follows what making costs in this process.
3. `Account.is_due` compares the two. What was made and dropped, because something had changed,
   doubles the bar each time.
4. Time counts once. While a call runs that charges an account, what it calls charges nothing, and
   nothing is made for that: a recording of the outer call will replay all of it (`cover`). Who
   waits for too long gives that up.

The clock is read only in calls that run without what could be made. All of it is called with the
GIL; nothing here waits, or runs Python code, but for a clock that a test has put in.
"""

cimport cython
from libc.stdint cimport int64_t

from fastops._cpp.timer cimport Nanoseconds

cdef enum:
    MOST_DOUBLINGS = 20

SHARE = 0.5
"""The share of the expected cost that calls must have cost before something is made."""

cdef extern from *:
    """
    // Whether this thread is in a call whose own account has the time of what it calls.
    static thread_local bool covered = false;
    """
    bint covered

cdef double _share = SHARE
cdef object _clock = None
cdef dict _estimates = {}


cdef int64_t now() except? -1:
    return Nanoseconds() if _clock is None else _clock()


cdef int64_t bar_of(int64_t cost_ns) noexcept:
    return <int64_t>(_share * cost_ns)


cdef bint is_covered() noexcept:
    return covered


cdef bint cover(bint value) noexcept:
    global covered
    cdef bint before = covered
    covered = value
    return before


@cython.final
cdef class Estimate:
    """What it costs to make something, by a size that is known before it is made.

    Parameters
    ----------
    name : str
        What is made, as `estimates` lists it.
    start : float
        The starting figure: nanoseconds for a unit of size. Rather too high than too low.
    """

    def __init__(self, str name, double start):
        self.name, self.start, self.per_unit = name, start, start
        _estimates[name] = self

    cdef int64_t of(self, double size) noexcept:
        """What making something of a size is expected to cost, in nanoseconds."""
        cdef double ns = size * self.per_unit
        return <int64_t>(ns if ns < 1e18 else 1e18)

    cdef void learn(self, double size, int64_t ns) noexcept:
        """Follow what making something of a size has cost.

        What else ran on the machine, or held the GIL, only ever adds to a measurement: a lower one
        counts for more than a higher one, and the figure never rises beyond twice the first.
        """
        cdef double found
        if size <= 0 or ns <= 0:
            return
        found = ns / size
        if found < self.per_unit:
            self.per_unit += (found - self.per_unit) / 2
        else:
            self.per_unit += (min(found, 2 * self.start) - self.per_unit) / 8

    def expected(self, size):
        """Return `of` for Python code."""
        return self.of(size)

    def measured(self, size, ns):
        """`learn` for Python code."""
        self.learn(size, ns)


@cython.final
cdef class Account:
    """What calls have cost that something could have saved, had it been made before them.

    The first call does not count: it builds, traces and allocates what later calls find. Each other
    one counts as the shortest of them, since the rest of a longer one is time that would not have
    been saved either: the scheduler's, a collection's, another first call's.
    """

    cdef void charge(self, int64_t ns) noexcept:
        """Count a call, and its time."""
        if self.calls == 0 or ns < self.shortest_ns:
            self.shortest_ns = ns
        self.calls += 1

    cdef int64_t spent(self) noexcept:
        return 0 if self.calls < 2 else (self.calls - 1) * self.shortest_ns

    cdef bint is_due(self, int64_t cost_ns) noexcept:
        """Whether to make something that is expected to cost so much. Never before a call."""
        cdef double bar = _share * cost_ns * (1 << min(self.drops, MOST_DOUBLINGS))
        return self.calls > 0 and self.spent() >= bar

    cdef void restart(self) noexcept:
        """Begin anew: something is being made. What a call takes is known."""
        self.calls = min(self.calls, 1)

    cdef void drop(self) noexcept:
        """Take up that what was made is of no use: begin anew, with a higher bar."""
        self.drops += 1
        self.restart()

    cdef void forgive(self) noexcept:
        """Take up that what was made has paid: the bar is the first one again."""
        self.drops = 0
        self.restart()

    def add(self, ns):
        """`charge` for Python code."""
        self.charge(ns)

    def due(self, cost_ns):
        """`is_due` for Python code."""
        return self.is_due(cost_ns)

    def dropped(self):
        """`drop` for Python code."""
        self.drop()


@cython.final
cdef class Budget:
    """How many failures are allowed, before the first success and after it.

    Parameters
    ----------
    most : int
        The number before the first success. After each success it is twice as many: a signature
        that cannot be recorded says little about an object whose other calls are replayed.
    """

    def __init__(self, int most):
        self.most = most

    cdef bint fail(self) noexcept:
        self.failures += 1
        return self.is_spent()

    cdef void succeed(self) noexcept:
        self.failures, self.proven = 0, True

    cdef void lift(self) noexcept:
        self.lifted = True

    cdef bint is_spent(self) noexcept:
        return not self.lifted and self.failures >= (2 * self.most if self.proven else self.most)


def clock():
    """Return the time by the clock that accounts are charged by, in nanoseconds."""
    return now()


def share():
    """Return the share of the cost that calls must have cost before something is made."""
    return _share


def set_share(double value):
    """Set that share, and return the one before.

    0: something is made as soon as one call has come. Tests of what is made ask for that.
    """
    global _share
    before, _share = _share, value
    return before


def set_clock(value):
    """Put a callable in the place of the clock, or None for the clock itself."""
    global _clock
    _clock = value


def estimates():
    """Return all estimates, by name."""
    return dict(_estimates)
