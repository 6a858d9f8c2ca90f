# distutils: language = c++
"""What the hot path counts and keeps, as plain data."""

from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.string cimport memset

from fastops._core.attributes cimport MISSING, restored
from fastops._core.entries cimport Entry, cache_size
from fastops._core.reasons cimport NUM_REASONS, R_ASYNC, R_DIRECT, R_OBSERVED
from fastops._cpp.kernel cimport FoundThreads
from fastops._cpp.runtime cimport Async, Observed, OneDnnEnabled, Runtime, UnknownKernels
from fastops._dispatch cimport (
    Op,
    gate,
    loaded,
    runtime,
    unknown_kernels,
)

cdef extern from "definitions.h":
    pass

from fastops._core.reasons import REASONS
from fastops._core.threads import THREADS


def counters():
    """For each op that was called: its name, calls by path, and calls by reason."""
    cdef Op op
    cdef int i
    found = []
    for op in loaded:
        reasons = {REASONS[i][0]: op.calls_reason[i] for i in range(1, NUM_REASONS)
                   if op.calls_reason[i]}
        if op.calls_direct or reasons:
            found.append((op.op_name, op.calls_direct, op.calls_capi, op.calls_tensorflow,
                          reasons))
    return found


def reset_counters():
    """Sets all counters to zero."""
    cdef Op op
    for op in loaded:
        op.calls_direct = op.calls_capi = op.calls_tensorflow = 0
        memset(op.calls_reason, 0, NUM_REASONS * sizeof(long long))


def cached_keys(Op op):
    """What is cached for an op: for each key whether its kernel is ready, or why it is not."""
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
            "reason": None if entry.reason == R_DIRECT else REASONS[entry.reason][0],
            "detail": entry.detail,
            "threads": _threads(entry),
            "primitive_runs": _primitive_runs(entry),
        }
        for entry in op.table.values()
    ]


cdef object _primitive_runs(Entry entry):
    """How often the entry's kernel was left out and oneDNN's primitive ran by itself."""
    return deref(entry.kernel).primitive_runs() if entry.kernel.get() != NULL else 0


cdef list _threads(Entry entry):
    """For inputs of less than so many bytes in which threads tasks run, and what that takes."""
    cdef FoundThreads found
    if entry.kernel.get() == NULL or deref(entry.kernel).choice() == NULL:
        return []
    return [
        {
            "bytes": found.bytes,
            "threads": THREADS[<int>found.threads],
            "caller_ns": found.caller_ns,
            "pool_ns": found.pool_ns,
        }
        for found in deref(entry.kernel).choice().Describe()
    ]


def cache_info():
    """The number of cached entries by op name, and the bound for each op."""
    cdef Op op
    return {op.op_name: len(op.table) for op in loaded if op.table}, cache_size


def direct_path_state():
    """Why no call can take the direct path at present, or None if it is open."""
    cdef PyObject* device = NULL
    cdef Runtime* here = runtime()
    cdef int reason
    if unknown_kernels:
        return f"{UnknownKernels().decode()} is set: TensorFlow then runs kernels in another way"
    reason = gate(&device)
    if reason == R_DIRECT:
        reason = R_ASYNC if Async(here[0]) else R_OBSERVED if Observed(here[0]) else R_DIRECT
    return None if reason == R_DIRECT else REASONS[reason][1]


def onednn_enabled():
    """Whether this TensorFlow replaces kernels by oneDNN's."""
    return OneDnnEnabled()
