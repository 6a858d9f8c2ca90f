"""Frozen graphs, and functions between tensors of a graph."""

import tensorflow as tf

from fastops._graphs.definition import check_ops, listed
from fastops._graphs.signature import DEFAULT, ModelSignature, packer

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp", "TemporaryVariable"})
_NEVER_RESULTS = frozenset({"Const", "Placeholder", "PlaceholderWithDefault"})


def of_graph(definition, path, inputs, outputs):
    """Return the only signature of a frozen graph."""
    check_ops(definition, path)

    def body():
        tf.graph_util.import_graph_def(definition, name="")

    try:
        wrapped = tf.compat.v1.wrap_function(body, [])
    except Exception as error:
        raise ValueError(f"{path} is damaged or cut short: {error}") from error
    return of_wrapped(wrapped, path, inputs, outputs, is_frozen=True)


def of_wrapped(wrapped, path, inputs, outputs, *, is_frozen):
    """Return the signature that computes some tensors of a graph from others."""
    graph = wrapped.graph
    gives = _tensors(graph, path, _ends(graph) if outputs is None else outputs)
    if not gives:
        raise ValueError(f"{path} has no outputs: name them")
    takes = None if inputs is None else _tensors(graph, path, inputs)
    needed = _needed(graph, gives.values(), (takes or {}).values())
    placeholders = [op for op in needed if op.type == "Placeholder"]
    if takes is None:
        takes = _tensors(graph, path, [op.name for op in placeholders])
    elif placeholders:
        names = listed(op.name for op in placeholders)
        raise ValueError(f"{path}: the outputs depend on more than the inputs: {names}")
    for op in needed:
        if is_frozen and op.type in _VARIABLES:
            raise ValueError(
                f"{path}: {op.name!r} is a variable, and has no value here: freeze the graph first"
            )
    specs = {name: tf.TensorSpec(tensor.shape, tensor.dtype) for name, tensor in takes.items()}
    try:
        concrete = wrapped.prune([*takes.values()], [*gives.values()],
                         input_signature=(tuple(specs.values()), {}))  # fmt: skip
    except Exception as error:
        raise ValueError(f"{path} has no function of these tensors: {error}") from error
    given = {name: tf.TensorSpec(tensor.shape, tensor.dtype) for name, tensor in gives.items()}
    return {
        DEFAULT: ModelSignature(
            path, DEFAULT, concrete, specs, given, packer(gives, gives), wrapped
        )
    }


def _ends(graph):
    """Return the names of the tensors that no operation takes."""
    return [
        op.name if len(op.outputs) == 1 else tensor.name
        for op in graph.get_operations()
        if op.type not in _NEVER_RESULTS and not any(tensor.consumers() for tensor in op.outputs)
        for tensor in op.outputs
    ]


def _needed(graph, outputs, inputs):
    """Return the operations that `outputs` depend on, given `inputs`, in the graph's order."""
    given = {tensor.name for tensor in inputs}
    waiting = [tensor.op for tensor in outputs if tensor.name not in given]
    needed = set()
    while waiting:
        op = waiting.pop()
        if op.name not in needed:
            needed.add(op.name)
            waiting += op.control_inputs
            waiting += [tensor.op for tensor in op.inputs if tensor.name not in given]
    return [op for op in graph.get_operations() if op.name in needed]


def _tensors(graph, path, names):
    """Return the named tensors of a graph, by the names that the caller gives them."""
    if not isinstance(names, dict):
        names = {name: name for name in ([names] if isinstance(names, str) else names)}
    tensors = {}
    for key, name in names.items():
        try:
            tensors[key] = graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
        except (KeyError, ValueError):
            raise ValueError(f"{path} has no tensor {name!r}") from None
    return tensors
