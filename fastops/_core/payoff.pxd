from libc.stdint cimport int64_t

# Nanoseconds of a clock that never goes back; tests put their own clock in its place.
cdef int64_t now() except? -1

# Whether this thread is in a call whose own account has the time of what it calls; sets that, and
# returns what it was before.
cdef bint is_covered() noexcept
cdef bint cover(bint value) noexcept


# What calls must have cost before something is made that is expected to cost so much.
cdef int64_t bar_of(int64_t cost_ns) noexcept


# What it costs to make something, by a size that is known before it is made.
cdef class Estimate:
    cdef readonly str name
    cdef readonly double start      # the starting figure: nanoseconds for a unit of size
    cdef public double per_unit     # the current one

    cdef int64_t of(self, double size) noexcept
    cdef void learn(self, double size, int64_t ns) noexcept


# What calls have cost that something could have saved, had it been made before them.
cdef class Account:
    cdef readonly long long calls
    cdef readonly int64_t shortest_ns   # of one call
    cdef readonly int drops             # how often what was made for it was dropped

    cdef void charge(self, int64_t ns) noexcept
    cdef int64_t spent(self) noexcept
    cdef bint is_due(self, int64_t cost_ns) noexcept
    cdef void restart(self) noexcept
    cdef void drop(self) noexcept
    cdef void forgive(self) noexcept
