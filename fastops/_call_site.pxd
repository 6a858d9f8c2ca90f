from fastops._dispatch cimport Op


cdef class CallSite:
    cdef Op op
    cdef tuple names

    # Runs the op with these arguments, in the order of `names`.
    cdef object run(self, tuple arguments)
