"""Reductions, products of matrices, segments, ranges, counts, casts."""

from itertools import product

import tensorflow as tf

from parity.draw import floats, ints, longs
from parity.recipes import LARGE, SIZES, mismatched, recipe, rejected

BOTH = (False, True)

# ---------------------------------------------------------------------------------------------
# Reductions
# ---------------------------------------------------------------------------------------------

REDUCTIONS = (
    ((), []),
    ((0,), 0),
    ((7,), 0),
    ((3, 4), 0),
    ((3, 4), [1]),
    ((3, 4), [0, 1]),
    ((3, 4), []),
    ((2, 0, 3), [1]),
    ((2, 0, 3), [2, 0]),
    ((5, 1, 7), [-1, 0]),
    ((3, 5, 7), 1),
    ((1, 1024, 1), [1]),
    ((2, 1, 3, 2, 2, 1, 2, 3), [0, 3, -2]),
)
"""Shapes, and the axes to reduce."""


def reductions(d, draw):
    for (shape, axis), keep_dims in product(REDUCTIONS, BOTH):
        yield {"input": draw(*shape), "axis": d.Tidx.const(axis), "keep_dims": keep_dims}
    if d.thorough:
        large = draw(*LARGE)
        for axis in (0, [1], -1, [0, 2], [0, 1, 2]):
            yield {"input": large, "axis": d.Tidx.const(axis)}


@recipe("Sum Mean Prod EuclideanNorm Max Min")
def reduction(d):
    yield from reductions(d, d.T)


@recipe("All Any")
def logical_reduction(d):
    yield from reductions(d, d.of("bool"))


@recipe("ArgMax ArgMin")
def place_of_extreme(d):
    if d.Tidx.dtype == tf.int16:
        return
    for shape, axis in (
        ((1,), 0),
        ((4, 5), 0),
        ((4, 5), -1),
        ((0, 3), 1),
        ((2, 3, 0), 1),
        ((1, 1024, 1), 1),
        ((2, 1, 3, 1, 2, 1, 4), 2),
    ):
        yield {"input": d.T(*shape), "dimension": d.Tidx.const(axis)}
    if d.thorough:
        large = d.T(*LARGE)
        for axis in range(len(LARGE)):
            yield {"input": large, "dimension": d.Tidx.const(axis)}


rejected("ArgMax", "the kernel reads an int16 `dimension` as an int32, past its end", Tidx="int16")


@recipe("Cumsum Cumprod CumulativeLogsumexp")
def cumulative(d):
    for (shape, axis), exclusive, reverse in product(
        (
            ((1,), 0),
            ((0,), 0),
            ((2, 5), 1),
            ((2, 5), -2),
            ((2, 0, 3), 0),
            ((1, 1024, 1), 1),
            ((2, 1, 3, 1, 2, 1, 2, 1), 2),
        ),
        BOTH,
        BOTH,
    ):
        yield {
            "x": d.T(*shape),
            "axis": d.Tidx.const(axis),
            "exclusive": exclusive,
            "reverse": reverse,
        }
    if d.thorough:
        large = d.T(*LARGE)
        yield {"x": large, "axis": d.Tidx.const(0)}
        yield {"x": large, "axis": d.Tidx.const(1), "exclusive": True}
        yield {"x": large, "axis": d.Tidx.const(2), "reverse": True}


@recipe("AddN")
def add_all(d):
    for count in (1, 2, 3, 9):
        yield {"inputs": [d.T(5, 7) for _ in range(count)]}
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {"inputs": [d.T(*shape), d.T(*shape)]}


# ---------------------------------------------------------------------------------------------
# Products
# ---------------------------------------------------------------------------------------------

SIDES = (
    (2, 3, 4),
    (0, 3, 4),
    (2, 0, 4),
    (2, 3, 0),
    (1, 33, 1),
    (1, 17, 9),
    (9, 17, 1),
    (5, 1, 7),
    (31, 17, 33),
)
"""Sizes m, k, n of products of an m x k matrix and a k x n matrix."""

LARGE_SIDES = ((100, 1000, 10), (257, 129, 65), (1, 1000, 1000), (1000, 1000, 1), (300, 300, 300))


def sides(d):
    return (*SIDES, *(LARGE_SIDES if d.thorough else ()))


@recipe("MatMul")
def matmul(d):
    for m, k, n in sides(d):
        for flip_a, flip_b in product(BOTH, BOTH):
            yield {
                "a": d.T(*((k, m) if flip_a else (m, k))),
                "b": d.T(*((n, k) if flip_b else (k, n))),
                "transpose_a": flip_a,
                "transpose_b": flip_b,
            }
    yield {"a": d.T(2, 3), "b": d.T(3, 4), "grad_a": True}
    yield {"a": d.T(2, 3), "b": d.T(3, 4), "grad_b": True}


