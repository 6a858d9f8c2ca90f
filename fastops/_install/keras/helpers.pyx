# distutils: language = c++
"""What Keras 3 asks in Python before it reaches an op, answered for plain arguments.

Is this a tensor, is one among these symbolic, what is the name of that dtype: the answers are the
ones of Keras's own functions, which are asked wherever an argument is not one of the classes known
here.
"""

cimport cython
from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem
from cpython.list cimport PyList_CheckExact
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport (
    PyTuple_CheckExact,
    PyTuple_GET_ITEM,
    PyTuple_GET_SIZE,
)
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._cpp.handle cimport IsEagerTensor
from fastops._install.replacement cimport Replacement, call_original, enable, live

import inspect

from tensorflow.python.framework import dtypes as _tf_dtypes
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyObject* _PyType_Lookup(PyTypeObject*, PyObject*)
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    PyTypeObject PyBool_Type
    PyTypeObject PyFloat_Type
    PyTypeObject PyLong_Type


cdef enum:
    DTYPES = 64  # above are references, and nothing else

cdef enum:  # what a value is to Keras
    UNKNOWN
    LEAF        # no tensor, and nothing that holds others
    TENSOR
    SYMBOLIC
    SEQUENCE    # a list or tuple

# Classes and state of the Keras that is imported; `attach` finds them.
cdef PyTypeObject* _variable_type = NULL
cdef PyTypeObject* _symbolic_type = NULL
cdef object _base_hook = None
cdef dict _global_state = None
cdef dict _config = None

cdef PyTypeObject* _tf_variable_type = <PyTypeObject*>_ResourceVariable
cdef object _DType = _tf_dtypes.DType
cdef object _PASS = object()  # what a helper answers where Keras's own function must

cdef str _TRACKER = "GLOBAL_STATE_TRACKER"
cdef str _FLOATX = "_FLOATX"
cdef str _HOOK = "_setattr_hook"
cdef str _OWN_TRACKER = "_tracker"
cdef object _POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
cdef object _KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
cdef object _EMPTY = inspect.Parameter.empty


def attach(keras):
    """Finds in Keras what the helpers look for.

    Parameters
    ----------
    keras : module
        ``keras.src``.
    """
    global _variable_type, _symbolic_type, _base_hook, _global_state, _config
    _variable_type = <PyTypeObject*>keras.backend.Variable
    _symbolic_type = <PyTypeObject*>keras.backend.common.keras_tensor.KerasTensor
    _base_hook = keras.ops.operation.Operation._setattr_hook
    _global_state = keras.backend.common.global_state.__dict__
    _config = keras.backend.config.__dict__


cdef int _kind(PyObject* value) noexcept:
    cdef PyTypeObject* kind = <PyTypeObject*>Py_TYPE(<object>value)
    if IsEagerTensor(value) or kind == _tf_variable_type or kind == _variable_type:
        return TENSOR
    if (
        value == Py_None
        or kind == &PyLong_Type
        or kind == &PyFloat_Type
        or kind == &PyBool_Type
        or PyUnicode_CheckExact(<object>value)
    ):
        return LEAF
    if PyTuple_CheckExact(<object>value) or PyList_CheckExact(<object>value):
        return SEQUENCE
    if kind == _symbolic_type:
        return SYMBOLIC
    return UNKNOWN


# ---------------------------------------------------------------------------------------------
# Tensors and structures
# ---------------------------------------------------------------------------------------------

cdef object _is_tensor(Helper self, PyObject* const* args, Py_ssize_t n,
                       PyObject* keywords):
    # x
    cdef int kind
    if n != 1 or keywords != NULL:
        return _PASS
    kind = _kind(args[0])
    if kind == TENSOR:
        return True
    return False if kind == LEAF or kind == SEQUENCE else _PASS


