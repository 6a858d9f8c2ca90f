"""Activations, biases, batch normalization, dropout."""

import numpy as np
import tensorflow as tf

from fastops._backend import below, facts
from fastops._backend.catalogue import alias, thicker
from fastops._backend.devices import runs_channels_first
from fastops._backend.random import uniform
from fastops._backend.state import floatx, layout_of
from fastops._install.dtypes import parse

# Since TensorFlow 2.22, the moments have another formula, and `tf.tanh` of doubles has another
# gradient.
_HAS_LATER_FORMULAS = tuple(map(int, tf.version.VERSION.split(".")[:2])) >= (2, 22)

# Activations -------------------------------------------------------------------------------------


@thicker(
    "a slope below, a limit above, a threshold",
    tensorflow="tf.nn.relu",
    keras="keras.ops.relu",
)
def relu(x, alpha=0.0, max_value=None, threshold=0.0):
    """Rectified linear unit: ``max(x, 0)``, optionally with a slope, a limit and a threshold.

    Parameters
    ----------
    x : tensor
        Real numbers.
    alpha : float, default 0.0
        The slope below the threshold.
    max_value : float, optional
        The greatest result.
    threshold : float, default 0.0
        The value above which `x` is returned unchanged.

    Returns
    -------
    tensor
        ``max_value`` where ``x >= max_value``, ``x`` where it is above the threshold, and
        ``alpha * (x - threshold)`` elsewhere.

    Raises
    ------
    TypeError, ValueError, tf.errors.InvalidArgumentError
        For other dtypes.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.relu(backend.constant([-1.0, 2.0, 9.0]), max_value=6.0).numpy().tolist()
    [0.0, 2.0, 6.0]
    """
    if alpha == 0.0 and max_value is None and threshold == 0:
        return below.relu(x)
    dtype = getattr(x, "dtype", floatx())
    negative = None
    if alpha != 0.0:
        if max_value is None and threshold == 0:
            return below.leaky_relu(x, alpha=alpha)
        negative = below.negative(x)
        if threshold != 0:
            negative = below.add(negative, threshold)
        negative = below.relu(negative)
    limited = max_value is not None
    if threshold != 0:
        x = below.multiply(x, below.cast(below.greater(x, threshold), dtype))
    elif max_value == 6:
        x = below.relu6(x)
        limited = False
    else:
        x = below.relu(x)
    if limited:
        kind = facts.base_dtype(x)
        x = below.clip_by_value(x, below.constant(0, kind), below.constant(max_value, kind))
    if alpha != 0.0:
        alpha = below.convert_to_tensor(alpha, facts.base_dtype(x))
        x = below.subtract(x, below.multiply(alpha, negative))
    return x


@thicker("a scale below zero", tensorflow="tf.nn.elu", keras="keras.ops.elu")
def elu(x, alpha=1.0):
    """Exponential linear unit: ``x`` above zero, ``alpha * (exp(x) - 1)`` elsewhere.

    Parameters
    ----------
    x : tensor
        Floats.
    alpha : float, default 1.0

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.elu(backend.constant([0.0, 2.0])).numpy().tolist()
    [0.0, 2.0]
    """
    result = below.elu(x)
    if alpha == 1:
        return result
    return below.where(below.greater(x, 0), result, below.multiply(alpha, result))


def _with_logits(result, logits):
    """Note the logits of a tensor, from which losses are then computed."""
    result._keras_logits = logits
    return result


@thicker(
    "any axes; losses of the result are computed from `x`",
    tensorflow="tf.nn.softmax",
    keras="keras.ops.softmax",
)
def softmax(x, axis=-1):
    """Softmax: exponentials, scaled so that their sum along axes is one.

    Parameters
    ----------
    x : tensor
        Floats, with at least two axes.
    axis : int or list of int, default -1

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    The result carries `x`. The crossentropies of the backend are computed from `x`, which is more
    exact.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.softmax(backend.constant([[1.0, 1.0]])).numpy().tolist()
    [[0.5, 0.5]]
    """
    if facts.ndim(x) <= 1:
        raise ValueError(f"Cannot apply softmax to a tensor that is 1D. Received input: {x}")
    if isinstance(axis, int):
        return _with_logits(below.softmax(x, axis=axis), x)
    shifted = below.subtract(x, below.reduce_max(x, axis=axis, keepdims=True))
    numerator = below.exp(shifted)
    denominator = below.reduce_sum(numerator, axis=axis, keepdims=True)
    return _with_logits(below.divide(numerator, denominator), x)


