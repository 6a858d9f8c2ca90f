"""Arrays: shapes, parts, order and indices; diagonals, sets of values, quantization."""

import math
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import tensorflow as tf

from parity.draw import floats, ints, longs, strings
from parity.recipes import PAIRS, SIZES, recipe, rejected, unary

BOTH = (False, True)
DEEP = SIZES[-1]
"""A shape of the highest rank."""

LARGE = (70, 100, 11)
"""A number of elements for which kernels that only copy use several threads."""


def large(d, *rows):
    """Return rows of a table of calls that are only made in thorough runs."""
    return rows if d.thorough else ()


def sizes(d):
    return (*SIZES, *large(d, LARGE))


# --------------------------------------------------------------------------------------------- Ops
# that return their input
# ---------------------------------------------------------------------------------------------

unary("Identity Snapshot StopGradient GuaranteeConst", "input")
unary("DeepCopy", "x")
rejected(
    "DeepCopy",
    "the kernel copies plain numbers, booleans and strings",
    T="float8_e5m2 float8_e4m3fn int4 uint4 qint8 quint8 qint16 quint16 qint32",
)
unary("CheckNumerics CheckNumericsV2", "tensor", message="of what is checked")
unary("ZerosLike OnesLike", "x")
unary("Rank Shape Size", "input")


@recipe("NoOp")
def nothing(d):
    yield {}


@recipe("PreventGradient")
def identity_without_gradient(d):
    for shape, message in product(sizes(d), ("", "none, ü")):
        yield {"input": d.T(*shape), "message": message}


@recipe("IdentityN")
def identities(d):
    names = ("float32", "int32", "string", "bool", "complex64", "float64", "qint8", "bfloat16")
    for count in (1, 2, len(names)):
        yield {"input": [d.of(name)(2, 3) for name in names[:count]]}
    yield {"input": [d.of("float32")(*shape) for shape in sizes(d)]}


@recipe("EnsureShape")
def ensure_shape(d):
    for shape in ([2, 3], [None, 3], [2, -1], None, tf.TensorShape([2, None]), (2, 3)):
        yield {"input": d.T(2, 3), "shape": shape}
    for shape in sizes(d):
        yield {"input": d.T(*shape), "shape": shape}
        yield {"input": d.T(*shape), "shape": [None] * len(shape)}


@recipe("ShapeN")
def shapes_of_all(d):
    for count in (1, 2, 9):
        yield {"input": [d.T(count, 3) for _ in range(count)]}
    yield {"input": [d.T(*shape) for shape in sizes(d)]}


@recipe("Fingerprint")
def fingerprint(d):
    for shape in ((0,), (1,), (5,), (3, 4), (2, 1, 3), (1, 1024, 1), DEEP):
        yield {"data": d.T(*shape), "method": strings("farmhash64")}
    # The fingerprint of an empty list of strings is never written.
    if d.T.dtype != tf.string:
        yield {"data": d.T(3, 0), "method": strings("farmhash64")}


@recipe("Bitcast")
def bitcast(d):
    ratio = d.type.dtype.size // d.T.dtype.size
    for shape in (*(shape for shape in sizes(d) if len(shape) < 8), (2, 1, 1, 3, 1, 1, 2)):
        yield {"input": d.T(*shape, *((ratio,) if ratio > 1 else ()))}


# ---------------------------------------------------------------------------------------------
# Shapes
# ---------------------------------------------------------------------------------------------


@recipe("Reshape")
def reshape(d):
    for old, new in (
        ((), []),
        ((), [1, 1]),
        ((1,), []),
        ((2, 6), [3, -1]),
        ((2, 6), [12]),
        ((2, 6), [2, 6]),
        ((0, 6), [6, 0, 2]),
        ((0, 6), [-1, 3]),
        ((1, 1024, 1), [32, 32]),
        (DEEP, [2, 3, 2, 2, 1]),
        ((3,), [1] * 20 + [-1]),
    ):
        yield {"tensor": d.T(*old), "shape": d.Tshape.const(new)}


@recipe("ExpandDims")
def expand(d):
    for shape, axis in (((), 0), ((), -1), ((3,), [1]), ((2, 0, 3), 2), ((5, 7), -2), (DEEP, -9)):
        yield {"input": d.T(*shape), "axis": d.Tdim.const(axis)}


@recipe("Squeeze")
def squeeze(d):
    for shape, axis in (
        ((), []),
        ((3,), []),
        ((1, 3, 1), []),
        ((1, 3, 1), [0]),
        ((1, 3, 1), [-1, 0]),
        ((0, 1), (1,)),
        (DEEP, [1, 3, -1]),
    ):
        yield {"input": d.T(*shape), "axis": axis}
    yield {"input": d.T(1, 5)}


@recipe("BroadcastTo")
def broadcast(d):
    for old, new in (
        ((), []),
        ((), [2, 3]),
        ((3,), [3]),
        ((3,), [2, 3]),
        ((2, 1), [3, 2, 4]),
        ((1, 0), [5, 0]),
        ((1,), [0]),
        ((1, 1024, 1), [2, 1024, 3]),
        ((3, 1, 1, 1, 2, 2, 2, 2), [3, 5, 4, 2, 2, 2, 2, 2]),
        ((1,) * 8, [2] * 8),
        *large(d, ((70, 1, 11), LARGE), ((11,), LARGE)),
    ):
        yield {"input": d.T(*old), "shape": d.Tidx.const(new)}


@recipe("BroadcastArgs BroadcastGradientArgs")
def broadcast_shapes(d):
    for one, other in PAIRS:
        yield {"s0": d.T.const(one), "s1": d.T.const(other)}
        yield {"s0": d.T.const(other), "s1": d.T.const(one)}


@recipe("ConcatOffset")
def offsets(d):
    for axis, shapes in (
        (0, [[3], [4]]),
        (1, [[2, 3], [2, 0], [2, 5]]),
        (-1, [[2, 1, 3], [2, 1, 4]]),
        (2, [[1] * 8] * 9),
    ):
        yield {"concat_dim": ints(axis), "shape": [d.shape_type.const(shape) for shape in shapes]}


@recipe("InvertPermutation")
def invert_permutation(d):
    for order in ([], [0], [2, 0, 1], np.roll(np.arange(1024), 5)):
        yield {"x": d.T.const(order)}


