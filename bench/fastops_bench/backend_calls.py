"""A plain call of each function of `fastops.backend` and of tf_keras's backend, on small tensors.

Each call is an expression of ``K`` (either module) and of inputs, by name. The parity tests of the
backend also use these calls.
"""

import numpy as np

CALLS = {
    "abs": "K.abs(x)",
    "all": "K.all(flags, axis=1)",
    "any": "K.any(flags, axis=1)",
    "arange": "K.arange(0, 8)",
    "argmax": "K.argmax(x)",
    "argmin": "K.argmin(x)",
    "batch_dot": "K.batch_dot(x3, y3)",
    "batch_flatten": "K.batch_flatten(x3)",
    "batch_normalization": "K.batch_normalization(image, c3, c3p, c3, c3p)",
    "bias_add": "K.bias_add(x, c4)",
    "binary_crossentropy": "K.binary_crossentropy(target, p)",
    "binary_focal_crossentropy": "K.binary_focal_crossentropy(target, p)",
    "cast": "K.cast(x, 'float64')",
    "cast_to_floatx": "K.cast_to_floatx(d)",
    "categorical_crossentropy": "K.categorical_crossentropy(target, p)",
    "categorical_focal_crossentropy": "K.categorical_focal_crossentropy(target, p)",
    "clip": "K.clip(x, 0.0, 0.5)",
    "concatenate": "K.concatenate([x, x])",
    "constant": "K.constant([1.0, 2.0])",
    "conv1d": "K.conv1d(steps, kernel1, padding='same')",
    "conv2d": "K.conv2d(image, kernel2)",
    "conv2d_transpose": "K.conv2d_transpose(image, kernel2t, (2, 7, 8, 4))",
    "conv3d": "K.conv3d(volume, kernel3)",
    "cos": "K.cos(x)",
    "count_params": "K.count_params(x)",
    "cumprod": "K.cumprod(x)",
    "cumsum": "K.cumsum(x)",
    "depthwise_conv2d": "K.depthwise_conv2d(image, kernel2d)",
    "dot": "K.dot(x, y)",
    "dropout": "K.dropout(x, 0.5)",
    "dtype": "K.dtype(x)",
    "elu": "K.elu(x)",
    "equal": "K.equal(x, x)",
    "eval": "K.eval(x)",
    "exp": "K.exp(x)",
    "expand_dims": "K.expand_dims(x)",
    "eye": "K.eye(3)",
    "flatten": "K.flatten(x)",
    "gather": "K.gather(x, rows)",
    "get_value": "K.get_value(x)",
    "greater": "K.greater(x, x)",
    "greater_equal": "K.greater_equal(x, x)",
    "hard_sigmoid": "K.hard_sigmoid(x)",
    "in_top_k": "K.in_top_k(x, classes, 2)",
    "int_shape": "K.int_shape(x)",
    "is_sparse": "K.is_sparse(x)",
    "l2_normalize": "K.l2_normalize(x, axis=1)",
    "less": "K.less(x, x)",
    "less_equal": "K.less_equal(x, x)",
    "local_conv1d": "K.local_conv1d(steps, kernel1l, (3,), (1,))",
    "local_conv2d": "K.local_conv2d(image, kernel2l, (3, 3), (1, 1), (3, 4))",
    "log": "K.log(p)",
    "max": "K.max(x, axis=1)",
    "maximum": "K.maximum(x, x)",
    "mean": "K.mean(x, axis=1)",
    "min": "K.min(x, axis=1)",
    "minimum": "K.minimum(x, x)",
    "moving_average_update": "K.moving_average_update(variable, x, 0.9)",
    "ndim": "K.ndim(x)",
    "normalize_batch_in_training": "K.normalize_batch_in_training(x, c4p, c4, [0])",
    "not_equal": "K.not_equal(x, x)",
    "one_hot": "K.one_hot(classes, 4)",
    "ones": "K.ones((2, 3))",
    "ones_like": "K.ones_like(x)",
    "permute_dimensions": "K.permute_dimensions(x3, (2, 0, 1))",
    "pool2d": "K.pool2d(image, (2, 2))",
    "pool3d": "K.pool3d(volume, (2, 2, 2))",
    "pow": "K.pow(p, 2.0)",
    "prod": "K.prod(x, axis=1)",
    "random_bernoulli": "K.random_bernoulli((2, 3), 0.5)",
    "random_normal": "K.random_normal((2, 3))",
    "random_normal_variable": "K.random_normal_variable((2, 3), 0.0, 1.0)",
    "random_uniform": "K.random_uniform((2, 3))",
    "random_uniform_variable": "K.random_uniform_variable((2, 3), 0.0, 1.0)",
    "relu": "K.relu(x)",
    "repeat": "K.repeat(x, 2)",
    "repeat_elements": "K.repeat_elements(x, 2, 1)",
    "reshape": "K.reshape(x, (4, 3))",
    "resize_images": "K.resize_images(image, 2, 2, 'channels_last')",
    "resize_volumes": "K.resize_volumes(volume, 2, 1, 2, 'channels_last')",
    "reverse": "K.reverse(x, 1)",
    "round": "K.round(x)",
    "separable_conv2d": "K.separable_conv2d(image, kernel2d, kernel2p)",
    "set_value": "K.set_value(variable, array)",
    "shape": "K.shape(x)",
    "sigmoid": "K.sigmoid(x)",
    "sign": "K.sign(x)",
    "sin": "K.sin(x)",
    "softmax": "K.softmax(x)",
    "softplus": "K.softplus(x)",
    "softsign": "K.softsign(x)",
    "sparse_categorical_crossentropy": "K.sparse_categorical_crossentropy(classes, p)",
    "spatial_2d_padding": "K.spatial_2d_padding(image)",
    "spatial_3d_padding": "K.spatial_3d_padding(volume)",
    "sqrt": "K.sqrt(x)",
    "square": "K.square(x)",
    "squeeze": "K.squeeze(narrow, 1)",
    "stack": "K.stack([x, x])",
    "std": "K.std(x, axis=1)",
    "stop_gradient": "K.stop_gradient(x)",
    "sum": "K.sum(x, axis=1)",
    "switch": "K.switch(flags, x, x)",
    "tanh": "K.tanh(x)",
    "temporal_padding": "K.temporal_padding(x3)",
    "tile": "K.tile(x, [1, 2])",
    "to_dense": "K.to_dense(x)",
    "transpose": "K.transpose(x)",
    "truncated_normal": "K.truncated_normal((2, 3))",
    "update": "K.update(variable, x)",
    "update_add": "K.update_add(variable, x)",
    "update_sub": "K.update_sub(variable, x)",
    "var": "K.var(x, axis=1)",
    "variable": "K.variable(array)",
    "zeros": "K.zeros((2, 3))",
    "zeros_like": "K.zeros_like(x)",
}
"""Calls by the function's name, for aliases of ops and for functions of several ops."""