@alias("Softplus", "features=x", tensorflow="tf.math.softplus", keras="keras.ops.softplus")
def softplus(x):
    """Softplus: ``log(exp(x) + 1)``, of each element.

    Parameters
    ----------
    x : tensor
        Floats.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.softplus(backend.constant([-200.0, 50.0])).numpy().tolist()
    [0.0, 50.0]
    """
    return tf.math.softplus(x)


@alias("Softsign", "features=x", tensorflow="tf.nn.softsign", keras="keras.ops.softsign")
def softsign(x):
    """Softsign: ``x / (abs(x) + 1)``, of each element.

    Parameters
    ----------
    x : tensor
        Floats.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.softsign(backend.constant([-1.0, 1.0])).numpy().tolist()
    [-0.5, 0.5]
    """
    return tf.math.softsign(x)


@thicker(
    "losses of the result are computed from `x`",
    tensorflow="tf.sigmoid",
    keras="keras.ops.sigmoid",
)
def sigmoid(x):
    """Sigmoid: ``1 / (1 + exp(-x))``, of each element.

    Parameters
    ----------
    x : tensor
        Floats or complex numbers.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Notes
    -----
    The result carries `x`. The crossentropies of the backend are computed from `x`, which is more
    exact.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.sigmoid(backend.constant([0.0])).numpy().tolist()
    [0.5]
    """
    return _with_logits(below.sigmoid(x), x)


@thicker("the formula, in ops", keras="keras.ops.hard_sigmoid", differs="Keras's slope is 1/6")
def hard_sigmoid(x):
    """Piecewise linear sigmoid: ``0.2 * x + 0.5``, clipped to 0 and 1.

    Parameters
    ----------
    x : tensor
        Floats.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    AttributeError
        If `x` is not a tensor.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.hard_sigmoid(backend.constant([-5.0, 0.0, 5.0])).numpy().tolist()
    [0.0, 0.5, 1.0]
    """
    kind = facts.base_dtype(x)
    x = below.multiply(x, below.constant(0.2, kind))
    x = below.add(x, below.constant(0.5, kind))
    return below.clip_by_value(x, 0.0, 1.0)


@alias(
    *("Tanh", "x"),
    tensorflow="tf.tanh",
    keras="keras.ops.tanh",
    tensors=("x",) if _HAS_LATER_FORMULAS else (),
    dtypes=parse("bfloat16 float16 float32") if _HAS_LATER_FORMULAS else (),
)
def tanh(x):
    """Hyperbolic tangent, of each element.

    Parameters
    ----------
    x : tensor
        Floats or complex numbers.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.tanh(backend.constant([0.0])).numpy().tolist()
    [0.0]
    """
    return tf.tanh(x)


@alias(
    "InTopKV2", "predictions targets k", tensorflow="tf.math.in_top_k", keras="keras.ops.in_top_k"
)
def in_top_k(predictions, targets, k):
    """Tell whether the true classes are among the most probable ones.

    Parameters
    ----------
    predictions : tensor
        Of dtype float32 and shape ``(batch, classes)``.
    targets : tensor
        Of dtype int32 or int64 and shape ``(batch,)``.
    k : int
        The number of most probable classes to search.

    Returns
    -------
    tensor
        Of dtype bool and shape ``(batch,)``.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.in_top_k([[0.1, 0.9, 0.5]], [2], 2).numpy().tolist()
    [True]
    """
    return tf.math.in_top_k(targets=targets, predictions=predictions, k=k)


# Dropout -----------------------------------------------------------------------------------------


@thicker(
    "a seed from NumPy's generator",
    tensorflow="tf.nn.dropout",
    keras="keras.random.dropout",
    differs="Keras takes the seed from a generator of its own",
)
def dropout(x, level, noise_shape=None, seed=None):
    """Set a random share of the elements to zero, and scale up the others.

    Parameters
    ----------
    x : tensor
        Floats.
    level : float
        The share, from 0 to below 1.
    noise_shape : tuple of int, optional
        Sizes that broadcast to those of `x`. A random number is drawn for each element of this
        shape.
    seed : int, optional
        By default a number from NumPy's generator.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        For a share that is out of range.

    Examples
    --------
    >>> from fastops import backend
    >>> dropped = backend.dropout(backend.constant([1.0] * 8), 0.5).numpy()
    >>> sorted(set(dropped.tolist()) | {0.0, 2.0})
    [0.0, 2.0]
    """
    if seed is not None:
        return tf.nn.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)
    seed = np.random.randint(10_000_000)
    dropped = _dropped(x, level, seed) if noise_shape is None else None
    if dropped is not None:
        return dropped
    return tf.nn.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)