@recipe("UnravelIndex")
def unravel(d):
    for shape, dims in (((), [7]), ((3,), [2, 3]), ((1,), [4]), ((17,), [1, 5, 1, 2, 1, 3])):
        yield {"indices": d.Tidx.below(np.prod(dims), *shape), "dims": d.Tidx.const(dims)}


@recipe("Fill")
def fill(d):
    for dims in sizes(d):
        yield {"dims": d.index_type.const(dims), "value": d.T()}


@recipe("OneHot")
def one_hot(d):
    for shape, depth, axis in (
        ((), 3, -1),
        ((4,), 3, -1),
        ((4,), 3, 0),
        ((2, 3), 5, 1),
        ((2, 3), 1, -1),
        ((0, 3), 4, 0),
        ((2, 3), 0, 2),
        ((1, 1024, 1), 3, 1),
        ((2, 1, 3, 1, 2, 1, 2), 2, 3),
        *large(d, (LARGE, 3, 1), (LARGE, 3, -1)),
    ):
        yield {
            "indices": d.TI(*shape),
            "depth": ints(depth),
            "on_value": d.T(),
            "off_value": d.T(),
            "axis": axis,
        }


# ---------------------------------------------------------------------------------------------
# Together and apart
# ---------------------------------------------------------------------------------------------

CONCATENATIONS = (
    ([(2,), (0,), (3,)], 0),
    ([(2, 3), (2, 1)], 1),
    ([(0, 3), (2, 3)], -2),
    ([(2, 0, 3)] * 2, 2),
    ([(1, k % 3, 2) for k in range(9)], 1),
    ([(1, 1024, 1)] * 3, -1),
    ([DEEP, DEEP], 4),
)
LARGE_CONCATENATIONS = (([LARGE, LARGE], 0), ([LARGE, LARGE], 1), ([LARGE] * 3, 2))


@recipe("Concat")
def concat(d):
    for shapes, axis in (*CONCATENATIONS, *large(d, *LARGE_CONCATENATIONS)):
        yield {"concat_dim": ints(axis), "values": [d.T(*shape) for shape in shapes]}


@recipe("ConcatV2")
def concat_of_axis(d):
    for shapes, axis in (*CONCATENATIONS, *large(d, *LARGE_CONCATENATIONS)):
        yield {"values": [d.T(*shape) for shape in shapes], "axis": d.Tidx.const(axis)}


@recipe("Pack")
def pack(d):
    for shape, count, axis in (
        ((), 1, 0),
        ((), 3, -1),
        ((2, 3), 2, 0),
        ((2, 3), 2, 1),
        ((2, 3), 9, -1),
        ((2, 0), 2, 1),
        ((1, 1024, 1), 3, -2),
        (DEEP, 2, 8),
        *large(d, (LARGE, 2, 0), (LARGE, 2, 3)),
    ):
        yield {"values": [d.T(*shape) for _ in range(count)], "axis": axis}


@recipe("Unpack")
def unpack(d):
    for shape, axis in (
        ((1,), 0),
        ((3,), -1),
        ((0, 3), 0),
        ((3, 0), 0),
        ((3, 2), 0),
        ((3, 2), 1),
        ((1, 1024, 1), -1),
        (DEEP, 2),
        *large(d, (LARGE, 0), (LARGE, 2)),
    ):
        yield {"value": d.T(*shape), "num": shape[axis], "axis": axis}


@recipe("Split")
def split(d):
    for shape, count, axis in (
        ((1,), 1, 0),
        ((6,), 3, 0),
        ((2, 6), 3, 1),
        ((6, 2), 2, -2),
        ((0, 3), 2, 0),
        ((4, 0), 2, 0),
        ((1, 1024, 1), 4, 1),
        (DEEP, 3, 2),
        *large(d, (LARGE, 5, 0), (LARGE, 11, 2)),
    ):
        yield {"axis": ints(axis), "value": d.T(*shape), "num_split": count}


@recipe("SplitV")
def split_in_sizes(d):
    for shape, parts, axis in (
        ((6,), [6], 0),
        ((6,), [1, 0, -1], 0),
        ((2, 6), [1, 2, 3], -1),
        ((6, 2), [2, 2, 2], 0),
        ((3, 0), [1, 2], 0),
        ((1, 100, 1), [60, -1], 1),
        (DEEP, [1, 2], 2),
        *large(d, (LARGE, [33, -1], 0), (LARGE, [1, 3, 7], 2)),
    ):
        yield {
            "value": d.T(*shape),
            "size_splits": d.Tlen.const(parts),
            "axis": ints(axis),
            "num_split": len(parts),
        }


# ---------------------------------------------------------------------------------------------
# Order
# ---------------------------------------------------------------------------------------------

TRANSPOSES_ANYHOW = tf.version.VERSION.startswith("2.19.")
"""Whether kernels do not check the numbers of a permutation: with negative ones, they write out of
bounds."""

TRANSPOSITIONS = (
    ((3, 5), [1, 0]),
    *([] if TRANSPOSES_ANYHOW else [((3, 5), [-1, -2])]),
    ((3, 5), [0, 1]),
    ((2, 0), [1, 0]),
    ((2, 3, 4), [2, 0, 1]),
    ((2, 3, 4), [0, 2, 1]),
    ((1, 1024, 1), [1, 2, 0]),
    ((2, 3, 4, 5), [0, 3, 1, 2]),
    ((2, 3, 1, 2, 4), [4, 2, 3, 0, 1]),
    ((2, 1, 3, 1, 2, 1, 2, 3), [7, 0, 6, 1, 5, 2, 4, 3]),
)
LARGE_TRANSPOSITIONS = ((LARGE, [2, 1, 0]), (LARGE, [0, 2, 1]), (LARGE, [1, 0, 2]))


@recipe("Transpose")
def transpose(d):
    yield {"x": d.T(), "perm": d.Tperm.const([])}
    yield {"x": d.T(3), "perm": d.Tperm.const([0])}
    yield from conjugate_transpose(d)


