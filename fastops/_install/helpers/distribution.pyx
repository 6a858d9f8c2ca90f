# distutils: language = c++
"""Answers for methods of the default distribution strategy, which has one replica.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._core.locals cimport default_graph, has_scopes, is_ordinary, of_this_thread
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_False, Py_None, Py_True
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._install.helpers.structures cimport leaves_of
from fastops._situation cimport EAGERLY, NO_TAPE, missing

from types import FunctionType

from tensorflow.python.autograph.core import ag_ctx as _autograph
from tensorflow.python.distribute import distribute_lib as _distribute
from tensorflow.python.distribute.reduce_util import ReduceOp as _ReduceOp
from tensorflow.python.ops import gen_array_ops as _gen_array_ops
from tensorflow.python.util import nest as _nest


cdef object _Context = _distribute._DefaultReplicaContext
cdef object _Extended = _distribute._DefaultDistributionExtended
cdef frozenset _names = frozenset(member.value for member in _ReduceOp)


cdef object _all_reduce(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, reduce_op, value, options=None
    cdef PyObject* values[MAX_PARAMS]
    cdef list leaves
    if not self.bind(args, n, keywords, values) or values[3] != Py_None:
        return DECLINED
    context, operation = <object>values[0], <object>values[1]
    if type(context) is not _Context or type(context._strategy._extended) is not _Extended:
        return DECLINED
    if _distribute._get_per_thread_mode().replica_context is not context:
        return DECLINED
    if type(operation) is not _ReduceOp and not (
        type(operation) is str and (<str>operation).upper() in _names
    ):
        return DECLINED
    if missing(EAGERLY | NO_TAPE):
        return DECLINED
    leaves = leaves_of(<object>values[2], False)
    if not leaves:
        return DECLINED
    for leaf in leaves:
        if not IsEagerTensor(<PyObject*>leaf):
            return DECLINED
    # The sum or mean over one replica is the value itself.
    copies = [_gen_array_ops.identity(leaf) for leaf in leaves]
    return _nest.pack_sequence_as(<object>values[2], copies)


cdef type _FunctionType = FunctionType
cdef object _ControlStatus = _autograph.ControlStatusCtx
cdef object _UNSPECIFIED = _autograph.Status.UNSPECIFIED
cdef object _require_strategy_scope = _distribute._require_strategy_scope_strategy
cdef str _CREATORS = "_variable_creator_stack"
cdef dict _own = {
    name: vars(_Extended)[name] for name in ("_scope", "_update", "_update_non_slot")
}


cdef class Creator:
    """The variable creator that a scope of the default strategy adds.

    Parameters
    ----------
    strategy : tf.distribute.Strategy
        The strategy.
    """

    cdef object strategy

    def __init__(self, strategy):
        self.strategy = strategy

    def __call__(self, next_creator, **kwargs):
        _require_strategy_scope(self.strategy)
        return next_creator(**kwargs)


cdef bint _is_by_default(object extended) except -1:
    """Whether the strategy is TensorFlow's default one, with unpatched methods."""
    if type(extended) is not _Extended:
        return False
    own = vars(_Extended)
    for name, function in _own.items():
        if own.get(name) is not function:
            return False
    return True


cdef object _update(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, var, fn, args=(), kwargs=None, group=True
    cdef PyObject* values[MAX_PARAMS]
    cdef bint scoped
    cdef tuple arguments
    cdef list creators, statuses
    if not self.bind(args, n, keywords, values):
        return DECLINED
    if values[5] != Py_True and values[5] != Py_False:
        return DECLINED
    if not PyTuple_CheckExact(<object>values[3]) and not PyList_CheckExact(<object>values[3]):
        return DECLINED
    if values[4] != Py_None and not PyDict_CheckExact(<object>values[4]):
        return DECLINED
    extended, variable, function = <object>values[0], <object>values[1], <object>values[2]
    if type(function) is not _FunctionType or function.__dict__ or not _is_by_default(extended):
        return DECLINED  # attributes of a function, set by decorators, may control AutoGraph
    if missing(EAGERLY):
        return DECLINED
    graph = default_graph(&scoped)
    if not is_ordinary(graph) or has_scopes(graph, "_distribution_strategy_stack"):
        return DECLINED
    state = graph._thread_local
    outer_creators = of_this_thread(state, _CREATORS)
    outer_statuses = of_this_thread(_autograph.stacks, "control_status")
    if not PyList_CheckExact(outer_creators) or not PyList_CheckExact(outer_statuses):
        return DECLINED
    statuses = outer_statuses
    if not statuses or statuses[len(statuses) - 1].status is not _UNSPECIFIED:
        return DECLINED
    strategy = extended._container_strategy()
    if outer_creators or strategy is not _distribute._get_default_strategy():
        return DECLINED
    creators = [(100, Creator(strategy))]
    status = _ControlStatus(_UNSPECIFIED)
    outer_variable = of_this_thread(_distribute._update_replica_id, "current")
    arguments = (variable, *<object>values[3])
    state._variable_creator_stack = creators
    _distribute._update_replica_id.current = variable
    statuses.append(status)
    try:
        try:
            if values[4] == Py_None:
                result = function(*arguments)
            else:
                result = function(*arguments, **(<dict><object>values[4]))
        finally:
            assert statuses[len(statuses) - 1] is status
            statuses.pop()
    finally:
        _distribute._update_replica_id.current = outer_variable
        if state._variable_creator_stack is not creators:
            raise _not_nested()
        state._variable_creator_stack = outer_creators
    return result if values[5] == Py_True else _nest.map_structure(extended._local_results, result)


cdef object _not_nested():
    """Return TensorFlow's error for a creator scope that was left too early or too late."""
    error = RuntimeError(
        "Variable creator scope nesting error: move call to "
        "tf.distribute.set_strategy() out of `with` scope."
    )
    error.__cause__ = RuntimeError("Exiting variable_creator_scope without proper nesting.")
    return error


register("helpers", "ReplicaContextBase.all_reduce", _all_reduce)
register("helpers", "StrategyExtendedV2.update", _update)
