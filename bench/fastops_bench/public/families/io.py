"""`tf.io`: functions that encode, decode and parse."""

import tensorflow as tf

example = tf.train.Example(
    features=tf.train.Features(
        feature={"value": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))}
    )
).SerializeToString()
sequence = tf.train.SequenceExample(
    context=tf.train.Features(
        feature={"value": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))}
    )
).SerializeToString()
features = {"value": tf.io.FixedLenFeature([2], tf.float32)}


def beside(world):
    return {
        "number": tf.constant([[2]], tf.int64),
        "base64": tf.io.encode_base64(world.s),
        "rows": tf.io.serialize_many_sparse(world.sp),
        "tensor": tf.io.serialize_tensor(world.x),
        "lines": tf.constant(["1,2.5", "3,4.5"]),
        "texts": tf.constant(["abcd", "efgh"]),
    }


TEXT = """
tf.io.decode_base64(base64)
tf.io.decode_compressed(s)
tf.io.decode_csv(lines, [[0], [0.0]])
tf.io.decode_json_example('{"features": {"feature": {}}}')
tf.io.decode_proto([example], "tensorflow.Example", ["features"], [tf.string])
tf.io.decode_raw(texts, tf.uint8)
tf.io.deserialize_many_sparse(rows, tf.float32)
tf.io.encode_base64(s)
tf.io.encode_proto([[1]], [number], ["size"], "tensorflow.TensorShapeProto.Dim")
tf.io.parse_example([example, example], features)
tf.io.parse_sequence_example([sequence], features)
tf.io.parse_single_example(example, features)
tf.io.parse_single_sequence_example(sequence, features)
tf.io.parse_tensor(tensor, tf.float32)
tf.io.serialize_many_sparse(sp)
tf.io.serialize_sparse(sp)
tf.io.serialize_tensor(x)
"""
