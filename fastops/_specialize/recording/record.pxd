# Records a call, in a ``with`` block that also contains what is learned from the call.
cdef class Record:
    cdef object thread              # the id of the thread whose turn it is
    cdef bint collects              # whether garbage collection was on before
    cdef bint records               # whether the hooks are in place now
    cdef readonly bint has_turn
    cdef readonly bint is_profiled
    cdef readonly bint started
    cdef readonly object recorder
    cdef readonly object witness

    cpdef int start(self, dict declared, sizes=*) except -1
    cpdef int stop(self) except -1
    cdef int end_turn(self) noexcept
