# distutils: language = c++
"""Reports about a call: to its observer, as details of a reason, and as an exception.

A call without an observer uses this code only if it fails or falls back.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t

from fastops._core.attributes cimport is_comparable
from fastops._core.conversion cimport is_convertible, may_convert
from fastops._core.entries cimport Placing, placing
from fastops._core.observer cimport Observer, measurer_of, recorder_of, reporter_of
from fastops._core.reasons cimport R_ATTR_VALUE, R_INPUT_TYPE, R_OP
from fastops._core.schema cimport FASTOPS_MAX_PARAMS
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.opdef cimport kSingle
from fastops._cpp.options cimport kCapi, kDirect, kIgnore, kTensorflow
from fastops._cpp.runtime cimport Async, Observed, StoresGraphs
from fastops._cpp.text cimport RaiseNotOk
from fastops._cpp.timer cimport Nanoseconds
from fastops._tf.eager cimport EagerContextThreadLocalData, GetEagerContextThreadLocalData

cdef extern from "definitions.h":
    pass

from tensorflow.python.eager.core import _NotOkStatusException, _status_to_exception
from tensorflow.python.framework.ops import raise_from_not_ok_status

from fastops._core import fallback as _fallback


cdef int run_observed(Schema op, Entry entry, Frame* frame, PyObject** slots, PyObject** results,
                      Status* status, Manner* manner, PyObject* told, int* counts) except -2:
    """Runs a kernel and notifies an observer."""
    cdef Observer observer = <Observer>told
    cdef int code, i
    manner.kernel_ns = observer.begin_kernel()
    code = deref(entry.kernel).Run(frame.tensors, results, status, manner)
    observer.end_kernel(entry, manner.in_caller)
    if code != 0 or not observer.records:
        return code
    if observer.uncounted and not counts[0]:  # the nested call of TensorFlow's function
        observer.uncounted = False
        counts[0] = 1
    try:
        observer.ran(
            op.op_name, tuple([<object>frame.objects[i] for i in range(frame.size)]),
            op.attrs_for_gradient(op.attrs_of_call(slots), frame),
            [<object>results[i] for i in range(entry.num_outputs)],
        )
    except BaseException:
        for i in range(entry.num_outputs):
            Py_DECREF(<object>results[i])
        raise
    return code


cdef int run_placed_observed(Entry entry, PlacedKernel* kernel, Frame* frame, PyObject** results,
                             Status* status, PyObject* told) except -2:
    """Runs a kernel on its device and notifies an observer. Returns 2 if the kernel did not run."""
    cdef Observer observer = <Observer>told
    cdef Placing how
    cdef int64_t* kernel_ns
    cdef int64_t start
    cdef int code
    if observer.records:
        return 2
    how = placing(entry, kernel)
    kernel_ns = observer.begin_kernel()
    start = Nanoseconds()
    code = kernel.Run(frame.handles, frame.size, results, status)
    if code <= 1 and kernel_ns != NULL:
        kernel_ns[0] += Nanoseconds() - start
    observer.end_kernel(how if code <= 1 else None, False)
    return code


cdef bint read_observed(Schema op, Entry entry, Frame* frame, Tensor* value,
                        Thread* thread) except -1:
    cdef PyObject* measurer = measurer_of(thread)
    cdef Observer observer
    cdef bint ran
    if measurer == NULL:
        return deref(entry.kernel).RunUnwrapped(frame.tensors, value, NULL)
    observer = <Observer>measurer
    observer.begin(thread)
    ran = deref(entry.kernel).RunUnwrapped(frame.tensors, value, observer.begin_kernel())
    observer.end(op.op_name if ran else None, thread)
    return ran


cdef bint may_record(PyObject** told, bint dispatched, Thread* thread,
                     const Runtime& runtime) except -1:
    """Whether a call may run directly and be reported to the recorder of this thread.

    The recorder's op callback must be the only one. Only dispatch calls qualify: the functions that
    make them do more than run an op. For example, they stop tapes.
    """
    cdef PyObject* recorder = recorder_of(thread)
    cdef EagerContextThreadLocalData* local
    cdef Observer observer
    if recorder == NULL or not dispatched or told[0] != NULL:
        return False
    observer = <Observer>recorder
    local = GetEagerContextThreadLocalData(runtime.py_context)
    callbacks = <list><object>local.op_callbacks.get()
    if (
        len(callbacks) != 1 or callbacks[0] is not observer.callback
        or thread.options.path == kTensorflow or thread.options.path == kCapi
        or Async(runtime) or Observed(runtime) or StoresGraphs(runtime)
    ):
        return False
    observer.options = thread.options
    observer.options.path = kDirect  # else TensorFlow runs it and notifies the op callback
    told[0] = recorder
    return True


cdef int tell_fallback(BaseOp op, int path, int reason, PyObject** slots, Entry entry,
                       PyObject* told, OnFallback how) except -1:
    if reason == R_OP:
        detail = op.never_direct or op.record.bound
    else:
        detail = _detail_of(op, reason, slots, entry)
    if told != NULL:
        (<Observer>told).fell_back(op.op_name, path, reason, detail)
    if how != kIgnore:
        reporter_of(how).fell_back(op.op_name, path, reason, detail)
    return 0


cdef str _of_class(str name, object value):
    return f"{name} is of type {type(value).__name__}"


cdef str _detail_of(Schema op, int reason, PyObject** slots, Entry entry):
    """Returns details that the text of a reason does not give, or None."""
    cdef int i
    cdef PyObject* value
    if slots != NULL and reason == R_INPUT_TYPE:
        for i in range(op.num_inputs):
            value = slots[op.input_slots[i]]
            if (
                value != NULL
                and op.facts.inputs[i].kind == kSingle
                and not IsEagerTensor(value)
                and not is_convertible(value, &op.facts.inputs[i])
            ):
                return _of_class(op.keywords[op.input_slots[i]], <object>value)
    if slots != NULL and reason == R_ATTR_VALUE:
        for i in range(op.num_attrs):
            value = slots[op.attr_slots[i]]
            if value != NULL and not is_comparable(<object>value):
                return _of_class(op.keywords[op.attr_slots[i]], <object>value)
    return None if entry is None else entry.detail


cdef bytes _prefix(Schema op, dict attrs):
    return _fallback.kernel_error_prefix(op.op_name, attrs).encode()


cdef PyObject* raise_status(Schema op, Entry entry, PyObject** slots, bint as_dispatched,
                            const Status& status, bint of_kernel) except NULL:
    """Raises the exception that TensorFlow's generated function raises for an error status."""
    cdef PyObject* name = slots[op.num_params - 1]
    cdef PyObject* inputs[FASTOPS_MAX_PARAMS]
    cdef bytes prefix = b""
    cdef bint slowly = False
    cdef int i
    for i in range(op.num_inputs):
        inputs[i] = slots[op.input_slots[i]]
    if of_kernel:
        prefix = _prefix(op, dict(zip(op.attr_names, entry.attrs, strict=True)))
    try:
        RaiseNotOk(status, prefix, op.op_name_bytes)
    except _NotOkStatusException as error:
        # The value is of another class if an interrupt occurred while the exception was made.
        if not isinstance(error, _NotOkStatusException):
            raise
        # Calls that the dispatch call declines go to TFE_Py_Execute. Its errors do not contain the
        # name of the call.
        if not entry.dispatched or not may_convert(op.facts, inputs, &slowly) or slowly:
            raise _status_to_exception(error) from None
        if as_dispatched:
            raise
        raise_from_not_ok_status(error, None if name == NULL else <object>name)
    raise SystemError("RaiseNotOk returned without setting an exception")


cdef int raise_failure(Schema op, const Status& status) except -1:
    try:
        RaiseNotOk(status, _prefix(op, {}), op.op_name_bytes)
    except _NotOkStatusException as error:
        if not isinstance(error, _NotOkStatusException):
            raise
        raise_from_not_ok_status(error, None)
    raise SystemError("RaiseNotOk returned without setting an exception")
