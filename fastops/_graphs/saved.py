"""Saved models as callables."""

import errno
import inspect
import keyword
import os
import tempfile
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from google.protobuf import message, text_format
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.saved_model import loader_impl

from fastops._core import opdef
from fastops._graphs.session import dims_of, fits, outside_of_graphs
from fastops._plans.caller import Caller, Case
from fastops._plans.function import MOST_SIGNATURES
from fastops._plans.planned import Planned
from fastops._plans.schedule import functions_of

DEFAULT = "serving_default"
_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")
_KERAS = (".keras", ".h5", ".hdf5")
_INTERNAL = ("__saved_model_init_op", "__saved_model_train_op")
_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp", "TemporaryVariable"})
_NEVER_RESULTS = frozenset({"Const", "Placeholder", "PlaceholderWithDefault"})


def load(source, signature=DEFAULT, *, tags=None, inputs=None, outputs=None):
    """Load a saved model as a function of named tensors.

    Parameters
    ----------
    source : str, os.PathLike or bytes
        The directory of a SavedModel, which is what ``model.export`` of Keras writes too; a frozen
        graph (``.pb``, or ``.pbtxt`` as text); a MetaGraph (``.meta``) beside its checkpoint; or
        the bytes of a GraphDef.
    signature : str
        The signature to call. A frozen graph has but the default.
    tags : str or sequence of str, optional
        The tags of the MetaGraph in a SavedModel that has several; "serve" if there is one.
    inputs, outputs : sequence of str, or dict of str to str, optional
        Tensors of a graph that stand for a signature, under other names if it is a dict. By default
        the inputs are the placeholders that the outputs depend on, and the outputs are what nothing
        in a frozen graph takes.

    Returns
    -------
    Model
        To be called with named inputs; it returns a dict of outputs.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not what it should be, or is cut short; if it has no such signature, tags or
        tensor, or an op that this TensorFlow does not have. The message names the file.

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
        found = signatures(source, tags=tags, inputs=inputs, outputs=outputs)
        if signature not in found:
            have = _list(found) or "none"
            raise ValueError(f"{_name(source)} has no signature {signature!r}: it has {have}")
        return Model(found[signature])


@dataclass
class Signature:
    """A part of a model that can be called.

    Attributes
    ----------
    source : str
        The model's path.
    name : str
        Its key in the model.
    concrete : ConcreteFunction
        What it calls.
    inputs : dict of str to tf.TensorSpec
        In the order in which `concrete` takes them.
    outputs : dict of str to tf.TensorSpec
        In the order in which `pack` has them.
    pack : callable
        Makes the outputs by name of the list that `concrete` returns.
    kept : object
        What has to live as long.
    """

    source: str
    name: str
    concrete: object
    inputs: dict
    outputs: dict
    pack: object
    kept: object = None


def signatures(source, *, tags=None, inputs=None, outputs=None):
    """Return all signatures of a model by name; arguments are those of `load`."""
    if isinstance(source, bytes):
        return _of_graph(_graph_of(source, _name(source), outputs), _name(source), inputs, outputs)
    path = os.fspath(source)
    base, extension = os.path.basename(path), os.path.splitext(path)[1].lower()
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if base in _SAVED_MODELS:
        path = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        if not any(os.path.exists(os.path.join(path, name)) for name in _SAVED_MODELS):
            raise ValueError(f"{path} is no SavedModel: it has no saved_model.pb")
        return _of_saved_model(path, path, tags, inputs, outputs)
    if tags is not None:
        raise ValueError(f"{path} is no SavedModel, and has no tags")
    if extension in _KERAS:
        raise ValueError(
            f"{path} is a model of Keras in its own format: "
            "load it in Keras, and write it by `model.export(directory)` first"
        )
    with open(path, "rb") as file:
        data = file.read()
    if extension == ".meta":
        return _of_meta_graph(_read(meta_graph_pb2.MetaGraphDef, data, path), path, inputs, outputs)
    return _of_graph(_graph_of(data, path, outputs), path, inputs, outputs)


class _Contract:
    """What a model's calls have to be like.

    Parameters
    ----------
    signature : Signature
        What is called.

    Attributes
    ----------
    signature : Signature
        What is called.
    inputs : dict of str to tf.TensorSpec
        What it takes.
    planned : Planned
        What runs it.
    """

    def __init__(self, signature):
        self.signature = signature
        self.inputs = signature.inputs
        self.planned = _PlannedModel(signature)
        self._takes = [
            (name, spec.dtype, spec.dtype.as_datatype_enum, dims_of(spec.shape))
            for name, spec in signature.inputs.items()
        ]

    def __call__(self, /, *args, **inputs):
        """Have TensorFlow make a call, also where a graph is under construction."""
        given = self.tensors(self.named(args, inputs))
        return self.signature.pack(self.planned.run_original(*given))

    def tensors(self, inputs):
        """Return the tensors that the concrete function takes, for the inputs by name."""
        given = []
        for name, dtype, number, dims in self._takes:
            value = inputs[name]
            if type(value) is not ops.EagerTensor:
                value = self._convert(name, dtype, value)
            elif value._datatype_enum() != number:
                raise TypeError(self._about(name, f"a tensor of {value.dtype.name}"))
            if not fits(value._shape_tuple(), dims):
                raise TypeError(self._about(name, f"a tensor of shape {value.shape}"))
            given.append(value)
        return given

    def named(self, args, inputs):
        """Return the inputs by name, the only one of which may come without."""
        if args:
            if len(self.inputs) != 1 or len(args) != 1:
                raise TypeError(f"{self.title} takes its inputs by name: {_list(self.inputs)}")
            (name,) = self.inputs
            if name in inputs:
                raise TypeError(f"{self.title} got input {name!r} twice")
            inputs = {name: args[0], **inputs}
        for name in self.inputs:
            if name not in inputs:
                raise TypeError(f"{self.title} misses its input {name!r}")
        for name in inputs:
            if name not in self.inputs:
                have = _list(self.inputs)
                raise TypeError(f"{self.title} has no input {name!r}: it has {have}")
        return inputs

    def are_as_taken(self, inputs):
        """Tell whether inputs, which are right, become tensors without a change of their dtype."""
        return all(
            type(value) is ops.EagerTensor
            or (type(value) is np.ndarray and value.dtype == self.inputs[name].dtype.as_numpy_dtype)
            for name, value in inputs.items()
        )

    def _convert(self, name, dtype, value):
        here = context.context()
        if (
            type(value) is np.ndarray
            and value.dtype == dtype.as_numpy_dtype
            and here.executing_eagerly()
        ):
            # A copy, for the tensor may share its memory, and be an output.
            return ops.EagerTensor(value.copy(), here.device_name, dtype.as_datatype_enum)
        try:
            value = tf.convert_to_tensor(_restored(value, dtype), dtype)
        except (TypeError, ValueError, tf.errors.OpError) as error:
            text = f"{type(value).__name__}: {error}"
            raise TypeError(self._about(name, text)) from None
        return value

    def _about(self, name, got):
        spec = self.inputs[name]
        return (
            f"{self.title} takes {spec.dtype.name} of shape {spec.shape} as its input {name!r}, "
            f"not {got}"
        )

    @property
    def title(self):
        """What messages call it."""
        return f"{self.signature.name} of {self.signature.source}"


class _PlannedModel(Planned):
    """A model's concrete function, whose results have names."""

    def __init__(self, signature):
        super().__init__(signature.concrete)
        self.pack = signature.pack

    def run_bare(self, inputs):
        return self.pack(tf.nest.flatten(super().run_bare(inputs), expand_composites=True))


