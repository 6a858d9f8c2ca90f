"""Make the generator's inputs from the running TensorFlow: OpDefs, and facts not in them.

The facts are observed: families from the modules of TensorFlow's own functions, gradients from the
gradient registry, shapes from the results of shape functions.
"""

import json
import re
from pathlib import Path

import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import op_def_library
from tensorflow.python.framework.ops import gradient_registry

from fastops._core import opdef

MAX_RANK = 6
"""The highest rank that is tried. If a shape function accepts it, higher ranks count as
accepted."""

CRASHING = {
    "BoostedTreesAggregateStats",
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    "SplitDedupData",
}
"""Ops whose shape function crashes on some ranks instead of rejecting them."""

GRADIENT_DTYPES = {
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    *("resource", "variant"),
}
"""The dtypes that have gradients."""


def op_defs():
    """Return the text of ops.pbtxt: the public OpDefs, sorted, without prose."""
    public = op_def_pb2.OpList(
        op=sorted(
            (op for op in opdef.registry().op if not op.name.startswith("_")),
            key=lambda op: op.name,
        )
    )
    for op in public.op:
        # The wheels contain descriptions of a few ops, which are not copied.
        for message in (op, *op.input_arg, *op.output_arg, *op.attr):
            message.ClearField("description")
        op.ClearField("summary")
        if op.HasField("deprecation"):
            op.deprecation.ClearField("explanation")
    return _HEAD + text_format.MessageToString(public)


def facts():
    """Return the text of facts.toml."""
    public = text_format.Parse(op_defs(), op_def_pb2.OpList())
    ops = list(map(opdef.from_proto, public.op))
    gradients = {op.name: differentiable_inputs(op) for op in ops}
    known = {op.name: shapes(op) for op in ops}
    tables = {
        "families": families(),
        "gradients": {name: inputs for name, inputs in gradients.items() if inputs is not None},
        "inputs": {name: inputs for name, (inputs, _) in known.items() if inputs},
        "outputs": {name: outputs for name, (_, outputs) in known.items() if outputs},
    }
    lines = ["# Written by `python tools/gen.py snapshot`: what the OpDefs do not state."]
    for table, entries in tables.items():
        lines += ["", f"[{table}]"]
        lines += [f"{_key(name)} = {_toml(value)}" for name, value in sorted(entries.items())]
    return _HEAD + "\n".join(lines) + "\n"


_HEAD = f"# TensorFlow {tf.version.VERSION}\n"


def families():
    """Return, for each of TensorFlow's generated modules, the ops it defines functions for."""
    found = {}
    for path in sorted(Path(tf.__file__).parent.rglob("gen_*.py")):
        names = re.findall(r'tf_export\("raw_ops\.(\w+)"\)', path.read_text())
        found.setdefault(path.stem.removeprefix("gen_"), []).extend(names)
    return {family: sorted(names) for family, names in found.items() if names}


def differentiable_inputs(op):
    """Return the names of the inputs for which an op has a gradient; `None` if it has none.

    The gradient function is called on a node of a scratch graph. If no node can be made, or the
    function needs to know more about it, every input whose dtype has gradients counts.
    """
    try:
        function = gradient_registry.lookup(op.name)
    except LookupError:
        return None
    if function is None:
        return None
    candidates = [arg for arg in op.inputs if GRADIENT_DTYPES & set(_allowed(op, arg))]

    def gradients(node):
        try:
            result = function(node, *map(tf.zeros_like, node.outputs))
        except Exception as error:  # a gradient function may raise anything
            raise LookupError from error
        return result if isinstance(result, (list, tuple)) else [result]

    result = _with_node(op, {}, gradients)
    if result is None or len(result) != len(op.inputs):
        return [arg.name for arg in candidates]
    return [
        arg.name
        for arg, gradient in zip(op.inputs, result, strict=True)
        if gradient is not None and arg in candidates
    ]


def shapes(op):
    """Return descriptions of what the shape function accepts and returns, by argument name.

    Returns
    -------
    inputs, outputs : dict of str
        Arguments about which the shape function gives no information are absent.
    """
    if _infer(op, {}) is None:
        return {}, {}
    inputs = {}
    for arg in op.inputs:
        if arg.is_list:
            continue
        accepted = [
            rank
            for rank in range(MAX_RANK + 1)
            if _infer(op, {arg.name: [None] * rank}) is not None
        ]
        if 0 < len(accepted) <= MAX_RANK:
            inputs[arg.name] = _in_words(accepted)
    if any(arg.is_list for arg in op.outputs):
        return inputs, {}
    outputs = {
        arg.name: words
        for position, arg in enumerate(op.outputs)
        if (words := _output_shape(op, position))
    }
    return inputs, outputs


