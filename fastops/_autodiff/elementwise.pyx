# distutils: language = c++
"""Gradients of elementwise ops, and of ops whose outputs are copies of their inputs."""

from fastops._autodiff.backward_op cimport (
    BackwardOp,
    attr_of,
    computed,
    grad_of,
    input_of,
    is_complex,
    is_float,
    is_scalar,
    output_of,
    tensor_of,
    wanted,
)
from fastops._autodiff.rules cimport register
from fastops._autodiff.shapes cimport conj, unbroadcast
from fastops._call_site cimport CallSite
from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport dtype_of, same_sizes
from fastops._dispatch cimport constant
from fastops._tf.protos cimport DT_FLOAT, DT_INT32, DataType
from fastops._tf.tensor cimport Tensor

import numpy as np
from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import ops as _tf_ops


cdef CallSite _SIGN = CallSite("Sign", "x")
cdef CallSite _ADD = CallSite("AddV2", "x y")
cdef CallSite _CAST = CallSite("Cast", "x DstT")
cdef CallSite _DIV_NO_NAN = CallSite("DivNoNan", "x y")
cdef CallSite _EXP = CallSite("Exp", "x")
cdef CallSite _GREATER_EQUAL = CallSite("GreaterEqual", "x y")
cdef CallSite _IS_NAN = CallSite("IsNan", "x")
cdef CallSite _LESS = CallSite("Less", "x y")
cdef CallSite _LESS_EQUAL = CallSite("LessEqual", "x y")
cdef CallSite _MINIMUM = CallSite("Minimum", "x y")
cdef CallSite _MUL = CallSite("Mul", "x y")
cdef CallSite _NEG = CallSite("Neg", "x")
cdef CallSite _POW = CallSite("Pow", "x y")
cdef CallSite _REAL_DIV = CallSite("RealDiv", "x y")
cdef CallSite _RECIPROCAL = CallSite("Reciprocal", "x")
cdef CallSite _SELECT = CallSite("SelectV2", "condition t e")
cdef CallSite _SQUARE = CallSite("Square", "x")
cdef CallSite _SUB = CallSite("Sub", "x y")
cdef CallSite _ZEROS_LIKE = CallSite("ZerosLike", "x")
cdef CallSite _RECIPROCAL_GRAD = CallSite("ReciprocalGrad", "y dy")
cdef CallSite _RSQRT_GRAD = CallSite("RsqrtGrad", "y dy")
cdef CallSite _SIGMOID = CallSite("Sigmoid", "x")
cdef CallSite _SIGMOID_GRAD = CallSite("SigmoidGrad", "y dy")
cdef CallSite _SQRT_GRAD = CallSite("SqrtGrad", "y dy")
cdef CallSite _TANH_GRAD = CallSite("TanhGrad", "y dy")
cdef CallSite _ELU_GRAD = CallSite("EluGrad", "gradients outputs")
cdef CallSite _LEAKY_RELU_GRAD = CallSite("LeakyReluGrad", "gradients features alpha")
cdef CallSite _RELU_GRAD = CallSite("ReluGrad", "gradients features")
cdef CallSite _RELU6_GRAD = CallSite("Relu6Grad", "gradients features")
cdef CallSite _SELU_GRAD = CallSite("SeluGrad", "gradients outputs")
cdef CallSite _SOFTPLUS_GRAD = CallSite("SoftplusGrad", "gradients features")

cdef tuple _NO_GRADIENT = (None,)
cdef double _TWO_OVER_ROOT_PI = 2 / np.sqrt(np.pi)
cdef double _MINUS_TWO_OVER_ROOT_PI = -_TWO_OVER_ROOT_PI
cdef double _SELU_SCALE = 1.0507009873554805
cdef double _SELU_SCALE_ALPHA = 1.7580993408473768


# Passing gradients on

cdef object _identity(BackwardOp* op):
    return grad_of(op)


cdef object _add_n(BackwardOp* op):
    return (grad_of(op),) * op.num_inputs


