"""Products of matrices and batches, and normalization of vectors."""

import tensorflow as tf

from fastops._backend import below, facts
from fastops._backend.catalogue import thicker
from fastops._backend.shapes import is_sparse

_FLOATS = frozenset({tf.bfloat16, tf.float16, tf.float32, tf.float64})


def sizes_of(x):
    """Return the sizes: numbers if they are static, tensors otherwise."""
    if facts.is_plain(x):
        return facts.int_shape(x)
    pairs = zip(facts.int_shape(x), tf.unstack(tf.shape(x)), strict=True)
    return tuple(tensor if size is None else size for size, tensor in pairs)


@thicker(
    "more than two axes; a sparse first operand",
    tensorflow="tf.matmul",
    keras="keras.ops.dot",
    differs="`tf.matmul` takes further axes for batches",
)
def dot(x, y):
    """Multiply tensors: sum over the last axis of `x` and the second to last axis of `y`.

    Parameters
    ----------
    x : tensor, variable or sparse tensor
        Of shape ``(..., n)``.
    y : tensor or variable
        Of shape ``(..., n, m)``.

    Returns
    -------
    tensor
        Its shape is that of `x` without the last axis, followed by that of `y` without the second
        to last axis.

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes or dtypes that do not fit.

    Notes
    -----
    The product of shapes ``(2, 3, 4)`` and ``(5, 4, 6)`` has shape ``(2, 3, 5, 6)``. To multiply
    the items of batches, use `batch_dot`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.dot(backend.ones((2, 3, 4)), backend.ones((5, 4, 6))))
    (2, 3, 5, 6)
    """
    rank, other = facts.ndim(x), facts.ndim(y)
    if rank is not None and (rank > 2 or other > 2):
        x_sizes, y_sizes = sizes_of(x), sizes_of(y)
        order = list(range(other))
        order = [order.pop(-2), *order]
        rows = below.reshape(x, [-1, x_sizes[-1]])
        columns = below.reshape(below.transpose(y, order), [y_sizes[-2], -1])
        sizes = x_sizes[:-1] + y_sizes[:-2] + y_sizes[-1:]
        return below.reshape(below.matmul(rows, columns), sizes)
    if is_sparse(x):
        return _sparse_dot(x, y)
    return below.matmul(x, y)


@below.dispatched
def _sparse_dot(x, y):
    return tf.sparse.sparse_dense_matmul(x, y)


def _check_batches(x_sizes, y_sizes):
    if len(x_sizes) < 2 or len(y_sizes) < 2:
        raise ValueError(
            "Cannot do batch_dot on inputs with rank < 2. Received inputs with shapes "
            f"{x_sizes} and {y_sizes}."
        )
    if x_sizes[0] is not None and y_sizes[0] is not None and x_sizes[0] != y_sizes[0]:
        raise ValueError(
            "Cannot do batch_dot on inputs with different batch sizes. Received inputs with "
            f"shapes {x_sizes} and {y_sizes}."
        )


def _axes_of_batches(axes, x_sizes, y_sizes):
    """Return the axis of each tensor over which the product sums."""
    if isinstance(axes, int):
        axes = (axes, axes)
    if axes is None:
        axes = (len(x_sizes) - 1, len(y_sizes) - (1 if len(y_sizes) == 2 else 2))
    if any(isinstance(axis, (list, tuple)) for axis in axes):
        raise ValueError(
            "Multiple target dimensions are not supported. Expected: None, int, (int, int), "
            f"Provided: {axes}"
        )
    first, second = axes
    if first < 0:
        first += len(x_sizes)
    if second < 0:
        second += len(y_sizes)
    if 0 in (first, second):
        raise ValueError(
            "Cannot perform batch_dot over axis 0. If your inputs are not batched, add a dummy "
            "batch dimension to your inputs using K.expand_dims(x, 0)"
        )
    x_size, y_size = x_sizes[first], y_sizes[second]
    if x_size is not None and y_size is not None and x_size != y_size:
        raise ValueError(
            f"Cannot do batch_dot on inputs with shapes {x_sizes} and {y_sizes} with axes="
            f"{[first, second]}. x.shape[{first}] != y.shape[{second}] ({x_size} != {y_size})."
        )
    return first, second


