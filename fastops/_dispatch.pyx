# distutils: language = c++
"""The hot path: one op, one call, from keyword arguments to EagerTensors.

A call tries three paths in this order (docs/design.md has the whole story):

direct
    the op's kernel, prepared once per key and run on the inputs' tensors;
capi
    a cached TFE_Op, executed by TensorFlow's runtime;
tensorflow
    TensorFlow's own generated function, with the arguments untouched.

The path is decided before any side effect. Whenever a condition is not met, `REASONS` has a name
for it, and the call is counted under that name.

The GIL is held everywhere in this file except inside PreparedKernel.Run and CachedOp.Run.
"""

import atexit
import sys
import weakref
from copy import copy

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_Clear, PyErr_Occurred, PyErr_WriteUnraisable
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cython.operator cimport dereference as deref
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset
from libcpp.string cimport string
from libcpp.utility cimport move

from fastops._cpp cimport traces  # no-cython-lint
from fastops._cpp.capi cimport CachedOp
from fastops._cpp.compat cimport ConvertToEagerTensorUncached
from fastops._cpp.frame cimport FRAME_INPUTS, FRAME_UNWRAPPED, Frame
from fastops._cpp.handle cimport (
    HandleDtype,
    InputState,
    IsEagerTensor,
    kForeign,
    kOtherDevice,
    kReady,
)
from fastops._cpp.kernel cimport PreparedKernel
from fastops._cpp.opdef cimport (
    DataTypeVector,
    Describe,
    FindAttr,
    InputArg,
    IsHandleType,
    OutputLength,
    OutputTypes,
    kList,
    kNone,
    kSingle,
    kTensor,
)
from fastops._cpp.options cimport (
    DefaultThread,
    OnFallback,
    Options,
    Path,
    ThisThread,
    Thread,
    kAuto,
    kCapi,
    kDirect,
    kIgnore,
    kTensorflow,
)
from fastops._cpp.runtime cimport (
    Async,
    IsCustom,
    Observed,
    OneDnnEnabled,
    PlacedOnHost,
    Remote,
    Runtime,
    UnknownKernels,
)
from fastops._cpp.text cimport Message, RaiseNotOk
from fastops._cpp.timer cimport Nanoseconds
from fastops._cpp.vectorcall cimport EnableVectorcall
from fastops._tf.eager cimport (
    ConvertToEagerTensor,
    EagerContextThreadLocalData,
    EagerTensorFromHandle,
    EagerTensor_Handle,
    GetEagerContextThreadLocalData,
    GetPyEagerContext,
    TFE_Py_RecordGradient,
    TFE_Py_TapeVariableAccessed,
    TFE_Py_VariableWatcherVariableAccessed,
    TFE_TensorHandle,
    recording,
    wrap,
)
from fastops._tf.node_def_util cimport AddDefaultsToNodeDef
from fastops._tf.protos cimport (
    AttrDef,
    AttrList,
    AttrValue,
    DT_FLOAT,
    DT_INT32,
    DT_INVALID,
    DataType,
    NodeDef,
    TensorShapeProto,
)
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

import numpy as np
from tensorflow.python.eager.core import _NotOkStatusException, _status_to_exception
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.ops import raise_from_not_ok_status
from tensorflow.python.framework.tensor_shape import TensorShape
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._core import fallback as _fallback
from fastops._core.loading import LOCK
from fastops._core.record import record_of

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject*)
    PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    object PyVectorcall_Call(object, object, object)
    const char* PyUnicode_AsUTF8(PyObject*) except NULL
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    PyObject* Py_None
    PyTypeObject PyFloat_Type
    PyTypeObject PyLong_Type
    PyTypeObject PyBool_Type


# ---------------------------------------------------------------------------------------------
# Why a call did not take the direct path
# ---------------------------------------------------------------------------------------------

REASONS = (
    ("direct", "the call ran its prepared kernel"),
    ("first_call", "no kernel was prepared for this op, these dtypes and attributes yet"),
    ("op", "no call of this op may run its kernel directly"),
    ("options", "fastops.options(path=...) asks for another path"),
    ("graph", "a graph is being built"),
    ("context", "TensorFlow's eager context is not initialised, or was replaced"),
    ("remote", "the context is connected to other hosts"),
    ("callbacks", "op callbacks are registered"),
    ("async", "the thread's executor is asynchronous"),
    ("observed", "device placement, memory, the profiler or a file of nodes are recording"),
    ("arguments", "an argument is missing, unknown or positional"),
    ("input_type", "an input is not a tensor, variable or array, or made of Python numbers"),
    ("input_device", "an input lives on another device"),
    ("input_state", "an input is remote, packed, not computed yet, or failed"),
    ("conversion", "an input could not be converted to a tensor"),
    ("attr_value", "an attribute's value cannot be encoded or compared"),
    ("dtype", "a resource or variant passes through"),
    ("device", "TensorFlow places the call on another device"),
    ("kernel", "there is no synchronous kernel for these dtypes, or it cannot be prepared"),
    ("kernel_error", "the kernel reported an error, and TensorFlow ran the call again"),
)

cdef enum:
    R_DIRECT = 0
    R_FIRST_CALL
    R_OP
    R_OPTIONS
    R_GRAPH
    R_CONTEXT
    R_REMOTE
    R_CALLBACKS
    R_ASYNC
    R_OBSERVED
    R_ARGUMENTS
    R_INPUT_TYPE
    R_INPUT_DEVICE
    R_INPUT_STATE
    R_CONVERSION
    R_ATTR_VALUE
    R_DTYPE
    R_DEVICE
    R_KERNEL
    R_KERNEL_ERROR
    NUM_REASONS
    R_CONVERT = -2  # between `collect` and its caller only

assert len(REASONS) == NUM_REASONS

# `on_fallback` is silent about calls that will be direct the next time, that were asked for, or
# that TensorFlow rejects anyway.
cdef bint _is_expected(int reason) noexcept:
    return reason in (R_FIRST_CALL, R_OPTIONS, R_GRAPH, R_ARGUMENTS, R_KERNEL_ERROR)


# ---------------------------------------------------------------------------------------------
# State of the process
# ---------------------------------------------------------------------------------------------

cdef enum:
    MAX_RANK = 8         # of nested lists that are looked into, and the length of `_vectors`
    MAX_VECTORS = 1024

cdef object _MISSING = object()     # an attribute that was not given
cdef object _NO_DEVICE = ""
cdef dict _NUMBERS = {kind.__name__: kind for kind in map(type, (0, 0.5, True))}
cdef object _DType = _dtypes.DType
cdef PyTypeObject* _variable_type = <PyTypeObject*>ResourceVariable
cdef PyTypeObject* _array_type = <PyTypeObject*>np.ndarray
cdef type _namedtuple_base = tuple

cdef Runtime _runtime               # what the cached kernels were made for
generation = 0
cdef object _watch = None           # weak reference to the Python context
cdef list _ops = []                 # every Op that was ever called
cdef int _cache_size = 256          # entries an op
cdef dict _vectors = {}             # tuples of ints -> EagerTensors of int32 on the host
cdef bint _finalizing = False       # at exit kernels are leaked: their devices may be gone
cdef bint _unknown_kernels = UnknownKernels() != NULL
cdef Op _read_variable = None       # "ReadVariableOp"


def _at_exit():
    global _finalizing
    _finalizing = True


atexit.register(_at_exit)


cdef int _flush() except -1:
    """Drops every prepared kernel and cached operation."""
    cdef Op op
    for op in _ops:
        op.last = None
        op.table = {}
    _vectors.clear()
    return 0


def _context_died(_):
    if not _finalizing:
        _runtime.Clear()
        _flush()


cdef bint _refresh(PyObject* py_context) except -1:
    """Follows TensorFlow to another context. False while there is none to run kernels in."""
    global _watch, generation
    _runtime.Clear()
    _flush()
    generation += 1
    context = <object>py_context
    if context._context_handle is None or not _runtime.Capture(py_context):
        _runtime.Clear()
        return False
    _watch = weakref.ref(context, _context_died)
    return True


