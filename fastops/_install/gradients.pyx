# distutils: language = c++
"""What a tape does when it is asked for gradients.

For every recorded op, TensorFlow calls one Python function, which looks up the gradient function
registered for that op. `GradientFunction` stands in its place. The rules below run, for the ops
that programs differentiate most, the very ops that TensorFlow's gradient functions run, so that
values are the same to the last bit and outer tapes record the same. Two things differ: shapes and
axes are computed here where TensorFlow runs ops to get at them, and a gradient that the tape will
not look at is not computed.

A rule hands over to TensorFlow's function whatever is out of the ordinary: see `_gradient` for
what all rules ask for.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t

from fastops._cpp.gradient cimport IntTensor, IntsOf, ReducedAxes, ShapeOf, Sizes
from fastops._cpp.handle cimport HostTensor
from fastops._dispatch cimport on_host
from fastops._install.intercept cimport Call, promotes_no_dtypes
from fastops._install.replacement cimport Replacement, call_original, enable, live
from fastops._tf.protos cimport (
    DT_BFLOAT16,
    DT_COMPLEX128,
    DT_COMPLEX64,
    DT_DOUBLE,
    DT_FLOAT,
    DT_HALF,
    DT_INT32,
    DT_INT64,
    DataType,
)
from fastops._tf.tensor cimport Tensor

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.framework.indexed_slices import IndexedSlices as _IndexedSlices


cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyObject** PySequence_Fast_ITEMS(PyObject*)


# ---------------------------------------------------------------------------------------------
# Rules
# ---------------------------------------------------------------------------------------------

cdef Call _SIGN = Call("Sign", "x")
cdef Call _ADD = Call("AddV2", "x y")
cdef Call _BATCH_MATMUL_X = Call("BatchMatMulV2", "x y adj_x adj_y grad_x grad_y")
cdef Call _BATCH_MATMUL_Y = Call("BatchMatMulV2", "x y adj_x adj_y grad_x grad_y")
cdef Call _BIAS_ADD_GRAD = Call("BiasAddGrad", "out_backprop data_format")
cdef Call _BROADCAST_TO = Call("BroadcastTo", "input shape")
cdef Call _CAST = Call("Cast", "x DstT")
cdef Call _CONCAT = Call("ConcatV2", "values axis")
cdef Call _CONJ = Call("Conj", "input")
cdef Call _EXPAND_DIMS = Call("ExpandDims", "input axis")
cdef Call _EXP = Call("Exp", "x")
cdef Call _EQUAL = Call("Equal", "x y")
cdef Call _GREATER_EQUAL = Call("GreaterEqual", "x y")
cdef Call _INVERT_PERMUTATION = Call("InvertPermutation", "x")
cdef Call _LESS_EQUAL = Call("LessEqual", "x y")
cdef Call _LOG_SOFTMAX = Call("LogSoftmax", "logits")
cdef Call _MATMUL_A = Call("MatMul", "a b transpose_a transpose_b grad_a grad_b")
cdef Call _MATMUL_B = Call("MatMul", "a b transpose_a transpose_b grad_a grad_b")
cdef Call _MUL = Call("Mul", "x y")
cdef Call _NEG = Call("Neg", "x")
cdef Call _PACK = Call("Pack", "values axis")
cdef Call _PAD = Call("Pad", "input paddings")
cdef Call _POW = Call("Pow", "x y")
cdef Call _REAL_DIV = Call("RealDiv", "x y")
cdef Call _RECIPROCAL = Call("Reciprocal", "x")
cdef Call _RESHAPE = Call("Reshape", "tensor shape")
cdef Call _SELECT = Call("SelectV2", "condition t e")
cdef Call _SLICE = Call("Slice", "input begin size")
cdef Call _SPLIT_V = Call("SplitV", "value size_splits axis num_split")
cdef Call _SUB = Call("Sub", "x y")
cdef Call _SUM = Call("Sum", "input axis keep_dims")
cdef Call _TILE = Call("Tile", "input multiples")
cdef Call _TRANSPOSE = Call("Transpose", "x perm")
cdef Call _UNPACK = Call("Unpack", "value num axis")
cdef Call _ZEROS_LIKE = Call("ZerosLike", "x")


# One op of the backward pass. Pointers are borrowed from tuples that the caller holds.
cdef struct Step:
    PyObject** inputs       # None where the op's gradient does not need one
    PyObject** outputs
    PyObject** grads
    Py_ssize_t num_inputs
    Py_ssize_t num_outputs
    Py_ssize_t num_grads
    PyObject* attrs         # names and values in turn
    unsigned long long unused  # bit i: nobody looks at the gradient of input i


# Returns what TensorFlow's gradient function returns, or `_TENSORFLOW` to have that one called.
ctypedef object (*rule_t)(Step*)

cdef object _TENSORFLOW = object()
cdef tuple _NO_GRADIENT = (None,)


cdef inline object _input(Step* step, Py_ssize_t i):
    if i >= step.num_inputs:
        raise IndexError("an op was recorded without its inputs")
    return <object>step.inputs[i]


cdef inline object _output(Step* step, Py_ssize_t i):
    if i >= step.num_outputs:
        raise IndexError("an op was recorded without its outputs")
    return <object>step.outputs[i]


cdef inline object _grad(Step* step):
    if step.num_grads == 0:
        raise IndexError("an op was recorded without its outputs")
    return <object>step.grads[0]


cdef inline bint _wanted(Step* step, Py_ssize_t i) noexcept:
    return not (step.unused >> i) & 1


cdef object _attr(Step* step, str name):
    cdef Py_ssize_t i
    for i in range(0, PyTuple_GET_SIZE(<object>step.attrs) - 1, 2):
        if <object>PyTuple_GET_ITEM(<object>step.attrs, i) == name:
            return <object>PyTuple_GET_ITEM(<object>step.attrs, i + 1)
    raise KeyError(name)


cdef inline const Tensor* _tensor(object value) except NULL:
    cdef const Tensor* tensor = HostTensor(<PyObject*>value)
    if tensor == NULL:
        raise TypeError("an op was recorded without its tensors")
    return tensor


cdef inline bint _is_complex(object value) except -1:
    return _tensor(value).dtype() in (DT_COMPLEX64, DT_COMPLEX128)


cdef inline bint _is_float(object value) except -1:
    return _tensor(value).dtype() in (DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16)


cdef inline object _conj(object value):
    return _CONJ.run((value,)) if _is_complex(value) else value


cdef inline bint _is_scalar(object value) except -1:
    return _tensor(value).dims() == 0


cdef inline bint _one_shape(object x, object y, object grad) except -1:
    cdef const Tensor* tensor = _tensor(x)
    return tensor.IsSameSize(_tensor(y)[0]) and tensor.IsSameSize(_tensor(grad)[0])


cdef inline object _shape(object value):
    """The shape as TensorFlow's op gives it."""
    return IntTensor(ShapeOf(_tensor(value)[0]), DT_INT32, 0)


