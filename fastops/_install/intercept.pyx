# distutils: language = c++
"""Stand-ins for the callables through which TensorFlow runs one op.

They replace the dispatch call of all generated functions, the generated functions themselves, and
the operators of tensors and variables.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.string cimport memset

from fastops._core cimport draws
from fastops._core.conversion cimport array_dtype, is_numpy
from fastops._core.holders cimport held, is_holder
from fastops._core.locals cimport promotes_no_dtypes
from fastops._core.tensors cimport handle_dtype
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport (
    Py_False,
    Py_True,
    PyFloat_Type,
    PyLong_Type,
    PyVectorcall_NARGS,
)
from fastops._dispatch cimport (
    FASTOPS_MAX_PARAMS, Invocation, Op, begin, run_elsewhere, run_op,
)
from fastops._specialize.guards.names cimport Guard, holds
from fastops._install.replacement cimport (
    Replacement, call_original, enable, live, take_calls,
)
from fastops._tf.protos cimport DT_DOUBLE, DT_FLOAT

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework.tensor import Tensor as _Tensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable


from fastops._install.lookups import READS, of_piece


cdef PyTypeObject* _variable_type = <PyTypeObject*>_ResourceVariable
cdef Guard _reads = of_piece(READS)
cdef dict _contexts = _tf_context.__dict__
cdef str _CONTEXT = "_context"


# ---------------------------------------------------------------------------------------------
# The dispatch call of all generated functions
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class FastPathExecute(Replacement):
    """Stand-in for ``pywrap_tfe.TFE_Py_FastPathExecute``.

    Parameters
    ----------
    original : callable
        TensorFlow's function.
    find : callable
        Returns the `Op` for an op's name, or `None` if the op is not handled.
    """

    cdef object find
    cdef dict ops

    def __init__(self, original, find):
        super().__init__(original)
        self.find = find
        self.ops = {}
        self.vectorcall = _fast_path_execute


cdef PyObject* _fast_path_execute(PyObject* callable, PyObject* const* args, size_t nargsf,
                                  PyObject* keywords) except NULL:
    # args: context, op name, node name, *inputs, *(attribute name, attribute value) pairs
    cdef FastPathExecute self = <FastPathExecute>callable
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    cdef PyObject* stored
    cdef Op op
    cdef Invocation call
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef Py_ssize_t i, j, first
    if (
        keywords != NULL
        or n < 3
        or not PyUnicode_CheckExact(<object>args[1])
        or args[0] != PyDict_GetItem(_contexts, _CONTEXT)
        or not live
    ):
        return call_original(self, args, nargsf, keywords)
    stored = PyDict_GetItem(self.ops, <object>args[1])
    if stored == NULL:
        try:
            op = self.find(<object>args[1])
        except Exception:  # never surface errors of fastops's own set-up in a user's call
            return call_original(self, args, nargsf, keywords)
        if op is not None and not load(op):
            op = None
        self.ops[<object>args[1]] = op
    else:
        op = <Op>stored
    if op is None:
        return call_original(self, args, nargsf, keywords)
    begin(&call, <PyObject*>self.original, args, nargsf, keywords)
    if op.never:
        return run_elsewhere(op, &call)
    first = 3 + op.num_inputs
    if n < first or (n - first) % 2:
        return call_original(self, args, nargsf, keywords)
    memset(slots, 0, op.num_params * sizeof(PyObject*))
    for i in range(op.num_inputs):
        slots[op.input_slots[i]] = args[3 + i]
    slots[op.num_params - 1] = args[2]
    for i in range((n - first) // 2):
        j = _attribute(op, <object>args[first + 2 * i], i)
        if j < 0:
            return call_original(self, args, nargsf, keywords)
        slots[op.attr_slots[j]] = args[first + 2 * i + 1]
    call.raises_status = True
    if op.num_binding and op.is_bound(slots) and not (op.seeded and draws.live):
        return run_elsewhere(op, &call)
    return run_op(op, slots, &call)


cdef Py_ssize_t _attribute(Op op, object name, Py_ssize_t guess) except -2:
    """Return the index of an attribute in the op's attributes; -1 if the op does not have it."""
    cdef Py_ssize_t i
    if guess < op.num_attrs and name is op.attr_names[guess]:
        return guess
    for i in range(op.num_attrs):
        if name == op.attr_names[i]:
            return i
    return -1


