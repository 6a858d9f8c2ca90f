# distutils: language = c++
"""Stand-in for the function that forward accumulators call for each recorded op.

TensorFlow traces a function that computes the product of an op's Jacobian with a vector, once for
each op, attributes, dtypes and shapes. To find the trace again, it binds the arguments of each call
in Python. The stand-in finds the trace by a key. If no tape and no other accumulator records the
call, a plan runs it.
"""

from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
from fastops._core.preparing cimport flushes
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._situation cimport NO_PROMOTION, NO_STRATEGY, ONLY_HOST, PLAIN, missing
from fastops._specialize.cache cimport Cache
from fastops._specialize.learned cimport CallCounts
from fastops._specialize.policy cimport MAX_WALKS

from functools import partial as _partial

from tensorflow import resource as _resource, variant as _variant
from tensorflow.python.eager import forwardprop as _forwardprop
from tensorflow.python.eager.polymorphic_function import (
    tracing_compilation as _tracing_compilation,
)
from tensorflow.python.framework.dtypes import DType as _DType
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape
from tensorflow.python.pywrap_tfe import (
    TFE_Py_RegisterJVPFunction as _register,
    TFE_Py_TapeSetPossibleGradientTypes as _gradient_types,
)

from fastops._plans.repeated import RepeatedTrace as _RepeatedTrace


cdef enum:
    _REQUIRED = PLAIN | NO_PROMOTION | NO_STRATEGY | ONLY_HOST

cdef dict _num_traces = _forwardprop._TRACE_COUNT
cdef int _most_traces = _forwardprop._TRACE_COUNT_LIMIT
cdef object _options = _forwardprop._jvp_exact_config
cdef frozenset _ATOMS = frozenset([bool, bytes, float, int, str, type(None)])

cdef unsigned long long _known_after = flushes
cdef Cache _traces = Cache(MAX_WALKS)  # by key: the `RepeatedTrace`
cdef CallCounts _counts = CallCounts("tf.autodiff.ForwardAccumulator")


class KeylessError(Exception):
    """A value has no key."""


cdef object _key_of(value):
    """Return the key of an attribute."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind, tuple([_key_of(item) for item in value])
    if kind in _ATOMS or kind is _DType:
        return kind, value
    if kind is _TensorShape:
        return kind, str(value)
    raise KeylessError


cdef tuple _kinds_of(tensors):
    """Return the dtypes and shapes of the tensors in a list or tuple."""
    cdef list kinds = []
    for tensor in tensors:
        if tensor is None:
            kinds.append(None)
            continue
        if not IsEagerTensor(<PyObject*>tensor):
            raise KeylessError
        dtype = tensor.dtype
        if dtype is _resource or dtype is _variant:
            # TensorFlow also keys the dtype and shape that a handle leads to.
            data = tensor._handle_data
            if data is None:
                raise KeylessError
            kinds.append((dtype, data.SerializeToString()))
        else:
            kinds.append((dtype, tuple(tensor.shape)))
    return tuple(kinds)


cdef object _product(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # op_name, attr_tuple, inputs, outputs, tangents, use_batch=False
    global _known_after, _traces
    cdef PyObject* given[MAX_PARAMS]
    cdef PyObject* stored
    if not self.bind(args, n, keywords, given) or missing(_REQUIRED):
        return DECLINED
    if _known_after != flushes:
        _known_after, _traces = flushes, Cache(MAX_WALKS)
    op_name, attrs, inputs, outputs, tangents, batch = (
        <object>given[0], <object>given[1], <object>given[2], <object>given[3], <object>given[4],
        <object>given[5],
    )
    if type(op_name) is not str or _num_traces.get(op_name, 0) >= _most_traces:
        return DECLINED
    try:
        key = (
            op_name, _key_of(attrs), _kinds_of(inputs), _kinds_of(outputs), _kinds_of(tangents),
            type(inputs), type(outputs), type(tangents), type(batch), batch,
        )
    except KeylessError:
        return DECLINED
    tensors = [tensor for tensor in (*inputs, *outputs, *tangents) if tensor is not None]
    stored = _traces.find(key)
    if stored != NULL:
        _counts.used += 1
        tensors += (<object>stored).concrete.captured_inputs
        return (<object>stored).run(tensors, not _gradient_types(tensors))
    result = self.original(op_name, attrs, inputs, outputs, tangents, batch)
    trace = _trace_of((op_name, attrs, inputs, outputs, tangents, batch), tensors)
    if trace is not None:
        _traces.put(key, trace)
    return result


cdef object _trace_of(tuple args, list tensors):
    """Return the trace of a call that was made; None if it does not take exactly these tensors."""
    try:
        concrete = _tracing_compilation.trace_function(args, tracing_options=_options)
        kind = concrete.function_type
        flat = kind.unpack_inputs(kind.bind(*args))
        if len(flat) != len(tensors) or any([a is not b for a, b in zip(flat, tensors)]):
            return None
        return _RepeatedTrace(concrete)
    except Exception:  # the call has succeeded: only the trace is not kept
        return None


register("gradients", "forwardprop._jvp_dispatch", _product)

make = _partial(Answer, name="forwardprop._jvp_dispatch")
announce = _register
