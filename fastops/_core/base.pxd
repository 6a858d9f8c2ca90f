from fastops._core.entries cimport Entry
from fastops._core.schema cimport Schema


# An op apart from its calls, which `Op` in `_dispatch` adds.
cdef class BaseOp(Schema):
    cdef object _record             # the op's Record; made on first use, as are all fields below
    cdef bint ready                 # whether the op is loaded
    cdef object reference           # TensorFlow's own function
    cdef object result_type         # its namedtuple, or None
    cdef Entry last                 # the entry of the last call
    cdef dict table                 # key hash -> Entry, least recently used first
    cdef long long calls_direct
    cdef long long calls_capi
    cdef long long calls_tensorflow
    cdef long long* calls_reason

    # Makes a named op callable. Raises if the op cannot run.
    cdef int load(self) except -1
    # Gives the results of a call the structure of TensorFlow's function. `lengths` has for each
    # output the length of its list, or None.
    cdef object packed(self, list results, lengths)


cdef list loaded            # every op that was ever called

# Drops the entries of all ops.
cdef int drop_entries() except -1