cdef object _like(object value, object grad):
    """A gradient in the shape of the value that it belongs to."""
    return _RESHAPE.run((grad, _shape(value)))


cdef object _summed(object grad, const Sizes& axes, object value):
    grad = _SUM.run((grad, IntTensor(axes, DT_INT32, 0), True))
    return _like(value, grad)


cdef object _unbroadcast(object x, object y, object x_grad, object y_grad):
    """The gradients of two operands in the shapes that these have."""
    cdef Sizes x_axes, y_axes
    if x_grad is None and y_grad is None:
        return None, None
    if not ReducedAxes(ShapeOf(_tensor(x)[0]), ShapeOf(_tensor(y)[0]), &x_axes, &y_axes):
        return _TENSORFLOW
    if x_grad is not None:
        x_grad = _summed(x_grad, x_axes, x)
    if y_grad is not None:
        y_grad = _summed(y_grad, y_axes, y)
    return x_grad, y_grad


# Passing gradients on

cdef object _identity(Step* step):
    return _grad(step)


cdef object _add_n(Step* step):
    return (_grad(step),) * step.num_inputs


cdef object _cast(Step* step):
    x, grad = _input(step, 0), _grad(step)
    cdef DataType dtype = _tensor(x).dtype()
    if not (_is_float(x) or _is_complex(x)) or not (_is_float(grad) or _is_complex(grad)):
        return _NO_GRADIENT
    if dtype == _tensor(grad).dtype():
        return grad
    if _is_complex(grad) and not _is_complex(x):
        return _TENSORFLOW  # it warns
    return _CAST.run((grad, _dtypes.as_dtype(<int>dtype)))


# Arithmetic

cdef object _add(Step* step):
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    if not _wanted(step, 1) and _is_scalar(y):
        return grad, None
    if _one_shape(x, y, grad):
        return grad, grad
    return _unbroadcast(
        x, y, grad if _wanted(step, 0) else None, grad if _wanted(step, 1) else None
    )


cdef object _sub(Step* step):
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    if not _wanted(step, 1) and _is_scalar(y):
        return grad, None
    x_grad = grad if _wanted(step, 0) else None
    y_grad = _NEG.run((grad,)) if _wanted(step, 1) else None
    if _one_shape(x, y, grad):
        return x_grad, y_grad
    return _unbroadcast(x, y, x_grad, y_grad)


cdef object _mul(Step* step):
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    cdef bint plain = _tensor(grad).dtype() in (DT_FLOAT, DT_INT32) and _one_shape(x, y, grad)
    x_grad = y_grad = None
    if _wanted(step, 0):
        x_grad = _MUL.run((grad, _conj(y)))
    if _wanted(step, 1):
        y_grad = _MUL.run((grad, x) if plain else (_conj(x), grad))
    if plain or not _wanted(step, 1) and _is_scalar(y):
        return x_grad, y_grad
    return _unbroadcast(x, y, x_grad, y_grad)


cdef object _real_div(Step* step):
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    conj_y = _conj(y)
    x_grad = y_grad = None
    if _wanted(step, 0):
        x_grad = _REAL_DIV.run((grad, conj_y))
    if _wanted(step, 1):
        y_grad = _REAL_DIV.run((_NEG.run((_conj(x),)), conj_y))
        y_grad = _MUL.run((grad, _REAL_DIV.run((y_grad, conj_y))))
    return _unbroadcast(x, y, x_grad, y_grad)