class Model(Caller):
    """A function of named tensors, made by `fastops.graph.load`.

    Called with its inputs by name, of which the only one may come without, it returns the outputs
    by name. It raises `TypeError` if an input is missing, unknown, or of another dtype or shape,
    and says which; and a `tf.errors.OpError` if an operation fails.

    Parameters
    ----------
    signature : Signature
        What it calls.

    Attributes
    ----------
    inputs, outputs : dict of str to tf.TensorSpec
        Dtypes and shapes by name.
    name : str
        The signature's.
    """

    def __init__(self, signature):
        self._contract = _Contract(signature)
        super().__init__(self._contract, True, MOST_SIGNATURES)
        self.inputs = dict(signature.inputs)
        self.outputs = dict(signature.outputs)
        self.name = signature.name
        self.__name__ = signature.name
        self.__doc__ = _document(signature)
        self.__signature__ = _python_signature(self.inputs)

    @property
    def title(self):
        """The signature's name, and where it comes from."""
        return self._contract.title

    @property
    def reason(self):
        """Why TensorFlow runs it and not a plan, or `None`."""
        return self._contract.planned.reason

    def describe(self):
        """Say who runs it, and why.

        Returns
        -------
        dict
            With ``"executor"``, ``"reason"`` why that is TensorFlow, and ``"nodes"`` of the plan.
        """
        return self._contract.planned.describe()

    def prepare(self, args, kwargs, called, result):
        """See to the first call with inputs of these dtypes and shapes; for the base class."""
        contract = self._contract
        inputs = contract.named(args, kwargs)
        result = contract.signature.pack(contract.planned.run(contract.tensors(inputs)))
        if not contract.are_as_taken(inputs):
            return None, True, result  # other values may not be convertible
        places = {name: place for place, name in enumerate(inputs)}
        takes = [places[name] for name in self.inputs]
        return Case(contract.planned, takes, contract.signature.pack), True, result

    def __repr__(self):
        return f"<fastops.graph.Model: ({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def _restored(value, dtype):
    """Return an array of a dtype that NumPy files do not have, such as bfloat16, as what it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "V" and value.dtype.names is None:
        return value.view(dtype.as_numpy_dtype)
    return value


def _name(source):
    return "GraphDef" if isinstance(source, bytes) else os.fspath(source)


def _list(names):
    return ", ".join(map(repr, sorted(names)))


def _document(signature):
    def rows(specs, indent):
        return "".join(
            f"{indent}{name} : {spec.dtype.name}, shape {spec.shape}\n"
            for name, spec in specs.items()
        )

    takes = f"Parameters\n----------\n{rows(signature.inputs, '')}\n" if signature.inputs else ""
    return (
        f"Run {signature.name} of {signature.source}.\n\n{takes}"
        f"Returns\n-------\ndict\n{rows(signature.outputs, '    ')}"
    )


def _python_signature(inputs):
    if any(not name.isidentifier() or keyword.iskeyword(name) for name in inputs):
        return inspect.Signature([inspect.Parameter("inputs", inspect.Parameter.VAR_KEYWORD)])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if len(inputs) != 1:
        kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in inputs])


# ---------------------------------------------------------------------------------------------
# What is in a file
# ---------------------------------------------------------------------------------------------


def _read(kind, data, path):
    """Parse a protobuf, which may be text."""
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
        raise ValueError(f"{path} is no {what}, or damaged or cut short: {error}") from None


def _graph_of(data, path, outputs):
    """Return the GraphDef in a file."""
    definition = _read(tf.compat.v1.GraphDef, data, path)
    if not all(node.name and node.op for node in definition.node):
        raise ValueError(f"{path} is no GraphDef, or damaged")
    if not definition.node:
        raise ValueError(f"{path} is empty")
    # The versions come last: a file that was cut between two nodes ends before them.
    if outputs is None and not path.endswith("txt") and not definition.HasField("versions"):
        raise ValueError(f"{path} is cut short, or very old: name its `outputs` to load it")
    return definition


def count_ops(concrete):
    """Return how often each op stands in a function's graph and in those that it calls."""
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


