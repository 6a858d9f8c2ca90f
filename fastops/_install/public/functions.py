"""Functions of modules, and the ops that they are lowered to.

This is data for `fastops._install.public.lowering`. A function whose signature differs in the
running TensorFlow is not replaced.
"""

from fastops._install.dtypes import COMPLEX, FLOATS, NUMERIC, SIGNED
from fastops._install.public.entry import LoweringSpec, SiteSpec


def _unary(name, op, param="x", dtypes="", needs="tensor"):
    needed = f"{param}={needs}" if needs else ""
    return LoweringSpec(name, f"({param}, name=None)", (SiteSpec(op, param, dtypes),), needed)


def _raw(name, op, signature, params, **more):
    """Return a function that passes its arguments to the op unchanged."""
    return LoweringSpec(name, signature, (SiteSpec(op, params),), **more)


def _reduction(name, op):
    return LoweringSpec(
        name,
        "(input_tensor, axis=None, keepdims=False, name=None)",
        (SiteSpec(op, "input=input_tensor axis keep_dims=keepdims"),),
        "input_tensor=eager keepdims=bool",
        "reduction",
    )


_BINARY = "(x, y, name=None)"

MASKING = (
    SiteSpec("Reshape", ""),
    SiteSpec("Where", ""),
    SiteSpec("Squeeze", ""),
    SiteSpec("GatherV2", ""),
)
"""The ops that select the elements for which a mask is true."""

