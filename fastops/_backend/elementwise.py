"""Functions of each element: arithmetic, comparison, clipping."""

import numpy as np
import tensorflow as tf

from fastops._backend import below, facts
from fastops._backend.catalogue import alias, thicker
from fastops._install.dtypes import FLOATS, SIGNED, parse

_REAL = parse(f"{FLOATS} {SIGNED}")


@alias("Abs", "x", tensorflow="tf.abs", keras="keras.ops.abs", tensors=("x",), dtypes=_REAL)
def abs(x):
    """Absolute value, of each element.

    Parameters
    ----------
    x : tensor
        Any number.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.abs(backend.constant([-1.5, 2.0])).numpy().tolist()
    [1.5, 2.0]
    """
    return tf.abs(x)


@alias("Cos", "x", tensorflow="tf.math.cos", keras="keras.ops.cos")
def cos(x):
    """Cosine of an angle in radians, of each element.

    Parameters
    ----------
    x : tensor
        Floats and complex numbers.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.cos(backend.constant([0.0])).numpy().tolist()
    [1.0]
    """
    return tf.cos(x)


@alias("Exp", "x", tensorflow="tf.math.exp", keras="keras.ops.exp")
def exp(x):
    """Exponential, of each element.

    Parameters
    ----------
    x : tensor
        Floats and complex numbers.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.exp(backend.constant([0.0])).numpy().tolist()
    [1.0]
    """
    return tf.exp(x)


@alias("Log", "x", tensorflow="tf.math.log", keras="keras.ops.log")
def log(x):
    """Natural logarithm, of each element.

    Parameters
    ----------
    x : tensor
        Floats and complex numbers.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.log(backend.constant([1.0])).numpy().tolist()
    [0.0]
    """
    return tf.math.log(x)


@alias(
    "Round",
    "x",
    tensorflow="tf.math.round",
    keras="keras.ops.round",
    tensors=("x",),
    dtypes=parse(FLOATS),
)
def round(x):
    """Nearest integer, of each element; halves go to the even integer.

    Parameters
    ----------
    x : tensor
        Any number; ints are returned as they are.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.round(backend.constant([0.5, 1.5, 2.6])).numpy().tolist()
    [0.0, 2.0, 3.0]
    """
    return tf.round(x)


@alias("Sign", "x", tensorflow="tf.math.sign", keras="keras.ops.sign", tensors=("x",), dtypes=_REAL)
def sign(x):
    """Sign: -1, 0 or 1, of each element.

    Parameters
    ----------
    x : tensor
        Any number.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.sign(backend.constant([-3.0, 0.0, 2.0])).numpy().tolist()
    [-1.0, 0.0, 1.0]
    """
    return tf.sign(x)


@alias("Sin", "x", tensorflow="tf.math.sin", keras="keras.ops.sin")
def sin(x):
    """Sine of an angle in radians, of each element.

    Parameters
    ----------
    x : tensor
        Floats and complex numbers.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.sin(backend.constant([0.0])).numpy().tolist()
    [0.0]
    """
    return tf.sin(x)


@alias("Square", "x", tensorflow="tf.math.square", keras="keras.ops.square")
def square(x):
    """Square, of each element.

    Parameters
    ----------
    x : tensor
        Any number.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for a dtype that the op does not take.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.square(backend.constant([3.0])).numpy().tolist()
    [9.0]
    """
    return tf.square(x)


