"""Crossentropies: from logits, if these are passed or known, otherwise from probabilities.

The logits of an eager tensor are known if `softmax` or `sigmoid` of the backend have made it, and
the logits of a graph's tensor if a node of these ops makes it.
"""

import warnings

import tensorflow as tf
from tensorflow.python.util._pywrap_determinism import is_enabled as _deterministic

from fastops._backend import below, facts
from fastops._backend.catalogue import thicker
from fastops._backend.nn import sigmoid
from fastops._backend.state import epsilon

_softmax_cross_entropy = below.primitive(
    "SoftmaxCrossEntropyWithLogits",
    lambda features, labels: tf.raw_ops.SoftmaxCrossEntropyWithLogits(
        features=features, labels=labels
    ),
)
_PRECISE = frozenset({tf.float32, tf.float64})


def _logits_of(output, from_logits, op_type, name):
    """Return logits and True if they are known, else the arguments; warn of wrong `from_logits`."""
    logits = facts.attribute(output, "_keras_logits")
    if logits is None and not isinstance(output, (tf.__internal__.EagerTensor, tf.Variable)):
        op = output.op  # a Symbol raises here: its dispatcher notes the whole call
        if op.type == op_type:
            (logits,) = op.inputs
    if logits is None:
        return output, from_logits
    if from_logits:
        warnings.warn(
            f'"`{name}` received `from_logits=True`, but the `output` argument was produced by a '
            f"{op_type} activation and thus does not represent logits. Was this intended?",
            stacklevel=3,
        )
    return logits, True


def _as_tensors(target, output):
    return below.convert_to_tensor(target), below.convert_to_tensor(output)


def _inside(output):
    """Clip probabilities to values that are neither 0 nor 1."""
    least = below.constant(epsilon(), facts.base_dtype(output))
    return below.clip_by_value(output, least, below.subtract(1.0, least))


def _check_shapes(target, output):
    if not facts.same_sizes(target, output):
        target.shape.assert_is_compatible_with(output.shape)


def _of_logits(labels, logits, axis):
    """Compute the same as `tf.nn.softmax_cross_entropy_with_logits`."""
    if (
        not facts.are_plain(labels, logits)
        or facts.base_dtype(logits) not in _PRECISE
        or facts.base_dtype(labels) != facts.base_dtype(logits)
        or axis not in (-1, facts.ndim(logits) - 1)
        or _deterministic()
    ):
        return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, axis=axis)
    sizes = facts.int_shape(logits)
    if len(sizes) == 2:
        return _softmax_cross_entropy(logits, labels)[0]
    rows = [-1, sizes[-1]]
    losses = _softmax_cross_entropy(below.reshape(logits, rows), below.reshape(labels, rows))[0]
    return below.reshape(losses, sizes[:-1])


@thicker(
    "probabilities as well as logits",
    tensorflow="tf.nn.softmax_cross_entropy_with_logits",
    keras="keras.ops.categorical_crossentropy",
)
@below.dispatched
def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """Crossentropy of distributions over classes.

    Parameters
    ----------
    target, output : tensor
        The true and the predicted values, of the same shape and float dtype.
    from_logits : bool, default False
        Whether `output` has logits instead of probabilities.
    axis : int, default -1
        The axis of the classes.

    Returns
    -------
    tensor
        Without this axis.

    Raises
    ------
    ValueError
        For shapes that differ.

    Warns
    -----
    UserWarning
        If `from_logits` is true, but `output` is the result of a softmax.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> target = backend.constant([[1.0, 0.0]])
    >>> loss = backend.categorical_crossentropy(target, backend.constant([[0.5, 0.5]]))
    >>> bool(np.allclose(loss, np.log(2.0)))
    True
    """
    target, output = _as_tensors(target, output)
    _check_shapes(target, output)
    output, from_logits = _logits_of(output, from_logits, "Softmax", "categorical_crossentropy")
    if from_logits:
        return _of_logits(target, output, axis)
    output = below.divide(output, below.reduce_sum(output, axis, True))
    logs = below.log(_inside(output))
    return below.negative(below.reduce_sum(below.multiply(target, logs), axis))


