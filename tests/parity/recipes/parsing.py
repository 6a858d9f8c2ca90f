"""Records, protocol buffers, serialized tensors, files."""

import atexit
import gzip
import json
import tempfile
import zlib
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2
from tensorflow.core.framework.tensor_pb2 import TensorProto

from parity.draw import constant, floats, ints, longs, strings
from parity.recipes import SIZES, recipe

BOTH = (False, True)

# ---------------------------------------------------------------------------------------------
# Bytes
# ---------------------------------------------------------------------------------------------


def binary(d, length, *shape):
    """Return strings of random bytes."""
    generator = d.generator()
    words = [generator.bytes(length) for _ in range(int(np.prod(shape)))]
    return strings(np.array(words, object).reshape(shape))


@recipe("DecodeRaw")
def decode_raw(d):
    size = d.out_type.dtype.size
    one_or_zero = d.out_type.dtype == tf.bool
    for little_endian in BOTH:
        for shape, count in (
            ((), 1),
            ((2,), 4),
            ((0,), 3),
            ((3,), 0),
            ((2, 0, 3), 2),
            ((2, 1, 3, 1, 2), 5),
            *([((100,), 1000)] if d.thorough else ()),
        ):
            words = [b"\0\1" * count if one_or_zero else d.generator().bytes(count * size)]
            drawn = strings(np.resize(np.array(words, object), shape))
            yield {"bytes": drawn, "little_endian": little_endian}
    if d.special:
        yield {"bytes": d.of("string")(5)}


@recipe("DecodePaddedRaw")
def decode_padded_raw(d):
    size = d.out_type.dtype.size
    for little_endian, count in product(BOTH, (1, 3)):
        for shape, length in (((), size), ((2,), 0), ((0,), 1), ((4,), 17), ((2, 1, 3), 5)):
            yield {
                "input_bytes": binary(d, length, *shape),
                "fixed_length": ints(count * size),
                "little_endian": little_endian,
            }
        yield {
            "input_bytes": d.of("string")(9),
            "fixed_length": ints(count * size),
            "little_endian": little_endian,
        }


@recipe("DecodeCompressed")
def decompress(d):
    texts = [b"", b"a", b"word" * 999, bytes(range(256))]
    for kind, compress in (("", bytes), ("ZLIB", zlib.compress), ("GZIP", gzip.compress)):
        compressed = np.array([compress(text) for text in texts], object)
        for shape in ((), (0,), (4,), (2, 1, 3)):
            yield {"bytes": strings(np.resize(compressed, shape)), "compression_type": kind}
        if d.special:
            yield {"bytes": d.of("string")(3), "compression_type": kind}
            yield {"bytes": strings(compressed[2][:-7]), "compression_type": kind}


@recipe("DecodeCSV")
def decode_csv(d):
    def rows(*lines):
        return {"records": strings(*lines)}

    whole, long, real, wide, word = ints(7), longs(8), floats(0.5), constant(-2.5, "float64"), b"x"
    mixed = [whole, long, real, wide, strings(word)]
    yield rows("1,2,3.5,4e5,five", ",,,,", '-1,"2",nan,inf,"a,""b"""') | {"record_defaults": mixed}
    yield rows(["1,2,3,4,5"]) | {"record_defaults": mixed}
    yield rows("1,2,3,4,5") | {"record_defaults": [tf.reshape(value, [1]) for value in mixed]}
    yield rows([]) | {"record_defaults": mixed}
    yield rows([["1", "2"], ["3", "4"]]) | {"record_defaults": [long]}
    yield rows("1", "2") | {"record_defaults": [ints([])]}
    yield rows("1;NA", "NA;b") | {
        "record_defaults": [whole, strings(word)],
        "field_delim": ";",
        "na_value": "NA",
    }
    yield rows('a,"b', '"",c') | {
        "record_defaults": [strings(word)] * 2,
        "use_quote_delim": False,
    }
    yield rows("1,2,3,4", "5,6,,8") | {"record_defaults": [real, whole], "select_cols": [1, 2]}
    if d.special:
        yield rows(d.of("string")(1)[0].numpy()) | {"record_defaults": [strings("")]}
        yield rows("1") | {"record_defaults": mixed}
        yield rows("x") | {"record_defaults": [whole]}
        yield rows("") | {"record_defaults": [floats([])]}


@recipe("SerializeTensor")
def serialize_tensor(d):
    for shape in SIZES:
        yield {"tensor": d.T(*shape)}


