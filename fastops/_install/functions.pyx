# distutils: language = c++
"""Stand-ins for public functions that TensorFlow writes in Python, such as `tf.reduce_sum`.

For plain arguments each of them comes down to one op, or a few. `fastops._install.public` says
which; where that depends on the arguments, a plan below chooses. All else is TensorFlow's own
function's.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport (
    PyTuple_CheckExact,
    PyTuple_GET_ITEM,
    PyTuple_GET_SIZE,
)
from cpython.unicode cimport PyUnicode_CheckExact
from libc.string cimport memset

from fastops._cpp.gradient cimport IntsOf, Sizes
from fastops._cpp.handle cimport HandleDtype, HostTensor, IsEagerTensor
from fastops._dispatch cimport (
    FASTOPS_MAX_PARAMS, Invocation, Op, begin, constant, eager, on_host, run,
)
from fastops._install.intercept cimport Generated, dtype_bits, promotes_no_dtypes, tensor_dtype
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._tf.eager cimport EagerTensor_Handle, recording
from fastops._tf.protos cimport DT_BOOL, DT_DOUBLE, DT_FLOAT, DT_INT32, DT_INVALID, DataType
from fastops._tf.tensor cimport Tensor

from tensorflow.core.config import flags as _tf_flags
from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.framework.tensor_shape import TensorShape
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.util._pywrap_determinism import is_enabled as _deterministic

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    PyTypeObject PyFloat_Type
    PyTypeObject PyLong_Type


cdef enum:
    MAX_PARAMS = 16
    MAX_KEPT = 4
    MAX_RANK = 8
    DTYPES = 64  # above are references, and nothing else
    NOWHERE = 255

cdef enum:  # what an argument must be
    ANY
    TENSOR
    VARIABLE
    EAGER
    BOOL
    INT
    FLOAT
    NONE
    KERAS
    OPERAND

KINDS = {
    "tensor": TENSOR,
    "variable": VARIABLE,
    "eager": EAGER,
    "bool": BOOL,
    "int": INT,
    "float": FLOAT,
    "none": NONE,
    "keras": KERAS,
    "operand": OPERAND,
}
"""By name, what an argument must be.

