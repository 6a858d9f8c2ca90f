# distutils: language = c++
"""Answers that tell whether ops run eagerly, and whether tracebacks are filtered.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
from fastops._core.locals cimport default_graph, of_this_thread
from fastops._install.answer cimport Answer, register
from fastops._situation cimport EAGERLY, missing

from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.util import traceback_utils as _tracebacks


cdef object _Graph = _tf_ops.Graph


cdef object _executing_eagerly(Answer self, PyObject* const* args, Py_ssize_t n,
                               PyObject* keywords):
    # no parameters
    return True if n == 0 and keywords == NULL and not missing(EAGERLY) else DECLINED


cdef object _inside_function(Answer self, PyObject* const* args, Py_ssize_t n,
                             PyObject* keywords):
    # no parameters
    cdef bint scoped
    if n != 0 or keywords != NULL:
        return DECLINED
    graph = default_graph(&scoped)
    return graph._building_function if type(graph) is _Graph else DECLINED


cdef object _filters_tracebacks(Answer self, PyObject* const* args, Py_ssize_t n,
                                PyObject* keywords):
    # no parameters
    if n != 0 or keywords != NULL:
        return DECLINED
    value = of_this_thread(_tracebacks._ENABLE_TRACEBACK_FILTERING, "value")
    return value if value is False else True if value is None or value is True else DECLINED


register("helpers", "context.executing_eagerly", _executing_eagerly)
register("helpers", "ops.executing_eagerly_outside_functions", _executing_eagerly)
register("helpers", "ops.inside_function", _inside_function)
register("helpers", "traceback_utils.is_traceback_filtering_enabled", _filters_tracebacks)