def _dropped(x, level, seed):
    """Compute the same as `tf.nn.dropout`; return None if that function has to be called."""
    kind = facts.base_dtype(x) if facts.is_plain(x) else None
    if kind not in (tf.float32, tf.float64) or type(level) is not float or not 0.0 < level < 1.0:
        return None
    drawn = uniform(facts.int_shape(x), kind, seed)
    if drawn is None:
        return None
    scaled = below.multiply(x, below.constant(1 / (1 - level), kind))
    return below.where(below.greater_equal(drawn, level), scaled, below.constant(0, kind))


# Biases and normalization ------------------------------------------------------------------------


@thicker(
    "data formats, and a bias for each position",
    tensorflow="tf.nn.bias_add",
    keras="keras.ops.add",
)
def bias_add(x, bias, data_format=None):
    """Add a bias to each channel, or to each position and channel.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, ..., channels)``, or with the channels first.
    bias : tensor or variable
        Of shape ``(channels,)``, or that of `x` without the batch, channels last.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        For another data format, or other axes of the bias.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.bias_add(backend.zeros((1, 2)), backend.constant([1.0, 2.0])).numpy().tolist()
    [[1.0, 2.0]]
    """
    data_format = layout_of(data_format)
    sizes = facts.int_shape(bias)
    if len(sizes) == 1:
        if data_format == "channels_first":
            return _nchw_bias_add(x, bias)
        return _nhwc_bias_add(x, bias)
    rank = facts.ndim(x)
    if len(sizes) != rank - 1:
        raise ValueError(
            f"Unexpected bias dimensions {len(sizes)}, expect to be 1 or {rank - 1} dimensions"
        )
    if rank in (3, 4, 5):
        sizes = (1, sizes[-1], *sizes[:-1]) if data_format == "channels_first" else (1, *sizes)
        return below.add(x, below.reshape(bias, sizes))
    return tf.nn.bias_add(x, bias)


def _bias_add_in(data_format):
    def function(value, bias):
        return tf.nn.bias_add(value, bias, data_format=data_format)

    return below.primitive(
        "BiasAdd", function, constants={"data_format": data_format}, tensors=("value", "bias")
    )


_nhwc_bias_add = _bias_add_in("NHWC")
_nchw_bias_add = _bias_add_in("NCHW")


def _normalized(x, mean, variance, offset, scale, epsilon):
    """Compute the same as `tf.nn.batch_normalization`."""
    if not facts.are_plain(x, mean, variance, offset, scale):
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)
    factor = below.rsqrt(below.add(variance, epsilon))
    if scale is not None:
        factor = below.multiply(factor, scale)
    shift = below.multiply(below.negative(mean) if offset is None else mean, factor)
    if offset is not None:
        shift = below.subtract(offset, shift)
    kind = facts.base_dtype(x)
    return below.add(below.multiply(x, below.cast(factor, kind)), below.cast(shift, kind))


def _fused(x, scale, offset, mean, variance, epsilon, data_format, is_training):
    return tf.compat.v1.nn.fused_batch_norm(
        x,
        scale,
        offset,
        mean=mean,
        variance=variance,
        epsilon=epsilon,
        data_format=data_format,
        is_training=is_training,
    )


def _as_vector(x):
    return x if isinstance(x, np.ndarray) or facts.ndim(x) <= 1 else below.reshape(x, [-1])


@thicker(
    "the fused kernel where the layout has one; no offset or scale",
    tensorflow="tf.nn.batch_normalization",
    keras="keras.ops.batch_normalization",
)
def batch_normalization(x, mean, var, beta, gamma, axis=-1, epsilon=1e-3):
    """Normalize by given means and variances: ``(x - mean) / sqrt(var + epsilon) * gamma + beta``.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, ..., channels)``, or with the channels elsewhere.
    mean, var : tensor
        Of shape ``(channels,)``, or one that broadcasts to that of `x`.
    beta, gamma : tensor or None
        The offset and the scale, of shape ``(channels,)``, or one that broadcasts to that of `x`.
    axis : int, default -1
        The axis of the channels, if `x` has four axes.
    epsilon : float, default 1e-3

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes that do not fit.

    Notes
    -----
    If `x` has four axes, with the channels last or first, the op FusedBatchNormV3 runs, which uses
    cuDNN on a GPU. Otherwise arithmetic ops run.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.constant([[1.0], [3.0]])
    >>> two, one = backend.constant([2.0]), backend.constant([1.0])
    >>> backend.batch_normalization(x, two, one, None, None, epsilon=0.0).numpy().tolist()
    [[-1.0], [1.0]]
    """
    if facts.ndim(x) == 4:
        if axis in (3, -1):
            return _fused_by(x, mean, var, beta, gamma, epsilon, "NHWC")
        if axis in (1, -3):
            return _fused_by(x, mean, var, beta, gamma, epsilon, "NCHW")
        return _fused(x, gamma, beta, mean, var, epsilon, None, False)[0]
    return _normalized(x, mean, var, beta, gamma, epsilon)


