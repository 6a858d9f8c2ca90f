"""Functions along axes: sums, extremes, moments, and cumulative sums and products."""

import tensorflow as tf

from fastops._backend import below, facts, state
from fastops._backend.catalogue import alias, thicker

_FLOATS = frozenset({tf.bfloat16, tf.float16, tf.float32, tf.float64})


def _numbers(x):
    """Return a tensor; a tensor of bools is converted to numbers."""
    return below.cast(x, state.floatx()) if facts.base_dtype(x) is tf.bool else x


@thicker(
    "`axis=None` for all axes, and numbers for truths",
    tensorflow="tf.reduce_all",
    keras="keras.ops.all",
)
def all(x, axis=None, keepdims=False):
    """Tell whether all elements along axes are true.

    Parameters
    ----------
    x : tensor
        Bool or numbers, which are true unless zero.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of dtype bool.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.all(backend.constant([[1.0, 0.0], [1.0, 1.0]]), axis=1).numpy().tolist()
    [False, True]
    """
    return below.reduce_all(below.cast(x, tf.bool), axis, keepdims)


@thicker(
    "`axis=None` for all axes, and numbers for truths",
    tensorflow="tf.reduce_any",
    keras="keras.ops.any",
)
def any(x, axis=None, keepdims=False):
    """Tell whether any element along axes is true.

    Parameters
    ----------
    x : tensor
        Bool or numbers, which are true unless zero.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of dtype bool.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.any(backend.constant([[1.0, 0.0], [0.0, 0.0]]), axis=1).numpy().tolist()
    [True, False]
    """
    return below.reduce_any(below.cast(x, tf.bool), axis, keepdims)


@thicker(
    "`axis=None` for all axes",
    tensorflow="tf.reduce_max",
    keras="keras.ops.max",
)
def max(x, axis=None, keepdims=False):
    """Return the greatest element along axes.

    Parameters
    ----------
    x : tensor
        Real numbers.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.max(backend.constant([[1.0, 2.0], [4.0, 3.0]]), axis=1).numpy().tolist()
    [2.0, 4.0]
    """
    return below.reduce_max(x, axis, keepdims)


@thicker(
    "`axis=None` for all axes, and the share of truths in bool",
    tensorflow="tf.reduce_mean",
    keras="keras.ops.mean",
)
def mean(x, axis=None, keepdims=False):
    """Return the mean along axes.

    Parameters
    ----------
    x : tensor
        Numbers, or bool, which is cast to `floatx`. The mean of ints is an int.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.mean(backend.constant([[1.0, 2.0], [4.0, 4.0]]), axis=1).numpy().tolist()
    [1.5, 4.0]
    """
    return below.reduce_mean(_numbers(x), axis, keepdims)


@thicker(
    "`axis=None` for all axes",
    tensorflow="tf.reduce_min",
    keras="keras.ops.min",
)
def min(x, axis=None, keepdims=False):
    """Return the least element along axes.

    Parameters
    ----------
    x : tensor
        Real numbers.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.min(backend.constant([[1.0, 2.0], [4.0, 3.0]]), axis=1).numpy().tolist()
    [1.0, 3.0]
    """
    return below.reduce_min(x, axis, keepdims)


@thicker(
    "`axis=None` for all axes",
    tensorflow="tf.reduce_prod",
    keras="keras.ops.prod",
)
def prod(x, axis=None, keepdims=False):
    """Return the product along axes.

    Parameters
    ----------
    x : tensor
        Numbers.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.prod(backend.constant([[1.0, 2.0], [4.0, 3.0]]), axis=1).numpy().tolist()
    [2.0, 12.0]
    """
    return below.reduce_prod(x, axis, keepdims)


@thicker(
    "`axis=None` for all axes, and bool",
    tensorflow="tf.math.reduce_std",
    keras="keras.ops.std",
)
def std(x, axis=None, keepdims=False):
    """Return the standard deviation along axes.

    Parameters
    ----------
    x : tensor
        Floats, complex numbers, or bool, which is cast to `floatx`.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.std(backend.constant([[1.0, 3.0], [4.0, 4.0]]), axis=1).numpy().tolist()
    [1.0, 0.0]
    """
    x = _numbers(x)
    variance = _variance(x, axis, keepdims)
    if variance is None:
        return tf.math.reduce_std(x, axis=axis, keepdims=keepdims)
    return below.sqrt(variance)


