"""Many ops, dtypes and shapes against `tf.raw_ops`, bit for bit; wrong calls, message for message."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from support import DIRECT, Failure, assert_same, floats, outcome, path_since

import fastops
from fastops import raw_ops

FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTS[:4], *COMPLEX)
BOOL = ("bool",)
STRING = ("string",)
ALL = (*NUMBERS, *BOOL, *STRING)
SHAPES = ((), (0,), (3,), (2, 0, 3), (5, 7))
PAIRS = (
    ((), ()),
    ((0,), ()),
    ((3,), (3,)),
    ((2, 1), (3,)),
    ((1, 3, 1), (2, 1, 5)),
    ((7, 5), ()),
    ((0, 3), (1, 3)),
)


def tensor(shape, dtype, seed=0):
    if dtype == "string":
        return tf.constant(floats(*shape, dtype=object, seed=seed), tf.string, shape)
    return tf.constant(floats(*shape, dtype=tf.as_dtype(dtype).as_numpy_dtype, seed=seed))


def positive(shape, dtype, seed=0):
    return tf.cast(tf.abs(tensor(shape, dtype, seed)), dtype) + tf.ones([], dtype)


def unit(shape, dtype, seed=0):
    return tf.cast(tf.tanh(tensor(shape, "float64", seed)) / 1.1, dtype)


def ints(*values):
    return tf.constant(values if len(values) != 1 else values[0], tf.int32)


@dataclass(frozen=True)
class Case:
    """Calls of one op: a function from dtype to the arguments of each call.

    Attributes
    ----------
    dtypes : tuple of str
        The dtypes it is called with.
    calls : callable
        Returns the arguments of the calls, a list of dicts, for a dtype.
    """

    op_name: str
    dtypes: tuple
    calls: object = field(repr=False)


CASES = []


def add(op_names, dtypes, *calls):
    """Add ops that are all called in these ways; a call is a function of the dtype."""
    CASES.extend(
        Case(op_name, dtypes, lambda dtype: [call(dtype) for call in calls])
        for op_name in op_names.split()
    )


def unary(op_names, dtypes, argument="x", make=tensor):
    add(op_names, dtypes, *(
        lambda dtype, shape=shape: {argument: make(shape, dtype)} for shape in SHAPES
    ))  # fmt: skip


def binary(op_names, dtypes, names=("x", "y"), make=tensor):
    add(op_names, dtypes, *(
        lambda dtype, one=one, other=other: {
            names[0]: make(one, dtype),
            names[1]: make(other, dtype, seed=1),
        }
        for one, other in PAIRS
    ))  # fmt: skip


def matrix(*shape):
    return lambda dtype, seed=0: tensor(shape, dtype, seed)


unary("Neg Square Sign", NUMBERS)
unary("Abs", (*FLOATS, *INTS[:4]))
unary("Sin Cos Tanh Sigmoid Exp Expm1", (*FLOATS, *COMPLEX))
unary("Tan Sinh Cosh Atan Asinh", ("float32", "float64", *COMPLEX))
unary("Log Log1p Sqrt Rsqrt Reciprocal", (*FLOATS, *COMPLEX), make=positive)
unary("Asin Acos Atanh", ("float32", "float64"), make=unit)
unary("Acosh", ("float32", "float64"), make=positive)
unary("Erf Erfc Lgamma Digamma BesselI0e BesselI1e Ndtri Erfinv", ("float32", "float64"))
unary("Ceil Floor Rint IsNan IsInf IsFinite", FLOATS)
unary("Round", (*FLOATS, "int32", "int64"))
unary("Invert PopulationCount", INTS)
unary("LogicalNot", BOOL)
unary("Conj Real Imag ComplexAbs Angle", COMPLEX[:1], argument="input")
CASES = [case for case in CASES if case.op_name != "ComplexAbs"]
unary("Conj", NUMBERS, argument="input")
unary("Relu Relu6", (*FLOATS, "int32"), argument="features")
unary("Elu Selu Softplus Softsign LeakyRelu", FLOATS, argument="features")
unary("Identity StopGradient Shape Rank Size Snapshot", ALL, argument="input")
unary("ZerosLike OnesLike", (*NUMBERS, "bool"), argument="x")
unary("L2Loss", FLOATS, argument="t")

binary("AddV2", (*NUMBERS, *STRING))
binary("Sub Mul SquaredDifference", NUMBERS)
binary("Maximum Minimum", (*FLOATS, *INTS[:4]))
binary("RealDiv DivNoNan MulNoNan Xdivy", (*FLOATS, *COMPLEX))
binary("Xlogy Atan2 Zeta", ("float32", "float64"), make=positive)
binary("FloorDiv FloorMod TruncateMod", (*FLOATS, "int32", "int64"), make=positive)
binary("Pow", (*FLOATS, *COMPLEX), make=positive)
binary("Igamma Igammac NextAfter", ("float32", "float64"), make=positive)
CASES = [case for case in CASES if case.op_name not in ("Igamma", "Igammac", "NextAfter", "Zeta")]
binary("Igamma Igammac", ("float32", "float64"), ("a", "x"), make=positive)
binary("Zeta", ("float32", "float64"), ("x", "q"), make=positive)
binary("NextAfter", ("float32", "float64"), ("x1", "x2"))
binary("Less LessEqual Greater GreaterEqual", (*FLOATS, *INTS))
binary("Equal NotEqual", ALL)
binary("LogicalAnd LogicalOr", BOOL)
binary("BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift", INTS)
