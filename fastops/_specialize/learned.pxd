# What is learned from TensorFlow about calls of one kind.

from fastops._specialize.cache cimport Cache
from fastops._specialize.states cimport State


cdef class Learned:
    cdef readonly object kind
    cdef readonly object content  # what later calls use; None: nothing yet
    cdef readonly str reason      # why TensorFlow makes all calls of this kind; None if it does not
    cdef readonly str detail      # the particulars, or None
    cdef readonly int seen        # number of calls from which the same was learned
    cdef int needed               # how many of them there must be

    cdef State state_now(self) noexcept


# Counts of the calls of one function.
cdef class CallCounts:
    cdef readonly str title
    cdef readonly long long used  # calls that used what was learned
    cdef readonly dict reasons    # by reason, how many calls TensorFlow made
    cdef object __weakref__

    # Counts a call that begins, by the state of its kind: it uses what was learned, or TensorFlow
    # makes it.
    cpdef int count(self, Learned learned) except -1


cdef class LearnedByKind(CallCounts):
    cdef Cache known              # by kind: `Learned`
    cdef Py_ssize_t most
    cdef int needed
    cdef object size_of

    # What is known about calls of a kind; None if there was no such call.
    cdef Learned find(self, kind)
    # The same, but a new kind is added.
    cpdef Learned of(self, kind)