cdef object _pow(Step* step):
    if _wanted(step, 1):
        return _TENSORFLOW
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    conj_y = _conj(y)
    power = _POW.run((_conj(x), _SUB.run((conj_y, 1))))
    x_grad = _MUL.run((_MUL.run((grad, conj_y)), power))
    return (x_grad, None) if _is_scalar(y) else _unbroadcast(x, y, x_grad, None)


cdef object _squared_difference(Step* step):
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    x_grad = _MUL.run((_MUL.run((2.0, grad)), _SUB.run((x, y))))
    y_grad = _NEG.run((x_grad,)) if _wanted(step, 1) else None
    if _one_shape(x, y, grad):
        return x_grad, y_grad
    return _unbroadcast(x, y, x_grad if _wanted(step, 0) else None, y_grad)


cdef object _extremum(Step* step, Call choose):
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    zeros = _ZEROS_LIKE.run((grad,))
    mask = choose.run((x, y))
    x_grad = y_grad = None
    if _wanted(step, 0):
        x_grad = _SELECT.run((mask, grad, zeros))
    if _wanted(step, 1):
        y_grad = _SELECT.run((mask, zeros, grad))
    elif _is_scalar(y):
        return x_grad, None
    return _unbroadcast(x, y, x_grad, y_grad)


cdef object _maximum(Step* step):
    return _extremum(step, _GREATER_EQUAL)


cdef object _minimum(Step* step):
    return _extremum(step, _LESS_EQUAL)


cdef object _select(Step* step):
    condition, grad = _input(step, 0), _grad(step)
    output = _output(step, 0)
    x_grad = y_grad = None
    # Not the number, for which TensorFlow's cache of scalars may have -0.0: that is equal.
    zero = _tf_ops.EagerTensor(0, _tf_context.context().device_name, grad._datatype_enum())
    if _wanted(step, 1):
        x_grad = _SELECT.run((condition, grad, zero))
        x_grad, _ = _unbroadcast(_input(step, 1), output, x_grad, None)
    if _wanted(step, 2):
        y_grad = _SELECT.run((condition, zero, grad))
        y_grad, _ = _unbroadcast(_input(step, 2), output, y_grad, None)
    return None, x_grad, y_grad


cdef object _neg(Step* step):
    return _NEG.run((_grad(step),))


cdef object _abs(Step* step):
    return _MUL.run((_grad(step), _SIGN.run((_input(step, 0),))))


cdef object _square(Step* step):
    return _MUL.run((_grad(step), _MUL.run((_conj(_input(step, 0)), 2.0))))


cdef object _exp(Step* step):
    return _MUL.run((_grad(step), _conj(_output(step, 0))))


cdef object _log(Step* step):
    return _MUL.run((_grad(step), _RECIPROCAL.run((_conj(_input(step, 0)),))))


cdef object _log1p(Step* step):
    x = _ADD.run((1, _conj(_input(step, 0))))
    return _MUL.run((_grad(step), _RECIPROCAL.run((x,))))


# Ops that have an op for their gradient, of the output and the gradient

cdef Call _RECIPROCAL_GRAD = Call("ReciprocalGrad", "y dy")
cdef Call _RSQRT_GRAD = Call("RsqrtGrad", "y dy")
cdef Call _SIGMOID = Call("Sigmoid", "x")
cdef Call _SIGMOID_GRAD = Call("SigmoidGrad", "y dy")
cdef Call _SQRT_GRAD = Call("SqrtGrad", "y dy")
cdef Call _TANH_GRAD = Call("TanhGrad", "y dy")
cdef Call _ELU_GRAD = Call("EluGrad", "gradients outputs")
cdef Call _LEAKY_RELU_GRAD = Call("LeakyReluGrad", "gradients features alpha")
cdef Call _RELU_GRAD = Call("ReluGrad", "gradients features")
cdef Call _RELU6_GRAD = Call("Relu6Grad", "gradients features")
cdef Call _SELU_GRAD = Call("SeluGrad", "gradients outputs")


cdef object _reciprocal(Step* step):
    return _RECIPROCAL_GRAD.run((_output(step, 0), _grad(step)))


cdef object _rsqrt(Step* step):
    return _RSQRT_GRAD.run((_output(step, 0), _grad(step)))


cdef object _sqrt(Step* step):
    return _SQRT_GRAD.run((_output(step, 0), _grad(step)))


cdef object _sigmoid(Step* step):
    return _SIGMOID_GRAD.run((_conj(_output(step, 0)), _grad(step)))


cdef object _tanh(Step* step):
    return _TANH_GRAD.run((_conj(_output(step, 0)), _grad(step)))


cdef object _relu(Step* step):
    return _RELU_GRAD.run((_grad(step), _output(step, 0)))


cdef object _relu6(Step* step):
    return _RELU6_GRAD.run((_grad(step), _output(step, 0)))


cdef object _elu(Step* step):
    return _ELU_GRAD.run((_grad(step), _output(step, 0)))