cdef object _cast(BackwardOp* op):
    x, grad = input_of(op, 0), grad_of(op)
    cdef DataType dtype = dtype_of(tensor_of(x))
    if not (is_float(x) or is_complex(x)) or not (is_float(grad) or is_complex(grad)):
        return _NO_GRADIENT
    if dtype == dtype_of(tensor_of(grad)):
        return grad
    if is_complex(grad) and not is_complex(x):
        return DECLINED  # TensorFlow warns about the cast from complex to real
    return _CAST.run((grad, _dtypes.as_dtype(<int>dtype)))


# Arithmetic

cdef inline bint _one_shape(object x, object y, object grad) except -1:
    cdef const Tensor* tensor = tensor_of(x)
    return same_sizes(tensor, tensor_of(y)) and same_sizes(tensor, tensor_of(grad))


cdef object _add(BackwardOp* op):
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    if not wanted(op, 1) and is_scalar(y):
        return grad, None
    if _one_shape(x, y, grad):
        return grad, grad
    return unbroadcast(
        op, x, y, grad if wanted(op, 0) else None, grad if wanted(op, 1) else None
    )


cdef object _sub(BackwardOp* op):
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    if not wanted(op, 1) and is_scalar(y):
        return grad, None
    if _one_shape(x, y, grad):
        return grad, _NEG.run((grad,)) if computed(op, 1) else None
    x_grad = grad if wanted(op, 0) else None
    y_grad = _NEG.run((grad,)) if wanted(op, 1) else None
    return unbroadcast(op, x, y, x_grad, y_grad)


cdef object _mul(BackwardOp* op):
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    x_grad = y_grad = None
    if not wanted(op, 1) and is_scalar(y):
        return _MUL.run((grad, conj(y))), None
    if dtype_of(tensor_of(grad)) in (DT_FLOAT, DT_INT32) and _one_shape(x, y, grad):
        if computed(op, 0):
            x_grad = _MUL.run((grad, y))
        if computed(op, 1):
            y_grad = _MUL.run((grad, x))
        return x_grad, y_grad
    if wanted(op, 0):
        x_grad = _MUL.run((grad, conj(y)))
    if wanted(op, 1):
        y_grad = _MUL.run((conj(x), grad))
    return unbroadcast(op, x, y, x_grad, y_grad)


cdef object _real_div(BackwardOp* op):
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    conj_x = conj(x) if computed(op, 1) else None
    conj_y = conj(y)
    x_grad = y_grad = None
    if computed(op, 0):
        x_grad = _REAL_DIV.run((grad, conj_y))
    if computed(op, 1):
        y_grad = _REAL_DIV.run((_NEG.run((conj_x,)), conj_y))
        y_grad = _MUL.run((grad, _REAL_DIV.run((y_grad, conj_y))))
    return unbroadcast(op, x, y, x_grad, y_grad)


cdef object _div_no_nan(BackwardOp* op):
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    conj_x = conj(x) if computed(op, 1) else None
    conj_y = conj(y)
    x_grad = y_grad = None
    if computed(op, 0):
        x_grad = _DIV_NO_NAN.run((grad, conj_y))
    if computed(op, 1):
        y_grad = _DIV_NO_NAN.run((_NEG.run((conj_x,)), conj_y))
        y_grad = _MUL.run((grad, _DIV_NO_NAN.run((y_grad, conj_y))))
    return unbroadcast(op, x if conj_x is None else conj_x, conj_y, x_grad, y_grad)


cdef object _pow(BackwardOp* op):
    if wanted(op, 1):
        return DECLINED
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    conj_x, conj_y = conj(x), conj(y)
    x_grad = _MUL.run((grad, conj_y))
    x_grad = _MUL.run((x_grad, _POW.run((conj_x, _SUB.run((conj_y, 1))))))
    return (x_grad, None) if is_scalar(y) else unbroadcast(op, x, y, x_grad, None)


cdef object _squared_difference(BackwardOp* op):
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    x_grad = _MUL.run((_MUL.run((2.0, grad)), _SUB.run((x, y))))
    if _one_shape(x, y, grad):
        return x_grad, _NEG.run((x_grad,)) if computed(op, 1) else None
    y_grad = _NEG.run((x_grad,)) if wanted(op, 1) else None
    return unbroadcast(op, x, y, x_grad if wanted(op, 0) else None, y_grad)


