# distutils: language = c++
"""What is prepared for calls: the first call of a key prepares it, a new context drops it all.

A call that finds its entry runs none of this code.
"""

import weakref

from cpython.exc cimport PyErr_Clear, PyErr_WriteUnraisable
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint64_t

from fastops._core.base cimport drop_entries
from fastops._core.conversion cimport forget
from fastops._core.entries cimport (
    cache_size, changes_of, finalizing, is_known_but_for_lengths, make_entry,
)
from fastops._core.observer cimport Observer
from fastops._cpp.options cimport kCapi
from fastops._cpp.runtime cimport Async, Devices, Observed, StoresGraphs
from fastops._tf.eager cimport GetPyEagerContext

cdef extern from "definitions.h":
    pass

generation = 0
flushes = 0
cdef Runtime* _captured = NULL  # what `capture` has filled last
cdef object _watch = None       # weak reference to the Python context
cdef Devices _devices = Devices.kPlugins
cdef bint _at_once = False      # whether the first call of any key may be direct


# ---------------------------------------------------------------------------------------------
# TensorFlow's context
# ---------------------------------------------------------------------------------------------

cpdef int flush() except -1:
    """Drops every prepared kernel and cached operation. Later calls prepare them again."""
    global flushes
    flushes += 1
    drop_entries()
    forget()
    return 0


def _context_died(_):
    if not finalizing:
        _captured.Clear()
        flush()


cdef bint capture(Runtime* runtime, PyObject* py_context) except -1:
    global _captured, _watch, generation
    _captured = runtime
    runtime.Clear()
    flush()
    generation += 1
    context = <object>py_context
    if context._context_handle is None or not runtime.Capture(py_context, _devices):
        runtime.Clear()
        return False
    _watch = weakref.ref(context, _context_died)
    return True


cdef bint is_current(const Runtime& runtime) noexcept:
    cdef PyObject* py_context = GetPyEagerContext()
    if py_context == NULL:
        PyErr_Clear()
        return False
    Py_DECREF(<object>py_context)  # TensorFlow keeps it alive
    return runtime.Current(py_context)


def be_direct_on(kinds):
    """Sets which devices besides the host run direct calls: "none", "plugins" or "all"."""
    global _devices
    if kinds == "none":
        _devices = Devices.kNone
    elif kinds == "plugins":
        _devices = Devices.kPlugins
    else:
        _devices = Devices.kAll
    if _captured != NULL:
        _captured.Clear()  # the next call captures it again and rebuilds kernels and plans


# ---------------------------------------------------------------------------------------------
# The first call of a key
# ---------------------------------------------------------------------------------------------

cdef int run_at_once(bint value) except -1:
    global _at_once
    _at_once = value
    return 0


cdef Entry add_entry(BaseOp op, uint64_t key, PyObject** slots, PyObject* device_name,
                     Frame* frame, const Runtime& runtime, bint onednn, bint untried):
    cdef Entry entry = make_entry(op, slots, device_name, frame, runtime, onednn, untried)
    if entry is None:
        return None
    while len(op.table) >= cache_size:
        op.table.pop(next(iter(op.table)), None)
    op.table[key] = entry
    op.last = entry
    return entry


cdef list _entries(BaseOp op):
    """Returns the entries of an op, the most recently used one last."""
    cdef dict table = op.table  # garbage collection may run `flush`, which replaces op.table
    return list(table.values())


cdef Entry entry_at_once(BaseOp op, uint64_t key, PyObject** slots, PyObject* device_name,
                         Frame* frame, const Runtime& runtime, Options* options, bint ready,
                         bint stands_in, PyObject* observer):
    """Makes the entry before the first call of its key, if that call may be direct.

    `ready`: kernels may take the inputs. `stands_in`: the call is for a stand-in of `install`.

    TensorFlow takes one to three milliseconds to make the first kernel of a key. It wraps the op in
    a function, and runs all graph passes on that function.
    """
    cdef bint onednn = options.onednn
    cdef bint recorded = False
    if observer != NULL:
        recorded = (<Observer>observer).records
        if (<Observer>observer).measures:
            changes = changes_of(op, _entries(op), slots, device_name, frame, onednn)
            (<Observer>observer).is_new(changes)
    # Stateful ops run in TensorFlow first, because a failed call could not be retried. Ops that
    # only create a resource are safe: a failed call has created nothing.
    if (
        ready and op.direct and options.path != kCapi
        and (not op.facts.stateful or op.makes and not recorded and not op.is_bound(slots))
        and not Async(runtime) and not Observed(runtime) and not StoresGraphs(runtime)
        and (_at_once or stands_in
             or is_known_but_for_lengths(op, _entries(op), slots, device_name, frame, onednn))
    ):
        try:
            return add_entry(op, key, slots, device_name, frame, runtime, onednn, True)
        except Exception:  # internal error: report it, and let TensorFlow run the call
            PyErr_WriteUnraisable(op)
    return None
