# distutils: language = c++
"""Reads and assignments of ``tf.Variable``, in eager mode and with tensors of the same dtype."""

cimport cython
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._call_site cimport CallSite
from fastops._core.conversion cimport has_default_conversion, is_list, is_numpy
from fastops._core.locals cimport default_graph, has_scopes, is_ordinary
from fastops._core.tensors cimport handle_dtype, has_sizes, local_tensor
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._dispatch cimport constant
from fastops._install.replacement cimport Replacement, call_original, enable, live, replacing
from fastops._situation cimport IN_ORDER, NO_PROMOTION, missing
from fastops._tf.eager cimport TFE_Py_TapeVariableAccessed, TFE_Py_VariableWatcherVariableAccessed
from fastops._tf.protos cimport DT_VARIANT, DataType

import numpy as np
from tensorflow.python.distribute.distribute_lib import (
    get_local_results_or_value_container as _local_results,
)
from tensorflow.python.eager import tape as _tf_tape
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.ops.resource_variable_ops import (
    ResourceVariable as _Variable,
    _UnreadVariable,
)


cdef CallSite _READ = CallSite("ReadVariableOp", "resource dtype")
cdef CallSite _IDENTITY = CallSite("Identity", "input")
cdef CallSite _DISABLE_COPY = CallSite("DisableCopyOnRead", "resource")
cdef CallSite _ASSIGN = CallSite("AssignVariableOp", "resource value validate_shape")
cdef CallSite _ASSIGN_ADD = CallSite("AssignAddVariableOp", "resource value")
cdef CallSite _ASSIGN_SUB = CallSite("AssignSubVariableOp", "resource value")

cdef object _convert = _tf_ops.convert_to_tensor
cdef type _array = np.ndarray
cdef type _complex = np.complexfloating
cdef object _as_array = np.asarray


cdef object graph_of(Replacement method, PyObject* variable):
    cdef bint scoped
    if (
        Py_TYPE(<object>variable) != <void*>_Variable
        or not live and not method.always
        or missing(IN_ORDER | NO_PROMOTION)
    ):
        return None
    self = <object>variable
    if (
        not IsEagerTensor(<PyObject*>self._handle)
        or self._cached_value is not None
        or self._caching_device is not None
        # The value of a variant gets handle data, which the stand-in does not copy.
        or <int>self._dtype._type_enum == <int>DT_VARIANT
    ):
        return None
    graph = default_graph(&scoped)
    # A graph that is being traced must record which variables it uses.
    return graph if is_ordinary(graph) else None


cdef int tell_tapes(object variable, object graph) except -1:
    if not variable._trainable:
        return 0
    variables = (variable,)
    # Without a distribution strategy, the tape watches the variable itself.
    resolve = _tf_tape._variables_override
    if resolve is not _local_results or has_scopes(graph, "_distribution_strategy_stack"):
        variables = resolve(variable)
    for watched in variables:
        TFE_Py_TapeVariableAccessed(<PyObject*>watched)
        TFE_Py_VariableWatcherVariableAccessed(<PyObject*>watched)
    return 0


# ---------------------------------------------------------------------------------------------
# Reads
# ---------------------------------------------------------------------------------------------

cdef enum:
    VALUE
    READ_VALUE
    READ_VALUE_NO_COPY
    NUMPY
    ARRAY
    BOOL
    COMPLEX
    FLOAT
    INT


@cython.final
@cython.no_gc_clear
cdef class VariableRead(Replacement):
    """Stand-in for a method that reads a variable.

    Parameters
    ----------
    original : callable
        TensorFlow's method.
    kind : int
        The kind of read, from the enum above.
    """

    cdef int kind

    def __init__(self, original, kind):
        super().__init__(original)
        self.kind = kind
        self.vectorcall = _read


