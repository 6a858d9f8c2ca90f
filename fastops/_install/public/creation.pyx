# distutils: language = c++
"""Lowerings of functions that make tensors: from values, from shapes, and at random.

The first comment line of each lowering lists the parameters of the function.
"""

from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core cimport draws
from fastops._core.conversion cimport has_default_conversion, is_list, is_numpy
from fastops._core.locals cimport unseeded
from fastops._core.tensors cimport handle_dtype
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None
from fastops._dispatch cimport constant, pack_list
from fastops._install.intercept cimport DTYPES, tensor_dtype
from fastops._install.public.arguments cimport (
    COMPLEX,
    NUMERIC,
    base_dtype,
    is_int32,
    static_shape,
)
from fastops._install.public.lowering cimport (
    CHOSEN,
    Draft,
    Lowering,
    NOT_LOWERED,
    done,
    failed,
    is_number,
    is_tensor,
    keep,
    may_run,
    op_at,
    register,
)
from fastops._situation cimport IN_ORDER, ONLY_HOST, missing
from fastops._tf.eager cimport recording
from fastops._tf.protos cimport DT_INT32, DT_INVALID, DataType

from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.util._pywrap_determinism import is_enabled as _deterministic


cdef object _DType = _dtypes.DType
cdef object _bool_dtype = _dtypes.bool
cdef object _float32_dtype = _dtypes.float32
cdef object _int32_dtype = _dtypes.int32
cdef object _int64_dtype = _dtypes.int64
cdef object _ZERO = 0
cdef tuple _NO_SEEDS = (None, None)


cdef int _constant(Lowering self, Draft* draft) except -1:
    # value, dtype, shape
    return _made_of_value(draft, False)


cdef int _convert(Lowering self, Draft* draft) except -1:
    # value, dtype, dtype_hint
    cdef PyObject* value = draft.values[0]
    if not IsEagerTensor(value):
        if draft.values[2] != Py_None:
            return NOT_LOWERED
        if not is_number(value) and not is_numpy(value):
            if not is_list(value) and not PyUnicode_CheckExact(<object>value):
                return NOT_LOWERED
            # Users may have registered conversion functions for lists and strings.
            if not has_default_conversion(value):
                return NOT_LOWERED
    return _made_of_value(draft, is_list(value))


cdef int _made_of_value(Draft* draft, bint packs) except -1:
    """Convert a value to a tensor of a dtype. `packs`: a list may contain tensors."""
    cdef DataType dtype = DT_INVALID
    if draft.values[1] != Py_None:
        to = <object>draft.values[1]
        if type(to) is not _DType:
            to = _dtypes.as_dtype(to)
        if to._type_enum >= DTYPES:
            return NOT_LOWERED
        dtype = <DataType><int>to._type_enum
    if IsEagerTensor(draft.values[0]):
        if dtype == DT_INVALID or dtype == handle_dtype(draft.values[0]):
            return done(draft, <object>draft.values[0])
        return NOT_LOWERED
    tensor = pack_list(<object>draft.values[0], dtype) if packs else None
    if tensor is None:
        tensor = constant(<object>draft.values[0], dtype)
    return NOT_LOWERED if tensor is None else done(draft, tensor)


cdef int _cast(Lowering self, Draft* draft) except -1:
    # x, dtype
    cdef unsigned long long dtype
    if not is_tensor(draft.values[0]):
        if not is_number(draft.values[0]) and not is_numpy(draft.values[0]):
            return NOT_LOWERED
        x = constant(<object>draft.values[0], DT_INVALID)
        if x is None:
            return NOT_LOWERED
        draft.values[0] = keep(draft, x)
    dtype = tensor_dtype(draft.values[0])
    to = base_dtype(<object>draft.values[1])
    if <int>to._type_enum == <int>dtype:
        return done(draft, <object>draft.values[0])
    if ((<unsigned long long>1) << dtype) & COMPLEX and to.is_floating:
        return NOT_LOWERED  # TensorFlow warns that the imaginary part is lost
    draft.values[1] = keep(draft, to)
    return CHOSEN


cdef int _zeros(Lowering self, Draft* draft) except -1:
    # shape, dtype
    return _filled(self, draft, 0, True)


cdef int _ones(Lowering self, Draft* draft) except -1:
    # shape, dtype
    return _filled(self, draft, 1, False)


cdef int _filled(Lowering self, Draft* draft, object number, bint zeros) except -1:
    cdef unsigned long long dtype
    dims = static_shape(<object>draft.values[0])
    to = base_dtype(<object>draft.values[1])
    dtype = <int>to._type_enum
    if dims is None or not may_run(self):
        return NOT_LOWERED
    if to is _bool_dtype:
        number = bool(number)
    elif not ((<unsigned long long>1) << dtype) & NUMERIC:
        return NOT_LOWERED
    value = constant(number, <DataType><int>dtype)
    if value is None:
        return NOT_LOWERED
    result = op_at(self, 0)(dims=dims, value=value)
    if zeros:
        result._is_zeros_tensor = True  # TensorFlow's gradient code recognizes zeros by it
    return done(draft, result)