A tensor may be a variable, too; of Keras's functions ("keras"), or a variable of Keras's; and as an
operand, or a Python int or float.
"""

cdef enum:  # what a plan has come to
    DECLINED  # the call is TensorFlow's
    CHOSEN    # an op for the arguments as they now are
    DONE      # there is a result

# A call while it is planned.
cdef struct Draft:
    PyObject* values[MAX_PARAMS]  # the arguments: borrowed from the call, or kept
    int site
    PyObject* kept[MAX_KEPT]      # owned
    int num_kept
    PyObject* result              # owned

ctypedef int (*plan_t)(Function, Draft*) except -1

cdef PyTypeObject* _variable_type = <PyTypeObject*>ResourceVariable
cdef PyTypeObject* _keras_variable_type = NULL
cdef dict _keras_state = None
cdef tuple _KERAS_SCOPES = ("stateless_scope", "autocast_scope")
cdef object _DType = _dtypes.DType
cdef object _bool_dtype = _dtypes.bool
cdef object _float32_dtype = _dtypes.float32
cdef object _int32_dtype = _dtypes.int32
cdef object _int64_dtype = _dtypes.int64
cdef object _wide_shapes = _tf_flags.config().tf_shape_default_int64
cdef object _ZERO = 0
cdef tuple _MASKS = tuple(range(1 << MAX_RANK))
cdef unsigned long long _COMPLEX = dtype_bits([_dtypes.complex64, _dtypes.complex128])
cdef unsigned long long _INTEGERS = dtype_bits(
    getattr(_dtypes, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)
cdef unsigned long long _FLOATS = dtype_bits(
    [_dtypes.bfloat16, _dtypes.float16, _dtypes.float32, _dtypes.float64]
)
cdef unsigned long long _NUMERIC = _COMPLEX | _INTEGERS | _FLOATS
cdef unsigned long long _VALUES = _NUMERIC | dtype_bits([_dtypes.bool])


# ---------------------------------------------------------------------------------------------
# The call
# ---------------------------------------------------------------------------------------------

@cython.final
cdef class Site:
    """An op that a function may come down to, and where it takes the function's arguments.

    Parameters
    ----------
    op : Op
        The op.
    generated : tuple
        The module of its generated function, its name there, and TensorFlow's own: as long as that
        is there, it may be passed by.
    params : dict of str to str
        The op's parameters, and the function's that they are given.
    constants : dict of str to object
        Likewise for what is always the same.
    dtypes : iterable of tf.DType
        For which dtypes of the function's first tensor it is the right one; all, if empty.
    names : tuple of str
        The function's values: its parameters, and what its plan makes.
    """

    cdef Op op
    cdef dict namespace
    cdef str attribute
    cdef object generated
    cdef unsigned char slots[MAX_PARAMS]
    cdef tuple constants
    cdef unsigned char constant_slots[MAX_PARAMS]
    cdef unsigned long long dtypes

    def __init__(self, Op op not None, generated, params, constants, dtypes, names):
        cdef int i
        module, self.attribute, self.generated = generated
        self.namespace = module.__dict__
        self.op = op
        op.load()
        for i in range(MAX_PARAMS):
            self.slots[i] = NOWHERE
        for to, source in params.items():
            self.slots[<int>names.index(source)] = op.keywords.index(to)
        self.constants = tuple(constants.values())
        for i, name in enumerate(constants):
            self.constant_slots[i] = op.keywords.index(name)
        self.dtypes = dtype_bits(dtypes) if dtypes else 0

    cdef bint passable(self):
        """Whether nobody has put something else in the place of the generated function."""
        cdef PyObject* found = PyDict_GetItem(self.namespace, self.attribute)
        if found == <PyObject*>self.generated:
            return True
        return (
            found != NULL
            and isinstance(<object>found, Generated)
            and (<Generated>found).original is self.generated
        )

    cdef PyObject* run(self, PyObject** values, Py_ssize_t num_values,
                       Invocation* call) except NULL:
        cdef PyObject* slots[FASTOPS_MAX_PARAMS]
        cdef Py_ssize_t i
        memset(slots, 0, self.op.num_params * sizeof(PyObject*))
        for i in range(num_values):
            if self.slots[i] != NOWHERE:
                slots[self.slots[i]] = values[i]
        for i in range(PyTuple_GET_SIZE(self.constants)):
            slots[self.constant_slots[i]] = PyTuple_GET_ITEM(self.constants, i)
        return run(self.op, slots, call)


@cython.final
@cython.no_gc_clear
cdef class Function(Replacement):
    """In the place of a public function such as `tf.reduce_sum`.

    Parameters
    ----------
    original : callable
        TensorFlow's.
    names : tuple of str
        Its parameters, in their order.
    made : tuple of str
        What the plan makes beside them.
    defaults : tuple
        Values of the last of them.
    needs : dict of str to str
        What an argument must be, out of `KINDS`.
    sites : callable
        Makes the `Site`s, when it is first called.
    plan : str, optional
        What chooses among them, a name out of `PLANS`; not given, the dtype of the first tensor.
    handlers : list of dict
        What users have registered to handle calls of it.
    """

    cdef tuple names
    cdef int num_params
    cdef int num_values     # what the plan makes comes after the parameters
    cdef int num_required
    cdef int name_param
    cdef tuple defaults
    cdef unsigned char kinds[MAX_PARAMS]
    cdef int lead           # the first tensor, -1 if there is none
    cdef object make_sites
    cdef tuple sites
    cdef plan_t plan
    cdef tuple handlers
    cdef tuple num_handlers

    def __init__(self, original, *, names, defaults, needs, sites, plan=None, made=(),
                 handlers=()):
        super().__init__(original)
        self.names = names
        self.defaults = defaults
        self.num_params = len(names)
        self.num_values = len(names) + len(made)
        if self.num_values > MAX_PARAMS:
            raise ValueError(f"{original.__name__} has too many parameters")
        self.num_required = len(names) - len(defaults)
        self.name_param = names.index("name") if "name" in names else -1
        self.lead = -1
        for i, name in enumerate(names):
            self.kinds[<int>i] = KINDS[needs[name]] if name in needs else ANY
            if self.lead < 0 and self.kinds[<int>i] in (TENSOR, VARIABLE, EAGER, KERAS):
                self.lead = i
        self.make_sites = sites
        self.plan = _plan(plan)
        self.handlers = tuple(handlers)
        self.num_handlers = tuple([len(of) for of in handlers])
        self.vectorcall = _first_function

    cdef bint bind(self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   PyObject** values) except -1:
        """Puts the arguments of a call into their places. False if they do not fit."""
        cdef Py_ssize_t i, j
        cdef PyObject* keyword
        if n > self.num_params:
            return False
        for i in range(n):
            values[i] = args[i]
        for i in range(n, self.num_params):
            values[i] = NULL
        if keywords != NULL:
            for i in range(PyTuple_GET_SIZE(<object>keywords)):
                keyword = PyTuple_GET_ITEM(<object>keywords, i)
                for j in range(self.num_params):
                    if keyword == PyTuple_GET_ITEM(self.names, j):
                        break
                else:  # not interned, or unknown
                    for j in range(self.num_params):
                        if <object>keyword == self.names[j]:
                            break
                    else:
                        return False
                if values[j] != NULL:
                    return False
                values[j] = args[n + i]
        for i in range(self.num_params):
            if values[i] == NULL:
                if i < self.num_required:
                    return False
                values[i] = PyTuple_GET_ITEM(self.defaults, i - self.num_required)
        return True

    cdef bint fits(self, Draft* draft) except -1:
        """Whether the arguments are of the kinds that they must be.

        What a variable of Keras's holds takes its place.
        """
        cdef int i
        cdef PyObject** values = draft.values
        cdef PyObject* value
        for i in range(self.num_params):
            if self.kinds[i] == ANY:
                continue
            value = values[i]
            if self.kinds[i] == TENSOR:
                if not IsEagerTensor(value) and Py_TYPE(<object>value) != _variable_type:
                    return False
            elif self.kinds[i] == VARIABLE:
                if Py_TYPE(<object>value) != _variable_type:
                    return False
            elif self.kinds[i] == EAGER:
                if not IsEagerTensor(value):
                    return False
            elif self.kinds[i] == BOOL:
                if value != Py_True and value != Py_False:
                    return False
            elif self.kinds[i] == INT:
                if Py_TYPE(<object>value) != &PyLong_Type:
                    return False
            elif self.kinds[i] == FLOAT:
                if Py_TYPE(<object>value) != &PyFloat_Type:
                    return False
            elif self.kinds[i] == KERAS or self.kinds[i] == OPERAND:
                if self.kinds[i] == OPERAND and _is_number(value):
                    continue
                if Py_TYPE(<object>value) == _keras_variable_type:
                    value = values[i] = _held(draft, <object>value)
                if not IsEagerTensor(value) and Py_TYPE(<object>value) != _variable_type:
                    return False
            elif value != Py_None:
                return False
        if self.name_param >= 0:
            value = values[self.name_param]
            if value != Py_None and not PyUnicode_CheckExact(<object>value):
                return False
        for i in range(<int>PyTuple_GET_SIZE(self.handlers)):
            if len(<dict>self.handlers[i]) != self.num_handlers[i]:
                return False
        return True

    cdef int choose(self, Draft* draft) except -1:
        """The plan of functions that run one op, by the dtype of their first tensor."""
        cdef int i
        cdef Site site
        cdef unsigned long long dtype = 0
        if self.lead >= 0:
            dtype = (<unsigned long long>1) << tensor_dtype(draft.values[self.lead])
        for i in range(<int>PyTuple_GET_SIZE(self.sites)):
            site = self.sites[i]
            if site.dtypes == 0 or site.dtypes & dtype:
                draft.site = i
                return CHOSEN
        return DECLINED


cdef PyObject* _first_function(PyObject* callable, PyObject* const* args, size_t nargsf,
                               PyObject* keywords) except NULL:
    cdef Function self = <Function>callable
    if not live:
        return call_original(self, args, nargsf, keywords)
    try:
        self.sites = tuple(self.make_sites())
        self.vectorcall = _function
    except Exception:  # a call of the user's is no place to learn of it
        self.vectorcall = _never
    return self.vectorcall(callable, args, nargsf, keywords)


cdef PyObject* _never(PyObject* callable, PyObject* const* args, size_t nargsf,
                      PyObject* keywords) except NULL:
    return call_original(<Replacement>callable, args, nargsf, keywords)


cdef PyObject* _function(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    cdef Function self = <Function>callable
    cdef Invocation call
    cdef Draft draft
    cdef Site site
    cdef int outcome, i
    if not live or not self.bind(args, PyVectorcall_NARGS(nargsf), keywords, draft.values):
        return call_original(self, args, nargsf, keywords)
    draft.site = 0
    draft.num_kept = 0
    draft.result = NULL
    try:
        try:
            if not self.fits(&draft) or not promotes_no_dtypes():
                outcome = DECLINED
            else:
                outcome = self.choose(&draft) if self.plan == NULL else self.plan(self, &draft)
        except Exception:  # TensorFlow will say what is wrong
            outcome = DECLINED
        if outcome == DONE:
            return draft.result
        if outcome == CHOSEN:
            site = self.sites[draft.site]
            if site.passable():
                begin(&call, <PyObject*>self.original, args, nargsf, keywords)
                return site.run(draft.values, self.num_values, &call)
    finally:
        for i in range(draft.num_kept):
            Py_DECREF(<object>draft.kept[i])
    return call_original(self, args, nargsf, keywords)


# ---------------------------------------------------------------------------------------------
# What plans are made of
# ---------------------------------------------------------------------------------------------

cdef inline PyObject* _keep(Draft* draft, object value) noexcept:
    """Keeps a value until the call ends."""
    Py_INCREF(value)
    draft.kept[draft.num_kept] = <PyObject*>value
    draft.num_kept += 1
    return <PyObject*>value


cdef inline int _done(Draft* draft, object result) noexcept:
    Py_INCREF(result)
    draft.result = <PyObject*>result
    return DONE


cdef inline bint _is_number(PyObject* value) noexcept:
    return Py_TYPE(<object>value) == &PyFloat_Type or Py_TYPE(<object>value) == &PyLong_Type


cdef PyObject* _held(Draft* draft, object variable) except NULL:
    """What a variable of Keras's holds; None where a scope gives it another value."""
    tracker = _keras_state["GLOBAL_STATE_TRACKER"]
    for scope in _KERAS_SCOPES:
        if getattr(tracker, scope, None) is not None:
            return Py_None
    return _keep(draft, variable._value)


