# distutils: language = c++
"""Reads a thread's state in a `threading.local`, its default graph, and settings of the process."""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

import threading

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.util._pywrap_determinism import is_enabled as _deterministic


cdef type _local = threading.local
cdef type _Graph = _tf_ops.Graph
cdef object _graphs = _tf_ops._default_graph_stack
cdef dict _settings = _tf_ops.__dict__
cdef str _CONVERSION = "_dtype_conversion_mode"
cdef object _NO_CONVERSION = _tf_ops.PromoMode.OFF


cdef object of_this_thread(object local, str name):
    cdef PyObject* value
    if type(local) is not _local:
        return getattr(local, name, None)
    value = PyDict_GetItem(<dict>local.__dict__, name)  # a failing getattr takes 0.4 us
    return None if value == NULL else <object>value


cdef object default_graph(bint* scoped):
    cdef dict state = _graphs.__dict__
    cdef list stack = state["stack"]
    scoped[0] = bool(stack)
    return stack[len(stack) - 1] if stack else state["_global_default_graph"]


cdef bint is_ordinary(object graph) noexcept:
    return type(graph) is _Graph


cdef bint has_scopes(object graph, str stack_name) except -1:
    return bool(of_this_thread(graph._thread_local, stack_name))


cdef bint unseeded() except -1:
    return _tf_context._context._seed is None and not _deterministic()


cdef bint promotes_no_dtypes() noexcept:
    return PyDict_GetItem(_settings, _CONVERSION) == <PyObject*>_NO_CONVERSION
