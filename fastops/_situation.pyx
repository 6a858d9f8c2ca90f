# distutils: language = c++
"""What surrounds a call: conditions under which TensorFlow runs it as in a plain eager program.

Tapes, graphs, scopes and settings change what TensorFlow does with a call. A stand-in, recording or
plan that does not reproduce such a change requires its absence. Each states its requirements as a
set of bits (`Situation`), and `missing` returns the first condition that does not hold. That
condition is the reason why the call is left to TensorFlow.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8
from cython.operator cimport dereference as deref

from fastops._core.locals cimport (
    default_graph, has_scopes, is_ordinary, of_this_thread, promotes_no_dtypes,
)
from fastops._core.reasons cimport R_ASYNC, R_DIRECT, R_OBSERVED
from fastops._cpp.runtime cimport Async, IsOnlyDevice, Observed, Runtime
from fastops._dispatch cimport gate, runtime
from fastops._tf.eager cimport recording

cdef extern from "definitions.h":
    pass

import threading

from tensorflow.python.distribute.distribute_lib import (
    _DefaultDistributionStrategy as _DefaultStrategy,
)
from tensorflow.python.eager import cancellation as _tf_cancellation
from tensorflow.python.eager.polymorphic_function import eager_function_run as _tf_run
from tensorflow.python.saved_model import save_context as _tf_save_context

from fastops._core.reasons import REASONS as _reasons, text_of as _text_of


cdef Runtime* _where = runtime()  # the address never changes; `gate` keeps the contents current
cdef dict _run_globals = _tf_run.__dict__
cdef dict _cancellation_globals = _tf_cancellation.__dict__
cdef type _local = threading.local
cdef object _saving = _tf_save_context._save_context
cdef object _FALSE = False
cdef str _EAGERLY = "RUN_FUNCTIONS_EAGERLY"
cdef str _CANCELLED = "_active_context"
cdef str _MANAGERS = "manager_stack"
cdef str _STRATEGIES = "_distribution_strategy_stack"

cdef dict _REASONS = {
    ONLY_HOST: _text_of("device_choice"),
    NO_TAPE: _text_of("tape_open"),
    NO_PROMOTION: _text_of("dtype_promotion"),
    USUAL_DEVICE: _text_of("device_scope"),
    TRACED_RUN: _text_of("functions_run_eagerly"),
    NO_CANCELLATION: _text_of("cancellation"),
    NO_EXPORT: _text_of("export"),
    NO_GRAPH_SCOPE: _text_of("graph_scope"),
    NO_STRATEGY: _text_of("strategy_scope"),
    ONE_REPLICA: _text_of("strategy_scope"),
}


cdef int missing(int required) except -1:
    cdef PyObject* device_name = NULL
    cdef bint scoped = False
    if required & EAGERLY and gate(&device_name) != R_DIRECT:
        return EAGERLY
    if required & IN_ORDER:
        if _disorder(&device_name) != R_DIRECT:
            return IN_ORDER
        if required & ONLY_HOST and not _where.only_host:
            return ONLY_HOST
        if (
            required & USUAL_DEVICE
            and <object>device_name != ""
            and not IsOnlyDevice(deref(_where), PyUnicode_AsUTF8(<object>device_name))
        ):
            return USUAL_DEVICE
    if required & NO_TAPE and recording():
        return NO_TAPE
    if required & NO_PROMOTION and not promotes_no_dtypes():
        return NO_PROMOTION
    if required & TRACED_RUN and PyDict_GetItem(_run_globals, _EAGERLY) != <PyObject*>_FALSE:
        return TRACED_RUN
    if required & NO_CANCELLATION and _is_cancellable():
        return NO_CANCELLATION
    if required & NO_EXPORT and _saving._in_save_context:
        return NO_EXPORT
    if required & (NO_GRAPH_SCOPE | NO_STRATEGY | ONE_REPLICA):
        graph = default_graph(&scoped)
        if graph is None:
            return 0
        if required & NO_GRAPH_SCOPE and (scoped or not is_ordinary(graph)):
            return NO_GRAPH_SCOPE
        if required & (NO_STRATEGY | ONE_REPLICA) and has_scopes(graph, _STRATEGIES):
            if required & NO_STRATEGY:
                return NO_STRATEGY
            if not _is_one_replica(graph):
                return ONE_REPLICA
    return 0


cdef bint _is_cancellable() except -1:
    """Whether a cancellation manager is active. Since TensorFlow 2.22, each thread has its own."""
    cdef PyObject* active = PyDict_GetItem(_cancellation_globals, _CANCELLED)
    if active == <PyObject*>None:
        return False
    return (
        active == NULL
        or type(<object>active) is not _local
        or bool(of_this_thread(<object>active, _MANAGERS))
    )


cdef int _disorder(PyObject** device_name) except -1:
    """Return why ops of this thread do not run eagerly and in order; R_DIRECT if they do."""
    cdef int reason = gate(device_name)
    if reason != R_DIRECT:
        return reason
    if Async(deref(_where)):
        return R_ASYNC
    return R_OBSERVED if Observed(deref(_where)) else R_DIRECT


cdef bint _is_one_replica(object graph) except -1:
    """Whether the only strategies are TensorFlow's default one, which has a single replica."""
    stack = of_this_thread(graph._thread_local, _STRATEGIES)
    for mode in stack:
        if type(mode.strategy) is not _DefaultStrategy:
            return False
    return stack[len(stack) - 1].replica_context is not None


cdef str reason_of(int condition):
    cdef PyObject* device_name = NULL
    if condition == EAGERLY or condition == IN_ORDER:
        return _reasons[_disorder(&device_name)].sentence
    return _REASONS[condition]


cpdef bint is_plain(bint anywhere=False) except -1:
    """Tell whether nothing that surrounds a call of this thread affects how TensorFlow runs it.

    The thread executes eagerly and in order. No tape records. No graph or distribution strategy is
    open, nor a device scope that names another device than the only one, and no SavedModel is being
    exported.

    Parameters
    ----------
    anywhere : bool, default False
        Whether there may be devices other than the host.
    """
    return not missing(PLAIN | NO_TAPE | NO_STRATEGY | (0 if anywhere else ONLY_HOST))