cdef int _rank(PyObject* tensor) except -2:
    """The rank of an EagerTensor or a variable, -1 if that is not known."""
    cdef const Tensor* value
    if IsEagerTensor(tensor):
        value = HostTensor(tensor)
        return -1 if value == NULL else value.dims()
    dims = (<object>tensor)._shape._dims
    return -1 if dims is None else <int>len(dims)


cdef bint _int32(PyObject* value, long long* number) except -1:
    """Whether it is a Python int of 32 bits."""
    cdef int overflow = 0
    if Py_TYPE(<object>value) != &PyLong_Type:
        return False
    number[0] = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
    return overflow == 0 and -(1 << 31) <= number[0] < <long long>1 << 31


cdef list _UPWARDS = [tuple(range(rank)) for rank in range(MAX_RANK + 1)]
cdef list _DOWNWARDS = [tuple(range(rank - 1, -1, -1)) for rank in range(MAX_RANK + 1)]


cdef bint _of_tensors(PyObject* values, Py_ssize_t least):
    """Whether it is a list or tuple of eager tensors."""
    cdef Py_ssize_t i
    if PyList_CheckExact(<object>values):
        if PyList_GET_SIZE(<object>values) < least:
            return False
        for i in range(PyList_GET_SIZE(<object>values)):
            if not IsEagerTensor(PyList_GET_ITEM(<object>values, i)):
                return False
        return True
    if not PyTuple_CheckExact(<object>values) or PyTuple_GET_SIZE(<object>values) < least:
        return False
    for i in range(PyTuple_GET_SIZE(<object>values)):
        if not IsEagerTensor(PyTuple_GET_ITEM(<object>values, i)):
            return False
    return True


cdef object _base_dtype(object value):
    """The `tf.DType` that TensorFlow takes a value for. Raises TypeError if there is none."""
    if type(value) is not _DType:
        value = _dtypes.as_dtype(value)
    return value if value._type_enum < DTYPES else value.base_dtype


cdef object _dimensions(object shape):
    """A static shape as a tuple of 32-bit ints, or None for what is none."""
    cdef long long number
    if type(shape) is TensorShape:
        shape = (<object>shape)._dims
    if type(shape) is not tuple and type(shape) is not list or len(shape) > MAX_RANK:
        return None
    for size in shape:
        if not _int32(<PyObject*>size, &number) or number < 0:
            return None
    return tuple(shape)


