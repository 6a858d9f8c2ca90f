"""Sparse tensors, sets, ragged tensors, and counts that are sparse."""

from itertools import cycle, product

import numpy as np
import tensorflow as tf

from parity.draw import constant, ints, longs, strings
from parity.recipes import mismatched, recipe, rejected

BOTH = (False, True)

SHAPES = (
    ((6,), (0, 3, 4)),
    ((4, 4), (1, 8, 9, 15)),
    ((3, 2), ()),
    ((0, 3), ()),
    ((2, 1, 3), (0, 5)),
    ((2, 1, 3, 1, 2), (0, 3, 11)),
)
"""Dense shapes, and the numbers of the elements in a sparse tensor."""

LARGE = ((100, 1000), tuple(range(0, 100000, 37)))


def shapes(d):
    return (*SHAPES, *((LARGE,) if d.thorough else ()))


def coordinates(shape, places):
    """Return the coordinates of elements, given by number."""
    return longs(np.stack(np.unravel_index(np.array(places, np.int64), shape), axis=-1))


def sparse(maker, shape, places, names="indices values shape"):
    """Return a sparse tensor as three arguments with these names."""
    parts = coordinates(shape, places), maker(len(places)), longs(shape)
    return dict(zip(names.split(), parts, strict=True))


# ---------------------------------------------------------------------------------------------
# Sums and comparisons
# ---------------------------------------------------------------------------------------------

INPUT = "input_indices input_values input_shape"
SP = "sp_indices sp_values sp_shape"
A = "a_indices a_values a_shape"
B = "b_indices b_values b_shape"

PAIRS = (
    ((6,), (0, 3, 4), (1, 3)),
    ((4, 4), (1, 8, 9, 15), ()),
    ((4, 4), (), (0, 1)),
    ((4, 4), (), ()),
    ((0, 3), (), ()),
    ((2, 1, 3), (0, 5), (0, 5)),
    ((2, 1, 3, 1, 2, 1, 2), (0, 3, 11), (1, 2, 3, 23)),
)
"""Dense shapes, and the numbers of the elements in two sparse tensors."""


def pairs(d):
    return (*PAIRS, *([(*LARGE, range(0, 100000, 41))] if d.thorough else ()))


def too_narrow(types):
    """Tell whether the kernel reads a threshold past its end, assuming the dtype of values."""
    return types["Treal"].size < types["T"].real_dtype.size


@recipe("SparseAdd")
def sparse_sum(d):
    if too_narrow(d.types):
        return
    for (shape, *places), thresh in product(pairs(d), (0, 5)):
        one, other = (
            sparse(d.T, shape, held, names) for held, names in zip(places, (A, B), strict=True)
        )
        yield one | other | {"thresh": d.Treal.const(thresh)}


mismatched("SparseAdd", "the kernel reads a narrower threshold past its end", too_narrow)


@recipe("SparseAddGrad")
def sparse_sum_gradient(d):
    for shape, held, other in pairs(d):
        union = sorted({*held, *other})
        for kept in (union, union[1:]):
            yield {
                "backprop_val_grad": d.T(len(kept)),
                "a_indices": coordinates(shape, held),
                "b_indices": coordinates(shape, other),
                "sum_indices": coordinates(shape, kept),
            }


@recipe("SparseSparseMaximum SparseSparseMinimum")
def extremes(d):
    for shape, held, other in pairs(d):
        yield sparse(d.T, shape, held, A) | sparse(d.T, shape, other, B)


@recipe("SparseTensorDenseAdd")
def sparse_and_dense_sum(d):
    for shape, places in shapes(d):
        if len(shape) == 5 or not shape[0]:
            continue
        yield {
            "a_indices": d.Tindices.const(coordinates(shape, places)),
            "a_values": d.T(len(places)),
            "a_shape": d.Tindices.const(shape),
            "b": d.T(*shape),
        }


def with_dense(d, dense):
    for shape, places in shapes(d):
        for other in (shape, shape[1:], (*shape[:-1], 1), ()):
            yield sparse(d.T, shape, places, SP) | {"dense": dense(*other)}


@recipe("SparseDenseCwiseAdd SparseDenseCwiseMul")
def with_dense_that_broadcasts(d):
    yield from with_dense(d, d.T)


@recipe("SparseDenseCwiseDiv")
def quotient_by_dense(d):
    # Dividing the smallest integer by -1 ends the process.
    yield from with_dense(d, d.T if d.T.dtype.is_floating and d.special else d.T.positive)


