# distutils: language = c++
"""Stand-ins for public functions that TensorFlow writes in Python, such as `tf.reduce_sum`.

For plain arguments, such a function is lowered to one op or a few ops. The tables in `functions`
and `methods` name the ops. If they depend on the arguments, a *lowering* chooses the op, or runs
ops itself. The lowerings are in the other modules of this package, by family. All other calls fall
back to TensorFlow's own function.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.string cimport memset

from fastops._core.conversion cimport array_dtype, is_numpy
from fastops._core.holders cimport held, is_holder
from fastops._core.locals cimport promotes_no_dtypes
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.opdef cimport InputArg, kSingle
from fastops._cpp.python cimport (
    Py_False,
    Py_None,
    Py_True,
    PyFloat_Type,
    PyLong_Type,
    PyObject_Vectorcall,
    PyVectorcall_NARGS,
)
from fastops._dispatch cimport (
    FASTOPS_MAX_PARAMS, Invocation, Op, begin, constant, run_op,
)
from fastops._install.intercept cimport Generated, dtype_bits, tensor_dtype
from fastops._situation cimport EAGERLY, missing
from fastops._specialize.guards.names cimport Guard, holds
from fastops._install.replacement cimport (
    Replacement, call_original, enable, live, take_calls,
)
from fastops._tf.protos cimport DT_INVALID

from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._install.lookups import READS, of_piece


cdef enum:
    NOWHERE = 255

cdef enum:  # kinds of arguments: see `KINDS`
    ANY
    TENSOR
    VARIABLE
    EAGER
    BOOL
    INT
    FLOAT
    NONE
    CONVERTED
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
    "converted": CONVERTED,
    "keras": KERAS,
    "operand": OPERAND,
}
"""The kinds of arguments, by name.

- "tensor": an EagerTensor, a `tf.Variable`, or a NumPy array.
- "converted": also a Keras variable, since the function first converts the argument to a tensor.
- "variable": a `tf.Variable`.
- "eager": an EagerTensor or a NumPy array.
- "keras": an EagerTensor, a `tf.Variable` or a Keras variable, in functions of Keras.
- "operand": like "keras", or a Python int or float.
- "bool", "int", "float" and "none": exactly this Python type.
"""


cdef PyTypeObject* _variable_type = <PyTypeObject*>ResourceVariable
cdef Guard _reads = of_piece(READS)


@cython.final
cdef class Site:
    """An op that a function may run, with the sources of the op's arguments.

    Parameters
    ----------
    op : Op
        The op.
    generated : tuple
        The module of the op's generated function, its name there, and TensorFlow's own function. If
        the attribute still holds that function, the op may be run without it.
    params : dict of str to str
        By parameter of the op, the parameter of the function whose value it gets.
    constants : dict of str to object
        By parameter of the op, a constant value.
    dtypes : iterable of tf.DType
        The dtypes of the function's first tensor for which to choose this op; empty for all.
    names : tuple of str
        The names of the function's values: its parameters, and the values that the lowering makes.
    """

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
        """Whether the generated function is unpatched, or replaced by fastops only."""
        cdef PyObject* current = PyDict_GetItem(self.namespace, self.attribute)
        if current == <PyObject*>self.generated:
            return True
        return (
            current != NULL
            and isinstance(<object>current, Generated)
            and (<Generated>current).original is self.generated
        )

    cdef int source(self, int i) noexcept:
        """Return the index of the function's value that is input `i` of the op; -1 for none."""
        cdef int j
        for j in range(MAX_PARAMS):
            if self.slots[j] == self.op.input_slots[i]:
                return j
        return -1

    cdef bint keeps_dtypes(self, Draft* draft) except -1:
        """Whether each copied array has the dtype that TensorFlow would convert it to.

        TensorFlow may cast an array to the dtype that the op requires, or to the dtype of another
        input.
        """
        cdef int i, j, k
        cdef int dtype
        cdef bint told
        cdef PyObject* value
        cdef InputArg* arg
        for i in range(self.op.num_inputs):
            j = self.source(i)
            if j < 0 or not (draft.copies >> j) & 1:
                continue
            arg = &self.op.facts.inputs[i]
            if arg.kind != kSingle:
                return False
            dtype = tensor_dtype(draft.values[j])
            if arg.fixed != DT_INVALID:
                if <int>arg.fixed != dtype:
                    return False
                continue
            told = False
            for k in range(self.op.num_inputs):
                if k == i or self.op.facts.inputs[k].attr != arg.attr:
                    continue
                j = self.source(k)
                if j < 0:
                    return False
                value = draft.values[j]
                if not is_tensor(value):
                    if not is_number(value) and (
                        not is_numpy(value) or <int>array_dtype(value) != dtype
                    ):
                        return False
                elif tensor_dtype(value) != dtype:
                    return False
                elif not (draft.copies >> j) & 1:
                    told = True
            if arg.fallback != DT_INVALID and <int>arg.fallback != dtype and not told:
                return False
        return True

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
        return run_op(self.op, slots, call)


