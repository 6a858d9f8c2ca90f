"""Ops on variables and tables: reads, writes, gathers, scatters, steps of optimizers."""

from itertools import product

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ops.resource_variable_ops import UninitializedVariable

from parity.draw import WORDS, ints, longs
from parity.recipes import MANY, SIZES, mismatched, recipe, rejected

BOTH = (False, True)


def sizes(d):
    return (*SIZES, *((MANY,) if d.thorough else ()))


# ---------------------------------------------------------------------------------------------
# Variables
# ---------------------------------------------------------------------------------------------


def unset(d, dtype, shape):
    """Make a variable without a value, which a call assigns; return its handle."""
    d.variables.append(UninitializedVariable(dtype=dtype, shape=shape))
    return d.variables[-1].handle


def gathered(d, value):
    """Make a variable whose reads return copies, as after a gather."""
    handle = d.variable(value)
    tf.raw_ops.ResourceGather(resource=handle, indices=ints([]), dtype=value.dtype)
    return handle


@recipe("VarHandleOp")
def without_a_name(d):
    """Yield only calls without a shared name; calls with a shared name fall back."""
    for shape in ([], [3], [2, None], None):
        yield {"shape": shape, "shared_name": context.anonymous_name(), "debug_name": "weight"}


NOT_HELD = (tf.qint16, tf.quint16)
"""Dtypes that variables cannot have: AssignVariableOp has no kernel for them."""


@recipe("ReadVariableOp")
def read(d):
    if d.dtype.dtype in NOT_HELD:
        return
    for shape in sizes(d):
        yield {"resource": d.variable(d.dtype(*shape))}
    if d.dtype.dtype in (tf.float32, tf.int32, tf.string):
        yield {"resource": gathered(d, d.dtype(3))}


@recipe("DisableCopyOnRead")
def disable_copy(d):
    for dtype in ("float32", "int64", "string"):
        yield {"resource": d.variable(d.of(dtype)(2, 3))}
        yield {"resource": gathered(d, d.of(dtype)(3))}
    yield {"resource": UninitializedVariable(dtype=tf.float32, shape=[2]).handle}


rejected("ReadVariableOp", "variables cannot have this dtype", dtype="qint16 quint16")


@recipe("AssignVariableOp")
def assign(d):
    for shape in sizes(d):
        yield {"resource": d.variable(d.dtype(*shape)), "value": d.dtype(*shape)}
    yield {
        "resource": d.variable(d.dtype(2, 3)),
        "value": d.dtype(2, 3),
        "validate_shape": True,
    }
    for validate in BOTH:
        yield {
            "resource": unset(d, d.dtype.dtype, [3]),
            "value": d.dtype(3),
            "validate_shape": validate,
        }
    yield {"resource": unset(d, d.dtype.dtype, None), "value": d.dtype(2, 3)}
    yield {"resource": d.variable(d.dtype(3)), "value": d.variables[-1].read_value()}
    yield {"resource": d.variable(d.dtype(3)), "value": d.dtype(4)}


@recipe("AssignAddVariableOp AssignSubVariableOp")
def assign_more(d):
    for shape in sizes(d):
        yield {"resource": d.variable(d.dtype(*shape)), "value": d.dtype(*shape)}
    yield {"resource": gathered(d, d.dtype(3)), "value": d.dtype(3)}
    # The variable, its first value and the value to add share memory.
    value = d.dtype(3)
    yield {"resource": d.variable(value), "value": value}
    yield {"resource": d.variable(d.dtype(3)), "value": d.variables[-1].read_value()}


@recipe("VarIsInitializedOp")
def is_initialized(d):
    yield {"resource": d.variable(d.of("float32")(2))}
    yield {"resource": d.variable(d.of("string")())}
    yield {"resource": UninitializedVariable(dtype=tf.float32, shape=[2]).handle}


@recipe("VariableShape")
def variable_shape(d):
    for dtype, shape in product(("float32", "string", "int64"), sizes(d)):
        yield {"input": d.variable(d.of(dtype)(*shape))}


@recipe("ResourceCountUpTo")
def count_up(d):
    for value in (-1, 0, 6):
        yield {"resource": d.variable(d.T.const(value)), "limit": 7}


# ---------------------------------------------------------------------------------------------
# Gathers and scatters
# ---------------------------------------------------------------------------------------------

