# Draws of random ops by a pair of seeds.
from cpython.object cimport PyObject

from fastops._core.entries cimport Entry
from fastops._core.schema cimport Schema
from fastops._cpp.frame cimport Frame
from fastops._cpp.runtime cimport Runtime


# Whether draws may run here: `install` is active, and all draws are known that TensorFlow's
# kernels have made.
cdef bint live
# Whether `install` is active.
cdef bint installed
# Changes when TensorFlow drops its kernels, so that all sequences begin again.
cdef unsigned long long era

# Makes the first draw of a pair of seeds. Returns the entry of the call, with the results, or None
# if TensorFlow has to draw: then its kernel has been brought up to date. The measurer, if there is
# one, is the profile to notify of the kernel.
cdef Entry draw(Schema op, PyObject** slots, PyObject* device_name, Frame* frame,
                const Runtime& runtime, PyObject** results, PyObject* measurer)
# Notes that TensorFlow draws in a call, and brings its kernel up to date. `anew`: TensorFlow makes
# a context in this call.
cdef int leave(Schema op, PyObject** slots, const Runtime& runtime, bint anew) except -1
# Returns the two seeds of an op, as `random_seed.get_seed` does where ops run eagerly.
cdef tuple seeds_of(op_seed)
# How many pairs of seeds are stored.
cpdef size_t num_pairs()
# Brings TensorFlow's kernels up to date that may go on from draws that were made here.
cdef int settle(const Runtime& runtime) except -1