@recipe("ConjugateTranspose")
def conjugate_transpose(d):
    for shape, order in (*TRANSPOSITIONS, *large(d, *LARGE_TRANSPOSITIONS)):
        yield {"x": d.T(*shape), "perm": d.Tperm.const(order)}
    # TensorFlow ends the process for strings of rank above 8 (or above 1 when it conjugates).
    if d.T.dtype != tf.string:
        yield {"x": d.T(2, 1, 2, 1, 3, 1, 2, 1, 2), "perm": d.Tperm.const(range(8, -1, -1))}


@recipe("ReverseV2")
def reverse(d):
    for shape, axes in (
        ((), []),
        ((7,), [0]),
        ((2, 3), []),
        ((2, 3), [-1]),
        ((2, 3), [1, 0]),
        ((2, 0, 3), [0]),
        ((5, 4, 3), [1]),
        ((1, 1024, 1), [1]),
        (DEEP, [0, 2, -2]),
        *large(d, (LARGE, [0]), (LARGE, [1, 2])),
    ):
        yield {"tensor": d.T(*shape), "axis": d.Tidx.const(axes)}


@recipe("Reverse")
def reverse_where(d):
    for shape in (shape for shape in sizes(d) if shape != (0,)):
        yield {"tensor": d.T(*shape), "dims": d.of("bool")(len(shape))}
    yield {"tensor": d.T(5, 7, 3), "dims": tf.constant([False, True, False])}


@recipe("ReverseSequence")
def reverse_sequence(d):
    for shape, along, batch in (
        ((2, 4), 1, 0),
        ((4, 2), 0, 1),
        ((3, 4, 5), 1, 0),
        ((3, 4, 0), 1, 0),
        ((0, 4), 1, 0),
        ((2, 3, 4, 5), 3, 2),
        ((2, 3, 1, 2, 4), 4, 1),
        *large(d, ((100, 10, 30), 2, 0)),
    ):
        yield {
            "input": d.T(*shape),
            "seq_lengths": d.Tlen.below(shape[along] + 1, shape[batch]),
            "seq_dim": along,
            "batch_dim": batch,
        }


@recipe("Roll")
def roll(d):
    for shape, shift, axis in (
        ((5,), 2, 0),
        ((5,), [-7], [-1]),
        ((5, 7), [1, 3], [0, 1]),
        ((5, 7), [1, 3], [1, 1]),
        ((2, 0, 3), 1, 2),
        ((5, 7), 0, 0),
        ((1, 1024, 1), 1000, 1),
        (DEEP, [1, -1, 5], [0, 2, -4]),
        *large(d, (LARGE, 3, 0), (LARGE, [7, -2], [1, 2])),
    ):
        yield {
            "input": d.T(*shape),
            "shift": d.Tshift.const(shift),
            "axis": d.Taxis.const(axis),
        }


NOT_TILED = ("uint16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4")
"""Dtypes, besides quantized ones, of tensors that `Tile` can make empty or leave unchanged, but not
repeat."""


@recipe("Tile")
def tile(d):
    for shape, multiples in (((), []), ((2,), [0]), ((2, 3), [1, 1])):
        yield {"input": d.T(*shape), "multiples": d.Tmultiples.const(multiples)}
    if d.T.dtype.name in NOT_TILED or d.T.dtype.is_quantized:
        return
    for shape, multiples in (
        ((3,), [4]),
        ((2, 3), [2, 1]),
        ((2, 0), [3, 2]),
        ((1, 1024, 1), [2, 1, 3]),
        ((2, 1, 3, 1, 2, 1, 2), [1, 2, 1, 2, 1, 3, 1]),
        *large(d, ((10, 100, 1), [10, 10, 10])),
    ):
        yield {"input": d.T(*shape), "multiples": d.Tmultiples.const(multiples)}


# ---------------------------------------------------------------------------------------------
# Slices
# ---------------------------------------------------------------------------------------------


@recipe("Slice")
def cut(d):
    for shape, begin, size in (
        ((), [], []),
        ((7,), [2], [3]),
        ((7,), [0], [7]),
        ((4, 5), [1, 0], [2, -1]),
        ((4, 5), [4, 0], [0, 5]),
        ((4, 5), [1, 0], [2, 5]),
        ((2, 0, 3), [0, 0, 1], [-1, -1, 1]),
        ((1, 1024, 1), [0, 17, 0], [1, 1000, 1]),
        (DEEP, [1, 0, 1, 0, 0, 0, 1, 0], [1, 1, 2, 1, -1, 1, 1, 1]),
        *large(d, (LARGE, [1, 5, 2], [60, -1, 7])),
    ):
        yield {
            "input": d.T(*shape),
            "begin": d.Index.const(begin),
            "size": d.Index.const(size),
        }


@dataclass(frozen=True)
class Part:
    """The part ``tensor[begin:end:strides, ...]`` of a tensor of some shape."""

    whole: tuple
    begin: list
    end: list
    strides: list
    masks: dict = field(default_factory=dict)

    def arguments(self, index):
        """Return the arguments of ops that get or set parts, with indices from a `Maker`."""
        places = {name: index.const(getattr(self, name)) for name in ("begin", "end", "strides")}
        return places | {f"{name}_mask": mask for name, mask in self.masks.items()}

    def shape(self, index):
        return tf.raw_ops.StridedSlice(input=tf.zeros(self.whole), **self.arguments(index)).shape


PARTS = (
    Part((), [], [], []),
    Part((), [0], [0], [1], {"new_axis": 1}),
    Part((7,), [0], [7], [1]),
    Part((7,), [5], [1], [-2]),
    Part((4, 5), [0, 1], [4, 5], [2, 1]),
    Part((4, 5), [1], [3], [1]),
    Part((4, 5), [-1, 0], [0, 0], [1, -1], {"shrink_axis": 1, "end": 2}),
    Part((4, 5), [3, -1], [0, 0], [-1, -3], {"begin": 1, "end": 3}),
    Part((4, 5), [0, 2], [0, 3], [1, 1], {"ellipsis": 1, "shrink_axis": 2}),
    Part((4, 5), [9, 0], [9, 2], [1, 1], {"new_axis": 1}),
    Part((4, 5), [3, 0], [3, 9], [1, 1]),
    Part((2, 0, 3), [0, 0, 1], [2, 0, 2], [1, 1, 1]),
    Part((1, 1024, 1), [0, 3, 0], [1, 1000, 1], [1, 7, 1]),
    Part(DEEP, [0, 0, 2, 0, 1, 0, 0, 0], [2, 1, 0, 1, 2, 1, 2, 1], [1, 1, -1, 1, 1, 1, 1, 1]),
)
LARGE_PARTS = (
    Part(LARGE, [5, 0, 0], [65, 0, 0], [1, 1, 1], {"end": 6}),
    Part(LARGE, [0, 3, 9], [0, 99, 1], [1, 5, -2], {"end": 1}),
)