GATHERS = (
    ((5,), (), 0),
    ((5,), (7,), 0),
    ((5, 3), (4,), 0),
    ((5, 3), (2, 3), 0),
    ((5, 3), (0,), 0),
    ((5, 0), (4,), 0),
    ((1, 1024, 1), (3,), 0),
    ((1024, 1), (33,), 0),
    ((2, 1, 3, 1, 2, 1, 2), (3,), 0),
    ((2, 5), (2, 3), 1),
    ((2, 5, 3), (2, 4), 1),
    ((2, 3, 5, 2), (2, 3, 4), 2),
)
"""Shapes of a variable and of the indices, and the number of batch axes."""


@recipe("ResourceGather")
def gather(d):
    for shape, indices, batch_dims in (*GATHERS, *(((MANY, (500,), 0),) if d.thorough else ())):
        yield {
            "resource": d.variable(d.dtype(*shape)),
            "indices": d.Tindices.below(shape[batch_dims], *indices),
            "batch_dims": batch_dims,
        }
    yield {
        "resource": d.variable(d.dtype(5, 2)),
        "indices": d.Tindices.below(5, 3),
        "validate_indices": False,
    }


SCATTERS = (
    ((5,), ()),
    ((5,), (7,)),
    ((5, 3), ()),
    ((5, 3), (8,)),
    ((5, 3), (2, 4)),
    ((5, 3), (0,)),
    ((5, 0), (4,)),
    ((4, 2, 2), (3,)),
    ((1024, 1), (33,)),
    ((1, 1024, 1), (2,)),
)
"""Shapes of a variable, and row indices, some of which occur more than once."""


def scatters(d, draw):
    for shape, places in SCATTERS:
        indices = d.Tindices.below(shape[0], *places)
        variable = d.dtype(*shape)
        yield {
            "resource": d.variable(variable),
            "indices": indices,
            "updates": draw(*places, *shape[1:]),
        }
        yield {"resource": d.variable(variable), "indices": indices, "updates": draw()}
    if d.thorough:
        # No row occurs twice, because threads process rows in parallel.
        indices = d.Tindices.const(d.generator().permutation(MANY[0]))
        yield {"resource": d.variable(d.dtype(*MANY)), "indices": indices, "updates": draw(*MANY)}


@recipe("ResourceScatterAdd ResourceScatterSub ResourceScatterMul ResourceScatterMin")
@recipe("ResourceScatterMax ResourceScatterUpdate")
def scatter(d):
    yield from scatters(d, d.dtype)


@recipe("ResourceScatterDiv")
def scatter_div(d):
    def divisor(*shape):
        """Draw numbers without 0 and -1, by which the smallest integer cannot be divided."""
        values = d.dtype.nonzero(*shape).numpy()
        return d.dtype.const(np.where(values == -1, values.dtype.type(1), values))

    yield from scatters(d, divisor)


PLACES = (
    ((5,), (7, 1)),
    ((5, 3), (4, 1)),
    ((5, 3), (4, 2)),
    ((5, 3), (2, 4, 2)),
    ((5, 3), (0, 1)),
    ((5, 0), (0, 1)),
    ((4, 2, 3), (3, 2)),
    ((1, 1024, 1), (33, 3)),
    ((2, 1, 3, 1, 2, 1, 2), (5, 7)),
)
"""Shapes of a variable and of coordinates in it; the last dimension is one point."""

MANY_PLACES = ((MANY, (90, 1)), (MANY, (1000, 3)))


def coordinates(d, shape, places):
    """Draw coordinates within a shape."""
    *count, depth = places
    axes = [d.generator().integers(0, shape[axis], count) for axis in range(depth)]
    return d.Tindices.const(np.stack(axes, -1) if axes else np.zeros(places))


@recipe("ResourceGatherNd")
def gather_nd(d):
    rows = (((5,), (1,)), ((5, 3), (2, 0)), *PLACES, *(MANY_PLACES if d.thorough else ()))
    for shape, places in rows:
        yield {
            "resource": d.variable(d.dtype(*shape)),
            "indices": coordinates(d, shape, places),
        }


@recipe("ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMin ResourceScatterNdMax")
@recipe("ResourceScatterNdUpdate")
def scatter_nd(d):
    rows = (*PLACES, *(MANY_PLACES if d.thorough else ()))
    for (shape, places), locking in product(rows, BOTH):
        yield {
            "ref": d.variable(d.T(*shape)),
            "indices": coordinates(d, shape, places),
            "updates": d.T(*places[:-1], *shape[places[-1] :]),
            "use_locking": locking,
        }
    for policy in ("", "DEFAULT", "ERROR", "IGNORE"):
        bad = 7 if policy == "IGNORE" else 4
        yield {
            "ref": d.variable(d.T(5, 2)),
            "indices": d.Tindices.const([[1], [bad], [1]]),
            "updates": d.T(3, 2),
            "bad_indices_policy": policy,
        }


