"""Elementwise ops."""

from parity.recipes import LARGE, PAIRS, SIZES, aligned, binary, mismatched, recipe, unary

# ---------------------------------------------------------------------------------------------
# One input
# ---------------------------------------------------------------------------------------------

unary("Abs Neg Sign Square Ceil Floor Rint Round Inv Reciprocal Sqrt Rsqrt", "x")
unary("Exp Expm1 Log Log1p Sigmoid", "x")
unary("Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh", "x")
unary("Erf Erfc Erfinv Ndtri Lgamma Digamma", "x")
unary("BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselY0 BesselY1", "x")
unary("BesselK0 BesselK0e BesselK1 BesselK1e", "x")
unary("Dawsn Expint FresnelCos FresnelSin Spence", "x")
unary("IsFinite IsInf IsNan", "x")
unary("Invert PopulationCount", "x")
unary("Angle Conj Imag Real", "input")
unary("ComplexAbs", "x")
mismatched(
    "ComplexAbs",
    "Tout is the real dtype of T",
    lambda types: types["Tout"] != types["T"].real_dtype,
)


@recipe("LogicalNot")
def logical_not(d):
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {"x": d.of("bool")(*shape)}


# ---------------------------------------------------------------------------------------------
# Two inputs that broadcast
# ---------------------------------------------------------------------------------------------

binary("Add AddV2 Sub Mul MulNoNan SquaredDifference Maximum Minimum", "x y")
binary("RealDiv DivNoNan Xdivy Xlogy Xlog1py", "x y")
binary("Pow", "x y", make="__call__ positive")
binary("Less LessEqual Greater GreaterEqual", "x y")
binary("BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift", "x y")
binary("Atan2", "y x")
binary("NextAfter", "x1 x2")
binary("Complex", "real imag")
binary("Igamma IgammaGradA Igammac", "a x", make="positive")
binary("Polygamma", "a x", make="positive")
binary("Zeta", "x q", make="positive")


@recipe("Div FloorDiv FloorMod Mod TruncateDiv TruncateMod")
def division(d):
    for one, other in (*PAIRS, *([(LARGE, (10,))] if d.thorough else ())):
        yield {"x": d.T(*one), "y": d.T.nonzero(*other)}
    if d.special:
        yield {"x": d.T(3), "y": d.T.const(0)}


@recipe("Equal NotEqual")
def equality(d):
    for one, other in (*PAIRS, *([(LARGE, LARGE)] if d.thorough else ())):
        yield {"x": d.T(*one), "y": d.T(*other)}
    same = d.T(2, 3)
    yield {"x": same, "y": same, "incompatible_shape_error": False}
    yield {"x": same, "y": d.T(4), "incompatible_shape_error": False}


@recipe("LogicalAnd LogicalOr")
def logical(d):
    for one, other in (*PAIRS, *([(LARGE, LARGE)] if d.thorough else ())):
        yield {"x": d.of("bool")(*one), "y": d.of("bool")(*other)}


# ---------------------------------------------------------------------------------------------
# Inputs of one shape
# ---------------------------------------------------------------------------------------------

aligned("InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad", "y dy")


@recipe("ApproximateEqual")
def approximate_equality(d):
    for shape in SIZES:
        x = d.T(*shape)
        yield {"x": x, "y": x}
        yield {"x": x, "y": d.T(*shape), "tolerance": 0.5}


@recipe("Betainc")
def incomplete_beta(d):
    for a, b, x in (
        ((), (), ()),
        ((0,), (0,), (0,)),
        ((5, 7), (5, 7), (5, 7)),
        ((), (), (2, 3)),
        ((4,), (), ()),
        ((), (2, 1, 3), (2, 1, 3)),
        ((1, 64, 1), (), (1, 64, 1)),
    ):
        yield {"a": d.T.positive(*a), "b": d.T.positive(*b), "x": d.T(*x)}


@recipe("ClipByValue")
def clip(d):
    low, high = d.T.const(2), d.T.const(5)
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {"t": d.T(*shape), "clip_value_min": low, "clip_value_max": high}
    lows = d.T.below(2, 5, 7)
    yield {"t": d.T(5, 7), "clip_value_min": lows, "clip_value_max": high}
    yield {"t": d.T(5, 7), "clip_value_min": d.T.const(0), "clip_value_max": lows}
    yield {"t": d.T(5, 7), "clip_value_min": lows, "clip_value_max": d.T.const(lows.numpy() + 2)}


# ---------------------------------------------------------------------------------------------
# A choice between two
# ---------------------------------------------------------------------------------------------


@recipe("Select")
def select_row(d):
    condition = d.of("bool")
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {"condition": condition(), "x": d.T(*shape), "y": d.T(*shape)}
        yield {"condition": condition(*shape), "x": d.T(*shape), "y": d.T(*shape)}
        if shape:
            yield {"condition": condition(shape[0]), "x": d.T(*shape), "y": d.T(*shape)}


@recipe("SelectV2")
def select(d):
    for condition, t, e in (
        ((), (), ()),
        ((0,), (0,), ()),
        ((3,), (2, 3), ()),
        ((2, 1), (3,), (2, 3)),
        ((), (5, 7), (7,)),
        ((5, 7), (5, 7), (5, 7)),
        ((1, 1024, 1), (), (1, 1, 3)),
        ((2, 1, 3, 1, 2, 1), (4, 1, 1), (2, 1, 1, 1, 1, 5)),
        *([(LARGE, LARGE, LARGE), ((1000, 1), LARGE, ())] if d.thorough else ()),
    ):
        yield {"condition": d.of("bool")(*condition), "t": d.T(*t), "e": d.T(*e)}