def tensor_proto(tensor):
    """Return the protocol buffer of a tensor of any dtype."""
    if tensor.dtype == tf.string:
        return tf.make_tensor_proto(tensor)
    return TensorProto(
        dtype=tensor.dtype.as_datatype_enum,
        tensor_shape=tensor.shape.as_proto(),
        tensor_content=tensor.numpy().tobytes(),
    )


@recipe("ParseTensor")
def parse_tensor(d):
    for shape in SIZES:
        yield {"serialized": strings(tensor_proto(d.out_type(*shape)).SerializeToString())}
    if d.special:
        yield {"serialized": d.of("string")()}
        yield {"serialized": strings(tensor_proto(tf.zeros([2, 0])).SerializeToString())}


# ---------------------------------------------------------------------------------------------
# Examples
# ---------------------------------------------------------------------------------------------


def feature(values):
    """Return a feature of whole numbers, floats or strings, or an empty one."""
    if not values:
        return tf.train.Feature()
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def features(values):
    return tf.train.Features(feature={key: feature(value) for key, value in values.items()})


EXAMPLES = (
    {
        "pair": [1, 2],
        "real": [0.5],
        "name": [b"a"],
        "rows": [1.0, 2.0, 3.0, 4.0],
        "whole": [1, 2, 3],
        "words": [b"x", b"", b"\xff\0"],
        "reals": [1.5],
    },
    {"pair": [3, -4], "name": [b"b"], "rows": [5.0, 6.0], "words": [b"y"], "other": [1]},
    {"whole": [2**63 - 1], "reals": [-0.0, 1e-45, 3e38], "rows": []},
    {},
)
"""The content of examples. Some lack requested features."""

DENSE = {
    "pair": ([2], tf.int64, [7, 8]),
    "real": ([], tf.float32, 0.25),
    "name": ([1], tf.string, [b"nobody"]),
    "rows": ([None, 2], tf.float32, 9.0),
}
"""Features of known size: shape, dtype, and the default for a missing feature."""

VARIABLE = {"whole": tf.int64, "words": tf.string, "reals": tf.float32, "absent": tf.string}
"""Features of any size, and their dtype."""

WANTED = (
    (list(DENSE), list(VARIABLE)),
    (["pair", "name"], ["words"]),
    (["rows"], ["absent", "whole"]),
    (["real", "pair"], []),
    ([], ["reals"]),
)
"""The requested features: dense ones, and those of any size."""


def examples(places):
    return strings(
        [tf.train.Example(features=features(EXAMPLES[i])).SerializeToString() for i in places]
    )


def dense_defaults(keys):
    return [constant(value, dtype) for _, dtype, value in map(DENSE.get, keys)]


def dense_attrs(keys):
    return {
        "dense_defaults": dense_defaults(keys),
        "dense_shapes": [DENSE[key][0] for key in keys],
    }


BATCHES = ([0, 1, 2, 3], [2], [], [3, 3, 0] * 9)


@recipe("ParseExample")
def parse_example(d):
    for (dense, held), batch, named in product(WANTED, BATCHES, BOTH):
        yield {
            "serialized": examples(batch),
            "names": strings([f"example {i}" for i in batch] if named else []),
            "sparse_keys": [strings(key) for key in held],
            "dense_keys": [strings(key) for key in dense],
            "sparse_types": [VARIABLE[key] for key in held],
        } | dense_attrs(dense)
    required = {
        "names": strings([]),
        "sparse_keys": [],
        "dense_keys": [strings("pair")],
        "dense_defaults": [longs([])],
        "sparse_types": [],
        "dense_shapes": [[2]],
    }
    yield required | {"serialized": examples([0, 1])}
    if d.special:
        yield required | {"serialized": examples([0, 2])}
        yield required | {"serialized": d.of("string")(2)}
        yield required | {"serialized": examples([0]), "dense_shapes": [[3]]}


@recipe("ParseExampleV2")
def parse_example_or_examples(d):
    for (dense, held), batch in product(WANTED, BATCHES):
        serialized = examples(batch)
        for ragged in ([], ["words"], ["reals", "absent", "whole"]):
            kept = [key for key in held if key not in ragged]
            call = {
                "sparse_keys": strings(kept),
                "dense_keys": strings(dense),
                "ragged_keys": strings(ragged),
                "num_sparse": len(kept),
                "sparse_types": [VARIABLE[key] for key in kept],
                "ragged_value_types": [VARIABLE[key] for key in ragged],
                "ragged_split_types": [tf.int32, tf.int64, tf.int32][: len(ragged)],
            } | dense_attrs(dense)
            names = strings([f"example {i}" for i in batch])
            yield call | {"serialized": serialized, "names": names}
            if batch:
                yield call | {"serialized": serialized[0], "names": strings([])}
    if d.special:
        yield call | {"serialized": d.of("string")(2), "names": strings([])}