cdef object _selu(Step* step):
    return _SELU_GRAD.run((_grad(step), _output(step, 0)))


cdef object _leaky_relu(Step* step):
    return _LEAKY_RELU_GRAD.run((_grad(step), _input(step, 0), _attr(step, "alpha")))


cdef object _softplus(Step* step):
    return _MUL.run((_grad(step), _SIGMOID.run((_input(step, 0),))))


cdef object _tanh_grad(Step* step):
    a, b, grad = _conj(_input(step, 0)), _conj(_input(step, 1)), _grad(step)
    a_grad = b_grad = None
    if _wanted(step, 0):
        a_grad = _MUL.run((_MUL.run((_MUL.run((grad, -2.0)), b)), a))
    if _wanted(step, 1):
        b_grad = _TANH_GRAD.run((a, grad))
    return a_grad, b_grad


# Softmax, losses and layers

cdef object _softmax(Step* step):
    softmax, grad = _output(step, 0), _grad(step)
    total = _SUM.run((_MUL.run((grad, softmax)), -1, True))
    return _MUL.run((_SUB.run((grad, total)), softmax))


cdef object _log_softmax(Step* step):
    grad = _grad(step)
    softmax = _EXP.run((_output(step, 0),))
    return _SUB.run((grad, _MUL.run((_SUM.run((grad, -1, True)), softmax))))


cdef object _cross_entropy(Step* step):
    if step.num_grads != 2 or <object>step.grads[1] is not None:
        return _TENSORFLOW
    loss_grad = _EXPAND_DIMS.run((_grad(step), -1))
    labels_grad = None
    if _wanted(step, 1):
        labels_grad = _NEG.run((_LOG_SOFTMAX.run((_input(step, 0),)),))
        labels_grad = _MUL.run((loss_grad, labels_grad))
    return _MUL.run((loss_grad, _output(step, 1))), labels_grad


cdef object _sparse_cross_entropy(Step* step):
    if step.num_grads != 2 or <object>step.grads[1] is not None:
        return _TENSORFLOW
    return _MUL.run((_EXPAND_DIMS.run((_grad(step), -1)), _output(step, 1))), None


cdef object _bias_add(Step* step):
    grad, data_format = _grad(step), _attr(step, "data_format")
    bias_grad = None
    if _wanted(step, 1):
        bias_grad = _BIAS_ADD_GRAD.run((grad, data_format))
    return grad, bias_grad


cdef object _matmul(Step* step):
    transpose_a, transpose_b = _attr(step, "transpose_a"), _attr(step, "transpose_b")
    if type(transpose_a) is not bool or type(transpose_b) is not bool:
        return _TENSORFLOW
    grad = _grad(step)
    a_grad = b_grad = None
    if _wanted(step, 0):
        b = _conj(_input(step, 1))
        if transpose_a:
            a_grad = _MATMUL_A.run((b, grad, transpose_b, True, True, False))
        else:
            a_grad = _MATMUL_A.run((grad, b, False, not transpose_b, True, False))
    if _wanted(step, 1):
        a = _conj(_input(step, 0))
        if transpose_b:
            b_grad = _MATMUL_B.run((grad, a, True, transpose_a, False, True))
        else:
            b_grad = _MATMUL_B.run((a, grad, not transpose_a, False, False, True))
    return a_grad, b_grad


cdef object _batch_matmul(Step* step):
    adj_x, adj_y = _attr(step, "adj_x"), _attr(step, "adj_y")
    if type(adj_x) is not bool or type(adj_y) is not bool:
        return _TENSORFLOW
    x, y, grad = _input(step, 0), _input(step, 1), _grad(step)
    cdef const Tensor* x_tensor = _tensor(x)
    cdef const Tensor* y_tensor = _tensor(y)
    cdef int i, rank = x_tensor.dims()
    # All of one dtype, a batch of matrices each, and the batches of one shape.
    if rank < 3 or rank != y_tensor.dims():
        return _TENSORFLOW
    if not x_tensor.dtype() == y_tensor.dtype() == _tensor(grad).dtype():
        return _TENSORFLOW
    for i in range(rank - 2):
        if x_tensor.dim_size(i) != y_tensor.dim_size(i):
            return _TENSORFLOW
    x_grad = y_grad = None
    if _wanted(step, 0):
        if adj_x:
            x_grad = _BATCH_MATMUL_X.run((y, grad, adj_y, True, True, False))
        else:
            x_grad = _BATCH_MATMUL_X.run((grad, y, False, not adj_y, True, False))
    if _wanted(step, 1):
        if adj_y:
            y_grad = _BATCH_MATMUL_Y.run((grad, x, True, adj_x, False, True))
        else:
            y_grad = _BATCH_MATMUL_Y.run((x, grad, not adj_x, False, False, True))
    return x_grad, y_grad


