# distutils: language = c++
"""Lowerings of arithmetic, selections, products, reductions and losses.

The first comment line of each lowering lists the parameters of the function.
"""

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject

from fastops._core.conversion cimport is_numpy
from fastops._core.tensors cimport dtype_of, host_tensor, rank_of, same_sizes, size_of
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_False, Py_None, Py_True
from fastops._dispatch cimport constant
from fastops._install.intercept cimport tensor_dtype
from fastops._install.public.arguments cimport (
    COMPLEX,
    INTEGERS,
    MAX_RANK,
    VALUES,
    are_tensors,
    is_int32,
    tensor_rank,
)
from fastops._install.public.lowering cimport (
    CHOSEN,
    Draft,
    Lowering,
    NOT_LOWERED,
    Site,
    done,
    is_tensor,
    keep,
    may_run,
    op_at,
    register,
)
from fastops._situation cimport IN_ORDER, NO_TAPE, ONLY_HOST, missing
from fastops._tf.protos cimport DT_BOOL, DT_DOUBLE, DT_FLOAT, DataType
from fastops._tf.tensor cimport Tensor

from tensorflow.python.util._pywrap_determinism import is_enabled as _deterministic


cdef object _ZERO = 0
cdef list _UPWARDS = [tuple(range(rank)) for rank in range(MAX_RANK + 1)]


cdef int _add_n(Lowering self, Draft* draft) except -1:
    # inputs
    return CHOSEN if are_tensors(draft.values[0], 2) else NOT_LOWERED


cdef int _round(Lowering self, Draft* draft) except -1:
    # x
    cdef unsigned long long dtype = (<unsigned long long>1) << tensor_dtype(draft.values[0])
    if dtype & INTEGERS:
        return done(draft, <object>draft.values[0])
    return self.choose(draft)


cdef bint _same_shape(object x, object y):
    cdef const Tensor* tensor = host_tensor(<PyObject*>x)
    cdef const Tensor* other = host_tensor(<PyObject*>y)
    return tensor != NULL and other != NULL and same_sizes(tensor, other)


cdef int _clip(Lowering self, Draft* draft) except -1:
    # t, clip_value_min, clip_value_max
    # The shapes are compared on the host only. A tensor elsewhere would be declined after the ops
    # have run, and TensorFlow would run them again.
    if not may_run(self) or host_tensor(draft.values[0]) == NULL:
        return NOT_LOWERED
    tensor = <object>draft.values[0]
    low = op_at(self, 0)(x=tensor, y=<object>draft.values[2])
    if not _same_shape(tensor, low):
        return NOT_LOWERED
    high = op_at(self, 1)(x=low, y=<object>draft.values[1])
    return done(draft, high) if _same_shape(tensor, high) else NOT_LOWERED


cdef int _logical_xor(Lowering self, Draft* draft) except -1:
    # x, y
    if not may_run(self):
        return NOT_LOWERED
    x, y = <object>draft.values[0], <object>draft.values[1]
    either = op_at(self, 0)(x=x, y=y)
    both = op_at(self, 1)(x=x, y=y)
    return done(draft, op_at(self, 1)(x=either, y=op_at(self, 2)(x=both)))


cdef int _where(Lowering self, Draft* draft) except -1:
    # condition, x, y
    cdef PyObject** values = draft.values
    if values[1] != Py_None and values[2] != Py_None:
        if (
            not missing(IN_ORDER | ONLY_HOST | NO_TAPE) and _are_alike(values)
            and (<Site>self.sites[0]).passable()
        ):
            draft.site = 2
        return CHOSEN
    if values[1] != values[2] or not IsEagerTensor(values[0]):
        return NOT_LOWERED
    draft.site = 1
    return CHOSEN


cdef bint _are_alike(PyObject** values) except -1:
    """Whether a condition and two tensors have one shape, so that nothing is broadcast.

    SelectV2 spends most of its time on broadcasting. Select does not broadcast, so it is faster.
    """
    cdef const Tensor* condition = host_tensor(values[0])
    cdef const Tensor* x = host_tensor(values[1])
    cdef const Tensor* y = host_tensor(values[2])
    return (
        condition != NULL and x != NULL and y != NULL
        and rank_of(condition) > 0  # with scalars, Select returns one of its inputs itself
        and same_sizes(condition, x) and same_sizes(condition, y)
        and dtype_of(condition) == DT_BOOL
        and dtype_of(x) == dtype_of(y) and (<unsigned long long>1) << <int>dtype_of(x) & VALUES
    )