cdef int _gate(PyObject** device_name) except -1:
    """Whether this thread may run kernels now: a reason, R_DIRECT if it may.

    The device name is borrowed from the thread's state.
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
    if not _runtime.Current(py_context) and not _refresh(py_context):
        return R_CONTEXT
    if Remote(_runtime):
        return R_REMOTE
    cdef PyObject* callbacks = local.op_callbacks.get()
    if callbacks != Py_None and PyList_GET_SIZE(<object>callbacks) != 0:
        return R_CALLBACKS
    device_name[0] = local.device_name.get()
    if device_name[0] == Py_None:
        device_name[0] = <PyObject*>_NO_DEVICE
    return R_DIRECT


cdef bint eager() except -1:
    cdef PyObject* device_name = NULL
    return _gate(&device_name) == R_DIRECT


cdef bint in_no_scope() except -1:
    cdef PyObject* device_name = NULL
    return _gate(&device_name) == R_DIRECT and <object>device_name == _NO_DEVICE


cdef Runtime* runtime() except NULL:
    cdef PyObject* device_name = NULL
    _gate(&device_name)
    return &_runtime


cdef bint on_host() except -1:
    cdef PyObject* device_name = NULL
    return (
        _gate(&device_name) == R_DIRECT
        and _runtime.only_host
        and not Async(_runtime)
        and not Observed(_runtime)
    )


# ---------------------------------------------------------------------------------------------
# Attribute values: encoded once, compared on every call
# ---------------------------------------------------------------------------------------------

cdef bint _is_constant(object value) noexcept:
    """Whether the same object means the same value."""
    return not isinstance(value, (list, tuple))


cdef bint _comparable(object value) except -1:
    """Whether `_same` and `_hash` know this kind of value."""
    cdef type kind = type(value)
    if (
        value is None
        or kind is bool
        or kind is int
        or kind is str
        or kind is float
        or kind is bytes
        or isinstance(value, _DType)
        or kind is TensorShape
        or isinstance(value, (type, np.dtype))
    ):
        return True
    if kind is list or kind is tuple:
        for item in value:
            if not _comparable(item):
                return False
        return True
    return False


@cython.boundscheck(True)  # another thread may shorten a list meanwhile
cdef bint _same(object stored, object given) except -1:
    """Whether two comparable values encode to the same attribute."""
    cdef type kind = type(stored)
    cdef double x, y
    cdef Py_ssize_t i
    if kind is not type(given):
        return False
    if kind is list or kind is tuple:  # a tuple may hold lists
        if len(stored) != len(given):
            return False
        for i in range(len(stored)):
            if not _same(stored[i], given[i]):
                return False
        return True
    if stored is given:
        return True
    if kind is float:  # by bits: 0.0 is not -0.0, and NaN is itself
        x = stored
        y = given
        return memcmp(&x, &y, sizeof(double)) == 0
    if kind is TensorShape:  # its == is false for partly unknown shapes
        return repr(stored) == repr(given)
    if kind is int or kind is str or kind is bytes or isinstance(stored, np.dtype):
        return stored == given
    return False  # None, bool, DType and classes are the same object or differ


cdef uint64_t _mix(uint64_t state, uint64_t value) noexcept:
    state ^= value + <uint64_t>0x9E3779B97F4A7C15 + (state << 6) + (state >> 2)
    return state


cdef uint64_t _hash(object value) except? 0:
    cdef uint64_t state = <uint64_t><size_t>Py_TYPE(value)
    if isinstance(value, (list, tuple)):
        for item in value:
            state = _mix(state, _hash(item))
        return state
    if type(value) is TensorShape:
        value = repr(value)
    elif isinstance(value, _DType):
        value = value._type_enum
    return _mix(state, <uint64_t>hash(value))


cdef object _snapshot(object value):
    """A value that stays as it is when the caller changes his list."""
    if isinstance(value, (list, tuple)):
        return type(value)([_snapshot(item) for item in value])
    return value


cdef DataType _data_type(object value) except? DT_INVALID:
    if not isinstance(value, _DType):
        value = _dtypes.as_dtype(value)
    return <DataType><int>value._type_enum


cdef string _bytes(object value) except *:
    return value.encode() if isinstance(value, str) else value


cdef bint _encode_shape(object value, TensorShapeProto* proto) except -1:
    if value is None or (isinstance(value, TensorShape) and value.rank is None):
        proto.set_unknown_rank(True)
        return True
    if isinstance(value, TensorShape):
        value = value.as_list()
    if not isinstance(value, (list, tuple)):
        return False
    for size in value:
        if size is not None and type(size) is not int:
            return False
        proto.add_dim().set_size(-1 if size is None else <int64_t>size)
    return True


cdef bint _encode_scalar(object value, str kind, AttrValue* out) except -1:
    """Encodes as TensorFlow would; False for what it accepts and this does not."""
    if kind == "int" and type(value) is int:
        out.set_i(value)
    elif kind == "float" and type(value) in (float, int):
        out.set_f(value)
    elif kind == "bool" and type(value) is bool:
        out.set_b(value)
    elif kind == "string" and type(value) in (str, bytes):
        out.set_s(_bytes(value))
    elif kind == "type":
        out.set_type(_data_type(value))
    elif kind == "shape":
        return _encode_shape(value, out.mutable_shape())
    else:
        return False
    return True


cdef bint _encode_item(object value, str kind, AttrList* out) except -1:
    if kind == "int" and type(value) is int:
        out.add_i(value)
    elif kind == "float" and type(value) in (float, int):
        out.add_f(value)
    elif kind == "bool" and type(value) is bool:
        out.add_b(value)
    elif kind == "string" and type(value) in (str, bytes):
        out.add_s(_bytes(value))
    elif kind == "type":
        out.add_type(_data_type(value))
    elif kind == "shape":
        return _encode_shape(value, out.add_shape())
    else:
        return False
    return True


cdef bint _is_taken(object value, str kind) except -1:
    """Whether TensorFlow's dispatch call takes an attribute's value as it is.

    If not, another function runs the op, whose errors read otherwise.
    """
    if value is None:  # the default of the OpDef
        return True
    if kind.startswith("list("):
        for item in value:
            if not _is_taken(item, kind[5:len(kind) - 1]):
                return False
    elif kind == "float":
        return isinstance(value, float)
    elif kind == "int":
        return isinstance(value, int)
    elif kind == "bool":
        return isinstance(value, bool)
    elif kind == "type":
        return isinstance(value, int) or hasattr(value, "_type_enum")
    elif kind == "shape" and not isinstance(value, TensorShape):
        for item in value:
            if item is not None and not isinstance(item, int) and not hasattr(item, "_value"):
                return False
    return True


cdef bint _are_taken(Op op, PyObject** slots) except -1:
    """Whether TensorFlow's dispatch call takes all attributes that are given, or left out."""
    cdef int i
    cdef PyObject* given
    for i in range(op.num_attrs):
        given = slots[op.attr_slots[i]]
        kind = FindAttr(op.facts, <bytes>op.attr_names[i].encode()).type().decode()
        value = op.attr_defaults[i]
        if given != NULL:
            value = <object>given
        elif kind == "float" and value is not None and float(value).is_integer():
            return False  # TensorFlow's function has 1 for 1.0
        if not _is_taken(value, kind):
            return False
    return True


cdef bint _encode_attr(object value, str kind, AttrValue* out) except -1:
    if not kind.startswith("list("):
        return _encode_scalar(value, kind, out)
    if not isinstance(value, (list, tuple)):
        return False
    out.mutable_list()
    for item in value:
        if not _encode_item(item, kind[5:len(kind) - 1], out.mutable_list()):
            return False
    return True


# ---------------------------------------------------------------------------------------------
# Entry and Op
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class Entry:
    def __dealloc__(self):
        if _finalizing:
            self.kernel.release()
            self.capi.release()


