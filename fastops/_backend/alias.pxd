from fastops._dispatch cimport Op
from fastops._install.replacement cimport Replacement


cdef enum:
    MAX_PARAMS = 12


cdef class Alias(Replacement):
    cdef readonly Op op
    cdef tuple names
    cdef tuple defaults
    cdef int num_params
    cdef int num_required
    cdef int num_slots
    cdef dict params
    cdef unsigned char slots[MAX_PARAMS]       # where each parameter goes
    cdef tuple constants                       # what else the op is given
    cdef unsigned char constant_slots[MAX_PARAMS]
    cdef unsigned int tensors                  # bit i: argument i must be a tensor or a variable
    cdef unsigned long long dtypes             # of the first of them; 0 for all
    cdef int lead
    cdef tuple handlers
    cdef tuple num_handlers
