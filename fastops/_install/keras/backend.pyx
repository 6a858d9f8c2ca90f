# distutils: language = c++
"""Lowerings of functions of Keras's backend, for calls in which dtype promotion changes nothing.

The first comment line of each lowering lists the parameters of the function.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.tuple cimport PyTuple_GET_SIZE

from fastops._core.holders cimport set_holder
from fastops._core.locals cimport of_this_thread
from fastops._core.tensors cimport host_tensor, rank_of, size_of
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None, PyFloat_Type
from fastops._dispatch cimport constant
from fastops._specialize.guards.names cimport Guard, holds
from fastops._install.intercept cimport tensor_dtype
from fastops._install.public.arguments cimport FLOATS, tensor_rank
from fastops._install.public.lowering cimport (
    CHOSEN,
    Draft,
    Lowering,
    NOT_LOWERED,
    Site,
    done,
    find,
    is_number,
    keep,
    lowering_t,
    may_run,
    op_at,
    register,
)
from fastops._tf.protos cimport DataType
from fastops._tf.tensor cimport Tensor

from tensorflow.python.framework import dtypes as _dtypes

from fastops._install import restated as _restated
from fastops._install.lookups import of_class as _of_class


# A class and state of the imported Keras; set by `attach`.
cdef PyTypeObject* _variable_type = NULL
cdef dict _global_state = None
cdef Guard _of_variables = None  # guards the methods of Keras's variables
cdef bint _squeezes_biases = True  # whether a bias may have more sizes, which are one

cdef tuple _SCOPES = ("stateless_scope", "autocast_scope")
cdef object _DType = _dtypes.DType
cdef object _float32_dtype = _dtypes.float32
cdef dict _DTYPES = {
    dtype.name: dtype
    for dtype in map(_dtypes.as_dtype, (
        "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
    ).split())
}

# Lowerings of TensorFlow's functions, which some functions of Keras share.
cdef lowering_t _reduction = find("reduction")
cdef lowering_t _cast = find("cast")


def attach(keras):
    """Look up the names of Keras that the lowerings use.

    Parameters
    ----------
    keras : module
        ``keras.src``.
    """
    global _variable_type, _global_state, _of_variables, _squeezes_biases
    _variable_type = <PyTypeObject*>keras.backend.Variable
    keras.backend.common.global_state.GLOBAL_STATE_TRACKER  # raises if Keras does not have it
    _global_state = keras.backend.common.global_state.__dict__
    _of_variables = _of_class(keras.backend.Variable, "value", "_maybe_autocast", "__tf_tensor__")
    set_holder(keras.backend.Variable, _held)
    _squeezes_biases = _restated.variant("keras.src.backend.tensorflow.numpy:add") is None


cdef bint _has_another() except -1:
    """Whether a scope is open in which Keras variables may have substituted or cast values."""
    tracker = _global_state["GLOBAL_STATE_TRACKER"]
    for scope in _SCOPES:
        if of_this_thread(tracker, scope) is not None:
            return True
    return False


cdef object _held(object variable):
    """Return the variable in a Keras variable; None if a scope or patched method may change it."""
    return None if _has_another() or not holds(_of_variables) else variable._value


cdef int _operands(Lowering self, Draft* draft) except -1:
    # x1, x2
    cdef int dtype = -1, i
    cdef unsigned long long bit
    cdef Site site
    for i in range(2):
        if is_number(draft.values[i]):
            continue
        if dtype >= 0 and tensor_dtype(draft.values[i]) != dtype:
            return NOT_LOWERED
        dtype = tensor_dtype(draft.values[i])
    if dtype < 0:
        return NOT_LOWERED
    bit = (<unsigned long long>1) << dtype
    for i in range(2):
        if Py_TYPE(<object>draft.values[i]) == &PyFloat_Type and not bit & FLOATS:
            return NOT_LOWERED
        # An op would not convert a number to the dtype of a variable, so it is converted here.
        if is_number(draft.values[i]) and not IsEagerTensor(draft.values[1 - i]):
            number = constant(<object>draft.values[i], <DataType>dtype)
            if number is None:
                return NOT_LOWERED
            draft.values[i] = keep(draft, number)
    for i in range(<int>PyTuple_GET_SIZE(self.sites)):
        site = self.sites[i]
        if bit & site.dtypes:
            draft.site = i
            return CHOSEN
    return NOT_LOWERED


cdef int _keras_add(Lowering self, Draft* draft) except -1:
    # x1, x2
    cdef int outcome = _operands(self, draft)
    cdef const Tensor* x
    cdef long long size
    if outcome == NOT_LOWERED or is_number(draft.values[1]):
        return outcome
    if not _squeezes_biases:
        return outcome if is_number(draft.values[0]) else _add_by_ranks(self, draft)
    # If x2 can be a bias, Keras adds it by BiasAdd.
    size = _bias_size(draft.values[1])
    if size < 0:
        return outcome
    if not IsEagerTensor(draft.values[0]):
        if is_number(draft.values[0]) or tensor_rank(draft.values[0]) < 2:
            return outcome
        return NOT_LOWERED
    x = host_tensor(draft.values[0])
    if x == NULL:
        return NOT_LOWERED
    if rank_of(x) < 2:
        return outcome
    if size_of(x, rank_of(x) - 1) != size:
        return NOT_LOWERED if size_of(x, 1) == size else outcome
    draft.site = 1
    if tensor_rank(draft.values[1]) != 1:
        if not IsEagerTensor(draft.values[1]) or not may_run(self):
            return NOT_LOWERED
        draft.values[1] = keep(draft, op_at(self, 2)(input=<object>draft.values[1]))
    return outcome


cdef int _add_by_ranks(Lowering self, Draft* draft) except -1:
    """Choose the site as Keras does since version 3.16.

    BiasAdd adds a vector to the last axis of the first operand, or a tensor of the rank of the
    first operand that has one size other than one.
    """
    cdef tuple bias = _sizes_of(draft.values[1])
    cdef int rank = tensor_rank(draft.values[0]), plain = draft.site
    cdef long long last
    if rank < 0 or bias is None or None in bias:
        return NOT_LOWERED
    if rank < 2 or len(bias) != 1 and (
        rank < 3 or rank != len(bias) or rank - bias.count(1) > 1
    ):
        return CHOSEN
    last = _last_size(draft.values[0], rank)
    if last < 0:
        return NOT_LOWERED
    if len(bias) == 1:
        draft.site = 1 if bias[0] == last else plain
        return CHOSEN
    if bias[rank - 1] == 1 or bias[rank - 1] != last:
        return NOT_LOWERED  # the bias is along another axis, or of one element
    if not IsEagerTensor(draft.values[1]) or not may_run(self):
        return NOT_LOWERED
    draft.site = 1
    draft.values[1] = keep(
        draft, op_at(self, 2)(input=<object>draft.values[1], axis=list(range(rank - 1)))
    )
    return CHOSEN


cdef long long _last_size(PyObject* tensor, int rank) except -2:
    """Return the size of a tensor or variable along its last axis; -1 if it is not known."""
    cdef const Tensor* value
    if not IsEagerTensor(tensor):
        size = (<object>tensor)._shape._dims[rank - 1]
        return -1 if size is None else size
    value = host_tensor(tensor)
    return -1 if value == NULL else size_of(value, rank - 1)


cdef tuple _sizes_of(PyObject* tensor):
    """Return the sizes of a tensor or variable; None if they are not known on the host."""
    cdef const Tensor* value
    cdef int i
    if not IsEagerTensor(tensor):
        return (<object>tensor)._shape._dims
    value = host_tensor(tensor)
    return None if value == NULL else tuple([size_of(value, i) for i in range(rank_of(value))])


cdef long long _bias_size(PyObject* tensor) except -2:
    """Return the only size that is greater than one; -1 if there is not exactly one."""
    cdef long long largest = -1
    for size in _sizes_of(tensor) or ():
        if size is None or size > 1:
            if largest >= 0 or size is None:
                return -1
            largest = size
    return largest


cdef int _keras_matmul(Lowering self, Draft* draft) except -1:
    # x1, x2
    if (
        tensor_dtype(draft.values[0]) != tensor_dtype(draft.values[1])
        or tensor_rank(draft.values[0]) != 2
        or tensor_rank(draft.values[1]) != 2
    ):
        return NOT_LOWERED
    return self.choose(draft)


cdef int _keras_reduction(Lowering self, Draft* draft) except -1:
    # x, axis, keepdims
    if self.choose(draft) == NOT_LOWERED:
        return NOT_LOWERED
    return _reduction(self, draft)


cdef int _keras_cast(Lowering self, Draft* draft) except -1:
    # x, dtype
    cdef object to = <object>draft.values[1]
    cdef PyObject* dtype
    if type(to) is not _DType:
        dtype = PyDict_GetItem(_DTYPES, to) if type(to) is str else NULL
        if dtype == NULL:
            return NOT_LOWERED
        to = <object>dtype
    if not IsEagerTensor(draft.values[0]):
        if Py_TYPE(<object>draft.values[0]) != &PyFloat_Type or to is not _float32_dtype:
            return NOT_LOWERED
        number = constant(<object>draft.values[0], <DataType><int>to._type_enum)
        return NOT_LOWERED if number is None else done(draft, number)
    draft.values[1] = <PyObject*>to
    return _cast(self, draft)


cdef int _keras_convert(Lowering self, Draft* draft) except -1:
    # x, dtype
    cdef PyObject* x = draft.values[0]
    if draft.values[1] != Py_None:
        return _keras_cast(self, draft)
    if IsEagerTensor(x) or Py_TYPE(<object>x) == _variable_type:
        return done(draft, <object>x)
    return NOT_LOWERED


register("operands", _operands)
register("keras_add", _keras_add)
register("keras_matmul", _keras_matmul)
register("keras_reduction", _keras_reduction)
register("keras_cast", _keras_cast)
register("keras_convert", _keras_convert)