@recipe("SparseMatMul")
def sparse_matmul(d):
    for m, k, n in sides(d):
        for flip_a, flip_b in product(BOTH, BOTH):
            yield {
                "a": d.Ta(*((k, m) if flip_a else (m, k))),
                "b": d.Tb(*((n, k) if flip_b else (k, n))),
                "transpose_a": flip_a,
                "transpose_b": flip_b,
            }
    for sparse_a, sparse_b in product(BOTH, BOTH):
        yield {
            "a": d.Ta.const(tf.one_hot([0, 3, 1], 5)),
            "b": d.Tb.const(tf.one_hot([2, 0, 3, 9, 1], 4)),
            "a_is_sparse": sparse_a,
            "b_is_sparse": sparse_b,
        }


def batches(d, x, y, shapes):
    """Yield calls with x and y of these batch shapes, with matrices of several sizes."""
    for (one, other), (m, k, n) in product(shapes, ((2, 3, 4), (1, 5, 1), (3, 0, 2))):
        yield {"x": x(*one, m, k), "y": y(*other, k, n)}
    for (one, other), flip_x, flip_y in product(shapes[-2:], BOTH, BOTH):
        yield {
            "x": x(*one, *((3, 2) if flip_x else (2, 3))),
            "y": y(*other, *((4, 3) if flip_y else (3, 4))),
            "adj_x": flip_x,
            "adj_y": flip_y,
        }
    yield {"x": x(2, 2, 3), "y": y(2, 3, 4), "grad_x": True}
    yield {"x": x(2, 2, 3), "y": y(2, 3, 4), "grad_y": True}
    if d.thorough:
        yield {"x": x(10, 65, 129), "y": y(10, 129, 33)}


SAME_BATCHES = (((), ()), ((0,), (0,)), ((1,), (1,)), ((2, 1, 3), (2, 1, 3)), ((3,), (3,)))
BROADCAST_BATCHES = (
    ((5,), ()),
    ((), (2, 3)),
    ((0, 1), (4,)),
    ((2, 1, 3, 1), (2, 1, 2)),
    ((4, 1), (2,)),
)


@recipe("BatchMatMul")
def batch_matmul(d):
    yield from batches(d, d.T, d.T, SAME_BATCHES)


@recipe("BatchMatMulV2")
def batch_matmul_that_broadcasts(d):
    yield from batches(d, d.T, d.T, SAME_BATCHES + BROADCAST_BATCHES)


@recipe("BatchMatMulV3")
def batch_matmul_of_two_dtypes(d):
    yield from batches(d, d.Ta, d.Tb, SAME_BATCHES + BROADCAST_BATCHES)


@recipe("Cross")
def cross(d):
    for shape in (
        (3,),
        (2, 3),
        (0, 3),
        (2, 1, 4, 3),
        (17, 3),
        *([(9999, 3)] if d.thorough else ()),
    ):
        yield {"a": d.T(*shape), "b": d.T(*shape)}


# ---------------------------------------------------------------------------------------------
# Segments
# ---------------------------------------------------------------------------------------------


@recipe("SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum")
def segments(d):
    for shape, ids in (
        ((1,), [0]),
        ((4,), [0, 0, 1, 1]),
        ((0, 3), []),
        ((4, 0), [0, 0, 1, 2]),
        ((4, 2), [0, 0, 1, 3]),
        ((4, 2), [2, 2, 2, 5]),
        ((6, 1, 3, 2, 1, 2), [0, 1, 1, 1, 3, 3]),
        ((13, 17), [0] * 12 + [1]),
    ):
        yield {"data": d.T(*shape), "segment_ids": d.Tindices.const(ids)}


@recipe("UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum")
def unsorted_segments(d):
    for shape, ids, count in (
        ((), 1, 2),
        ((4,), [0, 2, 0, 1], 3),
        ((0, 3), [], 2),
        ((0, 3), [], 0),
        ((4, 0), [0, 2, 0, 1], 3),
        ((4, 2), [0, -1, 5, 0], 6),
        ((2, 3, 5), [[0, 3, 1], [3, 3, -2]], 4),
        ((2, 3), [[0, 3, 1], [3, 3, 0]], 5),
        ((2, 1, 3, 1, 2, 1), [[1], [0]], 2),
        *([((100, 1000), [i * 7 % 50 for i in range(100)], 50)] if d.thorough else ()),
    ):
        yield {
            "data": d.T(*shape),
            "segment_ids": d.Tindices.const(ids),
            "num_segments": d.Tnumsegments.const(count),
        }


