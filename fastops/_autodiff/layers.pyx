# distutils: language = c++
"""Gradients of softmax and losses, and of the ops of layers: products, convolutions, pools."""

from cpython.object cimport PyObject

from fastops._autodiff.backward_op cimport (
    BackwardOp,
    attr_of,
    attrs_of,
    computed,
    grad_of,
    input_of,
    is_complex,
    output_of,
    tensor_of,
    wanted,
)
from fastops._autodiff.rules cimport register
from fastops._autodiff.shapes cimport conj, shape_of, unbroadcast_batches
from fastops._call_site cimport CallSite
from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport dtype_of, rank_of
from fastops._specialize.cache cimport Cache
from fastops._specialize.policy cimport MAX_EQUATIONS
from fastops._tf.protos cimport DT_DOUBLE
from fastops._tf.tensor cimport Tensor

from tensorflow.python.framework import dtypes as _dtypes


cdef CallSite _BATCH_MATMUL_X = CallSite("BatchMatMulV2", "x y adj_x adj_y grad_x grad_y")
cdef CallSite _BATCH_MATMUL_Y = CallSite("BatchMatMulV2", "x y adj_x adj_y grad_x grad_y")
cdef CallSite _BIAS_ADD_GRAD = CallSite("BiasAddGrad", "out_backprop data_format")
cdef CallSite _EINSUM_X = CallSite("Einsum", "inputs equation")
cdef CallSite _EINSUM_Y = CallSite("Einsum", "inputs equation")
cdef CallSite _EXPAND_DIMS = CallSite("ExpandDims", "input axis")
cdef CallSite _EXP = CallSite("Exp", "x")
cdef CallSite _LOG_SOFTMAX = CallSite("LogSoftmax", "logits")
cdef CallSite _MATMUL_A = CallSite("MatMul", "a b transpose_a transpose_b grad_a grad_b")
cdef CallSite _MATMUL_B = CallSite("MatMul", "a b transpose_a transpose_b grad_a grad_b")
cdef CallSite _MUL = CallSite("Mul", "x y")
cdef CallSite _NEG = CallSite("Neg", "x")
cdef CallSite _SHAPE_N = CallSite("ShapeN", "input out_type")
cdef CallSite _SUB = CallSite("Sub", "x y")
cdef CallSite _SUM = CallSite("Sum", "input axis keep_dims")
cdef CallSite _CONV2D_INPUT = CallSite(
    "Conv2DBackpropInput",
    "input_sizes filter out_backprop dilations strides padding explicit_paddings "
    "use_cudnn_on_gpu data_format",
)
cdef CallSite _CONV2D_FILTER = CallSite(
    "Conv2DBackpropFilter",
    "input filter_sizes out_backprop dilations strides padding explicit_paddings "
    "use_cudnn_on_gpu data_format",
)
cdef CallSite _MAX_POOL_GRAD = CallSite(
    "MaxPoolGrad",
    "orig_input orig_output grad ksize strides padding explicit_paddings data_format",
)
cdef CallSite _AVG_POOL_GRAD = CallSite(
    "AvgPoolGrad", "orig_input_shape grad ksize strides padding data_format"
)


# Softmax and losses

cdef object _softmax(BackwardOp* op):
    softmax, grad = output_of(op, 0), grad_of(op)
    total = _SUM.run((_MUL.run((grad, softmax)), -1, True))
    return _MUL.run((_SUB.run((grad, total)), softmax))


cdef object _log_softmax(BackwardOp* op):
    grad = grad_of(op)
    softmax = _EXP.run((output_of(op, 0),))
    return _SUB.run((grad, _MUL.run((_SUM.run((grad, -1, True)), softmax))))


cdef object _softmax_but_doubles(BackwardOp* op):
    # For doubles, TensorFlow corrects the largest component.
    return DECLINED if dtype_of(tensor_of(output_of(op, 0))) == DT_DOUBLE else _softmax(op)