@thicker(
    "any axes; vectors for matrices of one row or column",
    tensorflow="tf.matmul",
    keras="keras.layers.dot",
)
def batch_dot(x, y, axes=None):
    """Multiply the items of two batches, one by one.

    Parameters
    ----------
    x, y : tensor or variable
        Of shape ``(batch, ...)``, with at least two axes.
    axes : int or tuple of int, optional
        The axes of `x` and of `y` to sum over. By default the last axis of `x` and the second to
        last axis of `y`, or the last axis of `y` if it has two.

    Returns
    -------
    tensor
        Of shape ``(batch, ...)``: the axes of `x`, then of `y`, without those that are summed over;
        ``(batch, 1)`` if nothing else is left.

    Raises
    ------
    ValueError
        For tensors with fewer axes, sizes or batches that differ, and axis 0.

    Examples
    --------
    >>> from fastops import backend
    >>> x, y = backend.ones((32, 20, 1)), backend.ones((32, 30, 20))
    >>> backend.int_shape(backend.batch_dot(x, y, axes=(1, 2)))
    (32, 1, 30)
    """
    x_sizes, y_sizes = facts.int_shape(x), facts.int_shape(y)
    _check_batches(x_sizes, y_sizes)
    first, second = _axes_of_batches(axes, x_sizes, y_sizes)
    x_rank, y_rank = len(x_sizes), len(y_sizes)

    # Both tensors get three axes: batch, rows, columns.
    if x_rank == 2:
        x = below.expand_dims(x, 1)
        first += 1
    if y_rank == 2:
        y = below.expand_dims(y, 2)
    x_order = [axis for axis in range(_rank(x_rank)) if axis != first] + [first]
    y_order = [axis for axis in range(_rank(y_rank)) if axis != second]
    y_order.insert(1, second)
    if x_order != sorted(x_order):
        x = below.transpose(x, x_order)
    if y_order != sorted(y_order):
        y = below.transpose(y, y_order)
    of_x, of_y = x, y
    if x_rank > 3:
        sizes = sizes_of(x)
        x = below.reshape(x, [sizes[0], -1, sizes[-1]])
    if y_rank > 3:
        sizes = sizes_of(y)
        y = below.reshape(y, [sizes[0], sizes[1], -1])

    result = below.matmul(x, y)

    if x_rank > 3 or y_rank > 3:
        sizes = sizes_of(result)
        middle = sizes_of(of_x)[1:-1] if x_rank > 3 else sizes[1:2]
        last = sizes_of(of_y)[2:] if y_rank > 3 else sizes[2:]
        result = below.reshape(result, sizes[:1] + middle + last)
    if x_rank == 2:
        return below.squeeze(result, 1)
    if y_rank == 2:
        return below.squeeze(result, -1)
    return result


def _rank(rank):
    return max(rank, 3)


@thicker(
    "all axes by default",
    tensorflow="tf.math.l2_normalize",
    keras="keras.ops.normalize",
    differs="Keras's default is the last axis; the epsilons differ",
)
def l2_normalize(x, axis=None):
    """Scale vectors along axes to length one.

    Parameters
    ----------
    x : tensor
        Floats or complex numbers.
    axis : int or list of int, optional
        All axes, if not given.

    Returns
    -------
    tensor
        Of the shape and dtype of `x`. A vector shorter than 1e-6 stays shorter than one.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that `x` does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> unit = backend.l2_normalize(backend.constant([3.0, 4.0]))
    >>> bool(np.allclose(unit, [0.6, 0.8]))
    True
    """
    if not facts.is_plain(x) or facts.base_dtype(x) not in _FLOATS:
        return tf.math.l2_normalize(x, axis=axis)
    squares = below.reduce_sum(below.square(x), axis, keepdims=True)
    return below.multiply(x, below.rsqrt(below.maximum(squares, 1e-12)))
