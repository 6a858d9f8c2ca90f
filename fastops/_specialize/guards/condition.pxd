# The base class of guards: a condition that a recording depends on.
cdef class Condition:
    # Whether everything that the guard compares is as expected.
    cdef bint hold(self) except -1
