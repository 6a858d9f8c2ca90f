"""Functions of Keras 3 that have a stand-in. Data only.

`FUNCTIONS` are functions of the TensorFlow backend with the ops that they are lowered to, in the
format of `fastops._install.public`. `HELPERS` have an answer.
"""

from tensorflow.python.ops import math_ops

from fastops._install.dtypes import FLOATS
from fastops._install.public.entry import LoweringSpec, SiteSpec

_BACKEND = "keras.src.backend.tensorflow"


def _operator(name, *sites, lowering="operands", needs="x1=operand x2=operand"):
    return LoweringSpec(f"{_BACKEND}.numpy.{name}", "(x1, x2)", sites, needs, lowering)


def _elementwise(name, op, dtypes=FLOATS):
    return LoweringSpec(f"{_BACKEND}.numpy.{name}", "(x)", (SiteSpec(op, "x", dtypes),), "x=keras")


def _reduction(name, op, dtypes):
    return LoweringSpec(
        f"{_BACKEND}.numpy.{name}",
        "(x, axis=None, keepdims=False)",
        (SiteSpec(op, "input=x axis keep_dims=keepdims", dtypes),),
        "x=keras keepdims=bool",
        "keras_reduction",
    )


_TANH_IS_AN_OP = math_ops.tanh.__module__.endswith(".gen_math_ops")
"""Since TensorFlow 2.22 it is a Python function, which gives doubles a gradient of its own."""

KEPT = f"{FLOATS} int32 int64"
"""Dtypes that Keras's promotion rules keep, also if the other operand is a Python int."""

FUNCTIONS = (
    _operator(
        "add",
        SiteSpec("AddV2", "x=x1 y=x2", KEPT),
        SiteSpec("BiasAdd", "value=x1 bias=x2", KEPT, {"data_format": "NHWC"}),
        SiteSpec("Squeeze", ""),
        lowering="keras_add",
    ),
    *(
        _operator(name, SiteSpec(op, "x=x1 y=x2", dtypes))
        for name, op, dtypes in (
            ("subtract", "Sub", KEPT),
            ("multiply", "Mul", KEPT),
            ("divide", "RealDiv", FLOATS),
            ("true_divide", "RealDiv", FLOATS),
            ("maximum", "Maximum", KEPT),
            ("minimum", "Minimum", KEPT),
            ("power", "Pow", FLOATS),
        )
    ),
    *(
        _operator(name, SiteSpec(op, "x=x1 y=x2", KEPT), needs="x1=keras x2=keras")
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
        _elementwise(name, op)
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
        )
    ),
    _elementwise("tanh", "Tanh", FLOATS if _TANH_IS_AN_OP else "bfloat16 float16 float32"),
    _operator(
        "matmul",
        SiteSpec(
            "MatMul",
            "a=x1 b=x2",
            FLOATS,
            {"transpose_a": False, "transpose_b": False, "grad_a": False, "grad_b": False},
        ),
        lowering="keras_matmul",
        needs="x1=keras x2=keras",
    ),
    _reduction("sum", "Sum", f"{FLOATS} int32 int64"),
    _reduction("mean", "Mean", "float32 float64"),
    LoweringSpec(
        f"{_BACKEND}.core.cast",
        "(x, dtype)",
        (SiteSpec("Cast", "x DstT=dtype"),),
        "",
        "keras_cast",
    ),
    *(
        LoweringSpec(
            f"{_BACKEND}.core.convert_to_tensor",
            signature,
            (SiteSpec("Cast", "x DstT=dtype"),),
            "",
            "keras_convert",
        )
        for signature in (
            "(x, dtype=None, sparse=None, ragged=None)",
            "(x, dtype=None, sparse=None)",  # the signature in Keras 3.8
        )
    ),
)
"""The functions. They are lowered only if Keras's dtype promotion changes no dtype."""

HELPERS = {
    "backend.common.dtypes.result_type": "remembers the answer for the same dtypes",
    "backend.common.keras_tensor.any_symbolic_tensors": "looks at classes",
    "backend.common.variables.standardize_dtype": "remembers the answer for the same dtype",
    "backend.tensorflow.core.is_tensor": "looks at classes",
    "tree.tree_api.flatten": "takes single values, and lists or tuples with no others in them",
    "tree.tree_api.is_nested": "looks at classes",
    "tree.tree_api.map_structure": "takes single values, lists or tuples with no others in them",
}
"""By name of a function in ``keras.src``, a description of its replacement."""