@recipe("SparseTensorDenseMatMul")
def sparse_product(d):
    for (m, k, n), places in (
        ((4, 3, 5), (0, 4, 11)),
        ((4, 3, 5), (11, 0, 0)),
        ((4, 3, 5), ()),
        ((3, 2, 0), (1,)),
        ((0, 2, 3), ()),
        ((2, 5, 40), (0, 1, 4, 9)),
        *([((100, 1000, 10), LARGE[1])] if d.thorough else ()),
    ):
        for adjoint_a, adjoint_b in product(BOTH, BOTH):
            shape = (k, m) if adjoint_a else (m, k)
            yield {
                "a_indices": d.Tindices.const(coordinates(shape, places)),
                "a_values": d.T(len(places)),
                "a_shape": longs(shape),
                "b": d.T(*((n, k) if adjoint_b else (k, n))),
                "adjoint_a": adjoint_a,
                "adjoint_b": adjoint_b,
            }


# ---------------------------------------------------------------------------------------------
# Reductions
# ---------------------------------------------------------------------------------------------


@recipe("SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse")
def reductions(d):
    for shape, places, axes in (
        ((6,), (0, 3, 4), 0),
        ((6,), (), [0]),
        ((4, 4), (1, 8, 9, 15), 0),
        ((4, 4), (1, 8, 9, 15), [-1]),
        ((4, 4), (15, 9, 1, 8), [0, 1]),
        ((4, 4), (1, 8, 9, 15), []),
        ((0, 3), (), [0]),
        ((2, 3, 4), (0, 3, 11, 23), [2, 0]),
        ((2, 1, 3, 1, 2), (0, 3, 11), [1, -1]),
        *([(*LARGE, 0), (*LARGE, [1])] if d.thorough else ()),
    ):
        for keep_dims in BOTH:
            yield sparse(d.T, shape, places, INPUT) | {
                "reduction_axes": ints(axes),
                "keep_dims": keep_dims,
            }


@recipe("SparseSoftmax")
def sparse_softmax(d):
    for shape, places in shapes(d)[1:]:
        yield sparse(d.T, shape, places, SP)


# ---------------------------------------------------------------------------------------------
# Parts
# ---------------------------------------------------------------------------------------------


@recipe("SparseConcat")
def sparse_concat(d):
    for axis, *parts in (
        (0, *SHAPES[:1] * 2),
        (0, ((2, 3), (0, 4)), ((4, 3), ()), ((0, 3), ()), ((1, 3), (2,))),
        (1, ((3, 2), (0, 5)), ((3, 5), (1, 3, 14))),
        (-1, ((2, 1, 3, 1, 2), (0, 3, 11)), ((2, 1, 3, 1, 1), (1, 2))),
        (-3, ((2, 1, 3), (5, 0)), ((3, 1, 3), (1, 8))),
        *([(1, LARGE, LARGE, LARGE)] if d.thorough else ()),
    ):
        rows = [sparse(d.T, *part, "indices values shapes") for part in parts]
        yield {name: [row[name] for row in rows] for name in rows[0]} | {"concat_dim": axis}


@recipe("SparseSplit")
def sparse_split(d):
    for shape, places, axis, parts in (
        ((6,), (0, 3, 4), 0, 1),
        ((6,), (0, 3, 4), 0, 6),
        ((4, 5), (1, 8, 9, 15), 1, 2),
        ((4, 5), (1, 8, 9, 15), -2, 3),
        ((3, 2), (), 0, 2),
        ((2, 1, 3, 1, 2), (0, 3, 11), 2, 3),
        *([(*LARGE, 1, 10)] if d.thorough else ()),
    ):
        yield sparse(d.T, shape, places) | {"split_dim": longs(axis), "num_split": parts}


SLICES = (
    ((6,), (0, 3, 4), (3,), (2,)),
    ((6,), (0, 3, 4), (1,), (2,)),
    ((6,), (0, 3, 4), (4,), (9,)),
    ((4, 4), (1, 8, 9, 15), (0, 0), (4, 4)),
    ((4, 4), (1, 8, 9, 15), (2, 0), (2, 2)),
    ((3, 2), (), (1, 1), (1, 1)),
    ((2, 1, 3, 1, 2), (0, 3, 11), (0, 0, 1, 0, 1), (2, 1, 2, 1, 1)),
)
"""Dense shapes, elements, and the start and size of a slice."""


@recipe("SparseSlice")
def sparse_slice(d):
    for shape, places, start, size in SLICES:
        yield sparse(d.T, shape, places) | {"start": longs(start), "size": longs(size)}