def parse(data):
    """Return the GraphDef in bytes, whose ops this TensorFlow has."""
    definition = _graph_of(data, _name(data), ())
    _check_ops(definition, _name(data))
    return definition


def _check_ops(definition, path):
    """Raise `ValueError` for an op that this TensorFlow does not have."""
    library = {function.signature.name: function for function in definition.library.function}
    parts = [("", definition.node)]
    parts += [(f" in function {name!r}", one.node_def) for name, one in library.items()]
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


def _of_saved_model(directory, path, tags, inputs, outputs):
    try:
        proto = loader_impl.parse_saved_model(directory)
    except OSError as error:
        raise ValueError(f"{path} is damaged or cut short: {error}") from None
    chosen = _tagged(proto, path, tags)
    _check_ops(chosen.graph_def, path)
    try:
        loaded = tf.saved_model.load(directory, tags=list(chosen.meta_info_def.tags))
    except Exception as error:
        raise ValueError(f"{path} cannot be loaded: {error}") from error
    if inputs is None and outputs is None:
        return {
            name: _of_concrete(concrete, name, path, loaded)
            for name, concrete in loaded.signatures.items()
            if name not in _INTERNAL
        }
    if not hasattr(loaded, "prune"):
        raise ValueError(f"{path} has signatures: it takes no `inputs` and `outputs`")
    if outputs is None:
        raise ValueError(f"{path} is no frozen graph: name its `outputs` too")
    return _of_wrapped(loaded, path, inputs, outputs, is_frozen=False)


def _tagged(proto, path, tags):
    """Return the MetaGraph with some tags."""
    if not proto.meta_graphs:
        raise ValueError(f"{path} has no MetaGraph: it is damaged or cut short")
    sets = [tuple(sorted(one.meta_info_def.tags)) for one in proto.meta_graphs]
    if tags is None:
        wanted = sets[0] if len(sets) == 1 else ("serve",)
    else:
        wanted = tuple(sorted([tags] if isinstance(tags, str) else tags))
    if wanted not in sets:
        have = "; ".join(map(_list, sets))
        raise ValueError(f"{path} has no MetaGraph with the tags {_list(wanted)}: it has {have}")
    return proto.meta_graphs[sets.index(wanted)]