@thicker(
    "probabilities as well as logits, less weight for easy cases",
    keras="keras.losses.CategoricalFocalCrossentropy",
)
@below.dispatched
def categorical_focal_crossentropy(
    target, output, alpha=0.25, gamma=2.0, from_logits=False, axis=-1
):
    """Focal crossentropy of distributions over classes: easy cases count less.

    Parameters
    ----------
    target, output : tensor
        The true and the predicted values, of the same shape and float dtype.
    alpha : float or list of float, default 0.25
        Weights of the classes.
    gamma : float, default 2.0
        The exponent by which easy cases lose weight.
    from_logits : bool, default False
        Whether `output` has logits instead of probabilities.
    axis : int, default -1
        The axis of the classes.

    Returns
    -------
    tensor
        Without this axis.

    Raises
    ------
    ValueError
        For shapes that differ.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> target = backend.constant([[1.0, 0.0]])
    >>> loss = backend.categorical_focal_crossentropy(target, backend.constant([[0.5, 0.5]]))
    >>> bool(np.allclose(loss, 0.25 * 0.5**2 * np.log(2.0)))
    True
    """
    target, output = _as_tensors(target, output)
    _check_shapes(target, output)
    name = "categorical_focal_crossentropy"
    output, from_logits = _logits_of(output, from_logits, "Softmax", name)
    if from_logits:
        output = below.softmax(output, axis=axis)
    output = _inside(below.divide(output, below.reduce_sum(output, axis, True)))
    losses = below.multiply(below.negative(target), below.log(output))
    weights = below.multiply(below.power(below.subtract(1.0, output), gamma), alpha)
    return below.reduce_sum(below.multiply(weights, losses), axis)


def _is_symbolic(x):
    return tf.is_tensor(x) and not isinstance(x, tf.__internal__.EagerTensor)


@thicker(
    "probabilities as well as logits, any axis, a class that is ignored",
    tensorflow="tf.nn.sparse_softmax_cross_entropy_with_logits",
    keras="keras.ops.sparse_categorical_crossentropy",
)
@below.dispatched
def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1, ignore_class=None):
    """Crossentropy of distributions over classes and the number of the true class.

    Parameters
    ----------
    target : tensor
        The numbers of the true classes.
    output : tensor
        The predicted values: floats, of the shape of `target` with the axis of the classes.
    from_logits : bool, default False
        Whether `output` has logits instead of probabilities.
    axis : int, default -1
        The axis of the classes.
    ignore_class : int, optional
        A class whose loss is zero.

    Returns
    -------
    tensor
        Without this axis.

    Raises
    ------
    ValueError
        If `axis` is not -1 and the rank of the output is not known.
    tf.errors.InvalidArgumentError
        For shapes that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> loss = backend.sparse_categorical_crossentropy([1], backend.constant([[0.5, 0.5]]))
    >>> bool(np.allclose(loss, np.log(2.0)))
    True
    """
    target, output = _as_tensors(target, output)
    target = below.cast(target, tf.int64)
    name = "sparse_categorical_crossentropy"
    output, from_logits = _logits_of(output, from_logits, "Softmax", name)
    if not from_logits:
        least = below.constant(epsilon(), facts.base_dtype(output))
        output = below.clip_by_value(output, least, below.subtract(1, least))
        output = below.log(output)

    rank = facts.ndim(output)
    if rank is not None:
        axis %= rank
        if axis != rank - 1:
            order = [*range(axis), *range(axis + 1, rank), axis]
            output = below.transpose(output, order)
    elif axis != -1:
        raise ValueError(
            f"Cannot compute sparse categorical crossentropy with `axis={axis}` on an output "
            "tensor with unknown rank"
        )

    plain = facts.are_plain(target, output)
    sizes = facts.int_shape(output) if plain else tf.shape(output)
    target_rank = facts.ndim(target)
    flat = target_rank is not None and rank is not None and target_rank != rank - 1
    if flat:
        target = below.reshape(target, [-1])
        output = below.reshape(output, [-1, sizes[-1]])
    if ignore_class is not None:
        valid = below.not_equal(target, below.cast(ignore_class, target.dtype))
        target = below.boolean_mask(target, valid)
        output = below.boolean_mask(output, valid)

    symbolic = next((tensor for tensor in (target, output) if _is_symbolic(tensor)), None)
    if symbolic is not None and tf.executing_eagerly():
        with symbolic.graph.as_default():
            losses = below.sparse_cross_entropy(labels=target, logits=output)
    else:
        losses = below.sparse_cross_entropy(labels=target, logits=output)

    if ignore_class is not None:
        shape = tf.cast(sizes[:-1], tf.int64)
        valid = tf.reshape(valid, shape)
        losses = tf.scatter_nd(tf.where(valid), losses, shape)
        losses._keras_mask = valid
        return losses
    return below.reshape(losses, sizes[:-1]) if flat and rank >= 3 else losses