@recipe("SparseSliceGrad")
def sparse_slice_gradient(d):
    for shape, places, start, size in SLICES:
        indices = coordinates(shape, places).numpy()
        inside = ((indices >= start) & (indices < np.add(start, size))).all(1)
        yield {
            "backprop_val_grad": d.T(int(inside.sum())),
            "input_indices": longs(indices),
            "input_start": longs(start),
            "output_indices": longs(indices[inside] - start),
        }


@recipe("SparseReorder")
def sparse_reorder(d):
    for shape, places in shapes(d):
        yield sparse(d.T, shape, places, INPUT)
        yield sparse(d.T, shape, places[::-1], INPUT)
    yield sparse(d.T, (4, 4), (15, 1, 9, 8), INPUT)


@recipe("SparseReshape")
def sparse_reshape(d):
    for shape, places, target in (
        ((6,), (0, 3, 4), [2, 3]),
        ((6,), (0, 3, 4), [6]),
        ((4, 4), (1, 8, 9, 15), [2, -1, 4]),
        ((4, 4), (1, 8, 9, 15), [-1]),
        ((3, 2), (), [6, 1]),
        ((0, 3), (), [3, 0]),
        ((2, 1, 3, 1, 2), (0, 3, 11), [4, -1]),
        *([(*LARGE, [1000, 10, -1])] if d.thorough else ()),
    ):
        yield {
            "input_indices": coordinates(shape, places),
            "input_shape": longs(shape),
            "new_shape": longs(target),
        }


# ---------------------------------------------------------------------------------------------
# Rows without elements
# ---------------------------------------------------------------------------------------------


@recipe("SparseFillEmptyRows")
def fill_empty_rows(d):
    for shape, places in (*shapes(d), ((4, 4), (15, 1, 9, 8)), ((3, 2), (0, 2, 5))):
        call = sparse(d.T, shape, places, "indices values dense_shape")
        yield call | {"default_value": d.T()}


@recipe("RaggedFillEmptyRows")
def fill_empty_ragged_rows(d):
    for rows, count in (
        ([0, 0, 2], 4),
        ([0, 1, 1, 2], 3),
        ([2, 0, 2], 3),
        ([], 2),
        ([], 0),
        *([(range(0, 3000, 2), 3000)] if d.thorough else ()),
    ):
        yield {
            "value_rowids": longs(rows),
            "values": d.T(len(rows)),
            "nrows": longs(count),
            "default_value": d.T(),
        }


@recipe("SparseFillEmptyRowsGrad RaggedFillEmptyRowsGrad")
def fill_empty_rows_gradient(d):
    for places, count in (([0, 1, 3], 5), ([3, 0, 4], 5), ([0, 1], 2), ([], 3), ([], 0)):
        yield {"reverse_index_map": longs(places), "grad_values": d.T(count)}


# ---------------------------------------------------------------------------------------------
# Dense from sparse, strings from sparse
# ---------------------------------------------------------------------------------------------


@recipe("SparseToDense")
def sparse_to_dense(d):
    for indices, shape, count in (
        (2, [5], ()),
        ([1, 3], [5], (2,)),
        ([1, 3, 4], [5], ()),
        ([[0, 1], [2, 0]], [3, 2], (2,)),
        ([[0, 1], [2, 0]], [3, 2], ()),
        (np.zeros((0, 2)), [3, 2], (0,)),
        (np.zeros((0, 2)), [0, 2], (0,)),
        ([[1, 0, 2, 0, 0, 1]], [2, 1, 3, 1, 1, 2], (1,)),
        *([(coordinates(*LARGE), LARGE[0], (len(LARGE[1]),))] if d.thorough else ()),
    ):
        yield {
            "sparse_indices": d.Tindices.const(indices),
            "output_shape": d.Tindices.const(shape),
            "sparse_values": d.T(*count),
            "default_value": d.T(),
        }
    yield {
        "sparse_indices": d.Tindices.const([[2, 0], [0, 1], [2, 0]]),
        "output_shape": d.Tindices.const([3, 2]),
        "sparse_values": d.T(3),
        "default_value": d.T(),
        "validate_indices": False,
    }


SPARSE = "sparse_indices sparse_values sparse_shape"


@recipe("SerializeSparse")
def serialize_sparse(d):
    for shape, places in shapes(d):
        yield sparse(d.T, shape, places, SPARSE)


