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
    """One key of one op, and how to run it. Immutable except for fields made on first use."""
    cdef bytes signature            # Frame.signature
    cdef tuple attrs                # explicit attributes; `MISSING` if not given
    cdef unsigned long long constants  # bit i: the value of the object attrs[i] never changes
    cdef object device_name         # str
    cdef bint onednn
    cdef int reason                 # why `kernel` is empty; R_DIRECT if it is not
    cdef str detail                 # TensorFlow's message about the reason, or None
    cdef shared_ptr[PreparedKernel] kernel  # plans share it
    cdef unique_ptr[CachedOp] capi
    cdef unique_ptr[NodeDef] node   # empty when an attribute could not be encoded
    cdef bint dispatched            # whether TensorFlow's dispatch call accepts the attributes
    cdef int num_outputs
    cdef list lengths               # by output argument: the list's length, None for one tensor
    cdef tuple gradient_attrs       # for the tape; made on first use


cdef class PlacedEntry(Entry):
    """An entry in a process with other devices. If `reason` is R_DEVICE, `placed` may be set."""
    cdef unique_ptr[PlacedKernels] placed


# The kernel that ran a call on a device other than the host.
cdef class Placing:
    cdef Entry entry
    cdef shared_ptr[PlacedKernel] kernel


# Whether the process is ending. Kernels are leaked then, because their devices may be gone.
cdef bint finalizing
# How many entries an op may keep.
cdef int cache_size

# Makes the entry for a call: see the definition.
cdef Entry make_entry(Schema op, PyObject** slots, PyObject* device_name, Frame* frame,
                      const Runtime& runtime, bint onednn, bint untried)
# Returns an entry's kernel on the device of the inputs; None if TensorFlow must run the call.
cdef Placing placing_of(Entry entry, Frame* frame, const Runtime& runtime)
cdef Placing placing(Entry entry, PlacedKernel* kernel)
# Whether an entry is direct and its key differs from the call's in list lengths alone.
cdef bint is_known_but_for_lengths(Schema op, list entries, PyObject** slots,
                                   PyObject* device_name, Frame* frame, bint onednn) except -1
# Returns the differences between a call's key and the most similar entry's: see `Schema.changes`.
cdef tuple changes_of(Schema op, list entries, PyObject** slots, PyObject* device_name,
                      Frame* frame, bint onednn)


cdef inline bint same_attrs(Schema op, Entry entry, PyObject** slots,
                            unsigned long long unasked) except -1:
    """Whether a call has the attributes of an entry. Bit i of `unasked`: ignore attribute i."""
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
