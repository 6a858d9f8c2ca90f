# distutils: language = c++
"""Answers for calls of layers: they bind arguments to parameters, and read Keras's thread state.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._core.locals cimport of_this_thread
from fastops._cpp.python cimport Py_False, Py_True, _PyType_Lookup
from fastops._install.answer cimport Answer, register
from fastops._install.keras.kinds cimport (
    SEQUENCE,
    SYMBOLIC,
    TENSOR,
    UNKNOWN,
    kind_of,
)

import inspect


# State and a method of the imported Keras; set by `attach`.
cdef object _base_hook = None
cdef dict _global_state = None

cdef str _TRACKER = "GLOBAL_STATE_TRACKER"
cdef str _HOOK = "_setattr_hook"
cdef str _OWN_TRACKER = "_tracker"
cdef object _POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
cdef object _KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
cdef object _EMPTY = inspect.Parameter.empty


def attach(keras):
    """Look up the state and the method of Keras that the answers depend on.

    Parameters
    ----------
    keras : module
        ``keras.src``.
    """
    global _base_hook, _global_state
    _base_hook = keras.ops.operation.Operation._setattr_hook
    keras.backend.common.global_state.GLOBAL_STATE_TRACKER  # raises if Keras does not have it
    _global_state = keras.backend.common.global_state.__dict__


cdef object _get_global_attribute(Answer self, PyObject* const* args, Py_ssize_t n,
                                  PyObject* keywords):
    # name, default=None, set_to_default=False
    cdef PyObject* tracker = PyDict_GetItem(_global_state, _TRACKER)
    if n != 1 or tracker == NULL or not PyUnicode_CheckExact(<object>args[0]):
        return DECLINED
    value = of_this_thread(<object>tracker, <str><object>args[0])
    return DECLINED if value is None and keywords != NULL else value


cdef object _set_attribute(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, name, value: what is there already is not set again, and a bool is nothing to track
    cdef PyTypeObject* kind
    cdef PyObject* state
    if (
        keywords != NULL
        or n != 3
        or (args[2] != Py_True and args[2] != Py_False)
        or not PyUnicode_CheckExact(<object>args[1])
    ):
        return DECLINED
    kind = <PyTypeObject*>Py_TYPE(<object>args[0])
    if (
        _PyType_Lookup(kind, args[1]) != NULL
        or _PyType_Lookup(kind, <PyObject*>_HOOK) != <PyObject*>_base_hook
    ):
        return DECLINED
    attributes = (<object>args[0]).__dict__
    state = PyDict_GetItem(attributes, <object>args[1])
    return None if state == args[2] and _OWN_TRACKER in attributes else DECLINED


cdef object _bind_call(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, signature, call_context_args, args, kwargs
    cdef Py_ssize_t i = 0, given, named
    cdef dict arguments, users, tensors
    cdef list names, tensor_args, tensor_names, nested_names
    cdef tuple positional
    cdef dict named_args
    cdef PyObject* value
    cdef int kind
    cdef bint eager = True
    if (
        keywords != NULL
        or n != 5
        or not PyTuple_CheckExact(<object>args[3])
        or not PyDict_CheckExact(<object>args[4])
    ):
        return DECLINED
    positional, named_args = <tuple><object>args[3], <dict><object>args[4]
    given, named = PyTuple_GET_SIZE(positional), len(named_args)
    arguments, users, tensors = {}, {}, {}
    tensor_args, tensor_names, nested_names = [], [], []
    for parameter in (<object>args[1])._parameters.values():
        if parameter._kind is not _POSITIONAL and parameter._kind is not _KEYWORD_ONLY:
            return DECLINED
        name = parameter._name
        value = PyDict_GetItem(named_args, name) if named else NULL
        if i < given:
            if value != NULL or parameter._kind is _KEYWORD_ONLY:
                return DECLINED
            value = PyTuple_GET_ITEM(positional, i)
            users[name] = <object>value
        elif value != NULL:
            named -= 1
            users[name] = <object>value
        else:
            value = <PyObject*>parameter._default
            if <object>value is _EMPTY:
                return DECLINED
        i += 1
        arguments[name] = <object>value
        kind = kind_of(value)
        if kind == SEQUENCE and <object>value:
            if not _all_tensors(<object>value):
                return DECLINED
            nested_names.append(name)
            eager = False
        elif kind == UNKNOWN or kind == SYMBOLIC:
            return DECLINED
        elif kind != TENSOR:
            continue
        tensor_args.append(<object>value)
        tensor_names.append(name)
        tensors[name] = <object>value
    if given > i or named or i == 0:
        return DECLINED
    names = list(arguments)
    spec = <object>args[0]
    spec.user_arguments_dict = users
    spec.arguments_dict = arguments
    spec.argument_names = names
    spec.tensor_arguments_dict = tensors
    spec.tensor_arguments_names = tensor_names
    spec.nested_tensor_argument_names = nested_names
    spec.first_arg = arguments[names[0]]
    spec.eager = eager
    return None


cdef bint _all_tensors(object values):
    for value in values:
        if kind_of(<PyObject*>value) != TENSOR:
            return False
    return True


register("keras", "backend.common.global_state.get_global_attribute", _get_global_attribute)
register("keras", "layers.layer.CallSpec.__init__", _bind_call)
register("keras", "layers.layer.Layer.__setattr__", _set_attribute)
