from libcpp.string cimport string


# tensorflow/core/common_runtime/device.h
cdef extern from "declarations.h" namespace "tensorflow":
    cdef cppclass Device:
        const string& name()
