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
    cdef unsigned char slots[MAX_PARAMS]       # the op's slot of each parameter
    cdef tuple constants                       # the constant arguments of the op
    cdef unsigned char constant_slots[MAX_PARAMS]
    cdef unsigned int tensors                  # bit i: argument i must be a tensor or a variable
    cdef unsigned long long dtypes             # bit set of dtypes of the first of `tensors`; 0: all
    cdef int lead
    cdef tuple handlers
    cdef tuple num_handlers