def parts(d):
    return (*PARTS, *large(d, *LARGE_PARTS))


@recipe("StridedSlice")
def strided_slice(d):
    for part in parts(d):
        if max(part.whole, default=0) <= d.Index.dtype.max:
            yield {"input": d.T(*part.whole), **part.arguments(d.Index)}


@recipe("StridedSliceGrad")
def strided_slice_gradient(d):
    for part in parts(d):
        yield {
            "shape": d.Index.const(part.whole),
            "dy": d.T(*part.shape(d.Index)),
            **part.arguments(d.Index),
        }


SPREAD = Part((4, 5), [1, 0], [4, 5], [2, 1])
"""Parts that are set to a row and to one number, which broadcast."""


@recipe("TensorStridedSliceUpdate")
def strided_slice_update(d):
    for part in parts(d):
        yield {
            "input": d.T(*part.whole),
            "value": d.T(*part.shape(d.Index)),
            **part.arguments(d.Index),
        }
    for shape in ((), (5,)):
        yield {"input": d.T(*SPREAD.whole), "value": d.T(*shape), **SPREAD.arguments(d.Index)}


rejected(
    "TensorStridedSliceUpdate",
    "the kernel cannot copy tensors of this dtype",
    T="float8_e5m2 float8_e4m3fn qint8 quint8 qint32",
)


@recipe("ResourceStridedSliceAssign")
def strided_slice_assign(d):
    for part in parts(d):
        yield {
            "ref": d.variable(d.T(*part.whole)),
            "value": d.T(*part.shape(d.Index)),
            **part.arguments(d.Index),
        }
    for shape in ((), (5,)):
        ref = d.variable(d.T(*SPREAD.whole))
        yield {"ref": ref, "value": d.T(*shape), **SPREAD.arguments(d.Index)}


# ---------------------------------------------------------------------------------------------
# Padding
# ---------------------------------------------------------------------------------------------

PADDINGS = (
    ((), np.zeros((0, 2))),
    ((3,), [[2, 1]]),
    ((0,), [[0, 2]]),
    ((2, 3), [[1, 0], [0, 2]]),
    ((2, 3), [[0, 0], [0, 0]]),
    ((2, 0, 3), [[1, 1], [0, 0], [0, 1]]),
    ((5, 4, 3), [[0, 0], [1, 2], [0, 0]]),
    ((2, 3, 4, 5), [[0, 0], [1, 1], [2, 0], [0, 0]]),
    ((1, 1024, 1), [[1, 0], [0, 3], [1, 1]]),
    (DEEP, [[0, 1], [1, 0], [0, 0], [0, 0], [0, 0], [2, 2], [0, 0], [0, 0]]),
)
LARGE_PADDINGS = ((LARGE, [[1, 2], [0, 0], [3, 0]]), (LARGE, [[0, 0], [4, 4], [0, 0]]))


def paddings(d):
    return (*PADDINGS, *large(d, *LARGE_PADDINGS))


@recipe("Pad")
def pad(d):
    for shape, added in paddings(d):
        yield {"input": d.T(*shape), "paddings": d.Tpaddings.const(added)}


@recipe("PadV2")
def pad_with(d):
    for shape, added in paddings(d):
        yield {
            "input": d.T(*shape),
            "paddings": d.Tpaddings.const(added),
            "constant_values": d.T(),
        }


MIRRORS = (
    ((), np.zeros((0, 2))),
    ((3,), [[2, 1]]),
    ((3, 3), [[1, 1], [0, 2]]),
    ((2, 3), [[0, 0], [0, 0]]),
    ((1, 100, 1), [[0, 0], [30, 1], [0, 0]]),
    ((2, 3, 4, 2), [[1, 0], [2, 2], [0, 1], [0, 0]]),
    ((2, 1, 3, 2, 2), [[1, 1], [0, 0], [0, 2], [0, 0], [1, 0]]),
)


def mirrors(d):
    return product((*MIRRORS, *large(d, *LARGE_PADDINGS)), ("REFLECT", "SYMMETRIC"))


@recipe("MirrorPad")
def mirror(d):
    for (shape, added), mode in mirrors(d):
        yield {"input": d.T(*shape), "paddings": d.Tpaddings.const(added), "mode": mode}
    yield {"input": d.T(2, 0), "paddings": d.Tpaddings.const([[1, 1], [0, 0]]), "mode": "SYMMETRIC"}


@recipe("MirrorPadGrad")
def mirror_gradient(d):
    for (shape, added), mode in mirrors(d):
        padded = np.add(shape, np.sum(added, axis=1)).astype(int)
        yield {"input": d.T(*padded), "paddings": d.Tpaddings.const(added), "mode": mode}


# ---------------------------------------------------------------------------------------------
# Gathering and scattering
# ---------------------------------------------------------------------------------------------

GATHERS = (
    ((4,), ()),
    ((4,), (3,)),
    ((4, 3), (5,)),
    ((4, 3), (2, 2)),
    ((4, 3), (0,)),
    ((4, 0), (2,)),
    ((0, 3), (0, 2)),
    ((1, 1024, 1), (3,)),
    (DEEP, (3, 1)),
)


@recipe("Gather")
def gather(d):
    rows = (*GATHERS, *large(d, (LARGE, (70,))))
    for (shape, taken), validate in product(rows, BOTH):
        yield {
            "params": d.Tparams(*shape),
            "indices": d.Tindices.below(max(shape[0], 1), *taken),
            "validate_indices": validate,
        }


