# The recordings of calls of a method, for one signature and one state of the object.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._specialize.guards.watch cimport Globals, Watch
from fastops._specialize.policy cimport Account
from fastops._specialize.specialization cimport Specialization


# The expected cost of two recorded calls and the trial, by the time of one call.
cdef int64_t cost_for(Account account)


cdef class MethodCase(Specialization):
    cdef int64_t made_ns  # the extra time that recorded calls took
    cdef tuple scopes
    cdef Globals globals
    cdef Watch contents
    cdef dict codes
    cdef set seen
    cdef dict functions
    cdef dict variables
    cdef dict left
    cdef set marks
    cdef dict names
    cdef list warned
    cdef bint identified  # whether it is for variables of one object
    cdef bint any_batch   # whether it is for all batch sizes
    cdef bytes confirmed_by  # if so, the signature of the call that `first` has recorded
    cdef bint adds_losses  # whether a result is a pair, of what the call returns and its losses

    # Adds the time of a recorded call. Once there is a replay, updates the estimate of costs.
    cdef int cost(self, int64_t ns) except -1
    # All globals that differ from those of the recording, or the contents that do, as text.
    cdef str changes(self)
    # Takes over the guards of another case, and what its calls do beside their ops.
    cdef int take_guards(self, MethodCase other) except -1
    # Whether a call of another case, which has run some code, has run no other code than those of
    # this case, and has done the same beside its ops. The first call of a process runs more code.
    cdef bint covers(self, MethodCase other, dict codes) except -1
    # The same recordings with numbers in the places of the object's variables.
    cdef MethodCase unbound(self, dict numbers)
    # The recordings of `unbound` with the variables of another object.
    cdef MethodCase bound(self, const vector[PyObject*]* parts)
    cdef MethodCase copied(self, dict numbers, const vector[PyObject*]* parts)
