from cpython.object cimport PyObject

from libc.stdint cimport uint64_t


# The settings and open scopes that a library keeps for a thread.
cdef class Scopes:
    # The state that calls depend on, beside their arguments and their object. It is compared by
    # `==`. None if it is unknown.
    cdef tuple read(self, PyObject* entry)
    # The context of the outermost layer call; None outside of layer calls.
    cdef object call_context(self)
    # By kind of name, how many names this thread has generated.
    cdef dict names_given(self)
    # Adds to these counts.
    cdef int give_names(self, dict counts) except -1


cdef class OfKeras(Scopes):
    cdef dict global_state
    cdef tuple last              # the last state that was read outside of all scopes
    cdef uint64_t last_version   # the version of the dict that `last` was read from