cdef Call _CONV2D_INPUT = Call(
    "Conv2DBackpropInput",
    "input_sizes filter out_backprop dilations strides padding explicit_paddings "
    "use_cudnn_on_gpu data_format",
)
cdef Call _CONV2D_FILTER = Call(
    "Conv2DBackpropFilter",
    "input filter_sizes out_backprop dilations strides padding explicit_paddings "
    "use_cudnn_on_gpu data_format",
)
cdef Call _MAX_POOL_GRAD = Call(
    "MaxPoolGrad",
    "orig_input orig_output grad ksize strides padding explicit_paddings data_format",
)
cdef Call _AVG_POOL_GRAD = Call(
    "AvgPoolGrad", "orig_input_shape grad ksize strides padding data_format"
)


cdef tuple _attrs(Step* step, tuple names):
    return tuple([_attr(step, name) for name in names])


cdef object _conv2d(Step* step):
    cdef tuple attrs = _attrs(step, _CONV2D_INPUT.names[3:])
    image, filters, grad = _input(step, 0), _input(step, 1), _grad(step)
    image_grad = filters_grad = None
    if _wanted(step, 0):
        image_grad = _CONV2D_INPUT.run((_shape(image), filters, grad) + attrs)
    if _wanted(step, 1):
        filters_grad = _CONV2D_FILTER.run((image, _shape(filters), grad) + attrs)
    return image_grad, filters_grad


cdef object _max_pool(Step* step):
    cdef tuple attrs = _attrs(step, _MAX_POOL_GRAD.names[3:])
    return _MAX_POOL_GRAD.run((_input(step, 0), _output(step, 0), _grad(step)) + attrs)


cdef object _avg_pool(Step* step):
    cdef tuple attrs = _attrs(step, _AVG_POOL_GRAD.names[2:])
    return _AVG_POOL_GRAD.run((_shape(_input(step, 0)), _grad(step)) + attrs)


# Reductions

cdef object _kept_shape(object x, object axis, bint* everything):
    """The shape of a reduction's result with the reduced axes kept. None for unusual axes."""
    cdef Sizes axes, sizes = ShapeOf(_tensor(x)[0])
    cdef int64_t i
    cdef int64_t rank = <int64_t>sizes.size()
    if not IntsOf(_tensor(axis)[0], &axes):
        return None
    everything[0] = _tensor(axis).dims() == 1 and <int64_t>axes.size() == rank
    for i in range(<int64_t>axes.size()):
        if not -rank <= axes[i] < rank:
            return None
        if axes[i] != i:
            everything[0] = False
        sizes[axes[i] + rank if axes[i] < 0 else axes[i]] = 1
    return IntTensor(sizes, DT_INT32, 0)


cdef object _sum_grad(Step* step):
    cdef bint everything = False
    x, grad = _input(step, 0), _grad(step)
    kept = _kept_shape(x, _input(step, 1), &everything)
    keep_dims = _attr(step, "keep_dims")
    if kept is None or type(keep_dims) is not bool:
        return _TENSORFLOW
    if everything:
        return _TILE.run((_RESHAPE.run((grad, kept)), _shape(x)))
    if not keep_dims:
        grad = _RESHAPE.run((grad, kept))
    return _BROADCAST_TO.run((grad, _shape(x)))


cdef object _sum(Step* step):
    grad = _sum_grad(step)
    return grad if grad is _TENSORFLOW else (grad, None)


cdef object _mean(Step* step):
    cdef int64_t factor, results = _tensor(_output(step, 0)).NumElements()
    factor = _tensor(_input(step, 0)).NumElements() // max(results, <int64_t>1)
    # A factor that every dtype here holds exactly.
    if factor > 256 and _tensor(_grad(step)).dtype() in (DT_HALF, DT_BFLOAT16) or factor > 1 << 24:
        return _TENSORFLOW
    grad = _sum_grad(step)
    return grad if grad is _TENSORFLOW else (_REAL_DIV.run((grad, float(factor))), None)


cdef object _max_or_min(Step* step):
    cdef bint everything = False
    x, axis, grad = _input(step, 0), _input(step, 1), _grad(step)
    kept = _kept_shape(x, axis, &everything)
    keep_dims = _attr(step, "keep_dims")
    if kept is None or type(keep_dims) is not bool or not _is_float(grad):
        return _TENSORFLOW
    y = _output(step, 0)
    if not keep_dims:
        y = _RESHAPE.run((y, kept))
        grad = _RESHAPE.run((grad, kept))
    chosen = _CAST.run((_EQUAL.run((y, x)), _dtypes.as_dtype(<int>_tensor(grad).dtype())))
    count = _RESHAPE.run((_SUM.run((chosen, axis, False)), kept))
    return _MUL.run((_REAL_DIV.run((chosen, count)), grad)), None


# Shapes

cdef object _reshape(Step* step):
    return _like(_input(step, 0), _grad(step)), None


cdef object _squeeze(Step* step):
    return _like(_input(step, 0), _grad(step))


cdef object _transpose(Step* step):
    return _TRANSPOSE.run((_grad(step), _INVERT_PERMUTATION.run((_input(step, 1),)))), None


cdef object _broadcast_to(Step* step):
    x, shape = _input(step, 0), _input(step, 1)
    cdef Sizes axes, unused, sizes
    if (
        not IntsOf(_tensor(shape)[0], &sizes)
        or not ReducedAxes(sizes, ShapeOf(_tensor(x)[0]), &unused, &axes)
    ):
        return _TENSORFLOW
    return _summed(_grad(step), axes, x), None


