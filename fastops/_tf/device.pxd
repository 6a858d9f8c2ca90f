# tensorflow/core/common_runtime/device.h
cdef extern from "declarations.h" namespace "tensorflow":
    cdef cppclass Device:
        pass