cdef int _matmul(Lowering self, Draft* draft) except -1:
    # a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, a_is_sparse, b_is_sparse
    cdef PyObject** values = draft.values
    cdef int dtype = tensor_dtype(values[0])
    cdef int rank_a = tensor_rank(values[0]), rank_b = tensor_rank(values[1])
    cdef int i
    if dtype != tensor_dtype(values[1]) or rank_a < 2 or rank_b < 2:
        return NOT_LOWERED
    if values[6] == Py_True or values[7] == Py_True:
        return NOT_LOWERED
    for i in range(2, 4):
        if values[2 + i] == Py_True:
            if values[i] == Py_True:
                return NOT_LOWERED
            values[i] = Py_True
        # For complex numbers, transpose and adjoint differ: adjoint also conjugates.
        if values[i] == Py_True and ((<unsigned long long>1) << dtype) & COMPLEX:
            return NOT_LOWERED
    draft.site = 1 if rank_a > 2 or rank_b > 2 else 0
    return CHOSEN


cdef int _matmul_operator(Lowering self, Draft* draft) except -1:
    # x, y, or y, x where it is reflected; then what else `tf.matmul` has
    cdef int i
    if is_numpy(draft.values[1]):
        y = constant(<object>draft.values[1], <DataType>tensor_dtype(draft.values[0]))
        if y is None:
            return NOT_LOWERED
        draft.values[1] = keep(draft, y)
    elif not is_tensor(draft.values[1]):
        return NOT_LOWERED
    for i in range(2, 8):
        draft.values[i] = Py_False
    return _matmul(self, draft)


cdef int _reduction(Lowering self, Draft* draft) except -1:
    # input_tensor, axis, keepdims
    cdef int rank
    if draft.values[1] == Py_None:
        rank = tensor_rank(draft.values[0])
        if not 0 <= rank <= MAX_RANK:
            return NOT_LOWERED
        draft.values[1] = PyList_GET_ITEM(_UPWARDS, rank)
    draft.site = 0
    return CHOSEN


cdef int _arg_reduction(Lowering self, Draft* draft) except -1:
    # input, axis, output_type
    cdef long long axis
    if draft.values[1] == Py_None:
        draft.values[1] = <PyObject*>_ZERO
    elif not is_int32(draft.values[1], &axis):
        return NOT_LOWERED
    return CHOSEN


cdef int _last_axis(Lowering self, Draft* draft) except -1:
    # logits, axis
    cdef long long axis
    if draft.values[1] == Py_None:
        return CHOSEN
    if not is_int32(draft.values[1], &axis):
        return NOT_LOWERED
    return CHOSEN if axis == -1 or axis == tensor_rank(draft.values[0]) - 1 else NOT_LOWERED


cdef int _sparse_cross_entropy(Lowering self, Draft* draft) except -1:
    # labels, logits
    cdef const Tensor* labels = host_tensor(draft.values[0])
    cdef const Tensor* logits = host_tensor(draft.values[1])
    if (
        labels == NULL or logits == NULL or rank_of(labels) != 1 or rank_of(logits) != 2
        or size_of(labels, 0) != size_of(logits, 0)
        or dtype_of(logits) != DT_FLOAT and dtype_of(logits) != DT_DOUBLE
        or _deterministic() or not may_run(self)
    ):
        return NOT_LOWERED
    made = op_at(self, 0)(features=<object>draft.values[1], labels=<object>draft.values[0])
    return done(draft, made[0])  # the second output is for the gradient


register("add_n", _add_n)
register("round", _round)
register("clip", _clip)
register("logical_xor", _logical_xor)
register("where", _where)
register("matmul", _matmul)
register("matmul_operator", _matmul_operator)
register("reduction", _reduction)
register("arg_reduction", _arg_reduction)
register("last_axis", _last_axis)
register("sparse_cross_entropy", _sparse_cross_entropy)