@thicker(
    "`axis=None` for all axes",
    tensorflow="tf.reduce_sum",
    keras="keras.ops.sum",
)
def sum(x, axis=None, keepdims=False):
    """Return the sum along axes.

    Parameters
    ----------
    x : tensor
        Numbers.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.sum(backend.constant([[1.0, 2.0], [4.0, 3.0]]), axis=1).numpy().tolist()
    [3.0, 7.0]
    """
    return below.reduce_sum(x, axis, keepdims)


@thicker(
    "`axis=None` for all axes, and bool",
    tensorflow="tf.math.reduce_variance",
    keras="keras.ops.var",
)
def var(x, axis=None, keepdims=False):
    """Return the variance along axes.

    Parameters
    ----------
    x : tensor
        Floats, complex numbers, or bool, which is cast to `floatx`.
    axis : int or list of int, optional
        All axes, if not given.
    keepdims : bool, default False
        Whether to keep the axes, with size 1.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.var(backend.constant([[1.0, 3.0], [4.0, 4.0]]), axis=1).numpy().tolist()
    [1.0, 0.0]
    """
    x = _numbers(x)
    variance = _variance(x, axis, keepdims)
    if variance is None:
        return tf.math.reduce_variance(x, axis=axis, keepdims=keepdims)
    return variance


def _variance(x, axis, keepdims):
    """Return the mean square of the deviations; None if TensorFlow has to compute it."""
    if not facts.is_plain(x) or facts.base_dtype(x) not in _FLOATS:
        return None
    deviations = below.subtract(x, below.reduce_mean(x, axis, True))
    return below.reduce_mean(below.square(deviations), axis, keepdims)


@alias(
    "ArgMax",
    "input=x dimension=axis",
    tensorflow="tf.argmax",
    keras="keras.ops.argmax",
    differs="TensorFlow's default is axis 0; Keras's is all axes, and it returns int32",
)
def argmax(x, axis=-1):
    """Return the index of the greatest element along an axis.

    Parameters
    ----------
    x : tensor
        Real numbers, or bool.
    axis : int, default -1

    Returns
    -------
    tensor
        Of dtype int64, without the axis. If several elements are equal, the index of the first.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.argmax(backend.constant([[1.0, 5.0], [4.0, 3.0]])).numpy().tolist()
    [1, 0]
    """
    return tf.argmax(x, axis)


@alias(
    "ArgMin",
    "input=x dimension=axis",
    tensorflow="tf.argmin",
    keras="keras.ops.argmin",
    differs="TensorFlow's default is axis 0; Keras's is all axes, and it returns int32",
)
def argmin(x, axis=-1):
    """Return the index of the least element along an axis.

    Parameters
    ----------
    x : tensor
        Real numbers, or bool.
    axis : int, default -1

    Returns
    -------
    tensor
        Of dtype int64, without the axis. If several elements are equal, the index of the first.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.argmin(backend.constant([[1.0, 5.0], [4.0, 3.0]])).numpy().tolist()
    [0, 1]
    """
    return tf.argmin(x, axis)


@alias(
    "Cumsum",
    "x axis",
    tensorflow="tf.cumsum",
    keras="keras.ops.cumsum",
    differs="Keras flattens the tensor by default",
    tensors=("x",),
)
def cumsum(x, axis=0):
    """Return sums of each element and those before it, along an axis.

    Parameters
    ----------
    x : tensor
        Numbers.
    axis : int, default 0

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.cumsum(backend.constant([1.0, 2.0, 3.0])).numpy().tolist()
    [1.0, 3.0, 6.0]
    """
    return tf.cumsum(x, axis=axis)


@alias(
    "Cumprod",
    "x axis",
    tensorflow="tf.math.cumprod",
    keras="keras.ops.cumprod",
    differs="Keras flattens the tensor by default",
    tensors=("x",),
)
def cumprod(x, axis=0):
    """Return products of each element and those before it, along an axis.

    Parameters
    ----------
    x : tensor
        Numbers.
    axis : int, default 0

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.cumprod(backend.constant([1.0, 2.0, 3.0])).numpy().tolist()
    [1.0, 2.0, 6.0]
    """
    return tf.math.cumprod(x, axis=axis)