cdef object _extremum(BackwardOp* op, CallSite choose):
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    zeros = _ZEROS_LIKE.run((grad,))
    mask = choose.run((x, y))
    x_grad = y_grad = None
    if wanted(op, 0):
        x_grad = _SELECT.run((mask, grad, zeros))
    if wanted(op, 1):
        y_grad = _SELECT.run((mask, zeros, grad))
    elif is_scalar(y):
        return x_grad, None
    return unbroadcast(op, x, y, x_grad, y_grad)


cdef object _maximum(BackwardOp* op):
    return _extremum(op, _GREATER_EQUAL)


cdef object _minimum(BackwardOp* op):
    return _extremum(op, _LESS_EQUAL)


cdef object _select(BackwardOp* op):
    condition, grad = input_of(op, 0), grad_of(op)
    output = output_of(op, 0)
    x_grad = y_grad = None
    # Make a tensor rather than pass the number 0. TensorFlow caches scalars by value, and the cache
    # may return -0.0, which is equal to 0.
    zero = _tf_ops.EagerTensor(0, _tf_context.context().device_name, grad._datatype_enum())
    if computed(op, 1):
        x_grad = _SELECT.run((condition, grad, zero))
    if computed(op, 2):
        y_grad = _SELECT.run((condition, zero, grad))
    x_grad, _ = unbroadcast(op, input_of(op, 1), output, x_grad, None)
    y_grad, _ = unbroadcast(op, input_of(op, 2), output, y_grad, None)
    return None, x_grad, y_grad


cdef object _neg(BackwardOp* op):
    return _NEG.run((grad_of(op),))


cdef object _abs(BackwardOp* op):
    return _MUL.run((grad_of(op), _SIGN.run((input_of(op, 0),))))


cdef object _square(BackwardOp* op):
    return _MUL.run((grad_of(op), _MUL.run((conj(input_of(op, 0)), 2.0))))


cdef object _exp(BackwardOp* op):
    return _MUL.run((grad_of(op), conj(output_of(op, 0))))


cdef object _log(BackwardOp* op):
    return _MUL.run((grad_of(op), _RECIPROCAL.run((conj(input_of(op, 0)),))))


cdef object _log1p(BackwardOp* op):
    x = _ADD.run((1, conj(input_of(op, 0))))
    return _MUL.run((grad_of(op), _RECIPROCAL.run((x,))))


# Ops whose gradient is another op, of the output (or the input) and the incoming gradient

cdef object _reciprocal(BackwardOp* op):
    return _RECIPROCAL_GRAD.run((output_of(op, 0), grad_of(op)))


cdef object _rsqrt(BackwardOp* op):
    return _RSQRT_GRAD.run((output_of(op, 0), grad_of(op)))


cdef object _sqrt(BackwardOp* op):
    return _SQRT_GRAD.run((output_of(op, 0), grad_of(op)))


cdef object _sigmoid(BackwardOp* op):
    return _SIGMOID_GRAD.run((conj(output_of(op, 0)), grad_of(op)))


cdef object _tanh(BackwardOp* op):
    return _TANH_GRAD.run((conj(output_of(op, 0)), grad_of(op)))


cdef object _relu(BackwardOp* op):
    return _RELU_GRAD.run((grad_of(op), output_of(op, 0)))


cdef object _relu6(BackwardOp* op):
    return _RELU6_GRAD.run((grad_of(op), output_of(op, 0)))


cdef object _elu(BackwardOp* op):
    return _ELU_GRAD.run((grad_of(op), output_of(op, 0)))


cdef object _elu_by_input(BackwardOp* op):
    factor = _EXP.run((_MINIMUM.run((input_of(op, 0), 0.0)),))
    return _MUL.run((grad_of(op), factor))


cdef object _selu(BackwardOp* op):
    return _SELU_GRAD.run((grad_of(op), output_of(op, 0)))


cdef object _selu_by_input(BackwardOp* op):
    x = input_of(op, 0)
    scale = constant(_SELU_SCALE, dtype_of(tensor_of(x)))
    scale_alpha = constant(_SELU_SCALE_ALPHA, dtype_of(tensor_of(x)))
    if scale is None or scale_alpha is None:
        return DECLINED
    below = _LESS.run((x, 0.0))
    factor = _MUL.run((scale_alpha, _EXP.run((_MINIMUM.run((x, 0.0)),))))
    factor = _SELECT.run((below, factor, scale))
    factor = _SELECT.run((_IS_NAN.run((x,)), x, factor))
    return _MUL.run((grad_of(op), factor))


