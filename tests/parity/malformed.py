"""Wrong calls, made from correct calls.

`mutations` lists every single mistake that can be made in a call; the exceptions of these calls are
compared. `hunted` makes a long reproducible sequence of calls with up to three mistakes each, to
search for crashes.
"""

import random
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from fastops import _registry
from fastops._core import opdef
from parity import cases, recipes
from parity.draw import CONTAINERS, Draw, constant
from parity.recipes.arrays import TRANSPOSES_ANYHOW

THREADED = {"IteratorGetNext"}
"""Ops whose kernels start threads. The processes that make malformed calls have no memory for them,
so `test_registry` makes such calls itself."""

UNDEFINED = {
    "BlockLSTMGrad": "reads beyond inputs that are too small",
    "Cholesky": "does not write all of its result if the input is not positive definite",
    "Conv2D": "reads beyond explicit_paddings that are too few",
    "DecodeJSONExample": "prints random blanks in its message",
    "DepthwiseConv2dNative": "reads beyond explicit_paddings that are too few",
    "FractionalMaxPoolGrad": "prints an index from beyond the end of a list that is too short",
    "ImageProjectiveTransformV2": "an unknown interpolation leaves the choice unset",
    "ImageProjectiveTransformV3": "an unknown interpolation leaves the choice unset",
    "LSTMBlockCell": "reads beyond inputs that are too small",
    "LSTMBlockCellGrad": "reads beyond inputs that are too small",
    "MaxPool3DGradGrad": "writes nothing if the maximum is NaN",
    "RFFT": "writes nothing for an input without elements",
    "RFFT2D": "writes nothing for an input without elements",
    "RFFT3D": "writes nothing for an input without elements",
    "RaggedTensorToTensor": "reads beyond values that are too few",
    "RandomIndexShuffle": "reads and shuffles beyond its keys if rounds are few or odd",
    "ResourceCountUpTo": "treats a variable of another dtype as one of its own dtype",
    **dict.fromkeys(
        (
            "ScatterNdNonAliasingAdd",
            "ResourceScatterNdAdd",
            "ResourceScatterNdMax",
            "ResourceScatterNdMin",
            "ResourceScatterNdSub",
            "ResourceScatterNdUpdate",
        ),
        "prints a dimension that a scalar does not have",
    ),
    "StatelessRandomBinomial": "writes nothing if a probability is NaN",
}
"""Ops whose results for malformed calls depend on the content of memory, with the reason."""


class Call(NamedTuple):
    """A call of an op, correct or wrong.

    Attributes
    ----------
    mistakes : tuple of str
        The mistakes in the call.
    args : tuple
        Positional arguments, which all ops reject.
    kwargs : dict
        Keyword arguments.
    variables : tuple of (tf.Variable, tf.Tensor)
        The variables whose handles are among the arguments, and their values before the call.
    """

    mistakes: tuple
    args: tuple
    kwargs: dict
    variables: tuple = ()

    def of(self, function):
        """Call a function with these arguments, after resetting the variables."""
        for variable, value in self.variables:
            tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
        return function(*self.args, **self.kwargs)

    def state(self):
        """Return the present values of the variables."""
        return [variable.read_value() for variable, _ in self.variables]


class Foreign:
    """An object of a class that TensorFlow does not know."""

    def __repr__(self):
        return "Foreign()"