# ---------------------------------------------------------------------------------------------
# Steps of optimizers
# ---------------------------------------------------------------------------------------------

RATES = {
    "alpha": 0.25,
    "beta": 0.75,
    "beta1": 0.75,
    "beta1_power": 0.5,
    "beta2": 0.875,
    "beta2_power": 0.75,
    "epsilon": 0.0625,
    "l1": 0.125,
    "l2": 0.25,
    "l2_shrinkage": 0.125,
    "logbase": 1.5,
    "lr": 0.25,
    "lr_power": -0.5,
    "momentum": 0.75,
    "rho": 0.875,
    "sign_decay": 0.5,
}
"""Values of the hyperparameters of optimizers. A name has the same meaning in every op."""

OTHER_RATES = RATES | {"l1": 0.0, "l2": 0.0, "lr_power": -0.25, "momentum": 0.0}
"""Values for which kernels use other code."""

OPTIMIZERS = {
    "AdaMax": ("m v", "beta1_power lr beta1 beta2 epsilon", ""),
    "Adadelta": ("accum accum_update", "lr rho epsilon", ""),
    "Adagrad": ("accum", "lr", "update_slots"),
    "AdagradDA": ("gradient_accumulator gradient_squared_accumulator", "lr l1 l2", ""),
    "AdagradV2": ("accum", "lr epsilon", "update_slots"),
    "Adam": ("m v", "beta1_power beta2_power lr beta1 beta2 epsilon", "use_nesterov"),
    "AdamWithAmsgrad": ("m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon", ""),
    "AddSign": ("m", "lr alpha sign_decay beta", ""),
    "CenteredRMSProp": ("mg ms mom", "lr rho momentum epsilon", ""),
    "Ftrl": ("accum linear", "lr l1 l2 lr_power", "multiply_linear_by_lr"),
    "FtrlV2": ("accum linear", "lr l1 l2 l2_shrinkage lr_power", "multiply_linear_by_lr"),
    "GradientDescent": ("", "alpha", ""),
    "KerasMomentum": ("accum", "lr momentum", "use_nesterov"),
    "Momentum": ("accum", "lr momentum", "use_nesterov"),
    "PowerSign": ("m", "lr logbase sign_decay beta", ""),
    "ProximalAdagrad": ("accum", "lr l1 l2", ""),
    "ProximalGradientDescent": ("", "alpha l1 l2", ""),
    "RMSProp": ("ms mom", "lr rho momentum epsilon", ""),
}
"""By optimizer, the variables besides ``var``, the hyperparameters, and a specific attribute."""

DENSE_ONLY = ("AdaMax", "Adam", "AdamWithAmsgrad", "AddSign", "GradientDescent", "PowerSign")
"""Optimizers without a sparse op."""

DENSE_STEPS = (
    # Shape, use_locking, the specific attribute, hyperparameters.
    ((), False, False, RATES),
    ((7,), True, False, RATES),
    ((0,), False, False, RATES),
    ((2, 3, 5), False, True, RATES),
    ((1, 1024, 1), True, True, OTHER_RATES),
    ((2, 1, 3, 1, 2, 1, 2, 1), False, False, OTHER_RATES),
)

SPARSE_STEPS = (
    # Shape, rows, use_locking, the specific attribute, hyperparameters.
    ((5,), [3, 0], False, False, RATES),
    ((5, 3), [4, 0, 4, 4], True, False, RATES),
    ((5, 1), [1, 2, 1], False, True, RATES),
    ((5, 3), [], False, True, OTHER_RATES),
    ((3, 2, 2), [1], True, True, OTHER_RATES),
    ((4, 1024), [2, 3], False, False, OTHER_RATES),
)


def variables(d, slots, shape):
    """Make the variable and its slots. Second moments are larger than squared first ones."""
    made = {"var": d.variable(d.T(*shape))}
    for slot in slots:
        draw = d.T.unit if slot in ("m", "mg", "mom", "linear") else d.T.positive
        made[slot] = d.variable(draw(*shape))
    return made