@recipe("GatherV2")
def gather_along(d):
    for shape, taken, axis, batch in (
        *((shape, taken, 0, 0) for shape, taken in GATHERS),
        ((4, 3), (), 1, 0),
        ((4, 3), (2, 2), -1, 0),
        ((2, 0, 3), (4,), 2, 0),
        ((2, 4, 3), (2, 5), 1, 1),
        ((2, 4, 3), (2, 5), -1, 1),
        ((2, 3, 4, 2), (2, 3, 2), 2, 2),
        ((2, 3, 4), (2, 3), 2, -1),
        (DEEP, (3,), 2, 0),
        *large(d, (LARGE, (70,), 0, 0), (LARGE, (99,), 1, 0)),
        *large(d, (LARGE, (7,), 2, 0), (LARGE, (70, 9), 1, 1)),
    ):
        yield {
            "params": d.Tparams(*shape),
            "indices": d.Tindices.below(max(shape[axis], 1), *taken),
            "axis": d.Taxis.const(axis),
            "batch_dims": batch,
        }


POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")
"""Policies for indices out of bounds."""

POINTS = (
    ((5,), (2,), 1),
    ((4, 3), (2,), 1),
    ((4, 3), (6,), 2),
    ((4, 3), (2, 2), 2),
    ((4, 0), (0,), 1),
    ((0, 3), (0,), 1),
    ((1, 1024, 1), (9,), 2),
    ((2, 1, 3, 2), (5,), 3),
    ((2, 1, 3, 1, 2), (5,), 4),
    ((2, 1, 3, 1, 2, 2), (5,), 5),
    ((2, 1, 3, 1, 2, 1, 2), (5,), 6),
    (DEEP, (5,), 7),
)
"""Shapes of a tensor, shapes of a set of points in it, and the number of coordinates of a point."""

LARGE_POINTS = ((LARGE, (999,), 1), (LARGE, (3000,), 2), (LARGE, (9999,), 3))


def points(d, indices):
    """Yield a tensor's shape, coordinates drawn from `indices`, and the shape of the updates."""
    for shape, batch, depth in (*POINTS, *large(d, *LARGE_POINTS)):
        if math.prod(shape) > indices.dtype.max:
            continue
        coordinates = [indices.below(max(side, 1), *batch) for side in shape[:depth]]
        yield shape, indices.const(np.stack(coordinates, axis=-1)), (*batch, *shape[depth:])


OUTSIDE = [[1], [9], [0], [-1]]
"""Points in a vector, some of them out of bounds."""


@recipe("GatherNd")
def gather_points(d):
    yield {"params": d.Tparams(5), "indices": d.Tindices.below(5, 1)}
    yield {"params": d.Tparams(4, 3), "indices": d.Tindices(2, 0)}
    for shape, places, _ in points(d, d.Tindices):
        yield {"params": d.Tparams(*shape), "indices": places}
    for policy in POLICIES:
        places = d.Tindices.const(OUTSIDE if policy == "IGNORE" else [[1], [0]])
        yield {"params": d.Tparams(3), "indices": places, "bad_indices_policy": policy}


@recipe("ScatterNd")
def scatter_points(d):
    for shape, places, inner in points(d, d.Tindices):
        yield {"indices": places, "updates": d.T(*inner), "shape": d.Tindices.const(shape)}
    for policy in POLICIES:
        places = OUTSIDE if policy == "IGNORE" else [[1], [0]]
        yield {
            "indices": d.Tindices.const(places),
            "updates": d.T(len(places)),
            "shape": d.Tindices.const([3]),
            "bad_indices_policy": policy,
        }


def scatter(d, name):
    """Yield calls that change a tensor at some points. The parameter of the tensor is `name`."""
    for shape, places, inner in points(d, d.Tindices):
        yield {name: d.T(*shape), "indices": places, "updates": d.T(*inner)}
    for policy in POLICIES:
        places = OUTSIDE if policy == "IGNORE" else [[1], [0]]
        yield {
            name: d.T(3),
            "indices": d.Tindices.const(places),
            "updates": d.T(len(places)),
            "bad_indices_policy": policy,
        }


@recipe("ScatterNdNonAliasingAdd")
def scatter_add(d):
    yield from scatter(d, "input")


@recipe("TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin")
def scatter_update(d):
    yield from scatter(d, "tensor")


# ---------------------------------------------------------------------------------------------
# Space, depth and batches
# ---------------------------------------------------------------------------------------------

DEPTHS = ((1, 2, 3, 1), (2, 1, 4, 3), (0, 2, 2, 1), (1, 1, 33, 2))
"""Shapes of images before channels are moved into squares of pixels."""


def depths(d):
    return product((*DEPTHS, *large(d, (3, 57, 43, 3))), (2, 3))


def formats(d):
    """Return the data formats. On a CPU, all but one are errors, which special runs compare."""
    return ("NHWC", "NCHW", "NCHW_VECT_C") if d.special else ("NHWC",)


@recipe("DepthToSpace")
def depth_to_space(d):
    for (batch, height, width, channels), block in depths(d):
        yield {
            "input": d.T(batch, height, width, channels * block * block),
            "block_size": block,
        }
    for data_format in formats(d):
        yield {"input": d.T(1, 4, 4, 4), "block_size": 2, "data_format": data_format}


@recipe("SpaceToDepth")
def space_to_depth(d):
    for (batch, height, width, channels), block in depths(d):
        yield {
            "input": d.T(batch, height * block, width * block, channels),
            "block_size": block,
        }
    for data_format in formats(d):
        yield {"input": d.T(1, 4, 4, 4), "block_size": 2, "data_format": data_format}


BATCHES = (
    ((1, 4), [2], [[0, 0]]),
    ((3, 4, 2), [2], [[1, 1]]),
    ((2, 3, 5, 1), [3, 2], [[1, 2], [0, 1]]),
    ((2, 4, 3), [1, 1], [[0, 0], [0, 0]]),
    ((2, 4, 3), [], np.zeros((0, 2))),
    ((0, 4, 1), [2], [[0, 0]]),
    ((1, 3, 2, 4, 2), [3, 1, 2], [[0, 0], [1, 0], [2, 0]]),
    ((1, 2, 3, 2, 1, 2), [2, 3, 1, 1], [[0, 0], [0, 0], [0, 0], [1, 1]]),
    ((1, 2, 3, 2, 3, 2), [2, 3, 2, 3], [[0, 0], [0, 0], [0, 0], [0, 0]]),
    ((1, 1024, 1), [4], [[1, 3]]),
)
"""Shapes of images, shapes of blocks, and the padding before and after each side."""

