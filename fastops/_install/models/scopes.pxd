from cpython.object cimport PyObject

from libc.stdint cimport uint64_t


# What a library keeps for a thread.
cdef class Scopes:
    # What calls depend on beside their arguments and their object, to be compared by `==`. None
    # where that is unknown.
    cdef tuple read(self, PyObject* entry)
    # The context of the outermost layer's call; None outside of all.
    cdef object call_context(self)
    # How many objects have got a name of each kind.
    cdef dict names_given(self)
    # Counts as many more.
    cdef int give_names(self, dict counts) except -1


cdef class OfKeras(Scopes):
    cdef dict global_state
    cdef tuple last              # what was read last, outside of all scopes
    cdef uint64_t last_version   # of the dict that it was read from