@alias(
    "Equal",
    "x y",
    tensorflow="tf.math.equal",
    keras="keras.ops.equal",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def equal(x, y):
    """Tell whether two tensors are equal, element by element.

    Parameters
    ----------
    x, y : tensor
        Any values, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of dtype bool, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([1.0, 3.0])
    >>> backend.equal(x, y).numpy().tolist()
    [True, False]
    """
    return tf.equal(x, y)


@alias(
    "Greater",
    "x y",
    tensorflow="tf.math.greater",
    keras="keras.ops.greater",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def greater(x, y):
    """Tell whether the first tensor is greater, element by element.

    Parameters
    ----------
    x, y : tensor
        Real numbers, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of dtype bool, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([1.0, 1.0])
    >>> backend.greater(x, y).numpy().tolist()
    [False, True]
    """
    return tf.greater(x, y)


@alias(
    "GreaterEqual",
    "x y",
    tensorflow="tf.math.greater_equal",
    keras="keras.ops.greater_equal",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def greater_equal(x, y):
    """Tell whether the first tensor is greater or equal, element by element.

    Parameters
    ----------
    x, y : tensor
        Real numbers, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of dtype bool, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([1.0, 3.0])
    >>> backend.greater_equal(x, y).numpy().tolist()
    [True, False]
    """
    return tf.greater_equal(x, y)


@alias(
    "Less",
    "x y",
    tensorflow="tf.math.less",
    keras="keras.ops.less",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def less(x, y):
    """Tell whether the first tensor is less, element by element.

    Parameters
    ----------
    x, y : tensor
        Real numbers, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of dtype bool, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([1.0, 3.0])
    >>> backend.less(x, y).numpy().tolist()
    [False, True]
    """
    return tf.less(x, y)


@alias(
    "LessEqual",
    "x y",
    tensorflow="tf.math.less_equal",
    keras="keras.ops.less_equal",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def less_equal(x, y):
    """Tell whether the first tensor is less or equal, element by element.

    Parameters
    ----------
    x, y : tensor
        Real numbers, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of dtype bool, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([1.0, 1.0])
    >>> backend.less_equal(x, y).numpy().tolist()
    [True, False]
    """
    return tf.less_equal(x, y)


@alias(
    "Maximum",
    "x y",
    tensorflow="tf.math.maximum",
    keras="keras.ops.maximum",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def maximum(x, y):
    """Return the greater of two tensors, element by element.

    Parameters
    ----------
    x, y : tensor
        Real numbers, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of the dtype of `x`, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([3.0, 1.0])
    >>> backend.maximum(x, y).numpy().tolist()
    [3.0, 2.0]
    """
    return tf.maximum(x, y)


@alias(
    "Minimum",
    "x y",
    tensorflow="tf.math.minimum",
    keras="keras.ops.minimum",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def minimum(x, y):
    """Return the lesser of two tensors, element by element.

    Parameters
    ----------
    x, y : tensor
        Real numbers, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of the dtype of `x`, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([3.0, 1.0])
    >>> backend.minimum(x, y).numpy().tolist()
    [1.0, 1.0]
    """
    return tf.minimum(x, y)


@alias(
    "NotEqual",
    "x y",
    tensorflow="tf.math.not_equal",
    keras="keras.ops.not_equal",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def not_equal(x, y):
    """Tell whether two tensors differ, element by element.

    Parameters
    ----------
    x, y : tensor
        Any values, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of dtype bool, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([1.0, 2.0]), backend.constant([1.0, 3.0])
    >>> backend.not_equal(x, y).numpy().tolist()
    [False, True]
    """
    return tf.not_equal(x, y)


@alias(
    "Pow",
    "x y=a",
    tensorflow="tf.math.pow",
    keras="keras.ops.power",
    differs="Keras promotes different dtypes; TensorFlow raises, as here",
)
def pow(x, a):
    """Raise the first tensor to the power of the second, element by element.

    Parameters
    ----------
    x, a : tensor
        Numbers, of one dtype, and of shapes that broadcast.

    Returns
    -------
    tensor
        Of the dtype of `x`, and of the shape that both broadcast to.

    Raises
    ------
    ValueError, TypeError, tf.errors.InvalidArgumentError
        As TensorFlow raises them for dtypes or shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.constant([2.0, 3.0]), backend.constant([3.0, 2.0])
    >>> backend.pow(x, y).numpy().tolist()
    [8.0, 9.0]
    """
    return tf.pow(x, a)


@thicker(
    "a name for the dtype; no op if the tensor has this dtype",
    tensorflow="tf.cast",
    keras="keras.ops.cast",
)
def cast(x, dtype):
    """Cast to a dtype.

    Parameters
    ----------
    x : tensor, variable or sparse tensor
        Numbers or bool.
    dtype : str or tf.DType

    Returns
    -------
    tensor
        Of the shape of `x`; `x` itself where it has that dtype.

    Raises
    ------
    TypeError
        If `dtype` is not a dtype, or `x` cannot be cast to it.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.cast(backend.constant([1.5, 2.5]), "int32").numpy().tolist()
    [1, 2]
    """
    return below.cast(x, dtype)


@thicker(
    "None for no bound; bounds that cross",
    tensorflow="tf.clip_by_value",
    keras="keras.ops.clip",
)
def clip(x, min_value, max_value):
    """Limit each element to an interval.

    Parameters
    ----------
    x : tensor
        Real numbers.
    min_value, max_value : float, int, tensor or None
        None for no bound. If two Python numbers cross, the lower one serves as both bounds.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    TypeError, ValueError, tf.errors.InvalidArgumentError
        If a bound has another dtype than `x`, or a shape that does not broadcast to that of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.clip(backend.constant([-2.0, 0.5, 3.0]), 0.0, None).numpy().tolist()
    [0.0, 0.5, 3.0]
    """
    if (
        isinstance(min_value, (int, float))
        and isinstance(max_value, (int, float))
        and max_value < min_value
    ):
        max_value = min_value
    if min_value is None:
        min_value = -np.inf
    if max_value is None:
        max_value = np.inf
    return below.clip_by_value(x, min_value, max_value)


@thicker(
    "zero for negative numbers",
    tensorflow="tf.sqrt",
    keras="keras.ops.sqrt",
    differs="the others return NaN for negative numbers",
)
def sqrt(x):
    """Square root, of each element; zero for negative elements.

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
    TypeError, ValueError, tf.errors.InvalidArgumentError
        For other dtypes.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.sqrt(backend.constant([4.0, -1.0])).numpy().tolist()
    [2.0, 0.0]
    """
    return below.sqrt(below.maximum(x, below.constant(0.0, facts.base_dtype(x))))
