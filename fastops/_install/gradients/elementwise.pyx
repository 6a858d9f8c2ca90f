# distutils: language = c++
"""Gradients of elementwise ops, and of ops that pass their values on."""

from fastops._core.tensors cimport dtype_of, same_sizes
from fastops._dispatch cimport constant
from fastops._install.gradients.rules cimport TENSORFLOW, register
from fastops._install.gradients.shapes cimport conj, unbroadcast
from fastops._install.gradients.step cimport (
    Step,
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
from fastops._install.intercept cimport Call
from fastops._tf.protos cimport DT_FLOAT, DT_INT32, DataType
from fastops._tf.tensor cimport Tensor

import numpy as np
from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import ops as _tf_ops


cdef Call _SIGN = Call("Sign", "x")
cdef Call _ADD = Call("AddV2", "x y")
cdef Call _CAST = Call("Cast", "x DstT")
cdef Call _DIV_NO_NAN = Call("DivNoNan", "x y")
cdef Call _EXP = Call("Exp", "x")
cdef Call _GREATER_EQUAL = Call("GreaterEqual", "x y")
cdef Call _LESS_EQUAL = Call("LessEqual", "x y")
cdef Call _MUL = Call("Mul", "x y")
cdef Call _NEG = Call("Neg", "x")
cdef Call _POW = Call("Pow", "x y")
cdef Call _REAL_DIV = Call("RealDiv", "x y")
cdef Call _RECIPROCAL = Call("Reciprocal", "x")
cdef Call _SELECT = Call("SelectV2", "condition t e")
cdef Call _SQUARE = Call("Square", "x")
cdef Call _SUB = Call("Sub", "x y")
cdef Call _ZEROS_LIKE = Call("ZerosLike", "x")
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

cdef tuple _NO_GRADIENT = (None,)
cdef double _TWO_OVER_ROOT_PI = 2 / np.sqrt(np.pi)
cdef double _MINUS_TWO_OVER_ROOT_PI = -_TWO_OVER_ROOT_PI


# Passing gradients on

cdef object _identity(Step* step):
    return grad_of(step)


cdef object _add_n(Step* step):
    return (grad_of(step),) * step.num_inputs


cdef object _cast(Step* step):
    x, grad = input_of(step, 0), grad_of(step)
    cdef DataType dtype = dtype_of(tensor_of(x))
    if not (is_float(x) or is_complex(x)) or not (is_float(grad) or is_complex(grad)):
        return _NO_GRADIENT
    if dtype == dtype_of(tensor_of(grad)):
        return grad
    if is_complex(grad) and not is_complex(x):
        return TENSORFLOW  # TensorFlow warns about the cast from complex to real
    return _CAST.run((grad, _dtypes.as_dtype(<int>dtype)))


# Arithmetic

cdef inline bint _one_shape(object x, object y, object grad) except -1:
    cdef const Tensor* tensor = tensor_of(x)
    return same_sizes(tensor, tensor_of(y)) and same_sizes(tensor, tensor_of(grad))


cdef object _add(Step* step):
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    if not wanted(step, 1) and is_scalar(y):
        return grad, None
    if _one_shape(x, y, grad):
        return grad, grad
    return unbroadcast(
        step, x, y, grad if wanted(step, 0) else None, grad if wanted(step, 1) else None
    )


cdef object _sub(Step* step):
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    if not wanted(step, 1) and is_scalar(y):
        return grad, None
    if _one_shape(x, y, grad):
        return grad, _NEG.run((grad,)) if computed(step, 1) else None
    x_grad = grad if wanted(step, 0) else None
    y_grad = _NEG.run((grad,)) if wanted(step, 1) else None
    return unbroadcast(step, x, y, x_grad, y_grad)


cdef object _mul(Step* step):
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    x_grad = y_grad = None
    if not wanted(step, 1) and is_scalar(y):
        return _MUL.run((grad, conj(y))), None
    if dtype_of(tensor_of(grad)) in (DT_FLOAT, DT_INT32) and _one_shape(x, y, grad):
        if computed(step, 0):
            x_grad = _MUL.run((grad, y))
        if computed(step, 1):
            y_grad = _MUL.run((grad, x))
        return x_grad, y_grad
    if wanted(step, 0):
        x_grad = _MUL.run((grad, conj(y)))
    if wanted(step, 1):
        y_grad = _MUL.run((conj(x), grad))
    return unbroadcast(step, x, y, x_grad, y_grad)


cdef object _real_div(Step* step):
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    conj_x = conj(x) if computed(step, 1) else None
    conj_y = conj(y)
    x_grad = y_grad = None
    if computed(step, 0):
        x_grad = _REAL_DIV.run((grad, conj_y))
    if computed(step, 1):
        y_grad = _REAL_DIV.run((_NEG.run((conj_x,)), conj_y))
        y_grad = _MUL.run((grad, _REAL_DIV.run((y_grad, conj_y))))
    return unbroadcast(step, x, y, x_grad, y_grad)


cdef object _div_no_nan(Step* step):
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    conj_x = conj(x) if computed(step, 1) else None
    conj_y = conj(y)
    x_grad = y_grad = None
    if computed(step, 0):
        x_grad = _DIV_NO_NAN.run((grad, conj_y))
    if computed(step, 1):
        y_grad = _DIV_NO_NAN.run((_NEG.run((conj_x,)), conj_y))
        y_grad = _MUL.run((grad, _DIV_NO_NAN.run((y_grad, conj_y))))
    return unbroadcast(step, x if conj_x is None else conj_x, conj_y, x_grad, y_grad)


cdef object _pow(Step* step):
    if wanted(step, 1):
        return TENSORFLOW
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    conj_x, conj_y = conj(x), conj(y)
    x_grad = _MUL.run((grad, conj_y))
    x_grad = _MUL.run((x_grad, _POW.run((conj_x, _SUB.run((conj_y, 1))))))
    return (x_grad, None) if is_scalar(y) else unbroadcast(step, x, y, x_grad, None)


cdef object _squared_difference(Step* step):
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    x_grad = _MUL.run((_MUL.run((2.0, grad)), _SUB.run((x, y))))
    if _one_shape(x, y, grad):
        return x_grad, _NEG.run((x_grad,)) if computed(step, 1) else None
    y_grad = _NEG.run((x_grad,)) if wanted(step, 1) else None
    return unbroadcast(step, x, y, x_grad if wanted(step, 0) else None, y_grad)


cdef object _extremum(Step* step, Call choose):
    x, y, grad = input_of(step, 0), input_of(step, 1), grad_of(step)
    zeros = _ZEROS_LIKE.run((grad,))
    mask = choose.run((x, y))
    x_grad = y_grad = None
    if wanted(step, 0):
        x_grad = _SELECT.run((mask, grad, zeros))
    if wanted(step, 1):
        y_grad = _SELECT.run((mask, zeros, grad))
    elif is_scalar(y):
        return x_grad, None
    return unbroadcast(step, x, y, x_grad, y_grad)


cdef object _maximum(Step* step):
    return _extremum(step, _GREATER_EQUAL)


cdef object _minimum(Step* step):
    return _extremum(step, _LESS_EQUAL)


cdef object _select(Step* step):
    condition, grad = input_of(step, 0), grad_of(step)
    output = output_of(step, 0)
    x_grad = y_grad = None
    # Make a tensor rather than pass the number 0. TensorFlow caches scalars by value, and the cache
    # may return -0.0, which is equal to 0.
    zero = _tf_ops.EagerTensor(0, _tf_context.context().device_name, grad._datatype_enum())
    if computed(step, 1):
        x_grad = _SELECT.run((condition, grad, zero))
    if computed(step, 2):
        y_grad = _SELECT.run((condition, zero, grad))
    x_grad, _ = unbroadcast(step, input_of(step, 1), output, x_grad, None)
    y_grad, _ = unbroadcast(step, input_of(step, 2), output, y_grad, None)
    return None, x_grad, y_grad


cdef object _neg(Step* step):
    return _NEG.run((grad_of(step),))


cdef object _abs(Step* step):
    return _MUL.run((grad_of(step), _SIGN.run((input_of(step, 0),))))


cdef object _square(Step* step):
    return _MUL.run((grad_of(step), _MUL.run((conj(input_of(step, 0)), 2.0))))


cdef object _exp(Step* step):
    return _MUL.run((grad_of(step), conj(output_of(step, 0))))


cdef object _log(Step* step):
    return _MUL.run((grad_of(step), _RECIPROCAL.run((conj(input_of(step, 0)),))))


cdef object _log1p(Step* step):
    x = _ADD.run((1, conj(input_of(step, 0))))
    return _MUL.run((grad_of(step), _RECIPROCAL.run((x,))))


# Ops that have an op for their gradient, of the output and the gradient

cdef object _reciprocal(Step* step):
    return _RECIPROCAL_GRAD.run((output_of(step, 0), grad_of(step)))


cdef object _rsqrt(Step* step):
    return _RSQRT_GRAD.run((output_of(step, 0), grad_of(step)))


cdef object _sqrt(Step* step):
    return _SQRT_GRAD.run((output_of(step, 0), grad_of(step)))


cdef object _sigmoid(Step* step):
    return _SIGMOID_GRAD.run((conj(output_of(step, 0)), grad_of(step)))


cdef object _tanh(Step* step):
    return _TANH_GRAD.run((conj(output_of(step, 0)), grad_of(step)))


cdef object _relu(Step* step):
    return _RELU_GRAD.run((grad_of(step), output_of(step, 0)))


cdef object _relu6(Step* step):
    return _RELU6_GRAD.run((grad_of(step), output_of(step, 0)))


cdef object _elu(Step* step):
    return _ELU_GRAD.run((grad_of(step), output_of(step, 0)))


cdef object _selu(Step* step):
    return _SELU_GRAD.run((grad_of(step), output_of(step, 0)))


cdef object _leaky_relu(Step* step):
    return _LEAKY_RELU_GRAD.run((grad_of(step), input_of(step, 0), attr_of(step, "alpha")))


cdef object _softplus(Step* step):
    return _MUL.run((grad_of(step), _SIGMOID.run((input_of(step, 0),))))


cdef object _bell(Step* step, double factor):
    """Return the gradient times a factor and exp(-x ** 2)."""
    x, grad = input_of(step, 0), grad_of(step)
    scale = constant(factor, dtype_of(tensor_of(grad)))
    if scale is None:
        return TENSORFLOW
    grad = _MUL.run((grad, scale))
    return _MUL.run((grad, _EXP.run((_NEG.run((_SQUARE.run((x,)),)),))))


cdef object _erf(Step* step):
    return _bell(step, _TWO_OVER_ROOT_PI)


cdef object _erfc(Step* step):
    return _bell(step, _MINUS_TWO_OVER_ROOT_PI)


cdef object _tanh_grad(Step* step):
    a, b, grad = conj(input_of(step, 0)), conj(input_of(step, 1)), grad_of(step)
    a_grad = b_grad = None
    if computed(step, 0):
        a_grad = _MUL.run((_MUL.run((_MUL.run((grad, -2.0)), b)), a))
    if computed(step, 1):
        b_grad = _TANH_GRAD.run((a, grad))
    return a_grad, b_grad


register("Abs", "math_grad._AbsGrad", _abs)
register("Add AddV2", "math_grad._AddGrad", _add)
register("AddN", "math_grad._AddNGrad", _add_n)
register("Cast", "math_grad._CastGrad", _cast)
register("DivNoNan", "math_grad._DivNoNanGrad", _div_no_nan)
register("Elu", "nn_grad._EluGrad", _elu)
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
register("Selu", "nn_grad._SeluGrad", _selu)
register("Sigmoid", "math_grad._SigmoidGrad", _sigmoid)
register("Softplus", "nn_grad._SoftplusGrad", _softplus)
register("Sqrt", "math_grad._SqrtGrad", _sqrt)
register("Square", "math_grad._SquareGrad", _square)
register("SquaredDifference", "math_grad._SquaredDifferenceGrad", _squared_difference)
register("Sub", "math_grad._SubGrad", _sub)
register("Tanh", "math_grad._TanhGrad", _tanh)
register("TanhGrad", "math_grad._TanhGradGrad", _tanh_grad)
