"""`tf.sparse`, `tf.SparseTensor`, `tf.IndexedSlices` and `tf.sets`."""

import tensorflow as tf


def beside(world):
    return {
        "letters": tf.sparse.from_dense([["a", "b"], ["c", ""]]),
        "whole": tf.cast(world.sp, tf.int64),
        "values": world.sp.values,
        "positive": world.sp.values > 0.0,
        "at2": tf.constant([0, 2]),
        "segments": tf.constant([0, 1]),
    }


TEXT = """
tf.sparse.add(sp, sp2)
tf.sparse.bincount(i)
tf.sparse.concat(0, [sp, sp2])
tf.sparse.cross([letters, letters])
tf.sparse.cross_hashed([letters, letters], 10)
tf.sparse.expand_dims(sp, 0)
tf.sparse.eye(3)
tf.sparse.fill_empty_rows(sp, 0.5)
tf.sparse.from_dense(m)
tf.sparse.map_values(tf.square, sp)  # the function may do anything
tf.sparse.mask(slices, [0])
tf.sparse.maximum(sp, sp2)
tf.sparse.minimum(sp, sp2)
tf.sparse.reduce_max(sp, 1)
tf.sparse.reduce_sum(sp, 1)
tf.sparse.reorder(sp)
tf.sparse.reset_shape(sp, [5, 5])
tf.sparse.reshape(sp, [-1])
tf.sparse.retain(sp, positive)
tf.sparse.sampled_addmm([[0, 0], [1, 2]], [1.0, 2.0], m.shape, m, n)
tf.sparse.segment_mean(m, at2, segments)
tf.sparse.segment_sqrt_n(m, at2, segments)
tf.sparse.segment_sum(m, at2, segments)
tf.sparse.slice(sp, [0, 0], [2, 2])
tf.sparse.softmax(sp)
tf.sparse.sparse_dense_matmul(sp, m)
tf.sparse.split(sp, 2, 0)
tf.sparse.to_dense(sp)
tf.sparse.to_indicator(whole, 5)
tf.sparse.transpose(sp)
tf.SparseTensor:
    __mul__: sp * m
    __truediv__: sp / spd
    with_values: sp.with_values(values)
    from_value: tf.SparseTensor.from_value(sp)
    __repr__: repr(sp)
    get_shape: sp.get_shape()
    set_shape: sp.set_shape([None, None])
tf.IndexedSlices:
    __neg__: -slices
    __str__: str(slices)
tf.sets.difference([[1, 2]], [[2, 3]])
tf.sets.intersection([[1, 2]], [[2, 3]])
tf.sets.size(letters)
tf.sets.union([[1, 2]], [[2, 3]])
"""