cdef object _log_softmax_but_doubles(BackwardOp* op):
    return DECLINED if dtype_of(tensor_of(output_of(op, 0))) == DT_DOUBLE else _log_softmax(op)


cdef object _cross_entropy(BackwardOp* op):
    if op.num_grads != 2 or <object>op.grads[1] is not None:
        return DECLINED
    loss_grad = _EXPAND_DIMS.run((grad_of(op), -1))
    features_grad, labels_grad = _MUL.run((loss_grad, output_of(op, 1))), None
    if computed(op, 1):
        labels_grad = _NEG.run((_LOG_SOFTMAX.run((input_of(op, 0),)),))
        if op.recorded:
            loss_grad = _EXPAND_DIMS.run((grad_of(op), -1))
        labels_grad = _MUL.run((loss_grad, labels_grad))
    return features_grad, labels_grad


cdef object _sparse_cross_entropy(BackwardOp* op):
    if op.num_grads != 2 or <object>op.grads[1] is not None:
        return DECLINED
    return _MUL.run((_EXPAND_DIMS.run((grad_of(op), -1)), output_of(op, 1))), None


# Layers

cdef object _bias_add(BackwardOp* op):
    grad, data_format = grad_of(op), attr_of(op, "data_format")
    bias_grad = None
    if computed(op, 1):
        bias_grad = _BIAS_ADD_GRAD.run((grad, data_format))
    return grad, bias_grad


cdef object _matmul(BackwardOp* op):
    transpose_a, transpose_b = attr_of(op, "transpose_a"), attr_of(op, "transpose_b")
    if type(transpose_a) is not bool or type(transpose_b) is not bool:
        return DECLINED
    grad = grad_of(op)
    a_grad = b_grad = None
    a = conj(input_of(op, 0)) if wanted(op, 1) else None
    b = conj(input_of(op, 1)) if wanted(op, 0) else None
    if wanted(op, 0):
        if transpose_a:
            a_grad = _MATMUL_A.run((b, grad, transpose_b, True, True, False))
        else:
            a_grad = _MATMUL_A.run((grad, b, False, not transpose_b, True, False))
    if wanted(op, 1):
        if transpose_b:
            b_grad = _MATMUL_B.run((grad, a, True, transpose_a, False, True))
        else:
            b_grad = _MATMUL_B.run((a, grad, not transpose_a, False, False, True))
    return a_grad, b_grad


cdef object _batch_matmul(BackwardOp* op):
    adj_x, adj_y = attr_of(op, "adj_x"), attr_of(op, "adj_y")
    if type(adj_x) is not bool or type(adj_y) is not bool:
        return DECLINED
    x, y, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    cdef const Tensor* x_tensor = tensor_of(x)
    cdef const Tensor* y_tensor = tensor_of(y)
    # Only batches of matrices, with one dtype for inputs and gradient.
    if rank_of(x_tensor) < 2 or rank_of(y_tensor) < 2 or rank_of(tensor_of(grad)) < 3:
        return DECLINED
    if not dtype_of(x_tensor) == dtype_of(y_tensor) == dtype_of(tensor_of(grad)):
        return DECLINED
    x_grad = y_grad = None
    if computed(op, 0):
        if adj_x:
            x_grad = _BATCH_MATMUL_X.run((y, grad, adj_y, True, True, False))
        else:
            x_grad = _BATCH_MATMUL_X.run((grad, y, False, not adj_y, True, False))
    if computed(op, 1):
        if adj_y:
            y_grad = _BATCH_MATMUL_Y.run((grad, x, True, adj_x, False, True))
        else:
            y_grad = _BATCH_MATMUL_Y.run((x, grad, not adj_x, False, False, True))
    return unbroadcast_batches(op, x, y, x_grad, y_grad)


cdef Cache _equations = Cache(MAX_EQUATIONS)  # by equation: the result of `_equations_of`


