from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from fastops._core.base cimport BaseOp
from fastops._core.entries cimport Entry
from fastops._cpp.frame cimport Frame
from fastops._cpp.options cimport Options
from fastops._cpp.runtime cimport Runtime

# Incremented whenever the state changes that kernels are built for.
cdef unsigned long long generation
# Incremented by every `flush`, including the one that a change of `generation` causes.
cdef unsigned long long flushes

# Captures TensorFlow's new context. Returns False while there is none to run kernels in.
cdef bint capture(Runtime* runtime, PyObject* py_context) except -1
# Whether TensorFlow's context is still the one that was captured.
cdef bint is_current(const Runtime& runtime) noexcept
# Drops every prepared kernel and cached operation.
cpdef int flush() except -1
# Sets whether the first call of a key is direct if TensorFlow is known to accept the call.
cdef int run_at_once(bint value) except -1
# Makes the entry for a call and adds it to the op's table. Returns None if `make_entry` does.
cdef Entry add_entry(BaseOp op, uint64_t key, PyObject** slots, PyObject* device_name,
                     Frame* frame, const Runtime& runtime, bint onednn, bint untried)
# Makes the entry before the first call of its key. Returns None if TensorFlow has to run that call.
cdef Entry entry_at_once(BaseOp op, uint64_t key, PyObject** slots, PyObject* device_name,
                         Frame* frame, const Runtime& runtime, Options* options, bint ready,
                         bint stands_in, PyObject* observer)