class Treacherous:
    """An object that raises whatever is done with it."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("no array")

    def __len__(self):
        raise RuntimeError("no length")

    def __index__(self):
        raise RuntimeError("no index")

    def __float__(self):
        raise RuntimeError("no float")

    def __repr__(self):
        return "Treacherous()"


FOREIGN = {
    "None": None,
    "a foreign object": Foreign(),
    "an object that raises": Treacherous(),
    "a dict": {"a": 1.0},
    "a set": {1.0},
    "a class": int,
    "a function": len,
    "a dtype": tf.float32,
    "a text": "text",
    "bytes": b"\xff",
    "a ragged list": [[1.0, 2.0], [3.0]],
    "a list with None": [None],
    "an empty list": [],
    "a nested list": [[[]]],
    "a tuple of kinds": (1, "a", None),
    "a huge integer": 10**400,
    "a complex number": 2j,
    "NaN": float("nan"),
    "a structured array": np.zeros(2, [("a", "i4")]),
    "an array of objects": np.array([object()], object),
    "an array of texts": np.array(["a", "ü"]),
    "an array of dates": np.array(["2020-01-01"], "datetime64[D]"),
    "a strided array": np.arange(8.0, dtype=np.float32)[::-2],
    "a big-endian array": np.arange(3, dtype=">f4"),
}
"""Values that are neither a tensor nor an attribute nor a list of these."""

NUMBERS = (0, 1, -1, 2, 7, -7, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63 - 1, 2**63, -(2**70))
WRONG_ATTRS = {
    "int": (*NUMBERS, 1.5, True, "1", [1], np.int64(3)),
    "float": (-1.0, 0.0, 1e300, float("inf"), float("nan"), "x", [1.0], 1j, 10**400, True),
    "bool": (2, -1, "yes", [True], 0.5, np.bool_(True)),
    "string": ("", "OTHER", b"\xff", "x" * 5000, 3, ["SAME"], "\0"),
    "type": ("nonsense", 999, -1, object, tf.resource, tf.variant, tf.string, tf.int32, [tf.int32]),
    "shape": ("x", [-5], [2.5], 6, [2**40, 2**40], [None], [1] * 300, tf.TensorShape(None), [0]),
    "tensor": (0, "x", [1.0]),
    "func": ("nothing", 5, lambda: 1),
}
"""Values that are wrong for most attributes of a kind; some are valid for some ops."""


def _shape_twists(tensor):
    """Yield tensors with other shapes than the given one, and a tensor of zeros."""
    values = (
        tensor if tensor.dtype not in CONTAINERS else tf.bitcast(tensor, CONTAINERS[tensor.dtype])
    )
    values = np.asarray(values.numpy())
    single = np.asarray(b"a" if tensor.dtype == tf.string else 1, values.dtype)
    twists = {
        "one rank more": values[None],
        "a scalar": single,
        "a vector of one element": single.reshape(1),
        "an empty vector": np.zeros([0], values.dtype),
        "empty, of rank 3": np.zeros([2, 0, 3], values.dtype),
        "one element, of rank 9": single.reshape([1] * 9),
    }
    if values.ndim:
        twists["one row more"] = np.concatenate([values, values[:1]])
        twists["one row less"] = values[1:]
        twists["flattened"] = values.reshape(-1)
        twists["of other sides"] = values.T
    if tensor.dtype != tf.string:
        twists["zeros"] = np.zeros_like(values)
    for description, twist in twists.items():
        yield description, constant(twist, tensor.dtype)


def _value_twists(tensor):
    """Yield tensors of the same shape with values at the edges."""
    dtype = tensor.dtype
    if dtype.is_integer:
        for value in (-1, 1, 2**31 - 1, -(2**31), 2**62, -(2**63)):
            if dtype.min <= value <= dtype.max:
                yield f"all {value}", constant(np.full(tensor.shape, value), dtype)
    elif dtype.is_floating or dtype.is_complex:
        for value in (np.nan, np.inf, -np.inf, 1e38, -1.0):
            yield f"all {value}", constant(np.full(tensor.shape, value), dtype)
    elif dtype == tf.string:
        for value in (b"", b"\0\xff", b"x" * 9999):
            yield f"all {value[:3]!r}", constant(np.full(tensor.shape, value, object), dtype)


OTHER_DTYPES = (tf.float32, tf.int32, tf.string, tf.bool, tf.float64, tf.complex64, tf.uint8)


def _dtype_twists(tensor):
    for dtype in OTHER_DTYPES:
        if dtype != tensor.dtype:
            filler = b"a" if dtype == tf.string else 1
            values = np.full(tensor.shape, filler, object if dtype == tf.string else None)
            yield f"of {dtype.name}", constant(values, dtype)


def _tensor_twists(tensor):
    if tensor.dtype in (tf.resource, tf.variant):
        yield "a number", 1.0
        yield "a tensor", tf.constant(1.0)
        yield (
            "another resource",
            tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1).resource_handle,
        )
        return
    yield from _dtype_twists(tensor)
    yield from _shape_twists(tensor)
    yield from _value_twists(tensor)
    yield "a sparse tensor", tf.sparse.from_dense([[1.0]])
    yield "a ragged tensor", tf.ragged.constant([[1.0], []])


def _twists(param, value, op_def):
    """Yield replacements for an argument, as pairs of a description and a value."""
    yield from FOREIGN.items()
    if param.is_input:
        if isinstance(value, tf.Tensor):
            yield from _tensor_twists(value)
            yield "a list with it twice", [value, value]
        elif isinstance(value, (list, tuple)):
            yield "a tuple instead of a list", tuple(value)
            yield "one more", [*value, *value[-1:]]
            yield "one less", list(value[:-1])
            yield "with None", [*value[:-1], None]
            if value:
                yield "the first alone", value[0]
                if isinstance(value[0], tf.Tensor):
                    for description, tensor in _tensor_twists(value[0]):
                        yield f"the first {description}", [tensor, *value[1:]]
        return
    yield "a tensor", tf.constant(1)
    attr = op_def.attr(param.op_def_name)
    kind = attr.type.removeprefix("list(").rstrip(")")
    for wrong in WRONG_ATTRS[kind]:
        yield repr(wrong)[:40], wrong
        if attr.type.startswith("list("):
            yield f"[{wrong!r}]"[:40], [wrong]
            for length in (2, 3, 4, 5):
                yield f"{length} times {wrong!r}"[:40], [wrong] * length
    if attr.type.startswith("list(") and isinstance(value, (list, tuple)):
        yield "one more", [*value, *value[-1:]]
        yield "one less", list(value[:-1])
    for allowed in attr.allowed if kind == "string" else ():
        yield repr(allowed), allowed


def mutations(case):
    """Yield every `Call` that makes one mistake in a case.

    Calls that make TensorFlow write out of bounds are left out: later calls could give anything,
    and the process could crash anywhere.
    """
    return (call for call in _mutations(case) if not _overwrites(case.op_name, call))


def _overwrites(op_name, call):
    if not TRANSPOSES_ANYHOW or op_name not in ("Transpose", "ConjugateTranspose"):
        return False
    try:
        perm = np.asarray(call.kwargs.get("perm"))
    except Exception:  # a mistake may raise anything when it is inspected
        return False
    return perm.dtype.kind in "if" and bool((perm < 0).any())


def _mutations(case):
    record = _registry.op(case.op_name).record
    right = case.arguments
    for param in record.params:
        if param.default is opdef.REQUIRED and param.name in right:
            rest = {name: value for name, value in right.items() if name != param.name}
            yield Call((f"no {param.name}",), (), rest)
    yield Call(("an unknown keyword",), (), right | {"unknown": 1})
    yield Call(("a positional argument",), (tf.constant(1.0),), right)
    yield Call(("only positional arguments",), tuple(right.values()), {})
    yield Call(("a name that is not a string",), (), right | {"name": 5})
    for param in record.params:
        for description, value in _twists(param, right.get(param.name), record.op_def):
            yield Call((f"{param.name}: {description}",), (), right | {param.name: value})


def hunted(op_name, start, stop):
    """Yield the malformed calls numbered from `start` to `stop` of an op, with their numbers.

    Call number n is the same in each process. The first calls are the `mutations` of one case, in
    random order. Later calls make one to three mistakes in any of a few cases.
    """
    chosen = _cases(op_name)
    variables = [_variables(case) for case in chosen]
    singles = [
        [call._replace(variables=held) for call in mutations(case)]
        for case, held in zip(chosen, variables, strict=True)
    ]
    random.Random(op_name).shuffle(singles[0])
    for number in range(start, stop):
        if number < len(singles[0]):
            yield number, singles[0][number]
            continue
        rng = random.Random(f"{op_name} {number}")
        at = rng.randrange(len(chosen))
        mistakes = rng.sample(singles[at], rng.randint(1, min(3, len(singles[at]))))
        yield number, _combined(chosen[at].arguments, mistakes)._replace(variables=variables[at])


def _variables(case):
    """Return the initialized variables of a case, with their values."""
    handles = {id(value) for value in case.arguments.values()}
    return tuple(
        (variable, variable.read_value())
        for variable in case.draw.variables
        if id(variable.handle) in handles
        and tf.raw_ops.VarIsInitializedOp(resource=variable.handle)
    )


def _combined(right, mistakes):
    kwargs = dict(right)
    for mistake in mistakes:
        for name in right.keys() - mistake.kwargs.keys():
            kwargs.pop(name, None)
        for name, value in mistake.kwargs.items():
            if name not in right or value is not right[name]:
                kwargs[name] = value
    return Call(
        tuple(what for mistake in mistakes for what in mistake.mistakes),
        mistakes[0].args,
        kwargs,
    )


MOST_CASES = 6
"""How many cases of an op to make mistakes in."""


def _cases(op_name):
    """Return a few cases of an op, of several dtypes."""
    if op_name not in recipes.RECIPES:
        return [guess(op_name)]
    chosen = []
    for types in cases.combinations(op_name):
        if cases.rejection(op_name, types) is None:
            chosen.extend(list(cases.calls(op_name, types))[:2])
    step = max(len(chosen) // MOST_CASES, 1)
    return chosen[::step][:MOST_CASES]


PLAUSIBLE = {
    "int": 1,
    "float": 1.0,
    "bool": True,
    "string": "a",
    "type": tf.float32,
    "shape": [2],
    "tensor": 1.0,
    "func": "nothing",
}
"""A value for attributes of each kind."""


def guess(op_name):
    """Return a case of an op without a recipe. The case may be invalid."""
    record = _registry.op(op_name).record
    draw = Draw({})
    arguments = {}
    for param in record.params:
        if param.is_input:
            arg = next(arg for arg in record.op_def.inputs if arg.name == param.op_def_name)
            if arg.dtype in ("resource", "variant"):
                value = draw.variable(tf.ones([2]))
            else:
                value = draw.of(arg.dtype or "float32")(2)
            arguments[param.name] = [value, value] if arg.is_list else value
        elif param.default is opdef.REQUIRED:
            attr = record.op_def.attr(param.op_def_name)
            kind = attr.type.removeprefix("list(").rstrip(")")
            value = attr.allowed[0] if attr.allowed else PLAUSIBLE[kind]
            arguments[param.name] = [value] if attr.type.startswith("list(") else value
    return cases.Case(op_name, {}, "guessed", 0, arguments, draw)
