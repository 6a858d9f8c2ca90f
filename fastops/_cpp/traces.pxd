# Cimported by every module, for what the header does to the code that Cython adds.
cdef extern from "traces.h":
    pass