@cython.final
@cython.no_gc_clear
cdef class Lowering(Replacement):
    """Stand-in for a public function such as `tf.reduce_sum`.

    Parameters
    ----------
    original : callable
        TensorFlow's function.
    names : tuple of str
        Its parameters, in order.
    made : tuple of str
        The names of the values that the lowering makes, beside the parameters.
    defaults : tuple
        The default values of the last parameters.
    needs : dict of str to str
        By parameter, the kind of argument that it must get, from `KINDS`.
    sites : callable
        Makes the `Site`s. It is called once, at the first call of the stand-in.
    lowering : str, optional
        The name of the lowering that chooses a site. Without one, the dtype of the first tensor
        chooses.
    handlers : list of dict
        The dispatch handlers that users have registered for the function.
    beyond : callable, optional
        Handles calls that are not lowered, in place of the original.
    always : bool, default False
        Whether it also works while nothing is installed. True for a stand-in that is used
        directly and patched in nowhere.
    """

    def __init__(self, original, *, names, defaults, needs, sites, lowering=None, made=(),
                 handlers=(), beyond=None, always=False):
        super().__init__(original)
        self.always = always
        self.beyond = original if beyond is None else beyond
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
            if self.lead < 0 and self.kinds[<int>i] in (TENSOR, CONVERTED, VARIABLE, EAGER, KERAS):
                self.lead = i
        self.make_sites = sites
        if lowering is not None:
            self.lowering = find(lowering)
        self.handlers = tuple(handlers)
        self.num_handlers = tuple([len(of) for of in handlers])
        self.vectorcall = _first_function

    cdef bint bind(self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   PyObject** values) except -1:
        """Bind the arguments of a call to the parameters. Return False if they do not fit."""
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
                else:  # the name is not interned, or unknown
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
        """Whether the arguments are of the required kinds.

        This replaces a Keras variable by the variable in it, and an array by a tensor. TensorFlow's
        function would first do the same, since it converts its arguments to tensors.
        """
        cdef int i
        cdef PyObject** values = draft.values
        cdef PyObject* value
        for i in range(self.num_params):
            if self.kinds[i] == ANY:
                continue
            value = values[i]
            if self.kinds[i] >= CONVERTED and is_holder(value):
                value = values[i] = keep(draft, held(<object>value))
            if self.kinds[i] == TENSOR or self.kinds[i] == CONVERTED:
                if not is_tensor(value) and not copied(draft, i):
                    return False
            elif self.kinds[i] == VARIABLE:
                if Py_TYPE(<object>value) != _variable_type or not holds(_reads):
                    return False
            elif self.kinds[i] == EAGER:
                if not IsEagerTensor(value) and not copied(draft, i):
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
                if self.kinds[i] == OPERAND and is_number(value):
                    continue
                if not is_tensor(value):
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
        """Choose the site by the dtype of the first tensor: the default lowering."""
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
        return NOT_LOWERED


cdef inline PyObject* call_beyond(object beyond, PyObject* const* args, size_t nargsf,
                                  PyObject* keywords) except NULL:
    return PyObject_Vectorcall(<PyObject*>beyond, args, nargsf, keywords)