# ---------------------------------------------------------------------------------------------
# Generated functions
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class Generated(Replacement):
    """Stand-in for the generated function of an op, such as ``gen_math_ops.add_v2``.

    Parameters
    ----------
    original : callable
        TensorFlow's function.
    op : Op
        The op. Its parameters have the same order as those of the function.
    keyword_only : bool
        Whether all arguments must be named, as in `tf.raw_ops`.
    """

    def __init__(self, original, Op op not None, *, keyword_only=False):
        super().__init__(original)
        self.op = op
        self.keyword_only = keyword_only
        self.vectorcall = _first_generated


cdef PyObject* _first_generated(PyObject* callable, PyObject* const* args, size_t nargsf,
                                PyObject* keywords) except NULL:
    """Handle the first call: load the op, and find out whether it may run in a private kernel."""
    cdef Generated self = <Generated>callable
    if not live:
        return call_original(self, args, nargsf, keywords)
    take_calls(self, _original_call)
    if load(self.op):
        # An op that never runs here is counted by `FastPathExecute`, which its function calls.
        take_calls(self, _original_call if self.op.never else _generated)
    return self.vectorcall(callable, args, nargsf, keywords)


cdef bint load(Op op) noexcept:
    """Make an op callable. Return False if that fails."""
    try:
        op.load()
    except Exception:  # never surface errors of fastops's own set-up in a user's call
        return False
    return True


cdef PyObject* _original_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                              PyObject* keywords) except NULL:
    return call_original(<Replacement>callable, args, nargsf, keywords)


cdef PyObject* _generated(PyObject* callable, PyObject* const* args, size_t nargsf,
                          PyObject* keywords) except NULL:
    cdef Generated self = <Generated>callable
    cdef Op op = self.op
    cdef Py_ssize_t i, n = PyVectorcall_NARGS(nargsf)
    cdef Invocation call
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    if (
        not live
        or not promotes_no_dtypes()  # TensorFlow wraps some of these functions to promote dtypes
        or n > (0 if self.keyword_only else op.num_params)
        or not op.bind(args + n, keywords, slots)
    ):
        return call_original(self, args, nargsf, keywords)
    for i in range(n):
        if slots[i] != NULL:  # the argument is also given by name
            return call_original(self, args, nargsf, keywords)
        slots[i] = args[i]
    begin(&call, <PyObject*>self.original, args, nargsf, keywords)
    if op.num_binding and op.is_bound(slots) and not (op.seeded and draws.live):
        return run_elsewhere(op, &call)
    return run_op(op, slots, &call)


# ---------------------------------------------------------------------------------------------
# Operators
# ---------------------------------------------------------------------------------------------

cdef unsigned long long dtype_bits(dtypes) except? 0:
    cdef unsigned long long bits = 0
    for dtype in dtypes:
        bits |= (<unsigned long long>1) << <int>dtype.as_datatype_enum
    return bits


