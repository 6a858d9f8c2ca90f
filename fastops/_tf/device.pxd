# tensorflow/core/common_runtime/device.h
cdef extern from "tensorflow/core/common_runtime/device.h" namespace "tensorflow":
    cdef cppclass Device:
        pass