cdef bint _may_run(Function self) except -1:
    """Whether a plan may run ops itself: in a graph, nodes have names that are not the op's."""
    cdef Site site
    if not eager():
        return False
    for site in self.sites:
        if not site.passable():
            return False
    return True


cdef inline Op _op(Function self, Py_ssize_t i):
    return (<Site>PyTuple_GET_ITEM(self.sites, i)).op


cdef bint _same_shape(object x, object y):
    cdef const Tensor* one = HostTensor(<PyObject*>x)
    cdef const Tensor* other = HostTensor(<PyObject*>y)
    return one != NULL and other != NULL and one.IsSameSize(other[0])


# ---------------------------------------------------------------------------------------------
# Plans; the first line of each has the function's parameters
# ---------------------------------------------------------------------------------------------

cdef int _reduction(Function self, Draft* draft) except -1:
    # input_tensor, axis, keepdims
    cdef int rank
    if draft.values[1] == Py_None:
        rank = _rank(draft.values[0])
        if not 0 <= rank <= MAX_RANK:
            return DECLINED
        draft.values[1] = PyList_GET_ITEM(_UPWARDS, rank)
    draft.site = 0
    return CHOSEN


cdef int _arg_reduction(Function self, Draft* draft) except -1:
    # input, axis, output_type
    cdef long long axis
    if draft.values[1] == Py_None:
        draft.values[1] = <PyObject*>_ZERO
    elif not _int32(draft.values[1], &axis):
        return DECLINED
    return CHOSEN


cdef int _transpose(Function self, Draft* draft) except -1:
    # a, perm, conjugate
    cdef int rank
    if draft.values[2] == Py_True:
        return DECLINED
    if draft.values[1] == Py_None:
        rank = _rank(draft.values[0])
        if not 0 <= rank <= MAX_RANK:
            return DECLINED
        draft.values[1] = PyList_GET_ITEM(_DOWNWARDS, rank)
    return CHOSEN


cdef int _concat(Function self, Draft* draft) except -1:
    # values, axis
    return CHOSEN if _of_tensors(draft.values[0], 2) else DECLINED


cdef int _add_n(Function self, Draft* draft) except -1:
    # inputs
    return CHOSEN if _of_tensors(draft.values[0], 2) else DECLINED


cdef int _stack(Function self, Draft* draft) except -1:
    # values, axis
    return CHOSEN if _of_tensors(draft.values[0], 1) else DECLINED


cdef int _unstack(Function self, Draft* draft) except -1:
    # value, num, axis
    cdef const Tensor* value = HostTensor(draft.values[0])
    cdef long long axis
    if draft.values[1] != Py_None:
        return CHOSEN if Py_TYPE(<object>draft.values[1]) == &PyLong_Type else DECLINED
    if value == NULL or not _int32(draft.values[2], &axis):
        return DECLINED
    if axis < 0:
        axis += value.dims()
    if not 0 <= axis < value.dims():
        return DECLINED
    draft.values[1] = _keep(draft, value.dim_size(<int>axis))
    return CHOSEN


cdef int _split(Function self, Draft* draft) except -1:
    # value, num_or_size_splits, axis, num
    cdef long long number
    if _int32(draft.values[1], &number):
        return CHOSEN
    sizes = <object>draft.values[1]
    if draft.values[3] != Py_None or not sizes or _dimensions(sizes) is None:
        return DECLINED
    sizes = constant(sizes, DT_INT32)
    if sizes is None:
        return DECLINED
    draft.values[3] = _keep(draft, len(<object>draft.values[1]))
    draft.values[1] = _keep(draft, sizes)
    draft.site = 1
    return CHOSEN


cdef int _squeeze(Function self, Draft* draft) except -1:
    # input, axis
    cdef PyObject* axis = draft.values[1]
    if Py_TYPE(<object>axis) == &PyLong_Type:
        draft.values[1] = _keep(draft, [<object>axis])
    elif axis != Py_None and type(<object>axis) is not list and type(<object>axis) is not tuple:
        return DECLINED
    return CHOSEN


cdef int _gather(Function self, Draft* draft) except -1:
    # params, indices, validate_indices, axis, batch_dims
    cdef long long axis
    if draft.values[3] == Py_None:
        draft.values[3] = draft.values[4]
    if not _int32(draft.values[3], &axis):
        return DECLINED
    draft.site = 1 if axis == 0 else 0  # the first axis has no batches
    return CHOSEN


cdef int _gather_nd(Function self, Draft* draft) except -1:
    # params, indices, batch_dims, name, bad_indices_policy
    if <object>draft.values[2] != 0 or type(<object>draft.values[4]) is not str:
        return DECLINED
    return CHOSEN if <object>draft.values[4] == "" else DECLINED


cdef int _where(Function self, Draft* draft) except -1:
    # condition, x, y
    cdef PyObject** values = draft.values
    if values[1] != Py_None and values[2] != Py_None:
        if (
            _are_alike(values) and not recording() and on_host()
            and (<Site>self.sites[0]).passable()
        ):
            draft.site = 2
        return CHOSEN
    if values[1] != values[2] or not IsEagerTensor(values[0]):
        return DECLINED
    draft.site = 1
    return CHOSEN


cdef bint _are_alike(PyObject** values) except -1:
    """Whether three tensors, of which the first is a condition, leave nothing to broadcast.

    SelectV2 takes most of its time to find out how; Select takes these, and no others.
    """
    cdef const Tensor* condition = HostTensor(values[0])
    cdef const Tensor* x = HostTensor(values[1])
    cdef const Tensor* y = HostTensor(values[2])
    return (
        condition != NULL and x != NULL and y != NULL
        and condition.dims() > 0  # of scalars it returns one itself
        and condition.IsSameSize(x[0]) and condition.IsSameSize(y[0])
        and condition.dtype() == DT_BOOL
        and x.dtype() == y.dtype() and (<unsigned long long>1) << <int>x.dtype() & _VALUES
    )


