from libc.stdint cimport int64_t


cdef extern from "timer.h" namespace "fastops":
    int64_t Nanoseconds()
