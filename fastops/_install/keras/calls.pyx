# distutils: language = c++
"""Stand-in for the call of a layer with one tensor, and perhaps ``training``.

Around a layer's own ``call``, Keras converts arguments, binds them to parameters, checks them,
opens scopes, keeps a context for the layers inside, and looks for masks. In most calls only the
context and the name scope have an effect, and the stand-in sets up these two. All other calls fall
back to Keras: layers that are not built, other arguments, masks, casts, regularizers, graphs, and
classes that override a method that is mirrored here.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport handle_dtype
from fastops._cpp.classes cimport ClassVersion
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.dicts cimport InstanceDict, InstanceDictIfAny
from fastops._cpp.python cimport Py_None, Py_False, Py_True, PyVectorcall_NARGS, _PyType_Lookup
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._situation cimport EAGERLY, missing
from fastops._specialize.guards.watch cimport Globals
from fastops._specialize.policy cimport MAX_LAYER_CLASSES

import inspect
from functools import wraps

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.ops import name_scope_v2 as _TfNameScope

from fastops._install import restated as _restated, upstream as _upstream
from fastops._install.lookups import of_codes as _of_codes

# Objects of the imported Keras; set by `attach`.
cdef object _Layer = None
cdef object _Operation = None
cdef object _Context = None
cdef object _NameScope = None
cdef object _Policy = None
cdef object _traces = None
cdef dict _global_state = None
cdef dict _methods = None       # by name, the methods that are mirrored here
cdef object _assertion = None   # not mirrored; Keras's own needs no call without an input_spec
cdef object _compute_mask = None
cdef bint _passes_defaults = True  # whether a layer passes on the default of `training`
cdef bint _wraps_calls = True      # whether a wrapper around ``call`` adds arguments to errors

cdef str _TRACKER = "GLOBAL_STATE_TRACKER"
cdef str _CONTEXT = "current_call_ctx"
cdef str _SCOPES = "name_scope_stack"
cdef str _TRAINING = "training"
cdef str _MASK = "mask"
cdef str _ASSERT = "_assert_input_compatibility"
cdef str _COMPUTE_MASK = "compute_mask"
cdef str _KERAS_MASK = "_keras_mask"
cdef tuple _NOT_OPEN = ("autocast_scope", "stateless_scope", "symbolic_scope", "distribution")
cdef str _CAPTURE = "_calibration_capture"
cdef set _ONLY_TRAINING = {"training"}
cdef tuple _KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
cdef tuple _PLAIN = (bool, int, float, str, type(None))

_RESTATED = (
    *("_check_super_called", "_clear_losses", "_get_call_context", "_maybe_build"),
    *("_maybe_reset_call_context", "_open_name_scope", "_resolve_and_populate_arg"),
    *("compute_dtype", "dtype_policy", "input_dtype", "quantization_mode", "supports_masking"),
    *("variable_dtype", "_set_mask_metadata", "__eq__", "__getattribute__"),
)
_RESTATED_LATER = ("_dispatch_call", "_own_dtype_policy")  # since Keras 3.16
_ATTRIBUTES = (
    *("_called", "_lock", "_losses", "_loss_ids", "_layers", "_parent_path", "_remat_mode"),
    *("_dtype_policy", "activity_regularizer", "built", "name"),
)


def attach(keras):
    """Look up the parts of ``keras.src`` that a call of a layer uses."""
    global _Layer, _Operation, _Context, _NameScope, _Policy, _traces, _global_state, _methods
    global _assertion, _compute_mask, _passes_defaults, _wraps_calls
    _Layer, _Context = keras.layers.layer.Layer, keras.layers.layer.CallContext
    _Operation = vars(keras.ops.operation.Operation)["__call__"]
    _NameScope = _upstream.look_up("keras.src.backend.tensorflow.core.name_scope")
    _Policy = keras.dtype_policies.dtype_policy.DTypePolicy
    _traces = keras.utils.traceback_utils
    keras.backend.common.global_state.GLOBAL_STATE_TRACKER  # raises if Keras does not have it
    _global_state = keras.backend.common.global_state.__dict__
    _methods = {name: inspect.getattr_static(_Layer, name) for name in _RESTATED}
    for name in _RESTATED_LATER:
        if hasattr(_Layer, name):
            _methods[name] = inspect.getattr_static(_Layer, name)
    _assertion, _compute_mask = vars(_Layer)[_ASSERT], vars(_Layer)[_COMPUTE_MASK]
    _passes_defaults = _restated.variant(
        "keras.src.layers.layer:Layer._resolve_and_populate_arg"
    ) is None
    _wraps_calls = _restated.variant("keras.src.ops.operation:Operation.__call__") is None


# ---------------------------------------------------------------------------------------------
# Properties of classes and of parameters
# ---------------------------------------------------------------------------------------------

cdef dict _classes = {}     # by version, whether the class overrides nothing that is mirrored
cdef dict _parameters = {}  # by signature, its `Parameters`, or None


cdef bint _is_plain_class(PyTypeObject* kind) except -1:
    cdef unsigned int version = ClassVersion(kind)
    if version == 0:
        _PyType_Lookup(kind, <PyObject*>_TRACKER)
        version = ClassVersion(kind)
        if version == 0:
            return False
    known = _classes.get(version)
    if known is None:
        known = _restates_nothing(<object>kind)
        if len(_classes) >= MAX_LAYER_CLASSES:
            _classes.clear()
        _classes[version] = known
    return known


cdef bint _restates_nothing(kind) except -1:
    """Whether a class overrides no mirrored method, and no attribute that the stand-in reads."""
    cdef list bases = list(kind.__mro__)
    if _Layer not in bases:
        return False
    above = [vars(base).get("__call__") for base in bases[bases.index(_Layer) + 1:]]
    above = [call for call in above if call is not None]
    return (
        all([inspect.getattr_static(kind, name) is method for name, method in _methods.items()])
        # The stand-in reads the dict of the instance. A data descriptor of the class (one with
        # `__set__`) would take precedence.
        and not any([
            hasattr(type(inspect.getattr_static(kind, name, None)), "__set__")
            for name in _ATTRIBUTES
        ])
        and inspect.getattr_static(kind, _CAPTURE, None) is None
        and not hasattr(kind, "__getattr__")
        and above
        and above[0] is _Operation
    )


@cython.final
cdef class Parameters:
    """Properties of the parameters of a layer's ``call``.

    Attributes
    ----------
    signature : inspect.Signature
        The signature.
    plain : bool
        Whether a call with only the first argument, and perhaps ``training``, is possible.
    takes_training, takes_mask : bool
        Whether there is a parameter ``training`` or ``mask``.
    training : object
        The default of ``training``.
    """

    cdef object signature
    cdef bint plain
    cdef bint takes_training
    cdef bint takes_mask
    cdef object training


cdef Parameters _parameters_of(signature):
    cdef PyObject* stored = PyDict_GetItem(_parameters, <size_t><PyObject*>signature)
    cdef Parameters made
    if stored != NULL and (<Parameters>stored).signature is signature:
        return <Parameters>stored
    parameters = list(signature.parameters.values())
    made = Parameters.__new__(Parameters)
    made.signature = signature
    others = parameters[1:]
    names = {parameter.name: parameter.default for parameter in others}
    made.plain = (
        bool(parameters)
        and parameters[0].kind is _KINDS[0]
        and parameters[0].name not in (_TRAINING, _MASK)
        and all([
            parameter.kind in _KINDS and isinstance(parameter.default, _PLAIN)
            for parameter in others
        ])
        and names.get(_MASK) is None
    )
    made.takes_training, made.takes_mask = _TRAINING in names, _MASK in names
    made.training = names.get(_TRAINING)
    if len(_parameters) >= MAX_LAYER_CLASSES:
        _parameters.clear()
    _parameters[<size_t><PyObject*>signature] = made
    return made


# ---------------------------------------------------------------------------------------------
# The call
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class LayerCall(Replacement):
    """Stand-in for ``keras.layers.Layer.__call__``.

    Parameters
    ----------
    original : callable
        Keras's method.
    """

    cdef readonly long long taken  # number of calls that did not fall back
    cdef Globals globals

    def __init__(self, original):
        super().__init__(original)
        self.vectorcall = _called
        functions = [
            inspect.unwrap(original),
            inspect.unwrap(_Operation),
            *(method for method in _methods.values() if inspect.isfunction(method)),
            *(method.fget for method in _methods.values() if isinstance(method, property)),
            *(_NameScope.__init__, _NameScope.__enter__, _NameScope.__exit__),
        ]
        self.globals = Globals(
            {
                (function.__code__, id(function.__globals__)): function.__globals__
                for function in functions
            },
            _of_codes([(function.__code__, function.__globals__) for function in functions]),
        )


cdef PyObject* _called(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef LayerCall self = <LayerCall>callable
    cdef PyObject* training = NULL
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    if not live or n != 2 or not IsEagerTensor(args[1]):
        return call_original(self, args, nargsf, keywords)
    if keywords != NULL and PyTuple_GET_SIZE(<object>keywords) != 0:
        if (
            PyTuple_GET_SIZE(<object>keywords) != 1
            or <object>PyTuple_GET_ITEM(<object>keywords, 0) != _TRAINING
            or args[2] != Py_True and args[2] != Py_False and args[2] != Py_None
        ):
            return call_original(self, args, nargsf, keywords)
        training = args[2]
    made = _call(self, args[0], args[1], training)
    if made is DECLINED:
        return call_original(self, args, nargsf, keywords)
    Py_INCREF(made)
    return <PyObject*>made


cdef object _call(LayerCall self, PyObject* layer, PyObject* tensor, PyObject* given):
    cdef PyTypeObject* kind = Py_TYPE(<object>layer)
    cdef PyObject* stored
    cdef PyObject* tracker
    cdef PyObject* stack
    cdef Parameters parameters
    cdef dict attributes, state, named
    # EAGERLY comes first: it is missing while a call is recorded. Then the Python code of the other
    # conditions must not run, since the recording would depend on it.
    if missing(EAGERLY) or not _is_plain_class(kind) or not self.globals.hold():
        return DECLINED
    stored = InstanceDict(layer)
    tracker = PyDict_GetItem(_global_state, _TRACKER)
    if stored == NULL or tracker == NULL:
        return DECLINED
    attributes = <dict>stored
    state = (<object>tracker).__dict__
    if not _is_plain_state(state) or not _is_ready(attributes):
        return DECLINED
    stored = PyDict_GetItem(attributes, "_call_signature")
    parameters = None if stored == NULL else _parameters_of(<object>stored)
    if (
        parameters is None
        or not parameters.plain
        or attributes.get("_call_context_args") != _ONLY_TRAINING
        or attributes.get("_call_has_context_arg") != {_TRAINING: parameters.takes_training}
    ):
        return DECLINED
    if not _is_of_dtype(tensor, attributes) or _has_mask(tensor):
        return DECLINED
    stack = PyDict_GetItem(state, _SCOPES)
    if _tf_context._context is None or stack != NULL and type(<object>stack) is not list:
        return DECLINED
    scopes = [] if stack == NULL else <list><object>stack
    if scopes and scopes[len(scopes) - 1].caller is <object>layer:
        return DECLINED
    name = attributes["name"]
    if type(name) is not str or not name or "/" in <str>name:
        return DECLINED

    # From here on the call cannot fall back to Keras.
    self.taken += 1
    if stack == NULL:
        setattr(<object>tracker, _SCOPES, scopes)
    instance = <object>layer
    if instance.input_spec or _PyType_Lookup(kind, <PyObject*>_ASSERT) != <PyObject*>_assertion:
        instance._assert_input_compatibility(<object>tensor)
    context = state.get(_CONTEXT)
    entered = context is None
    if entered:
        context = _Context.__new__(_Context)
        context.entry_layer = instance
        setattr(<object>tracker, _CONTEXT, context)
        _clear_losses(instance)
    # The value of `training`: the argument, that of the outer layer's call, or the default.
    if given != NULL:
        value = <object>given
    else:
        value = context.__dict__.get(_TRAINING)
        if value is None and _passes_defaults:
            value = parameters.training
    if given != NULL or _passes_defaults:
        setattr(context, _TRAINING, value)
    named = {}
    if parameters.takes_training and (value is not None or given != NULL):
        named[_TRAINING] = value
    if parameters.takes_mask:
        named[_MASK] = None
    try:
        result = _run(instance, name, attributes["_parent_path"], scopes, <object>tensor, named)
        if not attributes.get("_supports_masking") or (
            _PyType_Lookup(kind, <PyObject*>_COMPUTE_MASK) == <PyObject*>_compute_mask
        ):
            return result
        instance._set_mask_metadata(<object>tensor, result, None)
        return result
    finally:
        now = _global_state[_TRACKER]
        context = getattr(now, _CONTEXT, None)
        if context is None or context.entry_layer is instance:
            setattr(now, _CONTEXT, None)


cdef object _run(object layer, str name, object parent, list scopes, object tensor, dict named):
    """Call a layer's own ``call`` in its name scope."""
    scope = _NameScope.__new__(_NameScope)
    of_tensorflow = _TfNameScope.__new__(_TfNameScope)
    # TensorFlow's class has slots, and no dict in CPython 3.13, so each attribute is set.
    of_tensorflow._name, of_tensorflow._exit_fns = name, []
    scope.__dict__.update(
        name=name, caller=layer, deduplicate=True, override_parent=parent, _pop_on_exit=True,
        _tf_name_scope=of_tensorflow,
    )
    state = _tf_context._context._thread_local_data
    outer = state.scope_name
    scopes.append(scope)
    state.scope_name = f"{outer or ''}{name}/"
    try:
        function = layer.call
        try:
            return function(tensor, **named)
        except Exception as error:
            _raise(function, f"{type(layer).__name__}.call()", error, tensor, named)
    finally:
        now = getattr(_global_state[_TRACKER], _SCOPES, None)
        if now:
            now.pop()
        state.scope_name = outer