cdef int _cast(Function self, Draft* draft) except -1:
    # x, dtype
    cdef unsigned long long dtype = tensor_dtype(draft.values[0])
    to = _base_dtype(<object>draft.values[1])
    if <int>to._type_enum == <int>dtype:
        return _done(draft, <object>draft.values[0])
    if ((<unsigned long long>1) << dtype) & _COMPLEX and to.is_floating:
        return DECLINED  # TensorFlow warns
    draft.values[1] = _keep(draft, to)
    return CHOSEN


cdef int _matmul(Function self, Draft* draft) except -1:
    # a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, a_is_sparse, b_is_sparse
    cdef PyObject** values = draft.values
    cdef int dtype = tensor_dtype(values[0])
    cdef int rank_a = _rank(values[0]), rank_b = _rank(values[1])
    cdef int i
    if dtype != tensor_dtype(values[1]) or rank_a < 0 or rank_b < 0:
        return DECLINED
    if values[6] == Py_True or values[7] == Py_True:
        return DECLINED
    for i in range(2, 4):
        if values[2 + i] == Py_True:
            if values[i] == Py_True:
                return DECLINED
            values[i] = Py_True
        # Of complex numbers, one way of turning conjugates.
        if values[i] == Py_True and ((<unsigned long long>1) << dtype) & _COMPLEX:
            return DECLINED
    draft.site = 1 if rank_a > 2 or rank_b > 2 else 0
    return CHOSEN


cdef int _pad(Function self, Draft* draft) except -1:
    # tensor, paddings, mode, constant_values
    if Py_TYPE(<object>draft.values[3]) != &PyLong_Type or <object>draft.values[3] != 0:
        return DECLINED
    return CHOSEN if <object>draft.values[2] == "CONSTANT" else DECLINED


cdef int _last_axis(Function self, Draft* draft) except -1:
    # logits, axis
    cdef long long axis
    if draft.values[1] == Py_None:
        return CHOSEN
    if not _int32(draft.values[1], &axis):
        return DECLINED
    return CHOSEN if axis == -1 or axis == _rank(draft.values[0]) - 1 else DECLINED


cdef int _sparse_cross_entropy(Function self, Draft* draft) except -1:
    # labels, logits
    cdef const Tensor* labels = HostTensor(draft.values[0])
    cdef const Tensor* logits = HostTensor(draft.values[1])
    if (
        labels == NULL or logits == NULL or labels.dims() != 1 or logits.dims() != 2
        or labels.dim_size(0) != logits.dim_size(0)
        or logits.dtype() != DT_FLOAT and logits.dtype() != DT_DOUBLE
        or _deterministic() or not _may_run(self)
    ):
        return DECLINED
    made = _op(self, 0)(features=<object>draft.values[1], labels=<object>draft.values[0])
    return _done(draft, made[0])  # the other is for the gradient


cdef int _round(Function self, Draft* draft) except -1:
    # x
    cdef unsigned long long dtype = (<unsigned long long>1) << tensor_dtype(draft.values[0])
    if dtype & _INTEGERS:
        return _done(draft, <object>draft.values[0])
    return self.choose(draft)


cdef int _stop_gradient(Function self, Draft* draft) except -1:
    # input
    return DECLINED if recording() else self.choose(draft)


cdef int _shape(Function self, Draft* draft) except -1:
    # input, out_type
    if draft.values[1] == Py_None:
        if _wide_shapes.value():
            return DECLINED
        draft.values[1] = <PyObject*>_int32_dtype
    return CHOSEN if type(<object>draft.values[1]) is _DType else DECLINED


cdef int _size(Function self, Draft* draft) except -1:
    # input, out_type
    cdef const Tensor* value = HostTensor(draft.values[0])
    if value == NULL or value.NumElements() >= <long long>1 << 31:
        return DECLINED
    if draft.values[1] != Py_None and <object>draft.values[1] is not _int32_dtype:
        return DECLINED
    if draft.values[1] == Py_None and _wide_shapes.value():
        return DECLINED
    return _number(draft, value.NumElements())


cdef int _rank_of(Function self, Draft* draft) except -1:
    # input
    cdef const Tensor* value = HostTensor(draft.values[0])
    return DECLINED if value == NULL else _number(draft, value.dims())


cdef int _number(Draft* draft, object number) except -1:
    tensor = constant(number, DT_INT32)
    return DECLINED if tensor is None else _done(draft, tensor)


cdef int _range(Function self, Draft* draft) except -1:
    # start, limit, delta, dtype
    cdef long long number
    if draft.values[1] == Py_None:
        draft.values[1] = draft.values[0]
        draft.values[0] = <PyObject*>_ZERO
    for i in range(3):
        if not _int32(draft.values[<int>i], &number):
            return DECLINED
    return CHOSEN


cdef int _one_hot(Function self, Draft* draft) except -1:
    # indices, depth, on_value, off_value, axis, dtype
    cdef unsigned long long dtype
    to = _float32_dtype
    if draft.values[5] != Py_None:
        to = <object>draft.values[5]
        if type(to) is not _DType:
            return DECLINED
    dtype = <int>to._type_enum
    if dtype >= DTYPES or not ((<unsigned long long>1) << dtype) & _NUMERIC:
        return DECLINED
    one, zero = constant(1, <DataType><int>dtype), constant(0, <DataType><int>dtype)
    if one is None or zero is None:
        return DECLINED
    draft.values[2] = _keep(draft, one)
    draft.values[3] = _keep(draft, zero)
    return CHOSEN


cdef int _zeros(Function self, Draft* draft) except -1:
    # shape, dtype
    return _filled(self, draft, 0, True)


cdef int _ones(Function self, Draft* draft) except -1:
    # shape, dtype
    return _filled(self, draft, 1, False)


