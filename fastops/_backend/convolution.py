"""Convolutions and pooling, with the channels last or first.

Only kernels of GPUs, by cuDNN, take the channels first. For a GPU, TensorFlow runs the op with the
caller's data format. For a CPU, the channels are moved to the end before the op, and back after it.
"""

import itertools

import numpy as np
import tensorflow as tf

from fastops._backend import below, facts, linalg, shapes
from fastops._backend.catalogue import thicker
from fastops._backend.devices import runs_channels_first
from fastops._backend.state import layout_of

_LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
_TO_LAST = {1: (0, 2, 1), 2: (0, 2, 3, 1), 3: (0, 2, 3, 4, 1)}
_TO_FIRST = {1: (0, 2, 1), 2: (0, 3, 1, 2), 3: (0, 4, 1, 2, 3)}


class _Channels:
    """The positions of the channels in the arguments of a call and in the inputs of its kernel.

    Parameters
    ----------
    data_format : str or None
        The argument of the user.
    axes : int
        The number of spatial axes.
    last : bool
        Whether the kernel takes the channels last on every device.
    """

    def __init__(self, data_format, axes, last=False):
        first = layout_of(data_format) == "channels_first"
        self.axes = axes
        self.moved = first and (last or not runs_channels_first())
        self.layout = _LAYOUTS[axes][first and not self.moved]
        self.first = first and not self.moved

    def to_kernel(self, x):
        return shapes.permute_dimensions(x, _TO_LAST[self.axes]) if self.moved else x

    def from_kernel(self, x):
        return shapes.permute_dimensions(x, _TO_FIRST[self.axes]) if self.moved else x

    def all_axes(self, spatial):
        """Return the value of an op's attribute, with ones for the batch and channel axes."""
        return (1, 1, *spatial) if self.first else (1, *spatial, 1)


def _padding(padding):
    if padding == "same":
        return "SAME"
    if padding == "valid":
        return "VALID"
    raise ValueError(f"Invalid padding: {padding}")


def _per_axis(value, axes):
    """Return a number for each spatial axis; None if TensorFlow has to check the value."""
    if isinstance(value, int):
        return (value,) * axes
    value = tuple(value)
    if len(value) == 1:
        return value * axes
    return value if len(value) == axes else None


def _have_axes(count, *tensors):
    """Tell whether all tensors have this number of axes."""
    return all(
        tensor.ndim == count if isinstance(tensor, np.ndarray) else facts.ndim(tensor) == count
        for tensor in tensors
    )


def _convolution_op(op_name, layout):
    """Return the op that `tf.nn.convolution` runs if there is no dilation."""
    first = layout.startswith("NC")

    def function(x, kernel, strides, padding):
        return tf.compat.v1.nn.convolution(
            input=x,
            filter=kernel,
            strides=strides[2:] if first else strides[1:-1],
            padding=padding,
            data_format=layout,
        )

    return below.primitive(
        op_name,
        function,
        "input=x filter=kernel strides padding",
        constants={"data_format": layout},
    )


_CONVOLUTIONS = {
    layout: _convolution_op(f"Conv{axes}D", layout) for axes in (2, 3) for layout in _LAYOUTS[axes]
}


def _convolve(x, kernel, strides, padding, channels, dilation_rate):
    axes = channels.axes
    if facts.is_plain(x) and facts.ndim(x) < axes + 2:  # the kernel would crash the process
        raise ValueError(f"x must have {axes + 2} axes, not {facts.ndim(x)}")
    steps, dilations = _per_axis(strides, axes), _per_axis(dilation_rate, axes)
    if steps is None or dilations != (1,) * axes or not _have_axes(axes + 2, x, kernel):
        return _dilated(x, kernel, strides, padding, channels.layout, dilation_rate)
    if axes > 1:
        op = _CONVOLUTIONS[channels.layout]
        return op(x, kernel, channels.all_axes(steps), padding)
    if not facts.is_plain(x):
        return _dilated(x, kernel, strides, padding, channels.layout, dilation_rate)
    # Run it as a convolution of images with one row.
    row = 2 if channels.first else 1
    x, kernel = below.expand_dims(x, row), below.expand_dims(kernel, 0)
    op = _CONVOLUTIONS["NCHW" if channels.first else "NHWC"]
    return below.squeeze(op(x, kernel, channels.all_axes((1, *steps)), padding), [row])


