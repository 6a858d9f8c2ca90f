# distutils: language = c++
"""The counters and caches of the hot path, as plain data."""

from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.string cimport memset

from fastops._core.attributes cimport MISSING, restored
from fastops._core.base cimport BaseOp, loaded
from fastops._core.entries cimport Entry, cache_size
from fastops._core.reasons cimport NUM_REASONS, R_ASYNC, R_DIRECT, R_OBSERVED
from fastops._core.schema cimport unknown_kernels
from fastops._cpp.kernel cimport FoundThreads
from fastops._cpp.runtime cimport Async, Observed, OneDnnEnabled, Runtime, UnknownKernels
from fastops._dispatch cimport Op, gate, runtime

cdef extern from "definitions.h":
    pass

from fastops._core.reasons import REASONS
from fastops._core.threads import THREADS


def counters():
    """Return for each op that was called: its name, calls by path, and calls by reason."""
    cdef BaseOp op
    cdef int i
    counts = []
    for op in loaded:
        reasons = {REASONS[i].id: op.calls_reason[i] for i in range(1, NUM_REASONS)
                   if op.calls_reason[i]}
        if op.calls_direct or reasons:
            counts.append((op.op_name, op.calls_direct, op.calls_capi, op.calls_tensorflow,
                          reasons))
    return counts


def reset_counters():
    """Set all counters to zero."""
    cdef BaseOp op
    for op in loaded:
        op.calls_direct = op.calls_capi = op.calls_tensorflow = 0
        memset(op.calls_reason, 0, NUM_REASONS * sizeof(long long))


def cached_keys(Op op):
    """Return the cached keys of an op, each with its state: a kernel, or the reason for none."""
    cdef Entry entry
    return [
        {
            "attrs": {
                name: restored(value)
                for name, value in zip(op.attr_names, entry.attrs)
                if value is not MISSING
            },
            "signature": list(entry.signature),
            "device": entry.device_name,
            "onednn": bool(entry.onednn),
            "reason": None if entry.reason == R_DIRECT else REASONS[entry.reason].id,
            "detail": entry.detail,
            "threads": _threads(entry),
            "primitive_runs": _primitive_runs(entry),
        }
        for entry in op.table.values()
    ]


cdef object _primitive_runs(Entry entry):
    """How often oneDNN's primitive ran in place of the entry's kernel."""
    return deref(entry.kernel).primitive_runs() if entry.kernel.get() != NULL else 0


cdef list _threads(Entry entry):
    """For each size of inputs: the threads in which the kernel's tasks run, and measured times."""
    cdef FoundThreads measured
    if entry.kernel.get() == NULL or deref(entry.kernel).choice() == NULL:
        return []
    return [
        {
            "bytes": measured.bytes,
            "threads": THREADS[<int>measured.threads],
            "caller_ns": measured.caller_ns,
            "pool_ns": measured.pool_ns,
        }
        for measured in deref(entry.kernel).choice().Describe()
    ]


def cache_info():
    """Return the number of cached entries by op name, and the maximum for each op."""
    cdef BaseOp op
    return {op.op_name: len(op.table) for op in loaded if op.table}, cache_size


def direct_path_state():
    """Return why no call can take the direct path now, or None if calls can take it."""
    cdef PyObject* device = NULL
    cdef Runtime* here = runtime()
    cdef int reason
    if unknown_kernels:
        return f"{UnknownKernels().decode()} is set: TensorFlow then runs kernels in another way"
    reason = gate(&device)
    if reason == R_DIRECT:
        reason = R_ASYNC if Async(here[0]) else R_OBSERVED if Observed(here[0]) else R_DIRECT
    return None if reason == R_DIRECT else REASONS[reason].sentence


def onednn_enabled():
    """Return whether this TensorFlow replaces kernels by oneDNN's."""
    return OneDnnEnabled()
