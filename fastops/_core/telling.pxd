from cpython.object cimport PyObject

from fastops._core.base cimport BaseOp
from fastops._core.entries cimport Entry
from fastops._core.schema cimport Schema
from fastops._cpp.frame cimport Frame
from fastops._cpp.kernel cimport Manner
from fastops._cpp.options cimport OnFallback, Thread
from fastops._cpp.placed cimport PlacedKernel
from fastops._cpp.runtime cimport Runtime
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

# Runs a kernel and notifies an observer. Returns the result of `PreparedKernel.Run`. May change
# `counts` from 0 to 1, if the call has to be counted after all.
cdef int run_observed(Schema op, Entry entry, Frame* frame, PyObject** slots, PyObject** results,
                      Status* status, Manner* manner, PyObject* told, int* counts) except -2
# Runs a kernel on a device other than the host and notifies an observer. Returns the result of
# `PlacedKernel.Run`.
cdef int run_placed_observed(Entry entry, PlacedKernel* kernel, Frame* frame, PyObject** results,
                             Status* status, PyObject* told) except -2
# Reads a variable into `value` and notifies the profile of the thread, if there is one. Returns
# False if the kernel has failed.
cdef bint read_observed(Schema op, Entry entry, Frame* frame, Tensor* value,
                        Thread* thread) except -1
# Whether a call may run directly and be reported to the recorder of this thread, although there are
# op callbacks. If so, sets the observer of the call, and the options of the call in the recorder.
cdef bint may_record(PyObject** told, bint dispatched, Thread* thread,
                     const Runtime& runtime) except -1
# Reports that a call does not take the direct path: to its observer, unless it is null, and as
# `how` says.
cdef int tell_fallback(BaseOp op, int path, int reason, PyObject** slots, Entry entry,
                       PyObject* told, OnFallback how) except -1
# Raises the exception that TensorFlow's generated function raises for an error status of a call.
# If `as_dispatched`, raises the exception of the dispatch call instead. `of_kernel`: the status is
# the kernel's own, and TensorFlow's runtime would begin its message with the name of the node.
cdef PyObject* raise_status(Schema op, Entry entry, PyObject** slots, bint as_dispatched,
                            const Status& status, bint of_kernel) except NULL
# Raises the exception that TensorFlow's function for an op raises for the status of its kernel.
cdef int raise_failure(Schema op, const Status& status) except -1