@cython.final
cdef class Op:
    """One op of TensorFlow: a callable that takes its arguments by keyword.

    Made by `named`, never by users.

    Parameters
    ----------
    op_name : str
        Its name in TensorFlow's registry. All else about it is looked up when it is first used.
    """

    def __cinit__(self, str op_name not None):
        self.vectorcall = _call
        self.op_name = op_name

    def __dealloc__(self):
        cdef int i
        free(self.calls_reason)
        for i in range(FASTOPS_CALL_SHAPES):
            Py_XDECREF(self.shapes[i].keywords)

    cdef int load(self) except -1:
        """Makes a named op callable. Raises if it cannot be."""
        cdef int i
        cdef Py_ssize_t slot
        with LOCK:
            if self.ready:
                return 0
            record = self.record
            if record.error is not None:
                raise copy(record.error)
            params = record.params
            if len(params) >= FASTOPS_MAX_PARAMS:
                raise ValueError(f"{self.op_name} has too many parameters for fastops")
            self.op_name_bytes = self.op_name.encode()
            if not Describe(self.op_name_bytes, &self.facts):
                raise SystemError(f"{self.op_name} is known to Python only")
            if self.calls_reason == NULL:
                self.calls_reason = <long long*>calloc(NUM_REASONS, sizeof(long long))
                if self.calls_reason == NULL:
                    raise MemoryError()
            self.keywords = tuple([sys.intern(param.name) for param in params] + ["name"])
            self.num_inputs = self.facts.inputs.size()
            by_name = {param.op_def_name: slot for slot, param in enumerate(params)}
            for i in range(self.num_inputs):
                self.input_slots[i] = by_name[self.facts.inputs[i].name.decode()]
            self.attr_names = []
            self.attr_defaults = []
            self.attr_kinds = []
            kinds = {attr.name: _NUMBERS.get(attr.type) for attr in record.op_def.attrs}
            for slot, param in enumerate(params):
                if not param.is_input:
                    self.attr_slots[len(self.attr_names)] = slot
                    self.attr_names.append(sys.intern(param.op_def_name))
                    self.attr_defaults.append(param.default)
                    self.attr_kinds.append(kinds[param.op_def_name])
            self.num_attrs = len(self.attr_names)
            self.never = record.exclusion is not None
            self.direct = not self.never and not _unknown_kernels
            self.handles = record.handles
            # Cost that inputs' sizes do not bound: by their values, or by what a handle holds.
            self.unbounded = record.value_sized or (record.handles and self.num_inputs > 1)
            self.thorough = not record.module.startswith("fastops.gen.")
            self.table = {}
            _ops.append(self)
            # Last: other threads look at these two to see whether the op is loaded.
            self.num_params = len(self.keywords)
            self.ready = True
        return 0

    @property
    def record(self):
        """fastops._core.record.Record: what is known of the op."""
        if self._record is None:
            self._record = record_of(self.op_name)
        return self._record

    @property
    def __name__(self):
        return self.record.name

    @property
    def __qualname__(self):
        return self.record.name

    @property
    def __module__(self):
        return self.record.module

    @property
    def __doc__(self):
        return self.record.doc()

    @property
    def __signature__(self):
        return self.record.signature()

    @property
    def never_direct(self):
        """str or None: why no call of this op may run its kernel directly."""
        return self.record.exclusion

    def __repr__(self):
        return f"<fastops op {self.op_name}>"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __call__(self, *args, **kwargs):
        # For callers that ask for the attribute; a call itself goes to `_call`.
        return PyVectorcall_Call(self, args, kwargs)

    # A routine that does not bind, as a builtin function is: `inspect`, `pydoc` and type checkers
    # then treat an Op as what it is, a function.
    def __get__(self, instance, owner):
        return self

    cdef int bind(self, PyObject* const* args, PyObject* keywords, PyObject** slots) except -1:
        """Puts the arguments of a call into their slots.

        False for an unknown keyword, and for an op that is not loaded.
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
        """Where the arguments of a call with these keywords go. Null for an unknown keyword."""
        cdef int i, j
        cdef Py_ssize_t n, k
        cdef PyObject* known
        for i in range(FASTOPS_CALL_SHAPES):  # a call site has one tuple for all its calls
            if self.shapes[i].keywords == keywords:
                return self.shapes[i].slots
        n = PyTuple_GET_SIZE(<object>keywords)
        for i in range(FASTOPS_CALL_SHAPES):  # f(**kwargs) makes a new one, of the same names
            known = self.shapes[i].keywords
            if known == NULL or PyTuple_GET_SIZE(<object>known) != n:
                continue
            for k in range(n):
                if PyTuple_GET_ITEM(<object>known, k) != PyTuple_GET_ITEM(<object>keywords, k):
                    break
            else:
                return self.shapes[i].slots
        if n > self.num_params:
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

    cdef int collect(self, PyObject** slots, Frame* frame) except -1:
        """Flattens the inputs into the frame. A reason, R_DIRECT if a kernel may take them.

        R_CONVERT asks for `convert`. Only R_INPUT_STATE and R_INPUT_DEVICE leave a whole frame.
        """
        cdef int i
        cdef int reason = R_DIRECT
        cdef Py_ssize_t j, n
        cdef PyObject* value
        cdef PyObject* item
        cdef InputState state
        if self.facts.num_lists or self.num_inputs > FRAME_INPUTS:
            frame.Reset(self.count_inputs(slots), self.facts.num_lists)
        for i in range(self.num_inputs):
            value = slots[self.input_slots[i]]
            if value == NULL:
                return R_ARGUMENTS
            if self.facts.inputs[i].kind == kSingle:
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
            if n > 0xFFFF or n == 0 and not self.facts.inputs[i].type_attr.empty():
                return R_INPUT_TYPE  # TensorFlow infers an empty list's type its own way
            frame.BeginList(n)
            for j in range(n):
                if PyList_CheckExact(<object>value):
                    item = PyList_GET_ITEM(<object>value, j)
                else:
                    item = PyTuple_GET_ITEM(<object>value, j)
                if not IsEagerTensor(item):
                    if Py_TYPE(<object>item) != _variable_type:
                        return R_INPUT_TYPE
                    return R_CONVERT
                Py_INCREF(<object>item)  # another thread may change the list
                frame.Own(item)
                state = frame.Add(item, _runtime.host)
                if state != kReady:
                    if state == kForeign:
                        return R_INPUT_TYPE
                    reason = R_INPUT_DEVICE if state == kOtherDevice else R_INPUT_STATE
        return reason

    cdef int count_inputs(self, PyObject** slots) noexcept:
        """How many flat inputs there are, at most."""
        cdef int i
        cdef Py_ssize_t count = self.num_inputs
        cdef PyObject* value
        for i in range(self.num_inputs):
            value = slots[self.input_slots[i]]
            if value == NULL or self.facts.inputs[i].kind == kSingle:
                continue
            if PyList_CheckExact(<object>value):
                count += PyList_GET_SIZE(<object>value)
            elif PyTuple_CheckExact(<object>value):
                count += PyTuple_GET_SIZE(<object>value)
        return <int>min(count, 0x7FFFFFFF)

    cdef int collect_unwrapped(self, PyObject** slots, PyObject* device_name, Frame* frame,
                               Thread* thread) except -1:
        """`collect` for tensors and variables while no tape records.

        Variables are read into tensors that no Python object holds, which takes half the time.
        R_CONVERT where that does not go, and when `convert` has to make the objects after all.
        """
        cdef int i
        cdef PyObject* value
        if Async(_runtime) or Observed(_runtime):
            return R_CONVERT
        frame.Reset(self.num_inputs, 0)
        for i in range(self.num_inputs):
            value = slots[self.input_slots[i]]
            if value == NULL or self.facts.inputs[i].kind != kSingle:
                return R_CONVERT
            if IsEagerTensor(value):
                if frame.Add(value, _runtime.host) != kReady:
                    return R_CONVERT
            elif (
                Py_TYPE(<object>value) != _variable_type
                or not _convertible(value, &self.facts.inputs[i])
                or not _read_unwrapped(<object>value, device_name, frame, thread)
            ):
                return R_CONVERT
        return R_DIRECT

    cdef int convert(self, PyObject** slots, PyObject* device_name, Frame* frame) except -1:
        """`collect` for calls with inputs that are not tensors.

        Variables are read, arrays and Python numbers converted, as TensorFlow's fast path does:
        the dtype of a number is that of the first tensor that shares its type attribute, at any
        position, else the attribute's default. Lists of numbers are converted where
        `lists_convert` knows how. Everything else is TensorFlow's to convert.
        """
        cdef int i, attr
        cdef bint has_list = False
        cdef InputArg* arg
        cdef PyObject* value
        cdef DataType hint
        cdef DataType dtypes[FASTOPS_MAX_PARAMS]
        cdef PyObject* converted[FASTOPS_MAX_PARAMS]
        for i in range(self.num_inputs):
            value = slots[self.input_slots[i]]
            if value == NULL:
                return R_ARGUMENTS
            dtypes[i] = DT_INVALID
            converted[i] = value
        # First: who may be converted at all, before anything is read.
        for i in range(self.num_inputs):
            value = converted[i]
            if self.facts.inputs[i].kind == kSingle:
                if not IsEagerTensor(value) and not _convertible(value, &self.facts.inputs[i]):
                    if not _of_one_kind(value):
                        return R_INPUT_TYPE
                    has_list = True
            elif type(<object>value) not in (list, tuple):
                return R_INPUT_TYPE
            else:
                for item in <object>value:
                    if not IsEagerTensor(<PyObject*>item) and type(item) is not ResourceVariable:
                        return R_INPUT_TYPE
        if has_list and not (self.lists_convert(converted) and self.attrs_stay(slots)):
            return R_INPUT_TYPE
        frame.Reset(self.num_inputs, 0)
        # Next: variables, whose dtypes give hints too.
        for i in range(self.num_inputs):
            arg = &self.facts.inputs[i]
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
                if not items:
                    continue  # `collect` knows whether that is all right
                value = <PyObject*>items[0]
            attr = arg.attr
            if attr >= 0 and dtypes[attr] == DT_INVALID and IsEagerTensor(value):
                dtypes[attr] = HandleDtype(EagerTensor_Handle(value))
        # Finally: arrays and numbers.
        for i in range(self.num_inputs):
            arg = &self.facts.inputs[i]
            value = converted[i]
            if arg.kind != kSingle or IsEagerTensor(value):
                continue
            hint = arg.fixed
            if hint == DT_INVALID:
                hint = dtypes[arg.attr]
            # A list brings its dtype along, unless it is empty.
            if hint == DT_INVALID and (not _is_list(value) or not <object>value):
                hint = arg.fallback
            try:
                value = _to_tensor(value, hint, device_name)
            except Exception:  # TensorFlow will say what is wrong
                return R_CONVERSION
            frame.Own(value)
            converted[i] = value
            if arg.attr >= 0:
                dtypes[arg.attr] = HandleDtype(EagerTensor_Handle(value))
        cdef PyObject* converted_slots[FASTOPS_MAX_PARAMS]
        for i in range(self.num_inputs):
            converted_slots[self.input_slots[i]] = converted[i]
        i = self.collect(converted_slots, frame)
        return R_INPUT_TYPE if i == R_CONVERT else i

    cdef bint attrs_stay(self, PyObject** slots) except -1:
        """Whether gradient functions see the attributes as they are given.

        With lists they come through TensorFlow's slow path, which makes of each what its OpDef
        says: an int of None, bytes of a string, a number of a dtype.
        """
        cdef int i
        cdef PyObject* value
        if not recording():
            return True
        for i in range(self.num_attrs):
            value = slots[self.attr_slots[i]]
            given = self.attr_defaults[i] if value == NULL else <object>value
            if type(given) is not self.attr_kinds[i]:
                return False
        return True

    cdef bint lists_convert(self, PyObject** values) noexcept:
        """Whether inputs convert alone, or as a tensor beside them says.

        TensorFlow's fast path refuses lists. The slow path has other rules for dtypes, which come
        to the same for inputs of a fixed dtype, for those that share theirs with an EagerTensor,
        for a list that shares it with nothing, and for short lists of ints among themselves.
        """
        cdef int i, j
        cdef bint alone, told, vectors
        cdef DataType fallback
        cdef PyObject* value
        cdef PyObject* other
        if self.facts.stateful:
            return False  # errors of that path are others, and it must not run a second time
        for i in range(self.num_inputs):
            value = values[i]
            if (
                self.facts.inputs[i].kind != kSingle
                or self.facts.inputs[i].fixed != DT_INVALID
                or IsEagerTensor(value)
            ):
                continue
            alone, told = True, False
            vectors = _is_vector(value) and <object>value
            for j in range(self.num_inputs):
                if j != i and self.facts.inputs[j].attr == self.facts.inputs[i].attr:
                    other = values[j]
                    if self.facts.inputs[j].kind != kSingle:
                        return False
                    if IsEagerTensor(other):
                        told = True
                    elif (
                        Py_TYPE(<object>value) == _variable_type
                        or Py_TYPE(<object>other) == _variable_type
                    ):
                        return False
                    alone = False
                    vectors = vectors and _is_vector(other) and <object>other
            if vectors or told or alone and Py_TYPE(<object>value) == _variable_type:
                continue
            if not alone:
                return False
            fallback = self.facts.inputs[i].fallback
            if _is_list(value):
                if fallback != DT_INT32 and not <object>value:
                    return False
            elif fallback != DT_INVALID and not (
                fallback == DT_INT32 and Py_TYPE(<object>value) == &PyLong_Type
                or fallback == DT_FLOAT and Py_TYPE(<object>value) == &PyFloat_Type
            ):
                return False
        return True

    cdef bint matches(self, Entry entry, PyObject** slots, PyObject* device_name, Frame* frame,
                      bint onednn) except -1:
        cdef int i
        cdef PyObject* given
        cdef PyObject* stored
        if not frame.SameSignature(<char*>entry.signature, len(entry.signature)):
            return False
        if entry.onednn != onednn:
            return False
        for i in range(self.num_attrs):
            given = slots[self.attr_slots[i]]
            stored = PyTuple_GET_ITEM(entry.attrs, i)
            if given == stored and (entry.constants >> i) & 1:
                continue
            if given == NULL:
                given = <PyObject*>_MISSING
            if given == stored and given == <PyObject*>_MISSING:
                continue
            if given == <PyObject*>_MISSING or stored == <PyObject*>_MISSING:
                return False
            if not _same(<object>stored, <object>given):
                return False
        if <PyObject*>entry.device_name != device_name:
            return entry.device_name == <object>device_name
        return True

    cdef uint64_t key(self, PyObject** slots, PyObject* device_name, Frame* frame,
                      bint onednn) except? 0:
        """A hash of all that `matches` compares; 0 when an attribute cannot be compared."""
        cdef int i
        cdef PyObject* given
        cdef uint64_t state = onednn + 1
        for i in range(<int>frame.signature_size):
            state = _mix(state, frame.signature[i])
        for i in range(self.num_attrs):
            given = slots[self.attr_slots[i]]
            if given == NULL:
                state = _mix(state, 1)
                continue
            if not _comparable(<object>given):
                return 0
            state = _mix(state, _hash(<object>given))
        state = _mix(state, <uint64_t>hash(<object>device_name))
        return state | 1

    cdef Entry find(self, uint64_t key, PyObject** slots, PyObject* device_name, Frame* frame,
                    bint onednn):
        """The entry for a call, or None. Makes it the last one used."""
        cdef Entry entry = self.table.get(key)
        if entry is None or not self.matches(entry, slots, device_name, frame, onednn):
            return None
        self.table.pop(key, None)  # to the end: the least recently used entry is the first
        self.table[key] = entry
        self.last = entry
        return entry

    cdef Entry prepare(self, uint64_t key, PyObject** slots, PyObject* device_name, Frame* frame,
                       bint onednn):
        """Makes the entry for a call that TensorFlow has just run with success."""
        cdef Entry entry = Entry.__new__(Entry)
        cdef int i
        cdef PyObject* given
        cdef Status status
        cdef DataTypeVector outputs
        cdef size_t j
        entry.signature = frame.signature[:frame.signature_size]
        attrs = []
        for i in range(self.num_attrs):
            given = slots[self.attr_slots[i]]
            value = _MISSING if given == NULL else _snapshot(<object>given)
            attrs.append(value)
            if given != NULL and _is_constant(value):
                entry.constants |= (<unsigned long long>1) << i
        entry.attrs = tuple(attrs)
        entry.device_name = <object>device_name
        entry.onednn = onednn
        entry.node.reset(new NodeDef())
        place = _bytes(entry.device_name)
        if IsCustom(_runtime, place):
            entry.node.reset()
            entry.reason = R_DEVICE
        elif self.encode(slots, frame, entry.node.get()):
            entry.dispatched = not self.facts.stateful or _are_taken(self, slots)
            entry.num_outputs = OutputTypes(deref(entry.node), self.facts, &outputs)
            entry.lengths = [
                None if length < 0 else length
                for length in [
                    OutputLength(deref(entry.node), self.facts, i)
                    for i in range(self.facts.definition.output_arg_size())
                ]
            ]
            entry.reason = R_OP
            if self.direct:
                entry.reason = R_DTYPE
                for j in range(outputs.size()):
                    if IsHandleType(outputs[j]):
                        break
                else:
                    if self.handles or not _has_handles(frame):
                        on_host = PlacedOnHost(_runtime, deref(entry.node), place)
                        entry.reason = R_KERNEL if on_host else R_DEVICE
            if entry.reason == R_KERNEL:
                entry.kernel = PreparedKernel.Make(
                    _runtime, deref(entry.node), entry.num_outputs, onednn and OneDnnEnabled(),
                    self.thorough, &status,
                )
                if entry.kernel.get() != NULL:
                    entry.reason = R_DIRECT
                else:
                    entry.detail = Message(status).decode("utf-8", "replace")
        else:
            entry.node.reset()
            entry.reason = R_ATTR_VALUE
        while len(self.table) >= _cache_size:
            self.table.pop(next(iter(self.table)), None)
        self.table[key] = entry
        self.last = entry
        return entry

    cdef int encode(self, PyObject** slots, Frame* frame, NodeDef* node) except -1:
        """Fills a NodeDef for a call. False for an attribute that cannot be encoded."""
        cdef int i
        cdef size_t k, length, flat = 0, lists = 0
        cdef const AttrDef* attr
        cdef InputArg* arg
        cdef AttrValue* value
        cdef DataType dtype
        cdef bytes kind
        node.set_name(self.op_name_bytes)
        node.set_op(self.op_name_bytes)
        for i in range(self.num_attrs):
            # Not given: the default of TensorFlow's function, which can differ from the OpDef's.
            given = self.attr_defaults[i]
            if slots[self.attr_slots[i]] != NULL:
                given = <object>slots[self.attr_slots[i]]
            attr = FindAttr(self.facts, <bytes>self.attr_names[i].encode())
            if given is None and attr.has_default_value():
                continue
            value = &deref(node.mutable_attr())[attr.name()]
            try:
                kind = attr.type()
                if not _encode_attr(given, kind.decode(), value):
                    return False
            except (TypeError, ValueError, OverflowError):
                return False
        for i in range(self.num_inputs):
            arg = &self.facts.inputs[i]
            if arg.kind == kSingle:
                length = 1
            else:
                length = frame.list_lengths[lists]
                lists += 1
            for _ in range(length):
                node.add_input(b"input")  # a kernel asks how many there are, not whence
            if not arg.number_attr.empty():
                deref(node.mutable_attr())[arg.number_attr].set_i(length)
            if not arg.type_attr.empty():
                dtype = HandleDtype(frame.handles[flat])
                deref(node.mutable_attr())[arg.type_attr].set_type(dtype)
            if not arg.list_attr.empty():
                value = &deref(node.mutable_attr())[arg.list_attr]
                value.mutable_list()  # an empty list is a value, too
                for k in range(length):
                    value.mutable_list().add_type(HandleDtype(frame.handles[flat + k]))
            flat += length
        AddDefaultsToNodeDef(deref(self.facts.definition), node)
        return True

    cdef PyObject* run(self, PyObject** slots, Invocation* call) except NULL:
        """Runs a call whose arguments are in their slots; the op must be loaded."""
        cdef PyObject* device_name = NULL
        cdef Frame frame
        cdef Thread* thread = &ThisThread()
        cdef Options* options = &thread.options
        cdef Entry entry
        cdef uint64_t key
        cdef int reason

        # Before all: is it part of another call, or does a profile want to know?
        if <size_t>thread.underway | <size_t>thread.recorder and self.measures(call, thread):
            return self.run_measured(slots, call, thread)

        # First: may this thread run kernels now?
        reason = _gate(&device_name)
        if reason != R_DIRECT:
            return _tensorflow(self, call, reason, slots, None)
        if options.path == kTensorflow:
            return _tensorflow(self, call, R_OPTIONS, slots, None)

        # Next: the inputs as tensors.
        reason = self.collect(slots, &frame)
        if reason == R_CONVERT and options.path == kAuto:
            reason = self.collect_unwrapped(slots, device_name, &frame, thread)
        if reason == R_CONVERT:
            reason = self.convert(slots, device_name, &frame)
        if reason != R_DIRECT and reason != R_INPUT_STATE and reason != R_INPUT_DEVICE:
            return _tensorflow(self, call, reason, slots, None)

        # Then: the entry for these dtypes, attributes and device. Most often it is the last one.
        entry = self.last
        if entry is None or not self.matches(entry, slots, device_name, &frame, options.onednn):
            key = self.key(slots, device_name, &frame, options.onednn)
            if key == 0:
                return _tensorflow(self, call, R_ATTR_VALUE, slots, None)
            entry = self.find(key, slots, device_name, &frame, options.onednn)
            if entry is None:
                if frame.num_unwrapped:
                    reason = self.convert(slots, device_name, &frame)
                    if reason != R_DIRECT:
                        return _tensorflow(self, call, reason, slots, None)
                return self.first_call(key, slots, device_name, &frame, options.onednn, call)
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
            return _direct(self, entry, &frame, slots, call)
        if entry.node.get() == NULL or options.path == kDirect or (
            frame.num_unwrapped and self.convert(slots, device_name, &frame) != R_DIRECT
        ):
            return _tensorflow(self, call, reason, slots, entry)
        return _capi(self, entry, &frame, slots, device_name, reason, call)

    cdef PyObject* first_call(self, uint64_t key, PyObject** slots, PyObject* device_name,
                              Frame* frame, bint onednn, Invocation* call) except NULL:
        """TensorFlow runs a key's first call: what it rejects is never prepared."""
        cdef PyObject* now
        cdef PyObject* result
        if call.measured != NULL:
            (<Measurement>call.measured).changes = self.changes(slots, device_name, frame, onednn)
        result = _tensorflow(self, call, R_FIRST_CALL, slots, None)
        now = GetPyEagerContext()
        if now == NULL:
            PyErr_Clear()
            return result
        Py_DECREF(<object>now)
        if _runtime.Current(now):
            try:
                # TensorFlow's function may have come through here itself: see _intercept.pyx.
                if self.find(key, slots, device_name, frame, onednn) is None:
                    self.prepare(key, slots, device_name, frame, onednn)
            except Exception:  # a defect of fastops, but the caller has his result
                PyErr_WriteUnraisable(self)
        return result

    cdef bint measures(self, Invocation* call, Thread* thread) except -1:
        """Whether a call has yet to be measured. Finds out whether it is part of another one."""
        if self.is_underway(thread):
            thread.underway = NULL
            call.counts = 0
        return call.counts and call.measured == NULL and _recording(thread)

    cdef bint is_underway(self, Thread* thread) noexcept:
        """Whether a call of this op, perhaps through another object, is with TensorFlow."""
        return thread.underway != NULL and (<Op>thread.underway).op_name == self.op_name

    cdef PyObject* run_measured(self, PyObject** slots, Invocation* call,
                                Thread* thread) except NULL:
        cdef Measurement measured = Measurement.__new__(Measurement)
        call.measured = <PyObject*>measured
        measured.begin(thread)
        try:
            return self.run(slots, call)
        finally:
            measured.end(self, thread)

    cdef PyObject* run_elsewhere(self, Invocation* call) except NULL:
        """Leaves a call of an op that never runs here to TensorFlow. Only a profile counts it."""
        cdef Thread* thread = &ThisThread()
        cdef Measurement measured
        call.counts = 0
        if self.is_underway(thread):
            thread.underway = NULL
        elif _recording(thread):
            measured = Measurement.__new__(Measurement)
            call.measured = <PyObject*>measured
            measured.begin(thread)
            try:
                return _tensorflow(self, call, R_OP, NULL, None)
            finally:
                measured.end(self, thread)
        return PyObject_Vectorcall(call.target, call.args, call.nargsf, call.keywords)

    cdef str detail(self, int reason, PyObject** slots, Entry entry):
        """What the text of a reason leaves open, or None."""
        cdef int i
        cdef PyObject* value
        if reason == R_OP:
            return self.never_direct
        if slots != NULL and reason == R_INPUT_TYPE:
            for i in range(self.num_inputs):
                value = slots[self.input_slots[i]]
                if (
                    value != NULL
                    and self.facts.inputs[i].kind == kSingle
                    and not IsEagerTensor(value)
                    and not _convertible(value, &self.facts.inputs[i])
                ):
                    return _what_it_is(self.keywords[self.input_slots[i]], <object>value)
        if slots != NULL and reason == R_ATTR_VALUE:
            for i in range(self.num_attrs):
                value = slots[self.attr_slots[i]]
                if value != NULL and not _comparable(<object>value):
                    return _what_it_is(self.keywords[self.attr_slots[i]], <object>value)
        return None if entry is None else entry.detail

    cdef tuple changes(self, PyObject** slots, PyObject* device_name, Frame* frame, bint onednn):
        """In what a key differs from the nearest known one: parts, with their former and present
        values. None where no key is known."""
        cdef Entry entry
        cdef PyObject* given
        cdef int i
        nearest = None
        signature = frame.signature[:frame.signature_size]
        for entry in reversed(list(self.table.values())):
            changes = []
            if entry.signature != signature:
                changes.append(("dtypes", _dtype_names(entry.signature), _dtype_names(signature)))
            for i in range(self.num_attrs):
                given = slots[self.attr_slots[i]]
                one = entry.attrs[i]
                other = _MISSING if given == NULL else <object>given
                if one is not other and not _same(one, other):
                    default = self.attr_defaults[i]
                    changes.append(
                        (self.attr_names[i], _shown(one, default), _shown(other, default))
                    )
            if entry.device_name != <object>device_name:
                changes.append(("device", entry.device_name, <object>device_name))
            if entry.onednn != onednn:
                changes.append(("oneDNN", _ONEDNN[entry.onednn], _ONEDNN[onednn]))
            if nearest is None or len(changes) < len(nearest):
                nearest = changes
        return None if nearest is None else tuple(nearest)

    cdef PyObject* finish(self, Entry entry, Frame* frame, PyObject** results) except NULL:
        """The structure that TensorFlow's function returns, recorded on the tapes.

        Takes over the references in `results`.
        """
        cdef int i, flat = 0
        cdef bint recorded = recording()
        if not recorded and self.facts.structure == kTensor:
            return results[0]
        flat_results = []
        for i in range(entry.num_outputs):
            flat_results.append(<object>results[i])
            Py_DECREF(<object>results[i])
        if recorded:
            self.record_gradient(entry, frame, flat_results)
        if self.facts.structure == kTensor:
            value = flat_results[0]
        elif self.facts.structure == kNone:
            value = None
        elif self.facts.structure == kList:
            value = flat_results
        else:
            parts = []
            for length in entry.lengths:
                if length is None:
                    parts.append(flat_results[flat])
                    flat += 1
                else:
                    parts.append(flat_results[flat:flat + <int>length])
                    flat += <int>length
            if self.result_type is None:
                self.result_type = _fallback.result_type(self.op_name)
            value = tuple.__new__(self.result_type, parts)
        Py_INCREF(value)
        return <PyObject*>value

    cdef int record_gradient(self, Entry entry, Frame* frame, list results) except -1:
        cdef int i
        cdef PyObject* done
        if entry.gradient_attrs is None:
            entry.gradient_attrs = self.attrs_for_gradient(entry, frame)
        inputs = []
        for i in range(frame.size):
            inputs.append(<object>frame.objects[i])
        done = TFE_Py_RecordGradient(
            <PyObject*>self.op_name, <PyObject*>inputs, <PyObject*>entry.gradient_attrs,
            <PyObject*>results, Py_None,
        )
        if done == NULL:
            return -1
        Py_DECREF(<object>done)
        return 0

    cdef tuple attrs_for_gradient(self, Entry entry, Frame* frame):
        """What TensorFlow's fast path hands to gradient functions: the explicit attributes as
        given, then the inferred ones in the order of the inputs, types as integers."""
        cdef int i
        cdef size_t j, length, flat = 0, lists = 0
        cdef InputArg* arg
        attrs = []
        for i in range(self.num_attrs):
            value = entry.attrs[i]
            attrs += [self.attr_names[i], self.attr_defaults[i] if value is _MISSING else value]
        for i in range(self.num_inputs):
            arg = &self.facts.inputs[i]
            length = 1
            if arg.kind != kSingle:
                length = frame.list_lengths[lists]
                lists += 1
            types = [<int>HandleDtype(frame.handles[flat + j]) for j in range(length)]
            if not arg.number_attr.empty():
                attrs += [arg.number_attr.decode(), length]
            if not arg.type_attr.empty():
                attrs += [arg.type_attr.decode(), types[0]]
            if not arg.list_attr.empty():
                attrs += [arg.list_attr.decode(), tuple(types)]
            flat += length
        return tuple(attrs)