cdef int _raise(function, str title, error, tensor, dict named) except -1:
    """Raise an exception of a layer's ``call`` in the way Keras does, with the arguments."""

    @wraps(function)
    def again(*args, **kwargs):
        if _wraps_calls or getattr(error, "_keras_call_info_injected", False):
            raise error
        raise _traces.inject_argument_info_in_error(
            error, function, args, kwargs, object_name=title
        ) from None

    if _wraps_calls:
        again = _traces.inject_argument_info_in_traceback(again, object_name=title)
    _traces.filter_traceback(again)(tensor, **named)
    return 0


cdef int _clear_losses(layer) except -1:
    """Remove the losses of earlier calls, from a layer and from the layers in it."""
    for values in (layer._losses, layer._loss_ids):
        if values:
            values.clear()
    for inner in layer._layers:
        if _is_plain_class(Py_TYPE(inner)):
            _clear_losses(inner)
        else:
            inner._clear_losses()
    return 0


# ---------------------------------------------------------------------------------------------
# Conditions
# ---------------------------------------------------------------------------------------------

cdef bint _is_plain_state(dict state) except -1:
    """Whether no scope or setting of Keras in this thread affects the call."""
    cdef PyObject* value
    for name in _NOT_OPEN:
        value = PyDict_GetItem(state, name)
        if value != NULL and value != Py_None:
            return False
    value = PyDict_GetItem(state, "traceback_filtering")
    return value == NULL or value == Py_True


