"""Functions that make tensors and variables, and read and assign their values."""

import contextlib
import sys

import numpy as np
import tensorflow as tf

from fastops._backend import below, facts, sessions
from fastops._backend.catalogue import thicker, unique
from fastops._backend.shapes import to_dense
from fastops._backend.state import floatx

# Making values -----------------------------------------------------------------------------------


@thicker(
    "`floatx`; a sparse tensor for a sparse matrix",
    tensorflow="tf.Variable",
    keras="keras.Variable",
)
def variable(value, dtype=None, name=None, constraint=None):
    """Make a variable.

    Parameters
    ----------
    value : array_like or tensor
        The initial value. A sparse matrix of SciPy becomes a sparse tensor instead of a variable.
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    name : str, optional
    constraint : callable, optional
        A function that an optimizer applies to the variable after each step.

    Returns
    -------
    tf.Variable or sparse tensor

    Raises
    ------
    TypeError, ValueError
        If the value does not fit the dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.variable([1, 2]).numpy().tolist()
    [1.0, 2.0]
    """
    if dtype is None:
        dtype = floatx()
    if hasattr(value, "tocoo"):
        coordinates = value.tocoo()
        made = tf.SparseTensor(
            indices=np.stack([coordinates.row, coordinates.col], 1),
            values=coordinates.data,
            dense_shape=coordinates.shape,
        )
        made._keras_shape = coordinates.shape
        return made
    made = below.make_variable(
        tf.Variable, value, dtype=tf.as_dtype(dtype), name=name, constraint=constraint
    )
    if isinstance(value, np.ndarray):
        made._keras_shape = value.shape
    elif hasattr(value, "shape"):
        made._keras_shape = facts.int_shape(value)
    if not facts.on_host():
        sessions.track(made)
    return made


@thicker("`floatx`", tensorflow="tf.constant", keras="keras.ops.convert_to_tensor")
def constant(value, dtype=None, shape=None, name=None):
    """Make a tensor.

    Parameters
    ----------
    value : array_like
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    shape : tuple of int, optional
        The shape of `value`, if not given. A single value fills the shape.
    name : str, optional
        The name of the node in a graph.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError, ValueError
        If the value does not fit the dtype, or does not fill the shape.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.constant([1, 2]).numpy().tolist()
    [1.0, 2.0]
    """
    if dtype is None:
        dtype = floatx()
    if name is None and shape is None:
        return below.constant(value, dtype)
    return below.constant(value, dtype=dtype, shape=shape, name=name)


def _filled(make, shape, dtype, name):
    """Return a variable; return a tensor if a size is zero or unknown."""
    with _NO_SCOPE if facts.on_host() else tf.init_scope():
        if dtype is None:
            dtype = floatx()
        value = make(shape, dtype=tf.as_dtype(dtype), name=name)
        sizes = facts.int_shape(value)
        return variable(value, dtype=dtype, name=name) if all(sizes) else value


_NO_SCOPE = contextlib.nullcontext()


@thicker(
    "a variable, of `floatx`",
    tensorflow="tf.zeros",
    keras="keras.ops.zeros",
    differs="the others return tensors",
)
def zeros(shape, dtype=None, name=None):
    """Make a variable of zeros.

    Parameters
    ----------
    shape : tuple of int or int
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    name : str, optional

    Returns
    -------
    tf.Variable
        A tensor, if a size is zero.

    Raises
    ------
    TypeError
        If `dtype` is not a dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.zeros((2, 2)).numpy().tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return _filled(below.zeros, shape, dtype, name)


@thicker(
    "a variable, of `floatx`",
    tensorflow="tf.ones",
    keras="keras.ops.ones",
    differs="the others return tensors",
)
def ones(shape, dtype=None, name=None):
    """Make a variable of ones.

    Parameters
    ----------
    shape : tuple of int or int
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    name : str, optional

    Returns
    -------
    tf.Variable
        A tensor, if a size is zero.

    Raises
    ------
    TypeError
        If `dtype` is not a dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.ones((2, 2)).numpy().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _filled(below.ones, shape, dtype, name)