cdef int _filled(Function self, Draft* draft, object number, bint zeros) except -1:
    cdef unsigned long long dtype
    dims = _dimensions(<object>draft.values[0])
    to = _base_dtype(<object>draft.values[1])
    dtype = <int>to._type_enum
    if dims is None or not _may_run(self):
        return DECLINED
    if to is _bool_dtype:
        number = bool(number)
    elif not ((<unsigned long long>1) << dtype) & _NUMERIC:
        return DECLINED
    value = constant(number, <DataType><int>dtype)
    if value is None:
        return DECLINED
    result = _op(self, 0)(dims=dims, value=value)
    if zeros:
        result._is_zeros_tensor = True  # TensorFlow's gradients know them by it
    return _done(draft, result)


cdef int _zeros_like(Function self, Draft* draft) except -1:
    # input, dtype
    if _like(self, draft) == DECLINED or not _may_run(self):
        return DECLINED
    result = _op(self, 0)(x=<object>draft.values[0])
    result._is_zeros_tensor = True
    return _done(draft, result)


cdef int _like(Function self, Draft* draft) except -1:
    # input, dtype
    if draft.values[1] != Py_None:
        to = <object>draft.values[1]
        if type(to) is not _DType or to._type_enum != tensor_dtype(draft.values[0]):
            return DECLINED
    return self.choose(draft)


cdef int _clip(Function self, Draft* draft) except -1:
    # t, clip_value_min, clip_value_max
    if not _may_run(self):
        return DECLINED
    tensor = <object>draft.values[0]
    low = _op(self, 0)(x=tensor, y=<object>draft.values[2])
    if not _same_shape(tensor, low):
        return DECLINED
    high = _op(self, 1)(x=low, y=<object>draft.values[1])
    return _done(draft, high) if _same_shape(tensor, high) else DECLINED


cdef int _logical_xor(Function self, Draft* draft) except -1:
    # x, y
    if not _may_run(self):
        return DECLINED
    x, y = <object>draft.values[0], <object>draft.values[1]
    either = _op(self, 0)(x=x, y=y)
    both = _op(self, 1)(x=x, y=y)
    return _done(draft, _op(self, 1)(x=either, y=_op(self, 2)(x=both)))


cdef int _random_normal(Function self, Draft* draft) except -1:
    # shape, mean, stddev, dtype, seed
    cdef DataType dtype
    shape = _dimensions(<object>draft.values[0])
    to = <object>draft.values[3]
    if shape is None or type(to) is not _DType or not _unseeded() or not _may_run(self):
        return DECLINED
    dtype = <DataType><int>to._type_enum
    mean = constant(<object>draft.values[1], dtype)
    stddev = constant(<object>draft.values[2], dtype)
    if mean is None or stddev is None:
        return DECLINED
    drawn = _op(self, 0)(shape=constant(shape, DT_INT32), dtype=to)
    return _done(draft, _op(self, 2)(x=_op(self, 1)(x=drawn, y=stddev), y=mean))


cdef int _random_uniform(Function self, Draft* draft) except -1:
    # shape, minval, maxval, dtype, seed
    cdef DataType dtype
    shape = _dimensions(<object>draft.values[0])
    to = <object>draft.values[3]
    low, high = <object>draft.values[1], <object>draft.values[2]
    if shape is None or type(to) is not _DType or not _unseeded() or not _may_run(self):
        return DECLINED
    dtype = <DataType><int>to._type_enum
    shape = constant(shape, DT_INT32)
    if to is _float32_dtype and type(low) is int and low == 0 and high is None:
        return _done(draft, _op(self, 0)(shape=shape, dtype=to))
    if to is not _int32_dtype and to is not _int64_dtype:
        return DECLINED
    low, high = constant(low, dtype), constant(high, dtype)
    if low is None or high is None:
        return DECLINED
    return _done(draft, _op(self, 1)(shape=shape, minval=low, maxval=high))


cdef bint _unseeded():
    """Whether random ops have no seed, and need none."""
    return _tf_context._context._seed is None and not _deterministic()


cdef int _constant(Function self, Draft* draft) except -1:
    # value, dtype, shape
    cdef DataType dtype = DT_INVALID
    if draft.values[1] != Py_None:
        to = <object>draft.values[1]
        if type(to) is not _DType:
            to = _dtypes.as_dtype(to)
        if to._type_enum >= DTYPES:
            return DECLINED
        dtype = <DataType><int>to._type_enum
    if IsEagerTensor(draft.values[0]):
        if dtype == DT_INVALID or dtype == HandleDtype(EagerTensor_Handle(draft.values[0])):
            return _done(draft, <object>draft.values[0])
        return DECLINED
    tensor = constant(<object>draft.values[0], dtype)
    return DECLINED if tensor is None else _done(draft, tensor)


cdef int _convert(Function self, Draft* draft) except -1:
    # value, dtype
    cdef PyObject* value = draft.values[0]
    # Lists are another matter: users may have registered conversions of them.
    if (
        IsEagerTensor(value)
        or Py_TYPE(<object>value) == &PyFloat_Type
        or Py_TYPE(<object>value) == &PyLong_Type
    ):
        return _constant(self, draft)
    return DECLINED


cdef int _convert_hinted(Function self, Draft* draft) except -1:
    # value, dtype, dtype_hint
    if draft.values[2] != Py_None and not IsEagerTensor(draft.values[0]):
        return DECLINED
    return _convert(self, draft)


cdef int _boolean_mask(Function self, Draft* draft) except -1:
    # tensor, mask, axis
    cdef long long axis = 0
    if draft.values[2] != Py_None and not _int32(draft.values[2], &axis):
        return DECLINED
    return _masked(self, 0, draft, <object>draft.values[0], <object>draft.values[1], axis)