cdef PyObject* _read(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef VariableRead self = <VariableRead>callable
    if keywords != NULL or PyVectorcall_NARGS(nargsf) != 1:
        return call_original(self, args, nargsf, keywords)
    graph = graph_of(self, args[0])
    if graph is None:
        return call_original(self, args, nargsf, keywords)
    variable = <object>args[0]
    tell_tapes(variable, graph)
    variable._variable_read = True
    if self.kind == READ_VALUE_NO_COPY:
        _DISABLE_COPY.run((variable._handle,))
    result = _READ.run((variable._handle, variable._dtype))
    if self.kind == READ_VALUE or self.kind == READ_VALUE_NO_COPY:
        result = _IDENTITY.run((result,))
    elif self.kind != VALUE:
        result = result._numpy_internal()
        if self.kind == NUMPY or self.kind == ARRAY:
            if isinstance(result, _array):
                result = result.copy()
            elif self.kind == ARRAY:
                result = _as_array(result)
        # NumPy raises or warns if the value is not a single real number.
        elif isinstance(result, _array) or self.kind != COMPLEX and isinstance(result, _complex):
            return call_original(self, args, nargsf, keywords)
        elif self.kind == BOOL:
            result = bool(result)
        elif self.kind == COMPLEX:
            result = complex(result)
        elif self.kind == FLOAT:
            result = float(result)
        else:
            result = int(result)
    Py_INCREF(result)
    return <PyObject*>result


# ---------------------------------------------------------------------------------------------
# Assignments
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class Assign(Replacement):
    """Stand-in for a method that assigns to a variable.

    Parameters
    ----------
    original : callable
        TensorFlow's method.
    op_name : str
        The op that it runs.
    """

    cdef CallSite call

    def __init__(self, original, op_name):
        super().__init__(original)
        self.call = {
            "AssignVariableOp": _ASSIGN,
            "AssignAddVariableOp": _ASSIGN_ADD,
            "AssignSubVariableOp": _ASSIGN_SUB,
        }[op_name]
        self.vectorcall = _assign


cdef object value_for(object variable, object value):
    if type(value) is float or type(value) is int:
        try:
            value = _convert(value, dtype=variable._dtype)
        except Exception:  # TensorFlow will raise the error
            return None
    elif is_numpy(<PyObject*>value) or (
        is_list(<PyObject*>value) and has_default_conversion(<PyObject*>value)
    ):
        value = constant(value, <DataType><int>variable._dtype._type_enum)
    if (
        not IsEagerTensor(<PyObject*>value)
        or local_tensor(<PyObject*>value) == NULL
        or <int>handle_dtype(<PyObject*>value) != variable._dtype._type_enum
    ):
        return None
    return value


cdef PyObject* _assign(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef Assign self = <Assign>callable
    cdef Py_ssize_t i
    cdef bint read_value = True
    if PyVectorcall_NARGS(nargsf) != 2:
        return call_original(self, args, nargsf, keywords)
    graph = graph_of(self, args[0])
    if graph is None:
        return call_original(self, args, nargsf, keywords)
    if keywords != NULL:
        for i in range(PyTuple_GET_SIZE(<object>keywords)):
            name = <object>PyTuple_GET_ITEM(<object>keywords, i)
            value = <object>args[2 + i]
            if name == "read_value" and type(value) is bool:
                read_value = value
            elif name != "use_locking":  # TensorFlow ignores this argument, too
                return call_original(self, args, nargsf, keywords)
    variable, value = <object>args[0], value_for(<object>args[0], <object>args[1])
    if value is None:
        return call_original(self, args, nargsf, keywords)
    if self.call is not _ASSIGN:
        result = self.call.run((variable._handle, value))
    # `assign` checks the shapes before it runs the op.
    elif has_sizes(local_tensor(<PyObject*>value), variable._shape._dims):
        result = self.call.run((variable._handle, value, bool(variable._validate_shape)))
    else:
        return call_original(self, args, nargsf, keywords)
    if read_value:
        result = unread(variable, graph, result)
    Py_INCREF(result)
    return <PyObject*>result


def lazy_read(original):
    """Return the stand-in for ``_lazy_read``, which makes the results of scatter methods."""
    return replacing(original, _lazy_read)


cdef PyObject* _lazy_read(PyObject* callable, PyObject* const* args, size_t nargsf,
                          PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    graph = None
    if keywords == NULL and PyVectorcall_NARGS(nargsf) == 2:
        graph = graph_of(self, args[0])
    if graph is None:
        return call_original(self, args, nargsf, keywords)
    result = unread(<object>args[0], graph, <object>args[1])
    Py_INCREF(result)
    return <PyObject*>result


cdef dict _unread_state = None  # the attributes that all unread variables share


cdef object unread(object variable, object graph, object parent_op):
    global _unread_state
    cdef dict state
    tell_tapes(variable, graph)
    if _unread_state is None:
        result = _UnreadVariable(
            handle=variable._handle,
            dtype=variable._dtype,
            shape=variable._shape,
            in_graph_mode=variable._in_graph_mode,
            parent_op=parent_op,
            unique_id=variable._unique_id,
        )
        # The copy keeps the order of the attributes, but refers to no object of this variable.
        state = dict(result.__dict__)
        _describe(state, None, None, None)
        _unread_state = state
        return result
    state = _unread_state.copy()
    _describe(state, variable, graph, parent_op)
    result = _UnreadVariable.__new__(_UnreadVariable)
    result.__dict__ = state
    return result


cdef int _describe(dict state, object variable, object graph, object parent_op) except -1:
    """Set the attributes that differ between unread variables."""
    cdef bint given = variable is not None
    state["_graph_key"] = graph._graph_key if given else None
    state["_shape"] = variable._shape if given else None
    state["_dtype"] = variable._dtype if given else None
    state["_handle"] = variable._handle if given else None
    state["_unique_id"] = variable._unique_id if given else None
    state["_parent_op"] = parent_op
    return 0


METHODS = {
    "value": lambda original: VariableRead(original, VALUE),
    "read_value": lambda original: VariableRead(original, READ_VALUE),
    "read_value_no_copy": lambda original: VariableRead(original, READ_VALUE_NO_COPY),
    "numpy": lambda original: VariableRead(original, NUMPY),
    "__array__": lambda original: VariableRead(original, ARRAY),
    "__bool__": lambda original: VariableRead(original, BOOL),
    "__complex__": lambda original: VariableRead(original, COMPLEX),
    "__float__": lambda original: VariableRead(original, FLOAT),
    "__int__": lambda original: VariableRead(original, INT),
    "assign": lambda original: Assign(original, "AssignVariableOp"),
    "assign_add": lambda original: Assign(original, "AssignAddVariableOp"),
    "assign_sub": lambda original: Assign(original, "AssignSubVariableOp"),
    "_lazy_read": lazy_read,
}
"""By name of a method, the function that makes its replacement."""

enable(VariableRead)
enable(Assign)