cdef object _tile(Step* step):
    x = _input(step, 0)
    cdef Sizes multiples, split, axes, sizes = ShapeOf(_tensor(x)[0])
    cdef DataType dtype = _tensor(_input(step, 1)).dtype()
    cdef size_t i
    if not IntsOf(_tensor(_input(step, 1))[0], &multiples) or multiples.size() != sizes.size():
        return _TENSORFLOW
    for i in range(sizes.size()):
        split.push_back(multiples[i])
        split.push_back(sizes[i])
        axes.push_back(2 * <int64_t>i)
    grad = _RESHAPE.run((_grad(step), IntTensor(split, dtype, 0)))
    return _SUM.run((grad, IntTensor(axes, DT_INT32, 0), False)), None


cdef object _pad(Step* step):
    x, paddings = _input(step, 0), _input(step, 1)
    cdef Sizes pairs, begin, sizes = ShapeOf(_tensor(x)[0])
    cdef DataType dtype = _tensor(paddings).dtype()
    cdef size_t i
    if not IntsOf(_tensor(paddings)[0], &pairs) or pairs.size() != 2 * sizes.size():
        return _TENSORFLOW
    for i in range(sizes.size()):
        begin.push_back(pairs[2 * i])
    grad = _SLICE.run((_grad(step), IntTensor(begin, dtype, 0), IntTensor(sizes, dtype, 0)))
    return (grad,) + (None,) * (step.num_inputs - 1)


cdef object _slice(Step* step):
    cdef Sizes begin, pairs, sizes = ShapeOf(_tensor(_input(step, 0))[0])
    cdef Sizes taken = ShapeOf(_tensor(_output(step, 0))[0])
    cdef DataType dtype = _tensor(_input(step, 1)).dtype()
    cdef size_t i
    if not IntsOf(_tensor(_input(step, 1))[0], &begin) or begin.size() != sizes.size():
        return _TENSORFLOW
    for i in range(sizes.size()):
        pairs.push_back(begin[i])
        pairs.push_back(sizes[i] - taken[i] - begin[i])
    return _PAD.run((_grad(step), IntTensor(pairs, dtype, 2))), None, None


cdef Call _STRIDED_SLICE_GRAD = Call(
    "StridedSliceGrad",
    "shape begin end strides dy begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
)


cdef object _strided_slice(Step* step):
    begin = _input(step, 1)
    cdef DataType dtype = _tensor(begin).dtype()
    if dtype != DT_INT32 and dtype != DT_INT64:
        return _TENSORFLOW
    shape = IntTensor(ShapeOf(_tensor(_input(step, 0))[0]), dtype, 0)
    grad = _STRIDED_SLICE_GRAD.run(
        (shape, begin, _input(step, 2), _input(step, 3), _grad(step))
        + _attrs(step, _STRIDED_SLICE_GRAD.names[5:])
    )
    return grad, None, None, None


# Several tensors

cdef object _concat(Step* step):
    cdef Py_ssize_t i, values = step.num_inputs - 1
    cdef Sizes axes, sizes
    cdef int axis, rank
    if values < 2 or not IntsOf(_tensor(_input(step, values))[0], &axes) or axes.size() != 1:
        return _TENSORFLOW
    rank = _tensor(_input(step, 0)).dims()
    if not -rank <= axes[0] < rank:
        return _TENSORFLOW
    axis = <int>axes[0] + (rank if axes[0] < 0 else 0)
    for i in range(values):
        sizes.push_back(_tensor(_input(step, i)).dim_size(axis))
    parts = _SPLIT_V.run((_grad(step), IntTensor(sizes, DT_INT32, 0), axis, values))
    return parts + [None]


cdef list _grads(Step* step):
    cdef Py_ssize_t i
    return [<object>step.grads[i] for i in range(step.num_grads)]


cdef object _pack(Step* step):
    return _UNPACK.run((_grad(step), _attr(step, "N"), _attr(step, "axis")))


cdef object _unpack(Step* step):
    return _PACK.run((_grads(step), _attr(step, "axis")))


cdef object _split(Step* step):
    if step.num_grads < 2:
        return _TENSORFLOW
    return None, _CONCAT.run((_grads(step), _input(step, 0)))


cdef object _gather(Step* step):
    """Of rows: slices of the table, and which they are."""
    params, indices, axis = _input(step, 0), _input(step, 1), _input(step, 2)
    cdef Sizes axes, count, sizes, shape = ShapeOf(_tensor(params)[0])
    cdef size_t i
    if (
        _attr(step, "batch_dims") != 0
        or not IntsOf(_tensor(axis)[0], &axes)
        or axes.size() != 1
        or axes[0] != 0
    ):
        return _TENSORFLOW
    count.push_back(_tensor(indices).NumElements())
    sizes.push_back(count[0])
    for i in range(1, shape.size()):
        sizes.push_back(shape[i])
    values = _RESHAPE.run((_grad(step), IntTensor(sizes, DT_INT32, 0)))
    indices = _RESHAPE.run((indices, IntTensor(count, DT_INT32, 0)))
    return _IndexedSlices(values, indices, IntTensor(shape, DT_INT32, 0)), None, None