def numbers(d, names, rates):
    """Return the hyperparameters of an optimizer; in special runs, the first is special, too."""
    values = {name: d.T.const(rates[name]) for name in names}
    if d.special and rates is OTHER_RATES:
        values[names[0]] = d.T()
    return values


def enter_optimizer(name, slots, rates, own):
    """Register the recipes of an optimizer's dense and sparse op."""
    slots, rates = slots.split(), rates.split()
    delta = "delta" if name.endswith("GradientDescent") else "grad"

    def step(d, shape, locking, flag, values):
        call = variables(d, slots, shape) | numbers(d, rates, values) | {"use_locking": locking}
        if own:
            call[own] = flag
        if name == "AdagradDA":
            call["global_step"] = longs(3)
        return call

    @recipe(f"ResourceApply{name}")
    def dense(d):
        many = ((MANY, False, False, RATES),)
        for shape, *options in (*DENSE_STEPS, *(many if d.thorough else ())):
            yield step(d, shape, *options) | {delta: d.T(*shape)}

    if name in DENSE_ONLY:
        return

    @recipe(f"ResourceSparseApply{name}")
    def sparse(d):
        many = ((MANY, range(0, MANY[0], 3), False, False, RATES),)
        for shape, rows, *options in (*SPARSE_STEPS, *(many if d.thorough else ())):
            yield step(d, shape, *options) | {
                "indices": d.Tindices.const(rows),
                "grad": d.T(len(rows), *shape[1:]),
            }


for name, facts in OPTIMIZERS.items():
    enter_optimizer(name, *facts)


# ---------------------------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------------------------


def dense_table(d, keys, values):
    """Make a dense hash table with these keys and values; return its handle."""
    reserved = ("none", "gone") if keys.dtype == tf.string else (-100, -101)
    table = tf.lookup.experimental.DenseHashTable(
        keys.dtype,
        values.dtype,
        tf.zeros(values.shape[1:], values.dtype),
        *(tf.constant(key, keys.dtype) for key in reserved),
        initial_num_buckets=8,
    )
    table.insert(keys, values)
    d.tables.append(table)
    return table.resource_handle


def static_table(d, keys, values):
    """Make a static hash table with these keys and values; return its handle."""
    content = tf.lookup.KeyValueTensorInitializer(keys, values)
    d.tables.append(tf.lookup.StaticHashTable(content, tf.zeros([], values.dtype)))
    return d.tables[-1].resource_handle


def mutable_table(d, keys, values):
    return d.table(keys, values)


TABLES = {
    # Kinds of tables, and the dtypes of their keys and values.
    mutable_table: {
        "int32": "int32 float32 float64",
        "int64": "int32 int64 float32 float64 string",
        "string": "bool int32 int64 float32 float64",
    },
    dense_table: {
        "int32": "int32 float32 float64",
        "int64": "bool int32 int64 float32 float64",
        "string": "bool int32 int64 float32 float64",
    },
    static_table: {
        "int32": "int32 float32 float64 string",
        "int64": "int32 int64 float32 float64 string",
        "string": "bool int32 int64 float32 float64 string",
    },
}


def kinds(keys, values):
    """Return the kinds of tables for two dtypes, each with the possible shapes of its values."""
    return [
        (kind, width)
        for kind, of in TABLES.items()
        if values.name in of.get(keys.name, "").split()
        for width in (((),) if kind is static_table else ((), (3,)))
    ]


def stocked(d, kind, keys, values, width=(), size=4):
    """Make a table that contains some of the drawn keys; return its handle."""
    held = WORDS[:size] if keys.dtype == tf.string else range(size)
    return kind(d, keys.const(held), values(size, *width))


def places(kind):
    """Return shapes of the keys of a call. A dense table takes only vectors."""
    return ((0,), (6,)) if kind is dense_table else ((), (0,), (6,), (2, 3), (1024, 1))


@recipe("LookupTableFindV2")
def find(d):
    for kind, width in kinds(d.Tin.dtype, d.Tout.dtype):
        for shape in places(kind):
            yield {
                "table_handle": stocked(d, kind, d.Tin, d.Tout, width),
                "keys": d.Tin(*shape),
                "default_value": d.Tout(*width),
            }
        if kind is mutable_table:
            yield {
                "table_handle": stocked(d, kind, d.Tin, d.Tout, width),
                "keys": d.Tin(6),
                "default_value": d.Tout(6, *width),
            }


def insertions(d, kind, width):
    for shape in places(kind):
        yield {
            "table_handle": stocked(d, kind, d.Tin, d.Tout, width),
            "keys": d.Tin(*shape),
            "values": d.Tout(*shape, *width),
        }