cdef object _leaky_relu(BackwardOp* op):
    return _LEAKY_RELU_GRAD.run((grad_of(op), input_of(op, 0), attr_of(op, "alpha")))


# Other functions

cdef object _softplus(BackwardOp* op):
    return _MUL.run((grad_of(op), _SIGMOID.run((input_of(op, 0),))))


cdef object _softplus_by_op(BackwardOp* op):
    return _SOFTPLUS_GRAD.run((grad_of(op), input_of(op, 0)))


cdef object _bell(BackwardOp* op, double factor):
    """Return the gradient times a factor and exp(-x ** 2)."""
    x, grad = input_of(op, 0), grad_of(op)
    scale = constant(factor, dtype_of(tensor_of(grad)))
    if scale is None:
        return DECLINED
    grad = _MUL.run((grad, scale))
    return _MUL.run((grad, _EXP.run((_NEG.run((_SQUARE.run((x,)),)),))))


cdef object _erf(BackwardOp* op):
    return _bell(op, _TWO_OVER_ROOT_PI)


cdef object _erfc(BackwardOp* op):
    return _bell(op, _MINUS_TWO_OVER_ROOT_PI)


cdef object _tanh_grad(BackwardOp* op):
    a, b, grad = conj(input_of(op, 0)), conj(input_of(op, 1)), grad_of(op)
    a_grad = b_grad = None
    if computed(op, 0):
        a_grad = _MUL.run((_MUL.run((_MUL.run((grad, -2.0)), b)), a))
    if computed(op, 1):
        b_grad = _TANH_GRAD.run((a, grad))
    return a_grad, b_grad


register("Abs", "math_grad._AbsGrad", _abs)
register("Add AddV2", "math_grad._AddGrad", _add)
register("AddN", "math_grad._AddNGrad", _add_n)
register("Cast", "math_grad._CastGrad", _cast)
register("DivNoNan", "math_grad._DivNoNanGrad", _div_no_nan)
register("Elu", "nn_grad._EluGrad", _elu, False, _elu_by_input)
register("Erf", "math_grad._ErfGrad", _erf)
register("Erfc", "math_grad._ErfcGrad", _erfc)
register("Exp", "math_grad._ExpGrad", _exp)
register("Identity", "array_grad._IdGrad", _identity, True)
register("LeakyRelu", "nn_grad._LeakyReluGrad", _leaky_relu)
register("Log", "math_grad._LogGrad", _log)
register("Log1p", "math_grad._Log1pGrad", _log1p)
register("Maximum", "math_grad._MaximumGrad", _maximum)
register("Minimum", "math_grad._MinimumGrad", _minimum)
register("Mul", "math_grad._MulGrad", _mul)
register("Neg", "math_grad._NegGrad", _neg)
register("Pow", "math_grad._PowGrad", _pow)
register("ReadVariableOp", "resource_variable_ops._ReadGrad", _identity, True)
register("RealDiv", "math_grad._RealDivGrad", _real_div)
register("Reciprocal", "math_grad._ReciprocalGrad", _reciprocal)
register("Relu", "nn_grad._ReluGrad", _relu)
register("Relu6", "nn_grad._Relu6Grad", _relu6)
register("Rsqrt", "math_grad._RsqrtGrad", _rsqrt)
register("SelectV2", "math_grad._SelectGradV2", _select)
register("Selu", "nn_grad._SeluGrad", _selu, False, _selu_by_input)
register("Sigmoid", "math_grad._SigmoidGrad", _sigmoid)
register("Softplus", "nn_grad._SoftplusGrad", _softplus, False, _softplus_by_op)
register("Sqrt", "math_grad._SqrtGrad", _sqrt)
register("Square", "math_grad._SquareGrad", _square)
register("SquaredDifference", "math_grad._SquaredDifferenceGrad", _squared_difference)
register("Sub", "math_grad._SubGrad", _sub)
register("Tanh", "math_grad._TanhGrad", _tanh)
register("TanhGrad", "math_grad._TanhGradGrad", _tanh_grad)