cdef object _is_tensor_or_symbolic(Helper self, PyObject* const* args, Py_ssize_t n,
                                   PyObject* keywords):
    # x, allow_none=False
    cdef int kind
    cdef PyObject* allow_none = Py_False
    if keywords != NULL:
        if n != 1 or <object>keywords != ("allow_none",):
            return _PASS
        allow_none = args[1]
    elif n != 1:
        return _PASS
    kind = _kind(args[0])
    if args[0] == Py_None:
        return bool(<object>allow_none)
    if kind == TENSOR or kind == SYMBOLIC:
        return True
    return False if kind == LEAF or kind == SEQUENCE else _PASS


cdef int _symbolic_among(object values, int depth) except -1:
    """`TENSOR` if none of the values is symbolic, `SYMBOLIC` if one is, or `UNKNOWN`."""
    cdef int kind
    for value in values:
        kind = _kind(<PyObject*>value)
        if kind == SEQUENCE and depth:
            kind = _symbolic_among(value, depth - 1)
        if kind == SYMBOLIC or kind == UNKNOWN or kind == SEQUENCE:
            return SYMBOLIC if kind == SYMBOLIC else UNKNOWN
    return TENSOR


cdef object _any_symbolic_tensors(Helper self, PyObject* const* args, Py_ssize_t n,
                                  PyObject* keywords):
    # args=None, kwargs=None
    cdef int kind = TENSOR
    if keywords != NULL or not 1 <= n <= 2 or not PyTuple_CheckExact(<object>args[0]):
        return _PASS
    if PyTuple_GET_SIZE(<object>args[0]):
        kind = _symbolic_among(<object>args[0], 4)
    if kind == TENSOR and n == 2 and args[1] != Py_None:
        if not PyDict_CheckExact(<object>args[1]):
            return _PASS
        if <dict><object>args[1]:
            kind = _symbolic_among((<dict><object>args[1]).values(), 4)
    return _PASS if kind == UNKNOWN else kind == SYMBOLIC


cdef object _is_nested(Helper self, PyObject* const* args, Py_ssize_t n,
                       PyObject* keywords):
    # structure
    cdef int kind
    if n != 1 or keywords != NULL:
        return _PASS
    kind = _kind(args[0])
    return _PASS if kind == UNKNOWN else kind == SEQUENCE


cdef bint _flat(object values):
    """Whether nothing in a list or tuple holds others."""
    cdef int kind
    for value in values:
        kind = _kind(<PyObject*>value)
        if kind == UNKNOWN or kind == SEQUENCE:
            return False
    return True


cdef object _flatten(Helper self, PyObject* const* args, Py_ssize_t n,
                     PyObject* keywords):
    # structure
    cdef int kind
    if n != 1 or keywords != NULL:
        return _PASS
    kind = _kind(args[0])
    if kind == SEQUENCE:
        return list(<object>args[0]) if _flat(<object>args[0]) else _PASS
    return _PASS if kind == UNKNOWN else [<object>args[0]]


cdef object _map_structure(Helper self, PyObject* const* args, Py_ssize_t n,
                           PyObject* keywords):
    # func, *structures, none_is_leaf=True
    cdef int kind
    if n != 2 or keywords != NULL or not callable(<object>args[0]):
        return _PASS
    function, structure = <object>args[0], <object>args[1]
    kind = _kind(args[1])
    if kind == SEQUENCE:
        if not _flat(structure):
            return _PASS
        results = [function(value) for value in structure]
        return results if type(structure) is list else tuple(results)
    if PyDict_CheckExact(structure) and not <dict>structure:
        return {}
    return _PASS if kind == UNKNOWN else function(structure)


# ---------------------------------------------------------------------------------------------
# Dtypes
# ---------------------------------------------------------------------------------------------

cdef dict _dtype_codes = {int: DTYPES, float: DTYPES + 1, bool: DTYPES + 2} | {
    name: _tf_dtypes.as_dtype(name).as_datatype_enum
    for name in (
        "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
        " complex64 complex128 string"
    ).split()
}
cdef dict _dtype_names = {}        # by code
cdef dict _result_types = {}       # by the codes
cdef object _result_floatx = None  # for which they hold