@recipe("LookupTableInsertV2")
def insert(d):
    for kind, width in kinds(d.Tin.dtype, d.Tout.dtype):
        if kind is not static_table:
            yield from insertions(d, kind, width)


@recipe("LookupTableImportV2")
def insert_instead(d):
    for kind, width in kinds(d.Tin.dtype, d.Tout.dtype):
        if kind is mutable_table:
            yield from insertions(d, kind, width)
        elif kind is dense_table:
            # The op imports only all buckets of another table, including empty ones.
            stocked(d, kind, d.Tin, d.Tout, width)
            keys, values = d.tables[-1].export()
            handle = stocked(d, kind, d.Tin, d.Tout, width, size=2)
            yield {"table_handle": handle, "keys": keys, "values": values}


@recipe("LookupTableRemoveV2")
def remove(d):
    value = d.of("float32")
    for kind, width in kinds(d.Tin.dtype, value.dtype):
        for shape in () if kind is static_table else places(kind):
            yield {
                "table_handle": stocked(d, kind, d.Tin, value, width),
                "keys": d.Tin(*shape),
            }


@recipe("LookupTableExportV2")
def export(d):
    for kind, width in kinds(d.Tkeys.dtype, d.Tvalues.dtype):
        # Each static table lists its keys in its own order.
        for size in (1,) if kind is static_table else (0, 1, 6):
            yield {"table_handle": stocked(d, kind, d.Tkeys, d.Tvalues, width, size)}


@recipe("LookupTableSizeV2")
def table_size(d):
    for keys, values in (("int64", "float32"), ("string", "int64"), ("int32", "int32")):
        keys, values = d.of(keys), d.of(values)
        for (kind, width), size in product(kinds(keys.dtype, values.dtype), (1, 4)):
            yield {"table_handle": stocked(d, kind, keys, values, width, size)}


def none_has(types):
    return not kinds(*types.values())


def none_takes(types):
    return all(kind is static_table for kind, _ in kinds(*types.values()))


def none_removes(types):
    return not kinds(types["Tin"], tf.float32)


NO_TABLE = "no table supports such keys and values"
mismatched("LookupTableFindV2 LookupTableExportV2", NO_TABLE, none_has)
mismatched(
    "LookupTableInsertV2 LookupTableImportV2",
    "no mutable table supports such keys and values",
    none_takes,
)
mismatched("LookupTableRemoveV2", "no table supports such keys", none_removes)


# ---------------------------------------------------------------------------------------------
# Queues
# ---------------------------------------------------------------------------------------------

QUEUES = (
    lambda: tf.queue.FIFOQueue(9, tf.float32, [()]),
    lambda: tf.queue.PaddingFIFOQueue(9, tf.float32, [[None]]),
    lambda: tf.queue.PriorityQueue(9, tf.float32, [()]),
    lambda: tf.queue.RandomShuffleQueue(9, 0, tf.float32, [()]),
)


@recipe("QueueSizeV2 QueueIsClosedV2")
def about_queues(d):
    for make, size, closed in product(QUEUES, (0, 1, 4), BOTH):
        queue = make()
        for _ in range(size):
            queue.enqueue(element(queue))
        if closed:
            queue.close()
        d.queues.append(queue)
        yield {"handle": queue.queue_ref}


def element(queue):
    """Return an element for a queue."""
    if isinstance(queue, tf.queue.PriorityQueue):
        return (tf.constant(1, tf.int64), tf.constant(2.0))
    return tf.constant([2.0]) if isinstance(queue, tf.queue.PaddingFIFOQueue) else tf.constant(2.0)


# ---------------------------------------------------------------------------------------------
# Iterators of datasets
# ---------------------------------------------------------------------------------------------

ELEMENTS = (
    ("float32",),
    ("int64", "string"),
    ("bool", "float16", "uint8", "complex64"),
)


@recipe("IteratorGetNext")
def next_element(d):
    """Yield iterators that return the same element again and again."""
    for dtypes, shape in product(ELEMENTS, sizes(d)):
        element = tuple(d.of(dtype)(*shape) for dtype in dtypes)
        iterator = iter(tf.data.Dataset.from_tensors(element).repeat())
        yield {
            "iterator": iterator._iterator_resource,
            "output_types": iterator._flat_output_types,
            "output_shapes": iterator._flat_output_shapes,
        }