known = {}
"""The ops that `named` has made, by name."""


def named(str op_name):
    """Returns the op of that name, always the same one. Whether there is one is not asked."""
    found = known.get(op_name)
    if found is None:
        # `setdefault` is atomic: of two threads that make the same op, both get the first one's.
        found = known.setdefault(op_name, Op(op_name))
    return found


cdef str _what_it_is(str name, object value):
    return f"{name} is of type {type(value).__name__}"


cdef str _shown(object value, object default):
    """An attribute's value as text."""
    if value is _MISSING:
        return f"{_shown(default, None)} (default)"
    return value.name if isinstance(value, _DType) else repr(value)


cdef str _dtype_names(bytes signature):
    """The dtypes of a `Frame.signature` as text."""
    cdef Py_ssize_t i = 0, length = 0
    cdef list names = []
    cdef list items = None  # of the list that is being read
    while i < len(signature):
        if signature[i] == 0xff:
            length = signature[i + 1] | signature[i + 2] << 8
            items = []
            i += 3
        if items is None:
            names.append(_dtypes.as_dtype(signature[i]).name)
            i += 1
            continue
        if len(items) < length:
            items.append(_dtypes.as_dtype(signature[i]).name)
            i += 1
        if len(items) == length:
            names.append(f"[{', '.join(items)}]")
            items = None
    return ", ".join(names)


