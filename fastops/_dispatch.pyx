# distutils: language = c++
"""The path of a call: one op, one call, from keyword arguments to EagerTensors.

A call takes these steps, and the functions stand in this order:

1. `_call` puts the arguments into the slots of the op's parameters (`Op.bind`). The stand-ins of
   `install` know the slots, and start at step 2.
2. `run_op` makes the call. If an observer measures it, `_run_measured` does so around the rest.
3. `gate`: may this thread run kernels now? There must be a context, no graph, no op callbacks.
4. `collect` flattens the inputs into a frame of tensors. If an input is no tensor, `_convert` reads
   variables and converts Python's values. If all are tensors and variables, `_collect_unwrapped`
   reads the variables without making Python objects.
5. The entry of the call's key: the last one (`_matches`), or that in the op's table (`_find`). The
   first call of a key makes it (`_first_call`).
6. The call runs on one of three paths: the first one of whose conditions all are met.

   direct
       the op's kernel, prepared once per key and run on the inputs' tensors: `_direct`; on a device
       other than the host `_placed`;
   capi
       a cached TFE_Op, executed by TensorFlow's runtime: `_capi`;
   tensorflow
       TensorFlow's own generated function, with the arguments untouched: `_tensorflow`.
7. `_finish` gives the results the structure of TensorFlow's function, and records them on tapes.

A condition that is not met ends a step early: the call takes a later path, and is counted under the
name that `REASONS` has for that condition. The path is decided before any side effect.
docs/design.md has the whole story.

Most of what few calls need is elsewhere: `_core/base.pyx` loads ops and has what Python sees of
them; `_core/preparing.pyx` makes entries and drops them; `_core/telling.pyx` tells observers.

The GIL is held everywhere in this file except inside PreparedKernel.Run and CachedOp.Run.
"""

cimport cython
from cpython.exc cimport PyErr_Clear, PyErr_WriteUnraisable
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport (
    PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE,
)
from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from libcpp.utility cimport move

from fastops._core cimport conversion, draws
from fastops._core.attributes cimport hash_of, is_comparable, mix
from fastops._core.base cimport BaseOp
from fastops._core.conversion cimport (
    convert_items, is_chosen, is_convertible, is_list, is_shape, may_convert, sizes_or_itself,
    to_tensor_or_pack,
)
from fastops._core.entries cimport Entry, PlacedEntry, same_attrs
from fastops._core.holders cimport held, is_holder
from fastops._core.observer cimport Observer, is_measured, measurer_of, recorder_of
from fastops._core.preparing cimport add_entry, capture, entry_at_once, is_current
from fastops._core.reasons cimport (
    P_CAPI, P_TENSORFLOW, R_ARGUMENTS, R_ASYNC, R_ATTR_VALUE, R_CALLBACKS, R_CONTEXT, R_CONVERSION,
    R_CONVERT, R_DEVICE, R_DIRECT, R_FIRST_CALL, R_GRAPH, R_INPUT_DEVICE, R_INPUT_STATE,
    R_INPUT_TYPE, R_KERNEL_ERROR, R_OBSERVED, R_OP, R_OPTIONS, R_REMOTE, is_expected,
)
from fastops._core.schema cimport FASTOPS_MAX_PARAMS
from fastops._core.tapes cimport record_op
from fastops._core.telling cimport (
    may_record, raise_status, read_observed, run_observed, run_placed_observed, tell_fallback,
)
from fastops._core.threads cimport this_thread
from fastops._cpp.capi cimport CachedOp
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.frame cimport FRAME_INPUTS, FRAME_UNWRAPPED, Frame
from fastops._cpp.handle cimport (
    HandleDtype, InputState, kForeign, kOtherDevice, kReady,
)
from fastops._cpp.kernel cimport Manner
from fastops._cpp.opdef cimport (
    InputArg, kHeterogeneous, kSingle, kTensor,
)
from fastops._cpp.options cimport (
    OnFallback, Options, Thread, Threads, kAuto, kCapi, kDirect, kIgnore, kTensorflow,
)
from fastops._cpp.placed cimport PlacedKernel
from fastops._cpp.python cimport (
    Py_None,
    PyObject_Vectorcall,
    PyUnicode_AsUTF8,
    PyVectorcall_Call,
    PyVectorcall_NARGS,
)
from fastops._cpp.runtime cimport Async, Observed, Remote, Runtime, StoresGraphs
from fastops._cpp.vectorcall cimport EnableVectorcall
from fastops._tf.eager cimport (
    EagerContextThreadLocalData, EagerTensor_Handle, GetEagerContextThreadLocalData,
    GetPyEagerContext, TFE_Py_TapeVariableAccessed,
    TFE_Py_VariableWatcherVariableAccessed, recording,
)
from fastops._tf.protos cimport DT_INVALID, DataType
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._core import fallback as _fallback

cdef object _NO_DEVICE = ""
cdef tuple _READ_KEYWORDS = ("resource", "dtype")
cdef PyTypeObject* _variable_type = <PyTypeObject*>ResourceVariable

cdef Runtime _runtime           # the state that the cached kernels were built for
cdef Op _read_variable = None   # "ReadVariableOp"
cdef Op _pack = None            # "Pack"


# ---------------------------------------------------------------------------------------------
# The op
# ---------------------------------------------------------------------------------------------

