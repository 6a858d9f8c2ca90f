"""The public functions that `fastops.install` replaces, and the ops they come down to.

Data only: `fastops._install.functions` acts on it. A function whose signature is another one in
the running TensorFlow is left alone.
"""

from dataclasses import dataclass, field

FLOATS = "bfloat16 float16 float32 float64"
COMPLEX = "complex64 complex128"
SIGNED = "int8 int16 int32 int64"
UNSIGNED = "uint8 uint16 uint32 uint64"
INTS = f"{SIGNED} {UNSIGNED}"
REAL = f"{FLOATS} {INTS}"
NUMERIC = f"{REAL} {COMPLEX}"


@dataclass(frozen=True)
class Site:
    """One op, and what it is given.

    Attributes
    ----------
    op : str
        Its name in TensorFlow's registry.
    params : str
        The op's parameters that are the function's: ``"x"``, or ``"x=input_tensor"`` where they
        have two names.
    dtypes : str
        For which dtypes of the function's first tensor the op is right; not given, for all.
    constants : dict
        Parameters of the op that are always the same.
    """

    op: str
    params: str
    dtypes: str = ""
    constants: dict = field(default_factory=dict)

    def sources(self):
        """Return the op's parameters with those of the function that they are."""
        pairs = (item.partition("=") for item in self.params.split())
        return {to: source or to for to, _, source in pairs}


@dataclass(frozen=True)
class Function:
    """One public function.

    Attributes
    ----------
    name : str
        What users call it, such as ``"tf.reduce_sum"``.
    signature : str
        Its parameters, as `inspect.signature` shows them.
    sites : tuple of Site
        What it may come down to.
    needs : str
        What arguments must be for that, as in ``"x=tensor keepdims=bool"``.
    plan : str, optional
        The plan in `fastops._install.functions` that chooses among the sites.
    made : str
        What the plan makes for the op beside the function's parameters.
    """

    name: str
    signature: str
    sites: tuple[Site, ...]
    needs: str = ""
    plan: str | None = None
    made: str = ""


def _unary(name, op, param="x", dtypes="", needs="tensor"):
    needed = f"{param}={needs}" if needs else ""
    return Function(name, f"({param}, name=None)", (Site(op, param, dtypes),), needed)


def _raw(name, op, signature, params, **more):
    """Return a function that hands its arguments on as they are."""
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

_MASKING = (Site("Reshape", ""), Site("Where", ""), Site("Squeeze", ""), Site("GatherV2", ""))

