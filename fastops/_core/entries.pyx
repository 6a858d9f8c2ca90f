# distutils: language = c++
"""The entries of an op. An entry holds everything that is prepared for the calls of one key.

A call that finds its entry runs none of this code.
"""

import atexit

cimport cython
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libcpp.memory cimport shared_ptr

from fastops._core.attributes cimport MISSING, is_constant, snapshot, to_bytes
from fastops._core.reasons cimport (
    R_ATTR_VALUE, R_DEVICE, R_DIRECT, R_DTYPE, R_KERNEL, R_OP,
)
from fastops._cpp.handle cimport HandleDtype
from fastops._cpp.kernel cimport Accepts
from fastops._cpp.opdef cimport (
    DataTypeVector, HasLengths, IsHandleType, MayBeLength, OutputLength, OutputTypes,
    kHeterogeneous, kSingle,
)
from fastops._cpp.runtime cimport IsCustom, OneDnnEnabled, PlacedOnHost
from fastops._cpp.text cimport Message
from fastops._tf.status cimport Status

cdef extern from "definitions.h":
    pass

cdef bint finalizing = False
cdef int cache_size = 256


def _at_exit():
    global finalizing
    finalizing = True


atexit.register(_at_exit)


def bound(size):
    """Sets how many entries an op may keep. Surplus entries stay until the next one is made."""
    global cache_size
    if type(size) is not int:
        raise TypeError(f"a cache size is an int, not {type(size).__name__}")
    if size < 1:
        raise ValueError(f"the cache of an op must hold at least 1 entry, not {size}")
    cache_size = size


@cython.no_gc_clear
cdef class Entry:
    def __dealloc__(self):
        if finalizing:
            new shared_ptr[PreparedKernel](self.kernel)
            self.capi.release()


@cython.final
@cython.no_gc_clear
cdef class PlacedEntry(Entry):
    def __dealloc__(self):
        if finalizing:
            self.placed.release()


@cython.final
cdef class Placing:
    def __dealloc__(self):
        if finalizing:
            new shared_ptr[PlacedKernel](self.kernel)


cdef Entry make_entry(Schema op, PyObject** slots, PyObject* device_name, Frame* frame,
                      const Runtime& runtime, bint onednn, bint untried):
    """Makes the entry for a call that TensorFlow has just run with success.

    If `untried`, TensorFlow has not run the call. Returns None then unless the call may be direct
    and TensorFlow is known to accept it.
    """
    cdef Entry entry
    cdef int i
    cdef PyObject* given
    cdef Status status
    cdef DataTypeVector outputs
    cdef size_t j
    if runtime.only_host:
        entry = Entry.__new__(Entry)
    else:
        entry = PlacedEntry.__new__(PlacedEntry)
    entry.signature = frame.signature[:frame.signature_size]
    attrs = []
    for i in range(op.num_attrs):
        given = slots[op.attr_slots[i]]
        value = MISSING if given == NULL else snapshot(<object>given)
        attrs.append(value)
        if given != NULL and is_constant(value):
            entry.constants |= (<unsigned long long>1) << i
    entry.attrs = tuple(attrs)
    entry.device_name = <object>device_name
    entry.onednn = onednn
    entry.node.reset(new NodeDef())
    device = to_bytes(entry.device_name)
    if IsCustom(runtime, device):
        entry.node.reset()
        entry.reason = R_DEVICE
    elif op.encode(slots, frame, entry.node.get()) and _count_outputs(entry, op, &outputs):
        if untried and not Accepts(deref(entry.node), frame.tensors, frame.size):
            return None
        entry.dispatched = not op.facts.stateful or op.attrs_are_taken(slots)
        entry.lengths = [
            None if length < 0 else length
            for length in [
                OutputLength(deref(entry.node), op.facts, i)
                for i in range(op.facts.definition.output_arg_size())
            ]
        ]
        entry.reason = R_OP
        if op.direct and not op.is_bound(slots):
            entry.reason = R_DTYPE
            for j in range(outputs.size()):
                if IsHandleType(outputs[j]) and not op.makes:
                    break
            else:
                if op.handles or not _has_handles(frame):
                    on_host = PlacedOnHost(runtime, deref(entry.node), device)
                    entry.reason = R_KERNEL if on_host else R_DEVICE
        if entry.reason == R_KERNEL:
            entry.kernel = PreparedKernel.Make(
                runtime, deref(entry.node), entry.num_outputs, onednn and OneDnnEnabled(),
                op.thorough, &status,
            )
            if entry.kernel.get() != NULL:
                entry.reason = R_DIRECT
            else:
                entry.detail = Message(status).decode("utf-8", "replace")
        elif entry.reason == R_DEVICE and not untried and (op.handles or not op.facts.stateful):
            _place(entry, device, frame, runtime)
    else:
        entry.node.reset()
        entry.reason = R_ATTR_VALUE
    if untried and entry.reason != R_DIRECT:
        return None
    return entry


