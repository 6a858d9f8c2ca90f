# distutils: language = c++
"""Stand-in for calls of `tf.Variable`, for programs that make many variables of one kind.

TensorFlow's constructors enter some ten scopes around an op and an assignment. The result is a set
of attributes of the variable and of its handle. Two variables from the same arguments differ only
in the handle and its number, and in the name scope in which they are made. So TensorFlow makes the
first two variables of a kind. If they differ in nothing else, they become the template for later
ones (`fastops._specialize.learned`).

An initial value may be a function. It is called where TensorFlow calls it: within the name scope of
the variable, and with tapes stopped. The variable is then made as if the result had been given.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libcpp.vector cimport vector

from fastops._core.conversion cimport has_default_conversion, is_list, is_numpy
from fastops._core.locals cimport default_graph, has_scopes, is_ordinary
from fastops._core.tensors cimport handle_dtype, host_tensor
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.dicts cimport InstanceDict
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._install.replacement cimport Replacement, call_original, live, replacing
from fastops._situation cimport IN_ORDER, NO_PROMOTION, ONLY_HOST, missing
from fastops._specialize.learned cimport Learned, LearnedByKind
from fastops._specialize.policy cimport MAX_VARIABLE_KINDS, MIN_ALIKE_VARIABLES
from fastops._specialize.states cimport ACTIVE
from fastops._tf.eager cimport TFE_Py_TapeSetRestartOnThread, TFE_Py_TapeSetStopOnThread
from fastops._tf.protos cimport DT_RESOURCE, DT_VARIANT

cdef extern from *:
    """
    // Whether this thread is in a call of TensorFlow's that makes a variable. TensorFlow makes the
    // `ResourceVariable` of a `tf.Variable` in a second call, which is not counted.
    static thread_local bool making = false;
    """
    bint making

import functools
import types
import weakref

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.framework.cpp_shape_inference_pb2 import CppShapeInferenceResult
from tensorflow.python.framework.dtypes import DType as _DType
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape
from tensorflow.python.ops import (
    gen_resource_variable_ops as _gen,
    resource_variable_ops as _resource_variable_ops,
    variables as _variables,
)
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable
from tensorflow.python.ops.variables import Variable as _Variable
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsStopped as _tapes_are_stopped
from tensorflow.python.trackable.base import CheckpointInitialValue as _CheckpointInitialValue

from fastops._specialize.signatures import SCALARS

cdef object _HandleData = CppShapeInferenceResult.HandleData
cdef object _reference = weakref.ref

# Types that the arguments and attributes of variables may have if there is to be a template.
cdef frozenset _OPTIONS = frozenset([
    type(None), bool, str, _DType, _variables.VariableSynchronization,
    _variables.VariableAggregation, _variables.VariableAggregationV2,
])

cdef object _initialize = _ResourceVariable.__init__
cdef object _create = _resource_variable_ops.default_variable_creator_v2
cdef object _create_default = _variables.default_variable_creator_v2

# The types of initial values besides tensors, arrays, and lists of these.
cdef frozenset _PLAIN = frozenset([bool, int, float, complex, str, bytes])

# The types of initial values that are called. TensorFlow treats objects of other types differently:
# those that restore a checkpoint.
cdef frozenset _FUNCTIONS = frozenset([types.FunctionType, types.MethodType, functools.partial])

# The `VariableTemplate` of each kind, once two variables have the same.
cdef LearnedByKind _templates = LearnedByKind(
    "tf.Variable", MAX_VARIABLE_KINDS, needed=MIN_ALIKE_VARIABLES
)


def describe():
    """Describe each kind of variables: see `fastops._specialize.learned.Learned.describe`."""
    return _templates.describe()


@cython.final
cdef class VariableTemplate:
    """The template for variables of one kind.

    Parameters
    ----------
    variable : ResourceVariable
        A variable of this kind. The template does not keep it alive.
    name : str
        Its name, with the name scope.
    sizes : tuple of int
        The sizes of its initial value.
    """

    cdef dict state         # attributes in order; None for those that differ between variables
    cdef bytes handle_data  # the dtype and shape that are stored with the handle

    def __init__(self, variable, name, sizes):
        self.state = dict(variable.__dict__)
        handle = self.state["_handle"]
        self.handle_data = handle._handle_data.SerializeToString()
        number = variable._unique_id.removeprefix(f"{name}_")
        if (
            self.state["_handle_name"] != f"{name}:0"
            or not number.isdecimal()
            or [name for name in handle.__dict__] != ["_parent_trackable", "_name", "_unique_id"]
            or handle._parent_trackable() is not variable
            or handle._name != self.state["_handle_name"]
            or handle._unique_id != variable._unique_id
            or type(handle._handle_data) is not _HandleData
            or type(self.state["_shape"]) is not _TensorShape
            or self.state["_shape"]._dims != sizes
        ):
            raise ValueError("the variable lacks the attributes of a plain ResourceVariable")
        # Each variable takes the TensorShape object of its own initial value.
        self.state.update(
            _handle=None, _handle_name=None, _unique_id=None, _graph_key=None, _shape=None
        )
        if not _OPTIONS.issuperset(map(type, self.state.values())):
            raise ValueError("the variable has attributes that two variables cannot share")

    def __eq__(self, other):
        cdef VariableTemplate template
        if type(other) is not VariableTemplate:
            return False
        template = other
        return (
            list(self.state.items()) == list(template.state.items())
            and self.handle_data == template.handle_data
        )

    cdef object make(self, str name, object value, object graph):
        """Make another variable of this kind, with this name and value."""
        cdef dict state = self.state.copy()
        shape = value.shape
        scope_name = f"{name}/"
        unique_id = f"{name}_{_tf_ops.uid()}"
        handle = _gen.var_handle_op(
            shape=shape, dtype=state["_dtype"],
            shared_name=_tf_context.anonymous_name(), debug_name=scope_name, name=scope_name,
            container="",
        )
        variable = _ResourceVariable.__new__(_ResourceVariable)
        handle._handle_data = _HandleData.FromString(self.handle_data)
        InstanceDict(<PyObject*>handle)  # makes the dict with collections paused
        handle._parent_trackable = _reference(variable)
        handle._name = f"{name}:0"
        handle._unique_id = unique_id
        _gen.assign_variable_op(handle, value)  # the first two variables made this call, too
        state["_shape"] = shape
        state["_handle"] = handle
        state["_handle_name"] = handle._name
        state["_unique_id"] = unique_id
        state["_graph_key"] = graph._graph_key
        variable.__dict__ = state
        return variable


cdef int _learn(Learned learned, object variable, str name, tuple sizes) except -1:
    """Learn the template of a kind from a variable that TensorFlow made."""
    if type(variable) is not _ResourceVariable:
        learned.refuse("variable_not_plain", f"it is a {type(variable).__name__}")
        return 0
    try:
        learned.learn(VariableTemplate(variable, name, sizes))
    except Exception as why:
        learned.refuse("variable_not_plain", f"{type(why).__name__}: {why}")
    return 0


cdef object _ordinary_graph(Replacement method):
    """Return the default graph; None if anything changes how TensorFlow makes variables now."""
    cdef bint scoped
    if (
        not live and not method.always
        or missing(IN_ORDER | ONLY_HOST | NO_PROMOTION)
        or _ResourceVariable.__init__ is not _initialize
        or _resource_variable_ops.default_variable_creator_v2 is not _create
        or _variables.default_variable_creator_v2 is not _create_default
    ):
        return None
    graph = default_graph(&scoped)
    if not is_ordinary(graph) or graph._container or has_scopes(graph, "_variable_creator_stack"):
        return None
    return graph


cdef object _called(object function, str name, object dtype, object local):
    """Call the function that gives an initial value within a name scope, and convert its result."""
    scope = local.scope_name
    local.scope_name = f"{name}/"
    try:
        value = function()
        if isinstance(value, _CheckpointInitialValue):
            return value
        return _tf_ops.convert_to_tensor(value, name="initial_value", dtype=dtype)
    finally:
        local.scope_name = scope


cdef object _tensor_of(PyObject* given, object dtype):
    """Convert an initial value to a tensor; None if only TensorFlow may convert it."""
    value = <object>given
    if (
        not IsEagerTensor(given)
        and not is_numpy(given)
        and type(value) not in _PLAIN
        and not (is_list(given) and has_default_conversion(given))
    ):
        return None
    if dtype is not None or not IsEagerTensor(given):
        try:
            value = _tf_ops.convert_to_tensor(value, dtype=dtype)
        except Exception:  # TensorFlow will raise the error
            return None
    if (
        not IsEagerTensor(<PyObject*>value)
        or host_tensor(<PyObject*>value) == NULL
        or handle_dtype(<PyObject*>value) in (DT_RESOURCE, DT_VARIANT)
    ):
        return None
    return value


def construct(original):
    """Return the stand-in for ``VariableMetaclass.__call__``, which makes variables."""
    return replacing(original, _construct)


cdef bint _may_be_shared(object option) except -1:
    """Tell whether a template may be for variables that have this option."""
    kind = type(option)
    return kind in _OPTIONS or kind is type and option in SCALARS


cdef PyObject* _construct(PyObject* callable, PyObject* const* args, size_t nargsf,
                          PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf), position = 1 if n > 1 else -1, i
    cdef tuple names = () if keywords == NULL else <tuple>keywords
    cdef list options = []
    cdef bint stop
    # Positional arguments: the class, the initial value, and `trainable`. The positions of further
    # parameters differ between the classes.
    if n < 1 or n > 3 or (
        <object>args[0] is not _Variable and <object>args[0] is not _ResourceVariable
    ):
        return call_original(self, args, nargsf, keywords)
    dtype, name = None, "Variable"
    if n == 3:
        options.append(<object>args[2])
    for i in range(len(names)):
        option, value = names[i], <object>args[n + i]
        if option == "initial_value" and position < 0:
            position = n + i
            continue
        if option == "name":
            name = "Variable" if value is None else value
            continue
        options.append(value)
        if option == "dtype":
            dtype = value
        elif option == "experimental_enable_variable_lifting" and value is False:
            return call_original(self, args, nargsf, keywords)  # tapes see the initial value
    # TensorFlow takes a name with a slash at its end as that of a name scope.
    if (
        position < 0
        or not all([_may_be_shared(option) for option in options])
        or type(name) is not str or not name or name.endswith("/")
    ):
        return call_original(self, args, nargsf, keywords)
    graph = _ordinary_graph(self)
    if graph is None:
        return call_original(self, args, nargsf, keywords)
    local = _tf_context._context._thread_local_data
    name = f"{local.scope_name or ''}{name}"
    stop = not _tapes_are_stopped()
    if stop:
        TFE_Py_TapeSetStopOnThread()
    try:
        result = _made(self, args, n, names, position, options, dtype, name, graph, local)
    finally:
        if stop:
            TFE_Py_TapeSetRestartOnThread()
    Py_INCREF(result)
    return <PyObject*>result


cdef object _made(Replacement self, PyObject* const* args, Py_ssize_t n, tuple names,
                  Py_ssize_t position, list options, object dtype, str name, object graph,
                  object local):
    """Make a variable from the arguments of a call, with the initial value at a position."""
    cdef vector[PyObject*] arguments
    cdef Learned learned
    cdef tuple kind
    cdef bint outermost
    global making
    value = <object>args[position]
    if type(value) in _FUNCTIONS:
        value = _called(value, name, dtype, local)
    tensor = _tensor_of(<PyObject*>value, dtype)
    arguments.assign(args, args + n + len(names))
    arguments[position] = <PyObject*>value
    if tensor is None:
        return _by_tensorflow(self, arguments, n, names)
    sizes = tensor._shape_tuple()
    kind = (
        <object>args[0], n, names, tuple(options), <int>handle_dtype(<PyObject*>tensor), sizes,
    )
    learned = _templates.of(kind)
    outermost = not making
    if outermost:
        _templates.count(learned)
    if learned.state_now() == ACTIVE:
        return (<VariableTemplate>learned.content).make(name, tensor, graph)
    making = True
    try:
        result = _by_tensorflow(self, arguments, n, names)
    finally:
        making = not outermost
    if not learned.is_decided:
        _learn(learned, result, name, sizes)
    return result


cdef object _by_tensorflow(Replacement self, vector[PyObject*]& arguments, Py_ssize_t n,
                           tuple names):
    """Let TensorFlow make a variable."""
    result = <object>call_original(
        self, arguments.data(), n, <PyObject*>names if names else NULL
    )
    Py_DECREF(result)
    return result