FUNCTIONS = (
    # Arithmetic
    Function("tf.add", _BINARY, (Site("AddV2", "x y", NUMERIC),), "x=tensor"),
    _raw("tf.subtract", "Sub", _BINARY, "x y"),
    _raw("tf.multiply", "Mul", _BINARY, "x y"),
    Function("tf.truediv", _BINARY, (Site("RealDiv", "x y", f"{FLOATS} {COMPLEX}"),), "x=tensor"),
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
    _unary("tf.abs", "Abs", dtypes=f"{FLOATS} {SIGNED}"),
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
        "a=tensor b=tensor transpose_a=bool transpose_b=bool adjoint_a=bool adjoint_b=bool"
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
    # Parts, and putting them together
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
        _MASKING,
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
    # Making tensors
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
        "",
        "convert_hinted",
    ),
    Function(
        "tf.cast",
        "(x, dtype, name=None)",
        (Site("Cast", "x DstT=dtype"),),
        "x=tensor",
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
    _unary("tf.sigmoid", "Sigmoid"),
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
"""Functions of modules, wherever they are referred to."""


def _matmul_operator(name, first):
    params = "a=x b=y transpose_a transpose_b"
    grads = {"grad_a": False, "grad_b": False}
    return Function(
        name,
        "(x, y)",
        (
            Site("MatMul", params, constants=grads),
            Site(
                "BatchMatMulV2",
                "x=x y=y adj_x=transpose_a adj_y=transpose_b",
                constants={"grad_x": False, "grad_y": False},
            ),
        ),
        f"x={first} y=tensor",
        "matmul_operator",
        "transpose_a transpose_b adjoint_a adjoint_b a_is_sparse b_is_sparse",
    )


METHODS = (
    _matmul_operator("tf.Tensor.__matmul__", "eager"),
    _matmul_operator("tf.Variable.__matmul__", "variable"),
    Function(
        "tf.Tensor.__getitem__",
        "(tensor, slice_spec, var=None)",
        (
            Site(
                "StridedSlice",
                "input=tensor begin end strides begin_mask end_mask ellipsis_mask new_axis_mask"
                " shrink_axis_mask",
            ),
            *_MASKING,
        ),
        "tensor=eager var=none",
        "getitem",
        "begin end strides begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
    ),
)
"""Methods of tensors and variables."""


_BACKEND = "keras.src.backend.tensorflow"


def _keras_operator(name, *sites, plan="operands", needs="x1=operand x2=operand"):
    return Function(f"{_BACKEND}.numpy.{name}", "(x1, x2)", sites, needs, plan)


def _keras_elementwise(name, op):
    return Function(f"{_BACKEND}.numpy.{name}", "(x)", (Site(op, "x", FLOATS),), "x=keras")


def _keras_reduction(name, op, dtypes):
    return Function(
        f"{_BACKEND}.numpy.{name}",
        "(x, axis=None, keepdims=False)",
        (Site(op, "input=x axis keep_dims=keepdims", dtypes),),
        "x=keras keepdims=bool",
        "keras_reduction",
    )


_KEPT = f"{FLOATS} int32 int64"
"""Dtypes that Keras's rules keep, beside a Python int as well."""

KERAS = (
    _keras_operator(
        "add",
        Site("AddV2", "x=x1 y=x2", _KEPT),
        Site("BiasAdd", "value=x1 bias=x2", _KEPT, {"data_format": "NHWC"}),
        Site("Squeeze", ""),
        plan="keras_add",
    ),
    *(
        _keras_operator(name, Site(op, "x=x1 y=x2", dtypes))
        for name, op, dtypes in (
            ("subtract", "Sub", _KEPT),
            ("multiply", "Mul", _KEPT),
            ("divide", "RealDiv", FLOATS),
            ("true_divide", "RealDiv", FLOATS),
            ("maximum", "Maximum", _KEPT),
            ("minimum", "Minimum", _KEPT),
            ("power", "Pow", FLOATS),
        )
    ),
    *(
        _keras_operator(name, Site(op, "x=x1 y=x2", _KEPT), needs="x1=keras x2=keras")
        for name, op in (
            ("equal", "Equal"),
            ("not_equal", "NotEqual"),
            ("less", "Less"),
            ("less_equal", "LessEqual"),
            ("greater", "Greater"),
            ("greater_equal", "GreaterEqual"),
        )
    ),
    *(
        _keras_elementwise(name, op)
        for name, op in (
            ("absolute", "Abs"),
            ("ceil", "Ceil"),
            ("cos", "Cos"),
            ("exp", "Exp"),
            ("expm1", "Expm1"),
            ("floor", "Floor"),
            ("log", "Log"),
            ("log1p", "Log1p"),
            ("negative", "Neg"),
            ("sign", "Sign"),
            ("sin", "Sin"),
            ("sqrt", "Sqrt"),
            ("square", "Square"),
            ("tanh", "Tanh"),
        )
    ),
    _keras_operator(
        "matmul",
        Site(
            "MatMul",
            "a=x1 b=x2",
            FLOATS,
            {"transpose_a": False, "transpose_b": False, "grad_a": False, "grad_b": False},
        ),
        plan="keras_matmul",
        needs="x1=keras x2=keras",
    ),
    _keras_reduction("sum", "Sum", f"{FLOATS} int32 int64"),
    _keras_reduction("mean", "Mean", "float32 float64"),
    Function(
        f"{_BACKEND}.core.cast",
        "(x, dtype)",
        (Site("Cast", "x DstT=dtype"),),
        "",
        "keras_cast",
    ),
    Function(
        f"{_BACKEND}.core.convert_to_tensor",
        "(x, dtype=None, sparse=None, ragged=None)",
        (Site("Cast", "x DstT=dtype"),),
        "",
        "keras_convert",
    ),
)
"""Functions of Keras 3 on TensorFlow, where its rules for dtypes change none."""