cdef bint _count_outputs(Entry entry, Schema op, DataTypeVector* outputs) noexcept:
    entry.num_outputs = OutputTypes(deref(entry.node), op.facts, outputs)
    return entry.num_outputs >= 0


cdef int _place(Entry entry, bytes device, Frame* frame, const Runtime& runtime) except -1:
    """Makes the kernel for a call on a device other than the host, if the device is supported."""
    if type(entry) is PlacedEntry:
        (<PlacedEntry>entry).placed = PlacedKernels.Make(
            runtime, deref(entry.node), entry.num_outputs, device, frame.handles, frame.size
        )
    return 0


cdef bint _has_handles(Frame* frame) noexcept:
    cdef int i
    for i in range(frame.size):
        if IsHandleType(HandleDtype(frame.handles[i])):
            return True
    return False


cdef Placing placing_of(Entry entry, Frame* frame, const Runtime& runtime):
    """Returns the kernel on the device of these inputs; None if TensorFlow must run the call."""
    cdef PlacedKernel* kernel
    if type(entry) is not PlacedEntry or (<PlacedEntry>entry).placed.get() == NULL:
        return None
    kernel = deref((<PlacedEntry>entry).placed).For(runtime, frame.handles, frame.size)
    return None if kernel == NULL else placing(entry, kernel)


cdef Placing placing(Entry entry, PlacedKernel* kernel):
    cdef Placing made = Placing.__new__(Placing)
    made.entry, made.kernel = entry, kernel.shared_from_this()
    return made


cdef bint is_known_but_for_lengths(Schema op, list entries, PyObject** slots,
                                   PyObject* device_name, Frame* frame, bint onednn) except -1:
    """Whether an entry is direct and its key differs from the call's in list lengths alone.

    TensorFlow takes milliseconds to make a kernel for a new length. Some programs have many
    lengths, for example those that stack the steps of an episode.
    """
    cdef Entry entry
    cdef int i, lists = 0
    cdef unsigned long long lengths = 0  # bit i: attribute i is the length of a list
    if not HasLengths(op.facts):
        return False
    for i in range(op.num_inputs):
        if op.facts.inputs[i].kind == kHeterogeneous:
            return False
        if op.facts.inputs[i].kind != kSingle:
            if not MayBeLength(op.facts, op.facts.inputs[i].number_attr, frame.list_lengths[lists]):
                return False
            lists += 1
    for i in range(op.num_attrs):
        given = slots[op.attr_slots[i]]
        if (
            given != NULL
            and type(<object>given) is int
            and 0 < <object>given <= 0xFFFF
            and MayBeLength(op.facts, <bytes>op.attr_names[i].encode(), <int><object>given)
        ):
            lengths |= (<unsigned long long>1) << i
    for entry in reversed(entries):
        if (
            entry.reason == R_DIRECT
            and entry.onednn == onednn
            and entry.device_name == <object>device_name
            and frame.SameButForLengths(<char*>entry.signature, len(entry.signature))
            and same_attrs(op, entry, slots, lengths)
        ):
            return True
    return False


cdef tuple changes_of(Schema op, list entries, PyObject** slots, PyObject* device_name,
                      Frame* frame, bint onednn):
    """Returns the differences between a call's key and the most similar entry's.

    See `Schema.changes`.
    """
    cdef Entry entry
    known = [
        (entry.signature, entry.attrs, entry.device_name, entry.onednn)
        for entry in reversed(entries)
    ]
    signature = frame.signature[:frame.signature_size]
    wanted = (signature, op.attrs_of_call(slots), <object>device_name, onednn)
    return op.changes(known, wanted)