SPARSE_SEGMENTS = (
    ((4,), [0, 3, 3], [0, 0, 1]),
    ((4, 2), [2], [0]),
    ((4, 2), [], []),
    ((4, 0), [1, 0], [0, 2]),
    ((4, 2), [0, 1, 3, 2], [0, 0, 3, 3]),
    ((5, 1, 3, 2), [4, 4, 0], [1, 2, 2]),
    ((9, 3), [8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], [0] * 10 + [1, 2]),
)
"""Shapes of data, the rows to take, and the segment of each row."""


def sparse_segment_calls(d):
    for shape, indices, ids in SPARSE_SEGMENTS:
        yield {
            "data": d.T(*shape),
            "indices": d.Tidx.const(indices),
            "segment_ids": d.Tsegmentids.const(ids),
        }


@recipe("SparseSegmentMean SparseSegmentSqrtN SparseSegmentSum")
def sparse_segments(d):
    yield from sparse_segment_calls(d)
    for call in sparse_segment_calls(d):
        yield call | {"sparse_gradient": True}


@recipe(
    "SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments "
    "SparseSegmentSumWithNumSegments"
)
def sparse_segments_of_known_number(d):
    for count, sparse_gradient in ((4, False), (7, True)):
        for call in sparse_segment_calls(d):
            yield call | {
                "num_segments": d.Tnumsegments.const(count),
                "sparse_gradient": sparse_gradient,
            }


def sparse_segment_gradients(d, rows):
    for shape, indices, ids, size in (
        ((2,), [0, 3, 3], [0, 0, 1], 4),
        ((1, 2), [2], [0], 3),
        ((3, 0), [1, 0], [0, 2], 5),
        ((4, 2), [0, 1, 3, 2], [0, 0, 3, 3], 4),
        ((3, 1, 3, 2), [4, 4, 0], [1, 2, 2], 5),
        ((3, 3), [8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], [0] * 10 + [1, 2], 9),
        # Without indices, the rows of the result are undefined in the first version of the op.
        ((0, 2), [], [], 0),
    ):
        yield {
            "grad": d.T(*shape),
            "indices": d.Tidx.const(indices),
            "segment_ids": d.Tsegmentids.const(ids),
            rows: ints(size),
        }


@recipe("SparseSegmentMeanGrad SparseSegmentSqrtNGrad SparseSegmentSumGrad")
def sparse_segments_gradient(d):
    yield from sparse_segment_gradients(d, "output_dim0")


@recipe("SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2 SparseSegmentSumGradV2")
def sparse_segments_sparse_gradient(d):
    yield from sparse_segment_gradients(d, "dense_output_dim0")
    yield {
        "grad": d.T(2, 3),
        "indices": d.Tidx.const([]),
        "segment_ids": d.Tsegmentids.const([]),
        "dense_output_dim0": ints(4),
    }


# ---------------------------------------------------------------------------------------------
# Ranges
# ---------------------------------------------------------------------------------------------


@recipe("Range")
def numbers_in_order(d):
    rows = [(0, 5, 1), (5, 0, -2), (3, 3, 1), (-3, 100, 7)]
    if d.Tidx.dtype.is_floating:
        rows += [(0, 1, 0.3), (1, -1, -0.125)]
        # Very long ranges are left out, because they take all memory.
        rows += [(float("nan"), 1, 1), (0, float("inf"), 1), (0, 0, 0)] if d.special else []
    for row in rows:
        yield dict(zip(("start", "limit", "delta"), map(d.Tidx.const, row), strict=True))


@recipe("LinSpace")
def even_steps(d):
    for num in (1, 2, 3, 17, 1024):
        yield {"start": d.T(), "stop": d.T(), "num": d.Tidx.const(num)}


@recipe("SobolSample")
def sobol_sequence(d):
    for dim, num_results, skip in (
        (1, 1, 0),
        (3, 17, 5),
        (40, 9, 1000),
        *([(100, 3000, 7)] if d.thorough else ()),
    ):
        yield {"dim": ints(dim), "num_results": ints(num_results), "skip": ints(skip)}


# ---------------------------------------------------------------------------------------------
# Counts
# ---------------------------------------------------------------------------------------------


