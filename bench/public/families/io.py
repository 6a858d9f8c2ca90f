"""`tf.io`: what encodes, decodes and parses."""

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

TEXT = """
tf.io.decode_base64(tf.io.encode_base64(s))
tf.io.decode_compressed(s)
tf.io.decode_csv(["1,2.5", "3,4.5"], [[0], [0.0]])
tf.io.decode_json_example('{"features": {"feature": {}}}')
tf.io.decode_proto([example], "tensorflow.Example", ["features"], [tf.string])
tf.io.decode_raw(["abcd", "efgh"], tf.uint8)
tf.io.deserialize_many_sparse(tf.io.serialize_many_sparse(sp), tf.float32)
tf.io.encode_base64(s)
tf.io.encode_proto([[1]], [tf.constant([[2]], tf.int64)], ["size"], \
"tensorflow.TensorShapeProto.Dim")
tf.io.parse_example([example, example], features)
tf.io.parse_sequence_example([sequence], features)
tf.io.parse_single_example(example, features)
tf.io.parse_single_sequence_example(sequence, features)
tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32)
tf.io.serialize_many_sparse(sp)
tf.io.serialize_sparse(sp)
tf.io.serialize_tensor(x)
"""
