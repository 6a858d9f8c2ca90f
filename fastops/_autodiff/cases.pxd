from cpython.object cimport PyObject

from fastops._cpp.signature cimport Signature
from fastops._specialize.recording.record cimport Record
from fastops._specialize.specialization cimport Specialization


# What is known about the calls of gradient functions with one key.
cdef class Case:
    cdef list attrs         # of each recorded op; keeps alive what the key has by address
    cdef list kinds         # of recorded calls, likewise
    cdef list registered    # for each op: its entry in TensorFlow's registry, and the function
    cdef bint custom        # whether a record has a custom gradient
    cdef bint never         # whether a gradient function is missing, unknown, or a user's
    cdef Specialization known
    cdef dict ops
    cdef set asked          # the numbers of the arguments whose objects a replay needs

    # Finds the gradient functions of the ops with these names.
    cdef int look_up(self, list op_names) except -1
    # Whether the gradient functions are those of the first calls.
    cdef bint fits(self) except -1
    # Whether all recordings run as kernels only.
    cdef bint is_native(self) except -1
    # Makes a replay of what was recorded. `signature` and `arguments` have the tensors that the
    # gradient functions were given, and `made` is what they have returned. Returns whether there is
    # a replay now.
    cdef bint learn(self, Record record, const Signature& signature, list arguments,
                    tuple made) except -1


# `attrs` and `op_names` have an item for each recorded op.
cdef Case new_case(bytes key, list attrs, list op_names, list kinds)
# Whether `configure` has been called.
cdef bint is_configured() noexcept