@recipe("ParseSingleExample")
def parse_single_example(d):
    for (dense, held), i in product(WANTED, range(len(EXAMPLES))):
        yield {
            "serialized": examples([i])[0],
            "num_sparse": len(held),
            "sparse_keys": held,
            "dense_keys": dense,
            "sparse_types": [VARIABLE[key] for key in held],
        } | dense_attrs(dense)
    if d.special:
        yield {
            "serialized": d.of("string")(),
            "num_sparse": 0,
            "sparse_keys": [],
            "dense_keys": ["pair"],
            "sparse_types": [],
        } | dense_attrs(["pair"])


@recipe("DecodeJSONExample")
def decode_json_example(d):
    def text(i):
        kinds = {bytes: ("bytesList", lambda value: "YQ=="), float: ("floatList", float)}
        kinds[int] = ("int64List", str)
        listed = {}
        for key, values in EXAMPLES[i].items():
            if values:
                kind, spelled = kinds[type(values[0])]
                listed[key] = {kind: {"value": [spelled(value) for value in values]}}
        return json.dumps({"features": {"feature": listed}})

    texts = np.array([text(1), text(3), "{}", '{"features": {}}'], object)
    for shape in ((), (0,), (4,), (2, 1, 3)):
        # Text that is not JSON is left out, because blanks in TensorFlow's message vary.
        yield {"json_examples": strings(np.resize(texts, shape))}


# ---------------------------------------------------------------------------------------------
# Sequences of examples
# ---------------------------------------------------------------------------------------------

SEQUENCES = (
    (
        EXAMPLES[0],
        {
            "steps": [[1, 2], [3, 4], [5, 6]],
            "marks": [[b"a"], [b"b", b"c"], []],
            "levels": [[0.5], [], [1.5, 2.5]],
        },
    ),
    (EXAMPLES[1], {"steps": [[7, 8]], "marks": [], "levels": [[1.0]]}),
    ({"pair": [0, 0]}, {"steps": [], "marks": [[b""]]}),
)
"""The content of sequences of examples: the context features, and the features of each step."""

LISTS = {"marks": tf.string, "levels": tf.float32}
"""Features of each step that have any size, and their dtype."""

CONTEXTS = (
    (["pair", "name"], ["words", "whole"], ["steps"], ["marks", "levels"]),
    (["real"], [], ["steps"], []),
    ([], ["reals"], [], ["marks"]),
    (["pair"], ["absent"], ["missing", "steps"], ["levels"]),
)
"""The requested features: dense and sparse ones of the context; dense and sparse ones of the
steps."""

SEQUENCE_BATCHES = ([0], [0, 1], [2, 1, 0, 0])


def sequences(places):
    def feature_lists(steps):
        return tf.train.FeatureLists(
            feature_list={
                key: tf.train.FeatureList(feature=[feature(values) for values in one])
                for key, one in steps.items()
            }
        )

    return strings(
        [
            tf.train.SequenceExample(
                context=features(SEQUENCES[i][0]), feature_lists=feature_lists(SEQUENCES[i][1])
            ).SerializeToString()
            for i in places
        ]
    )


def sequence_attrs(dense, held, step_dense, step_held):
    return {
        "context_dense_defaults": dense_defaults(dense),
        "context_sparse_types": [VARIABLE[key] for key in held],
        "context_dense_shapes": [DENSE[key][0] for key in dense],
        "feature_list_dense_types": [tf.int64] * len(step_dense),
        "feature_list_sparse_types": [LISTS[key] for key in step_held],
        "feature_list_dense_shapes": [[2]] * len(step_dense),
    }


@recipe("ParseSequenceExample")
def parse_sequence_example(d):
    for wanted, batch in product(CONTEXTS, SEQUENCE_BATCHES):
        dense, held, step_dense, step_held = wanted
        call = {
            "feature_list_dense_missing_assumed_empty": ["missing"],
            "context_dense_keys": dense,
            "context_sparse_keys": held,
            "feature_list_dense_keys": step_dense,
            "feature_list_sparse_keys": step_held,
            "Ncontext_dense": len(dense),
            "Ncontext_sparse": len(held),
            "Nfeature_list_dense": len(step_dense),
            "Nfeature_list_sparse": len(step_held),
        } | sequence_attrs(*wanted)
        names = [f"sequence {i}" for i in batch]
        yield call | {"serialized": sequences(batch), "debug_name": strings(names)}
        yield call | {"serialized": sequences(batch), "debug_name": strings([])}
    if d.special:
        yield call | {"serialized": d.of("string")(2), "debug_name": strings([])}


