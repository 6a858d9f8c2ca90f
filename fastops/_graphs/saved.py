"""Loads saved models of all supported file formats."""

import errno
import os

from tensorflow.core.protobuf import meta_graph_pb2

from fastops._graphs.definition import graph_of, listed, name_of, read
from fastops._graphs.eager import outside_of_graphs
from fastops._graphs.frozen import of_graph
from fastops._graphs.model import Model
from fastops._graphs.saved_model import of_meta_graph, of_saved_model
from fastops._graphs.signature import DEFAULT

_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")
_KERAS = (".keras", ".h5", ".hdf5")


def load(source, signature=DEFAULT, *, tags=None, inputs=None, outputs=None):
    """Load a saved model as a function of named tensors.

    Parameters
    ----------
    source : str, os.PathLike or bytes
        The directory of a SavedModel, which ``model.export`` of Keras also writes; a frozen graph
        (``.pb``, or ``.pbtxt`` as text); a MetaGraph (``.meta``) beside its checkpoint; or the
        bytes of a GraphDef.
    signature : str
        The signature to call. A frozen graph has only the default one.
    tags : str or sequence of str, optional
        The tags of the MetaGraph in a SavedModel that has several; by default "serve".
    inputs, outputs : sequence of str, or dict of str to str, optional
        The tensors of a graph that make up the signature; a dict gives them other names. By default
        the inputs are the placeholders that the outputs depend on, and the outputs are the tensors
        of a frozen graph that no operation takes.

    Returns
    -------
    Model
        Takes the inputs by name, and returns a dict of outputs.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file has another format, or is cut short; if it has no such signature, tags or
        tensor; or if it has an op that this TensorFlow does not have. The message names the file.

    See Also
    --------
    Session : for graphs that a program builds.

    Examples
    --------
    >>> import os, tempfile
    >>> import tensorflow as tf
    >>> from fastops import graph
    >>> with graph.Graph().as_default() as g:
    ...     x = tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
    ...     y = tf.reduce_sum(x, axis=1, name="y")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "sum.pb")
    ...     graph.save(g, path)
    ...     model = graph.load(path)
    >>> model
    <fastops.graph.Model: (x) -> y>
    >>> model([[1.0, 2.0]])
    {'y': <tf.Tensor: shape=(1,), dtype=float32, numpy=array([3.], dtype=float32)>}
    """
    with outside_of_graphs():
        loaded = signatures(source, tags=tags, inputs=inputs, outputs=outputs)
        if signature not in loaded:
            have = listed(loaded) or "none"
            raise ValueError(f"{name_of(source)} has no signature {signature!r}: it has {have}")
        return Model(loaded[signature])


def signatures(source, *, tags=None, inputs=None, outputs=None):
    """Return all signatures of a model by name; arguments are those of `load`."""
    if isinstance(source, bytes):
        name = name_of(source)
        return of_graph(graph_of(source, name, outputs), name, inputs, outputs)
    path = os.fspath(source)
    base, extension = os.path.basename(path), os.path.splitext(path)[1].lower()
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if base in _SAVED_MODELS:
        path = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        if not any(os.path.exists(os.path.join(path, name)) for name in _SAVED_MODELS):
            raise ValueError(f"{path} is not a SavedModel: it has no saved_model.pb")
        return of_saved_model(path, path, tags, inputs, outputs)
    if tags is not None:
        raise ValueError(f"{path} is not a SavedModel, so it has no tags")
    if extension in _KERAS:
        raise ValueError(
            f"{path} is a model of Keras in its own format: "
            "load it in Keras, and write it by `model.export(directory)` first"
        )
    with open(path, "rb") as file:
        data = file.read()
    if extension == ".meta":
        return of_meta_graph(read(meta_graph_pb2.MetaGraphDef, data, path), path, inputs, outputs)
    return of_graph(graph_of(data, path, outputs), path, inputs, outputs)