cdef bint _has_handles(Frame* frame) noexcept:
    cdef int i
    for i in range(frame.size):
        if IsHandleType(HandleDtype(frame.handles[i])):
            return True
    return False


# ---------------------------------------------------------------------------------------------
# Inputs that are not tensors
# ---------------------------------------------------------------------------------------------

cdef bint _convertible(PyObject* value, InputArg* arg) noexcept:
    cdef PyTypeObject* kind = Py_TYPE(<object>value)
    if kind == _variable_type:
        return arg.fixed == DT_INVALID or not IsHandleType(arg.fixed)
    return kind == _array_type or _is_number(value)


cdef bint _is_number(PyObject* value) noexcept:
    cdef PyTypeObject* kind = Py_TYPE(<object>value)
    return kind == &PyFloat_Type or kind == &PyLong_Type or kind == &PyBool_Type


cdef bint _is_list(PyObject* value) noexcept:
    return PyList_CheckExact(<object>value) or PyTuple_CheckExact(<object>value)


cdef bint _of_one_kind(PyObject* value) noexcept:
    """Whether it is a list of ints, or of floats, in which nothing else is."""
    cdef PyTypeObject* kind = NULL
    return _is_list(value) and _are_of(value, &kind, MAX_RANK)


cdef bint _are_of(PyObject* value, PyTypeObject** kind, int depth) noexcept:
    """Whether all numbers are of a kind, which the first one sets."""
    cdef Py_ssize_t i
    if PyList_CheckExact(<object>value):
        if depth == 0:
            return False
        for i in range(PyList_GET_SIZE(<object>value)):
            if not _are_of(PyList_GET_ITEM(<object>value, i), kind, depth - 1):
                return False
        return True
    if PyTuple_CheckExact(<object>value):
        if depth == 0:
            return False
        for i in range(PyTuple_GET_SIZE(<object>value)):
            if not _are_of(PyTuple_GET_ITEM(<object>value, i), kind, depth - 1):
                return False
        return True
    if kind[0] == NULL:
        kind[0] = Py_TYPE(<object>value)
    elif kind[0] != Py_TYPE(<object>value):
        return False
    return kind[0] == &PyFloat_Type or kind[0] == &PyLong_Type