@recipe("SerializeManySparse")
def serialize_rows(d):
    for shape, places in shapes(d)[1:]:
        if shape[0]:
            yield sparse(d.T, shape, places, SPARSE)


def serialized(maker, *tensors):
    """Return serialized sparse tensors, one per row."""
    return tf.stack(
        [tf.raw_ops.SerializeSparse(**sparse(maker, *tensor, SPARSE)) for tensor in tensors]
    )


ROWS = (((4, 4), (1, 8, 9, 15)), ((4, 3), (0, 11)), ((2, 7), ()))


@recipe("DeserializeSparse")
def deserialize_sparse(d):
    for shape, places in shapes(d):
        yield {"serialized_sparse": serialized(d.dtype, (shape, places))[0]}
    if concatenated(d.dtype.dtype):
        yield {"serialized_sparse": serialized(d.dtype, *ROWS)}
        rows = serialized(d.dtype, *ROWS, ROWS[0])
        yield {"serialized_sparse": tf.reshape(rows, [2, 1, 2, 3])}


@recipe("DeserializeManySparse")
def deserialize_rows(d):
    if concatenated(d.dtype.dtype):
        yield {"serialized_sparse": serialized(d.dtype, ((6,), (0, 3, 4)))}
        yield {"serialized_sparse": serialized(d.dtype, *ROWS)}
        yield {"serialized_sparse": serialized(d.dtype, *[((2, 1, 3), (0, 5))] * 5)}


UNCONCATENATED = "float8_e5m2 float8_e4m3fn int4 uint4 qint16 quint16"

rejected(
    "DeserializeManySparse",
    "the kernel does not concatenate sparse tensors of this dtype",
    dtype=UNCONCATENATED,
)


def concatenated(dtype):
    return dtype.name not in UNCONCATENATED.split()


# ---------------------------------------------------------------------------------------------
# Crosses
# ---------------------------------------------------------------------------------------------

COLUMNS = (
    (((2, 3), (0, 4)),),
    (((2, 3), (0, 1, 4)), ((2, 2), (1, 2, 3))),
    (((3, 2), (0, 3, 4)), ((3, 4), (1, 5, 6, 8)), ((3, 1), ())),
    (((0, 2), ()),),
)
"""Sparse features of examples, for each call and each column."""

LARGE_COLUMNS = ((LARGE[0], LARGE[1][:200]),) * 2


def crosses(d, kinds):
    """Yield sparse and dense features of crosses, with alternating dtypes."""
    tables = (*COLUMNS, *([LARGE_COLUMNS] if d.thorough else ()))
    for columns, order in product(tables, sorted({kinds, kinds[::-1]})):
        makers = [d.of(kind) for kind, _ in zip(cycle(order), columns, strict=False)]
        features = [
            sparse(maker, *column, "indices values shapes")
            for maker, column in zip(makers, columns, strict=True)
        ]
        call = {name: [feature[name] for feature in features] for name in features[0]}
        rows = columns[0][0][0]
        for dense in ([], [makers[0](rows, 2)], [maker(rows, 1) for maker in makers]):
            yield call | {"dense_inputs": dense}
    yield {
        "indices": [],
        "values": [],
        "shapes": [],
        "dense_inputs": [d.of(kind)(3, width) for width, kind in enumerate(kinds, 1)],
    }


@recipe("SparseCross")
def sparse_cross(d):
    hashed = d.out_type.dtype == tf.int64
    kinds = ("string",) if d.internal_type.dtype == tf.string else ("string", "int64")
    for call in crosses(d, kinds):
        for num_buckets, hash_key in ((0, 0), (7, 956888297470)):
            yield call | {
                "hashed_output": hashed,
                "num_buckets": num_buckets,
                "hash_key": hash_key,
            }


@recipe("SparseCrossHashed")
def sparse_cross_hashed(d):
    for call in crosses(d, ("string", "int64")):
        whole = any(tensor.dtype == tf.int64 for tensor in call["dense_inputs"])
        for num_buckets, strong in ((0, False), (7, True)):
            yield call | {
                "num_buckets": longs(num_buckets),
                # The strong hash treats dense whole numbers as addresses.
                "strong_hash": constant(strong and not whole, tf.bool),
                "salt": longs(1, -5),
            }


@recipe("SparseCrossV2")
def sparse_cross_joined(d):
    for call, sep in product(crosses(d, ("string",)), ("", "_X_", b"\0\xff")):
        yield call | {"sep": strings(sep)}


