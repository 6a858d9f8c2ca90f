# distutils: language = c++
"""When it pays to make a recording or a plan.

A recording or a plan costs time now, and the number of later calls is unknown. The rule is that of
renting or buying. The calls that a recording or plan would have served must first cost a share
(`SHARE`) of its expected cost. A program that ends before that has lost nothing. A program that
ends right after that has lost no more than this cost, which is in proportion to its run time.

1. An `Account` belongs to one signature of one object or function. A call that runs without a
   recording or plan charges its time to the account.
2. An `Estimate` is the expected cost, in proportion to a size. It starts with a figure that is
   rather too high, and follows the costs that are measured in this process.
3. `Account.is_due` compares the two. Each recording or plan that is dropped because something has
   changed doubles the bar, and replays that have paid for a recording reset it (`Account.begin`).
   `Account.is_due_by_share` is the rule for plans, which save only a part of a call's time.
4. Time counts once. While a call charges an account, the calls inside it charge nothing and get no
   recordings: the recording of the outer call will replay them (`cover`). A call that has waited
   for too long (`is_overdue`) stops covering the calls inside it.

The limits of all recordings and plans are in `policy.pxd`.

Only calls without a recording or plan read the clock. The functions need the GIL. They neither wait
nor run Python code, except for a clock that a test has set.
"""

cimport cython
from libc.stdint cimport int64_t

from fastops._cpp.timer cimport Nanoseconds

SHARE = 0.5
"""The share of the expected cost that an account must reach."""

cdef extern from *:
    """
    // Whether this thread is in a call whose account is also charged for the calls inside it.
    static thread_local bool covered = false;
    """
    bint covered

cdef double _share = SHARE
cdef object _clock = None
cdef dict _estimates = {}


cdef int64_t now() except? -1:
    return Nanoseconds() if _clock is None else _clock()


cdef bint is_overdue(int64_t waited_ns, int64_t cost_ns) noexcept:
    return waited_ns >= MAX_WAIT * <int64_t>(_share * cost_ns)


cdef bint is_covered() noexcept:
    return covered


cdef bint cover(bint value) noexcept:
    global covered
    cdef bint before = covered
    covered = value
    return before


@cython.final
cdef class Estimate:
    """The expected cost of a recording or plan, in proportion to a size that is known before.

    Parameters
    ----------
    name : str
        The kind of recording or plan, as `estimates` lists it.
    start : float
        The first figure: nanoseconds for a unit of size. It should be too high rather than too
        low.
    """

    def __init__(self, str name, double start):
        self.name, self.start, self.per_unit = name, start, start
        _estimates[name] = self

    cdef int64_t of(self, double size) noexcept:
        """The expected cost for a size, in nanoseconds."""
        cdef double ns = size * self.per_unit
        return <int64_t>(ns if ns < 1e18 else 1e18)

    cdef void learn(self, double size, int64_t ns) noexcept:
        """Adjust the figure to a measured cost.

        Other load on the machine and other threads with the GIL can only increase a measurement. So
        a lower measurement counts for more than a higher one, and the figure never rises above
        twice the first figure.
        """
        cdef double measured
        if size <= 0 or ns <= 0:
            return
        measured = ns / size
        if measured < self.per_unit:
            self.per_unit += (measured - self.per_unit) / 2
        else:
            self.per_unit += (min(measured, 2 * self.start) - self.per_unit) / 8

    def expected(self, size):
        """Return `of` for Python code."""
        return self.of(size)

    def measured(self, size, ns):
        """`learn` for Python code."""
        self.learn(size, ns)


@cython.final
cdef class Account:
    """The time of calls that a recording or plan could have saved.

    The first call does not count: it builds, traces and allocates. Each later call counts with the
    time of the shortest call. A recording or plan would not have saved the rest of a longer call:
    the scheduler, a garbage collection, or the first call of something else took it.
    """

    cdef void charge(self, int64_t ns) noexcept:
        """Count a call and its time."""
        if self.calls == 0 or ns < self.shortest_ns:
            self.shortest_ns = ns
        self.calls += 1

    cdef int64_t spent(self) noexcept:
        return 0 if self.calls < 2 else (self.calls - 1) * self.shortest_ns

    cdef bint is_due(self, int64_t cost_ns) noexcept:
        """Whether to make a recording or plan of this expected cost; never before a call."""
        cdef double bar = _share * cost_ns * (1 << min(self.drops, MAX_DOUBLINGS))
        return self.calls > 0 and self.spent() >= bar

    cdef bint is_due_by_share(self, int64_t cost_ns, double saved_ns, double least) noexcept:
        """Whether to make a plan of this expected cost, if it saves only a part of a call's time.

        A plan saves TensorFlow's overhead, not the time of kernels. A smaller share of overhead in
        a call means that the plan takes longer to pay back, and also that it saves less. So the bar
        is the cost divided by the square of this share: a function whose calls are half overhead
        needs four times the calls' cost of a function without kernel time.

        `saved_ns` is what a plan saves in each call, and `least` the least share to assume.
        """
        cdef double share = max(min(saved_ns / max(self.shortest_ns, 1), 1.0), least)
        return self.is_due(<int64_t>min(cost_ns / (share * share), 1e18))

    cdef void begin(self, int64_t cost_ns, double saved_ns, bint anew) noexcept:
        """Restart the count, since a recording of this expected cost begins.

        `saved_ns` is what the replays of earlier recordings have saved: if they have paid for a
        recording, the bar is reset. Otherwise, if the recording is made because the earlier ones do
        not fit (`anew`), it is raised.
        """
        if saved_ns >= cost_ns:
            self.forgive()
        elif anew:
            self.drop()
        else:
            self.restart()

    cdef void restart(self) noexcept:
        """Restart the count, since a recording or plan is being made. Keep the time of a call."""
        self.calls = min(self.calls, 1)

    cdef void drop(self) noexcept:
        """Restart the count with a higher bar, since a recording or plan was of no use."""
        self.drops += 1
        self.restart()

    cdef void forgive(self) noexcept:
        """Restart the count with the first bar, since a recording or plan has paid."""
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
        The number before the first success. After a success twice as many are allowed: a signature
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
    """Return the time of the clock that accounts use, in nanoseconds."""
    return now()


def share():
    """Return the share of the expected cost that an account must reach."""
    return _share


def set_share(double value):
    """Set the share of the expected cost that an account must reach; return the previous share.

    With 0, a recording or plan is made after the first call. Most tests set this.
    """
    global _share
    before, _share = _share, value
    return before


def set_clock(value):
    """Set a callable that replaces the clock; None restores the clock."""
    global _clock
    _clock = value


def estimates():
    """Return all estimates, by name."""
    return dict(_estimates)
