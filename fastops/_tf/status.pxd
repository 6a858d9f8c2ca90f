# absl/status/status.h
from libcpp cimport bool
from libcpp.string cimport string


cdef extern from "declarations.h" namespace "absl" nogil:
    cdef cppclass Status:
        Status()
        bool ok() const
        int raw_code() const
