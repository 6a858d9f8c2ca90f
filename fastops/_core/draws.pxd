# Draws of random ops by a pair of seeds.
from cpython.object cimport PyObject

from fastops._core.entries cimport Entry
from fastops._core.schema cimport Schema
from fastops._cpp.frame cimport Frame
from fastops._cpp.runtime cimport Runtime


# Whether fastops may draw: `install` is active, and fastops knows all draws that TensorFlow's
# kernels have made.
cdef bint live
# Whether `install` is active.
cdef bint installed
# Changes when TensorFlow drops its kernels, so that all sequences begin again.
cdef unsigned long long era

# Makes the first draw of a pair of seeds. Returns the entry of the call, with the results. Returns
# None if TensorFlow has to draw, after bringing TensorFlow's kernel up to date. `measurer` is the
# profile to notify of the kernel, or null.
cdef Entry draw(Schema op, PyObject** slots, PyObject* device_name, Frame* frame,
                const Runtime& runtime, PyObject** results, PyObject* measurer)
# Notes that TensorFlow draws in a call, and brings its kernel up to date. `anew`: this call makes
# TensorFlow create its context.
cdef int leave(Schema op, PyObject** slots, const Runtime& runtime, bint anew) except -1
# The attributes of a draw that a tape records.
cdef tuple attrs_for_record(Schema op, PyObject** slots, Frame* frame)
# Whether no kernel of an op reads the seeds that its calls have.
cdef bint reads_no_seeds(Schema op)
# Takes the seeds out of a call of such an op. Returns False if TensorFlow may refuse one of them.
cdef bint leave_out_seeds(Schema op, PyObject** slots) except -1
# Returns the two seeds of an op, as `random_seed.get_seed` does where ops run eagerly.
cdef tuple seeds_of(op_seed)
# How many pairs of seeds are stored.
cpdef size_t num_pairs()
# Brings up to date all kernels of TensorFlow that may continue a sequence that fastops has begun.
cdef int settle(const Runtime& runtime) except -1