cdef PyObject* _to_tensor(PyObject* value, DataType hint, PyObject* device_name) except? NULL:
    """An EagerTensor, or null with a Python exception.

    TensorFlow's fast path passes the device scope on, and where none is open runs an op that
    places the value. Without an accelerator the host is where it comes to lie in any case, but
    who watches sees that op.
    """
    cdef TFE_TensorHandle* handle
    cdef const char* device = PyUnicode_AsUTF8(device_name)
    cdef bint on_host = _runtime.only_host and device[0] == 0 and not Observed(_runtime)
    if not _is_number(value):
        if on_host:
            # Without a hint, an empty list has another dtype.
            if _is_vector(value) and (hint == DT_INT32 or hint == DT_INVALID and <object>value):
                return _vector(value)
            device = NULL
        handle = ConvertToEagerTensorUncached(wrap(_runtime.context), value, hint, device)
    else:
        # TensorFlow caches numbers by value and device, and to it 0.0 and -0.0 are one value:
        # zeros are looked up as it does, so as to find the same one.
        if on_host and <object>value != 0:
            device = _runtime.host_name
        handle = ConvertToEagerTensor(wrap(_runtime.context), value, hint, device)
    if handle == NULL:
        return NULL
    cdef PyObject* tensor = EagerTensorFromHandle(handle)
    if PyErr_Occurred() != NULL:  # of a number out of range, beside a tensor all the same
        Py_XDECREF(tensor)
        return NULL
    return tensor


cdef bint _is_vector(PyObject* value) noexcept:
    """Whether it is a short list of ints that fit into 32 bits: a shape, a permutation, axes."""
    cdef Py_ssize_t i
    if PyList_CheckExact(<object>value):
        if PyList_GET_SIZE(<object>value) > MAX_RANK:
            return False
        for i in range(PyList_GET_SIZE(<object>value)):
            if not _is_int32(PyList_GET_ITEM(<object>value, i)):
                return False
        return True
    if PyTuple_CheckExact(<object>value):
        if PyTuple_GET_SIZE(<object>value) > MAX_RANK:
            return False
        for i in range(PyTuple_GET_SIZE(<object>value)):
            if not _is_int32(PyTuple_GET_ITEM(<object>value, i)):
                return False
        return True
    return False


cdef bint _is_int32(PyObject* value) noexcept:
    cdef int overflow = 0
    cdef long long number
    if Py_TYPE(<object>value) != &PyLong_Type:
        return False
    number = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
    return overflow == 0 and number == <int32_t>number


cdef PyObject* _vector(PyObject* value) except? NULL:
    """The tensor of int32 for a short list of ints: programs use few of them, again and again."""
    cdef tuple key = tuple(<object>value)
    cdef PyObject* tensor = PyDict_GetItem(_vectors, key)
    if tensor != NULL:
        Py_INCREF(<object>tensor)
        return tensor
    cdef TFE_TensorHandle* handle = ConvertToEagerTensorUncached(
        wrap(_runtime.context), <PyObject*>key, DT_INT32, NULL
    )
    if handle == NULL:
        return NULL
    tensor = EagerTensorFromHandle(handle)
    if tensor != NULL:
        if len(_vectors) >= MAX_VECTORS:
            _vectors.clear()
        _vectors[key] = <object>tensor
        # It refers to nothing. Who asks the collector for tensors that are left over (tests of
        # TensorFlow's do) shall not find it.
        PyObject_GC_UnTrack(tensor)
    return tensor


cdef object constant(object value, DataType dtype):
    """What `tf.constant` makes of Python numbers, or None where that is for TensorFlow to say."""
    cdef PyObject* device_name = NULL
    cdef PyObject* tensor
    cdef TFE_TensorHandle* handle
    if (
        not _is_number(<PyObject*>value)
        and not _of_one_kind(<PyObject*>value)
        or _gate(&device_name) != R_DIRECT
        or Observed(_runtime)
    ):
        return None
    try:
        if _is_number(<PyObject*>value):
            tensor = _to_tensor(<PyObject*>value, dtype, device_name)
        elif not _runtime.only_host or <object>device_name != _NO_DEVICE:
            return None
        else:  # not `_vector`: no two constants are one tensor
            handle = ConvertToEagerTensorUncached(
                wrap(_runtime.context), <PyObject*>value, dtype, NULL
            )
            tensor = NULL
            if handle != NULL:
                tensor = EagerTensorFromHandle(handle)
    except Exception:  # TensorFlow will say what is wrong
        return None
    if PyErr_Occurred() != NULL:
        PyErr_Clear()
        Py_XDECREF(tensor)
        return None
    result = <object>tensor
    Py_DECREF(result)
    return result


cdef Op _read_op():
    global _read_variable
    if _read_variable is None:
        _read_variable = named("ReadVariableOp")
    return _read_variable


cdef int _tell_watchers(object variable) except -1:
    if variable._trainable is not False:
        TFE_Py_TapeVariableAccessed(<PyObject*>variable)
        TFE_Py_VariableWatcherVariableAccessed(<PyObject*>variable)
    return 0


cdef bint _read_unwrapped(object variable, PyObject* device_name, Frame* frame,
                          Thread* thread) except -1:
    """Reads a variable into the frame. False unless its kernel is prepared and no tape records."""
    cdef Op op = _read_op()
    cdef Entry entry = op.last
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef Frame handle_frame
    cdef Tensor value
    cdef uint64_t key
    cdef bint onednn = thread.options.onednn
    cdef bint ran
    if entry is None or frame.num_unwrapped == FRAME_UNWRAPPED:
        return False
    if recording():
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
    if not op.matches(entry, slots, device_name, &handle_frame, onednn):
        key = op.key(slots, device_name, &handle_frame, onednn)
        entry = None if key == 0 else op.find(key, slots, device_name, &handle_frame, onednn)
    if entry is None or entry.reason != R_DIRECT:
        return False
    if thread.recorder == NULL:
        ran = deref(entry.kernel).RunUnwrapped(handle_frame.tensors, &value, NULL)
    else:
        ran = _read_measured(op, entry, &handle_frame, &value, thread)
    if not ran:
        return False
    _tell_watchers(variable)
    op.calls_direct += 1
    frame.AddUnwrapped(move(value))
    return True


cdef bint _read_measured(Op op, Entry entry, Frame* frame, Tensor* value,
                         Thread* thread) except -1:
    cdef Measurement measured = Measurement.__new__(Measurement)
    cdef bint ran
    measured.begin(thread)
    ran = deref(entry.kernel).RunUnwrapped(frame.tensors, value, &measured.kernel_ns)
    measured.end(op if ran else None, thread)
    return ran


