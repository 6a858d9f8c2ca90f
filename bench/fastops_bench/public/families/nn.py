"""`tf.nn`."""

import tensorflow as tf


def beside(world):
    images, filters, steps = world.images, world.filters, world.steps
    return {
        "mean": images[0, 0, 0],
        "variance": images[0, 0, 1],
        "offset": images[0, 0, 2],
        "scale": images[0, 0, 3],
        "wide": tf.tile(images, [1, 1, 1, 4]),
        "holed": tf.nn.atrous_conv2d(images, filters, 2, "SAME"),
        "deep": tf.nn.depthwise_conv2d(images, filters, [1, 1, 1, 1], "SAME"),
        "shapes": filters[..., 0],
        "pointwise": tf.ones([1, 1, 12, 2]),
        # Inputs of transposed convolutions: filters with swapped channels, and the result shape.
        "turned": tf.transpose(filters, [0, 1, 3, 2]),
        "turned1": tf.transpose(world.filters1, [0, 2, 1]),
        "turned3": tf.transpose(world.filters3, [0, 1, 2, 4, 3]),
        "shape1": [2, steps.shape[1], 4],
        "shape2": [*images.shape[:3], 4],
        "shape3": [*world.volume.shape[:4], 3],
        # Classes: the true ones, sampled ones, and weights of eight classes.
        "classes": tf.constant([[1], [2]], tf.int64),
        "candidates": tf.constant([2, 5], tf.int64),
        "weights": tf.ones([8, 3]) / 2,
        "biases": tf.zeros([8]),
        # Sequences, and batches of sequences.
        "logits": steps[:, :4],
        "first": steps[:, :1],
        "rows": steps[:, 0],
        "ids64": tf.sparse.from_dense(tf.cast(world.labels[tf.newaxis], tf.int64)),
    }


TEXT = """
tf.nn.atrous_conv2d(images, filters, 2, "SAME")
tf.nn.atrous_conv2d_transpose(holed, filters, images.shape, 2, "SAME")
tf.nn.avg_pool(images, 2, 2, "SAME")
tf.nn.avg_pool1d(steps, 2, 2, "SAME")
tf.nn.avg_pool2d(images, 2, 2, "SAME")
tf.nn.avg_pool3d(volume, 2, 2, "SAME")
tf.nn.batch_norm_with_global_normalization(images, mean, variance, offset, scale, 1e-3, True)
tf.nn.batch_normalization(images, mean, variance, offset, scale, 1e-3)
tf.nn.bias_add(images, mean)
tf.nn.collapse_repeated([[1, 1, 2], [3, 3, 3]], [3, 2])
tf.nn.compute_accidental_hits(classes, candidates, 1)
tf.nn.compute_average_loss(x)
tf.nn.conv1d(steps, filters1, 1, "SAME")
tf.nn.conv1d_transpose(steps, turned1, shape1, 1)
tf.nn.conv2d(images, filters, 1, "SAME")
tf.nn.conv2d_transpose(images, turned, shape2, 1)
tf.nn.conv3d(volume, filters3, [1, 1, 1, 1, 1], "SAME")
tf.nn.conv3d_transpose(volume, turned3, shape3, 1)
tf.nn.conv_transpose(images, turned, shape2, 1)
tf.nn.convolution(images, filters, padding="SAME")
tf.nn.crelu(t)
tf.nn.ctc_beam_search_decoder(logits, [2, 2, 2, 2], beam_width=4)
tf.nn.ctc_greedy_decoder(logits, [2, 2, 2, 2])
tf.nn.ctc_loss([[1, 2]], first, [1], [2], blank_index=0)
tf.nn.ctc_unique_labels([[1, 2, 1], [2, 2, 0]])
tf.nn.depth_to_space(wide, 2)
tf.nn.depthwise_conv2d(images, filters, [1, 1, 1, 1], "SAME")
tf.nn.depthwise_conv2d_backprop_filter(images, filters.shape, deep, [1, 1, 1, 1], "SAME")
tf.nn.depthwise_conv2d_backprop_input(images.shape, filters, deep, [1, 1, 1, 1], "SAME")
tf.nn.dilation2d(images, shapes, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
tf.nn.dropout(x, 0.5)
tf.nn.elu(t)
tf.nn.embedding_lookup(m, labels)
tf.nn.embedding_lookup_sparse(m, ids64, None, combiner="sum")
tf.nn.erosion2d(images, shapes, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
tf.nn.experimental.general_dropout(x, 0.5, lambda shape, dtype: tf.zeros(shape, dtype) + 0.7)
tf.nn.experimental.stateless_dropout(x, 0.5, seed)
tf.nn.fractional_avg_pool(images, [1.0, 1.5, 1.5, 1.0], seed=3)
tf.nn.fractional_max_pool(images, [1.0, 1.5, 1.5, 1.0], seed=3)
tf.nn.gelu(t)
tf.nn.isotonic_regression(x)
tf.nn.l2_loss(x)
tf.nn.leaky_relu(t)
tf.nn.local_response_normalization(images)
tf.nn.log_poisson_loss(x, t)
tf.nn.max_pool(images, 2, 2, "SAME")
tf.nn.max_pool1d(steps, 2, 2, "SAME")
tf.nn.max_pool2d(images, 2, 2, "SAME")
tf.nn.max_pool3d(volume, 2, 2, "SAME")
tf.nn.max_pool_with_argmax(images, 2, 2, "SAME")
tf.nn.moments(m, [0])
tf.nn.nce_loss(weights, biases, classes, rows, 4, 8)
tf.nn.normalize_moments(4.0, x, y, None)
tf.nn.pool(images, [2, 2], "MAX")
tf.nn.relu(t)
tf.nn.relu6(t)
tf.nn.safe_embedding_lookup_sparse(m, ids64)
tf.nn.sampled_softmax_loss(weights, biases, classes, rows, 4, 8, seed=3)
tf.nn.scale_regularization_loss(x)
tf.nn.selu(t)
tf.nn.separable_conv2d(images, filters, pointwise, [1, 1, 1, 1], "SAME")
tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=m)
tf.nn.silu(t)
tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=m)
tf.nn.space_to_depth(images, 2)
tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=m)
tf.nn.sufficient_statistics(m, [0])
tf.nn.weighted_cross_entropy_with_logits(labels=targets, logits=m, pos_weight=2.0)
tf.nn.weighted_moments(m, [0], targets)
tf.nn.with_space_to_batch(images, [2, 2], "SAME", lambda each, block, padding: tf.nn.relu(each), \
[2, 2], [1, 2])
"""
