"""Functions of modules, and the ops that they are lowered to.

This is data for `fastops._install.public.lowering`. A function whose signature differs in the
running TensorFlow is not replaced.
"""

from fastops._install.dtypes import COMPLEX, FLOATS, NUMERIC, SIGNED
from fastops._install.public.entry import Function, Site


def _unary(name, op, param="x", dtypes="", needs="tensor"):
    needed = f"{param}={needs}" if needs else ""
    return Function(name, f"({param}, name=None)", (Site(op, param, dtypes),), needed)


def _raw(name, op, signature, params, **more):
    """Return a function that passes its arguments to the op unchanged."""
    return Function(name, signature, (Site(op, params),), **more)


def _reduction(name, op):
    return Function(
        name,
        "(input_tensor, axis=None, keepdims=False, name=None)",
        (Site(op, "input=input_tensor axis keep_dims=keepdims"),),
        "input_tensor=eager keepdims=bool",
        "reduction",
    )


_BINARY = "(x, y, name=None)"

MASKING = (Site("Reshape", ""), Site("Where", ""), Site("Squeeze", ""), Site("GatherV2", ""))
"""The ops that select the elements for which a mask is true."""

FUNCTIONS = (
    # Arithmetic
    Function("tf.add", _BINARY, (Site("AddV2", "x y", NUMERIC),), "x=converted"),
    _raw("tf.subtract", "Sub", _BINARY, "x y"),
    _raw("tf.multiply", "Mul", _BINARY, "x y"),
    Function(
        "tf.truediv", _BINARY, (Site("RealDiv", "x y", f"{FLOATS} {COMPLEX}"),), "x=converted"
    ),
    Function(
        "tf.divide",
        _BINARY,
        (Site("RealDiv", "x y", f"{FLOATS} {COMPLEX}"),),
        "x=tensor name=none",
    ),
    Function(
        "tf.math.divide_no_nan",
        _BINARY,
        (Site("DivNoNan", "x y", f"{FLOATS} {COMPLEX}"),),
        "x=tensor",
    ),
    _raw("tf.math.floordiv", "FloorDiv", _BINARY, "x y"),
    _raw("tf.pow", "Pow", _BINARY, "x y"),
    _unary("tf.abs", "Abs", dtypes=f"{FLOATS} {SIGNED}", needs="converted"),
    _unary("tf.sign", "Sign", dtypes=f"{FLOATS} {SIGNED}"),
    _unary("tf.sqrt", "Sqrt", needs=""),
    _unary("tf.math.rsqrt", "Rsqrt", needs=""),
    _unary("tf.exp", "Exp", needs=""),
    _unary("tf.floor", "Floor", needs=""),
    _unary("tf.math.ceil", "Ceil", needs=""),
    Function(
        "tf.round",
        "(x, name=None)",
        (Site("Round", "x", FLOATS),),
        "x=eager",
        "round",
    ),
    Function(
        "tf.clip_by_value",
        "(t, clip_value_min, clip_value_max, name=None)",
        (Site("Minimum", ""), Site("Maximum", "")),
        "t=eager",
        "clip",
    ),
    Function("tf.add_n", "(inputs, name=None)", (Site("AddN", "inputs"),), "", "add_n"),
    Function(
        "tf.cumsum",
        "(x, axis=0, exclusive=False, reverse=False, name=None)",
        (Site("Cumsum", "x axis exclusive reverse"),),
        "x=tensor exclusive=bool reverse=bool",
    ),
    Function(
        "tf.math.cumprod",
        "(x, axis=0, exclusive=False, reverse=False, name=None)",
        (Site("Cumprod", "x axis exclusive reverse"),),
        "x=tensor exclusive=bool reverse=bool",
    ),
    # Comparison and logic
    _raw("tf.equal", "Equal", _BINARY, "x y"),
    _raw("tf.not_equal", "NotEqual", _BINARY, "x y"),
    Function(
        "tf.math.logical_xor",
        "(x, y, name='LogicalXor')",
        (Site("LogicalOr", ""), Site("LogicalAnd", ""), Site("LogicalNot", "")),
        "",
        "logical_xor",
    ),
    Function(
        "tf.where",
        "(condition, x=None, y=None, name=None)",
        (
            Site("SelectV2", "condition t=x e=y"),
            Site("Where", "condition"),
            Site("Select", "condition x y"),
        ),
        "",
        "where",
    ),
    # Linear algebra
    Function(
        "tf.matmul",
        "(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,"
        " a_is_sparse=False, b_is_sparse=False, output_type=None, grad_a=False, grad_b=False,"
        " name=None)",
        (
            Site("MatMul", "a b transpose_a transpose_b grad_a grad_b"),
            Site(
                "BatchMatMulV2",
                "x=a y=b adj_x=transpose_a adj_y=transpose_b grad_x=grad_a grad_y=grad_b",
            ),
        ),
        "a=converted b=converted transpose_a=bool transpose_b=bool adjoint_a=bool adjoint_b=bool"
        " a_is_sparse=bool b_is_sparse=bool output_type=none grad_a=bool grad_b=bool",
        "matmul",
    ),
    # Reductions
    _reduction("tf.reduce_sum", "Sum"),
    _reduction("tf.reduce_mean", "Mean"),
    _reduction("tf.reduce_max", "Max"),
    _reduction("tf.reduce_min", "Min"),
    _reduction("tf.reduce_prod", "Prod"),
    _reduction("tf.reduce_any", "Any"),
    _reduction("tf.reduce_all", "All"),
    *(
        Function(
            f"tf.arg{extreme}",
            "(input, axis=None, output_type=tf.int64, name=None)",
            (Site(f"Arg{extreme.title()}", "input dimension=axis output_type"),),
            "",
            "arg_reduction",
        )
        for extreme in ("max", "min")
    ),
    _raw(
        "tf.math.top_k",
        "TopKV2",
        "(input, k=1, sorted=True, index_type=tf.int32, name=None)",
        "input k sorted index_type",
    ),
    # Shapes
    _raw("tf.reshape", "Reshape", "(tensor, shape, name=None)", "tensor shape"),
    _raw("tf.expand_dims", "ExpandDims", "(input, axis, name=None)", "input axis"),
    Function(
        "tf.squeeze",
        "(input, axis=None, name=None)",
        (Site("Squeeze", "input axis"),),
        "",
        "squeeze",
    ),
    Function(
        "tf.transpose",
        "(a, perm=None, conjugate=False, name='transpose')",
        (Site("Transpose", "x=a perm"),),
        "a=tensor conjugate=bool",
        "transpose",
    ),
    Function(
        "tf.shape",
        "(input, out_type=None, name=None)",
        (Site("Shape", "input out_type"),),
        "",
        "shape",
    ),
    Function("tf.size", "(input, out_type=None, name=None)", (), "input=eager", "size"),
    Function("tf.rank", "(input, name=None)", (), "input=eager", "rank_of"),
    # Slicing and joining
    Function(
        "tf.concat",
        "(values, axis, name='concat')",
        (Site("ConcatV2", "values axis"),),
        "",
        "concat",
    ),
    Function(
        "tf.stack",
        "(values, axis=0, name='stack')",
        (Site("Pack", "values axis"),),
        "axis=int",
        "stack",
    ),
    Function(
        "tf.unstack",
        "(value, num=None, axis=0, name='unstack')",
        (Site("Unpack", "value num axis"),),
        "value=eager axis=int",
        "unstack",
    ),
    Function(
        "tf.split",
        "(value, num_or_size_splits, axis=0, num=None, name='split')",
        (
            Site("Split", "value num_split=num_or_size_splits axis"),
            Site("SplitV", "value size_splits=num_or_size_splits axis num_split=num"),
        ),
        "",
        "split",
    ),
    Function(
        "tf.gather",
        "(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None)",
        (
            Site("GatherV2", "params indices axis batch_dims"),
            Site("GatherV2", "params indices axis"),
        ),
        "params=eager batch_dims=int",
        "gather",
    ),
    Function(
        "tf.gather_nd",
        "(params, indices, batch_dims=0, name=None, bad_indices_policy='')",
        (Site("GatherNd", "params indices bad_indices_policy"),),
        "params=eager batch_dims=int",
        "gather_nd",
    ),
    Function(
        "tf.boolean_mask",
        "(tensor, mask, axis=None, name='boolean_mask')",
        MASKING,
        "tensor=eager mask=eager",
        "boolean_mask",
    ),
    Function(
        "tf.pad",
        "(tensor, paddings, mode='CONSTANT', constant_values=0, name=None)",
        (Site("Pad", "input=tensor paddings"),),
        "",
        "pad",
    ),
    # Branches
    Function(
        "tf.cond",
        "(pred, true_fn=None, false_fn=None, name=None)",
        (),
        lowering="cond",
    ),
    Function(
        "tf.case",
        "(pred_fn_pairs, default=None, exclusive=False, strict=False, name='case')",
        (),
        "exclusive=bool strict=bool",
        "case",
    ),
    Function(
        "tf.switch_case",
        "(branch_index, branch_fns, default=None, name='switch_case')",
        (),
        lowering="switch_case",
    ),
    # Creation of tensors
    Function(
        "tf.constant",
        "(value, dtype=None, shape=None, name='Const')",
        (),
        "shape=none",
        "constant",
    ),
    Function(
        "tf.convert_to_tensor",
        "(value, dtype=None, dtype_hint=None, name=None)",
        (),
        lowering="convert",
    ),
    Function(
        "tf.cast",
        "(x, dtype, name=None)",
        (Site("Cast", "x DstT=dtype"),),
        "",
        "cast",
    ),
    Function(
        "tf.zeros",
        "(shape, dtype=tf.float32, name=None, layout=None)",
        (Site("Fill", ""),),
        "layout=none",
        "zeros",
    ),
    Function(
        "tf.ones",
        "(shape, dtype=tf.float32, name=None, layout=None)",
        (Site("Fill", ""),),
        "layout=none",
        "ones",
    ),
    _raw(
        "tf.fill",
        "Fill",
        "(dims, value, name=None, layout=None)",
        "dims value",
        needs="layout=none",
    ),
    Function(
        "tf.zeros_like",
        "(input, dtype=None, name=None, layout=None)",
        (Site("ZerosLike", "x=input", f"{NUMERIC} bool"),),
        "input=eager layout=none",
        "zeros_like",
    ),
    Function(
        "tf.ones_like",
        "(input, dtype=None, name=None, layout=None)",
        (Site("OnesLike", "x=input", f"{NUMERIC} bool"),),
        "input=eager layout=none",
        "like",
    ),
    Function(
        "tf.range",
        "(start, limit=None, delta=1, dtype=None, name='range')",
        (Site("Range", "start limit delta"),),
        "dtype=none",
        "range",
    ),
    Function(
        "tf.one_hot",
        "(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None)",
        (Site("OneHot", "indices depth on_value off_value axis"),),
        "on_value=none off_value=none",
        "one_hot",
    ),
    _unary("tf.identity", "Identity", "input", f"{NUMERIC} bool string", "eager"),
    Function(
        "tf.stop_gradient",
        "(input, name=None)",
        (Site("StopGradient", "input", f"{NUMERIC} bool string"),),
        "input=eager",
        "stop_gradient",
    ),
    # Neural networks
    _unary("tf.sigmoid", "Sigmoid", needs="converted"),
    _unary("tf.nn.relu6", "Relu6", "features"),
    _unary("tf.math.softplus", "Softplus", "features", needs=""),
    Function(
        "tf.nn.leaky_relu",
        "(features, alpha=0.2, name=None)",
        (Site("LeakyRelu", "features alpha", FLOATS),),
        "features=tensor alpha=float",
    ),
    *(
        Function(
            f"tf.nn.{name}",
            "(logits, axis=None, name=None)",
            (Site(op, "logits"),),
            "logits=eager",
            "last_axis",
        )
        for name, op in (("softmax", "Softmax"), ("log_softmax", "LogSoftmax"))
    ),
    _raw(
        "tf.nn.bias_add",
        "BiasAdd",
        "(value, bias, data_format=None, name=None)",
        "value bias data_format",
        needs="data_format=none",
    ),
    Function(
        "tf.nn.sparse_softmax_cross_entropy_with_logits",
        "(labels, logits, name=None)",
        (Site("SparseSoftmaxCrossEntropyWithLogits", ""),),
        "labels=eager logits=eager name=none",
        "sparse_cross_entropy",
    ),
    # Random numbers
    Function(
        "tf.random.normal",
        "(shape, mean=0.0, stddev=1.0, dtype=tf.float32, seed=None, name=None)",
        (Site("RandomStandardNormal", ""), Site("Mul", ""), Site("AddV2", "")),
        "seed=none",
        "random_normal",
    ),
    Function(
        "tf.random.uniform",
        "(shape, minval=0, maxval=None, dtype=tf.float32, seed=None, name=None)",
        (Site("RandomUniform", ""), Site("RandomUniformInt", "")),
        "seed=none",
        "random_uniform",
    ),
)
"""The functions of modules. They are replaced wherever TensorFlow or Keras refer to them."""