@recipe("RaggedCross")
def ragged_cross(d):
    splits = d.out_row_splits_type
    columns = {
        "R": (d.of("string")(4), splits.const([0, 2, 2, 4])),
        "r": (d.of("int64")(3), splits.const([0, 1, 3, 3])),
        "S": sparse(d.of("string"), (3, 2), (0, 3, 4)),
        "s": sparse(d.of("int64"), (3, 4), (1, 5, 6, 8)),
        "D": d.of("string")(3, 2),
        "d": d.of("int64")(3, 1),
    }
    for order in ("R", "r", "S", "d", "Rr", "sS", "Dd", "RSD", "dSrRsD"):
        ragged = [columns[kind] for kind in order if kind in "Rr"]
        held = [columns[kind] for kind in order if kind in "Ss"]
        for num_buckets, hash_key in ((0, 0), (7, -3)):
            yield {
                "ragged_values": [values for values, _ in ragged],
                "ragged_row_splits": [row_splits for _, row_splits in ragged],
                "sparse_indices": [column["indices"] for column in held],
                "sparse_values": [column["values"] for column in held],
                "sparse_shape": [column["shape"] for column in held],
                "dense_inputs": [columns[kind] for kind in order if kind in "Dd"],
                "input_order": order.upper(),
                "hashed_output": d.out_values_type.dtype == tf.int64,
                "num_buckets": num_buckets,
                "hash_key": hash_key,
            }


# ---------------------------------------------------------------------------------------------
# Sets
# ---------------------------------------------------------------------------------------------

OPERATIONS = ("a-b", "b-a", "intersection", "union", "Union")

SETS = (
    ((1, 4), (0, 1, 3), 3, (0, 2)),
    ((3, 4), (0, 1, 4, 6), 2, (0, 3)),
    ((3, 4), (), 5, ()),
    ((2, 1, 3), (0, 4, 5), 4, (0, 1, 7)),
    ((0, 3), (), 2, ()),
    ((2, 0), (), 3, (5,)),
)
"""Shapes and elements of the first sets, and width and elements of the second sets."""


def set_operations(*rows):
    for row, operation, validate in product(rows, OPERATIONS, BOTH):
        yield row | {"set_operation": operation, "validate_indices": validate}


@recipe("DenseToDenseSetOperation")
def dense_sets(d):
    yield from set_operations(
        *({"set1": d.T(*shape), "set2": d.T(*shape[:-1], width)} for shape, _, width, _ in SETS)
    )


SET1 = "set1_indices set1_values set1_shape"
SET2 = "set2_indices set2_values set2_shape"


@recipe("DenseToSparseSetOperation")
def dense_and_sparse_sets(d):
    yield from set_operations(
        *(
            {"set1": d.T(*shape)} | sparse(d.T, (*shape[:-1], width), other, SET2)
            for shape, _, width, other in SETS
        )
    )


@recipe("SparseToSparseSetOperation")
def sparse_sets(d):
    yield from set_operations(
        *(
            sparse(d.T, shape, places, SET1) | sparse(d.T, (*shape[:-1], width), other, SET2)
            for shape, places, width, other in SETS
        )
    )


@recipe("SetSize")
def set_sizes(d):
    for (shape, places, _, _), validate in product(SETS, BOTH):
        yield sparse(d.T, shape, places, "set_indices set_values set_shape") | {
            "validate_indices": validate
        }


# ---------------------------------------------------------------------------------------------
# Ragged tensors
# ---------------------------------------------------------------------------------------------

NESTED = (
    ([[0, 2, 2, 5]], (5,)),
    ([[0]], (0,)),
    ([[0, 0]], (0, 2)),
    ([[0, 3]], (3, 2, 1)),
    ([[0, 2, 3], [0, 1, 1, 4]], (4,)),
    ([[0, 2], [0, 0, 3], [0, 2, 2, 4]], (4, 3)),
)
"""The row splits of ragged tensors, outermost first, and the shapes of their values."""


@recipe("RaggedGather")
def ragged_gather(d):
    for splits, shape in NESTED:
        rows = len(splits[0]) - 1
        for indices in ((), (0,), (4,), (2, 3), (2, 1, 3)):
            if rows or 0 in indices:
                yield {
                    "params_nested_splits": [d.Tsplits.const(split) for split in splits],
                    "params_dense_values": d.Tvalues(*shape),
                    "indices": d.Tindices.below(max(rows, 1), *indices),
                    "OUTPUT_RAGGED_RANK": len(splits) + len(indices) - 1,
                }


