# distutils: language = c++
"""The methods of ``tf.GradientTape``, for tensors and variables in flat lists.

TensorFlow's methods also accept any nesting of composite values, flatten it and check each value.
The stand-ins skip that, and make the same runtime calls.
"""

cimport cython
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._core.holders cimport held, is_holder
from fastops._core.tensors cimport handle_dtype, host_tensor, is_local, ones_like
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._dispatch cimport in_order, on_host
from fastops._install.replacement cimport Replacement, call_original, enable, live, replacing
from fastops._tf.eager cimport TFE_Py_TapeWatch
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
from tensorflow.python.eager.backprop import GradientTape as _GradientTape
from tensorflow.python.eager.tape import Tape as _Tape
from tensorflow.python.framework.composite_tensor import CompositeTensor as _CompositeTensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _Variable
from tensorflow.python.ops.unconnected_gradients import UnconnectedGradients as _Unconnected
from tensorflow.python.util import nest as _nest


cdef object _TENSORFLOW = object()  # returned in place of a result: fall back to TensorFlow
cdef object _tape_gradient = pywrap_tfe.TFE_Py_TapeGradient
cdef object _NONE = _Unconnected.NONE
cdef object _ZERO = _Unconnected.ZERO


cdef bint _differentiable(object value) noexcept:
    """Whether a value is a tensor of a dtype that has gradients."""
    return IsEagerTensor(<PyObject*>value) and handle_dtype(<PyObject*>value) in (
        DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_COMPLEX64, DT_COMPLEX128
    )


cdef list _listed(object values):
    """Return the values of a list or tuple; any other value becomes a list of one."""
    return list(values) if type(values) is list or type(values) is tuple else [values]


# ---------------------------------------------------------------------------------------------
# tf.GradientTape.watch
# ---------------------------------------------------------------------------------------------

def watch(original):
    """Return the stand-in for ``tf.GradientTape.watch``."""
    return replacing(original, _watch)


cdef PyObject* _watch(PyObject* callable, PyObject* const* args, size_t nargsf,
                      PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 2
        or <PyObject*>Py_TYPE(<object>args[0]) != <PyObject*>_GradientTape
        or not live
    ):
        return call_original(self, args, nargsf, keywords)
    tape = (<object>args[0])._tape
    tensors = _listed(<object>args[1])
    if type(tape) is not _Tape:
        return call_original(self, args, nargsf, keywords)
    for tensor in tensors:
        if not _differentiable(tensor):
            return call_original(self, args, nargsf, keywords)
    tape = tape._tape
    for tensor in tensors:
        TFE_Py_TapeWatch(<PyObject*>tape, <PyObject*>tensor)
    Py_INCREF(None)
    return <PyObject*>None


# ---------------------------------------------------------------------------------------------
# tf.GradientTape.gradient
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class Gradient(Replacement):
    """Stand-in for ``tf.GradientTape.gradient``.

    Parameters
    ----------
    original : callable
        TensorFlow's method.
    """

    cdef readonly long long taken  # number of calls that did not fall back

    def __init__(self, original):
        super().__init__(original)
        self.vectorcall = _gradient


cdef tuple _PARAMETERS = ("target", "sources", "output_gradients", "unconnected_gradients")

# Tapes whose `gradient` raised. TensorFlow raises again for such a tape, but only in code that
# looks up the targets. That code does not run if the call passes seeds, as the stand-in does.
cdef object _broken = weakref.WeakSet()


cdef PyObject* _gradient(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    cdef Gradient self = <Gradient>callable
    cdef Py_ssize_t i, j, n = PyVectorcall_NARGS(nargsf)
    cdef PyObject* given[4]
    if (
        not live
        or not 1 <= n <= 5
        or <PyObject*>Py_TYPE(<object>args[0]) != <PyObject*>_GradientTape
    ):
        return call_original(self, args, nargsf, keywords)
    given[0] = given[1] = NULL
    given[2] = <PyObject*>None
    given[3] = <PyObject*>_NONE
    for i in range(1, n):
        given[i - 1] = args[i]
    if keywords != NULL:
        for i in range(PyTuple_GET_SIZE(<object>keywords)):
            for j in range(n - 1, 4):
                if _PARAMETERS[j] == <object>PyTuple_GET_ITEM(<object>keywords, i):
                    given[j] = args[n + i]
                    break
            else:
                return call_original(self, args, nargsf, keywords)
    if given[0] == NULL or given[1] == NULL:
        return call_original(self, args, nargsf, keywords)
    tape = <object>args[0]
    try:
        result = _gradients(
            tape, <object>given[0], <object>given[1], <object>given[2], <object>given[3]
        )
        if result is _TENSORFLOW:
            return call_original(self, args, nargsf, keywords)
    except BaseException:
        _broken.add(tape)
        raise
    self.taken += 1
    Py_INCREF(result)
    return <PyObject*>result


cdef object _gradients(object tape, object target, object sources, object output_gradients,
                       object unconnected):
    cdef list targets, seeds, raw, flat
    cdef str kind
    cdef bint only_host
    recorded = tape._tape
    if type(recorded) is not _Tape or tape._recording is not False or tape in _broken:
        return _TENSORFLOW
    if unconnected is _NONE or type(unconnected) is str and unconnected == "none":
        kind = "none"
    elif unconnected is _ZERO or type(unconnected) is str and unconnected == "zero":
        kind = "zero"
    else:
        return _TENSORFLOW
    only_host = on_host()
    if not only_host and not in_order():
        return _TENSORFLOW

    # The seeds: ones for each target, as TensorFlow would make them.
    targets = _listed(target)
    for value in targets:
        if not _differentiable(value):
            return _TENSORFLOW
    if output_gradients is None and only_host:
        seeds = []
        for value in targets:
            if host_tensor(<PyObject*>value) == NULL:
                return _TENSORFLOW
            seeds.append(ones_like(host_tensor(<PyObject*>value)))
    elif output_gradients is None:
        seeds = None  # TensorFlow's runtime makes the ones, and places them on a device
    else:
        seeds = _listed(output_gradients)
        if len(seeds) != len(targets):
            return _TENSORFLOW
        for value in seeds:
            if not IsEagerTensor(<PyObject*>value):
                return _TENSORFLOW

    # The sources: tensors, and the handles of variables.
    raw = _listed(sources)
    flat = []
    for value in raw:
        if not _differentiable(value):
            if type(value) is not _Variable and not _is_variable(value):
                return _TENSORFLOW
            value = _handle_of(value)
            if not IsEagerTensor(<PyObject*>value):
                return _TENSORFLOW
        if not is_local(<PyObject*>value):
            return _TENSORFLOW
        flat.append(value)

    flat = _tape_gradient(recorded._tape, targets, flat, seeds, raw, kind)
    if not tape._persistent:
        tape._watched_variables = recorded.watched_variables()
        tape._tape = None
    if type(sources) is list:
        return flat
    return tuple(flat) if type(sources) is tuple else flat[0]


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


enable(Gradient)
