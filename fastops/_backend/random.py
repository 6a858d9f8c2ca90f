"""Random numbers. NumPy's generator draws the seeds.

A call without a seed draws one from NumPy. TensorFlow's op would make a new kernel for each seed,
which takes longer than everything else. A stateless op with this seed as its key returns the same
numbers as the first run of that kernel, so these calls run the stateless op.
"""

import warnings

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import random_seed as _random_seed
from tensorflow.python.util._pywrap_determinism import is_enabled as _deterministic

from fastops import _registry
from fastops._backend import below, facts
from fastops._backend.catalogue import thicker
from fastops._backend.state import floatx
from fastops._backend.values import variable

_uniform = _registry.op("StatelessRandomUniformV2")
_standard_normal = _registry.op("StatelessRandomNormalV2")
_truncated = _registry.op("StatelessTruncatedNormalV2")

_PHILOX = 1
_DTYPES = frozenset({tf.float16, tf.float32, tf.float64})


def _drawn(op, shape, dtype, seed):
    """Return the first numbers of a seeded op; None if TensorFlow has to draw them."""
    if (type(shape) is not tuple and type(shape) is not list) or dtype not in _DTYPES:
        return None
    if not facts.on_host() or _deterministic():
        return None
    first, second = _random_seed.get_seed(int(seed))
    if not 0 <= first < 1 << 63 or not 0 <= second < 1 << 63:
        return None
    return op(
        shape=shape,
        key=np.array([first], np.uint64),
        counter=np.array([0, second], np.uint64),
        alg=_PHILOX,
        dtype=dtype,
    )


def uniform(shape, dtype, seed):
    """Return numbers from 0 to 1; None if TensorFlow has to draw them."""
    return _drawn(_uniform, shape, dtype, seed)


def _normal(op, shape, mean, stddev, dtype, seed):
    """Return normal numbers about a mean; None if TensorFlow has to draw them."""
    dtype = tf.as_dtype(dtype)
    if type(mean) not in (int, float) or type(stddev) not in (int, float):
        return None
    drawn = _drawn(op, shape, dtype, seed)
    if drawn is None:
        return None
    scaled = below.multiply(drawn, below.constant(stddev, dtype))
    return below.add(scaled, below.constant(mean, dtype))


def _seed():
    return np.random.randint(10_000_000)


@thicker(
    "a seed from NumPy's generator, `floatx`",
    tensorflow="tf.random.normal",
    keras="keras.random.normal",
    differs="Keras takes the seed from a generator of its own",
)
def random_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Draw from a normal distribution.

    Parameters
    ----------
    shape : tuple of int or tensor
    mean, stddev : float, default 0.0 and 1.0
    dtype : str or tf.DType, optional
        A float dtype; `floatx`, if not given.
    seed : int, optional
        By default a number from NumPy's generator. Calls with the same seed continue one sequence.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError, ValueError
        For another dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.random_normal((2, 3)))
    (2, 3)
    """
    if dtype is None:
        dtype = floatx()
    if seed is None:
        seed = _seed()
        drawn = _normal(_standard_normal, shape, mean, stddev, dtype, seed)
        if drawn is not None:
            return drawn
    return tf.random.normal(shape, mean=mean, stddev=stddev, dtype=dtype, seed=seed)


@thicker(
    "a seed from NumPy's generator, `floatx`",
    tensorflow="tf.random.truncated_normal",
    keras="keras.random.truncated_normal",
    differs="Keras takes the seed from a generator of its own",
)
def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Draw from a normal distribution, cut off at two standard deviations from its mean.

    Parameters
    ----------
    shape : tuple of int or tensor
    mean, stddev : float, default 0.0 and 1.0
    dtype : str or tf.DType, optional
        A float dtype; `floatx`, if not given.
    seed : int, optional
        By default a number from NumPy's generator.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError, ValueError
        For another dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> bool(np.all(np.abs(backend.truncated_normal((100,))) <= 2.0))
    True
    """
    if dtype is None:
        dtype = floatx()
    if seed is None:
        seed = _seed()
        drawn = _normal(_truncated, shape, mean, stddev, dtype, seed)
        if drawn is not None:
            return drawn
    return tf.random.truncated_normal(shape, mean, stddev, dtype=dtype, seed=seed)


@thicker(
    "a seed from NumPy's generator, `floatx`",
    tensorflow="tf.random.uniform",
    keras="keras.random.uniform",
    differs="Keras takes the seed from a generator of its own",
)
def random_uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """Draw from a uniform distribution over an interval.

    Parameters
    ----------
    shape : tuple of int or tensor
    minval, maxval : float, default 0.0 and 1.0
        The bounds of the interval; the upper one is excluded.
    dtype : str or tf.DType, optional
        A float dtype, int32 or int64; `floatx`, if not given.
    seed : int, optional
        By default a number from NumPy's generator.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError, ValueError
        For another dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> bool(np.all(np.abs(backend.random_uniform((100,), -1.0)) <= 1.0))
    True
    """
    if dtype is None:
        dtype = floatx()
    if seed is None:
        seed = _seed()
        drawn = _between(shape, minval, maxval, dtype, seed)
        if drawn is not None:
            return drawn
    return tf.random.uniform(shape, minval=minval, maxval=maxval, dtype=dtype, seed=seed)


