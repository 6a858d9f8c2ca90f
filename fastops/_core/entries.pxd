from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libcpp.memory cimport shared_ptr, unique_ptr

from fastops._core.attributes cimport MISSING, same
from fastops._core.schema cimport Schema
from fastops._cpp.capi cimport CachedOp
from fastops._cpp.frame cimport Frame
from fastops._cpp.kernel cimport PreparedKernel
from fastops._cpp.placed cimport PlacedKernel, PlacedKernels
from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport NodeDef


cdef class Entry:
    """One key of one op, and how to run it. Immutable but for what is made on first use."""
    cdef bytes signature            # Frame.signature
    cdef tuple attrs                # explicit attributes, `MISSING` where not given
    cdef unsigned long long constants  # bit i: attrs[i] is equal whenever it is the same object
    cdef object device_name         # str
    cdef bint onednn
    cdef int reason                 # why `kernel` is empty
    cdef str detail                 # what TensorFlow said of it, or None
    cdef shared_ptr[PreparedKernel] kernel  # plans share it
    cdef unique_ptr[CachedOp] capi
    cdef unique_ptr[NodeDef] node   # empty when an attribute could not be encoded
    cdef bint dispatched            # whether TensorFlow's dispatch call takes such calls
    cdef int num_outputs
    cdef list lengths               # of each output argument; None where it is a single tensor
    cdef tuple gradient_attrs       # for the tape; made on first use


cdef class PlacedEntry(Entry):
    """An entry where the host has company: its `reason` may be R_DEVICE, and there is a kernel."""
    cdef unique_ptr[PlacedKernels] placed


# How a call on another device was run.
cdef class Placing:
    cdef Entry entry
    cdef shared_ptr[PlacedKernel] kernel


# Whether the process is at its end, where kernels are leaked: their devices may be gone.
cdef bint finalizing
# Entries that an op may keep.
cdef int cache_size

# Makes the entry for a call: see the definition. `direct`, `handles` and `thorough` are the op's.
cdef Entry make_entry(Schema op, bint direct, bint handles, bint thorough, PyObject** slots,
                      PyObject* device_name, Frame* frame, const Runtime& runtime, bint onednn,
                      bint untried)
# Of an entry's kernels the one on the device where inputs are; None where TensorFlow's runtime has
# the call.
cdef Placing placing_of(Entry entry, Frame* frame, const Runtime& runtime)
cdef Placing placing(Entry entry, PlacedKernel* kernel)
# Whether one of the entries is direct, and differs from a call in the lengths of lists alone.
cdef bint is_known_but_for_lengths(Schema op, list entries, PyObject** slots,
                                   PyObject* device_name, Frame* frame, bint onednn) except -1
# In what a call's key differs from the nearest of the entries: see `Schema.changes`.
cdef tuple changes_of(Schema op, list entries, PyObject** slots, PyObject* device_name,
                      Frame* frame, bint onednn)


cdef inline bint same_attrs(Schema op, Entry entry, PyObject** slots,
                            unsigned long long unasked) except -1:
    """Whether a call has the attributes of an entry; bit i: it may have another attribute i."""
    cdef int i
    cdef PyObject* given
    cdef PyObject* stored
    for i in range(op.num_attrs):
        if (unasked >> i) & 1:
            continue
        given = slots[op.attr_slots[i]]
        stored = PyTuple_GET_ITEM(entry.attrs, i)
        if given == stored and (entry.constants >> i) & 1:
            continue
        if given == NULL:
            given = <PyObject*>MISSING
        if given == stored and given == <PyObject*>MISSING:
            continue
        if given == <PyObject*>MISSING or stored == <PyObject*>MISSING:
            return False
        if not same(<object>stored, <object>given):
            return False
    return True