LARGE_BATCHES = (((3, 100, 97, 10), [2, 3], [[1, 1], [0, 2]]),)


def batches(d):
    return (*BATCHES, *large(d, *LARGE_BATCHES))


def in_batches(shape, blocks, added):
    """Return the shape of images after the op `SpaceToBatchND`."""
    sides = np.array(shape)
    sides[1 : 1 + len(blocks)] += np.sum(added, axis=1).astype(int)
    sides[1 : 1 + len(blocks)] //= np.array(blocks, int)
    sides[0] *= np.prod(blocks, dtype=int)
    return sides


@recipe("SpaceToBatchND")
def space_to_batches(d):
    for shape, blocks, added in batches(d):
        yield {
            "input": d.T(*shape),
            "block_shape": d.Tblock_shape.const(blocks),
            "paddings": d.Tpaddings.const(added),
        }


@recipe("BatchToSpaceND")
def batches_to_space(d):
    for shape, blocks, added in batches(d):
        yield {
            "input": d.T(*in_batches(shape, blocks, added)),
            "block_shape": d.Tblock_shape.const(blocks),
            "crops": d.Tcrops.const(added),
        }


SQUARES = (
    ((1, 4, 4, 1), 2, [[0, 0], [0, 0]]),
    ((2, 3, 5, 3), 2, [[1, 0], [0, 1]]),
    ((1, 3, 4, 2), 3, [[1, 2], [0, 2]]),
    ((0, 2, 2, 1), 2, [[0, 0], [0, 0]]),
)


@recipe("SpaceToBatch")
def space_to_batch(d):
    for shape, block, added in SQUARES:
        yield {
            "input": d.T(*shape),
            "paddings": d.Tpaddings.const(added),
            "block_size": block,
        }


@recipe("BatchToSpace")
def batch_to_space(d):
    for shape, block, added in SQUARES:
        yield {
            "input": d.T(*in_batches(shape, [block, block], added)),
            "crops": d.Tidx.const(added),
            "block_size": block,
        }


@recipe("ExtractImagePatches")
def image_patches(d):
    rows = (
        ((1, 5, 6, 2), (2, 3), (1, 1), (1, 1)),
        ((2, 7, 5, 3), (3, 2), (2, 1), (1, 2)),
        ((1, 3, 33, 1), (1, 1), (3, 2), (1, 1)),
        ((1, 9, 9, 1), (3, 3), (4, 4), (2, 3)),
        *large(d, ((3, 57, 43, 5), (3, 3), (1, 2), (1, 1))),
    )
    for (shape, window, strides, rates), padding in product(rows, ("SAME", "VALID")):
        yield {
            "images": d.T(*shape),
            "ksizes": [1, *window, 1],
            "strides": [1, *strides, 1],
            "rates": [1, *rates, 1],
            "padding": padding,
        }


@recipe("ExtractVolumePatches")
def volume_patches(d):
    rows = (
        ((1, 4, 5, 6, 2), (2, 3, 1), (1, 1, 1)),
        ((2, 3, 4, 3, 1), (2, 2, 2), (1, 2, 2)),
        ((1, 1, 2, 17, 3), (1, 1, 5), (1, 1, 3)),
        *large(d, ((2, 17, 19, 15, 3), (3, 3, 3), (1, 2, 1))),
    )
    for (shape, window, strides), padding in product(rows, ("SAME", "VALID")):
        yield {
            "input": d.T(*shape),
            "ksizes": [1, *window, 1],
            "strides": [1, *strides, 1],
            "padding": padding,
        }


# ---------------------------------------------------------------------------------------------
# Diagonals
# ---------------------------------------------------------------------------------------------


TENSORS = ((1,), (3,), (0,), (2, 3), (2, 1, 2), (1, 2, 1, 2))
"""Shapes of tensors that can be on the diagonal of another tensor."""


@recipe("Diag")
def diagonal_tensor(d):
    for shape in (*TENSORS, *large(d, (200,))):
        yield {"diagonal": d.T(*shape)}


@recipe("DiagPart")
def diagonal_of_tensor(d):
    for shape in (*TENSORS, *large(d, (200,))):
        yield {"input": d.T(*shape, *shape)}


MATRICES = ((1, 1), (3, 3), (2, 5), (5, 2), (2, 3, 4), (0, 3, 3), (2, 1, 4, 3), (9, 31, 33))


def matrices(d):
    return (*MATRICES, *large(d, (3, 130, 90), (300, 10, 10)))


@recipe("MatrixBandPart")
def band(d):
    for shape, (lower, upper) in product(matrices(d), ((0, 0), (1, -1), (-1, 0), (-1, -1))):
        yield {
            "input": d.T(*shape),
            "num_lower": d.Tindex.const(lower),
            "num_upper": d.Tindex.const(upper),
        }
    yield {"input": d.T(4, 6), "num_lower": d.Tindex.const(2), "num_upper": d.Tindex.const(3)}


@recipe("MatrixDiag")
def diagonal_matrix(d):
    for shape in ((1,), (3,), (2, 5), (0, 3), (2, 1, 4), *large(d, (100, 100))):
        yield {"diagonal": d.T(*shape)}


@recipe("MatrixDiagPart")
def diagonal_of_matrix(d):
    for shape in matrices(d):
        yield {"input": d.T(*shape)}


@recipe("MatrixSetDiag")
def set_diagonal(d):
    for *batch, rows, columns in matrices(d):
        yield {"input": d.T(*batch, rows, columns), "diagonal": d.T(*batch, min(rows, columns))}


DIAGONALS = (
    ((), 1, 1, 0),
    ((), 3, 4, 0),
    ((), 4, 3, [1]),
    ((), 3, 3, [-2, 2]),
    ((2,), 3, 5, [-1, 1]),
    ((2, 1), 5, 2, [-3, -1]),
    ((0,), 3, 3, [0, 1]),
    ((3,), 4, 4, -3),
    ((7,), 33, 31, [-5, 9]),
)
"""Batches of matrices, their rows and columns, and which diagonals to use."""