def _between(shape, low, high, dtype, seed):
    dtype = tf.as_dtype(dtype)
    if type(low) not in (int, float) or type(high) not in (int, float):
        return None
    drawn = uniform(shape, dtype, seed)
    if drawn is None or (low == 0 and high == 1):  # TensorFlow does not scale these either
        return drawn
    low, high = below.constant(low, dtype), below.constant(high, dtype)
    return below.add(below.multiply(drawn, below.subtract(high, low)), low)


@thicker(
    "a share of ones",
    tensorflow="tf.random.uniform",
    keras="keras.random.binomial",
)
def random_bernoulli(shape, p=0.0, dtype=None, seed=None):
    """Draw ones and zeros.

    Parameters
    ----------
    shape : tuple of int or tensor
    p : float, default 0.0
        The probability of a one.
    dtype : str or tf.DType, optional
        A float dtype; `floatx`, if not given.
    seed : int, optional
        By default a number from NumPy's generator.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError, ValueError
        For another dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.random_bernoulli((3,), p=1.0).numpy().tolist()
    [1.0, 1.0, 1.0]
    """
    if dtype is None:
        dtype = floatx()
    drawn = None
    if seed is None:
        seed = _seed()
        drawn = uniform(shape, tf.as_dtype(dtype), seed)
    if drawn is None:
        drawn = tf.random.uniform(shape, dtype=dtype, seed=seed)
    ones, zeros = below.ones(shape, dtype=dtype), below.zeros(shape, dtype=dtype)
    return below.where(below.less_equal(drawn, p), ones, zeros)


@thicker("a share of ones, and a warning", keras="keras.random.binomial")
def random_binomial(shape, p=0.0, dtype=None, seed=None):
    """Draw ones and zeros; the former name of `random_bernoulli`.

    Parameters
    ----------
    shape : tuple of int or tensor
    p : float, default 0.0
        The probability of a one.
    dtype : str or tf.DType, optional
        A float dtype; `floatx`, if not given.
    seed : int, optional
        By default a number from NumPy's generator.

    Returns
    -------
    tensor

    Warns
    -----
    UserWarning
        It is deprecated.

    Examples
    --------
    >>> import warnings
    >>> from fastops import backend
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     backend.random_binomial((2,), p=1.0).numpy().tolist()
    [1.0, 1.0]
    """
    warnings.warn("`random_binomial` is deprecated: use `random_bernoulli`.", stacklevel=2)
    return random_bernoulli(shape, p, dtype, seed)


def _drawn_variable(draw, initializer, first, second, shape, dtype, name, seed):
    if dtype is None:
        dtype = floatx()
    dtype, value = tf.as_dtype(dtype), None
    if seed is None:
        seed = np.random.randint(1_000_000_000)
        value = draw(shape, first, second, dtype, seed)
    if value is None:
        value = initializer(first, second, dtype=dtype, seed=seed)(shape)
    return variable(value, dtype=dtype, name=name)


@thicker(
    "a variable, a seed from NumPy's generator, `floatx`",
    tensorflow="tf.random_uniform_initializer",
    keras="keras.initializers.RandomUniform",
)
def random_uniform_variable(shape, low, high, dtype=None, name=None, seed=None):
    """Make a variable of numbers drawn from an interval.

    Parameters
    ----------
    shape : tuple of int
    low, high : float
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    name : str, optional
    seed : int, optional
        By default a number from NumPy's generator.

    Returns
    -------
    tf.Variable

    Raises
    ------
    TypeError, ValueError
        If `dtype` is neither a float nor an integer dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.random_uniform_variable((2, 3), -1.0, 1.0))
    (2, 3)
    """
    initializer = tf.compat.v1.random_uniform_initializer
    return _drawn_variable(_between, initializer, low, high, shape, dtype, name, seed)


@thicker(
    "a variable, a seed from NumPy's generator, `floatx`",
    tensorflow="tf.random_normal_initializer",
    keras="keras.initializers.RandomNormal",
)
def random_normal_variable(shape, mean, scale, dtype=None, name=None, seed=None):
    """Make a variable of numbers drawn from a normal distribution.

    Parameters
    ----------
    shape : tuple of int
    mean, scale : float
        The mean, and the standard deviation.
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    name : str, optional
    seed : int, optional
        By default a number from NumPy's generator.

    Returns
    -------
    tf.Variable

    Raises
    ------
    ValueError
        If `dtype` is not a float dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.random_normal_variable((2, 3), 0.0, 1.0))
    (2, 3)
    """
    initializer = tf.compat.v1.random_normal_initializer
    return _drawn_variable(_about, initializer, mean, scale, shape, dtype, name, seed)


def _about(shape, mean, stddev, dtype, seed):
    return _normal(_standard_normal, shape, mean, stddev, dtype, seed)