@cython.final
cdef class Op(BaseOp):
    """One op of TensorFlow: a callable that takes its arguments by keyword.

    Only `named` creates instances.

    Parameters
    ----------
    op_name : str
        Its name in TensorFlow's registry. Everything else is looked up at the first use.
    """

    def __cinit__(self, str op_name not None):
        self.vectorcall = _call
        self.op_name = op_name

    def __dealloc__(self):
        cdef int i
        for i in range(FASTOPS_CALL_SHAPES):
            Py_XDECREF(self.shapes[i].keywords)

    @property
    def __doc__(self):  # of a base class, it would be hidden by the docstring above
        return self.record.doc()

    def __call__(self, *args, **kwargs):
        # For code that reads the attribute `__call__`. An ordinary call goes to `_call`.
        return PyVectorcall_Call(self, args, kwargs)

    cdef int bind(self, PyObject* const* args, PyObject* keywords, PyObject** slots) except -1:
        """Puts the arguments of a call into their slots.

        Returns False for an unknown keyword, and for an op that is not loaded.
        """
        cdef Py_ssize_t i, n
        cdef const unsigned char* order
        memset(slots, 0, self.num_params * sizeof(PyObject*))
        if keywords == NULL:
            return self.ready
        order = self.call_shape(keywords)
        if order == NULL:
            return False
        n = PyTuple_GET_SIZE(<object>keywords)
        for i in range(n):
            slots[order[i]] = args[i]
        return True

    cdef const unsigned char* call_shape(self, PyObject* keywords) except? NULL:
        """Returns the slots for arguments with these keywords; null if `bind` returns False."""
        cdef int i, j
        cdef Py_ssize_t n, k
        cdef PyObject* known
        for i in range(FASTOPS_CALL_SHAPES):  # a call site passes the same tuple each time
            if self.shapes[i].keywords == keywords:
                return self.shapes[i].slots
        n = PyTuple_GET_SIZE(<object>keywords)
        for i in range(FASTOPS_CALL_SHAPES):  # f(**kwargs) makes a new tuple of equal names
            known = self.shapes[i].keywords
            if known == NULL or PyTuple_GET_SIZE(<object>known) != n:
                continue
            for k in range(n):
                if PyTuple_GET_ITEM(<object>known, k) != PyTuple_GET_ITEM(<object>keywords, k):
                    break
            else:
                return self.shapes[i].slots
        if n > self.num_params or not self.ready:
            return NULL
        cdef unsigned char slots[FASTOPS_MAX_PARAMS]
        for k in range(n):
            keyword = <object>PyTuple_GET_ITEM(<object>keywords, k)
            for j in range(self.num_params):
                if keyword == self.keywords[j]:
                    slots[k] = j
                    break
            else:
                return NULL
        i = self.next_shape
        self.next_shape = (i + 1) % FASTOPS_CALL_SHAPES
        Py_INCREF(<object>keywords)
        Py_XDECREF(self.shapes[i].keywords)
        self.shapes[i].keywords = keywords
        memcpy(self.shapes[i].slots, slots, n)
        return self.shapes[i].slots

    cdef int prepare(self, PyObject** slots) except -1:
        """Prepares the kernel for a call that TensorFlow has already run, as `_first_call` does."""
        cdef PyObject* device_name = NULL
        cdef Frame frame
        cdef bint onednn = this_thread().options.onednn
        cdef uint64_t key
        cdef int reason
        if gate(&device_name) != R_DIRECT:
            return 0
        reason = collect(self, slots, &frame)
        if reason != R_DIRECT and reason != R_INPUT_STATE and reason != R_INPUT_DEVICE:
            return 0
        key = _key_of(self, slots, device_name, &frame, onednn)
        if key != 0 and _find(self, key, slots, device_name, &frame, onednn) is None:
            add_entry(self, key, slots, device_name, &frame, _runtime, onednn, False)
        return 0


known = {}
"""The Op objects that `named` has made, by name."""


def named(str op_name):
    """Returns the Op object for a name, always the same one. Does not check that the op exists."""
    op = known.get(op_name)
    if op is None:
        # `setdefault` is atomic: two threads that make the same op get the same object.
        op = known.setdefault(op_name, Op(op_name))
    return op


# ---------------------------------------------------------------------------------------------
# The call
# ---------------------------------------------------------------------------------------------

