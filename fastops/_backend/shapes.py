"""Functions of shapes: read and change shapes, split and join tensors."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.config import flags as _flags

from fastops._backend import below, facts
from fastops._backend.catalogue import alias, thicker
from fastops._backend.state import layout_of

_SIZES = tf.int64 if _flags.config().tf_shape_default_int64.value() else tf.int32


# Reading shapes ----------------------------------------------------------------------------------


@thicker(
    "a Python number",
    tensorflow="tf.rank",
    keras="keras.ops.ndim",
    differs="the others return tensors",
)
def ndim(x):
    """Return the number of axes.

    Parameters
    ----------
    x : tensor or variable

    Returns
    -------
    int or None
        None if it is not known, in a graph.

    Raises
    ------
    AttributeError
        If `x` is not a tensor.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.ndim(backend.zeros((2, 3)))
    2
    """
    return facts.ndim(x)


@thicker("a tuple of Python numbers", tensorflow="tf.Tensor.shape", keras="keras.ops.shape")
def int_shape(x):
    """Return the sizes of all axes.

    Parameters
    ----------
    x : tensor or variable

    Returns
    -------
    tuple of int or None
        None stands for a size that is not known in a graph. None if the rank is unknown, too.

    Raises
    ------
    AttributeError
        If `x` has no shape.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.zeros((2, 3)))
    (2, 3)
    """
    return facts.int_shape(x)


@thicker(
    "the name of the dtype", tensorflow="tf.Tensor.dtype", keras="keras.backend.standardize_dtype"
)
def dtype(x):
    """Return the name of the dtype.

    Parameters
    ----------
    x : tensor or variable

    Returns
    -------
    str

    Raises
    ------
    AttributeError
        If `x` is not a tensor.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.dtype(backend.zeros((2, 3)))
    'float32'
    """
    return facts.dtype(x)


@alias(
    "Shape",
    "input=x",
    tensorflow="tf.shape",
    keras="keras.ops.shape",
    differs="Keras returns a tuple",
    constants={"out_type": _SIZES},
)
def shape(x):
    """Return the sizes of all axes as a tensor.

    Parameters
    ----------
    x : tensor

    Returns
    -------
    tensor
        Of dtype int32 and shape ``(rank,)``.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.shape(backend.zeros((2, 3))).numpy().tolist()
    [2, 3]
    """
    return tf.shape(x)


@thicker("a NumPy number", tensorflow="tf.size", keras="keras.ops.size")
def count_params(x):
    """Return the number of elements.

    Parameters
    ----------
    x : tensor or variable
        Of a known shape.

    Returns
    -------
    numpy.int64
        For a scalar, the float 1.0: NumPy's product of no numbers.

    Raises
    ------
    TypeError
        If a size is not known.

    Examples
    --------
    >>> from fastops import backend
    >>> int(backend.count_params(backend.zeros((2, 3))))
    6
    """
    return facts.count_params(x)


# Changing shapes ---------------------------------------------------------------------------------


@alias("Reshape", "tensor=x shape", tensorflow="tf.reshape", keras="keras.ops.reshape")
def reshape(x, shape):
    """Give the elements another shape.

    Parameters
    ----------
    x : tensor
    shape : tuple of int or tensor
        The new sizes. One of them may be -1: it follows from the number of elements.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        If `shape` has another number of elements than `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.reshape(backend.constant([1, 2, 3, 4]), (2, -1)).numpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return tf.reshape(x, shape)


@thicker("the computation of the new shape", tensorflow="tf.reshape", keras="keras.ops.ravel")
def flatten(x):
    """Put all elements along one axis.

    Parameters
    ----------
    x : tensor

    Returns
    -------
    tensor
        Of the dtype of `x` and shape ``(n,)``.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.flatten(backend.zeros((2, 3))))
    (6,)
    """
    return below.reshape(x, [-1])


@thicker("the computation of the new shape", tensorflow="tf.reshape", keras="keras.ops.reshape")
def batch_flatten(x):
    """Put all elements of each item of a batch along one axis.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, ...)``.

    Returns
    -------
    tensor
        Of the dtype of `x` and shape ``(batch, n)``.

    Raises
    ------
    tf.errors.InvalidArgumentError
        If the items have no elements.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.batch_flatten(backend.zeros((2, 3, 4))))
    (2, 12)
    """
    sizes = facts.int_shape(x) if hasattr(x, "shape") else None
    if sizes is not None and None not in sizes[1:]:
        return below.reshape(x, (-1, math.prod(sizes[1:])))
    return tf.reshape(x, tf.stack([-1, tf.reduce_prod(tf.shape(x)[1:])]))


@alias("ExpandDims", "input=x axis", tensorflow="tf.expand_dims", keras="keras.ops.expand_dims")
def expand_dims(x, axis=-1):
    """Insert an axis of size 1.

    Parameters
    ----------
    x : tensor
    axis : int, default -1
        The position of the new axis in the result.

    Returns
    -------
    tensor
        Of the dtype of `x`, with one more axis.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an axis that the result does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.expand_dims(backend.zeros((2, 3)), 0))
    (1, 2, 3)
    """
    return tf.expand_dims(x, axis)


@thicker("one axis, not given as a list", tensorflow="tf.squeeze", keras="keras.ops.squeeze")
def squeeze(x, axis):
    """Remove an axis of size 1.

    Parameters
    ----------
    x : tensor
    axis : int

    Returns
    -------
    tensor
        Of the dtype of `x`, with one axis fewer.

    Raises
    ------
    tf.errors.InvalidArgumentError
        If the size of the axis is not 1, or `x` has no such axis.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.squeeze(backend.zeros((2, 1, 3)), 1))
    (2, 3)
    """
    return below.squeeze(x, [axis])


@alias(
    "Transpose",
    "x perm=pattern",
    tensorflow="tf.transpose",
    keras="keras.ops.transpose",
    tensors=("x",),
)
def permute_dimensions(x, pattern):
    """Put the axes into another order.

    Parameters
    ----------
    x : tensor
    pattern : tuple of int
        For each axis of the result, the number of the axis of `x`.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError, ValueError
        If `pattern` is not a permutation of all axes.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.permute_dimensions(backend.zeros((2, 3, 4)), (2, 0, 1)))
    (4, 2, 3)
    """
    return tf.transpose(x, pattern)


@thicker("the reversed order of the axes", tensorflow="tf.transpose", keras="keras.ops.transpose")
def transpose(x):
    """Reverse the order of the axes.

    Parameters
    ----------
    x : tensor

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.transpose(backend.zeros((2, 3, 4))))
    (4, 3, 2)
    """
    return below.transpose(x)


@thicker("one axis, not given as a list", tensorflow="tf.reverse", keras="keras.ops.flip")
def reverse(x, axes):
    """Reverse the order of the elements along some axes.

    Parameters
    ----------
    x : tensor
    axes : int or list of int

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
    >>> backend.reverse(backend.constant([1.0, 2.0, 3.0]), 0).numpy().tolist()
    [3.0, 2.0, 1.0]
    """
    return below.reverse(x, [axes] if isinstance(axes, int) else axes)


# Joining and splitting tensors -------------------------------------------------------------------


@thicker(
    "sparse and ragged tensors, the last axis by default",
    tensorflow="tf.concat",
    keras="keras.ops.concatenate",
)
def concatenate(tensors, axis=-1):
    """Put tensors one after the other along an axis.

    Parameters
    ----------
    tensors : list of tensor
        Of the same sizes, except along `axis`. If all tensors are sparse, so is the result;
        otherwise sparse tensors are made dense.
    axis : int, default -1

    Returns
    -------
    tensor, sparse tensor or ragged tensor

    Raises
    ------
    tf.errors.InvalidArgumentError, ValueError
        For shapes or dtypes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.constant([[1.0], [2.0]])
    >>> backend.concatenate([x, x]).numpy().tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    if axis < 0:
        rank = facts.ndim(tensors[0])
        axis = axis % rank if rank else 0
    if facts.are_plain(*tensors):
        return below.concat(tensors, axis)
    if all(is_sparse(x) for x in tensors):
        return _sparse_concat(axis, tensors)
    if all(isinstance(x, tf.RaggedTensor) for x in tensors):
        return tf.concat(tensors, axis)
    return below.concat([to_dense(x) for x in tensors], axis)


@thicker(
    "lists of objects that are not tensors yet", tensorflow="tf.stack", keras="keras.ops.stack"
)
def stack(x, axis=0):
    """Put tensors side by side along a new axis.

    Parameters
    ----------
    x : list of tensor
        Of one shape and dtype.
    axis : int, default 0

    Returns
    -------
    tensor
        With one more axis.

    Raises
    ------
    tf.errors.InvalidArgumentError, ValueError
        For shapes or dtypes that differ, and an axis that the result does not have.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.constant([1.0, 2.0])
    >>> backend.stack([x, x]).numpy().tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    return below.stack(x, axis)


@thicker(
    "axis 0; variables without a copy",
    tensorflow="tf.gather",
    keras="keras.ops.take",
    differs="Keras flattens the tensor by default",
)
def gather(reference, indices):
    """Take rows by their numbers.

    Parameters
    ----------
    reference : tensor or variable
        Of shape ``(rows, ...)``.
    indices : tensor
        Of dtype int32 or int64.

    Returns
    -------
    tensor
        Of the dtype of `reference`, and shape ``(*indices.shape, ...)``.

    Raises
    ------
    tf.errors.InvalidArgumentError
        For an index without a row.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.gather(backend.constant([[1.0], [2.0]]), [1, 0, 1]).numpy().tolist()
    [[2.0], [1.0], [2.0]]
    """
    if facts.is_plain(reference):
        return below.gather(reference, indices)
    return tf.compat.v1.gather(reference, indices)


@thicker("float32, along a new last axis", tensorflow="tf.one_hot", keras="keras.ops.one_hot")
def one_hot(indices, num_classes):
    """Encode classes as vectors of zeros with a single one.

    Parameters
    ----------
    indices : tensor
        Of an integer dtype.
    num_classes : int

    Returns
    -------
    tensor
        Of dtype float32, and shape ``(*indices.shape, num_classes)``. The vector of an index that
        is not a class is zero.

    Raises
    ------
    TypeError, ValueError, tf.errors.InvalidArgumentError
        For indices of another dtype.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.one_hot([1, 0], 3).numpy().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    return below.one_hot(indices, num_classes, axis=-1)


@thicker("a number for one axis", tensorflow="tf.tile", keras="keras.ops.tile")
def tile(x, n):
    """Repeat a tensor along its axes.

    Parameters
    ----------
    x : tensor
    n : int or list of int
        How often the tensor is repeated, for each axis.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    tf.errors.InvalidArgumentError
        If `n` does not have a number for each axis of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.tile(backend.constant([1.0, 2.0]), 2).numpy().tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    return below.tile(x, [n] if isinstance(n, int) else n)


@thicker("a new axis", tensorflow="tf.tile", keras="keras.ops.repeat")
def repeat(x, n):
    """Repeat each row of a matrix along a new axis.

    Parameters
    ----------
    x : tensor
        Of shape ``(rows, columns)``.
    n : int

    Returns
    -------
    tensor
        Of the dtype of `x`, and shape ``(rows, n, columns)``.

    Raises
    ------
    AssertionError
        For another number of axes.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.repeat(backend.constant([[1.0, 2.0]]), 2).numpy().tolist()
    [[[1.0, 2.0], [1.0, 2.0]]]
    """
    assert facts.ndim(x) == 2
    x = below.expand_dims(x, 1)
    return below.tile(x, [1, n, 1] if isinstance(n, int) else tf.stack([1, n, 1]))


@thicker("the split into elements", tensorflow="tf.repeat", keras="keras.ops.repeat")
def repeat_elements(x, rep, axis):
    """Repeat each element along an axis.

    Parameters
    ----------
    x : tensor
        Of a known rank.
    rep : int
        How often.
    axis : int

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.repeat_elements(backend.constant([1.0, 2.0]), 2, axis=0).numpy().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    size = facts.int_shape(x)[axis]
    if size is not None:
        parts = below.split(x, size, axis)
        return concatenate([part for part in parts for _ in range(rep)], axis)
    # The size is known only when the graph runs.
    sizes = x.shape.as_list()
    multiples = np.ones(len(sizes) + 1, np.int32)
    multiples[axis + 1] = rep
    repeated = tf.tile(tf.expand_dims(x, axis + 1), multiples)
    factors = np.delete(multiples, axis + 1)
    factors[axis] = rep
    repeated = tf.reshape(repeated, tf.shape(x) * factors)
    repeated.set_shape(sizes)
    return repeated


@thicker(
    "a negative `start` alone, which counts as 0",
    tensorflow="tf.range",
    keras="keras.ops.arange",
    differs="the others take the dtype from the arguments",
)
def arange(start, stop=None, step=1, dtype="int32"):
    """Return numbers at equal distances.

    Parameters
    ----------
    start : int or float
        The first number; if it is the only argument, the end of the range, which is excluded.
    stop : int or float, optional
        The end of the range, which is excluded.
    step : int or float, default 1
    dtype : str, default "int32"
        ``"int32"`` stands for the dtype that the arguments have.

    Returns
    -------
    tensor
        Of shape ``(n,)``.

    Raises
    ------
    tf.errors.InvalidArgumentError
        If the steps lead away from `stop`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.arange(1, 7, 2).numpy().tolist()
    [1, 3, 5]
    """
    if stop is None and start < 0:
        start = 0
    result = below.range_(start, stop, step, name="arange")
    return result if dtype == "int32" else below.cast(result, dtype)


# Sparse tensors ----------------------------------------------------------------------------------


@thicker(
    "tensors that stand for sparse ones in models",
    tensorflow="tf.SparseTensor",
    differs="TensorFlow has a class, for `isinstance`",
)
def is_sparse(tensor):
    """Tell whether a tensor is a sparse one.

    Parameters
    ----------
    tensor : tensor

    Returns
    -------
    bool

    Examples
    --------
    >>> from fastops import backend
    >>> backend.is_sparse(backend.zeros(2))
    False
    """
    if facts.is_plain(tensor):
        return False
    spec = getattr(tensor, "_type_spec", None)
    if spec is not None:
        return isinstance(spec, tf.SparseTensorSpec)
    return isinstance(tensor, tf.SparseTensor)


@thicker("dense tensors, which it returns unchanged", tensorflow="tf.sparse.to_dense")
def to_dense(tensor):
    """Return a sparse tensor as a dense one.

    Parameters
    ----------
    tensor : tensor or sparse tensor

    Returns
    -------
    tensor
        `tensor` itself, if it is dense.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.zeros(2)
    >>> backend.to_dense(x) is x
    True
    """
    return _to_dense(tensor) if is_sparse(tensor) else tensor


@below.dispatched
def _to_dense(tensor):
    return tf.sparse.to_dense(tensor)


@below.dispatched
def _sparse_concat(axis, tensors):
    return tf.compat.v1.sparse_concat(axis, tensors)


# Padding and resizing ----------------------------------------------------------------------------


@thicker("padding of axis 1 only", tensorflow="tf.pad", keras="keras.ops.pad")
def temporal_padding(x, padding=(1, 1)):
    """Put zeros before and after the steps of sequences.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, steps, features)``.
    padding : tuple of int, default (1, 1)
        How many zeros to put before and after the steps.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    AssertionError
        If `padding` does not have two numbers.
    ValueError, tf.errors.InvalidArgumentError
        For another number of axes.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.temporal_padding(backend.zeros((1, 3, 2))))
    (1, 5, 2)
    """
    assert len(padding) == 2
    return below.pad(x, [[0, 0], [padding[0], padding[1]], [0, 0]])


def _spatial_padding(x, padding, data_format, count):
    assert len(padding) == count
    for pair in padding:
        assert len(pair) == 2
    around = [[pair[0], pair[1]] for pair in padding]
    if layout_of(data_format) == "channels_first":
        return below.pad(x, [[0, 0], [0, 0], *around])
    return below.pad(x, [[0, 0], *around, [0, 0]])


@thicker("data formats", tensorflow="tf.pad", keras="keras.ops.pad")
def spatial_2d_padding(x, padding=((1, 1), (1, 1)), data_format=None):
    """Put zeros around images.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, rows, columns, channels)``, or with the channels first.
    padding : tuple of tuple of int, default ((1, 1), (1, 1))
        How many zeros to put before and after the rows, and before and after the columns.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    AssertionError
        If `padding` does not have two pairs.
    ValueError
        For another data format.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.spatial_2d_padding(backend.zeros((1, 3, 3, 2))))
    (1, 5, 5, 2)
    """
    return _spatial_padding(x, padding, data_format, 2)


@thicker("data formats", tensorflow="tf.pad", keras="keras.ops.pad")
def spatial_3d_padding(x, padding=((1, 1), (1, 1), (1, 1)), data_format=None):
    """Put zeros around volumes.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, depth, rows, columns, channels)``, or with the channels first.
    padding : tuple of tuple of int, default ((1, 1), (1, 1), (1, 1))
        How many zeros to put before and after, along each spatial axis.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    AssertionError
        If `padding` does not have three pairs.
    ValueError
        For another data format.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.int_shape(backend.spatial_3d_padding(backend.zeros((1, 3, 3, 3, 2))))
    (1, 5, 5, 5, 2)
    """
    return _spatial_padding(x, padding, data_format, 3)


_METHODS = {
    "area": tf.image.ResizeMethod.AREA,
    "bicubic": tf.image.ResizeMethod.BICUBIC,
    "bilinear": tf.image.ResizeMethod.BILINEAR,
    "gaussian": tf.image.ResizeMethod.GAUSSIAN,
    "lanczos3": tf.image.ResizeMethod.LANCZOS3,
    "lanczos5": tf.image.ResizeMethod.LANCZOS5,
    "mitchellcubic": tf.image.ResizeMethod.MITCHELLCUBIC,
    "nearest": tf.image.ResizeMethod.NEAREST_NEIGHBOR,
}


def _resizing(op_name, method, **constants):
    """Return the op that TensorFlow uses to resize images if both sizes change."""

    def resize(images, size):
        return tf.image.resize(images, size, method=method)

    return below.primitive(op_name, resize, constants=constants)


_RESIZING = {
    "area": _resizing("ResizeArea", _METHODS["area"]),
    "bicubic": _resizing("ResizeBicubic", _METHODS["bicubic"], half_pixel_centers=True),
    "bilinear": _resizing("ResizeBilinear", _METHODS["bilinear"], half_pixel_centers=True),
    "nearest": _resizing("ResizeNearestNeighbor", _METHODS["nearest"], half_pixel_centers=True),
}


@thicker(
    "factors instead of sizes, data formats",
    tensorflow="tf.image.resize",
    keras="keras.ops.image.resize",
)
def resize_images(x, height_factor, width_factor, data_format, interpolation="nearest"):
    """Resize images by whole factors.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, rows, columns, channels)``, or with the channels first.
    height_factor, width_factor : int
    data_format : str
        ``"channels_last"`` or ``"channels_first"``.
    interpolation : str, default "nearest"
        ``"area"``, ``"bicubic"``, ``"bilinear"``, ``"gaussian"``, ``"lanczos3"``, ``"lanczos5"``,
        ``"mitchellcubic"`` or ``"nearest"``.

    Returns
    -------
    tensor
        Of dtype float32; of the dtype of `x` for ``"nearest"``, and if no size changes.

    Raises
    ------
    ValueError
        For another data format or interpolation.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.constant([[[[1.0], [2.0]]]])
    >>> backend.flatten(backend.resize_images(x, 1, 2, "channels_last")).numpy().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    if data_format == "channels_first":
        rows, columns = 2, 3
    elif data_format == "channels_last":
        rows, columns = 1, 2
    else:
        raise ValueError(f"Invalid `data_format` argument: {data_format}")
    factors = np.array([height_factor, width_factor], np.int32)
    resize = None
    if facts.is_plain(x):
        sizes = facts.int_shape(x)[rows : columns + 1]
        size = (sizes[0] * int(factors[0]), sizes[1] * int(factors[1]))
        if size != sizes:
            resize = _RESIZING.get(interpolation)
    else:
        sizes = x.shape[rows : columns + 1]
        if sizes.is_fully_defined():
            size = tf.constant(sizes.as_list(), tf.int32) * factors
        else:
            size = tf.shape(x)[rows : columns + 1] * factors
    if interpolation not in _METHODS:
        names = '", "'.join(_METHODS)
        raise ValueError(
            f'`interpolation` argument should be one of: "{names}". Received: "{interpolation}".'
        )
    if data_format == "channels_first":
        x = permute_dimensions(x, [0, 2, 3, 1])
    if resize is None:
        x = tf.image.resize(x, size, method=_METHODS[interpolation])
    else:
        x = resize(x, size)
    return permute_dimensions(x, [0, 3, 1, 2]) if data_format == "channels_first" else x


@thicker("data formats", tensorflow="tf.repeat", keras="keras.ops.repeat")
def resize_volumes(x, depth_factor, height_factor, width_factor, data_format):
    """Resize volumes by whole factors: each element is repeated.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, depth, rows, columns, channels)``, or with the channels first.
    depth_factor, height_factor, width_factor : int
    data_format : str
        ``"channels_last"`` or ``"channels_first"``.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    ValueError
        For another data format.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.zeros((1, 2, 2, 2, 3))
    >>> backend.int_shape(backend.resize_volumes(x, 1, 2, 3, "channels_last"))
    (1, 2, 4, 6, 3)
    """
    if data_format == "channels_first":
        first = 2
    elif data_format == "channels_last":
        first = 1
    else:
        raise ValueError(f"Invalid data_format: {data_format}")
    for axis, factor in enumerate((depth_factor, height_factor, width_factor), first):
        x = repeat_elements(x, factor, axis)
    return x