@recipe("Bincount")
def bincount(d):
    bins = d.of("int32")
    for shape, size in (((), 3), ((0,), 2), ((9,), 5), ((2, 3), 4), ((3,), 0), ((7, 1, 5), 9)):
        yield {"arr": bins.below(7, *shape), "size": ints(size), "weights": d.T(*shape)}
        yield {"arr": bins.below(7, *shape), "size": ints(size), "weights": d.T(0)}
    if d.thorough:
        # Sums of whole numbers do not depend on the order of threads.
        arr, weights = bins.below(50, *LARGE), d.T.below(2, *LARGE)
        yield {"arr": arr, "size": ints(40), "weights": weights}


@recipe("DenseBincount")
def dense_bincount(d):
    for shape, size in (((0,), 2), ((9,), 5), ((2, 3), 4), ((0, 3), 4), ((3, 0), 4), ((17, 9), 9)):
        for binary, weights in ((False, shape), (False, (0,)), (True, (0,)), (True, shape)):
            yield {
                "input": d.Tidx.below(7, *shape),
                "size": d.Tidx.const(size),
                "weights": d.T(*weights),
                "binary_output": binary,
            }


@recipe("RaggedBincount")
def ragged_bincount(d):
    for splits, size in (([0], 3), ([0, 0], 3), ([0, 4], 5), ([0, 2, 2, 9], 5)):
        for binary, weights in ((False, splits[-1]), (False, 0), (True, 0)):
            yield {
                "splits": longs(splits),
                "values": d.Tidx.below(7, splits[-1]),
                "size": d.Tidx.const(size),
                "weights": d.T(weights),
                "binary_output": binary,
            }


@recipe("SparseBincount")
def sparse_bincount(d):
    for indices, dense_shape, size in (
        ([[0], [3], [4]], [6], 5),
        ([[0, 1], [2, 0], [2, 1], [3, 3]], [4, 4], 5),
        ([[1, 1]], [3, 2], 0),
    ):
        for binary, weights in ((False, len(indices)), (False, 0), (True, 0)):
            yield {
                "indices": longs(indices),
                "values": d.Tidx.below(7, len(indices)),
                "dense_shape": longs(dense_shape),
                "size": d.Tidx.const(size),
                "weights": d.T(weights),
                "binary_output": binary,
            }


@recipe("HistogramFixedWidth")
def histogram(d):
    # An infinite range makes TensorFlow write out of bounds.
    for shape, nbins in (((), 3), ((0,), 4), ((9,), 5), ((5, 7), 1), ((1, 1024, 1), 100)):
        yield {"values": d.T(*shape), "value_range": d.T.const([-2, 3]), "nbins": ints(nbins)}


@recipe("Bucketize")
def bucketize(d):
    for shape in SIZES:
        yield {"input": d.T(*shape), "boundaries": [-1.0, 0.0, 2.5]}
    for boundaries in ([], [0.0], [0.0, 0.0, float("inf")], [float("-inf"), 1e-40, 3e38]):
        yield {"input": d.T(5, 7), "boundaries": boundaries}


# ---------------------------------------------------------------------------------------------
# Other dtypes
# ---------------------------------------------------------------------------------------------

FLOAT8 = (tf.as_dtype("float8_e5m2"), tf.as_dtype("float8_e4m3fn"))
INT4 = (tf.as_dtype("int4"), tf.as_dtype("uint4"))
CASTS = (
    *(tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.complex64, tf.complex128, tf.bool),
    *(tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64),
    *(tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32),
    *(*FLOAT8, *INT4),
)


def castable(one, other):
    if one == other:
        return True
    if tf.string in (one, other):
        return False
    if one in FLOAT8 or other in FLOAT8:
        return one.is_floating and other.is_floating
    if one in INT4 or other in INT4:
        return all(dtype.is_integer or dtype.is_quantized for dtype in (one, other))
    return True


@recipe("Cast")
def cast(d):
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {"x": d.SrcT(*shape)}
    # Not every combination is tested, so each tests several dtypes to cast to.
    for target in CASTS:
        if castable(d.SrcT.dtype, target):
            yield {"x": d.SrcT(5, 7), "DstT": target}
            yield {"x": d.SrcT(5, 7), "DstT": target, "Truncate": True}


mismatched(
    "Cast",
    "strings are cast to nothing, 8-bit floats only to floats, 4-bit integers only to integers",
    lambda types: not castable(types["SrcT"], types["DstT"]),
)


@recipe("QuantizeDownAndShrinkRange")
def shrink_range(d):
    for shape in ((), (0,), (3,), (5, 7), (1, 1024, 1), (2, 1, 3, 1, 2, 1)):
        for low, high in ((-1.0, 1.0), (0.0, 6.0), (-1e4, 3.0)):
            yield {
                "input": d.Tinput(*shape),
                "input_min": floats(low),
                "input_max": floats(high),
            }