cdef object _equations_of(object equation):
    """Return the einsum equations of both gradients.

    None if a gradient is not the product of the output's gradient and the other input.
    """
    cdef PyObject* stored = _equations.find(equation)
    if stored != NULL:
        return <object>stored
    text = equation.decode() if isinstance(equation, bytes) else equation
    inputs, _, output = text.partition("->")
    x, comma, y = inputs.partition(",")
    known = None
    if (
        comma
        and "." not in text
        and "," not in y
        and set(x) <= set(output + y)
        and set(y) <= set(output + x)
    ):
        known = f"{output},{y}->{x}", f"{output},{x}->{y}"
    return _equations.put(equation, known)


cdef object _einsum(BackwardOp* op):
    equations = _equations_of(attr_of(op, "equation"))
    grad = grad_of(op)
    if equations is None or op.num_inputs != 2 or is_complex(grad):
        return DECLINED
    x_equation, y_equation = equations
    x_grad = y_grad = None
    if op.recorded:
        shape_of(op, input_of(op, 0))
        shape_of(op, input_of(op, 1))
    if computed(op, 0):
        x_grad = _EINSUM_X.run(([grad, input_of(op, 1)], x_equation))
    if computed(op, 1):
        y_grad = _EINSUM_Y.run(([grad, input_of(op, 0)], y_equation))
    return x_grad, y_grad


cdef object _conv2d(BackwardOp* op):
    cdef tuple attrs = attrs_of(op, _CONV2D_INPUT.names[3:])
    image, filters, grad = input_of(op, 0), input_of(op, 1), grad_of(op)
    image_grad = filters_grad = image_shape = filters_shape = None
    if op.recorded:
        image_shape, filters_shape = _SHAPE_N.run(([image, filters], _dtypes.int32))
    if computed(op, 0):
        image_shape = image_shape if op.recorded else shape_of(op, image)
        image_grad = _CONV2D_INPUT.run((image_shape, filters, grad) + attrs)
    if computed(op, 1):
        filters_shape = filters_shape if op.recorded else shape_of(op, filters)
        filters_grad = _CONV2D_FILTER.run((image, filters_shape, grad) + attrs)
    return image_grad, filters_grad


cdef object _max_pool(BackwardOp* op):
    cdef tuple attrs = attrs_of(op, _MAX_POOL_GRAD.names[3:])
    return _MAX_POOL_GRAD.run((input_of(op, 0), output_of(op, 0), grad_of(op)) + attrs)


cdef object _avg_pool(BackwardOp* op):
    cdef tuple attrs = attrs_of(op, _AVG_POOL_GRAD.names[2:])
    return _AVG_POOL_GRAD.run((shape_of(op, input_of(op, 0)), grad_of(op)) + attrs)


register("AvgPool", "nn_grad._AvgPoolGrad", _avg_pool)
register("BatchMatMulV2", "math_grad._BatchMatMulV2", _batch_matmul)
register("BiasAdd", "nn_grad._BiasAddGrad", _bias_add)
register("Conv2D", "nn_grad._Conv2DGrad", _conv2d)
register("Einsum", "linalg_grad._EinsumGrad", _einsum)
register("LogSoftmax", "nn_grad._LogSoftmaxGrad", _log_softmax, False, _log_softmax_but_doubles)
register("MatMul", "math_grad._MatMulGrad", _matmul)
register("MaxPool", "nn_grad._MaxPoolGrad", _max_pool)
register("Softmax", "nn_grad._SoftmaxGrad", _softmax, False, _softmax_but_doubles)
register(
    "SoftmaxCrossEntropyWithLogits", "nn_grad._SoftmaxCrossEntropyWithLogitsGrad", _cross_entropy
)
register(
    "SparseSoftmaxCrossEntropyWithLogits", "nn_grad._SparseSoftmaxCrossEntropyWithLogitsGrad",
    _sparse_cross_entropy,
)