cdef object _read(object variable):
    """Reads a variable as TensorFlow's fast path does, telling tapes and watchers of it.

    None if it cannot be read: TensorFlow will say why.
    """
    _tell_watchers(variable)
    try:
        return _read_op()(resource=variable._handle, dtype=variable._dtype)
    except Exception:
        return None


# ---------------------------------------------------------------------------------------------
# The call
# ---------------------------------------------------------------------------------------------

cdef enum:
    INLINE_RESULTS = 16
    # Above this many input bytes a kernel runs without the GIL: taking it again costs 40 ns.
    GIL_BYTES = 4096


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
    return op.run(slots, &call)


cdef PyObject* _direct(Op op, Entry entry, Frame* frame, PyObject** slots,
                       Invocation* call) except NULL:
    cdef PyObject* inline_results[INLINE_RESULTS]
    cdef PyObject** results = inline_results
    cdef Status status
    cdef int64_t* kernel_ns = NULL
    cdef int code
    if call.measured != NULL:
        kernel_ns = &(<Measurement>call.measured).kernel_ns
    if entry.num_outputs > INLINE_RESULTS:
        results = <PyObject**>malloc(entry.num_outputs * sizeof(PyObject*))
        if results == NULL:
            raise MemoryError()
    try:
        code = deref(entry.kernel).Run(
            frame.tensors, op.unbounded or frame.bytes > GIL_BYTES, results, &status, kernel_ns
        )
        if code == 0:
            op.calls_direct += call.counts
            return op.finish(entry, frame, results)
    finally:
        if results != inline_results:
            free(results)
    if code < 0:
        return NULL  # the exception of EagerTensorFromHandle
    if not op.facts.stateful:
        return _tensorflow(op, call, R_KERNEL_ERROR, slots, entry)
    # What this kernel may have changed must not be changed again.
    op.calls_direct += call.counts
    prefix = _fallback.kernel_error_prefix(op.op_name).encode()
    return _raise(op, entry, slots, call, status, prefix)


cdef PyObject* _capi(Op op, Entry entry, Frame* frame, PyObject** slots, PyObject* device_name,
                     int reason, Invocation* call) except NULL:
    cdef PyObject* inline_results[INLINE_RESULTS]
    cdef PyObject** results = inline_results
    cdef Status status
    cdef int code
    op.calls_capi += call.counts
    op.calls_reason[reason] += call.counts
    _note(op, call, P_CAPI, reason, slots, entry)
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
            return op.finish(entry, frame, results)
    finally:
        if results != inline_results:
            free(results)
    if code < 0:
        return NULL  # the exception of EagerTensorFromHandle
    if not op.facts.stateful and reason == entry.reason:
        op.calls_capi -= call.counts
        op.calls_reason[reason] -= call.counts
        return _tensorflow(op, call, R_KERNEL_ERROR, slots, entry)
    # What it may have changed must not be changed again; who watches must not see it twice.
    return _raise(op, entry, slots, call, status, b"")


cdef PyObject* _tensorflow(Op op, Invocation* call, int reason, PyObject** slots,
                           Entry entry) except NULL:
    cdef Thread* thread = &ThisThread()
    cdef PyObject* before = thread.underway
    cdef PyObject* target = call.target
    cdef PyObject* result
    op.calls_tensorflow += call.counts
    op.calls_reason[reason] += call.counts
    _note(op, call, P_TENSORFLOW, reason, slots, entry)
    if target == NULL:
        if op.reference is None:
            op.reference = _fallback.reference(op.op_name)
        target = <PyObject*>op.reference
    thread.underway = <PyObject*>op
    _leave(call)
    result = PyObject_Vectorcall(target, call.args, call.nargsf, call.keywords)
    _come_back(call)
    thread.underway = before
    return result


cdef PyObject* _raise(Op op, Entry entry, PyObject** slots, Invocation* call,
                      const Status& status, bytes prefix) except NULL:
    """Raises what TensorFlow's generated function raises for an error status."""
    cdef PyObject* name = slots[op.num_params - 1]
    try:
        RaiseNotOk(status, prefix, op.op_name_bytes)
    except _NotOkStatusException as error:
        # Not what it should be: an interrupt came while it was made.
        if not isinstance(error, _NotOkStatusException):
            raise
        if not entry.dispatched:  # TFE_Py_Execute makes such calls, and tells no name
            raise _status_to_exception(error) from None
        if call.raises_status:
            raise
        raise_from_not_ok_status(error, None if name == NULL else <object>name)
    raise SystemError("an error status raised nothing")


cdef int _note(Op op, Invocation* call, int path, int reason, PyObject** slots,
               Entry entry) except -1:
    """Tells those who want to know that a call does not take the direct path."""
    cdef Measurement measured
    cdef OnFallback how = ThisThread().options.on_fallback
    if call.measured != NULL:
        measured = <Measurement>call.measured
        measured.path = path
        measured.reason = reason
        measured.detail = op.detail(reason, slots, entry)
    if how != kIgnore and call.counts and not _is_expected(reason):
        name, text = REASONS[reason]
        _fallback.report(
            op.op_name, PATHS[path], name, text, op.detail(reason, slots, entry),
            _ON_FALLBACK[<int>how],
        )
    return 0


# ---------------------------------------------------------------------------------------------
# Measuring calls, where a profile is open
# ---------------------------------------------------------------------------------------------

PATHS = ("direct", "capi", "tensorflow")

cdef enum:
    P_DIRECT = 0
    P_CAPI
    P_TENSORFLOW
    NUM_PATHS


@cython.final
@cython.freelist(16)
cdef class Measurement:
    """One call, while it is measured. What runs inside it is measured on its own."""
    cdef Measurement outer    # the measured call that this one is made in
    cdef Recorder recorder    # who is told
    cdef int path
    cdef int reason
    cdef str detail           # see Op.detail
    cdef tuple changes        # see Op.changes
    cdef int64_t start
    cdef int64_t left         # when the call went to TensorFlow
    cdef int64_t inside_left  # what `inside_ns` was then
    cdef int64_t inside_ns    # time in the measured calls inside
    cdef int64_t kernel_ns
    cdef int64_t tensorflow_ns

    cdef void begin(self, Thread* thread) noexcept:
        self.outer = <Measurement>thread.measurement if thread.measurement != NULL else None
        self.recorder = <Recorder>thread.recorder
        _put(&thread.measurement, self)
        self.start = Nanoseconds()

    cdef int end(self, Op op, Thread* thread) except -1:
        """Ends the measurement. None for an op: the call did not take place."""
        cdef int64_t now = Nanoseconds()
        cdef int64_t dispatch_ns
        cdef Recorder recorder = self.recorder
        _put(&thread.measurement, self.outer)
        dispatch_ns = now - self.start - self.inside_ns - self.kernel_ns - self.tensorflow_ns
        while op is not None and recorder is not None:
            recorder.add(op, self, dispatch_ns)
            recorder = recorder.outer
        # The time that this took belongs to nobody.
        recorder = self.recorder
        while recorder is not None:
            if recorder.thread == thread:
                recorder.inside_ns += Nanoseconds() - self.start - self.inside_ns
            recorder = recorder.outer
        if self.outer is not None:
            self.outer.inside_ns += Nanoseconds() - self.start
        return 0


cdef inline void _leave(Invocation* call) noexcept:
    """Notes that TensorFlow takes over."""
    cdef Measurement measured
    if call.measured != NULL:
        measured = <Measurement>call.measured
        measured.inside_left = measured.inside_ns
        measured.left = Nanoseconds()


cdef inline void _come_back(Invocation* call) noexcept:
    cdef Measurement measured
    if call.measured != NULL:
        measured = <Measurement>call.measured
        measured.tensorflow_ns += Nanoseconds() - measured.left
        measured.tensorflow_ns -= measured.inside_ns - measured.inside_left


@cython.final
cdef class Tally:
    """The calls of one op."""
    cdef long long calls[NUM_PATHS]
    cdef int64_t dispatch_ns
    cdef int64_t kernel_ns
    cdef int64_t tensorflow_ns
    cdef dict reasons         # (path, reason, detail, changes) -> number of calls