cdef PyObject* _call(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef Op op = <Op>callable
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef Invocation call
    begin(&call, NULL, args, nargsf, keywords)
    # Which argument is which?
    if PyVectorcall_NARGS(nargsf) != 0 or not op.bind(args, keywords, slots):
        if not op.ready:
            op.load()
            return _call(callable, args, nargsf, keywords)
        return _tensorflow(op, &call, R_ARGUMENTS, NULL, None)
    return run_op(op, slots, &call)


cdef PyObject* run_op(Op op, PyObject** slots, Invocation* call) except NULL:
    cdef PyObject* device_name = NULL
    cdef Frame frame
    cdef Thread* thread = this_thread()
    cdef Options* options = &thread.options
    cdef Entry entry
    cdef uint64_t key
    cdef int reason

    # Before anything else: is the call nested in another call, or does an observer measure it?
    if <size_t>thread.underway | <size_t>thread.observer and _measures(op, call, thread):
        return _run_measured(op, slots, call, thread)

    # First: may this thread run kernels now?
    reason = gate(&device_name)
    if reason != R_DIRECT:
        if reason != R_CALLBACKS or thread.observer == NULL or not may_record(
            &call.observer, call.raises_status, thread, _runtime
        ):
            return _tensorflow(op, call, reason, slots, None)
        options = &(<Observer>call.observer).options
    if options.path == kTensorflow:
        return _tensorflow(op, call, R_OPTIONS, slots, None)

    # Next: the inputs as tensors.
    reason = collect(op, slots, &frame)
    if reason == R_CONVERT and options.path == kAuto:
        reason = _collect_unwrapped(op, slots, device_name, &frame, thread)
    if reason == R_CONVERT:
        reason = _convert(op, slots, device_name, &frame)
    if reason != R_DIRECT and reason != R_INPUT_STATE and reason != R_INPUT_DEVICE:
        return _tensorflow(op, call, reason, slots, None)

    # Then: the entry for these dtypes, attributes and device. Usually it is the one used last.
    entry = op.last
    if entry is None or not _matches(op, entry, slots, device_name, &frame, options.onednn):
        if op.seeded and draws.live and op.is_bound(slots):
            return _drawn(op, slots, device_name, &frame, options, reason == R_DIRECT, call)
        key = _key_of(op, slots, device_name, &frame, options.onednn)
        if key == 0:
            return _tensorflow(op, call, R_ATTR_VALUE, slots, None)
        entry = _find(op, key, slots, device_name, &frame, options.onednn)
        if (
            entry is None and draws.reads_no_seeds(op) and not _is_recorded(call)
            and draws.leave_out_seeds(op, slots)
        ):
            key = _key_of(op, slots, device_name, &frame, options.onednn)
            entry = _find(op, key, slots, device_name, &frame, options.onednn)
        if entry is None:
            if frame.num_unwrapped:
                reason = _convert(op, slots, device_name, &frame)
                if reason != R_DIRECT:
                    return _tensorflow(op, call, reason, slots, None)
            return _first_call(
                op, key, slots, device_name, &frame, options, reason == R_DIRECT, call
            )
    if reason == R_DIRECT:
        reason = entry.reason
        if reason == R_DIRECT:
            if Async(_runtime):
                reason = R_ASYNC
            elif Observed(_runtime):
                reason = R_OBSERVED
            elif options.path == kCapi:
                reason = R_OPTIONS

    # Finally: run.
    if reason == R_DIRECT:
        return _direct(op, entry, &frame, slots, options.threads, R_KERNEL_ERROR, call)
    cdef PyObject* result = NULL
    if reason == R_OP and op.seeded and draws.live and op.is_bound(slots):
        return _drawn(op, slots, device_name, &frame, options, True, call)
    if (
        type(entry) is PlacedEntry and options.path != kCapi
        and (reason == R_DEVICE or reason == R_INPUT_DEVICE)
        and _placed(op, entry, &frame, slots, call, &result)
    ):
        return result
    if entry.node.get() == NULL or options.path == kDirect or (
        frame.num_unwrapped and _convert(op, slots, device_name, &frame) != R_DIRECT
    ):
        return _tensorflow(op, call, reason, slots, entry)
    return _capi(op, entry, &frame, slots, device_name, reason, call)


cdef PyObject* run_elsewhere(Op op, Invocation* call) except NULL:
    """Passes a call of an op excluded from the direct path on. Only a profile counts the call."""
    cdef Thread* thread = this_thread()
    cdef Observer observer
    call.counts = 0
    if _is_underway(op, thread):
        thread.underway = NULL
    elif is_measured(thread):
        observer = <Observer>measurer_of(thread)
        call.observer = <PyObject*>observer
        observer.begin(thread)
        try:
            return _tensorflow(op, call, R_OP, NULL, None)
        finally:
            observer.end(op.op_name, thread)
    return PyObject_Vectorcall(call.target, call.args, call.nargsf, call.keywords)


cdef PyObject* _drawn(Op op, PyObject** slots, PyObject* device_name, Frame* frame,
                      Options* options, bint ready, Invocation* call) except NULL:
    """Runs a call that draws random numbers by seeds, under `install`."""
    cdef PyObject* results[INLINE_RESULTS]
    cdef Entry entry = None
    if frame.num_unwrapped:  # `draw` looks at the tensors as objects
        ready = _convert(op, slots, device_name, frame) == R_DIRECT
    if (
        ready and op.direct and options.path != kCapi
        and (call.observer == NULL or not (<Observer>call.observer).records)
        and _runtime.only_host and not _runtime.deterministic
        and not Async(_runtime) and not Observed(_runtime) and not StoresGraphs(_runtime)
    ):
        entry = draws.draw(op, slots, device_name, frame, _runtime, results, call.observer)
    if entry is None:
        return _tensorflow(op, call, R_OP, slots, None)
    op.calls_direct += call.counts
    # The entry has the seeds of the kernel that draws, not those of the call.
    attrs = draws.attrs_for_record(op, slots, frame) if recording() else None
    return _finish(op, entry, frame, results, attrs)


# ---------------------------------------------------------------------------------------------
# May this thread run kernels now?
# ---------------------------------------------------------------------------------------------

cdef int gate(PyObject** device_name) except -1:
    """Returns R_DIRECT if this thread may run kernels now, otherwise the reason why not.

    The device name is borrowed from the thread's state. It is set for R_DIRECT and R_CALLBACKS.
    """
    cdef PyObject* py_context = GetPyEagerContext()
    if py_context == NULL:
        PyErr_Clear()
        return R_CONTEXT
    Py_DECREF(<object>py_context)  # TensorFlow keeps it alive
    cdef EagerContextThreadLocalData* local = GetEagerContextThreadLocalData(py_context)
    if local == NULL:
        PyErr_Clear()
        return R_CONTEXT
    if not local.is_eager:
        return R_GRAPH
    if not _runtime.Current(py_context) and not capture(&_runtime, py_context):
        return R_CONTEXT
    if Remote(_runtime):
        return R_REMOTE
    device_name[0] = local.device_name.get()
    if device_name[0] == Py_None:
        device_name[0] = <PyObject*>_NO_DEVICE
    cdef PyObject* callbacks = local.op_callbacks.get()
    if callbacks != Py_None and PyList_GET_SIZE(<object>callbacks) != 0:
        return R_CALLBACKS
    return R_DIRECT


# ---------------------------------------------------------------------------------------------
# Inputs as tensors
# ---------------------------------------------------------------------------------------------

cdef int collect(Op op, PyObject** slots, Frame* frame) except -1:
    """Flattens the inputs into the frame. Returns R_DIRECT if a kernel may take them.

    Otherwise returns the reason why not. R_CONVERT means that `_convert` has to be tried. Apart
    from R_DIRECT, only R_INPUT_STATE and R_INPUT_DEVICE leave a complete frame.
    """
    cdef int i
    cdef int reason = R_DIRECT
    cdef Py_ssize_t j, n
    cdef PyObject* value
    cdef PyObject* item
    cdef InputState state
    if op.facts.num_lists or op.num_inputs > FRAME_INPUTS:
        frame.Reset(_count_inputs(op, slots), op.facts.num_lists)
    for i in range(op.num_inputs):
        value = slots[op.input_slots[i]]
        if value == NULL:
            return R_ARGUMENTS
        if op.facts.inputs[i].kind == kSingle:
            if not IsEagerTensor(value):
                return R_CONVERT
            state = frame.Add(value, _runtime.host)
            if state != kReady:
                if state == kForeign:
                    return R_INPUT_TYPE
                reason = R_INPUT_DEVICE if state == kOtherDevice else R_INPUT_STATE
            continue
        if PyList_CheckExact(<object>value):
            n = PyList_GET_SIZE(<object>value)
        elif PyTuple_CheckExact(<object>value):
            n = PyTuple_GET_SIZE(<object>value)
        else:
            return R_INPUT_TYPE
        if n > 0xFFFF or n == 0 and not op.facts.inputs[i].type_attr.empty():
            return R_INPUT_TYPE  # TensorFlow has its own rule for the type of an empty list
        frame.BeginList(n)
        for j in range(n):
            if PyList_CheckExact(<object>value):
                item = PyList_GET_ITEM(<object>value, j)
            else:
                item = PyTuple_GET_ITEM(<object>value, j)
            if not IsEagerTensor(item):
                return R_CONVERT
            Py_INCREF(<object>item)  # another thread may change the list
            frame.Own(item)
            state = frame.Add(item, _runtime.host)
            if state != kReady:
                if state == kForeign:
                    return R_INPUT_TYPE
                reason = R_INPUT_DEVICE if state == kOtherDevice else R_INPUT_STATE
    return reason


cdef int _count_inputs(Op op, PyObject** slots) noexcept:
    """Returns an upper bound of the number of flat inputs."""
    cdef int i
    cdef Py_ssize_t count = op.num_inputs
    cdef PyObject* value
    for i in range(op.num_inputs):
        value = slots[op.input_slots[i]]
        if value == NULL or op.facts.inputs[i].kind == kSingle:
            continue
        if PyList_CheckExact(<object>value):
            count += PyList_GET_SIZE(<object>value)
        elif PyTuple_CheckExact(<object>value):
            count += PyTuple_GET_SIZE(<object>value)
    return <int>min(count, 0x7FFFFFFF)


cdef int _collect_unwrapped(Op op, PyObject** slots, PyObject* device_name, Frame* frame,
                            Thread* thread) except -1:
    """`collect` for tensors and variables while no tape records.

    Variables are read into tensors without Python objects, which takes half the time. Returns
    R_CONVERT if that is impossible; `_convert` then makes the objects.
    """
    cdef int i
    cdef PyObject* value
    if Async(_runtime) or Observed(_runtime):
        return R_CONVERT
    frame.Reset(op.num_inputs, 0)
    for i in range(op.num_inputs):
        value = slots[op.input_slots[i]]
        if value == NULL or op.facts.inputs[i].kind != kSingle:
            return R_CONVERT
        if IsEagerTensor(value):
            if frame.Add(value, _runtime.host) != kReady:
                return R_CONVERT
        elif (
            Py_TYPE(<object>value) != _variable_type
            or not is_convertible(value, &op.facts.inputs[i])
            or not _read_unwrapped(<object>value, device_name, frame, thread)
        ):
            return R_CONVERT
    return R_DIRECT


cdef int _convert(Op op, PyObject** slots, PyObject* device_name, Frame* frame) except -1:
    """`collect` for calls with inputs that are not tensors.

    Reads variables and converts arrays and Python numbers as TensorFlow's fast path does. A number
    gets the dtype of the first tensor that shares its type attribute, at any position. Without such
    a tensor it gets the attribute's default. Lists, strings, NumPy scalars and objects that hold a
    variable are converted if `may_convert` allows it. Lists that contain tensors are packed. All
    other inputs are left to TensorFlow.
    """
    cdef int i, attr
    cdef bint slowly = False
    cdef InputArg* arg
    cdef PyObject* value
    cdef DataType hint
    cdef DataType dtypes[FASTOPS_MAX_PARAMS]
    cdef PyObject* converted[FASTOPS_MAX_PARAMS]
    cdef list kept = None
    for i in range(op.num_inputs):
        value = slots[op.input_slots[i]]
        if value == NULL:
            return R_ARGUMENTS
        if is_shape(value):
            kept = [sizes_or_itself(<object>value, &op.facts.inputs[i]), kept]
            value = <PyObject*>kept[0]
        elif is_holder(value):
            kept = [held(<object>value), kept]
            value = <PyObject*>kept[0]
            slowly = True
        dtypes[i] = DT_INVALID
        converted[i] = value
    # First: may all inputs be converted? This is decided before any variable is read.
    if not may_convert(op.facts, converted, &slowly) or slowly and not op.attrs_stay(slots):
        return R_INPUT_TYPE
    frame.Reset(op.num_inputs, 0)
    # Next: variables. Their dtypes also are hints for numbers.
    for i in range(op.num_inputs):
        arg = &op.facts.inputs[i]
        value = converted[i]
        if arg.kind == kSingle:
            if Py_TYPE(<object>value) == _variable_type:
                tensor = _read(<object>value)
                if not IsEagerTensor(<PyObject*>tensor):
                    return R_CONVERSION
                Py_INCREF(tensor)
                frame.Own(<PyObject*>tensor)
                converted[i] = value = <PyObject*>tensor
        else:
            items = []
            for item in <object>value:
                if type(item) is ResourceVariable:
                    item = _read(item)
                    if item is None:
                        return R_CONVERSION
                items.append(item)
            Py_INCREF(items)
            frame.Own(<PyObject*>items)
            converted[i] = <PyObject*>items
            for item in items:  # `collect` checks whether an empty list is allowed
                value = <PyObject*>item
                if IsEagerTensor(value):
                    break
        attr = arg.attr
        if attr >= 0 and dtypes[attr] == DT_INVALID and IsEagerTensor(value):
            dtypes[attr] = HandleDtype(EagerTensor_Handle(value))
    # Finally: arrays and numbers.
    for i in range(op.num_inputs):
        arg = &op.facts.inputs[i]
        value = converted[i]
        if IsEagerTensor(value):
            continue
        hint = arg.fixed
        if hint == DT_INVALID and arg.kind != kHeterogeneous:
            hint = dtypes[arg.attr]
        if arg.kind != kSingle:
            if not convert_items(
                _runtime, <list><object>value, hint, device_name, _pack_op()
            ):
                return R_INPUT_TYPE if slowly else R_CONVERSION
            continue
        # A list that is not empty determines its own dtype.
        if hint == DT_INVALID and (not is_list(value) or not <object>value):
            hint = arg.fallback
        try:
            value = to_tensor_or_pack(_runtime, value, hint, device_name, _pack_op())
        except Exception:  # TensorFlow will raise the proper error
            return R_INPUT_TYPE if slowly else R_CONVERSION
        frame.Own(value)
        converted[i] = value
        if arg.attr >= 0:
            dtypes[arg.attr] = HandleDtype(EagerTensor_Handle(value))
            if slowly and hint == DT_INVALID and not is_chosen(arg, dtypes[arg.attr]):
                return R_INPUT_TYPE
    cdef PyObject* converted_slots[FASTOPS_MAX_PARAMS]
    for i in range(op.num_inputs):
        converted_slots[op.input_slots[i]] = converted[i]
    i = collect(op, converted_slots, frame)
    return R_INPUT_TYPE if i == R_CONVERT else i


cdef Op _pack_op():
    global _pack
    if _pack is None:
        _pack = named("Pack")
    return _pack


# ---------------------------------------------------------------------------------------------
# Variables as inputs
# ---------------------------------------------------------------------------------------------

cdef Op _read_op():
    global _read_variable
    if _read_variable is None:
        _read_variable = named("ReadVariableOp")
    return _read_variable


cdef int tell_watchers(object variable) except -1:
    if variable._trainable is not False:
        TFE_Py_TapeVariableAccessed(<PyObject*>variable)
        TFE_Py_VariableWatcherVariableAccessed(<PyObject*>variable)
    return 0


cdef bint _read_unwrapped(object variable, PyObject* device_name, Frame* frame,
                          Thread* thread) except -1:
    """Reads a variable into the frame.

    Returns False if the kernel that reads it is not prepared or a tape records.
    """
    cdef Op op = _read_variable  # made by `_read`
    cdef Entry entry
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef Frame handle_frame
    cdef Tensor value
    cdef uint64_t key
    cdef bint onednn = thread.options.onednn
    cdef bint ran
    if op is None or frame.num_unwrapped == FRAME_UNWRAPPED:
        return False
    entry = op.last
    if entry is None or recording():
        return False
    handle = variable._handle
    dtype = variable._dtype
    if not IsEagerTensor(<PyObject*>handle):
        return False
    memset(slots, 0, op.num_params * sizeof(PyObject*))
    slots[op.input_slots[0]] = <PyObject*>handle
    slots[op.attr_slots[0]] = <PyObject*>dtype
    if handle_frame.Add(<PyObject*>handle, _runtime.host) != kReady:
        return False
    if not _matches(op, entry, slots, device_name, &handle_frame, onednn):
        key = _key_of(op, slots, device_name, &handle_frame, onednn)
        entry = None if key == 0 else _find(op, key, slots, device_name, &handle_frame, onednn)
    if entry is None or entry.reason != R_DIRECT:
        return False
    if thread.observer == NULL:
        ran = deref(entry.kernel).RunUnwrapped(handle_frame.tensors, &value, NULL)
    else:
        ran = read_observed(op, entry, &handle_frame, &value, thread)
    if not ran:
        return False
    tell_watchers(variable)
    op.calls_direct += 1
    frame.AddUnwrapped(move(value))
    return True


cdef object _read(object variable):
    """Reads a variable as TensorFlow's fast path does, and notifies tapes and watchers.

    Returns None if the variable cannot be read; TensorFlow then raises the error.
    """
    cdef Op op = _read_op()
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef PyObject* args[2]
    cdef Invocation call
    if not op.ready:
        op.load()
    tell_watchers(variable)
    try:
        handle, dtype = variable._handle, variable._dtype
        args[0], args[1] = <PyObject*>handle, <PyObject*>dtype
        memset(slots, 0, op.num_params * sizeof(PyObject*))
        slots[op.input_slots[0]], slots[op.attr_slots[0]] = args[0], args[1]
        begin(&call, NULL, args, 0, <PyObject*>_READ_KEYWORDS)
        call.raises_status = True  # treat it as a dispatch call: only those are recorded directly
        result = <object>run_op(op, slots, &call)
        Py_DECREF(result)
        return result
    except Exception:
        return None


# ---------------------------------------------------------------------------------------------
# Entries: one per key
# ---------------------------------------------------------------------------------------------

cdef bint _matches(Op op, Entry entry, PyObject** slots, PyObject* device_name, Frame* frame,
                   bint onednn) except -1:
    if not frame.SameSignature(<char*>entry.signature, len(entry.signature)):
        return False
    if entry.onednn != onednn:
        return False
    if not same_attrs(op, entry, slots, 0):
        return False
    if <PyObject*>entry.device_name != device_name:
        return entry.device_name == <object>device_name
    return True


cdef uint64_t _key_of(Op op, PyObject** slots, PyObject* device_name, Frame* frame,
                      bint onednn) except? 0:
    """Returns a hash of all that `_matches` compares; 0 if an attribute is not comparable."""
    cdef int i
    cdef PyObject* given
    cdef uint64_t state = onednn + 1
    for i in range(<int>frame.signature_size):
        state = mix(state, frame.signature[i])
    for i in range(op.num_attrs):
        given = slots[op.attr_slots[i]]
        if given == NULL:
            state = mix(state, 1)
            continue
        if not is_comparable(<object>given):
            return 0
        state = mix(state, hash_of(<object>given))
    state = mix(state, <uint64_t>hash(<object>device_name))
    return state | 1


cdef Entry _find(Op op, uint64_t key, PyObject** slots, PyObject* device_name, Frame* frame,
                 bint onednn):
    """Returns the entry for a call, or None. Marks it as the most recently used one."""
    cdef Entry entry = op.table.get(key)
    if entry is None or not _matches(op, entry, slots, device_name, frame, onednn):
        return None
    op.table.pop(key, None)  # to the end: the least recently used entry is the first
    op.table[key] = entry
    op.last = entry
    return entry


cdef bint _is_recorded(Invocation* call) noexcept:
    return call.observer != NULL and (<Observer>call.observer).records


cdef PyObject* _first_call(Op op, uint64_t key, PyObject** slots, PyObject* device_name,
                           Frame* frame, Options* options, bint ready,
                           Invocation* call) except NULL:
    """Runs the first call of a key: in TensorFlow, unless it is known to accept the call."""
    cdef PyObject* result
    cdef bint onednn = options.onednn
    cdef Entry entry = entry_at_once(
        op, key, slots, device_name, frame, _runtime, options, ready, call.target != NULL,
        call.observer,
    )
    if entry is not None:
        return _untried(op, key, entry, frame, slots, options.threads, call)
    result = _tensorflow(op, call, R_FIRST_CALL, slots, None)
    if call.observer != NULL and (<Observer>call.observer).records:
        return result  # the kernel is made together with the recording
    if is_current(_runtime):
        try:
            # TensorFlow's function may have called fastops and prepared the entry already: see
            # _install/intercept.pyx.
            if _find(op, key, slots, device_name, frame, onednn) is None:
                add_entry(op, key, slots, device_name, frame, _runtime, onednn, False)
        except Exception:  # internal error: the call has succeeded, so only report it
            PyErr_WriteUnraisable(op)
    return result


cdef PyObject* _untried(Op op, uint64_t key, Entry entry, Frame* frame, PyObject** slots,
                        Threads threads, Invocation* call) except NULL:
    """Runs a new kernel. Drops its entry if the call fails, as no failed call leaves an entry."""
    try:
        return _direct(op, entry, frame, slots, threads, R_FIRST_CALL, call)
    except BaseException:
        if op.table.get(key) is entry:
            op.table.pop(key, None)
            op.last = None
        raise


# ---------------------------------------------------------------------------------------------
# Three paths
# ---------------------------------------------------------------------------------------------

cdef PyObject* _direct(Op op, Entry entry, Frame* frame, PyObject** slots, Threads threads,
                       int failure, Invocation* call) except NULL:
    cdef PyObject* inline_results[INLINE_RESULTS]
    cdef PyObject** results = inline_results
    cdef Status status
    cdef Manner manner
    cdef int code
    manner.release_gil = op.unbounded or frame.bytes > GIL_BYTES
    manner.threads = threads
    manner.bytes = frame.bytes
    if entry.num_outputs > INLINE_RESULTS:
        results = <PyObject**>malloc(entry.num_outputs * sizeof(PyObject*))
        if results == NULL:
            raise MemoryError()
    try:
        if call.observer == NULL:
            code = deref(entry.kernel).Run(frame.tensors, results, &status, &manner)
        else:
            code = run_observed(
                op, entry, frame, slots, results, &status, &manner, call.observer, &call.counts
            )
        if code == 0:
            op.calls_direct += call.counts
            return _finish(op, entry, frame, results, None)
    finally:
        if results != inline_results:
            free(results)
    if code < 0:
        return NULL  # EagerTensorFromHandle has raised
    if not op.facts.stateful or not op.handles:
        return _tensorflow(op, call, failure, slots, entry)
    # Do not retry: the kernel may have changed state already.
    op.calls_direct += call.counts
    return raise_status(op, entry, slots, call.raises_status, status, True)


cdef bint _placed(Op op, PlacedEntry entry, Frame* frame, PyObject** slots, Invocation* call,
                  PyObject** result) except -1:
    """Runs the kernel on its device.

    Returns False if there is no kernel, or if an input would have to be copied or waited for.
    """
    cdef PyObject* results[INLINE_RESULTS]
    cdef Status status
    cdef PlacedKernel* kernel
    cdef int code
    if (
        entry.placed.get() == NULL or frame.num_unwrapped or entry.num_outputs > INLINE_RESULTS
        or Async(_runtime) or Observed(_runtime)
    ):
        return False
    kernel = deref(entry.placed).For(_runtime, frame.handles, frame.size)
    if kernel == NULL:
        return False
    if call.observer == NULL:
        code = kernel.Run(frame.handles, frame.size, results, &status)
    else:
        code = run_placed_observed(entry, kernel, frame, results, &status, call.observer)
    if code > 1:
        return False
    if code < 0:
        return -1  # EagerTensorFromHandle has raised
    if code == 1 and (not op.facts.stateful or not op.handles):
        result[0] = _tensorflow(op, call, R_KERNEL_ERROR, slots, entry)
        return True
    op.calls_direct += call.counts
    if code == 0:
        result[0] = _finish(op, entry, frame, results, None)
        return True
    # Do not retry: the kernel may have changed state already.
    result[0] = raise_status(op, entry, slots, call.raises_status, status, True)
    return True


cdef PyObject* _capi(Op op, Entry entry, Frame* frame, PyObject** slots, PyObject* device_name,
                     int reason, Invocation* call) except NULL:
    cdef PyObject* inline_results[INLINE_RESULTS]
    cdef PyObject** results = inline_results
    cdef Status status
    cdef int code
    op.calls_capi += call.counts
    op.calls_reason[reason] += call.counts
    if op.seeded and draws.live:
        draws.leave(op, slots, _runtime, False)
    _fell_back(op, call, P_CAPI, reason, slots, entry)
    if entry.capi.get() == NULL:
        entry.capi.reset(new CachedOp(_runtime.context, deref(entry.node), entry.num_outputs))
    if entry.num_outputs > INLINE_RESULTS:
        results = <PyObject**>malloc(entry.num_outputs * sizeof(PyObject*))
        if results == NULL:
            raise MemoryError()
    try:
        _leave(call)
        code = deref(entry.capi).Run(
            frame.handles, frame.size, PyUnicode_AsUTF8(device_name),
            results, &status,
        )
        _come_back(call)
        if code == 0:
            return _finish(op, entry, frame, results, None)
    finally:
        if results != inline_results:
            free(results)
    if code < 0:
        return NULL  # EagerTensorFromHandle has raised
    if not op.facts.stateful and reason == entry.reason:
        op.calls_capi -= call.counts
        op.calls_reason[reason] -= call.counts
        return _tensorflow(op, call, R_KERNEL_ERROR, slots, entry)
    # Do not retry: the op may have side effects, and observers must not see the call twice.
    return raise_status(op, entry, slots, call.raises_status, status, False)


cdef PyObject* _tensorflow(Op op, Invocation* call, int reason, PyObject** slots,
                           Entry entry) except NULL:
    cdef Thread* thread = this_thread()
    cdef PyObject* before = thread.underway
    cdef PyObject* target = call.target
    cdef PyObject* result
    cdef PyObject* recorder = NULL
    cdef bint uncounted = False, uncounted_before = False
    if thread.observer != NULL:
        recorder = recorder_of(thread)
        # The op callback is the recorder's own, or the recorder wanted this call to be direct.
        if recorder != NULL and (reason == R_CALLBACKS or call.observer == recorder):
            reason = R_FIRST_CALL
            uncounted = call.counts  # counted below, unless a nested call is direct
    if not uncounted:
        op.calls_tensorflow += call.counts
        op.calls_reason[reason] += call.counts
    if op.seeded and draws.live and slots != NULL and reason != R_GRAPH:
        draws.leave(op, slots, _runtime, reason == R_CONTEXT)
    _fell_back(op, call, P_TENSORFLOW, reason, slots, entry)
    if target == NULL:
        if op.reference is None:
            op.reference = _fallback.reference(op.op_name)
        target = <PyObject*>op.reference
    thread.underway = <PyObject*>op
    _leave(call)
    if recorder != NULL and call.counts:
        uncounted_before = (<Observer>recorder).uncounted
        (<Observer>recorder).uncounted = uncounted
    result = PyObject_Vectorcall(target, call.args, call.nargsf, call.keywords)
    if recorder != NULL and call.counts:
        if (<Observer>recorder).uncounted:  # no nested call was direct
            op.calls_tensorflow += 1
            op.calls_reason[reason] += 1
        (<Observer>recorder).uncounted = uncounted_before
    _come_back(call)
    thread.underway = before
    return result


# ---------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------

cdef PyObject* _finish(Op op, Entry entry, Frame* frame, PyObject** results,
                       tuple attrs) except NULL:
    """Returns the result in the structure of TensorFlow's function, and records it on the tapes.

    `attrs` are the attributes for the record; None for those of the entry. Steals the references in
    `results`.
    """
    cdef int i
    cdef bint recorded = recording()
    if not recorded and op.facts.structure == kTensor:
        return results[0]
    if recorded:
        try:
            _record(op, entry, frame, results, attrs)
        except BaseException:
            for i in range(entry.num_outputs):
                Py_DECREF(<object>results[i])
            raise
        if op.facts.structure == kTensor:
            return results[0]
    flat_results = []
    for i in range(entry.num_outputs):
        flat_results.append(<object>results[i])
        Py_DECREF(<object>results[i])
    value = op.packed(flat_results, entry.lengths)
    Py_INCREF(value)
    return <PyObject*>value


cdef int _record(Op op, Entry entry, Frame* frame, PyObject** results, tuple attrs) except -1:
    if attrs is None:
        if entry.gradient_attrs is None:
            entry.gradient_attrs = op.attrs_for_gradient(entry.attrs, frame)
        attrs = entry.gradient_attrs
    return record_op(op, attrs, frame.objects, frame.size, results, entry.num_outputs)


# ---------------------------------------------------------------------------------------------
# Observers and reports
# ---------------------------------------------------------------------------------------------

cdef inline int _leave(Invocation* call) except -1:
    """Notifies the observer that TensorFlow takes over the call."""
    return 0 if call.observer == NULL else (<Observer>call.observer).leave()


cdef inline int _come_back(Invocation* call) except -1:
    return 0 if call.observer == NULL else (<Observer>call.observer).come_back()


cdef bint _measures(Op op, Invocation* call, Thread* thread) except -1:
    """Whether a call still has to be measured. A nested call gets `counts` 0 and is not."""
    if _is_underway(op, thread):
        thread.underway = NULL
        call.counts = 0
    return call.counts and call.observer == NULL and is_measured(thread)


cdef bint _is_underway(Op op, Thread* thread) noexcept:
    """Whether TensorFlow is running a call of this op, perhaps of another Op object for it."""
    return thread.underway != NULL and (<Op>thread.underway).op_name == op.op_name


cdef PyObject* _run_measured(Op op, PyObject** slots, Invocation* call, Thread* thread) except NULL:
    cdef Observer observer = <Observer>measurer_of(thread)
    call.observer = <PyObject*>observer
    observer.begin(thread)
    try:
        return run_op(op, slots, call)
    finally:
        observer.end(op.op_name, thread)


cdef int _fell_back(Op op, Invocation* call, int path, int reason, PyObject** slots,
                    Entry entry) except -1:
    """Reports that a call does not take the direct path, to its observer and by `on_fallback`."""
    cdef OnFallback how = this_thread().options.on_fallback
    cdef bint reports = how != kIgnore and call.counts and not is_expected(reason)
    if call.observer == NULL and not reports:
        return 0
    return tell_fallback(
        op, path, reason, slots, entry, call.observer, how if reports else kIgnore
    )


# ---------------------------------------------------------------------------------------------
# Questions of other modules
# ---------------------------------------------------------------------------------------------

cdef Runtime* runtime() except NULL:
    cdef PyObject* device_name = NULL
    gate(&device_name)
    return &_runtime


cdef object constant(object value, DataType dtype):
    cdef PyObject* device_name = NULL
    if gate(&device_name) != R_DIRECT:
        return None
    return conversion.constant(_runtime, value, dtype, device_name)


cdef object pack_list(object value, DataType dtype):
    cdef PyObject* device_name = NULL
    if gate(&device_name) != R_DIRECT:
        return None
    return conversion.pack_list(_runtime, value, dtype, device_name, _pack_op())


# ---------------------------------------------------------------------------------------------
# Setting up the class Op
# ---------------------------------------------------------------------------------------------

cdef int _enable_vectorcall() except -1:
    cdef Op op = Op.__new__(Op, "")
    EnableVectorcall(<PyTypeObject*>Op, <char*>&op.vectorcall - <char*><void*>op)
    return 0


_enable_vectorcall()
