# Begins to record a call and to learn from it. False if this is done with another call.
cdef bint begin_turn() except -1
cdef void end_turn() noexcept


# Records what this thread runs in a ``with`` block.
cdef class Record:
    cdef readonly object recorder
    cdef readonly object witness
    cdef readonly bint started