@recipe("RaggedRange")
def ragged_range(d):
    rows = [
        (0, 5, 2),
        ([0, 5, 8], [3, 5, -8], [1, 2, -3]),
        ([0, 3], 7, [2, 2]),
        (1, [5, 0, -3], 2),
        ([], [], 1),
        (0, 0, 3),
    ]
    if d.T.dtype.is_floating:
        rows += [(0, 1, 0.3), ([1, -0.0], -1, -0.125)]
        # Very long ranges are left out, because they take all memory.
        rows += [(0, np.inf, 1), (0, 1, np.inf), (0, 1, 0), (0, 1, -0.0)] if d.special else []
    for row in rows:
        yield dict(zip(("starts", "limits", "deltas"), map(d.T.const, row), strict=True))


@recipe("RaggedTensorToSparse")
def ragged_to_sparse(d):
    for splits, shape in NESTED:
        yield {
            "rt_nested_splits": [d.Tsplits.const(split) for split in splits],
            "rt_dense_values": d.T(*shape),
        }


@recipe("RaggedTensorToTensor")
def ragged_to_dense(d):
    for shape, values, default, kinds, *partitions in (
        ([-1, -1], (5,), (), "ROW_SPLITS", [0, 2, 2, 5]),
        ([4, 2], (5,), (), "ROW_SPLITS", [0, 2, 2, 5]),
        (-1, (5,), (), "ROW_SPLITS", [0, 2, 2, 5]),
        ([-1, -1], (5,), (), "FIRST_DIM_SIZE VALUE_ROWIDS", 4, [0, 0, 2, 2, 3]),
        ([2, 7], (5,), (), "FIRST_DIM_SIZE VALUE_ROWIDS", 4, [0, 0, 2, 2, 3]),
        ([-1, -1], (0,), (), "ROW_SPLITS", [0, 0, 0]),
        ([0, -1], (0,), (), "ROW_SPLITS", [0]),
        ([-1, -1, 2], (5, 2), (), "ROW_SPLITS", [0, 2, 2, 5]),
        ([-1, 4, -1], (5, 2), (2,), "ROW_SPLITS", [0, 2, 2, 5]),
        ([-1, -1, -1, 3], (2, 2, 3), (2, 1), "ROW_SPLITS", [0, 0, 2]),
        ([-1] * 3, (4,), (), "ROW_SPLITS ROW_SPLITS", [0, 2, 3], [0, 1, 1, 4]),
        ([-1] * 3, (4,), (), "FIRST_DIM_SIZE VALUE_ROWIDS ROW_SPLITS", 2, [0, 1], [0, 1, 4]),
        ([-1] * 3, (3,), (), "FIRST_DIM_SIZE VALUE_ROWIDS VALUE_ROWIDS", 2, [0, 1], [0, 1, 1]),
    ):
        yield {
            "shape": d.Tshape.const(shape),
            "values": d.T(*values),
            "default_value": d.T(*default),
            "row_partition_tensors": [d.Tindex.const(partition) for partition in partitions],
            "row_partition_types": kinds.split(),
        }


# ---------------------------------------------------------------------------------------------
# Counts
# ---------------------------------------------------------------------------------------------

LENGTHS = ((-1, -1), (9, -1), (-1, 3), (2, 20))
"""The minimum and the maximum length of the counts."""


def counts(d, *calls):
    """Yield calls with and without weights, and with all lengths."""
    for call, (minlength, maxlength) in product(calls, LENGTHS):
        weights = d.output_type(*call["values"].shape)
        for binary, used in ((False, weights), (False, weights[:0]), (True, weights[:0])):
            yield call | {
                "weights": used,
                "minlength": minlength,
                "maxlength": maxlength,
                "binary_output": binary,
            }


@recipe("DenseCountSparseOutput")
def dense_counts(d):
    shapes = ((0,), (7,), (3, 5), (3, 0), (1, 40))
    yield from counts(d, *({"values": d.T.below(7, *shape)} for shape in shapes))


@recipe("SparseCountSparseOutput")
def sparse_counts(d):
    yield from counts(
        d,
        *(
            sparse(lambda count: d.T.below(7, count), shape, places, "indices values dense_shape")
            for shape, places in SHAPES
            if shape[0]
        ),
    )


@recipe("RaggedCountSparseOutput")
def ragged_counts(d):
    yield from counts(
        d,
        *(
            {"splits": longs(splits), "values": d.T.below(7, splits[-1])}
            for splits in ([0, 4], [0, 0], [0, 2, 2, 9], [0, 0, 1])
        ),
    )