# ---------------------------------------------------------------------------------------------
# The table of rules
# ---------------------------------------------------------------------------------------------

@cython.final
cdef class Rule:
    """The gradient of an op.

    Attributes
    ----------
    stands_for : str
        Module and name of the gradient function of TensorFlow's that does the same.
    any_grad : bool
        Whether gradients may be other things than tensors, and inputs of any kind.
    taken, left : int
        How often it ran, and how often it handed over.
    """

    cdef rule_t function
    cdef readonly str stands_for
    cdef dict entry         # of TensorFlow's registry; None where that has something else
    cdef object registered  # the gradient function in it
    cdef bint any_grad
    cdef readonly long long taken
    cdef readonly long long left


cdef dict _registrations = _tf_ops._gradient_registry._registry

cdef dict _rules = {}
RULES = _rules
"""Rules by the names of ops."""


cdef int _rule(str op_names, str stands_for, rule_t function, bint any_grad=False) except -1:
    cdef Rule rule
    for op_name in op_names.split():
        rule = Rule.__new__(Rule)
        rule.function = function
        rule.stands_for = f"tensorflow.python.ops.{stands_for}"
        rule.any_grad = any_grad
        entry = _registrations.get(op_name)
        registered = None if entry is None else entry["type"]
        if registered and f"{registered.__module__}.{registered.__name__}" == rule.stands_for:
            rule.entry = entry
            rule.registered = registered
        _rules[op_name] = rule
    return 0


_rule("Abs", "math_grad._AbsGrad", _abs)
_rule("Add AddV2", "math_grad._AddGrad", _add)
_rule("AddN", "math_grad._AddNGrad", _add_n)
_rule("AvgPool", "nn_grad._AvgPoolGrad", _avg_pool)
_rule("BatchMatMulV2", "math_grad._BatchMatMulV2", _batch_matmul)
_rule("BiasAdd", "nn_grad._BiasAddGrad", _bias_add)
_rule("BroadcastTo", "array_grad._BroadcastToGrad", _broadcast_to)
_rule("Cast", "math_grad._CastGrad", _cast)
_rule("ConcatV2", "array_grad._ConcatGradV2", _concat)
_rule("Conv2D", "nn_grad._Conv2DGrad", _conv2d)
_rule("Elu", "nn_grad._EluGrad", _elu)
_rule("Exp", "math_grad._ExpGrad", _exp)
_rule("ExpandDims", "array_grad._ExpandDimsGrad", _reshape)
_rule("GatherV2", "array_grad._GatherV2Grad", _gather)
_rule("Identity", "array_grad._IdGrad", _identity, True)
_rule("LeakyRelu", "nn_grad._LeakyReluGrad", _leaky_relu)
_rule("Log", "math_grad._LogGrad", _log)
_rule("Log1p", "math_grad._Log1pGrad", _log1p)
_rule("LogSoftmax", "nn_grad._LogSoftmaxGrad", _log_softmax)
_rule("MatMul", "math_grad._MatMulGrad", _matmul)
_rule("Max", "math_grad._MaxGrad", _max_or_min)
_rule("MaxPool", "nn_grad._MaxPoolGrad", _max_pool)
_rule("Maximum", "math_grad._MaximumGrad", _maximum)
_rule("Mean", "math_grad._MeanGrad", _mean)
_rule("Min", "math_grad._MinGrad", _max_or_min)
_rule("Minimum", "math_grad._MinimumGrad", _minimum)
_rule("Mul", "math_grad._MulGrad", _mul)
_rule("Neg", "math_grad._NegGrad", _neg)
_rule("Pack", "array_grad._PackGrad", _pack)
_rule("Pad PadV2", "array_grad._PadGrad", _pad)
_rule("Pow", "math_grad._PowGrad", _pow)
_rule("ReadVariableOp", "resource_variable_ops._ReadGrad", _identity, True)
_rule("RealDiv", "math_grad._RealDivGrad", _real_div)
_rule("Reciprocal", "math_grad._ReciprocalGrad", _reciprocal)
_rule("Relu", "nn_grad._ReluGrad", _relu)
_rule("Relu6", "nn_grad._Relu6Grad", _relu6)
_rule("Reshape", "array_grad._ReshapeGrad", _reshape)
_rule("Rsqrt", "math_grad._RsqrtGrad", _rsqrt)
_rule("SelectV2", "math_grad._SelectGradV2", _select)
_rule("Selu", "nn_grad._SeluGrad", _selu)
_rule("Sigmoid", "math_grad._SigmoidGrad", _sigmoid)
_rule("Slice", "array_grad._SliceGrad", _slice)
_rule("Softmax", "nn_grad._SoftmaxGrad", _softmax)
_rule(
    "SoftmaxCrossEntropyWithLogits", "nn_grad._SoftmaxCrossEntropyWithLogitsGrad", _cross_entropy
)
_rule("Softplus", "nn_grad._SoftplusGrad", _softplus)
_rule(
    "SparseSoftmaxCrossEntropyWithLogits", "nn_grad._SparseSoftmaxCrossEntropyWithLogitsGrad",
    _sparse_cross_entropy,
)
_rule("Split", "array_grad._SplitGrad", _split)
_rule("Sqrt", "math_grad._SqrtGrad", _sqrt)
_rule("Square", "math_grad._SquareGrad", _square)
_rule("SquaredDifference", "math_grad._SquaredDifferenceGrad", _squared_difference)
_rule("Squeeze", "array_grad._SqueezeGrad", _squeeze)
_rule("StridedSlice", "array_grad._StridedSliceGrad", _strided_slice)
_rule("Sub", "math_grad._SubGrad", _sub)
_rule("Sum", "math_grad._SumGrad", _sum)
_rule("Tanh", "math_grad._TanhGrad", _tanh)
_rule("TanhGrad", "math_grad._TanhGradGrad", _tanh_grad)
_rule("Tile", "array_grad._TileGrad", _tile)
_rule("Transpose", "array_grad._TransposeGrad", _transpose)
_rule("Unpack", "array_grad._UnpackGrad", _unpack)