def diagonals(d):
    """Yield the rows of `DIAGONALS` with the shape of their diagonals and `k` as a tensor."""
    for batch, rows, columns, k in (*DIAGONALS, *large(d, ((3,), 130, 90, [-60, 40]))):
        low, high = np.broadcast_to(k, (2,))
        count = () if low == high else (high - low + 1,)
        longest = min(rows + min(high, 0), columns - max(low, 0))
        yield (*batch, rows, columns), (*batch, *count, longest), ints(k)


@recipe("MatrixDiagPartV2")
def diagonals_of_matrix(d):
    for shape, _, k in diagonals(d):
        yield {"input": d.T(*shape), "k": k, "padding_value": d.T()}


@recipe("MatrixDiagV2")
def matrix_of_diagonals(d):
    for shape, sizes, k in diagonals(d):
        rows, columns = map(ints, shape[-2:])
        yield {
            "diagonal": d.T(*sizes),
            "k": k,
            "num_rows": rows,
            "num_cols": columns,
            "padding_value": d.T(),
        }
    for k in (0, -2, [-1, 1]):
        yield {
            "diagonal": d.T(3, 3),
            "k": ints(k),
            "num_rows": ints(-1),
            "num_cols": ints(-1),
            "padding_value": d.T(),
        }


@recipe("MatrixSetDiagV2")
def set_diagonals(d):
    for shape, sizes, k in diagonals(d):
        yield {"input": d.T(*shape), "diagonal": d.T(*sizes), "k": k}


def aligned(calls):
    """Return a recipe that makes the calls of another with each alignment of diagonals."""

    def each_alignment(d):
        for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
            for call in calls(d):
                yield call | {"align": align}

    return each_alignment


recipe("MatrixDiagPartV3")(aligned(diagonals_of_matrix))
recipe("MatrixDiagV3")(aligned(matrix_of_diagonals))
recipe("MatrixSetDiagV3")(aligned(set_diagonals))

# ---------------------------------------------------------------------------------------------
# Sets of values
# ---------------------------------------------------------------------------------------------


def repeated(maker, *shape, axis=0):
    """Draw a tensor in which each slice along an axis occurs twice."""
    values = maker(*shape).numpy()
    return maker.const(np.concatenate([values, np.flip(values, axis)], axis))


@recipe("Unique UniqueWithCounts")
def unique(d):
    for count in (0, 1, 3, 9, 500, *large(d, 5_000)):
        yield {"x": repeated(d.T, count)}


@recipe("UniqueV2 UniqueWithCountsV2")
def unique_along(d):
    for shape, axis in (
        ((0,), []),
        ((9,), []),
        ((9,), [0]),
        ((3, 4), [0]),
        ((3, 4), [1]),
        ((2, 0, 3), [2]),
        ((2, 3, 4), [1]),
        ((1, 1024, 1), [1]),
        (DEEP, [4]),
        *large(d, ((5_000,), []), (LARGE, [1])),
    ):
        yield {"x": repeated(d.T, *shape, axis=axis[0] if axis else 0), "axis": d.Taxis.const(axis)}


@recipe("ListDiff")
def list_difference(d):
    for ours, theirs in ((0, 0), (9, 0), (0, 3), (9, 3), (500, 50)):
        yield {"x": repeated(d.T, ours), "y": d.T(theirs)}
    values = d.T(7)
    yield {"x": values, "y": values[2:4]}


@recipe("LowerBound UpperBound")
def bounds(d):
    for batch, count, sought in (
        (1, 5, 3),
        (3, 17, 4),
        (2, 1, 1),
        (2, 3, 0),
        (0, 3, 2),
        (1, 999, 99),
    ):
        sorted_inputs = d.T.const(np.sort(d.T(batch, count).numpy(), axis=-1))
        yield {"sorted_inputs": sorted_inputs, "values": d.T(batch, sought)}


@recipe("Where")
def where(d):
    for shape in sizes(d)[1:]:
        yield {"condition": d.T(*shape)}
        yield {"condition": d.T.const(d.of("bool")(*shape))}


rejected("Where", "the kernel for the CPU refuses float16", T="float16")


@recipe("EditDistance")
def edit_distance(d):
    rows = (
        ([[0, 0], [0, 1], [1, 0]], [2, 3], [[0, 0], [1, 0], [1, 1]], [2, 2]),
        ([[0, 0]], [1, 1], [[0, 0]], [1, 1]),
        ([[0, 0]], [3, 1], [[2, 0]], [3, 4]),
        (np.zeros((0, 2)), [2, 0], [[1, 0]], [2, 1]),
        ([[0, 0, 0], [1, 0, 2], [1, 2, 0]], [2, 3, 4], [[0, 0, 1], [1, 2, 3]], [2, 3, 4]),
        ([[0, k] for k in range(40)], [1, 40], [[0, k] for k in range(33)], [1, 33]),
    )
    for (ours, shape, theirs, other_shape), normalize in product(rows, BOTH):
        yield {
            "hypothesis_indices": longs(ours),
            "hypothesis_values": d.T(len(ours)),
            "hypothesis_shape": longs(shape),
            "truth_indices": longs(theirs),
            "truth_values": d.T(len(theirs)),
            "truth_shape": longs(other_shape),
            "normalize": normalize,
        }


# ---------------------------------------------------------------------------------------------
# Quantization
# ---------------------------------------------------------------------------------------------

WIDTHS = tuple(product((2, 8, 16), BOTH))
"""The number of bits, and whether the lowest number is left out."""

RANGES = ((-6.0, 6.0), (0.0, 1.5), (-3.0, -1.0), (0.5, 2.0), (-0.1, 0.7))


def alike(d, names, *shape):
    """Draw float tensors with these names and one shape."""
    return {name: d.of("float32")(*shape) for name in names}


@recipe("FakeQuantWithMinMaxArgs")
def fake(d, names=("inputs",)):
    for shape in sizes(d):
        yield alike(d, names, *shape)
    for (bits, narrow), (low, high) in product(WIDTHS, RANGES):
        attrs = {"num_bits": bits, "narrow_range": narrow, "min": low, "max": high}
        yield alike(d, names, 5, 7) | attrs


@recipe("FakeQuantWithMinMaxArgsGradient")
def fake_gradient(d):
    yield from fake(d, ("gradients", "inputs"))


