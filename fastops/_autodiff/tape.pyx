# distutils: language = c++
"""What a ``tf.GradientTape`` computes and watches, for tensors and variables in flat lists.

TensorFlow's methods also accept any nesting of composite values, flatten it and check each value.
These functions skip that, and make the same runtime calls. The walk over the records of a tape is
that of TensorFlow's runtime, which calls ``backprop._gradient_function`` for each record.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t

from fastops._autodiff cimport rules
from fastops._autodiff.walks cimport count_walk, describe_from, expand, gradients_on
from fastops._core.declined cimport DECLINED
from fastops._core.holders cimport held, is_holder
from fastops._core.measuring cimport note_walk
from fastops._core.observer cimport is_measured
from fastops._core.tensors cimport (
    handle_dtype, host_tensor, is_local, note_gradient, ones_like,
)
from fastops._core.threads cimport this_thread
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.timer cimport Nanoseconds
from fastops._situation cimport IN_ORDER, NO_TAPE, ONLY_HOST, missing
from fastops._tf.eager cimport (
    TFE_Py_TapeSetNew,
    TFE_Py_TapeSetRemove,
    TFE_Py_TapeWatch,
    TFE_Py_TapeWatchedVariables,
)
from fastops._tf.protos cimport (
    DT_BFLOAT16,
    DT_COMPLEX128,
    DT_COMPLEX64,
    DT_DOUBLE,
    DT_FLOAT,
    DT_HALF,
)

import weakref

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager.tape import Tape as _Tape
from tensorflow.python.framework.composite_tensor import CompositeTensor as _CompositeTensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _Variable
from tensorflow.python.ops.unconnected_gradients import UnconnectedGradients as _Unconnected
from tensorflow.python.util import nest as _nest

from fastops._core.reasons import text_of as _text_of


# Reasons why TensorFlow walks.
cdef str _ARGUMENTS = _text_of("walk_arguments")
cdef str _PLACEMENT = _text_of("walk_placement")

cdef object _walk = pywrap_tfe.TFE_Py_TapeGradient
cdef object _NONE = _Unconnected.NONE
cdef object _ZERO = _Unconnected.ZERO

# Tapes whose `gradient` raised. TensorFlow raises again for such a tape, but only in code that
# looks up the targets. That code does not run if the call passes seeds, as `tape_gradient` does.
cdef object _failed = weakref.WeakSet()
cdef bint _have_failed = False  # whether there was ever one


cdef int mark_failed(object tape) except -1:
    global _have_failed
    _have_failed = True
    _failed.add(tape)
    return 0


cdef bint has_failed(object tape) except -1:
    """Whether `gradient` of a tape has raised."""
    return _have_failed and tape in _failed


cdef bint push_tape(object tape) except -1:
    if tape._recording is not False or tape._tape is not None:
        return False
    made = <object>TFE_Py_TapeSetNew(
        <PyObject*>tape._persistent, <PyObject*>tape._watch_accessed_variables
    )
    Py_DECREF(made)
    recorded = _Tape.__new__(_Tape)
    recorded._tape = made
    tape._tape = recorded
    tape._recording = True
    return True


cdef bint pop_tape(object tape) except -1:
    recorded = tape._tape
    if tape._recording is not True or type(recorded) is not _Tape:
        return False
    recorded = recorded._tape
    TFE_Py_TapeSetRemove(<PyObject*>recorded)
    tape._recording = False
    return True


cdef bint _differentiable(object value) noexcept:
    """Whether a value is a tensor of a dtype that has gradients."""
    return IsEagerTensor(<PyObject*>value) and handle_dtype(<PyObject*>value) in (
        DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_COMPLEX64, DT_COMPLEX128
    )


cdef list _listed(object values):
    """Return the values of a list or tuple; any other value becomes a list of one."""
    return list(values) if type(values) is list or type(values) is tuple else [values]


cdef object watch_tensors(object tape, object tensors):
    """Do what ``tape.watch`` does, and return None; `DECLINED` if TensorFlow has to do it."""
    recorded = tape._tape
    values = _listed(tensors)
    if type(recorded) is not _Tape:
        return DECLINED
    for value in values:
        if not _differentiable(value):
            return DECLINED
    recorded = recorded._tape
    for value in values:
        TFE_Py_TapeWatch(<PyObject*>recorded, <PyObject*>value)
    return None


cdef object tape_gradient(object tape, object target, object sources, object output_gradients,
                          object unconnected):
    """Return the result of ``tape.gradient``; `DECLINED` if TensorFlow has to compute it."""
    note_gradient()
    result = _tape_gradient(tape, target, sources, output_gradients, unconnected)
    if result is DECLINED:
        count_walk(_ARGUMENTS)
    return result


cdef object _tape_gradient(object tape, object target, object sources, object output_gradients,
                           object unconnected):
    cdef list targets, seeds, raw, flat
    cdef str kind
    cdef bint only_host, odd = False
    recorded = tape._tape
    if type(recorded) is not _Tape or tape._recording is not False or has_failed(tape):
        return DECLINED
    if unconnected is _NONE or type(unconnected) is str and unconnected == "none":
        kind = "none"
    elif unconnected is _ZERO or type(unconnected) is str and unconnected == "zero":
        kind = "zero"
    else:
        return DECLINED
    only_host = not missing(IN_ORDER | ONLY_HOST)
    if not only_host and missing(IN_ORDER):
        return DECLINED

    # The seeds: ones for each target, as TensorFlow would make them.
    targets = _listed(target)
    for value in targets:
        if not _differentiable(value):
            return DECLINED
    if output_gradients is None and only_host:
        seeds = []
        for value in targets:
            if host_tensor(<PyObject*>value) == NULL:
                return DECLINED
            seeds.append(ones_like(host_tensor(<PyObject*>value)))
    elif output_gradients is None:
        seeds = None  # TensorFlow's runtime makes the ones, and places them on a device
    else:
        seeds = _listed(output_gradients)
        if len(seeds) != len(targets):
            return DECLINED
        for value, seeded in zip(seeds, targets):
            if not IsEagerTensor(<PyObject*>value):
                return DECLINED
            odd = odd or not rules.is_alike(value, seeded)

    raw = _listed(sources)
    flat = _flat_sources(raw)
    if flat is None:
        return DECLINED

    walked = None
    rules.begin_walk(odd)
    try:
        if kind == "none" and seeds is not None:
            walked = gradients_on(recorded._tape, targets, flat, seeds)
        if walked is None:
            count_walk(_PLACEMENT)
            walked = walk_of_runtime(
                _walk, _PLACEMENT, (recorded._tape, targets, flat, seeds, raw, kind)
            )
    finally:
        rules.end_walk()
    use_up(tape)
    if type(sources) is list:
        return walked
    return tuple(walked) if type(sources) is tuple else walked[0]


cdef object walk_of_runtime(object function, str why, tuple arguments):
    cdef int64_t begin = Nanoseconds()
    expand(arguments[0])
    result = function(*arguments)
    if is_measured(this_thread()):
        note_walk(begin, Nanoseconds(), "tensorflow", why, 0)
    return result


cdef list _flat_sources(list sources):
    """Return the tensors, and the handles of the variables; None if there is anything else."""
    cdef list flat = []
    for value in sources:
        if not _differentiable(value):
            if type(value) is not _Variable and not _is_variable(value):
                return None
            value = _handle_of(value)
            if not IsEagerTensor(<PyObject*>value):
                return None
        if not is_local(<PyObject*>value):
            return None
        flat.append(value)
    return flat


cpdef object use_up(object tape):
    """Do what TensorFlow does with a tape that has computed gradients and is not persistent."""
    if not tape._persistent:
        recorded = tape._tape._tape
        variables = <object>TFE_Py_TapeWatchedVariables(<PyObject*>recorded)
        Py_DECREF(variables)
        tape._watched_variables = variables
        tape._tape = None


def walk_from(tape, target, list sources not None):
    """Return what the walk over a tape from a target depends on.

    Parameters
    ----------
    tape : tf.GradientTape
        The tape. Its class is exactly that.
    target : EagerTensor
        The target.
    sources : list
        The sources.

    Returns
    -------
    tuple or None
        The key of the walk, an object that keeps alive what the key has by address, and a list of
        tensors: those that the records keep, then the sources (of variables the handles). None if
        TensorFlow has to walk.
    """
    cdef list flat
    recorded = tape._tape
    if (
        type(recorded) is not _Tape
        or tape._recording is not False
        or has_failed(tape)
        or missing(IN_ORDER | ONLY_HOST | NO_TAPE)
        or not _differentiable(target)
    ):
        return None
    flat = _flat_sources(sources)
    if flat is None:
        return None
    described = describe_from(recorded._tape, target, flat)
    if described is None:
        return None
    key, case, tensors = described
    kinds = tuple([(source.dtype, tuple(source.shape)) for source in sources])
    return (key, kinds), case, tensors + flat


cdef object _handle_of(object variable):
    """Return the handle of a variable of TensorFlow or Keras."""
    own = held(variable) if is_holder(<PyObject*>variable) else variable
    return own._handle if type(own) is _Variable else variable.handle


cdef dict _kinds = {}  # by type, whether `_is_variable` holds for its instances


cdef bint _is_variable(object value) except -1:
    """Whether TensorFlow treats a value as a variable with a handle, as it treats Keras's."""
    known = _kinds.get(type(value))
    if known is None:
        known = _kinds[type(value)] = (
            hasattr(type(value), "_should_act_as_resource_variable")
            and not isinstance(value, _CompositeTensor)
            and not _nest.is_nested(value)
        )
    return known