def _output_shape(op, position):
    """Return a description of an output's shape: its rank, or the inputs it follows; or `None`."""
    anything = _infer(op, {})[position]
    if anything is not None:
        return _in_words([len(anything)])
    sources = [arg for arg in op.inputs if not arg.is_list]
    for source in sources:
        trials = [_infer(op, {source.name: sizes}) for sizes in ([], [7], [5, 3], [2, 3, 4, 5])]
        kept = [result[position] for result in trials if result]
        if kept and all(shape in ([], [7], [5, 3], [2, 3, 4, 5]) for shape in kept):
            return f"that of `{source.name}`"
    if len(sources) == len(op.inputs) == 2:
        left, right = (arg.name for arg in sources)
        result = _infer(op, {left: [2, 1, 5], right: [3, 1]})
        if result and result[position] == [2, 3, 5]:
            return f"`{left}` and `{right}` broadcast"
    return None


def _infer(op, known):
    """Return the shapes of the outputs, given the known shapes of some inputs.

    A shape is a list, or `None` for an unknown rank. The result is `None` if no node can be built.
    """

    def output_shapes(node):
        shapes = (tensor.shape for tensor in node.outputs)
        return [shape.as_list() if shape.rank is not None else None for shape in shapes]

    return _with_node(op, known, output_shapes)


def _with_node(op, known, use):
    """Return ``use(node)`` for a node in a scratch graph, or `None` if no node can be made."""
    if op.name in CRASHING:
        return None
    for lists in SAMPLES:
        with tf.Graph().as_default():
            try:
                arguments = {arg.name: _placeholder(op, arg, known) for arg in op.inputs}
                arguments |= {
                    param.name: _sample(op.attr(param.name), lists)
                    if param.default is opdef.REQUIRED
                    else param.default
                    for param in opdef.params(op, {}, {})
                    if not param.is_input
                }
                *_, node, _ = op_def_library._apply_op_helper(op.name, **arguments)
                return use(node)
            except (ValueError, TypeError, LookupError, NotImplementedError, tf.errors.OpError):
                continue
    return None


def _placeholder(op, arg, known):
    allowed = _allowed(op, arg)
    dtype = "float32" if "float32" in allowed else allowed[0]
    placeholder = tf.compat.v1.placeholder(dtype, known.get(arg.name))
    return [placeholder, placeholder] if arg.is_list else placeholder


SAMPLES: tuple[list[int], ...] = ([1, 1, 1, 1], [1, 1, 1, 1, 1], [1], [])
"""Values to try for lists of integers: strides and windows of two and three dimensions, and
others."""


def _sample(attr, lists):
    """Return a possible value of a required attribute; raise `LookupError` if that is a guess."""
    match attr.type:
        case "int":
            return max(attr.minimum or 0, 1)
        case "list(int)":
            return lists
        case "float":
            return 1.0
        case "bool":
            return False
        case "string" | "type" if attr.allowed:
            return attr.allowed[0]
        case "string":
            return ""
        case "type":
            return "float32"
    raise LookupError(attr.type)


def _in_words(ranks):
    if ranks[-1] == MAX_RANK:
        return f"rank at least {ranks[0]}"
    names = {0: "scalar", 1: "vector", 2: "matrix"}
    return " or ".join(names.get(rank, f"rank {rank}") for rank in ranks)


def _allowed(op, arg):
    """Return the dtypes that an argument may have; () for any."""
    if arg.dtype:
        return (arg.dtype,)
    return op.attr(arg.type_attr or arg.type_list_attr).allowed or ("float32",)


def _toml(value):
    if isinstance(value, dict):
        entries = ", ".join(f"{_key(name)} = {_toml(item)}" for name, item in value.items())
        return f"{{ {entries} }}"
    if isinstance(value, list) and len(value) > 8:
        return "[\n" + "".join(f"    {_toml(item)},\n" for item in value) + "]"
    return json.dumps(value)


def _key(name):
    return name if re.fullmatch(r"[\w-]+", name) else json.dumps(name)
