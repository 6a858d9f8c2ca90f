# The recording of a call of a method.

from libc.stdint cimport int64_t

from fastops._cpp.signature cimport Signature
from fastops._install.models.scopes cimport Scopes
from fastops._specialize.objects.case cimport MethodCase
from fastops._specialize.objects.receiver cimport Receiver
from fastops._specialize.objects.state cimport ObjectState
from fastops._specialize.policy cimport Account


cdef class MethodRecording:
    cdef Receiver receiver
    cdef ObjectState state
    cdef MethodCase case
    cdef Scopes source
    cdef tuple scopes
    cdef dict unasked
    cdef object root
    cdef list arguments, holders, identities
    cdef list attributes     # those of each argument before the call
    cdef object context      # the context of the outermost layer call, or None
    cdef dict around         # its attributes before the call
    cdef dict names          # how many names the thread had generated before the call
    cdef object first        # the recording to confirm, or None
    cdef list copies         # of the variables, for the trial
    cdef list layers         # those that keep losses in attributes, or None
    cdef list losses         # the losses of each of them before the call
    cdef bint confirms       # whether a replay is made if this call runs what the first one ran
    cdef MethodCase batch    # for all batch sizes; None if the call is recorded for its own only
    cdef object first_batch  # the recording for all batch sizes to confirm, or None
    cdef list batch_copies   # of its variables
    cdef int64_t began

    # Notes what the call may change, and makes the state and the case of the call if there are
    # none. False if the object has been given up.
    cdef bint prepare(self, Receiver receiver, ObjectState state, MethodCase case,
                      Account account, const Signature& signature) except -1
    # Learns from the call, which has been recorded. True if its case is replayed from now on.
    # Raises an exception if the call cannot be replayed.
    cdef bint learn(self, record, bint keeps_arguments, const Signature& signature,
                    result) except -1
    # The attributes that the call has set to None on its arguments: each argument, the name, and
    # the value before the call.
    cdef list cleared(self)
    cdef bint is_cleared(self, int leaf, str name, value) except -1
    # Notes the losses in the object. If there are any, they are no part of its state.
    cdef int note_losses(self) except -1
    # The losses that the call has added to each layer.
    cdef list added(self)
    cdef int check(self, record, bint keeps_arguments) except -1
    cdef int count_names(self, recorder) except -1
    cdef dict left(self)
    cdef int guard(self, witness) except -1
    cdef bint keep(self, record, dict left, const Signature& signature, result) except -1
    # Looks for the recordings of calls that differ in the batch size only.
    cdef int prepare_batch(self, const Signature& signature, Account account) except -1
    # Keeps a recording that may hold for all batch sizes, or makes its replay if this call confirms
    # an earlier one, of another batch size.
    cdef int keep_batch(self, record, const Signature& signature, result) except -1
    cdef object recorded(self, record, result, bint any_batch)