WITHOUT = {
    "batch_get_value": "a loop over `get_value`",
    "batch_set_value": "a loop over `set_value`",
    "gradients": "for graphs only",
    "random_binomial": "warns in each call",
}
"""Functions that are not timed, with the reason."""


def arrays():
    """Return the inputs that are tensors, by name."""
    random = np.random.default_rng(7)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)

    def positive(*shape):
        return random.uniform(0.1, 0.9, shape).astype(np.float32)

    return {
        "x": normal(3, 4),
        "y": normal(4, 5),
        "p": positive(3, 4),
        "target": np.eye(4, dtype=np.float32)[[1, 0, 3]],
        "d": random.normal(size=(3, 4)),
        "flags": normal(3, 4) > 0,
        "rows": np.array([2, 0], np.int32),
        "classes": np.array([1, 0, 3], np.int32),
        "c3": normal(3),
        "c3p": positive(3),
        "c4": normal(4),
        "c4p": positive(4),
        "x3": normal(2, 3, 4),
        "y3": normal(2, 4, 5),
        "narrow": normal(3, 1, 4),
        "steps": normal(2, 6, 3),
        "image": normal(2, 5, 6, 3),
        "volume": normal(1, 4, 4, 4, 2),
        "kernel1": normal(3, 3, 4),
        "kernel1l": normal(4, 9, 2),
        "kernel2": normal(3, 3, 3, 4),
        "kernel2t": normal(3, 3, 4, 3),
        "kernel2d": normal(3, 3, 3, 2),
        "kernel2p": normal(1, 1, 6, 4),
        "kernel2l": normal(12, 27, 2),
        "kernel3": normal(2, 2, 2, 2, 3),
    }


def inputs(module):
    """Return all inputs by name, as tensors and variables of TensorFlow, and ``K``, the module."""
    import tensorflow as tf

    tensors = {name: tf.constant(value) for name, value in arrays().items()}
    array = arrays()["x"]
    return {**tensors, "K": module, "variable": tf.Variable(array), "array": array}
