from cpython.object cimport PyObject

from fastops._core.entries cimport Entry
from fastops._core.schema cimport Schema
from fastops._cpp.frame cimport Frame
from fastops._cpp.kernel cimport Manner
from fastops._cpp.placed cimport PlacedKernel
from fastops._tf.status cimport Status

# Runs a kernel, and tells an observer of it. What `PreparedKernel.Run` returns. `counts` is how
# often the call is counted.
cdef int run_observed(Schema op, Entry entry, Frame* frame, PyObject** slots, PyObject** results,
                      Status* status, Manner* manner, PyObject* told, int* counts) except -2
# The same on another device: what `PlacedKernel.Run` returns.
cdef int run_placed_observed(Entry entry, PlacedKernel* kernel, Frame* frame, PyObject** results,
                             Status* status, PyObject* told) except -2
# What the text of a reason leaves open, or None.
cdef str detail_of(Schema op, int reason, PyObject** slots, Entry entry)
# Raises what TensorFlow's generated function raises for an error status of a call, or
# `as_dispatched` what its dispatch call raises.
cdef PyObject* raise_status(Schema op, Entry entry, PyObject** slots, bint as_dispatched,
                            const Status& status, bytes prefix) except NULL
# Raises what TensorFlow's function of an op raises for the status of its kernel.
cdef int raise_failure(Schema op, const Status& status) except -1
