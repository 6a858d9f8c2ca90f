"""Extracts a part of a session's graph as a function."""

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import importer, op_def_registry
from tensorflow.python.ops import handle_data_util

from fastops._graphs.accesses import KNOWN, StateError, check_order, writes
from fastops._plans.nodes import HARMLESS, PYTHON, functions_of

_LOWERED = frozenset({"Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"})
_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
_COMPILED = ("_XlaMustCompile", "_XlaCompile")


class Part:
    """The part of a graph between feeds and fetches, as a function of the feeds and of variables.

    Attributes
    ----------
    concrete : tf.types.experimental.ConcreteFunction
        The extracted part.
    variables : list of tf.Operation
        The operations that name the variables which `concrete` takes after the feeds.
    dtypes : list of tf.DType
        The dtypes of the variables.
    writes : bool
        Whether the part writes variables.
    """

    def __init__(self, graph, feeds, fetches, targets):
        for tensor in (*feeds, *fetches):
            if tensor.dtype in (tf.resource, tf.variant) or tensor.dtype._is_ref_dtype:
                raise StateError("fetch_dtype", f"{tensor.name} is a {tensor.dtype.name}")
        fed = {feed.name for feed in feeds}
        definition, self.variables = _cut_out(graph, fed, fetches, targets)
        self.dtypes = [op.get_attr("dtype") for op in self.variables]
        self.writes = any(map(writes, definition.node))
        used = {name for node in definition.node for name in node.input}
        taken = [*feeds, *(op.outputs[0] for op in self.variables)]
        # In a GraphDef, the name of an operation's first output is the operation's name.
        inputs = {tensor.name: tensor.name.removesuffix(":0") for tensor in taken}
        wanted = [fetched.name for fetched in (*fetches, *targets)]

        def body(*given):
            replaced = {}
            for source, tensor in zip(taken, given, strict=True):
                if source.dtype == tf.resource:
                    data = handle_data_util.get_resource_handle_data(source)
                    handle_data_util.set_handle_data(tensor, data)
                if inputs[source.name] in used:
                    replaced[inputs[source.name]] = tensor
            imported = importer.import_graph_def(definition, replaced, wanted, name="")
            tf.compat.v1.get_default_graph().control_outputs.extend(imported[len(fetches) :])
            # The names of a function's outputs are the names of the nodes that make them.
            return [
                tf.identity(output, f"fastops_fetch_{i}")
                for i, output in enumerate(imported[: len(fetches)])
            ]

        specs = [
            tf.TensorSpec(tensor.shape, tensor.dtype, f"fastops_feed_{i}")
            for i, tensor in enumerate(taken)
        ]
        self.concrete = tf.compat.v1.wrap_function(body, specs)


def _cut_out(graph, fed, fetches, targets):
    """Return the GraphDef of the nodes to run, and the operations that name variables."""
    ops_fed = (graph.get_tensor_by_name(name).op for name in fed)
    # Control inputs from fed placeholders are dropped; TensorFlow runs other fed operations.
    given = {op.name for op in ops_fed if op.type in _PLACEHOLDERS}
    waiting = [*targets, *(fetch.op for fetch in fetches)]
    needed, variables = {}, {}
    while waiting:
        op = waiting.pop()
        if op.name in needed or op.name in variables:
            continue
        if _names_a_variable(op) and op not in targets:
            variables[op.name] = op
            given.add(op.name)
            continue
        needed[op.name] = op
        waiting += [source for source in op.control_inputs if source.name not in given]
        waiting += [source.op for source in op.inputs if source.name not in fed]
    definition = tf.compat.v1.GraphDef(versions=graph.graph_def_versions)
    definition.node.extend(op.node_def for op in needed.values())
    library = {}
    if any(len(functions_of(node)) > 1 or node.op in graph._functions for node in definition.node):
        library = {
            function.signature.name: function for function in graph.as_graph_def().library.function
        }
    called = {}
    _check_states(definition.node, library, called, KNOWN)
    definition.library.function.extend(called.values())
    for node in definition.node:
        inputs = [name for name in node.input if not (name[0] == "^" and name[1:] in given)]
        node.input[:] = inputs
        node.attr.pop("_class", None)  # the colocated node may not be in the part
        if node.op == "PlaceholderWithDefault":  # it is not fed: use its default
            node.op = "Identity"
            node.attr["T"].CopyFrom(node.attr.pop("dtype"))
            del node.attr["shape"]
        if node.op in _LOWERED:
            node.attr["_lower_using_switch_merge"].b = True
    if any(map(writes, definition.node)):
        kept = {
            name: (op.get_attr("container"), op.get_attr("shared_name").decode())
            for name, op in variables.items()
        }
        callers = {node.name for node in definition.node if functions_of(node) & called.keys()}
        check_order(definition.node, kept, callers)
    return definition, list(variables.values())


def _names_a_variable(op):
    """Tell whether an operation names a variable on the host that has a unique name."""
    if op.type != "VarHandleOp" or op.control_inputs:
        return False
    name = op.get_attr("shared_name")
    device = tf.DeviceSpec.from_string(op.device)
    return (
        name not in (b"", context.anonymous_name().encode())
        and device.device_type in (None, "CPU")
        and device.device_index in (None, 0)
    )


def _check_states(nodes, library, called, known):
    """Raise `StateError` for ops with unknown state; collect the functions that nodes call."""
    for node in nodes:
        functions = sorted(functions_of(node) & library.keys())
        op_def = op_def_registry.get(node.op)
        if node.op in _PLACEHOLDERS:
            raise StateError("not_fed", node.name)
        if node.op in PYTHON:
            raise StateError("session_python", node.op)
        if op_def is not None and op_def.is_stateful and not functions and node.op not in known:
            raise StateError("session_state", node.op)
        if any(node.attr[name].b for name in _COMPILED if name in node.attr):
            raise StateError("node_xla", node.name)
        for name in functions:
            if name not in called:
                called[name] = library[name]
                _check_states(library[name].node_def, library, called, HARMLESS)