cdef int _masked(Function self, Py_ssize_t first, Draft* draft, object tensor, object mask,
                 long long axis) except -1:
    """Takes the elements of a tensor for which a mask is true, by the ops from `first` on."""
    cdef const Tensor* value = HostTensor(<PyObject*>tensor)
    cdef const Tensor* chosen = HostTensor(<PyObject*>mask)
    cdef long long size = 1
    cdef int i, rank
    if value == NULL or chosen == NULL or chosen.dtype() != DT_BOOL or not _may_run(self):
        return DECLINED
    rank = chosen.dims()
    if rank == 0 or axis < 0 or axis + rank > value.dims():
        return DECLINED
    for i in range(rank):
        if chosen.dim_size(i) != value.dim_size(<int>axis + i):
            return DECLINED
        size *= chosen.dim_size(i)
    sizes = [value.dim_size(i) for i in range(value.dims())]
    sizes[axis:axis + rank] = [size]
    tensor = _op(self, first)(tensor=tensor, shape=sizes)
    mask = _op(self, first)(tensor=mask, shape=[-1])
    indices = _op(self, first + 2)(input=_op(self, first + 1)(condition=mask), axis=[1])
    return _done(draft, _op(self, first + 3)(params=tensor, indices=indices, axis=axis))


cdef object _index(object item, int* dtype):
    """An int for what stands for one in an index: itself, or a tensor's only element.

    None for tensors of another dtype than those before: TensorFlow packs them, and refuses.
    """
    cdef Sizes values
    cdef const Tensor* value
    if not IsEagerTensor(<PyObject*>item):
        return item
    value = HostTensor(<PyObject*>item)
    if value == NULL or value.dims() != 0 or not IntsOf(value[0], &values):
        return None
    if dtype[0] != DT_INVALID and dtype[0] != <int>value.dtype():
        return None
    dtype[0] = <int>value.dtype()
    return values[0]


cdef int _getitem(Function self, Draft* draft) except -1:
    # tensor, slice_spec, var
    cdef Py_ssize_t i
    cdef long long number
    cdef int begin_mask = 0, end_mask = 0
    cdef int ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0
    cdef int dtype = DT_INVALID
    if _tf_ops._numpy_style_slicing:
        return DECLINED
    spec = <object>draft.values[1]
    if type(spec) is not tuple and type(spec) is not list:
        if IsEagerTensor(draft.values[1]) and tensor_dtype(draft.values[1]) == DT_BOOL:
            return _masked(self, 1, draft, <object>draft.values[0], spec, 0)
        spec = (spec,)
    if not 0 < len(spec) <= MAX_RANK:
        return DECLINED
    begins, ends, strides = [], [], []
    for i, item in enumerate(spec):
        start, stop, step = 0, 0, 1
        if type(item) is slice:
            start, stop, step = item.start, item.stop, item.step
            if start is None:
                start = 0
                begin_mask |= 1 << i
            if stop is None:
                stop = 0
                end_mask |= 1 << i
            if step is None:
                step = 1
            start, stop, step = [_index(bound, &dtype) for bound in (start, stop, step)]
        elif item is Ellipsis:
            ellipsis_mask |= 1 << i
        elif item is None:
            new_axis_mask |= 1 << i
        else:
            start = _index(item, &dtype)
            if not _int32(<PyObject*>start, &number):
                return DECLINED
            stop = number + 1
            shrink_axis_mask |= 1 << i
        begins.append(start)
        ends.append(stop)
        strides.append(step)
    for part in (begins, ends, strides):
        for start in part:
            if not _int32(<PyObject*>start, &number):
                return DECLINED
    draft.values[3] = _keep(draft, begins)
    draft.values[4] = _keep(draft, ends)
    draft.values[5] = _keep(draft, strides)
    draft.values[6] = PyTuple_GET_ITEM(_MASKS, begin_mask)
    draft.values[7] = PyTuple_GET_ITEM(_MASKS, end_mask)
    draft.values[8] = PyTuple_GET_ITEM(_MASKS, ellipsis_mask)
    draft.values[9] = PyTuple_GET_ITEM(_MASKS, new_axis_mask)
    draft.values[10] = PyTuple_GET_ITEM(_MASKS, shrink_axis_mask)
    return CHOSEN


cdef int _matmul_operator(Function self, Draft* draft) except -1:
    # x, y; then what else `tf.matmul` has
    cdef int i
    for i in range(2, 8):
        draft.values[i] = Py_False
    return _matmul(self, draft)


# ---------------------------------------------------------------------------------------------
# Plans of Keras's functions, where its rules leave dtypes as they are
# ---------------------------------------------------------------------------------------------

def attach(keras):
    """Finds in Keras what the plans look for.

    Parameters
    ----------
    keras : module
        ``keras.src``.
    """
    global _keras_variable_type, _keras_state
    _keras_variable_type = <PyTypeObject*>keras.backend.Variable
    _keras_state = keras.backend.common.global_state.__dict__


cdef int _operands(Function self, Draft* draft) except -1:
    # x1, x2
    cdef int dtype = -1, i
    cdef unsigned long long bit
    cdef Site site
    for i in range(2):
        if _is_number(draft.values[i]):
            continue
        if dtype >= 0 and tensor_dtype(draft.values[i]) != dtype:
            return DECLINED
        dtype = tensor_dtype(draft.values[i])
    if dtype < 0:
        return DECLINED
    bit = (<unsigned long long>1) << dtype
    for i in range(2):
        if Py_TYPE(<object>draft.values[i]) == &PyFloat_Type and not bit & _FLOATS:
            return DECLINED
        # Beside a variable, an op would not take its dtype.
        if _is_number(draft.values[i]) and not IsEagerTensor(draft.values[1 - i]):
            number = constant(<object>draft.values[i], <DataType>dtype)
            if number is None:
                return DECLINED
            draft.values[i] = _keep(draft, number)
    for i in range(<int>PyTuple_GET_SIZE(self.sites)):
        site = self.sites[i]
        if bit & site.dtypes:
            draft.site = i
            return CHOSEN
    return DECLINED