cdef int _dtype_code(PyObject* dtype) except -2:
    """A number for a `tf.DType`, the name of one, or a class of numbers; -1 for what is none."""
    cdef PyObject* found
    cdef int number
    if type(<object>dtype) is _DType:
        number = (<object>dtype)._type_enum
        return number if number < DTYPES else -1
    if PyUnicode_CheckExact(<object>dtype) or type(<object>dtype) is type:
        found = PyDict_GetItem(_dtype_codes, <object>dtype)
        return -1 if found == NULL else <object>found
    return -1


cdef object _standardize_dtype(Helper self, PyObject* const* args, Py_ssize_t n,
                               PyObject* keywords):
    # dtype
    cdef int code
    if n != 1 or keywords != NULL:
        return _PASS
    code = _dtype_code(args[0])
    if code < 0:
        return _PASS
    found = PyDict_GetItem(_dtype_names, code)
    if found != NULL:
        return <object>found
    name = self.original(<object>args[0])
    _dtype_names[code] = name
    return name


cdef object _result_type(Helper self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # *dtypes
    global _result_floatx
    cdef Py_ssize_t i
    cdef int code
    cdef unsigned long long key = n
    cdef PyObject* floatx = PyDict_GetItem(_config, _FLOATX)
    if not 1 <= n <= 4 or keywords != NULL or floatx == NULL:
        return _PASS
    for i in range(n):
        code = _dtype_code(args[i])
        if code < 0:
            return _PASS
        key = key << 8 | <unsigned long long>code
    if <PyObject*>_result_floatx != floatx:
        _result_types.clear()
        _result_floatx = <object>floatx
    found = PyDict_GetItem(_result_types, key)
    if found != NULL:
        return <object>found
    name = self.original(*[<object>args[i] for i in range(n)])
    _result_types[key] = name
    return name


# ---------------------------------------------------------------------------------------------
# Layers
# ---------------------------------------------------------------------------------------------

cdef object _get_global_attribute(Helper self, PyObject* const* args, Py_ssize_t n,
                                  PyObject* keywords):
    # name, default=None, set_to_default=False
    cdef PyObject* tracker = PyDict_GetItem(_global_state, _TRACKER)
    if n != 1 or tracker == NULL or not PyUnicode_CheckExact(<object>args[0]):
        return _PASS
    found = getattr(<object>tracker, <str><object>args[0], None)
    return _PASS if found is None and keywords != NULL else found


cdef object _set_attribute(Helper self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, name, value: what is there already is not set again, and a bool is nothing to track
    cdef PyTypeObject* kind
    cdef PyObject* state
    if (
        keywords != NULL
        or n != 3
        or (args[2] != Py_True and args[2] != Py_False)
        or not PyUnicode_CheckExact(<object>args[1])
    ):
        return _PASS
    kind = <PyTypeObject*>Py_TYPE(<object>args[0])
    if (
        _PyType_Lookup(kind, args[1]) != NULL
        or _PyType_Lookup(kind, <PyObject*>_HOOK) != <PyObject*>_base_hook
    ):
        return _PASS
    attributes = (<object>args[0]).__dict__
    state = PyDict_GetItem(attributes, <object>args[1])
    return None if state == args[2] and _OWN_TRACKER in attributes else _PASS


cdef object _bind_call(Helper self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
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
        return _PASS
    positional, named_args = <tuple><object>args[3], <dict><object>args[4]
    given, named = PyTuple_GET_SIZE(positional), len(named_args)
    arguments, users, tensors = {}, {}, {}
    tensor_args, tensor_names, nested_names = [], [], []
    for parameter in (<object>args[1])._parameters.values():
        if parameter._kind is not _POSITIONAL and parameter._kind is not _KEYWORD_ONLY:
            return _PASS
        name = parameter._name
        value = PyDict_GetItem(named_args, name) if named else NULL
        if i < given:
            if value != NULL or parameter._kind is _KEYWORD_ONLY:
                return _PASS
            value = PyTuple_GET_ITEM(positional, i)
            users[name] = <object>value
        elif value != NULL:
            named -= 1
            users[name] = <object>value
        else:
            value = <PyObject*>parameter._default
            if <object>value is _EMPTY:
                return _PASS
        i += 1
        arguments[name] = <object>value
        kind = _kind(value)
        if kind == SEQUENCE and <object>value:
            if not _all_tensors(<object>value):
                return _PASS
            nested_names.append(name)
            eager = False
        elif kind == UNKNOWN or kind == SYMBOLIC:
            return _PASS
        elif kind != TENSOR:
            continue
        tensor_args.append(<object>value)
        tensor_names.append(name)
        tensors[name] = <object>value
    if given > i or named or i == 0:
        return _PASS
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
        if _kind(<PyObject*>value) != TENSOR:
            return False
    return True


# ---------------------------------------------------------------------------------------------
# The helpers
# ---------------------------------------------------------------------------------------------

ctypedef object (*answer_t)(Helper, PyObject* const*, Py_ssize_t, PyObject*)


@cython.final
@cython.no_gc_clear
cdef class Helper(Replacement):
    """In the place of a function or method of Keras.

    Parameters
    ----------
    original : callable
        Keras's.
    name : str
        A key of `HELPERS` or `METHODS`, which say what stands in for it.
    """

    cdef answer_t answer

    def __init__(self, original, name):
        super().__init__(original)
        self.answer = _answer(name)
        self.vectorcall = _helper


cdef PyObject* _helper(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef Helper self = <Helper>callable
    if live:
        answer = self.answer(self, args, PyVectorcall_NARGS(nargsf), keywords)
        if answer is not _PASS:
            Py_INCREF(answer)
            return <PyObject*>answer
    return call_original(self, args, nargsf, keywords)


HELPERS = {
    "backend.common.global_state.get_global_attribute": "looks in the thread's state",
    "backend.common.dtypes.result_type": "remembers the answer for the same dtypes",
    "backend.common.keras_tensor.any_symbolic_tensors": "looks at classes",
    "backend.common.variables.standardize_dtype": "remembers the answer for the same dtype",
    "backend.tensorflow.core.is_tensor": "looks at classes",
    "layers.layer.is_backend_tensor_or_symbolic": "looks at classes",
    "tree.tree_api.flatten": "takes single values, and lists or tuples with no others in them",
    "tree.tree_api.is_nested": "looks at classes",
    "tree.tree_api.map_structure": "takes single values, lists or tuples with no others in them",
}
"""Functions by their names in ``keras.src``, and what their replacements do."""

METHODS = {
    "layers.layer.CallSpec.__init__": "binds tensors and plain values to the parameters",
    "layers.layer.Layer.__setattr__": "does nothing where an attribute has the same bool",
}
"""Likewise methods."""


cdef answer_t _answer(str name) except NULL:
    if name == "backend.common.global_state.get_global_attribute":
        return _get_global_attribute
    if name == "backend.common.dtypes.result_type":
        return _result_type
    if name == "backend.common.keras_tensor.any_symbolic_tensors":
        return _any_symbolic_tensors
    if name == "backend.common.variables.standardize_dtype":
        return _standardize_dtype
    if name == "backend.tensorflow.core.is_tensor":
        return _is_tensor
    if name == "layers.layer.CallSpec.__init__":
        return _bind_call
    if name == "layers.layer.Layer.__setattr__":
        return _set_attribute
    if name == "layers.layer.is_backend_tensor_or_symbolic":
        return _is_tensor_or_symbolic
    if name == "tree.tree_api.flatten":
        return _flatten
    if name == "tree.tree_api.is_nested":
        return _is_nested
    if name == "tree.tree_api.map_structure":
        return _map_structure
    raise ValueError(f"there is no helper {name}")


enable(Helper)