cdef int _zeros_like(Lowering self, Draft* draft) except -1:
    # input, dtype
    if _like(self, draft) == NOT_LOWERED or not may_run(self):
        return NOT_LOWERED
    result = op_at(self, 0)(x=<object>draft.values[0])
    result._is_zeros_tensor = True
    return done(draft, result)


cdef int _like(Lowering self, Draft* draft) except -1:
    # input, dtype
    if draft.values[1] != Py_None:
        to = <object>draft.values[1]
        if type(to) is not _DType or to._type_enum != tensor_dtype(draft.values[0]):
            return NOT_LOWERED
    return self.choose(draft)


cdef int _range(Lowering self, Draft* draft) except -1:
    # start, limit, delta, dtype
    cdef long long number
    if draft.values[1] == Py_None:
        draft.values[1] = draft.values[0]
        draft.values[0] = <PyObject*>_ZERO
    for i in range(3):
        if not is_int32(draft.values[<int>i], &number):
            return NOT_LOWERED
    return CHOSEN


cdef int _one_hot(Lowering self, Draft* draft) except -1:
    # indices, depth, on_value, off_value, axis, dtype
    cdef unsigned long long dtype
    to = _float32_dtype
    if draft.values[5] != Py_None:
        to = <object>draft.values[5]
        if type(to) is not _DType:
            return NOT_LOWERED
    dtype = <int>to._type_enum
    if dtype >= DTYPES or not ((<unsigned long long>1) << dtype) & NUMERIC:
        return NOT_LOWERED
    one, zero = constant(1, <DataType><int>dtype), constant(0, <DataType><int>dtype)
    if one is None or zero is None:
        return NOT_LOWERED
    draft.values[2] = keep(draft, one)
    draft.values[3] = keep(draft, zero)
    return CHOSEN


cdef int _stop_gradient(Lowering self, Draft* draft) except -1:
    # input
    return NOT_LOWERED if recording() else self.choose(draft)


cdef bint _may_draw(Lowering self, tuple shape) except -1:
    """Whether ops may draw random numbers of this shape here, as TensorFlow's function would."""
    cdef double size = 1
    if shape is None or not may_run(self):
        return False
    if unseeded():
        return True
    for length in shape:
        size *= length
    return (
        draws.live
        and size < 1 << 31
        and not _deterministic()
        and not missing(IN_ORDER | ONLY_HOST)
    )


cdef tuple _seeds():
    """Return the two seeds for an op without a seed of its own.

    After that, the lowering must not decline: TensorFlow's function would draw other seeds.
    """
    return _NO_SEEDS if unseeded() else draws.seeds_of(None)


cdef int _random_normal(Lowering self, Draft* draft) except -1:
    # shape, mean, stddev, dtype, seed
    cdef DataType dtype
    shape = static_shape(<object>draft.values[0])
    to = <object>draft.values[3]
    if type(to) is not _DType or not _may_draw(self, shape):
        return NOT_LOWERED
    dtype = <DataType><int>to._type_enum
    mean = constant(<object>draft.values[1], dtype)
    stddev = constant(<object>draft.values[2], dtype)
    shape = constant(shape, DT_INT32)
    if mean is None or stddev is None or shape is None:
        return NOT_LOWERED
    seed, seed2 = _seeds()
    try:
        drawn = op_at(self, 0)(shape=shape, dtype=to, seed=seed, seed2=seed2)
        return done(draft, op_at(self, 2)(x=op_at(self, 1)(x=drawn, y=stddev), y=mean))
    except Exception as error:
        return failed(draft, error)


cdef int _random_uniform(Lowering self, Draft* draft) except -1:
    # shape, minval, maxval, dtype, seed
    cdef DataType dtype
    shape = static_shape(<object>draft.values[0])
    to = <object>draft.values[3]
    low, high = <object>draft.values[1], <object>draft.values[2]
    if type(to) is not _DType or not _may_draw(self, shape):
        return NOT_LOWERED
    dtype = <DataType><int>to._type_enum
    shape = constant(shape, DT_INT32)
    if shape is None:
        return NOT_LOWERED
    if to is _float32_dtype and type(low) is int and low == 0 and high is None:
        seed, seed2 = _seeds()
        try:
            return done(draft, op_at(self, 0)(shape=shape, dtype=to, seed=seed, seed2=seed2))
        except Exception as error:
            return failed(draft, error)
    if to is not _int32_dtype and to is not _int64_dtype:
        return NOT_LOWERED
    if not unseeded() and not (is_number(<PyObject*>low) and is_number(<PyObject*>high)):
        return NOT_LOWERED
    if not unseeded() and not low < high:
        return NOT_LOWERED  # TensorFlow raises an error
    low, high = constant(low, dtype), constant(high, dtype)
    if low is None or high is None:
        return NOT_LOWERED
    seed, seed2 = _seeds()
    try:
        return done(
            draft, op_at(self, 1)(shape=shape, minval=low, maxval=high, seed=seed, seed2=seed2)
        )
    except Exception as error:
        return failed(draft, error)


register("constant", _constant)
register("convert", _convert)
register("cast", _cast)
register("zeros", _zeros)
register("ones", _ones)
register("zeros_like", _zeros_like)
register("like", _like)
register("range", _range)
register("one_hot", _one_hot)
register("stop_gradient", _stop_gradient)
register("random_normal", _random_normal)
register("random_uniform", _random_uniform)