def _by_tensorflow(x, kernel, strides, padding, layout, dilation_rate):
    return tf.compat.v1.nn.convolution(
        input=x,
        filter=kernel,
        dilation_rate=dilation_rate,
        strides=strides,
        padding=padding,
        data_format=layout,
    )


_dilated = below.replayed(_by_tensorflow)


@thicker(
    "data formats, causal padding",
    tensorflow="tf.nn.convolution",
    keras="keras.ops.conv",
)
def conv1d(x, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """Convolve sequences.

    Parameters
    ----------
    x : tensor
        Floats, of shape ``(batch, steps, channels)``, or with the channels first.
    kernel : tensor or variable
        Of shape ``(size, channels, filters)``.
    strides : int, default 1
    padding : str, default "valid"
        ``"valid"``, ``"same"``, or ``"causal"``: no result depends on later steps.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    dilation_rate : int, default 1

    Returns
    -------
    tensor
        Of shape ``(batch, new steps, filters)``, or with the filters first.

    Raises
    ------
    ValueError
        For another data format or padding, and shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, kernel = backend.ones((1, 4, 2)), backend.ones((3, 2, 5))
    >>> backend.int_shape(backend.conv1d(x, kernel))
    (1, 2, 5)
    """
    channels = _Channels(data_format, 1)
    if padding == "causal":
        x = shapes.temporal_padding(x, (dilation_rate * (facts.int_shape(kernel)[0] - 1), 0))
        padding = "valid"
    padding = _padding(padding)
    x = channels.to_kernel(x)
    return channels.from_kernel(_convolve(x, kernel, strides, padding, channels, dilation_rate))


@thicker("data formats", tensorflow="tf.nn.convolution", keras="keras.ops.conv")
def conv2d(x, kernel, strides=(1, 1), padding="valid", data_format=None, dilation_rate=(1, 1)):
    """Convolve images.

    Parameters
    ----------
    x : tensor
        Floats, of shape ``(batch, rows, columns, channels)``, or with the channels first.
    kernel : tensor or variable
        Of shape ``(rows, columns, channels, filters)``.
    strides : tuple of int, default (1, 1)
    padding : str, default "valid"
        ``"valid"`` or ``"same"``.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    dilation_rate : tuple of int, default (1, 1)

    Returns
    -------
    tensor
        Of shape ``(batch, new rows, new columns, filters)``, or with the filters first.

    Raises
    ------
    ValueError
        For another data format or padding, and shapes that do not fit.

    Notes
    -----
    With a dilation, TensorFlow convolves parts of the image that lie side by side.

    Examples
    --------
    >>> from fastops import backend
    >>> x, kernel = backend.ones((1, 4, 4, 2)), backend.ones((3, 3, 2, 5))
    >>> backend.int_shape(backend.conv2d(x, kernel, padding="same"))
    (1, 4, 4, 5)
    """
    channels = _Channels(data_format, 2)
    padding = _padding(padding)
    x = channels.to_kernel(x)
    return channels.from_kernel(_convolve(x, kernel, strides, padding, channels, dilation_rate))


@thicker("data formats", tensorflow="tf.nn.convolution", keras="keras.ops.conv")
def conv3d(
    x, kernel, strides=(1, 1, 1), padding="valid", data_format=None, dilation_rate=(1, 1, 1)
):
    """Convolve volumes.

    Parameters
    ----------
    x : tensor
        Floats, of shape ``(batch, depth, rows, columns, channels)``, or with the channels first.
    kernel : tensor or variable
        Of shape ``(depth, rows, columns, channels, filters)``.
    strides : tuple of int, default (1, 1, 1)
    padding : str, default "valid"
        ``"valid"`` or ``"same"``.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    dilation_rate : tuple of int, default (1, 1, 1)

    Returns
    -------
    tensor
        Of shape ``(batch, new depth, new rows, new columns, filters)``, or with the filters first.

    Raises
    ------
    ValueError
        For another data format or padding, and shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, kernel = backend.ones((1, 4, 4, 4, 2)), backend.ones((3, 3, 3, 2, 5))
    >>> backend.int_shape(backend.conv3d(x, kernel))
    (1, 2, 2, 2, 5)
    """
    channels = _Channels(data_format, 3)
    padding = _padding(padding)
    x = channels.to_kernel(x)
    return channels.from_kernel(_convolve(x, kernel, strides, padding, channels, dilation_rate))


# Transposed, depthwise and separable -------------------------------------------------------------


def _transposed_op(layout):
    def function(x, kernel, output_shape, strides, padding):
        return tf.compat.v1.nn.conv2d_transpose(
            x, kernel, output_shape, strides, padding=padding, data_format=layout
        )

    return below.primitive(
        "Conv2DBackpropInput",
        function,
        "out_backprop=x filter=kernel input_sizes=output_shape strides padding",
        constants={"data_format": layout},
    )


_TRANSPOSED = {layout: _transposed_op(layout) for layout in _LAYOUTS[2]}


@below.replayed
def _transposed_and_dilated(x, kernel, output_shape, rate, padding):
    return tf.nn.atrous_conv2d_transpose(x, kernel, output_shape, rate=rate, padding=padding)


@thicker(
    "data formats, the batch of `x`",
    tensorflow="tf.nn.conv2d_transpose",
    keras="keras.ops.conv_transpose",
)
def conv2d_transpose(
    x,
    kernel,
    output_shape,
    strides=(1, 1),
    padding="valid",
    data_format=None,
    dilation_rate=(1, 1),
):
    """Apply a transposed convolution to images: each element of `x` spreads over a window.

    Parameters
    ----------
    x : tensor
        Floats, of shape ``(batch, rows, columns, channels)``, or with the channels first.
    kernel : tensor or variable
        Of shape ``(rows, columns, filters, channels)``.
    output_shape : tuple of int or tensor
        The shape of the result; the batch may be None.
    strides : tuple of int, default (1, 1)
    padding : str, default "valid"
        ``"valid"`` or ``"same"``.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    dilation_rate : tuple of int, default (1, 1)
        Two equal numbers.

    Returns
    -------
    tensor
        Of shape `output_shape`.

    Raises
    ------
    ValueError
        For another data format, padding or dilation, and shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, kernel = backend.ones((1, 2, 2, 3)), backend.ones((3, 3, 5, 3))
    >>> backend.int_shape(backend.conv2d_transpose(x, kernel, (None, 4, 4, 5)))
    (1, 4, 4, 5)
    """
    plain = dilation_rate == (1, 1)
    channels = _Channels(data_format, 2, last=not plain)
    x = channels.to_kernel(x)
    if channels.moved:
        output_shape = [output_shape[i] for i in _TO_LAST[2]]
    if output_shape[0] is None:
        output_shape = [linalg.sizes_of(x)[0], *output_shape[1:]]
    if isinstance(output_shape, (tuple, list)):
        output_shape = list(output_shape)
        if not all(isinstance(size, int) for size in output_shape):
            output_shape = tf.stack(output_shape)
    padding = _padding(padding)
    if plain:
        x = _TRANSPOSED[channels.layout](
            x, kernel, output_shape, channels.all_axes(strides), padding
        )
    else:
        if dilation_rate[0] != dilation_rate[1]:
            raise ValueError(
                "Expected the 2 dimensions of the `dilation_rate` argument to be equal to each "
                f"other. Received: dilation_rate={dilation_rate}"
            )
        x = _transposed_and_dilated(x, kernel, output_shape, dilation_rate[0], padding)
    return channels.from_kernel(x)


def _depthwise_op(layout):
    def function(x, kernel, strides, padding):
        return tf.nn.depthwise_conv2d(
            x, kernel, strides=strides, padding=padding, data_format=layout
        )

    return below.primitive(
        "DepthwiseConv2dNative",
        function,
        "input=x filter=kernel strides padding",
        constants={"data_format": layout},
    )


_DEPTHWISE = {layout: _depthwise_op(layout) for layout in _LAYOUTS[2]}


@below.replayed
def _dilated_depthwise(x, kernel, strides, padding, layout, dilations):
    return tf.nn.depthwise_conv2d(
        x, kernel, strides=strides, padding=padding, dilations=dilations, data_format=layout
    )


@thicker(
    "data formats",
    tensorflow="tf.nn.depthwise_conv2d",
    keras="keras.ops.depthwise_conv",
)
def depthwise_conv2d(
    x,
    depthwise_kernel,
    strides=(1, 1),
    padding="valid",
    data_format=None,
    dilation_rate=(1, 1),
):
    """Convolve each channel of images separately.

    Parameters
    ----------
    x : tensor
        Floats, of shape ``(batch, rows, columns, channels)``, or with the channels first.
    depthwise_kernel : tensor or variable
        Of shape ``(rows, columns, channels, multiplier)``.
    strides : tuple of int, default (1, 1)
    padding : str, default "valid"
        ``"valid"`` or ``"same"``.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    dilation_rate : tuple of int, default (1, 1)

    Returns
    -------
    tensor
        With ``channels * multiplier`` channels.

    Raises
    ------
    ValueError
        For another data format or padding, and shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, kernel = backend.ones((1, 4, 4, 2)), backend.ones((3, 3, 2, 1))
    >>> backend.int_shape(backend.depthwise_conv2d(x, kernel))
    (1, 2, 2, 2)
    """
    channels = _Channels(data_format, 2)
    x = channels.to_kernel(x)
    padding = _padding(padding)
    steps = channels.all_axes(strides)
    if tuple(dilation_rate) == (1, 1) and _have_axes(4, x, depthwise_kernel):
        x = _DEPTHWISE[channels.layout](x, depthwise_kernel, steps, padding)
    else:
        layout = channels.layout
        x = _dilated_depthwise(x, depthwise_kernel, steps, padding, layout, dilation_rate)
    return channels.from_kernel(x)


@below.replayed
def _separable(x, depthwise, pointwise, strides, padding, layout, dilations):
    return tf.nn.separable_conv2d(
        x,
        depthwise,
        pointwise,
        strides=strides,
        padding=padding,
        dilations=dilations,
        data_format=layout,
    )


@thicker(
    "data formats",
    tensorflow="tf.nn.separable_conv2d",
    keras="keras.ops.separable_conv",
)
def separable_conv2d(
    x,
    depthwise_kernel,
    pointwise_kernel,
    strides=(1, 1),
    padding="valid",
    data_format=None,
    dilation_rate=(1, 1),
):
    """Convolve each channel of images separately, and mix the channels of each position.

    Parameters
    ----------
    x : tensor
        Floats, of shape ``(batch, rows, columns, channels)``, or with the channels first.
    depthwise_kernel : tensor or variable
        Of shape ``(rows, columns, channels, multiplier)``.
    pointwise_kernel : tensor or variable
        Of shape ``(1, 1, channels * multiplier, filters)``.
    strides : tuple of int, default (1, 1)
    padding : str, default "valid"
        ``"valid"`` or ``"same"``.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    dilation_rate : tuple of int, default (1, 1)

    Returns
    -------
    tensor
        With ``filters`` channels.

    Raises
    ------
    ValueError
        For another data format, padding or strides, and shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, depthwise = backend.ones((1, 4, 4, 2)), backend.ones((3, 3, 2, 1))
    >>> pointwise = backend.ones((1, 1, 2, 5))
    >>> backend.int_shape(backend.separable_conv2d(x, depthwise, pointwise))
    (1, 2, 2, 5)
    """
    channels = _Channels(data_format, 2)
    if len(strides) != 2:
        raise ValueError("`strides` must be a tuple of 2 integers.")
    x = channels.to_kernel(x)
    padding = _padding(padding)
    steps, layout = channels.all_axes(strides), channels.layout
    if (
        tuple(dilation_rate) == (1, 1)
        and facts.is_plain(x)
        and _have_axes(4, x, depthwise_kernel, pointwise_kernel)
        and facts.int_shape(pointwise_kernel)[:2] == (1, 1)
    ):
        x = _DEPTHWISE[layout](x, depthwise_kernel, steps, padding)
        x = _CONVOLUTIONS[layout](x, pointwise_kernel, (1, 1, 1, 1), "VALID")
    else:
        x = _separable(x, depthwise_kernel, pointwise_kernel, steps, padding, layout, dilation_rate)
    return channels.from_kernel(x)


# Pooling -----------------------------------------------------------------------------------------


def _pooling_op(op_name, layout, function):
    def pool(x, ksize, strides, padding):
        return function(x, ksize, strides, padding=padding, data_format=layout)

    first = "value" if op_name == "AvgPool" else "input"
    return below.primitive(
        op_name,
        pool,
        f"{first}=x ksize strides padding",
        constants={"data_format": layout},
        tensors=("x",),
    )


_POOLING = {
    (mode, layout): _pooling_op(op_name, layout, function)
    for mode, axes, op_name, function in (
        ("max", 2, "MaxPool", tf.compat.v1.nn.max_pool),
        ("avg", 2, "AvgPool", tf.compat.v1.nn.avg_pool),
        ("max", 3, "MaxPool3D", tf.nn.max_pool3d),
        ("avg", 3, "AvgPool3D", tf.nn.avg_pool3d),
    )
    for layout in _LAYOUTS[axes]
}


def _pool(x, pool_size, strides, padding, data_format, pool_mode, axes):
    channels = _Channels(data_format, axes)
    x = channels.to_kernel(x)
    padding = _padding(padding)
    strides, pool_size = channels.all_axes(strides), channels.all_axes(pool_size)
    op = _POOLING.get((pool_mode, channels.layout))
    if op is None:
        raise ValueError(f"Invalid pooling mode: {pool_mode}")
    return channels.from_kernel(op(x, pool_size, strides, padding))


@thicker(
    "data formats, both modes in one function",
    tensorflow="tf.nn.pool",
    keras="keras.ops.max_pool",
)
def pool2d(x, pool_size, strides=(1, 1), padding="valid", data_format=None, pool_mode="max"):
    """Take the greatest element, or the mean, of each window of images.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, rows, columns, channels)``, or with the channels first.
    pool_size : tuple of int
        The rows and columns of a window.
    strides : tuple of int, default (1, 1)
    padding : str, default "valid"
        ``"valid"`` or ``"same"``.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    pool_mode : str, default "max"
        ``"max"`` or ``"avg"``.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    ValueError
        For an unknown data format, padding or mode, or a wrong number of sizes.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.reshape(backend.arange(4, dtype="float32"), (1, 2, 2, 1))
    >>> backend.flatten(backend.pool2d(x, (2, 2), pool_mode="avg")).numpy().tolist()
    [1.5]
    """
    layout_of(data_format)
    if len(pool_size) != 2:
        raise ValueError("`pool_size` must be a tuple of 2 integers.")
    if len(strides) != 2:
        raise ValueError("`strides` must be a tuple of 2 integers.")
    return _pool(x, pool_size, strides, padding, data_format, pool_mode, 2)


@thicker(
    "data formats, both modes in one function",
    tensorflow="tf.nn.pool",
    keras="keras.ops.max_pool",
)
def pool3d(x, pool_size, strides=(1, 1, 1), padding="valid", data_format=None, pool_mode="max"):
    """Take the greatest element, or the mean, of each window of volumes.

    Parameters
    ----------
    x : tensor
        Of shape ``(batch, depth, rows, columns, channels)``, or with the channels first.
    pool_size : tuple of int
        The depth, rows and columns of a window.
    strides : tuple of int, default (1, 1, 1)
    padding : str, default "valid"
        ``"valid"`` or ``"same"``.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.
    pool_mode : str, default "max"
        ``"max"`` or ``"avg"``.

    Returns
    -------
    tensor
        Of the dtype of `x`.

    Raises
    ------
    ValueError
        For another data format, padding or mode.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.ones((1, 2, 2, 2, 1))
    >>> backend.int_shape(backend.pool3d(x, (2, 2, 2)))
    (1, 1, 1, 1, 1)
    """
    return _pool(x, pool_size, strides, padding, data_format, pool_mode, 3)


# Without shared weights --------------------------------------------------------------------------

_patches = below.primitive(
    "ExtractImagePatches",
    lambda images, ksizes, strides, rates, padding: tf.image.extract_patches(
        images, ksizes, strides, rates, padding
    ),
)


def _windows_at_once(inputs, kernel_size, strides, output_shape, first):
    """Return the same windows as `_windows`, by one op; None if `_windows` has to make them.

    `_windows` also makes them while a tape records, because the gradient of this op is slower than
    the gradients of all ops that `_windows` runs.
    """
    if not facts.is_plain(inputs) or facts.is_recorded():
        return None
    axes = len(output_shape)
    if axes == 1:
        inputs = below.expand_dims(inputs, 2 if first else 1)
        kernel_size, strides = (1, *kernel_size), (1, *strides)
        output_shape = (1, *output_shape)
    if first:
        inputs = below.transpose(inputs, _TO_LAST[2])
    sizes = facts.int_shape(inputs)
    if len(sizes) != 4 or facts.base_dtype(inputs) is not tf.float32:
        return None
    for size, window, step, count in zip(
        sizes[1:3], kernel_size, strides, output_shape, strict=True
    ):
        if size < window or (size - window) // step + 1 != count:
            return None
    patches = _patches(inputs, (1, *kernel_size, 1), (1, *strides, 1), (1, 1, 1, 1), "VALID")
    count, features = output_shape[0] * output_shape[1], sizes[3]
    size = kernel_size[0] * kernel_size[1]
    patches = below.reshape(patches, (sizes[0], count, size, features))
    patches = below.transpose(patches, (1, 0, 3, 2) if first else (1, 0, 2, 3))
    return below.reshape(patches, (count, sizes[0], size * features))


def _windows(inputs, kernel_size, strides, output_shape, first, features):
    """Return the window of each position of the result: shape ``(positions, batch, features)``."""
    windows = []
    for position in itertools.product(*map(range, output_shape)):
        spatial = [
            slice(at * step, at * step + size)
            for at, step, size in zip(position, strides, kernel_size, strict=False)
        ]
        if first:
            slices = [slice(None), slice(None), *spatial]
        else:
            slices = [slice(None), *spatial, slice(None)]
        windows.append(below.reshape(inputs[slices], (1, -1, features)))
    return shapes.concatenate(windows, axis=0)


def _local(inputs, kernel, kernel_size, strides, output_shape, data_format):
    first = layout_of(data_format) == "channels_first"
    _, features, filters = facts.int_shape(kernel)
    axes, output_shape = len(output_shape), tuple(output_shape)
    windows = _windows_at_once(inputs, kernel_size, strides, output_shape, first)
    if windows is None:
        windows = _windows(inputs, kernel_size, strides, output_shape, first, features)
    output = linalg.batch_dot(windows, kernel)
    output = below.reshape(output, (*output_shape, -1, filters))
    spatial = range(axes)
    if first:
        return shapes.permute_dimensions(output, [axes, axes + 1, *spatial])
    return shapes.permute_dimensions(output, [axes, *spatial, axes + 1])


@thicker(
    "a different kernel for each position",
    keras="keras.layers.Conv1D",
    differs="Keras's layer has one kernel for all positions",
)
def local_conv1d(inputs, kernel, kernel_size, strides, data_format=None):
    """Convolve sequences with a different kernel at each position.

    Parameters
    ----------
    inputs : tensor
        Floats, of shape ``(batch, steps, channels)``, or with the channels first.
    kernel : tensor or variable
        Of shape ``(new steps, size * channels, filters)``.
    kernel_size, strides : tuple of int
        One number.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.

    Returns
    -------
    tensor
        Of shape ``(batch, new steps, filters)``, or with the filters first.

    Raises
    ------
    ValueError
        For another data format, and shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, kernel = backend.ones((1, 4, 2)), backend.ones((2, 6, 5))
    >>> backend.int_shape(backend.local_conv1d(x, kernel, (3,), (1,)))
    (1, 2, 5)
    """
    output_shape = (facts.int_shape(kernel)[0],)
    return _local(inputs, kernel, kernel_size, strides, output_shape, data_format)


@thicker(
    "a different kernel for each position",
    keras="keras.layers.Conv2D",
    differs="Keras's layer has one kernel for all positions",
)
def local_conv2d(inputs, kernel, kernel_size, strides, output_shape, data_format=None):
    """Convolve images with a different kernel at each position.

    Parameters
    ----------
    inputs : tensor
        Floats, of shape ``(batch, rows, columns, channels)``, or with the channels first.
    kernel : tensor or variable
        Of shape ``(positions, features, filters)``, where features are those of a window.
    kernel_size, strides, output_shape : tuple of int
        Two numbers each.
    data_format : str, optional
        ``"channels_last"`` or ``"channels_first"``; `image_data_format`, if not given.

    Returns
    -------
    tensor
        Of shape ``(batch, *output_shape, filters)``, or with the filters first.

    Raises
    ------
    ValueError
        For another data format, and shapes that do not fit.

    Examples
    --------
    >>> from fastops import backend
    >>> x, kernel = backend.ones((1, 4, 4, 2)), backend.ones((4, 18, 5))
    >>> backend.int_shape(backend.local_conv2d(x, kernel, (3, 3), (1, 1), (2, 2)))
    (1, 2, 2, 5)
    """
    return _local(inputs, kernel, kernel_size, strides, output_shape, data_format)
