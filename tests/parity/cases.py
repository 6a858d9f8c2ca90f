"""The calls that are compared: recipes, combined with the dtypes of TensorFlow's kernels."""

import itertools
from dataclasses import dataclass, field
from functools import cache

import tensorflow as tf
from tensorflow.python.framework import kernels
from tensorflow.python.framework.config import is_op_determinism_enabled

from fastops import _registry
from fastops._core.tables.index import FAMILIES
from parity import recipes
from parity.draw import PLAIN, SPECIAL, Draw

ANYTHING = (
    *("float32", "float64", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"),
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "int4", "uint4"),
    *("complex64", "complex128", "bool", "string"),
    *("qint8", "quint8", "qint16", "quint16", "qint32"),
)
"""The dtypes of an attribute that neither OpDef nor kernel restricts: all dtypes of tensors."""

MOST_COMBINATIONS = 600
"""For an op with more combinations of dtypes than this, each dtype is tested once, and not each
combination."""


@cache
def _kernels():
    by_op = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.label:
            by_op.setdefault(kernel.op, []).append(kernel)
    return by_op


def has_kernel(op_name):
    """Tell whether TensorFlow has a kernel for an op on the CPU."""
    return op_name in _kernels()


@cache
def op_names():
    """Return the ops that may take the direct path here, sorted."""
    return sorted(
        name
        for name in FAMILIES
        if has_kernel(name)
        and (record := _registry.op(name).record).error is None
        and record.exclusion is None
    )


@cache
def other_op_names():
    """Return the ops that run, but never on the direct path, sorted."""
    return sorted(
        name
        for name in FAMILIES
        if name not in op_names() and _registry.op(name).record.error is None
    )


def combinations(op_name, thorough=False):
    """Return the combinations of dtypes of an op, as dicts of type attribute to `tf.DType`.

    Parameters
    ----------
    op_name : str
        Name of the op.
    thorough : bool
        Whether to return each combination that a kernel supports, or only enough of them to have
        each dtype of each attribute at least once.
    """
    attrs = [attr for attr in _registry.op(op_name).record.op_def.attrs if attr.type == "type"]
    tried = {}
    for kernel in _kernels()[op_name]:
        limits = {
            constraint.name: [
                tf.as_dtype(number).name for number in constraint.allowed_values.list.type
            ]
            for constraint in kernel.constraint
        }
        choices = [_choices(attr, limits.get(attr.name)) for attr in attrs]
        if (thorough or op_name in recipes.MISMATCHED) and len(tried) <= MOST_COMBINATIONS:
            rows = itertools.product(*choices)
        else:
            longest = max(map(len, choices), default=1)
            rows = (
                [choice[i % len(choice)] for choice in choices if choice] for i in range(longest)
            )
        for row in rows:
            if len(row) == len(attrs):
                tried[tuple(row)] = None
    rows = [
        dict(zip([attr.name for attr in attrs], map(tf.as_dtype, row), strict=True))
        for row in tried
    ]
    # Combinations that run come first, so that a dtype is not only in a rejected combination.
    rows.sort(key=lambda types: rejection(op_name, types) is not None)
    return rows if thorough and len(rows) <= MOST_COMBINATIONS else _thinned(rows)


def _choices(attr, limit):
    return [
        name
        for name in (attr.allowed or ANYTHING if limit is None else limit)
        if name not in ("resource", "variant") and (not attr.allowed or name in attr.allowed)
    ]


def _thinned(rows):
    """Return a part of the combinations that still has each dtype of each attribute."""
    seen, kept = set(), []
    for types in rows:
        cells = set(types.items())
        if cells - seen or not types:
            seen |= cells
            kept.append(types)
    return kept


@dataclass
class Case:
    """One call of an op, with everything that is needed to draw its arguments again."""

    op_name: str
    types: dict
    mode: str
    index: int
    arguments: dict = field(repr=False)
    draw: Draw = field(repr=False)

    def __str__(self):
        types = " ".join(f"{name}={dtype.name}" for name, dtype in self.types.items())
        return " ".join(filter(None, (self.op_name, types, self.mode, f"#{self.index}")))


def calls(op_name, types, mode=PLAIN, thorough=False):
    """Yield the cases of an op with these dtypes. Each call draws new arguments."""
    draw = Draw(types, mode, thorough)
    record = _registry.op(op_name).record
    free = {
        param.name: types[param.op_def_name]
        for param in record.params
        if param.op_def_name in types and param.op_def_name not in record.op_def.inferred
    }
    for index, arguments in enumerate(recipes.RECIPES[op_name](draw)):
        yield Case(op_name, types, mode, index, free | arguments, draw)


def modes(op_name, types):
    """Return the kinds of values to compare; special ones only if a dtype has such values."""
    inputs = _registry.op(op_name).record.op_def.inputs
    dtypes = [types.get(arg.type_attr) or arg.dtype for arg in inputs]
    special = any(arg.type_list_attr for arg in inputs) or any(
        dtype.is_floating or dtype.is_complex or dtype.is_integer or dtype == tf.string
        for dtype in map(tf.as_dtype, filter(None, dtypes))
    )
    return (PLAIN, SPECIAL) if special else (PLAIN,)


def rejection(op_name, types):
    """Return why TensorFlow's kernel for these dtypes always fails, or `None` if it does not."""
    if op_name in recipes.NONDETERMINISTIC and is_op_determinism_enabled():
        return recipes.NONDETERMINISTIC[op_name]
    for attr, names, because in recipes.REJECTED.get(op_name, ()):
        if types[attr].name in names:
            return because
    for which, because in recipes.MISMATCHED.get(op_name, ()):
        if which(types):
            return because
    return None
