# An object whose method is called.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._specialize.cache cimport Cache
from fastops._specialize.objects.state cimport ClassRecordings, ObjectState
from fastops._specialize.policy cimport Account, Budget


cdef class Receiver:
    cdef object reference
    cdef int slot
    cdef list states
    cdef ClassRecordings of_class
    cdef long long calls                # that were not replayed
    cdef int searches                   # for shared recordings: how many may still be made
    cdef Cache accounts
    cdef int64_t waited_ns              # charged to all accounts since the last success
    cdef Account charged                # the account that was charged last
    cdef unsigned long long paid_until  # number of replays that earlier recordings have counted
    cdef str reason
    cdef str detail
    cdef dict reasons                   # by reason, how many recordings failed
    cdef dict details                   # by reason, its latest particulars
    cdef str failure                    # why the latest recording failed; None after a success
    cdef Budget failures                # how many recordings may fail
    cdef int changes                    # number of new states since the last success
    cdef bint adds_losses               # whether calls add losses to layers in the object
    cdef readonly unsigned long long replayed

    # Takes the slot with the fewest users: models that live one after another share one.
    cdef int take_slot(self) noexcept
    # Counts a failed recording. The last one that is allowed gives the object up.
    cdef int fail(self, str why, str detail) except -1
    # Notes that calls are replayed from now on.
    cdef int succeed(self) except -1
    # Gives the object up.
    cdef int close(self, str why, str detail=*) except -1
    cdef Account account_of(self, tuple key)
    # Notes that a call has waited for a recording, and that its account was charged.
    cdef void wait(self, Account account) noexcept
    # Whether the calls of a signature have waited too long for a recording.
    cdef bint waits_too_long(self, Account account) noexcept
    # Updates the account when a recording begins. `anew`: the earlier ones do not fit this call.
    cdef int begin(self, Account account, bint anew) except -1
    # The change since the last known state, as text for observers.
    cdef str changed(self)
    # Notes in the recordings of the last known state what has changed since.
    cdef int miss(self) except -1
    # The known state whose guards hold now, or None.
    cdef ObjectState state(self)
    # A state with the recordings of objects that have died; None if none fit.
    cdef ObjectState share(self, PyObject* root)
    # A state in which a call may be recorded, given the one whose guards hold, if any. None if the
    # object changes again and again: it has been given up.
    cdef ObjectState recordable(self, ObjectState state, root, unasked, unasked_of)
    # Adds the counts of this object to a description of all objects.
    cdef int count_in(self, dict description) except -1
    cdef list recordings(self)
    # Describes the calls of a signature in some scopes; None if nothing is known about them.
    cdef dict description(self, tuple key)


# Adds the `Receiver` of an object to a dict. When the object dies, it is removed. None if there can
# be no weak references to the object.
cdef Receiver receive(dict receivers, PyObject* root, ClassRecordings of_class)