@thicker(
    "a variable, of `floatx`",
    tensorflow="tf.eye",
    keras="keras.ops.eye",
    differs="the others return tensors",
)
def eye(size, dtype=None, name=None):
    """Make a variable of an identity matrix.

    Parameters
    ----------
    size : int
        How many rows and columns.
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    name : str, optional

    Returns
    -------
    tf.Variable

    Raises
    ------
    TypeError
        If `dtype` is not a dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.eye(2).numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if dtype is None:
        dtype = floatx()
    dtype = tf.as_dtype(dtype)
    if type(size) is int and size > 0 and dtype in _NUMBERS and facts.on_host():
        return variable(below.constant(np.eye(size, dtype=dtype.as_numpy_dtype)), dtype, name)
    return variable(tf.eye(size, dtype=dtype), dtype, name)


_NUMBERS = frozenset({tf.float16, tf.float32, tf.float64, tf.int32, tf.int64})


@thicker("names of dtypes", tensorflow="tf.zeros_like", keras="keras.ops.zeros_like")
def zeros_like(x, dtype=None, name=None):
    """Make zeros of the shape of a tensor.

    Parameters
    ----------
    x : tensor
    dtype : str or tf.DType, optional
        The dtype of `x`, if not given.
    name : str, optional
        The name of the node in a graph.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError
        If `dtype` is not a dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.zeros_like(backend.constant([1.0, 2.0])).numpy().tolist()
    [0.0, 0.0]
    """
    return below.zeros_like(x, dtype=dtype, name=name)


@thicker("names of dtypes", tensorflow="tf.ones_like", keras="keras.ops.ones_like")
def ones_like(x, dtype=None, name=None):
    """Make ones of the shape of a tensor.

    Parameters
    ----------
    x : tensor
    dtype : str or tf.DType, optional
        The dtype of `x`, if not given.
    name : str, optional
        The name of the node in a graph.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError
        If `dtype` is not a dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.ones_like(backend.constant([1.0, 2.0])).numpy().tolist()
    [1.0, 1.0]
    """
    return below.ones_like(x, dtype=dtype, name=name)


# Reading and assigning values --------------------------------------------------------------------


@thicker(
    "other objects, which it returns unchanged; inside functions, the value outside",
    tensorflow="tf.Tensor.numpy",
    keras="keras.ops.convert_to_numpy",
)
def get_value(x):
    """Return the value of a tensor or variable.

    Parameters
    ----------
    x : tensor, variable or anything else

    Returns
    -------
    ndarray
        `x` itself, if it is not a tensor.

    Raises
    ------
    NotImplementedError, AttributeError
        For a symbolic tensor.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.get_value(backend.variable([1.0]))
    array([1.], dtype=float32)
    """
    value = facts.numpy_of(x)
    if value is not None:
        return value
    if below.is_variable(x) and facts.on_host():
        return below.value_of(x)
    if not tf.is_tensor(x):
        return x
    if tf.executing_eagerly() or isinstance(x, tf.__internal__.EagerTensor):
        return x.numpy()
    if sessions.in_graph():
        return sessions.values_of([x])[0]
    with tf.init_scope():
        return x.numpy()


@thicker("sparse tensors", tensorflow="tf.Tensor.numpy", keras="keras.ops.convert_to_numpy")
def eval(x):
    """Return the value of a tensor, sparse tensor or variable.

    Parameters
    ----------
    x : tensor, sparse tensor or variable

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from fastops import backend
    >>> backend.eval(backend.ones(2) + 1.0)
    array([2., 2.], dtype=float32)
    """
    return get_value(to_dense(x))


def _numpy(x):
    value = facts.numpy_of(x)
    return x.numpy() if value is None else value


@thicker(
    "several tensors at once", tensorflow="tf.Tensor.numpy", keras="keras.ops.convert_to_numpy"
)
def batch_get_value(tensors):
    """Return the values of several tensors or variables.

    Parameters
    ----------
    tensors : list of tensor or variable

    Returns
    -------
    list of ndarray

    Raises
    ------
    RuntimeError
        Within a `tf.function`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.batch_get_value([backend.ones(1), backend.zeros(1)])
    [array([1.], dtype=float32), array([0.], dtype=float32)]
    """
    if tf.executing_eagerly():
        return [_numpy(x) for x in tensors]
    if tf.inside_function():
        raise RuntimeError("Cannot get value inside Tensorflow graph function.")
    return sessions.values_of(tensors) if tensors else []


def _array_for(x, value):
    return np.asarray(value, dtype=tf.as_dtype(x.dtype).as_numpy_dtype)


@thicker("a cast of arrays", tensorflow="tf.Variable.assign", keras="keras.Variable.assign")
def set_value(x, value):
    """Set a variable from an array.

    Parameters
    ----------
    x : variable
    value : array_like
        Of the shape of `x`; cast to its dtype.

    Raises
    ------
    ValueError
        For another shape.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.variable([1.0])
    >>> backend.set_value(x, [2])
    >>> x.numpy().tolist()
    [2.0]
    """
    value = _array_for(x, value)
    if sessions.in_graph():
        sessions.assign([(x, value)])
    else:
        _assign(x, value)


def _assign(x, value):
    return below.assign(x, value) if below.is_variable(x) else x.assign(value)


@thicker(
    "several variables at once", tensorflow="tf.Variable.assign", keras="keras.Variable.assign"
)
def batch_set_value(tuples):
    """Set several variables from arrays.

    Parameters
    ----------
    tuples : list of tuple
        Pairs of a variable and a value, as for `set_value`.

    Raises
    ------
    ValueError
        For a value of another shape.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.variable(1.0), backend.variable(2.0)
    >>> backend.batch_set_value([(x, 3), (y, 4)])
    >>> x.numpy() + y.numpy() == 7.0
    np.True_
    """
    if not (tf.executing_eagerly() or tf.inside_function()):
        if tuples:
            sessions.assign([(x, _array_for(x, value)) for x, value in tuples])
        return
    for x, value in tuples:
        _assign(x, _array_for(x, value))


@thicker(
    "a function instead of a method", tensorflow="tf.Variable.assign", keras="keras.Variable.assign"
)
def update(x, new_x):
    """Set a variable.

    Parameters
    ----------
    x : variable
    new_x : tensor
        Of the shape and dtype of `x`.

    Returns
    -------
    variable
        `x`; in a graph, a tensor with the new value.

    Raises
    ------
    ValueError
        For another shape or dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.update(backend.variable([1.0]), [2.0]).numpy().tolist()
    [2.0]
    """
    if below.is_variable(x):
        return below.assign(x, new_x)
    return tf.compat.v1.assign(x, new_x)


@thicker(
    "a function instead of a method",
    tensorflow="tf.Variable.assign_add",
    keras="keras.Variable.assign_add",
)
def update_add(x, increment):
    """Add to a variable.

    Parameters
    ----------
    x : variable
    increment : tensor
        Of the shape and dtype of `x`.

    Returns
    -------
    variable
        `x`; in a graph, a tensor with the new value.

    Raises
    ------
    ValueError
        For another shape or dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.update_add(backend.variable([1.0]), [2.0]).numpy().tolist()
    [3.0]
    """
    if below.is_variable(x):
        return below.assign_add(x, increment)
    return tf.compat.v1.assign_add(x, increment)


@thicker(
    "a function instead of a method",
    tensorflow="tf.Variable.assign_sub",
    keras="keras.Variable.assign_sub",
)
def update_sub(x, decrement):
    """Subtract from a variable.

    Parameters
    ----------
    x : variable
    decrement : tensor
        Of the shape and dtype of `x`.

    Returns
    -------
    variable
        `x`; in a graph, a tensor with the new value.

    Raises
    ------
    ValueError
        For another shape or dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.update_sub(backend.variable([1.0]), [2.0]).numpy().tolist()
    [-1.0]
    """
    if below.is_variable(x):
        return below.assign_sub(x, decrement)
    return tf.compat.v1.assign_sub(x, decrement)


@thicker(
    "the update of a moving average",
    tensorflow="tf.train.ExponentialMovingAverage",
    differs="TensorFlow makes the variables itself",
)
def moving_average_update(x, value, momentum):
    """Move a variable towards a value: to ``x * momentum + value * (1 - momentum)``.

    Parameters
    ----------
    x : variable
        Of a float dtype.
    value : tensor
        Of its shape.
    momentum : float or tensor

    Returns
    -------
    variable
        `x`; in a graph, a tensor with the new value.

    Raises
    ------
    ValueError
        For another shape.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.moving_average_update(backend.variable(0.0), 2.0, 0.5).numpy().tolist()
    1.0
    """
    momentum = below.cast(momentum, x.dtype)
    value = below.cast(value, x.dtype)
    step = below.multiply(below.subtract(x, value), below.subtract(1, momentum))
    return below.assign_sub(x, step) if below.is_variable(x) else x.assign_sub(step)


@unique(
    "prints and returns its argument, in graphs too",
    tensorflow="tf.print",
    differs="`tf.print` returns nothing",
)
def print_tensor(x, message="", summarize=3):
    """Print a tensor, and return it.

    Parameters
    ----------
    x : tensor
    message : str, default ""
        A text to print before the tensor.
    summarize : int, default 3
        How many elements to print at the beginning and at the end of each axis; all, if -1.

    Returns
    -------
    tensor
        `x`; in a graph, a tensor whose computation prints it.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.constant([1.0, 2.0])
    >>> backend.print_tensor(x, "x is") is x
    True
    """
    if isinstance(x, tf.Tensor) and not isinstance(x, tf.__internal__.EagerTensor):
        with x.graph.as_default():
            printed = tf.print(message, x, output_stream=sys.stdout, summarize=summarize)
            with tf.control_dependencies([printed]):
                return tf.identity(x)
    tf.print(message, x, output_stream=sys.stdout, summarize=summarize)
    return x
