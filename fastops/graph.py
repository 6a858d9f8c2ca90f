"""Graphs that a program builds, differentiates, saves, loads and runs as plans.

`Graph`, `Operation`, `Output`, `Tensor` and `DataType` are TensorFlow's own classes: an `Output` is
what an operation of a graph makes, and a `Tensor` that or a value. `gradients`, `cond` and
`while_loop` are TensorFlow's functions. Every function of `fastops.ops` adds an operation to the
graph under construction, as that of `tf.raw_ops` does. ``examples/graph.py`` has all of it.
"""

import os

import tensorflow as tf
from tensorflow.python.framework import ops as _ops

from fastops._graphs import definition as _definition
from fastops._graphs.model import Model
from fastops._graphs.saved import load
from fastops._graphs.session import Session

__all__ = [
    "DataType",
    "Graph",
    "Model",
    "Operation",
    "Output",
    "Session",
    "Tensor",
    "cond",
    "from_bytes",
    "gradients",
    "kernel_labels",
    "load",
    "save",
    "to_bytes",
    "while_loop",
]

DataType = tf.DType
Graph = tf.Graph
Operation = tf.Operation
Output = _ops.SymbolicTensor
Tensor = tf.Tensor
cond = tf.cond
gradients = tf.gradients
while_loop = tf.while_loop


def to_bytes(graph):
    """Return a graph as the bytes of a GraphDef.

    Parameters
    ----------
    graph : tf.Graph
        The graph.

    Returns
    -------
    bytes

    Examples
    --------
    >>> from fastops import graph, ops
    >>> with graph.Graph().as_default() as g:
    ...     _ = ops.neg(x=[1.0, 2.0], name="minus")
    >>> data = graph.to_bytes(g)
    >>> [operation.name for operation in graph.from_bytes(data).get_operations()]
    ['minus/x', 'minus']
    """
    return graph.as_graph_def().SerializeToString(deterministic=True)


def from_bytes(data, *, graph=None, prefix="", replace=None):
    """Return a graph made of the bytes of a GraphDef.

    Parameters
    ----------
    data : bytes
        What `to_bytes` returns, or a frozen graph's file holds.
    graph : tf.Graph, optional
        The graph to add the operations to; by default a new one.
    prefix : str
        The name scope of the operations.
    replace : dict of str to tf.Tensor, optional
        Tensors of `graph` that stand for those of these names.

    Returns
    -------
    tf.Graph

    Raises
    ------
    ValueError
        If these are no such bytes, if this TensorFlow does not have one of the ops, or if a name is
        taken. The graph is then as it was.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import graph, ops
    >>> with graph.Graph().as_default() as g:
    ...     x = tf.compat.v1.placeholder(tf.float32, name="x")
    ...     y = ops.neg(x=x, name="y")
    >>> with graph.Graph().as_default() as other:
    ...     two = tf.constant(2.0, name="two")
    >>> other = graph.from_bytes(graph.to_bytes(g), graph=other, prefix="in", replace={"x": two})
    >>> float(graph.Session(other).run("in/y:0"))
    -2.0
    """
    definition = _definition.parse(data)
    graph = tf.Graph() if graph is None else graph
    with graph.as_default():
        tf.graph_util.import_graph_def(definition, input_map=replace, name=prefix)
    return graph


def save(graph, path):
    """Write a graph to a file, which `load` reads.

    Parameters
    ----------
    graph : tf.Graph
        The graph.
    path : str or os.PathLike
        The file: as text if its name ends in ``txt``. It is replaced as a whole.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastops import graph, ops
    >>> with graph.Graph().as_default() as g:
    ...     _ = ops.neg(x=[1.0, 2.0], name="minus")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph.save(g, os.path.join(folder, "minus.pb"))
    ...     os.listdir(folder)
    ['minus.pb']
    """
    path = os.fspath(path)
    is_text = path.endswith("txt")
    data = str(graph.as_graph_def()).encode() if is_text else to_bytes(graph)
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)


def kernel_labels(labels):
    """Ask for other kernels: operations that are made meanwhile carry ``_kernel``.

    Parameters
    ----------
    labels : dict of str to str
        The label of the kernel by the op's name.

    Returns
    -------
    context manager

    Examples
    --------
    >>> from fastops import graph, ops
    >>> with graph.Graph().as_default(), graph.kernel_labels({"Neg": "mine"}):
    ...     ops.neg(x=1.0).op.get_attr("_kernel")
    b'mine'
    """
    return tf.compat.v1.get_default_graph()._kernel_label_map(labels)