def _fused_by(x, mean, var, beta, gamma, epsilon, data_format):
    mean, var = _as_vector(mean), _as_vector(var)
    beta = below.zeros_like(mean) if beta is None else _as_vector(beta)
    gamma = below.ones_like(mean) if gamma is None else _as_vector(gamma)
    if facts.are_plain(x, mean, var, beta, gamma) and facts.base_dtype(x) is tf.float32:
        return _fused_inference[data_format](x, gamma, beta, mean, var, epsilon)[0]
    return _fused(x, gamma, beta, mean, var, epsilon, data_format, False)[0]


def _fused_in(data_format, is_training):
    """Return the op that `tf.compat.v1.nn.fused_batch_norm` runs."""

    def function(x, scale, offset, mean, variance, epsilon):
        return _fused(x, scale, offset, mean, variance, epsilon, data_format, is_training)

    return below.primitive(
        "FusedBatchNormV3",
        function,
        constants={"data_format": data_format, "is_training": is_training},
    )


_fused_inference = {layout: _fused_in(layout, False) for layout in ("NHWC", "NCHW")}
_fused_training = {layout: _fused_in(layout, True) for layout in ("NHWC", "NCHW")}


@thicker(
    "means and variances, and the fused kernel where the layout has one",
    tensorflow="tf.nn.moments",
    keras="keras.layers.BatchNormalization",
)
def normalize_batch_in_training(x, gamma, beta, reduction_axes, epsilon=1e-3):
    """Normalize by the means and variances of the batch itself.

    Parameters
    ----------
    x : tensor
        Floats.
    gamma, beta : tensor or None
        The scale and the offset.
    reduction_axes : list of int
        The axes over which means are taken.
    epsilon : float, default 1e-3

    Returns
    -------
    tuple of tensor
        The normalized tensor, the means and the variances. The fused kernel returns sample
        variances, which for ``n`` elements are ``n / (n - 1)`` times as large.

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.constant([[1.0], [3.0]])
    >>> normed, mean, var = backend.normalize_batch_in_training(x, None, None, [0], epsilon=0.0)
    >>> normed.numpy().tolist(), mean.numpy().tolist(), var.numpy().tolist()
    ([[-1.0], [1.0]], [2.0], [1.0])
    """
    axes, rank = list(reduction_axes), facts.ndim(x)
    if rank == 4 and axes in ([0, 1, 2], [0, 2, 3]):
        last = axes == [0, 1, 2]
        if last or runs_channels_first():
            return _fused_batch(x, gamma, beta, epsilon, "NHWC" if last else "NCHW")
    mean, variance = _moments(x, axes)
    if sorted(axes) == list(range(rank))[:-1]:
        normed = _normalized(x, mean, variance, beta, gamma, epsilon)
        return normed, mean, variance
    sizes = facts.int_shape(x) if facts.is_plain(x) else tf.shape(x)
    shape = [1 if axis in axes else sizes[axis] for axis in range(rank)]
    shaped = [
        None if tensor is None else below.reshape(tensor, shape)
        for tensor in (mean, variance, beta, gamma)
    ]
    return _normalized(x, *shaped, epsilon), mean, variance


def _fused_batch(x, gamma, beta, epsilon, data_format):
    channels = x.shape[3 if data_format == "NHWC" else 1]
    if gamma is None:
        gamma = tf.constant(1.0, dtype=x.dtype, shape=[channels])
    if beta is None:
        beta = tf.constant(0.0, dtype=x.dtype, shape=[channels])
    if facts.are_plain(x, gamma, beta) and facts.base_dtype(x) is tf.float32:
        empty = below.constant([], tf.float32)
        made = _fused_training[data_format](x, gamma, beta, empty, empty, epsilon)
        return made[0], made[1], made[2]
    return tuple(_fused(x, gamma, beta, None, None, epsilon, data_format, True))


def _moments(x, axes):
    """Compute the same as `tf.nn.moments`."""
    if not facts.is_plain(x) or facts.base_dtype(x) is tf.float16 or _HAS_LATER_FORMULAS:
        return tf.nn.moments(x, axes)
    mean = below.reduce_mean(x, axes, True)
    # Like TensorFlow, stop the gradient of the mean, which would be zero.
    squares = below.squared_difference(x, below.stop_gradient(mean))
    variance = below.reduce_mean(squares, axes, True)
    return below.squeeze(mean, axes), below.squeeze(variance, axes)