@cython.final
cdef class Recorder:
    """What the calls of a thread came to, from `open` to `close`.

    Recorders of one thread nest: a call is told to the innermost one, and to those around it.
    """
    cdef Recorder outer
    cdef Thread* thread       # the one that opened it; compared, never followed
    cdef bint is_open
    cdef int64_t start
    cdef int64_t stop
    cdef int64_t inside_ns    # time in calls on that thread, and in recording them
    cdef dict tallies         # op name -> Tally

    def __cinit__(self):
        self.tallies = {}

    def open(self, *, new_threads=False):
        """Begins. With `new_threads`, calls on threads that start later are recorded, too."""
        cdef Thread* thread = &ThisThread()
        _recording(thread)
        self.outer = <Recorder>thread.recorder if thread.recorder != NULL else None
        _put(&thread.recorder, self)
        if new_threads:
            _put(&DefaultThread().recorder, self)
        self.thread = thread
        self.is_open = True
        self.start = Nanoseconds()

    def close(self):
        """Ends, on whichever thread."""
        if self.is_open:
            self.stop = Nanoseconds()
            self.is_open = False
            _recording(&ThisThread())
            _recording(&DefaultThread())

    def times(self):
        """Nanoseconds since it was opened, and those of them spent in calls or their recording."""
        return (Nanoseconds() if self.is_open else self.stop) - self.start, self.inside_ns

    def calls(self):
        """By op name: calls by path, time in dispatch, kernel and TensorFlow, and the calls that
        were not direct by path, reason, detail and changes."""
        cdef Tally tally
        return {
            name: (
                tuple([tally.calls[i] for i in range(NUM_PATHS)]),
                tally.dispatch_ns,
                tally.kernel_ns,
                tally.tensorflow_ns,
                dict(tally.reasons),
            )
            for name, tally in list(self.tallies.items())
        }

    cdef int add(self, Op op, Measurement measured, int64_t dispatch_ns) except -1:
        cdef PyObject* found
        cdef Tally tally
        if not self.is_open:
            return 0
        found = PyDict_GetItem(self.tallies, op.op_name)
        if found == NULL:
            tally = Tally.__new__(Tally)
            tally.reasons = {}
            self.tallies[op.op_name] = tally
        else:
            tally = <Tally>found
        tally.calls[measured.path] += 1
        tally.dispatch_ns += dispatch_ns
        tally.kernel_ns += measured.kernel_ns
        tally.tensorflow_ns += measured.tensorflow_ns
        if measured.path != P_DIRECT:
            key = (PATHS[measured.path], REASONS[measured.reason][0], measured.detail,
                   measured.changes)
            tally.reasons[key] = tally.reasons.get(key, 0) + 1
        return 0


cdef bint _recording(Thread* thread) noexcept:
    """Whether calls are recorded for a thread. Lets go of recorders that were closed."""
    while thread.recorder != NULL and not (<Recorder>thread.recorder).is_open:
        _put(&thread.recorder, (<Recorder>thread.recorder).outer)
    return thread.recorder != NULL


cdef void _put(PyObject** place, object value) noexcept:
    """Puts an object, or for None nothing, where a thread keeps a reference."""
    cdef PyObject* before = place[0]
    place[0] = NULL
    if value is not None:
        Py_INCREF(value)
        place[0] = <PyObject*>value
    Py_XDECREF(before)


# ---------------------------------------------------------------------------------------------
# Settings, counters, cache: what `fastops` shows of this module
# ---------------------------------------------------------------------------------------------

_CHOICES_OF_PATH = ("auto", "direct", "capi", "tensorflow")
_ON_FALLBACK = ("ignore", "warn", "log", "raise")
_ONEDNN = ("off", "auto")


cdef Options* _options(bint default) noexcept:
    return &DefaultThread().options if default else &ThisThread().options


def get_options(*, default=False):
    """The settings of this thread (or those of a new one) as a dict of strings."""
    cdef Options* options = _options(default)
    return {
        "path": _CHOICES_OF_PATH[<int>options.path],
        "on_fallback": _ON_FALLBACK[<int>options.on_fallback],
        "onednn": _ONEDNN[options.onednn],
    }


def set_options(*, path, on_fallback, onednn, default=False):
    """Sets all settings of this thread (or those that new threads start with)."""
    cdef Options* options = _options(default)
    options.path = <Path><int>_CHOICES_OF_PATH.index(path)
    options.on_fallback = <OnFallback><int>_ON_FALLBACK.index(on_fallback)
    options.onednn = _ONEDNN.index(onednn)


def counters():
    """For each op that was called: its name, calls by path, and calls by reason."""
    cdef Op op
    cdef int i
    found = []
    for op in _ops:
        reasons = {REASONS[i][0]: op.calls_reason[i] for i in range(1, NUM_REASONS)
                   if op.calls_reason[i]}
        if op.calls_direct or reasons:
            found.append((op.op_name, op.calls_direct, op.calls_capi, op.calls_tensorflow,
                          reasons))
    return found


def reset_counters():
    """Sets all counters to zero."""
    cdef Op op
    for op in _ops:
        op.calls_direct = op.calls_capi = op.calls_tensorflow = 0
        memset(op.calls_reason, 0, NUM_REASONS * sizeof(long long))


def clear_cache():
    """Drops every prepared kernel and cached operation; the next calls make them anew."""
    _flush()


def cached_keys(Op op):
    """What is cached for an op: for each key whether its kernel is ready, or why it is not."""
    cdef Entry entry
    return [
        {
            "attrs": {
                name: value
                for name, value in zip(op.attr_names, entry.attrs)
                if value is not _MISSING
            },
            "signature": list(entry.signature),
            "device": entry.device_name,
            "onednn": bool(entry.onednn),
            "reason": None if entry.reason == R_DIRECT else REASONS[entry.reason][0],
            "detail": entry.detail,
        }
        for entry in op.table.values()
    ]


def cache_info():
    """The number of cached entries by op name, and the bound for each op."""
    cdef Op op
    entries = {}
    for op in _ops:
        if op.table:
            entries[op.op_name] = entries.get(op.op_name, 0) + len(op.table)
    return entries, _cache_size


def set_cache_size(size):
    """Sets how many entries an op may keep."""
    global _cache_size
    if type(size) is not int:
        raise TypeError(f"a cache size is an int, not {type(size).__name__}")
    if size < 1:
        raise ValueError(f"the cache of an op must hold at least 1 entry, not {size}")
    _cache_size = size
    _flush()


def direct_path_state():
    """Why no call can take the direct path at present, or None if it is open."""
    cdef PyObject* device = NULL
    cdef int reason
    if _unknown_kernels:
        return f"{UnknownKernels().decode()} is set: TensorFlow then runs kernels in another way"
    reason = _gate(&device)
    if reason == R_DIRECT:
        reason = R_ASYNC if Async(_runtime) else R_OBSERVED if Observed(_runtime) else R_DIRECT
    return None if reason == R_DIRECT else REASONS[reason][1]


def onednn_enabled():
    """Whether this TensorFlow replaces kernels by oneDNN's."""
    return OneDnnEnabled()


# ---------------------------------------------------------------------------------------------
# Measurement: the floors that a call is compared with
# ---------------------------------------------------------------------------------------------

@cython.final
cdef class CallFloor:
    """A callable that does nothing: what a keyword call costs before any work."""

    cdef vectorcall_t vectorcall

    def __cinit__(self):
        self.vectorcall = _call_floor


cdef PyObject* _call_floor(PyObject* callable, PyObject* const* args, size_t nargsf,
                           PyObject* keywords) except NULL:
    Py_INCREF(None)
    return Py_None


@cython.final
cdef class BareKernel:
    """A call's kernel without the call: computes and wraps, checks nothing.

    Parameters
    ----------
    op : Op
        An op whose call with these arguments takes the direct path.
    **arguments
        The arguments. Inputs must be EagerTensors (or lists of them) on the host.

    Raises
    ------
    ValueError
        If the call does not take the direct path.
    """

    cdef vectorcall_t vectorcall
    cdef Entry entry
    cdef list tensors  # keeps the inputs alive
    cdef Frame* frame
    cdef bint release_gil

    def __cinit__(self, Op op, **arguments):
        cdef PyObject* slots[FASTOPS_MAX_PARAMS]
        cdef long long before
        self.vectorcall = _call_bare
        self.frame = new Frame()
        op(**arguments)
        before = op.calls_direct
        op(**arguments)
        if op.calls_direct != before + 1:
            raise ValueError(f"{op.op_name} does not take the direct path with these arguments")
        self.entry = op.last
        self.tensors = list(arguments.values())
        memset(slots, 0, sizeof(slots))
        for name, value in arguments.items():
            slots[op.keywords.index(name)] = <PyObject*>value
        if op.collect(slots, self.frame) != R_DIRECT:
            raise ValueError("a bare kernel takes EagerTensors only")
        self.release_gil = op.unbounded or self.frame.bytes > GIL_BYTES

    def __dealloc__(self):
        del self.frame


cdef PyObject* _call_bare(PyObject* callable, PyObject* const* args, size_t nargsf,
                          PyObject* keywords) except NULL:
    cdef BareKernel self = <BareKernel>callable
    cdef PyObject* results[INLINE_RESULTS]
    cdef Status status
    cdef int i
    if self.entry.num_outputs > INLINE_RESULTS or deref(self.entry.kernel).Run(
        self.frame.tensors, self.release_gil, results, &status, NULL
    ) != 0:
        raise RuntimeError("the kernel failed")
    if self.entry.num_outputs == 1:
        return results[0]
    outputs = []
    for i in range(self.entry.num_outputs):
        outputs.append(<object>results[i])
        Py_DECREF(<object>results[i])
    Py_INCREF(outputs)
    return <PyObject*>outputs


cdef int _enable_vectorcall() except -1:
    cdef Op op = Op.__new__(Op, "")
    cdef CallFloor floor = CallFloor.__new__(CallFloor)
    EnableVectorcall(<PyTypeObject*>Op, <char*>&op.vectorcall - <char*><void*>op)
    EnableVectorcall(<PyTypeObject*>CallFloor, <char*>&floor.vectorcall - <char*><void*>floor)
    # Instances of one size and base keep their first field at one place.
    EnableVectorcall(<PyTypeObject*>BareKernel, <char*>&floor.vectorcall - <char*><void*>floor)
    return 0


_enable_vectorcall()