cdef bint _is_ready(dict attributes) except -1:
    """Whether a layer has been built and called, and has no work to do after its ``call``."""
    return (
        _is(attributes, "_lock", False)
        and _is(attributes, "_called", True)
        and _is(attributes, "built", True)
        and _is(attributes, "activity_regularizer", None)
        and _is(attributes, "_remat_mode", None)
        and attributes.get(_CAPTURE) is None
        and attributes.get("_parent_path") is not None
        and "name" in attributes
        and "_losses" in attributes
        and "_loss_ids" in attributes
        and "_layers" in attributes
    )


cdef bint _is(dict attributes, str name, value) except -1:
    cdef PyObject* stored = PyDict_GetItem(attributes, name)
    return stored == <PyObject*>value


cdef bint _is_of_dtype(PyObject* tensor, dict attributes) except -1:
    """Whether a tensor has the dtype that the layer computes with, so that nothing is cast."""
    cdef PyObject* stored = PyDict_GetItem(attributes, "_dtype_policy")
    if stored == NULL or type(<object>stored) is not _Policy:
        return False
    policy = (<object>stored).__dict__
    computed = policy.get("_compute_dtype")
    return (
        policy.get("_quantization_mode", True) is None
        and type(computed) is str
        and computed == policy.get("_variable_dtype")
        and _enum_of(computed) == handle_dtype(tensor)
    )


cdef dict _enums = {}


cdef int _enum_of(str name) except -1:
    """Return the number of a dtype by its name; 0 if TensorFlow has no such dtype."""
    known = _enums.get(name)
    if known is None:
        try:
            known = _dtypes.as_dtype(name).as_datatype_enum
        except TypeError:
            known = 0
        _enums[name] = known
    return known


cdef bint _has_mask(PyObject* tensor) except -1:
    cdef PyObject* attributes = InstanceDictIfAny(tensor)
    cdef PyObject* mask = NULL
    if attributes != NULL:
        mask = PyDict_GetItem(<object>attributes, _KERAS_MASK)
    return mask != NULL and mask != Py_None


enable(LayerCall)