@recipe("FakeQuantWithMinMaxVars")
def fake_of_range(d, names=("inputs",)):
    for shape in sizes(d):
        yield alike(d, names, *shape) | {"min": floats(-2), "max": floats(1.5)}
    for (bits, narrow), (low, high) in product(WIDTHS, (*RANGES, (0.0, 0.0))):
        attrs = {"num_bits": bits, "narrow_range": narrow}
        yield alike(d, names, 5, 7) | {"min": floats(low), "max": floats(high)} | attrs
    if d.special:
        for _ in range(9):
            yield alike(d, names, 5, 7) | alike(d, ("min", "max"))


@recipe("FakeQuantWithMinMaxVarsGradient")
def fake_of_range_gradient(d):
    yield from fake_of_range(d, ("gradients", "inputs"))


@recipe("FakeQuantWithMinMaxVarsPerChannel")
def fake_of_channels(d, names=("inputs",)):
    low, high = map(floats, zip(*RANGES, strict=True))
    for batch in ((), (0,), (3,), (2, 7), (2, 3, 2), *large(d, (100, 999))):
        yield alike(d, names, *batch, len(RANGES)) | {"min": low, "max": high}
    for bits, narrow in WIDTHS:
        attrs = {"min": low, "max": high, "num_bits": bits, "narrow_range": narrow}
        yield alike(d, names, 7, len(RANGES)) | attrs
    yield alike(d, names, 2, 0) | alike(d, ("min", "max"), 0)
    if d.special:
        yield alike(d, names, 5, 20) | alike(d, ("min", "max"), 20)


@recipe("FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_of_channels_gradient(d):
    yield from fake_of_channels(d, ("gradients", "inputs"))


MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
AXES = (((4,), 0), ((2, 3), 1), ((5, 2, 3), 0), ((3, 1, 2), 1), ((2, 1, 5, 3, 1), 2))
"""Shapes, and the axis along which each slice has its own range."""


def of_slices(shape, axis):
    """Return a range for each slice."""
    low, high = zip(*RANGES[: shape[axis]], strict=True)
    return {"min_range": floats(low), "max_range": floats(high), "axis": axis}


@recipe("QuantizeV2")
def quantize(d):
    draw = d.of("float32")
    for shape in sizes(d):
        yield {"input": draw(*shape), "min_range": floats(-2), "max_range": floats(1.5)}
    for mode, narrow, (low, high) in product(MODES, BOTH, RANGES):
        given = {"min_range": floats(low), "max_range": floats([high])}
        yield {"input": draw(5, 7), "mode": mode, "narrow_range": narrow} | given
    for (shape, axis), mode in product(AXES, MODES[::2]):
        yield {"input": draw(*shape), "mode": mode} | of_slices(shape, axis)
    for shape, axis in AXES:
        attrs = {"mode": "SCALED", "round_mode": "HALF_TO_EVEN"}
        yield {"input": draw(*shape)} | attrs | of_slices(shape, axis)
    for least in (0.0, 0.5):
        given = {"min_range": floats(0), "max_range": floats(0.1)}
        yield {"input": draw(9), "ensure_minimum_range": least} | given
    if d.special:
        for mode in MODES:
            yield {"input": draw(5, 7), "mode": mode} | alike(d, ("min_range", "max_range"))


@recipe("Dequantize")
def dequantize(d):
    # Only this mode supports bfloat16.
    modes = MODES if d.dtype.dtype == tf.float32 else MODES[:1]
    for shape in sizes(d):
        yield {"input": d.T(*shape), "min_range": floats(-2), "max_range": floats(1.5)}
    # oneDNN's kernel, if it is used, does not scale qint32 without an axis.
    whole = modes[:2] if d.T.dtype == tf.qint32 else modes
    for mode, narrow, (low, high) in product(whole, BOTH, RANGES):
        given = {"min_range": floats(low), "max_range": floats([high])}
        yield {"input": d.T(5, 7), "mode": mode, "narrow_range": narrow} | given
    for (shape, axis), mode in product(AXES, modes[::2]):
        yield {"input": d.T(*shape), "mode": mode} | of_slices(shape, axis)
    if d.special:
        for mode in whole:
            yield {"input": d.T(5, 7), "mode": mode} | alike(d, ("min_range", "max_range"))


def there_and_back(d, **attrs):
    """Yield calls of ops that quantize and dequantize, without the number of bits."""
    unused = {"input_min": d.T.const(-2), "input_max": d.T.const(1.5)}
    for shape in sizes(d)[1:]:
        yield {"input": d.T(*shape)} | unused | attrs
    for shape, axis in AXES:
        yield {"input": d.T(*shape), "axis": axis, "range_given": False} | unused | attrs
    for signed, narrow, given in product(BOTH, BOTH, BOTH):
        yield (
            {"input": d.T(5, 7), "signed_input": signed, "narrow_range": narrow}
            | {"range_given": given}
            | unused
            | attrs
        )


@recipe("QuantizeAndDequantizeV2 QuantizeAndDequantizeV4")
def quantize_and_dequantize(d):
    yield {"input": d.T(), "input_min": d.T(), "input_max": d.T()}
    for mode, bits in product(("HALF_TO_EVEN", "HALF_UP"), (1, 8, 61)):
        yield from there_and_back(d, round_mode=mode, num_bits=bits)


@recipe("QuantizeAndDequantizeV3")
def quantize_and_dequantize_to_bits(d):
    for bits in (1, 8, 61):
        yield from there_and_back(d, num_bits=ints(bits))
    for shape, axis in AXES:
        low, high = zip(*RANGES[: shape[axis]], strict=True)
        yield {
            "input": d.T(*shape),
            "input_min": d.T.const(low),
            "input_max": d.T.const(high),
            "num_bits": ints(8),
            "axis": axis,
        }


@recipe("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_gradient(d):
    for shape in sizes(d):
        yield {
            "gradients": d.T(*shape),
            "input": d.T(*shape),
            "input_min": d.T.const(-1),
            "input_max": d.T.const(0.5),
        }
    for shape, axis in AXES:
        low, high = zip(*RANGES[: shape[axis]], strict=True)
        yield {
            "gradients": d.T(*shape),
            "input": d.T(*shape),
            "input_min": d.T.const(low),
            "input_max": d.T.const(high),
            "axis": axis,
        }
