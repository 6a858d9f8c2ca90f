"""Reads GraphDefs from files or bytes, and checks their ops against those of this TensorFlow."""

import os

import tensorflow as tf
from google.protobuf import message, text_format

from fastops._core import opdef
from fastops._plans.nodes import functions_of


def name_of(source):
    """Return the name of a source in messages: its path, or "GraphDef" for bytes."""
    return "GraphDef" if isinstance(source, bytes) else os.fspath(source)


def listed(names):
    """Return names as a list for messages."""
    return ", ".join(map(repr, sorted(names)))


def read(kind, data, path):
    """Parse a protobuf in binary or text format."""
    try:
        if not path.endswith("txt"):
            try:
                return kind.FromString(data)
            except message.DecodeError:
                if not data.isascii():
                    raise
        return text_format.Parse(data.decode(), kind())
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        what = kind.DESCRIPTOR.name
        raise ValueError(f"{path} is not a {what}, or is damaged or cut short: {error}") from None


def graph_of(data, path, outputs):
    """Return the GraphDef in a file."""
    definition = read(tf.compat.v1.GraphDef, data, path)
    if not all(node.name and node.op for node in definition.node):
        raise ValueError(f"{path} is not a GraphDef, or is damaged")
    if not definition.node:
        raise ValueError(f"{path} is empty")
    # A GraphDef ends with its versions: they are missing if the file is cut between two nodes.
    if outputs is None and not path.endswith("txt") and not definition.HasField("versions"):
        raise ValueError(f"{path} is cut short, or very old: name its `outputs` to load it")
    return definition


def parse(data):
    """Return the GraphDef in bytes; raise `ValueError` if this TensorFlow lacks one of its ops."""
    definition = graph_of(data, name_of(data), ())
    check_ops(definition, name_of(data))
    return definition


def check_ops(definition, path):
    """Raise `ValueError` for an op that this TensorFlow does not have."""
    library = {function.signature.name: function for function in definition.library.function}
    parts = [("", definition.node)]
    parts += [(f" in function {name!r}", function.node_def) for name, function in library.items()]
    known = {*library}
    for where, nodes in parts:
        for node in nodes:
            if node.op not in known:
                if opdef.registered_proto(node.op) is None:
                    raise ValueError(
                        f"{path}: this TensorFlow has no op {node.op!r}, which node "
                        f"{node.name!r}{where} is; a library of custom ops is to be loaded first, "
                        "by fastops.load_op_library"
                    )
                known.add(node.op)


def count_ops(concrete):
    """Return how often each op occurs in a function's graph and in the functions it calls."""
    definition = concrete.graph.as_graph_def()
    library = {function.signature.name: function for function in definition.library.function}
    counts, called = {}, set()
    waiting = [definition.node]
    while waiting:
        for node in waiting.pop():
            counts[node.op] = counts.get(node.op, 0) + 1
            for name in sorted(functions_of(node) & library.keys() - called):
                called.add(name)
                waiting.append(library[name].node_def)
    return counts
