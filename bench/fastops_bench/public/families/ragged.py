"""`tf.ragged`, and the methods and operators of `tf.RaggedTensor`."""

import tensorflow as tf


def beside(world):
    return {
        "two": world.u[:2],
        "three": world.u[:3],
        "positive": world.cube > 0.0,
        "triangle": tf.sparse.from_dense([[1.0, 2.0], [3.0, 0.0]]),
        "yes": world.r > 0.0,
        "no": world.r2 > 0.0,
    }


TEXT = """
tf.ragged.boolean_mask(cube, positive)
tf.ragged.constant([[1.0], [2.0, 3.0]])
tf.ragged.cross([rs, rs])
tf.ragged.cross_hashed([rs, rs], 10)
tf.ragged.map_flat_values(tf.square, r)  # the function may do anything
tf.ragged.range(labels)
tf.ragged.row_splits_to_segment_ids([0, 1, 3])
tf.ragged.segment_ids_to_row_splits([0, 0, 2])
tf.ragged.stack([x, two])
tf.ragged.stack_dynamic_partitions(x, ids, 3)
tf.RaggedTensor:
    bounding_shape: r.bounding_shape()
    get_shape: r.get_shape()
    from_nested_row_lengths: tf.RaggedTensor.from_nested_row_lengths(two, [[1, 1], [1, 1]])
    from_nested_row_splits: tf.RaggedTensor.from_nested_row_splits(two, [[0, 1, 2], [0, 1, 2]])
    from_nested_value_rowids: tf.RaggedTensor.from_nested_value_rowids(two, [[0, 1], [0, 1]])
    from_row_lengths: tf.RaggedTensor.from_row_lengths(three, [1, 2])
    from_row_limits: tf.RaggedTensor.from_row_limits(three, [1, 3])
    from_row_splits: tf.RaggedTensor.from_row_splits(three, [0, 1, 3])
    from_row_starts: tf.RaggedTensor.from_row_starts(three, [0, 1])
    from_sparse: tf.RaggedTensor.from_sparse(triangle)
    from_tensor: tf.RaggedTensor.from_tensor(m)
    from_uniform_row_length: tf.RaggedTensor.from_uniform_row_length(x, 2)
    from_value_rowids: tf.RaggedTensor.from_value_rowids(three, [0, 1, 1])
    merge_dims: r.merge_dims(0, 1)
    nested_row_lengths: r.nested_row_lengths()
    nested_value_rowids: r.nested_value_rowids()
    nrows: r.nrows()
    numpy: r.numpy()
    row_lengths: r.row_lengths()
    row_limits: r.row_limits()
    row_starts: r.row_starts()
    to_list: r.to_list()
    to_sparse: r.to_sparse()
    to_tensor: r.to_tensor()
    value_rowids: r.value_rowids()
    with_flat_values: r.with_flat_values(x)
    with_row_splits_dtype: r.with_row_splits_dtype(tf.int32)
    with_values: r.with_values(x)
    __abs__: abs(r)
    __add__: r + r2
    __and__: yes & no
    __floordiv__: r // r2
    __ge__: r >= r2
    __eq__: r == r2
    __ne__: r != r2
    __repr__: repr(r)
    __getitem__: r[2]
    __gt__: r > r2
    __invert__: ~yes
    __le__: r <= r2
    __lt__: r < r2
    __mod__: r % r2
    __mul__: r * r2
    __neg__: -r
    __or__: yes | no
    __pow__: r ** 2.0
    __radd__: 1.0 + r
    __rand__: True & yes
    __rfloordiv__: 2.0 // r
    __rmod__: 2.0 % r
    __rmul__: 2.0 * r
    __ror__: True | yes
    __rpow__: 2.0 ** r
    __rsub__: 2.0 - r
    __rtruediv__: 2.0 / r
    __rxor__: True ^ yes
    __sub__: r - r2
    __truediv__: r / r2
    __xor__: yes ^ no
"""
