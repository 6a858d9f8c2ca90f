"""The operators of eager tensors and variables, and the ops that they run. Data only."""

from dataclasses import dataclass, field

from fastops._install.dtypes import COMPLEX, FLOATS, INTS, REAL, SIGNED


@dataclass(frozen=True)
class OperatorSpec:
    """An operator of `tf.Tensor` that runs one op.

    Attributes
    ----------
    names : str
        The methods, separated by blanks: the plain one, and the reflected one if there is one.
    ops : dict of str to str
        The op to run, by the dtypes of the tensor (names that are separated by blanks).
    options : dict
        Further arguments of `fastops._install.intercept.Operator`.
    """

    names: str
    ops: dict[str, str]
    options: dict = field(default_factory=dict)


WITH_FLOAT = FLOATS
WITH_INT = f"{FLOATS} int32 int64"
WITH_BOOL = "bool"
"""The dtypes of tensors that may have a Python float, int or bool as the other operand."""

_BY_VALUE = {"attrs": {"incompatible_shape_error": False}, "compares": True}

OPERATORS = (
    OperatorSpec("__add__ __radd__", {f"{REAL} {COMPLEX}": "AddV2"}),
    OperatorSpec("__sub__ __rsub__", {f"{REAL} {COMPLEX}": "Sub"}),
    OperatorSpec("__mul__ __rmul__", {f"{REAL} {COMPLEX}": "Mul"}),
    OperatorSpec("__truediv__ __rtruediv__", {f"{FLOATS} {COMPLEX}": "RealDiv"}),
    OperatorSpec("__floordiv__ __rfloordiv__", {REAL: "FloorDiv"}),
    OperatorSpec("__mod__ __rmod__", {f"{FLOATS} int32 int64": "FloorMod"}),
    OperatorSpec("__pow__ __rpow__", {f"{FLOATS} {COMPLEX} int32 int64": "Pow"}),
    OperatorSpec("__and__ __rand__", {"bool": "LogicalAnd", INTS: "BitwiseAnd"}),
    OperatorSpec("__or__ __ror__", {"bool": "LogicalOr", INTS: "BitwiseOr"}),
    OperatorSpec("__xor__ __rxor__", {INTS: "BitwiseXor"}),
    OperatorSpec("__lt__", {REAL: "Less"}),
    OperatorSpec("__le__", {REAL: "LessEqual"}),
    OperatorSpec("__gt__", {REAL: "Greater"}),
    OperatorSpec("__ge__", {REAL: "GreaterEqual"}),
    OperatorSpec("__eq__", {f"{REAL} {COMPLEX} bool string": "Equal"}, options=_BY_VALUE),
    OperatorSpec("__ne__", {f"{REAL} {COMPLEX} bool string": "NotEqual"}, options=_BY_VALUE),
    OperatorSpec("__neg__", {f"{FLOATS} {SIGNED} {COMPLEX}": "Neg"}, options={"arity": 1}),
    OperatorSpec("__abs__", {f"{FLOATS} {SIGNED}": "Abs"}, options={"arity": 1}),
    OperatorSpec("__invert__", {"bool": "LogicalNot", INTS: "Invert"}, options={"arity": 1}),
)
"""The operators, with the ops that they run for eager tensors. Other calls fall back."""
