# The objects whose method a stand-in handles.

from cpython.object cimport PyObject

from fastops._specialize.cache cimport Cache
from fastops._specialize.objects.receiver cimport Receiver
from fastops._specialize.objects.state cimport ClassRecordings
from fastops._specialize.policy cimport Budget


cdef class Receivers:
    cdef str method       # in which users write what a call does, or None
    cdef dict known       # by identity of the object: `Receiver`
    cdef Cache refused    # by address of a class, how many objects may be given up
    cdef Cache classes    # by address of a class: `ClassRecordings`
    cdef dict others      # by version of a class: why its objects are not replayed
    cdef object known_declarations
    cdef unsigned long long known_after

    # The `Receiver` of an object; None if calls of its class are not replayed.
    cdef Receiver find(self, PyObject* root)
    cdef Receiver find_new(self, PyObject* root)
    cdef ClassRecordings recordings_of(self, object kind)
    cdef bint refuses(self, object kind) except -1
    # Why calls of a class cannot be shown to depend only on what is compared; None if they may be.
    cdef str objection(self, object kind)
    # Forgets the objects that were given up: their classes may be declared now.
    cdef int reconsider(self) except -1
    # Counts a failed recording. Returns the exception as a reason.
    cdef object fail(self, Receiver receiver, error)
    # How many objects of the class of this one may be given up.
    cdef Budget budget_of(self, Receiver receiver)
