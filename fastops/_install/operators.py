"""The operators of eager tensors and variables, and the ops that they run. Data only."""

from dataclasses import dataclass, field

from fastops._install.dtypes import COMPLEX, FLOATS, INTS, REAL, SIGNED


@dataclass(frozen=True)
class Operator:
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
    Operator("__add__ __radd__", {f"{REAL} {COMPLEX}": "AddV2"}),
    Operator("__sub__ __rsub__", {f"{REAL} {COMPLEX}": "Sub"}),
    Operator("__mul__ __rmul__", {f"{REAL} {COMPLEX}": "Mul"}),
    Operator("__truediv__ __rtruediv__", {f"{FLOATS} {COMPLEX}": "RealDiv"}),
    Operator("__floordiv__ __rfloordiv__", {REAL: "FloorDiv"}),
    Operator("__mod__ __rmod__", {f"{FLOATS} int32 int64": "FloorMod"}),
    Operator("__pow__ __rpow__", {f"{FLOATS} {COMPLEX} int32 int64": "Pow"}),
    Operator("__and__ __rand__", {"bool": "LogicalAnd", INTS: "BitwiseAnd"}),
    Operator("__or__ __ror__", {"bool": "LogicalOr", INTS: "BitwiseOr"}),
    Operator("__xor__ __rxor__", {INTS: "BitwiseXor"}),
    Operator("__lt__", {REAL: "Less"}),
    Operator("__le__", {REAL: "LessEqual"}),
    Operator("__gt__", {REAL: "Greater"}),
    Operator("__ge__", {REAL: "GreaterEqual"}),
    Operator("__eq__", {f"{REAL} {COMPLEX} bool string": "Equal"}, options=_BY_VALUE),
    Operator("__ne__", {f"{REAL} {COMPLEX} bool string": "NotEqual"}, options=_BY_VALUE),
    Operator("__neg__", {f"{FLOATS} {SIGNED} {COMPLEX}": "Neg"}, options={"arity": 1}),
    Operator("__abs__", {f"{FLOATS} {SIGNED}": "Abs"}, options={"arity": 1}),
    Operator("__invert__", {"bool": "LogicalNot", INTS: "Invert"}, options={"arity": 1}),
)
"""The operators, with the ops that they run for eager tensors. Other calls fall back."""