@cython.final
@cython.no_gc_clear
cdef class Operator(Replacement):
    """Stand-in for an operator of ``tf.Tensor`` or ``tf.Variable``, such as ``__add__``.

    Both operands must have the same dtype. One exception: a float32 tensor also takes a NumPy array
    or scalar of float64, except in comparisons. The second operand may be a variable in place of a
    tensor. The first one may be a variable if this is an operator of ``tf.Variable``.

    Parameters
    ----------
    original : callable
        TensorFlow's method, which takes the tensor first.
    ops : dict of tf.DType to Op
        The op to run, by the dtype of the tensor. Other dtypes fall back to TensorFlow.
    arity : {1, 2}
        Number of operands.
    attrs : dict of str to object
        Attributes of the op.
    floats, ints, bools : iterable of tf.DType
        The dtypes of tensors that may have a Python float, int or bool as the other operand.
    reflected : bool
        Whether the tensor is the second operand.
    compares : bool
        Whether this is ``__eq__`` or ``__ne__``: ``tf.Tensor`` must then be set to compare by
        value.
    of_variables : bool
        Whether the first operand is a variable.
    """

    cdef dict ops
    cdef PyObject* by_dtype[DTYPES]  # borrowed from `ops`
    cdef int arity
    cdef dict attrs
    cdef unsigned long long floats
    cdef unsigned long long ints
    cdef unsigned long long bools
    cdef bint reflected
    cdef bint compares
    cdef bint of_variables

    def __init__(self, original, ops, *, arity=2, attrs=None, floats=(), ints=(), bools=(),
                 reflected=False, compares=False, of_variables=False):
        cdef Op op
        super().__init__(original)
        self.ops = {int(dtype.as_datatype_enum): op for dtype, op in ops.items()}
        for number, op in self.ops.items():
            op.load()
            self.by_dtype[<int>number] = <PyObject*>op
        self.arity = arity
        self.attrs = attrs
        self.floats = dtype_bits(floats)
        self.ints = dtype_bits(ints)
        self.bools = dtype_bits(bools)
        self.reflected = reflected
        self.compares = compares
        self.of_variables = of_variables
        self.vectorcall = _operator


cdef PyObject* _operator(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    cdef Operator self = <Operator>callable
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef Invocation call
    cdef PyObject* stored
    cdef PyObject* other
    cdef Op op
    cdef unsigned long long numbers
    cdef PyObject* operands[2]
    cdef int dtype, made, i
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != self.arity
        or not (_is_read(args[0]) if self.of_variables else IsEagerTensor(args[0]))
        or not live
    ):
        return call_original(self, args, nargsf, keywords)
    dtype = tensor_dtype(args[0])
    stored = self.by_dtype[dtype] if dtype < DTYPES else NULL
    if (
        stored == NULL
        or not promotes_no_dtypes()
        or self.compares and _Tensor._USE_EQUALITY is not True
    ):
        return call_original(self, args, nargsf, keywords)
    operands[0] = args[0]
    own = None
    if self.arity == 2:
        other = args[1]
        if is_holder(other):
            own = held(<object>other)
            other = <PyObject*>own
        operands[1] = other
        if IsEagerTensor(other) or _is_read(other):
            if tensor_dtype(other) != dtype:
                return call_original(self, args, nargsf, keywords)
        elif is_numpy(other):
            # TensorFlow casts more dtypes: here it is only float64 to float32.
            made = <int>array_dtype(other)
            if made != dtype and (
                self.compares or made != <int>DT_DOUBLE or dtype != <int>DT_FLOAT
            ):
                return call_original(self, args, nargsf, keywords)
        else:
            numbers = 0
            if Py_TYPE(<object>other) == &PyFloat_Type:
                numbers = self.floats
            elif Py_TYPE(<object>other) == &PyLong_Type:
                numbers = self.ints
            elif other == Py_True or other == Py_False:
                numbers = self.bools
            if not (numbers >> dtype) & 1:
                return call_original(self, args, nargsf, keywords)
    op = <Op>stored
    memset(slots, 0, op.num_params * sizeof(PyObject*))
    for i in range(self.arity):
        slots[op.input_slots[i]] = operands[1 - i if self.reflected else i]
    if self.attrs is not None:
        for i in range(op.num_attrs):
            slots[op.attr_slots[i]] = PyDict_GetItem(self.attrs, op.attr_names[i])
    begin(&call, <PyObject*>self.original, args, nargsf, keywords)
    return run_op(op, slots, &call)


cdef inline bint _is_read(PyObject* value) noexcept:
    """Whether a value is a variable, and TensorFlow's way to read variables is unchanged."""
    return Py_TYPE(<object>value) == _variable_type and holds(_reads)


cdef int tensor_dtype(PyObject* value) except -1:
    """Return the number of the dtype of an EagerTensor or a variable."""
    if IsEagerTensor(value):
        return <int>handle_dtype(value)
    return (<object>value)._dtype._type_enum


for _kind in (FastPathExecute, Generated, Operator):
    enable(_kind)