@recipe("ParseSequenceExampleV2")
def parse_sequence_or_sequences(d):
    for wanted, batch, ragged, step_ragged in product(
        CONTEXTS, SEQUENCE_BATCHES, ([], ["words", "absent"]), ([], ["levels"])
    ):
        dense, held, step_dense, step_held = wanted
        held = [key for key in held if key not in ragged]
        step_held = [key for key in step_held if key not in step_ragged]
        call = {
            "context_dense_keys": strings(dense),
            "context_sparse_keys": strings(held),
            "context_ragged_keys": strings(ragged),
            "feature_list_dense_keys": strings(step_dense),
            "feature_list_sparse_keys": strings(step_held),
            "feature_list_ragged_keys": strings(step_ragged),
            "feature_list_dense_missing_assumed_empty": constant(
                [key == "missing" for key in step_dense], tf.bool
            ),
            "context_ragged_value_types": [VARIABLE[key] for key in ragged],
            "context_ragged_split_types": [tf.int32, tf.int64][: len(ragged)],
            "Ncontext_sparse": len(held),
            "Nfeature_list_dense": len(step_dense),
            "Nfeature_list_sparse": len(step_held),
            "feature_list_ragged_value_types": [LISTS[key] for key in step_ragged],
            "feature_list_ragged_split_types": [tf.int32] * len(step_ragged),
        } | sequence_attrs(dense, held, step_dense, step_held)
        names = strings([f"sequence {i}" for i in batch])
        yield call | {"serialized": sequences(batch), "debug_name": names}
        # For a single sequence, the splits of ragged features are undefined in TensorFlow.
        if not ragged and not step_ragged:
            yield call | {"serialized": sequences(batch)[0], "debug_name": strings([])}
    if d.special:
        yield call | {"serialized": d.of("string")(2), "debug_name": strings([])}


@recipe("ParseSingleSequenceExample")
def parse_single_sequence_example(d):
    for wanted, i in product(CONTEXTS, range(len(SEQUENCES))):
        dense, held, step_dense, step_held = wanted
        call = {
            "feature_list_dense_missing_assumed_empty": strings(["missing"]),
            "context_dense_keys": [strings(key) for key in dense],
            "context_sparse_keys": [strings(key) for key in held],
            "feature_list_dense_keys": [strings(key) for key in step_dense],
            "feature_list_sparse_keys": [strings(key) for key in step_held],
            "debug_name": strings("sequence"),
        } | sequence_attrs(*wanted)
        yield call | {"serialized": sequences([i])[0]}
    if d.special:
        yield call | {"serialized": d.of("string")()}


# ---------------------------------------------------------------------------------------------
# Protocol buffers
# ---------------------------------------------------------------------------------------------

FIELDS = {
    "double": (tf.float64,),
    "float": (tf.float32, tf.float64),
    "int64": (tf.int64,),
    "uint64": (tf.uint64,),
    "int32": (tf.int32, tf.int64),
    "fixed64": (tf.uint64,),
    "fixed32": (tf.uint32, tf.uint64),
    "bool": (tf.bool,),
    "string": (tf.string,),
    "bytes": (tf.string,),
    "uint32": (tf.uint32, tf.uint64),
    "sfixed32": (tf.int32, tf.int64),
    "sfixed64": (tf.int64,),
    "sint32": (tf.int32, tf.int64),
    "sint64": (tf.int64,),
}
"""Types of the fields of protocol buffers, and their dtypes."""


@cache
def message_source():
    """Return the source of a message with a repeated field and a single field of each type."""
    file = descriptor_pb2.FileDescriptorProto(name="parity.proto", package="parity")
    message = file.message_type.add(name="Message")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, kind in enumerate(FIELDS, 1):
        code = kinds.Type.Value(f"TYPE_{kind.upper()}")
        message.field.add(name=kind, number=number, type=code, label=kinds.LABEL_REPEATED)
        message.field.add(name=f"one_{kind}", number=50 + number, type=code, label=1)
    return b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def encodings(d):
    """Yield arguments for encoders of messages."""
    source = {"message_type": "parity.Message", "descriptor_source": message_source()}
    for kind, dtypes in FIELDS.items():
        for dtype in dtypes:
            values = d.of(dtype).ordinary(3, 2)
            if kind == "string":
                values = strings([["a", "ü"], ["", "x y"], ["b", "1"]])
            yield source | {
                "sizes": ints([[2], [0], [1]]),
                "values": [values],
                "field_names": [kind],
            }
            yield source | {
                "sizes": ints([[1], [1], [0]]),
                "values": [values],
                "field_names": [f"one_{kind}"],
            }
    yield source | {
        "sizes": ints([[[2, 0]], [[1, 3]]]),
        "values": [d.of("int64").ordinary(2, 1, 2), d.of("float32").ordinary(2, 1, 3)],
        "field_names": ["sint64", "float"],
    }
    yield {
        "sizes": ints([[1, 1], [1, 0]]),
        "values": [longs([[3], [-1]]), strings([["rows"], [""]])],
        "field_names": ["size", "name"],
        "message_type": "tensorflow.TensorShapeProto.Dim",
    }