def reset_counters():
    """Sets the counters of all rules to zero."""
    cdef Rule rule
    for rule in _rules.values():
        rule.taken = rule.left = 0


# ---------------------------------------------------------------------------------------------
# The gradient of one recorded op
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class GradientFunction(Replacement):
    """In the place of ``backprop._gradient_function``, which a tape calls for each op.

    Parameters
    ----------
    original : callable
        TensorFlow's.
    """

    def __init__(self, original):
        super().__init__(original)
        self.vectorcall = _gradient_function


cdef PyObject* _gradient_function(PyObject* callable, PyObject* const* args, size_t nargsf,
                                  PyObject* keywords) except NULL:
    # The op's name, attributes, number of inputs, inputs, outputs, gradients of the outputs,
    # inputs whose gradients nobody looks at, and a name scope.
    cdef GradientFunction self = <GradientFunction>callable
    if keywords == NULL and PyVectorcall_NARGS(nargsf) == 8 and live:
        result = _gradient(
            <object>args[0], <object>args[1], <object>args[3], <object>args[4],
            <object>args[5], <object>args[6],
        )
        if result is not _TENSORFLOW:
            Py_INCREF(result)
            return <PyObject*>result
    return call_original(self, args, nargsf, keywords)


cdef object _gradient(object op_name, object attrs, object inputs, object outputs, object grads,
                      object unused):
    """What a rule makes of an op, if one may run."""
    cdef Step step
    cdef Rule rule
    cdef tuple held_attrs, held_inputs, held_outputs
    rule = _rules.get(op_name) if type(op_name) is str else None
    if (
        rule is None
        or rule.entry is None
        # Somebody may have registered another function.
        or _registrations.get(op_name) is not rule.entry
        or rule.entry.get("type") is not rule.registered
        or type(grads) is not tuple
    ):
        return _TENSORFLOW
    held_attrs = _as_tuple(attrs)
    held_inputs = _as_tuple(inputs)
    held_outputs = _as_tuple(outputs)
    if held_attrs is None or held_inputs is None or held_outputs is None:
        return _TENSORFLOW
    step.inputs = PySequence_Fast_ITEMS(<PyObject*>held_inputs)
    step.outputs = PySequence_Fast_ITEMS(<PyObject*>held_outputs)
    step.grads = PySequence_Fast_ITEMS(<PyObject*>grads)
    step.num_inputs = PyTuple_GET_SIZE(held_inputs)
    step.num_outputs = PyTuple_GET_SIZE(held_outputs)
    step.num_grads = PyTuple_GET_SIZE(grads)
    step.attrs = <PyObject*>held_attrs
    step.unused = 0
    if unused is not None:
        for i in unused:
            if i < 64:
                step.unused |= (<unsigned long long>1) << <int>i
    if not rule.any_grad and not (
        _all_on_host(step.inputs, step.num_inputs)
        and _all_on_host(step.outputs, step.num_outputs)
        and _all_on_host(step.grads, step.num_grads)
    ):
        rule.left += 1
        return _TENSORFLOW
    if not on_host() or not promotes_no_dtypes():
        rule.left += 1
        return _TENSORFLOW
    try:
        result = rule.function(&step)
    except Exception:  # TensorFlow's function will say what is wrong
        result = _TENSORFLOW
    if result is _TENSORFLOW:
        rule.left += 1
    else:
        rule.taken += 1
    return result


cdef tuple _as_tuple(object values):
    """Values in a tuple, which nobody changes meanwhile. None where they are in something else."""
    if type(values) is tuple:
        return <tuple>values
    if type(values) is list:
        return tuple(<list>values)
    return () if values is None else None


cdef bint _all_on_host(PyObject** values, Py_ssize_t size) noexcept:
    cdef Py_ssize_t i
    for i in range(size):
        if values[i] != <PyObject*>None and HostTensor(values[i]) == NULL:
            return False
    return True


enable(GradientFunction)