def _of_concrete(concrete, name, path, kept):
    """Return the signature that TensorFlow made of a SavedModel's."""
    kind = concrete.function_type
    inputs = {key: parameter.type_constraint for key, parameter in kind.parameters.items()}
    outputs = dict(concrete.structured_outputs)
    return Signature(path, name, concrete, inputs, outputs, _packer(outputs, sorted(outputs)), kept)


def _of_graph(definition, path, inputs, outputs):
    """Return the only signature of a frozen graph."""
    _check_ops(definition, path)

    def body():
        tf.graph_util.import_graph_def(definition, name="")

    try:
        wrapped = tf.compat.v1.wrap_function(body, [])
    except Exception as error:
        raise ValueError(f"{path} is damaged or cut short: {error}") from error
    return _of_wrapped(wrapped, path, inputs, outputs, is_frozen=True)


def _of_wrapped(wrapped, path, inputs, outputs, *, is_frozen):
    """Return the signature that leads from some tensors of a graph to others."""
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
        names = _list(op.name for op in placeholders)
        raise ValueError(f"{path}: the outputs depend on what is no input: {names}")
    for op in needed:
        if is_frozen and op.type in _VARIABLES:
            raise ValueError(
                f"{path}: {op.name!r} is a variable, and has no value here: freeze the graph first"
            )
    specs = {name: tf.TensorSpec(one.shape, one.dtype) for name, one in takes.items()}
    try:
        concrete = wrapped.prune([*takes.values()], [*gives.values()],
                         input_signature=(tuple(specs.values()), {}))  # fmt: skip
    except Exception as error:
        raise ValueError(f"{path} has no function of these tensors: {error}") from error
    given = {name: tf.TensorSpec(one.shape, one.dtype) for name, one in gives.items()}
    return {
        DEFAULT: Signature(path, DEFAULT, concrete, specs, given, _packer(gives, gives), wrapped)
    }


def _packer(names, flat):
    """Return what makes a dict, with its items in that order, of a flat list of results."""
    flat = list(flat)
    places = [(name, flat.index(name)) for name in names]
    return lambda results: {name: results[place] for name, place in places}


def _ends(graph):
    """Return the names of the tensors that no operation takes."""
    return [
        op.name if len(op.outputs) == 1 else one.name
        for op in graph.get_operations()
        if op.type not in _NEVER_RESULTS and not any(one.consumers() for one in op.outputs)
        for one in op.outputs
    ]


def _needed(graph, outputs, inputs):
    """Return the operations that some tensors depend on, others given, in the graph's order."""
    given = {one.name for one in inputs}
    waiting = [one.op for one in outputs if one.name not in given]
    found = set()
    while waiting:
        op = waiting.pop()
        if op.name not in found:
            found.add(op.name)
            waiting += op.control_inputs
            waiting += [one.op for one in op.inputs if one.name not in given]
    return [op for op in graph.get_operations() if op.name in found]


def _tensors(graph, path, names):
    """Return tensors by the names under which they are asked for."""
    if not isinstance(names, dict):
        names = {name: name for name in ([names] if isinstance(names, str) else names)}
    found = {}
    for key, name in names.items():
        try:
            found[key] = graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
        except (KeyError, ValueError):
            raise ValueError(f"{path} has no tensor {name!r}") from None
    return found


def _of_meta_graph(meta, path, inputs, outputs):
    """Return the signatures of a MetaGraph beside its checkpoint: those of a SavedModel of both."""
    checkpoint = os.path.splitext(os.path.abspath(path))[0]
    _check_ops(meta.graph_def, path)
    del meta.meta_info_def.tags[:]
    meta.meta_info_def.tags.append("serve")
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, "variables"))
        if meta.saver_def.restore_op_name:
            if not os.path.exists(f"{checkpoint}.index"):
                raise ValueError(f"{path} has variables, but there is no {checkpoint}.index")
            folder, base = os.path.split(checkpoint)
            for name in os.listdir(folder):
                if name == f"{base}.index" or name.startswith(f"{base}.data-"):
                    os.symlink(
                        os.path.join(folder, name),
                        os.path.join(directory, "variables", "variables" + name[len(base) :]),
                    )
        proto = saved_model_pb2.SavedModel(saved_model_schema_version=1, meta_graphs=[meta])
        with open(os.path.join(directory, "saved_model.pb"), "wb") as file:
            file.write(proto.SerializeToString())
        return _of_saved_model(directory, path, None, inputs, outputs)