@recipe("EncodeProto")
def encode_proto(d):
    yield from encodings(d)
    if d.special:
        for call in encodings(d):
            for dtype in {value.dtype for value in call["values"]} - {tf.string}:
                values = [d.of(dtype)(*value.shape) for value in call["values"]]
                yield call | {"values": values}


@recipe("DecodeProtoV2")
def decode_proto(d):
    for call in encodings(d):
        encoded = tf.raw_ops.EncodeProto(**call)
        wanted = {
            "bytes": encoded,
            "message_type": call["message_type"],
            "field_names": call["field_names"],
            "output_types": [values.dtype for values in call["values"]],
            "descriptor_source": call.get("descriptor_source", "local://"),
        }
        yield wanted
        yield wanted | {"sanitize": True}
        yield wanted | {"bytes": tf.reshape(encoded, [-1])[0]}
    shape = {
        "message_type": "tensorflow.TensorShapeProto",
        "field_names": ["unknown_rank", "dim"],
        "output_types": [tf.bool, tf.string],
    }
    yield shape | {
        "bytes": strings(['dim { size: 3 name: "ü" } dim { }', "unknown_rank: true", ""]),
        "message_format": "text",
    }
    yield shape | {"bytes": strings([[tf.TensorShape([2, 3]).as_proto().SerializeToString()]])}
    yield shape | {"bytes": strings(["", ""]), "field_names": [], "output_types": []}
    if d.special:
        yield shape | {"bytes": d.of("string")(3)}
        yield shape | {"bytes": d.of("string")(3), "message_format": "text"}


# ---------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------

FILES = {
    "empty": b"",
    "text.txt": b"one\ntwo\n",
    "bytes.bin": bytes(range(256)) * 9,
    "old.vocab": b"the\nof\nand\nto\n",
    "new.vocab": b"and\nin\nthe\na\nof\n",
}


@cache
def folder():
    """Write the files into a folder that is removed when the process ends; return its path."""
    made = tempfile.TemporaryDirectory(prefix="parity")
    atexit.register(made.cleanup)
    for name, contents in FILES.items():
        Path(made.name, name).write_bytes(contents)
    return made.name


@recipe("ReadFile")
def read_file(d):
    for name in (*FILES, *(["missing"] if d.special else ())):
        yield {"filename": strings(f"{folder()}/{name}")}


@recipe("MatchingFiles")
def matching_files(d):
    for patterns in (["*"], ["*.vocab"], ["nothing*"], ["*.txt", "[e-n]*", "bytes.bin"], []):
        yield {"pattern": strings([f"{folder()}/{pattern}" for pattern in patterns])}
    yield {"pattern": strings(f"{folder()}/*")}


@recipe("GenerateVocabRemapping")
def vocab_remapping(d):
    for offset, count, old_size in ((0, 5, -1), (1, 3, -1), (0, 5, 2), (2, 0, -1), (4, 1, 4)):
        yield {
            "new_vocab_file": strings(f"{folder()}/new.vocab"),
            "old_vocab_file": strings(f"{folder()}/old.vocab"),
            "new_vocab_offset": offset,
            "num_new_vocab": count,
            "old_vocab_size": old_size,
        }


@recipe("ShardedFilename")
def sharded_filename(d):
    for basename, shard, count in (("a", 0, 1), ("", 3, 7), ("ü/x", 12345, 99999), ("a", 2, 10**6)):
        yield {"basename": strings(basename), "shard": ints(shard), "num_shards": ints(count)}


@recipe("ShardedFilespec")
def sharded_filespec(d):
    for basename, count in (("a", 1), ("", 7), ("ü/x", 99999), ("a", 10**6)):
        yield {"basename": strings(basename), "num_shards": ints(count)}