cdef PyObject* _first_function(PyObject* callable, PyObject* const* args, size_t nargsf,
                               PyObject* keywords) except NULL:
    cdef Lowering self = <Lowering>callable
    if not live and not self.always:
        return call_original(self, args, nargsf, keywords)
    try:
        self.sites = tuple(self.make_sites())
        take_calls(self, _function)
    except Exception:  # never surface errors of fastops's own set-up in a user's call
        take_calls(self, _never)
    return self.vectorcall(callable, args, nargsf, keywords)


cdef PyObject* _never(PyObject* callable, PyObject* const* args, size_t nargsf,
                      PyObject* keywords) except NULL:
    return call_original(<Replacement>callable, args, nargsf, keywords)


cdef PyObject* _function(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    cdef Lowering self = <Lowering>callable
    cdef Invocation call
    cdef Draft draft
    cdef Site site
    cdef int outcome, i
    if (
        not live and not self.always
        or not self.bind(args, PyVectorcall_NARGS(nargsf), keywords, draft.values)
    ):
        return call_original(self, args, nargsf, keywords)
    draft.site = 0
    draft.copies = 0
    draft.num_kept = 0
    draft.result = NULL
    try:
        try:
            if not self.fits(&draft) or not promotes_no_dtypes():
                outcome = NOT_LOWERED
            elif self.lowering == NULL:
                outcome = self.choose(&draft)
            else:
                outcome = self.lowering(self, &draft)
        except Exception:  # TensorFlow will raise the error
            outcome = NOT_LOWERED
        if outcome == DONE:
            return draft.result
        if outcome == CALLING:
            return _called(<object>draft.result, draft.unpacked)
        if outcome == RAISING:
            error = <object>draft.result
            Py_DECREF(error)  # the reference that the draft owned
            raise error
        if outcome == CHOSEN:
            site = self.sites[draft.site]
            if site.passable() and (draft.copies == 0 or site.keeps_dtypes(&draft)):
                begin(&call, <PyObject*>self.original, args, nargsf, keywords)
                return site.run(draft.values, self.num_values, &call)
    finally:
        for i in range(draft.num_kept):
            Py_DECREF(<object>draft.kept[i])
    return call_beyond(self.beyond, args, nargsf, keywords)


cdef PyObject* _called(object function, int unpacked) except NULL:
    """Call the function of a draft. Its errors reach the user."""
    callee = function
    Py_DECREF(callee)  # the reference that the draft owned
    result = callee()
    while unpacked and isinstance(result, (list, tuple)) and len(result) == 1:
        result = result[0]
        unpacked -= 1
    Py_INCREF(result)
    return <PyObject*>result


# ---------------------------------------------------------------------------------------------
# Functions for lowerings
# ---------------------------------------------------------------------------------------------

cdef dict _lowerings = {}  # by name, the address of the lowering


cdef int register(str name, lowering_t lowering) except -1:
    """Register a lowering under the name that the tables use for it."""
    if name in _lowerings:
        raise ValueError(f"there are two lowerings {name}")
    _lowerings[name] = <size_t>lowering
    return 0


cdef lowering_t find(str name) except NULL:
    """Return the lowering with a name."""
    if name not in _lowerings:
        raise ValueError(f"there is no lowering {name}")
    return <lowering_t><size_t>_lowerings[name]


cdef bint copied(Draft* draft, int i) except -1:
    """Replace an array by a tensor. Return False if it is no array, or only TensorFlow can."""
    cdef PyObject* value = draft.values[i]
    if not is_numpy(value):
        return False
    tensor = constant(<object>value, DT_INVALID)
    if tensor is None:
        return False
    draft.values[i] = keep(draft, tensor)
    draft.copies |= <unsigned int>1 << i
    return True


cdef bint is_tensor(PyObject* value) noexcept:
    return IsEagerTensor(value) or (
        Py_TYPE(<object>value) == _variable_type and holds(_reads)
    )


cdef bint may_run(Lowering self) except -1:
    """Whether a lowering may run ops itself.

    Not in a graph, because the names of nodes would differ; nor if a generated function is patched.
    """
    cdef Site site
    if missing(EAGERLY):
        return False
    for site in self.sites:
        if not site.passable():
            return False
    return True


enable(Lowering)
