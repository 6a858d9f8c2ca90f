"""SavedModels, and MetaGraphs beside their checkpoints, which are loaded as SavedModels."""

import os
import tempfile

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.saved_model import loader_impl

from fastops._graphs.definition import check_ops, listed
from fastops._graphs.frozen import of_wrapped
from fastops._graphs.signature import ModelSignature, packer

_INTERNAL = ("__saved_model_init_op", "__saved_model_train_op")


def of_saved_model(directory, path, tags, inputs, outputs):
    try:
        proto = loader_impl.parse_saved_model(directory)
    except OSError as error:
        raise ValueError(f"{path} is damaged or cut short: {error}") from None
    chosen = _tagged(proto, path, tags)
    check_ops(chosen.graph_def, path)
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
        raise ValueError(f"{path} is not a frozen graph: name its `outputs` too")
    return of_wrapped(loaded, path, inputs, outputs, is_frozen=False)


def _tagged(proto, path, tags):
    """Return the MetaGraph with some tags."""
    if not proto.meta_graphs:
        raise ValueError(f"{path} has no MetaGraph: it is damaged or cut short")
    sets = [tuple(sorted(meta_graph.meta_info_def.tags)) for meta_graph in proto.meta_graphs]
    if tags is None:
        wanted = sets[0] if len(sets) == 1 else ("serve",)
    else:
        wanted = tuple(sorted([tags] if isinstance(tags, str) else tags))
    if wanted not in sets:
        have = "; ".join(map(listed, sets))
        raise ValueError(f"{path} has no MetaGraph with the tags {listed(wanted)}: it has {have}")
    return proto.meta_graphs[sets.index(wanted)]


def _of_concrete(concrete, name, path, kept):
    """Return the signature for a concrete function that TensorFlow has loaded."""
    kind = concrete.function_type
    inputs = {key: parameter.type_constraint for key, parameter in kind.parameters.items()}
    outputs = dict(concrete.structured_outputs)
    return ModelSignature(
        path, name, concrete, inputs, outputs, packer(outputs, sorted(outputs)), kept
    )


def of_meta_graph(meta, path, inputs, outputs):
    """Return the signatures of a MetaGraph, by making a SavedModel of it and its checkpoint."""
    checkpoint = os.path.splitext(os.path.abspath(path))[0]
    check_ops(meta.graph_def, path)
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
        return of_saved_model(directory, path, None, inputs, outputs)