cdef int _keras_add(Function self, Draft* draft) except -1:
    # x1, x2
    cdef int outcome = _operands(self, draft)
    cdef const Tensor* x
    cdef long long size
    if outcome == DECLINED or _is_number(draft.values[1]):
        return outcome
    # What may be a bias is added as one.
    size = _bias_size(draft.values[1])
    if size < 0:
        return outcome
    if not IsEagerTensor(draft.values[0]):
        return outcome if _is_number(draft.values[0]) or _rank(draft.values[0]) < 2 else DECLINED
    x = HostTensor(draft.values[0])
    if x == NULL:
        return DECLINED
    if x.dims() < 2:
        return outcome
    if x.dim_size(x.dims() - 1) != size:
        return DECLINED if x.dim_size(1) == size else outcome
    draft.site = 1
    if _rank(draft.values[1]) != 1:
        if not IsEagerTensor(draft.values[1]) or not _may_run(self):
            return DECLINED
        draft.values[1] = _keep(draft, _op(self, 2)(input=<object>draft.values[1]))
    return outcome


cdef long long _bias_size(PyObject* tensor) except -2:
    """The one size that is more than one, -1 if there is not exactly one."""
    cdef const Tensor* value
    cdef long long found = -1
    cdef int i
    if IsEagerTensor(tensor):
        value = HostTensor(tensor)
        sizes = () if value == NULL else tuple([value.dim_size(i) for i in range(value.dims())])
    else:
        sizes = (<object>tensor)._shape._dims
    for size in sizes:
        if size is None or size > 1:
            if found >= 0 or size is None:
                return -1
            found = size
    return found


cdef int _keras_matmul(Function self, Draft* draft) except -1:
    # x1, x2
    if (
        tensor_dtype(draft.values[0]) != tensor_dtype(draft.values[1])
        or _rank(draft.values[0]) != 2
        or _rank(draft.values[1]) != 2
    ):
        return DECLINED
    return self.choose(draft)


cdef int _keras_reduction(Function self, Draft* draft) except -1:
    # x, axis, keepdims
    if self.choose(draft) == DECLINED:
        return DECLINED
    return _reduction(self, draft)


cdef int _keras_cast(Function self, Draft* draft) except -1:
    # x, dtype
    cdef object to = <object>draft.values[1]
    cdef PyObject* found
    if type(to) is not _DType:
        found = PyDict_GetItem(_KERAS_DTYPES, to) if type(to) is str else NULL
        if found == NULL:
            return DECLINED
        to = <object>found
    if not IsEagerTensor(draft.values[0]):
        if Py_TYPE(<object>draft.values[0]) != &PyFloat_Type or to is not _float32_dtype:
            return DECLINED
        number = constant(<object>draft.values[0], <DataType><int>to._type_enum)
        return DECLINED if number is None else _done(draft, number)
    draft.values[1] = <PyObject*>to
    return _cast(self, draft)


cdef int _keras_convert(Function self, Draft* draft) except -1:
    # x, dtype
    cdef PyObject* x = draft.values[0]
    if draft.values[1] != Py_None:
        return _keras_cast(self, draft)
    if IsEagerTensor(x) or Py_TYPE(<object>x) == _keras_variable_type:
        return _done(draft, <object>x)
    return DECLINED


cdef dict _KERAS_DTYPES = {
    dtype.name: dtype
    for dtype in map(_dtypes.as_dtype, (
        "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
    ).split())
}


cdef plan_t _plan(str name) except? NULL:
    """The plan of a name."""
    if name is None:
        return NULL
    if name == "reduction":
        return _reduction
    if name == "arg_reduction":
        return _arg_reduction
    if name == "transpose":
        return _transpose
    if name == "concat":
        return _concat
    if name == "add_n":
        return _add_n
    if name == "stack":
        return _stack
    if name == "unstack":
        return _unstack
    if name == "split":
        return _split
    if name == "squeeze":
        return _squeeze
    if name == "gather":
        return _gather
    if name == "gather_nd":
        return _gather_nd
    if name == "where":
        return _where
    if name == "cast":
        return _cast
    if name == "matmul":
        return _matmul
    if name == "pad":
        return _pad
    if name == "last_axis":
        return _last_axis
    if name == "sparse_cross_entropy":
        return _sparse_cross_entropy
    if name == "round":
        return _round
    if name == "stop_gradient":
        return _stop_gradient
    if name == "shape":
        return _shape
    if name == "size":
        return _size
    if name == "rank_of":
        return _rank_of
    if name == "range":
        return _range
    if name == "one_hot":
        return _one_hot
    if name == "zeros":
        return _zeros
    if name == "ones":
        return _ones
    if name == "zeros_like":
        return _zeros_like
    if name == "like":
        return _like
    if name == "clip":
        return _clip
    if name == "logical_xor":
        return _logical_xor
    if name == "random_normal":
        return _random_normal
    if name == "random_uniform":
        return _random_uniform
    if name == "constant":
        return _constant
    if name == "convert":
        return _convert
    if name == "convert_hinted":
        return _convert_hinted
    if name == "boolean_mask":
        return _boolean_mask
    if name == "getitem":
        return _getitem
    if name == "matmul_operator":
        return _matmul_operator
    if name == "operands":
        return _operands
    if name == "keras_add":
        return _keras_add
    if name == "keras_matmul":
        return _keras_matmul
    if name == "keras_reduction":
        return _keras_reduction
    if name == "keras_cast":
        return _keras_cast
    if name == "keras_convert":
        return _keras_convert
    raise ValueError(f"there is no plan {name}")


enable(Function)