FUNCTIONS = (
    # Arithmetic
    LoweringSpec("tf.add", _BINARY, (SiteSpec("AddV2", "x y", NUMERIC),), "x=converted"),
    _raw("tf.subtract", "Sub", _BINARY, "x y"),
    _raw("tf.multiply", "Mul", _BINARY, "x y"),
    LoweringSpec(
        "tf.truediv", _BINARY, (SiteSpec("RealDiv", "x y", f"{FLOATS} {COMPLEX}"),), "x=converted"
    ),
    LoweringSpec(
        "tf.divide",
        _BINARY,
        (SiteSpec("RealDiv", "x y", f"{FLOATS} {COMPLEX}"),),
        "x=tensor name=none",
    ),
    LoweringSpec(
        "tf.math.divide_no_nan",
        _BINARY,
        (SiteSpec("DivNoNan", "x y", f"{FLOATS} {COMPLEX}"),),
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
    LoweringSpec(
        "tf.round",
        "(x, name=None)",
        (SiteSpec("Round", "x", FLOATS),),
        "x=eager",
        "round",
    ),
    LoweringSpec(
        "tf.clip_by_value",
        "(t, clip_value_min, clip_value_max, name=None)",
        (SiteSpec("Minimum", ""), SiteSpec("Maximum", "")),
        "t=eager",
        "clip",
    ),
    LoweringSpec("tf.add_n", "(inputs, name=None)", (SiteSpec("AddN", "inputs"),), "", "add_n"),
    LoweringSpec(
        "tf.cumsum",
        "(x, axis=0, exclusive=False, reverse=False, name=None)",
        (SiteSpec("Cumsum", "x axis exclusive reverse"),),
        "x=tensor exclusive=bool reverse=bool",
    ),
    LoweringSpec(
        "tf.math.cumprod",
        "(x, axis=0, exclusive=False, reverse=False, name=None)",
        (SiteSpec("Cumprod", "x axis exclusive reverse"),),
        "x=tensor exclusive=bool reverse=bool",
    ),
    # Comparison and logic
    _raw("tf.equal", "Equal", _BINARY, "x y"),
    _raw("tf.not_equal", "NotEqual", _BINARY, "x y"),
    LoweringSpec(
        "tf.math.logical_xor",
        "(x, y, name='LogicalXor')",
        (SiteSpec("LogicalOr", ""), SiteSpec("LogicalAnd", ""), SiteSpec("LogicalNot", "")),
        "",
        "logical_xor",
    ),
    LoweringSpec(
        "tf.where",
        "(condition, x=None, y=None, name=None)",
        (
            SiteSpec("SelectV2", "condition t=x e=y"),
            SiteSpec("Where", "condition"),
            SiteSpec("Select", "condition x y"),
        ),
        "",
        "where",
    ),
    # Linear algebra
    LoweringSpec(
        "tf.matmul",
        "(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,"
        " a_is_sparse=False, b_is_sparse=False, output_type=None, grad_a=False, grad_b=False,"
        " name=None)",
        (
            SiteSpec("MatMul", "a b transpose_a transpose_b grad_a grad_b"),
            SiteSpec(
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
        LoweringSpec(
            f"tf.arg{extreme}",
            "(input, axis=None, output_type=tf.int64, name=None)",
            (SiteSpec(f"Arg{extreme.title()}", "input dimension=axis output_type"),),
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
    _raw("tf.reshape", "Reshape", "(tensor, shape, name=None)", "tensor shape", lowering="reshape"),
    _raw("tf.expand_dims", "ExpandDims", "(input, axis, name=None)", "input axis"),
    LoweringSpec(
        "tf.squeeze",
        "(input, axis=None, name=None)",
        (SiteSpec("Squeeze", "input axis"),),
        "",
        "squeeze",
    ),
    LoweringSpec(
        "tf.transpose",
        "(a, perm=None, conjugate=False, name='transpose')",
        (SiteSpec("Transpose", "x=a perm"),),
        "a=tensor conjugate=bool",
        "transpose",
    ),
    LoweringSpec(
        "tf.shape",
        "(input, out_type=None, name=None)",
        (SiteSpec("Shape", "input out_type"),),
        "",
        "shape",
    ),
    LoweringSpec("tf.size", "(input, out_type=None, name=None)", (), "input=eager", "size"),
    LoweringSpec("tf.rank", "(input, name=None)", (), "input=eager", "rank_of"),
    # Slicing and joining
    LoweringSpec(
        "tf.concat",
        "(values, axis, name='concat')",
        (SiteSpec("ConcatV2", "values axis"),),
        "",
        "concat",
    ),
    LoweringSpec(
        "tf.stack",
        "(values, axis=0, name='stack')",
        (SiteSpec("Pack", "values axis"),),
        "axis=int",
        "stack",
    ),
    LoweringSpec(
        "tf.unstack",
        "(value, num=None, axis=0, name='unstack')",
        (SiteSpec("Unpack", "value num axis"),),
        "value=eager axis=int",
        "unstack",
    ),
    LoweringSpec(
        "tf.split",
        "(value, num_or_size_splits, axis=0, num=None, name='split')",
        (
            SiteSpec("Split", "value num_split=num_or_size_splits axis"),
            SiteSpec("SplitV", "value size_splits=num_or_size_splits axis num_split=num"),
        ),
        "",
        "split",
    ),
    LoweringSpec(
        "tf.gather",
        "(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None)",
        (
            SiteSpec("GatherV2", "params indices axis batch_dims"),
            SiteSpec("GatherV2", "params indices axis"),
        ),
        "params=eager batch_dims=int",
        "gather",
        arrays="indices",
    ),
    LoweringSpec(
        "tf.gather_nd",
        "(params, indices, batch_dims=0, name=None, bad_indices_policy='')",
        (SiteSpec("GatherNd", "params indices bad_indices_policy"),),
        "params=eager batch_dims=int",
        "gather_nd",
        arrays="indices",
    ),
    LoweringSpec(
        "tf.boolean_mask",
        "(tensor, mask, axis=None, name='boolean_mask')",
        MASKING,
        "tensor=eager mask=eager",
        "boolean_mask",
    ),
    LoweringSpec(
        "tf.pad",
        "(tensor, paddings, mode='CONSTANT', constant_values=0, name=None)",
        (SiteSpec("Pad", "input=tensor paddings"),),
        "",
        "pad",
    ),
    # Branches
    LoweringSpec(
        "tf.cond",
        "(pred, true_fn=None, false_fn=None, name=None)",
        (),
        lowering="cond",
    ),
    LoweringSpec(
        "tf.case",
        "(pred_fn_pairs, default=None, exclusive=False, strict=False, name='case')",
        (),
        "exclusive=bool strict=bool",
        "case",
    ),
    LoweringSpec(
        "tf.switch_case",
        "(branch_index, branch_fns, default=None, name='switch_case')",
        (),
        lowering="switch_case",
    ),
    # Creation of tensors
    LoweringSpec(
        "tf.constant",
        "(value, dtype=None, shape=None, name='Const')",
        (),
        "shape=none",
        "constant",
    ),
    LoweringSpec(
        "tf.convert_to_tensor",
        "(value, dtype=None, dtype_hint=None, name=None)",
        (),
        lowering="convert",
    ),
    LoweringSpec(
        "tf.cast",
        "(x, dtype, name=None)",
        (SiteSpec("Cast", "x DstT=dtype"),),
        "",
        "cast",
    ),
    LoweringSpec(
        "tf.zeros",
        "(shape, dtype=tf.float32, name=None, layout=None)",
        (SiteSpec("Fill", ""),),
        "layout=none",
        "zeros",
    ),
    LoweringSpec(
        "tf.ones",
        "(shape, dtype=tf.float32, name=None, layout=None)",
        (SiteSpec("Fill", ""),),
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
    LoweringSpec(
        "tf.zeros_like",
        "(input, dtype=None, name=None, layout=None)",
        (SiteSpec("ZerosLike", "x=input", f"{NUMERIC} bool"),),
        "input=eager layout=none",
        "zeros_like",
    ),
    LoweringSpec(
        "tf.ones_like",
        "(input, dtype=None, name=None, layout=None)",
        (SiteSpec("OnesLike", "x=input", f"{NUMERIC} bool"),),
        "input=eager layout=none",
        "like",
    ),
    LoweringSpec(
        "tf.range",
        "(start, limit=None, delta=1, dtype=None, name='range')",
        (SiteSpec("Range", "start limit delta"),),
        "dtype=none",
        "range",
    ),
    LoweringSpec(
        "tf.one_hot",
        "(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None)",
        (SiteSpec("OneHot", "indices depth on_value off_value axis"),),
        "on_value=none off_value=none",
        "one_hot",
    ),
    _unary("tf.identity", "Identity", "input", f"{NUMERIC} bool string", "eager"),
    LoweringSpec(
        "tf.stop_gradient",
        "(input, name=None)",
        (SiteSpec("StopGradient", "input", f"{NUMERIC} bool string"),),
        "input=eager",
        "stop_gradient",
    ),
    # Neural networks
    _unary("tf.sigmoid", "Sigmoid", needs="converted"),
    _unary("tf.nn.relu6", "Relu6", "features"),
    _unary("tf.math.softplus", "Softplus", "features", needs=""),
    LoweringSpec(
        "tf.nn.leaky_relu",
        "(features, alpha=0.2, name=None)",
        (SiteSpec("LeakyRelu", "features alpha", FLOATS),),
        "features=tensor alpha=float",
    ),
    *(
        LoweringSpec(
            f"tf.nn.{name}",
            "(logits, axis=None, name=None)",
            (SiteSpec(op, "logits"),),
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
    LoweringSpec(
        "tf.nn.sparse_softmax_cross_entropy_with_logits",
        "(labels, logits, name=None)",
        (SiteSpec("SparseSoftmaxCrossEntropyWithLogits", ""),),
        "labels=eager logits=eager name=none",
        "sparse_cross_entropy",
    ),
    # Random numbers
    LoweringSpec(
        "tf.random.normal",
        "(shape, mean=0.0, stddev=1.0, dtype=tf.float32, seed=None, name=None)",
        (SiteSpec("RandomStandardNormal", ""), SiteSpec("Mul", ""), SiteSpec("AddV2", "")),
        "seed=none",
        "random_normal",
    ),
    LoweringSpec(
        "tf.random.uniform",
        "(shape, minval=0, maxval=None, dtype=tf.float32, seed=None, name=None)",
        (SiteSpec("RandomUniform", ""), SiteSpec("RandomUniformInt", "")),
        "seed=none",
        "random_uniform",
    ),
)
"""The functions of modules. They are replaced wherever TensorFlow or Keras refer to them."""