def _of_binary_logits(labels, logits):
    """Compute the same as `tf.nn.sigmoid_cross_entropy_with_logits`."""
    if (
        not facts.are_plain(labels, logits)
        or facts.base_dtype(labels) != facts.base_dtype(logits)
        or facts.int_shape(labels) != facts.int_shape(logits)
    ):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    zeros = below.zeros_like(logits)
    positive = below.greater_equal(logits, zeros)
    above = below.where(positive, logits, zeros)
    negative = below.where(positive, below.negative(logits), logits)
    linear = below.subtract(above, below.multiply(logits, labels))
    return below.add(linear, below.log1p(below.exp(negative)))


@thicker(
    "probabilities as well as logits",
    tensorflow="tf.nn.sigmoid_cross_entropy_with_logits",
    keras="keras.ops.binary_crossentropy",
)
@below.dispatched
def binary_crossentropy(target, output, from_logits=False):
    """Crossentropy of binary values, element by element.

    Parameters
    ----------
    target, output : tensor
        The true and the predicted values, of the same float dtype, and of shapes that broadcast.
    from_logits : bool, default False
        Whether `output` has logits instead of probabilities.

    Returns
    -------
    tensor

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes or dtypes that do not fit.

    Warns
    -----
    UserWarning
        If `from_logits` is true, but `output` is the result of a sigmoid.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> loss = backend.binary_crossentropy(backend.constant([1.0]), backend.constant([0.5]))
    >>> bool(np.allclose(loss, np.log(2.0)))
    True
    """
    target, output = _as_tensors(target, output)
    output, from_logits = _logits_of(output, from_logits, "Sigmoid", "binary_crossentropy")
    if from_logits:
        return _of_binary_logits(target, output)
    output, least = _inside(output), epsilon()
    losses = below.multiply(target, below.log(below.add(output, least)))
    rest = below.log(below.add(below.subtract(1, output), least))
    return below.negative(below.add(losses, below.multiply(below.subtract(1, target), rest)))


@thicker(
    "probabilities as well as logits, less weight for easy cases",
    keras="keras.losses.BinaryFocalCrossentropy",
)
@below.dispatched
def binary_focal_crossentropy(
    target, output, apply_class_balancing=False, alpha=0.25, gamma=2.0, from_logits=False
):
    """Focal crossentropy of binary values, element by element: easy cases count less.

    Parameters
    ----------
    target, output : tensor
        The true and the predicted values, of the same float dtype, and of shapes that broadcast.
    apply_class_balancing : bool, default False
        Whether to weigh true and false values by `alpha`.
    alpha : float, default 0.25
        The weight of true values; false values have the weight ``1 - alpha``.
    gamma : float, default 2.0
        The exponent by which easy cases lose weight.
    from_logits : bool, default False
        Whether `output` has logits instead of probabilities.

    Returns
    -------
    tensor

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes or dtypes that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> loss = backend.binary_focal_crossentropy(backend.constant([1.0]), backend.constant([0.5]))
    >>> bool(np.allclose(loss, 0.5**2 * np.log(2.0)))
    True
    """
    output = below.convert_to_tensor(output)
    if not tf.is_tensor(target):
        target = below.convert_to_tensor(target, output.dtype)
    probability = sigmoid(output) if from_logits else output
    rest = below.subtract(1, target)
    right = below.add(
        below.multiply(target, probability), below.multiply(rest, below.subtract(1, probability))
    )
    factor = below.power(below.subtract(1.0, right), gamma)
    losses = below.multiply(factor, binary_crossentropy(target, output, from_logits))
    if apply_class_balancing:
        rest = below.multiply(below.subtract(1, target), 1 - alpha)
        weight = below.add(below.multiply(target, alpha), rest)
        losses = below.multiply(weight, losses)
    return losses
