"""Neural networks: convolutions, pooling, normalization, losses, activations, recurrent cells.

For many of these ops, oneDNN's kernels run, depending on dtype, format and size.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from parity.draw import floats, ints, longs
from parity.recipes import LARGE, SIZES, aligned, drawn, recipe, unary, unstable

# ---------------------------------------------------------------------------------------------
# Activations
# ---------------------------------------------------------------------------------------------

unary("Elu Relu Relu6 Selu Softplus Softsign", "features")
aligned("ReluGrad Relu6Grad SoftplusGrad SoftsignGrad", "gradients features")
aligned("EluGrad SeluGrad", "gradients outputs")


@recipe("LeakyRelu")
def leaky(d):
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {"features": d.T(*shape)}
    for alpha in (0.0, 0.5, 1.0, 3.0, -1.0):
        yield {"features": d.T(5, 7), "alpha": alpha}


@recipe("LeakyReluGrad")
def leaky_gradient(d):
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {"gradients": d.T(*shape), "features": d.T(*shape)}
    for alpha in (0.0, 0.5, 1.0, 3.0, -1.0):
        yield {"gradients": d.T(5, 7), "features": d.T(5, 7), "alpha": alpha}


@recipe("Softmax LogSoftmax")
def softmax(d):
    for shape in (*SIZES[1:-1], (1, 1), (4, 17), (2, 0), *((LARGE,) if d.thorough else ())):
        yield {"logits": d.T(*shape)}
    yield {"logits": d.T(2, 1, 3, 4, 5)}
    if d.special or not accelerated(d.T.dtype):
        yield {"logits": d.T(*SIZES[-1])}


# ---------------------------------------------------------------------------------------------
# Windows that slide over images
# ---------------------------------------------------------------------------------------------


class Slide(NamedTuple):
    """A window that slides over images, as in convolution and pooling.

    Attributes
    ----------
    images : tuple of int
        Batch, sides, channels.
    window : tuple of int
        The sides of the window.
    padding : {"SAME", "VALID"} or tuple of pairs of int
        Pairs are the padding before and after each side.
    strides, dilations : tuple of int
        The values for each side; default: all 1.
    channels_first : bool
        Whether channels come before the sides in tensors. By default, they come last, as in
        `images`.
    """

    images: tuple
    window: tuple
    padding: str | tuple = "SAME"
    strides: tuple = ()
    dilations: tuple = ()
    channels_first: bool = False

    @property
    def channels(self):
        return self.images[-1]

    @property
    def explicit(self):
        return not isinstance(self.padding, str)

    def laid(self, batch, sides, channels):
        """Return batch, sides and channels in the order of the data format."""
        return [batch, channels, *sides] if self.channels_first else [batch, *sides, channels]

    def shape(self):
        """Return the shape of the images."""
        return self.laid(self.images[0], self.images[1:-1], self.channels)

    def result(self, channels):
        """Return the shape of the result."""
        ones = (1,) * len(self.window)
        sides = []
        for side, window, stride, dilation, added in zip(
            self.images[1:-1],
            self.window,
            self.strides or ones,
            self.dilations or ones,
            self.padding if self.explicit else [(0, 0)] * len(ones),
            strict=True,
        ):
            if self.padding == "SAME":
                sides.append(-(-side // stride))
            else:
                reach = dilation * (window - 1) + 1
                sides.append((side + sum(added) - reach) // stride + 1)
        return self.laid(self.images[0], sides, channels)

    def attrs(self):
        """Return the attributes that convolution and pooling share."""
        ones = (1,) * len(self.window)
        attrs = {
            "strides": self.laid(1, self.strides or ones, 1),
            "padding": "EXPLICIT" if self.explicit else self.padding,
            "data_format": "".join(self.laid("N", "DHW"[-len(ones) :], "C")),
        }
        if self.explicit:
            attrs["explicit_paddings"] = sum(self.laid((0, 0), self.padding, (0, 0)), ())
        if self.dilations:
            attrs["dilations"] = self.laid(1, self.dilations, 1)
        return attrs

    def pool(self):
        """Return the attributes of a pooling."""
        return self.attrs() | {"ksize": self.laid(1, self.window, 1)}


@functools.cache
def accelerated(dtype, kind="Conv2D"):
    """Tell whether oneDNN's kernels, which support channels first, run here with a dtype.

    This depends on the processor: some have instructions for float16, which are used for
    convolutions but not for averages.
    """
    pixel, unit = tf.ones([1, 1, 1, 1], dtype), tf.ones([1])
    place = {"data_format": "NCHW"}
    slide = {"strides": [1] * 4, "padding": "SAME"} | place
    calls = {
        "Conv2D": {"input": pixel, "filter": pixel} | slide,
        "AvgPool": {"value": pixel, "ksize": [1] * 4} | slide,
        "FusedBatchNormGradV3": {
            "y_backprop": pixel,
            "x": pixel,
            "scale": unit,
            "is_training": False,
            **{f"reserve_space_{i}": unit for i in (1, 2, 3)},
            **place,
        },
    }
    try:
        getattr(tf.raw_ops, kind)(**calls[kind])
    except tf.errors.OpError:
        return False
    return True


def possible(d, slides, kind="Conv2D"):
    """Leave out calls that only oneDNN's kernels support, unless these run or errors count."""
    onednn = d.special or accelerated(d.T.dtype, kind)
    return [slide for slide in slides if onednn or not slide.channels_first]


# ---------------------------------------------------------------------------------------------
# Convolutions
# ---------------------------------------------------------------------------------------------

PLANES = (
    Slide((2, 7, 5, 3), (3, 2)),
    Slide((2, 7, 5, 3), (3, 2), "VALID", strides=(2, 1)),
    Slide((1, 1, 6, 16), (1, 1), "VALID"),
    Slide((3, 4, 4, 2), (4, 4), "VALID"),
    Slide((1, 3, 17, 1), (3, 5), strides=(1, 3)),
    Slide((1, 4, 5, 17), (2, 2), strides=(3, 3)),
    Slide((2, 5, 7, 3), (1, 1), strides=(2, 2)),
    Slide((1, 2, 2, 3), (5, 5)),
    Slide((0, 4, 4, 2), (2, 2)),
    Slide((2, 7, 5, 3), (3, 2), strides=(1, 2), channels_first=True),
    Slide((1, 5, 9, 17), (3, 3), "VALID", channels_first=True),
)
PADDED = (
    Slide((2, 5, 6, 3), (3, 3), ((1, 0), (2, 3))),
    Slide((1, 5, 6, 3), (3, 2), ((0, 2), (1, 1)), strides=(2, 2)),
)
DILATED = (
    Slide((2, 9, 8, 5), (3, 3), dilations=(2, 3)),
    Slide((1, 9, 8, 3), (3, 2), "VALID", dilations=(3, 1)),
)
GROUPED = Slide((2, 5, 6, 6), (3, 2), strides=(1, 2))
DILATED_CHANNELS_FIRST = (Slide((1, 9, 8, 3), (3, 3), dilations=(2, 2), channels_first=True),)
LARGE_PLANES = (
    Slide((2, 57, 43, 19), (3, 3)),
    Slide((1, 64, 64, 32), (5, 5), "VALID", strides=(2, 2)),
    Slide((3, 33, 29, 64), (1, 1)),
)
SOLIDS = (
    Slide((1, 4, 5, 3, 2), (2, 3, 2)),
    Slide((2, 4, 3, 5, 1), (2, 1, 3), "VALID", strides=(2, 1, 2)),
    Slide((1, 1, 3, 3, 17), (1, 1, 1), "VALID"),
    Slide((2, 3, 3, 3, 2), (3, 3, 3), "VALID"),
    Slide((0, 3, 3, 3, 2), (2, 2, 2)),
    Slide((1, 4, 5, 3, 2), (2, 3, 2), strides=(1, 2, 1), channels_first=True),
)
DILATED_SOLIDS = (Slide((1, 5, 7, 6, 3), (2, 3, 2), dilations=(2, 3, 1)),)
LARGE_SOLIDS = (Slide((2, 17, 19, 15, 7), (3, 3, 3)),)


def convolution(d, slide, groups=1):
    """Return the shapes of the filter and the result of a convolution, and its attributes."""
    depth = 5 if groups == 1 else 2 * groups
    return [*slide.window, slide.channels // groups, depth], slide.result(depth), slide.attrs()


def planes(d, dilated=DILATED):
    large = LARGE_PLANES if d.thorough else ()
    return possible(d, (*PLANES, *PADDED, *dilated, *large))


@recipe("Conv2D")
def convolution_2d(d):
    onednn = DILATED_CHANNELS_FIRST if accelerated(d.T.dtype) else ()
    for slide in planes(d, (*DILATED, *onednn)):
        kernel, _, attrs = convolution(d, slide)
        yield {"input": d.T(*slide.shape()), "filter": d.T(*kernel), **attrs}
    kernel, _, attrs = convolution(d, GROUPED, groups=3)
    yield {"input": d.T(*GROUPED.shape()), "filter": d.T(*kernel), **attrs}
    kernel, _, attrs = convolution(d, PLANES[0])
    call = {"input": d.T(*PLANES[0].shape()), "filter": d.T(*kernel), **attrs}
    yield call | {"use_cudnn_on_gpu": False, "explicit_paddings": []}


def dilated_if_possible(d):
    """Drop dilations if oneDNN's kernels do not run: no others compute gradients with dilations."""
    return (*DILATED, *DILATED_CHANNELS_FIRST) if accelerated(d.T.dtype) else ()


@recipe("Conv2DBackpropInput")
def convolution_2d_input_gradient(d):
    for slide in planes(d, dilated_if_possible(d)):
        kernel, result, attrs = convolution(d, slide)
        tensors = {"filter": d.T(*kernel), "out_backprop": d.T(*result)}
        yield {"input_sizes": ints(slide.shape()), **tensors, **attrs}
    kernel, result, attrs = convolution(d, PLANES[0])
    tensors = {"filter": d.T(*kernel), "out_backprop": d.T(*result)}
    yield {"input_sizes": ints(PLANES[0].images[1:3]), **tensors, **attrs}
    yield {"input_sizes": ints(PLANES[0].shape()), **tensors, **attrs, "use_cudnn_on_gpu": False}
    if accelerated(d.T.dtype):
        kernel, result, attrs = convolution(d, GROUPED, groups=3)
        tensors = {"filter": d.T(*kernel), "out_backprop": d.T(*result)}
        yield {"input_sizes": ints(GROUPED.shape()), **tensors, **attrs}


@recipe("Conv2DBackpropFilter")
def convolution_2d_filter_gradient(d):
    for slide in planes(d, dilated_if_possible(d)):
        kernel, result, attrs = convolution(d, slide)
        tensors = {"input": d.T(*slide.shape()), "out_backprop": d.T(*result)}
        yield {"filter_sizes": ints(kernel), **tensors, **attrs}
    yield {"filter_sizes": ints(kernel), **tensors, **attrs, "use_cudnn_on_gpu": False}
    if accelerated(d.T.dtype):
        kernel, result, attrs = convolution(d, GROUPED, groups=3)
        tensors = {"input": d.T(*GROUPED.shape()), "out_backprop": d.T(*result)}
        yield {"filter_sizes": ints(kernel), **tensors, **attrs}


def solids(d):
    dilated = DILATED_SOLIDS if accelerated(d.T.dtype) else ()
    return possible(d, (*SOLIDS, *dilated, *(LARGE_SOLIDS if d.thorough else ())))


@recipe("Conv3D")
def convolution_3d(d):
    for slide in solids(d):
        kernel, _, attrs = convolution(d, slide)
        yield {"input": d.T(*slide.shape()), "filter": d.T(*kernel), **attrs}


@recipe("Conv3DBackpropInputV2")
def convolution_3d_input_gradient(d):
    for slide in solids(d):
        kernel, result, attrs = convolution(d, slide)
        tensors = {"filter": d.T(*kernel), "out_backprop": d.T(*result)}
        yield {"input_sizes": d.Tshape.const(slide.shape()), **tensors, **attrs}


@recipe("Conv3DBackpropFilterV2")
def convolution_3d_filter_gradient(d):
    for slide in solids(d):
        kernel, result, attrs = convolution(d, slide)
        tensors = {"input": d.T(*slide.shape()), "out_backprop": d.T(*result)}
        yield {"filter_sizes": ints(kernel), **tensors, **attrs}


DEPTHWISE = (
    Slide((2, 7, 5, 3), (3, 2)),
    Slide((1, 6, 7, 1), (2, 3), "VALID", strides=(2, 2)),
    Slide((2, 4, 5, 17), (3, 3), strides=(3, 3)),
    Slide((1, 1, 1, 8), (1, 1)),
    Slide((0, 4, 4, 2), (2, 2)),
    Slide((1, 5, 6, 3), (3, 3), ((1, 0), (2, 3))),
    Slide((1, 5, 6, 4), (3, 3), ((2, 2), (0, 1)), strides=(2, 2)),
    Slide((1, 5, 6, 3), (3, 2), channels_first=True),
)
DEPTHWISE_DILATED = (Slide((1, 9, 8, 3), (3, 3), dilations=(2, 2)),)


def depthwise(d):
    """Yield slides, channel multipliers, shapes of filter and result, and attributes."""
    onednn = DEPTHWISE_DILATED if accelerated(d.T.dtype) else ()
    large = LARGE_PLANES if d.thorough else ()
    for slide in possible(d, (*DEPTHWISE, *onednn, *large)):
        for multiplier in (1, 2):
            kernel = [*slide.window, slide.channels, multiplier]
            yield slide, kernel, slide.result(slide.channels * multiplier), slide.attrs()


@recipe("DepthwiseConv2dNative")
def depthwise_convolution(d):
    for slide, kernel, _, attrs in depthwise(d):
        yield {"input": d.T(*slide.shape()), "filter": d.T(*kernel), **attrs}


@recipe("DepthwiseConv2dNativeBackpropInput")
def depthwise_input_gradient(d):
    for slide, kernel, result, attrs in depthwise(d):
        tensors = {"filter": d.T(*kernel), "out_backprop": d.T(*result)}
        yield {"input_sizes": ints(slide.shape()), **tensors, **attrs}


@recipe("DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter_gradient(d):
    for slide, kernel, result, attrs in depthwise(d):
        # In TensorFlow, the gradient of an empty batch is undefined.
        if slide.images[0]:
            tensors = {"input": d.T(*slide.shape()), "out_backprop": d.T(*result)}
            yield {"filter_sizes": ints(kernel), **tensors, **attrs}


FRAMES = (
    ([0, 0], [0, 0], [0, 0], [0, 0]),
    ([0, 0], [1, 2], [2, 0], [0, 0]),
)


def framed(d):
    for mode in ("REFLECT", "SYMMETRIC"):
        for frame in FRAMES:
            for padding, strides in (("SAME", [1, 2, 2, 1]), ("VALID", [1, 1, 1, 1])):
                yield {
                    "input": d.T(2, 5, 6, 3),
                    "paddings": ints(frame),
                    "filter": d.T(3, 2, 3, 4),
                    "mode": mode,
                    "strides": strides,
                    "padding": padding,
                }


@recipe("FusedPadConv2D")
def framed_convolution(d):
    yield from framed(d)


@recipe("FusedResizeAndPadConv2D")
def resized_convolution(d):
    for call in framed(d):
        yield call | {"size": ints(7, 4)}
        yield call | {"size": ints(3, 9), "resize_align_corners": True}


# ---------------------------------------------------------------------------------------------
# Pooling
# ---------------------------------------------------------------------------------------------

POOLS = (
    Slide((2, 5, 7, 3), (2, 2), strides=(2, 2)),
    Slide((2, 5, 7, 3), (3, 2), "VALID", strides=(1, 2)),
    Slide((1, 1, 6, 17), (1, 1)),
    Slide((1, 4, 4, 2), (4, 4), "VALID", strides=(4, 4)),
    Slide((1, 9, 3, 1), (5, 3), strides=(3, 1)),
    Slide((0, 4, 4, 2), (2, 2)),
    Slide((2, 5, 7, 3), (2, 3), strides=(2, 1), channels_first=True),
    Slide((1, 4, 6, 17), (2, 2), "VALID", channels_first=True),
)
PADDED_POOLS = (
    Slide((1, 5, 6, 3), (3, 3), ((1, 0), (2, 1)), strides=(2, 2)),
    Slide((1, 5, 6, 3), (2, 3), ((0, 1), (1, 0))),
)
LARGE_POOLS = (Slide((2, 57, 43, 19), (3, 3), strides=(2, 2)),)
SOLID_POOLS = (
    Slide((1, 4, 5, 3, 2), (2, 2, 2), strides=(2, 2, 2)),
    Slide((2, 4, 3, 5, 1), (2, 1, 3), "VALID", strides=(2, 1, 2)),
    Slide((1, 1, 3, 3, 17), (1, 1, 1)),
    Slide((0, 3, 3, 3, 2), (2, 2, 2)),
    Slide((1, 4, 5, 3, 2), (2, 3, 2), strides=(1, 2, 1), channels_first=True),
)
LARGE_SOLID_POOLS = (Slide((2, 17, 19, 15, 7), (3, 3, 3), strides=(2, 2, 2)),)


def pools(d, *more, kind="Conv2D"):
    return possible(d, (*POOLS, *more, *(LARGE_POOLS if d.thorough else ())), kind)


def solid_pools(d):
    return possible(d, (*SOLID_POOLS, *(LARGE_SOLID_POOLS if d.thorough else ())))


def channels_last(slides):
    """Leave out channels first, which not even oneDNN's kernels support here."""
    return [slide for slide in slides if not slide.channels_first]


@recipe("AvgPool")
def average(d):
    for slide in pools(d, kind="AvgPool"):
        yield {"value": d.T(*slide.shape()), **slide.pool()}


@recipe("AvgPoolGrad")
def average_gradient(d):
    for slide in pools(d, kind="AvgPool"):
        result = d.T(*slide.result(slide.channels))
        yield {"orig_input_shape": ints(slide.shape()), "grad": result, **slide.pool()}


@recipe("AvgPool3D MaxPool3D")
def pooling_3d(d):
    for slide in solid_pools(d):
        yield {"input": d.T(*slide.shape()), **slide.pool()}


@recipe("AvgPool3DGrad")
def average_3d_gradient(d):
    for slide in solid_pools(d):
        result = d.T(*slide.result(slide.channels))
        yield {"orig_input_shape": ints(slide.shape()), "grad": result, **slide.pool()}


ACROSS_CHANNELS = {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": "VALID"}
FOR_GPUS = {
    "ksize": [1, 1, 2, 2],
    "strides": [1, 1, 2, 2],
    "padding": "VALID",
    "data_format": "NCHW_VECT_C",
}


@recipe("MaxPool")
def maximum(d):
    for slide in pools(d, *PADDED_POOLS):
        yield {"input": d.T(*slide.shape()), **slide.pool()}
    yield {"input": d.T(2, 3, 4, 9), **ACROSS_CHANNELS}
    if d.special and d.T.dtype.is_integer:
        yield {"input": d.T(1, 1, 4, 4, 4), **FOR_GPUS}


@recipe("MaxPoolV2")
def maximum_v2(d):
    for slide in channels_last(pools(d)):
        yield {"input": d.T(*slide.shape()), **as_tensors(slide.pool())}
    yield {"input": d.T(2, 3, 4, 9), **as_tensors(ACROSS_CHANNELS)}
    if d.special and d.T.dtype.is_integer:
        yield {"input": d.T(1, 1, 4, 4, 4), **as_tensors(FOR_GPUS)}


def as_tensors(attrs):
    return attrs | {name: ints(attrs[name]) for name in ("ksize", "strides")}


def pooled(d, slide):
    """Return images and their maxima as inputs of the gradient ops."""
    images = d.T(*slide.shape())
    pool = tf.raw_ops.MaxPool if len(slide.window) == 2 else tf.raw_ops.MaxPool3D
    if d.T.dtype.is_integer:
        maxima = tf.cast(pool(input=tf.cast(images, tf.int64), **slide.pool()), d.T.dtype)
    else:
        maxima = pool(input=images, **slide.pool())
    return {"orig_input": images, "orig_output": maxima}


@recipe("MaxPoolGrad")
def maximum_gradient(d):
    for slide in channels_last(pools(d, *PADDED_POOLS)):
        result = d.T(*slide.result(slide.channels))
        yield {**pooled(d, slide), "grad": result, **slide.pool()}


@recipe("MaxPoolGradV2")
def maximum_gradient_v2(d):
    for slide in channels_last(pools(d)):
        result = d.T(*slide.result(slide.channels))
        yield {**pooled(d, slide), "grad": result, **as_tensors(slide.pool())}


@recipe("MaxPoolGradGrad")
def maximum_second_gradient(d):
    for slide in channels_last(pools(d)):
        yield {**pooled(d, slide), "grad": d.T(*slide.shape()), **slide.pool()}


@recipe("MaxPoolGradGradV2")
def maximum_second_gradient_v2(d):
    for slide in channels_last(pools(d)):
        yield {**pooled(d, slide), "grad": d.T(*slide.shape()), **as_tensors(slide.pool())}


@recipe("MaxPool3DGrad")
def maximum_3d_gradient(d):
    for slide in channels_last(solid_pools(d)):
        result = d.T(*slide.result(slide.channels))
        yield {**pooled(d, slide), "grad": result, **slide.pool()}


@recipe("MaxPool3DGradGrad")
def maximum_3d_second_gradient(d):
    for slide in channels_last(solid_pools(d)):
        if slide.images[0] or d.special:
            yield {**pooled(d, slide), "grad": d.T(*slide.shape()), **slide.pool()}


def argmax_pools(d):
    """Yield images and attributes of a pooling that returns the positions of the maxima."""
    for slide in channels_last(pools(d)):
        if slide.images[0]:
            attrs = slide.pool()
            del attrs["data_format"]
            for include in (False, True):
                yield slide, attrs | {"include_batch_in_index": include}


@recipe("MaxPoolWithArgmax")
def maximum_and_where(d):
    for slide, attrs in argmax_pools(d):
        yield {"input": d.T(*slide.shape()), **attrs}


@recipe("MaxPoolGradWithArgmax")
def maximum_and_where_gradient(d):
    for slide, attrs in argmax_pools(d):
        images = d.T.ordinary(*slide.shape())
        maxima, argmax = tf.raw_ops.MaxPoolWithArgmax(input=images, **attrs)
        yield {"input": images, "grad": d.T(*maxima.shape), "argmax": argmax, **attrs}


CUTS = (
    ((2, 6, 5, 3), [0, 2, 4, 6], [0, 1, 3, 5]),
    ((1, 4, 4, 1), [0, 4], [0, 2, 4]),
    ((1, 7, 3, 2), [0, 1, 4, 5, 7], [0, 3]),
)
"""Shapes of images, and the rows and columns at which fractional pooling cuts them."""


@recipe("FractionalAvgPoolGrad")
def fractional_average_gradient(d):
    for (batch, *sides, channels), rows, columns in CUTS:
        for overlapping in (False, True):
            yield {
                "orig_input_tensor_shape": longs([batch, *sides, channels]),
                "out_backprop": d.T(batch, len(rows) - 1, len(columns) - 1, channels),
                "row_pooling_sequence": longs(rows),
                "col_pooling_sequence": longs(columns),
                "overlapping": overlapping,
            }


@recipe("FractionalMaxPoolGrad")
def fractional_maximum_gradient(d):
    for shape, rows, columns in CUTS:
        for overlapping in (False, True):
            images = d.T.ordinary(*shape)
            maxima = fractional_maxima(images.numpy(), rows, columns, overlapping)
            yield {
                "orig_input": images,
                "orig_output": d.T.const(maxima),
                "out_backprop": d.T(*maxima.shape),
                "row_pooling_sequence": longs(rows),
                "col_pooling_sequence": longs(columns),
                "overlapping": overlapping,
            }


@recipe("FractionalAvgPool FractionalMaxPool")
def fractional_pool(d):
    for (shape, *_), overlapping, pseudo_random in itertools.product(
        CUTS, (False, True), (False, True)
    ):
        yield {
            "value": d.T.ordinary(*shape),
            "pooling_ratio": [1.0, 1.4, 1.6, 1.0],
            "overlapping": overlapping,
            "pseudo_random": pseudo_random,
        }


def is_pooled(arguments, pooled, rows, columns):
    """Tell whether images were pooled between these cuts, and the cuts are valid."""
    images, overlapping = arguments["value"].numpy(), arguments["overlapping"]
    for cuts, length in ((rows, images.shape[1]), (columns, images.shape[2])):
        if (cuts[0], cuts[-1]) != (0, length) or (np.diff(cuts) < 1).any():
            return False
    maxima = fractional_maxima(images, rows, columns, overlapping)
    minima = -fractional_maxima(-images, rows, columns, overlapping)
    return ((pooled >= minima) & (pooled <= maxima)).all()


drawn("FractionalAvgPool FractionalMaxPool", is_pooled, outputs=(0, 1, 2))


def fractional_maxima(images, rows, columns, overlapping):
    """Return the maxima between cuts, with one more row and column if cells overlap."""
    maxima = [
        [
            images[:, top : bottom + overlapping, left : right + overlapping].max((1, 2))
            for left, right in itertools.pairwise(columns)
        ]
        for top, bottom in itertools.pairwise(rows)
    ]
    return np.array(maxima).transpose(2, 0, 1, 3)


# ---------------------------------------------------------------------------------------------
# Dilation
# ---------------------------------------------------------------------------------------------

REACHES = (
    Slide((2, 5, 7, 3), (2, 3)),
    Slide((1, 6, 5, 1), (3, 2), "VALID", strides=(2, 1)),
    Slide((1, 7, 8, 4), (3, 3), strides=(1, 2), dilations=(2, 3)),
    Slide((1, 7, 8, 2), (2, 3), "VALID", dilations=(3, 1)),
    Slide((3, 1, 1, 5), (1, 1)),
)


def dilation(d):
    for slide in (*REACHES, *(LARGE_POOLS if d.thorough else ())):
        attrs = {
            "strides": slide.attrs()["strides"],
            "rates": slide.laid(1, slide.dilations or (1, 1), 1),
            "padding": slide.padding,
        }
        tensors = {"input": d.T(*slide.shape()), "filter": d.T(*slide.window, slide.channels)}
        yield slide, tensors | attrs


@recipe("Dilation2D")
def dilation_2d(d):
    for _, call in dilation(d):
        yield call


@recipe("Dilation2DBackpropInput Dilation2DBackpropFilter")
def dilation_2d_gradient(d):
    for slide, call in dilation(d):
        yield call | {"out_backprop": d.T(*slide.result(slide.channels))}


# ---------------------------------------------------------------------------------------------
# Biases and formats
# ---------------------------------------------------------------------------------------------

BIASED = (
    ((2, 3), "NHWC"),
    ((0, 3), "NHWC"),
    ((2, 5, 17), "NHWC"),
    ((2, 4, 5, 3), "NHWC"),
    ((2, 1, 3, 2, 7), "NHWC"),
    ((2, 1, 3, 1, 2, 1, 2, 5), "NHWC"),
    ((2, 3, 5), "NCHW"),
    ((2, 3, 4, 5), "NCHW"),
    ((2, 3, 1, 4, 5), "NCHW"),
    ((2, 5, 3, 1, 2, 1, 2, 1), "NCHW"),
    ((0, 3, 4, 5), "NCHW"),
)
"""Shapes and formats of tensors to which biases are added."""


def biased(d):
    large = (((100, 37, 129), "NHWC"), ((3, 65, 33, 31), "NCHW")) if d.thorough else ()
    for shape, data_format in (*BIASED, *large):
        yield shape, data_format, shape[-1 if data_format == "NHWC" else 1]


@recipe("BiasAdd")
def bias(d):
    for shape, data_format, channels in biased(d):
        yield {"value": d.T(*shape), "bias": d.T(channels), "data_format": data_format}


@recipe("BiasAddV1")
def bias_v1(d):
    for shape, data_format, channels in biased(d):
        if data_format == "NHWC":
            yield {"value": d.T(*shape), "bias": d.T(channels)}


@recipe("BiasAddGrad")
def bias_gradient(d):
    for shape, data_format, _ in biased(d):
        yield {"out_backprop": d.T(*shape), "data_format": data_format}


FORMATS = (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"), ("NDHWC", "NCDHW"))


@recipe("DataFormatDimMap")
def map_dimensions(d):
    yield {"x": d.T.below(4, 3)}
    for source, target in FORMATS:
        for shape in ((), (0,), (5,), (2, 3)):
            yield {"x": d.T.below(4, *shape), "src_format": source, "dst_format": target}
        yield {"x": d.T.const([-1, -4]), "src_format": source, "dst_format": target}


@recipe("DataFormatVecPermute")
def permute_sizes(d):
    yield {"x": d.T(4)}
    for source, target in FORMATS:
        for shape in ((4,), (2,), (4, 2), (2, 2)) if len(source) == 4 else ((5,), (3,), (5, 2)):
            yield {"x": d.T(*shape), "src_format": source, "dst_format": target}


# ---------------------------------------------------------------------------------------------
# Normalization
# ---------------------------------------------------------------------------------------------

NORMALIZED = (
    ((2, 4, 5, 3), "NHWC"),
    ((1, 1, 1, 17), "NHWC"),
    ((3, 1, 7, 1), "NHWC"),
    ((0, 2, 2, 3), "NHWC"),
    ((2, 3, 4, 5), "NCHW"),
)
NORMALIZED_3D = (
    ((2, 3, 4, 2, 5), "NDHWC"),
    ((2, 5, 3, 1, 2), "NCDHW"),
)
LARGE_NORMALIZED = (((3, 33, 29, 19), "NHWC"), ((2, 64, 31, 17), "NCHW"))


def normalized(d, *more):
    large = LARGE_NORMALIZED if d.thorough else ()
    for shape, data_format in (*NORMALIZED, *more, *large):
        for training in (True, False):
            attrs = {"data_format": data_format, "is_training": training}
            yield shape, shape[-1 if data_format.endswith("C") else 1], attrs


def batch_normalization(d, *more):
    """Yield the calls that all versions of the op share."""
    statistics = d.of("float32")
    for shape, channels, attrs in normalized(d, *more):
        call = {"x": d.T(*shape), "scale": statistics(channels), "offset": statistics(channels)}
        seen = {"mean": statistics(channels), "variance": statistics.positive(channels)}
        yield call | seen | attrs
        if attrs["is_training"]:
            yield call | seen | attrs | {"exponential_avg_factor": 0.25, "epsilon": 0.01}
            yield call | attrs | {"mean": floats([]), "variance": floats([])}


unstable(
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
    "outputs saved for the gradient are undefined in inference and for an empty batch",
    undefined=(3, 4),
)


@recipe("FusedBatchNorm FusedBatchNormV2")
def batch_normalization_2d(d):
    yield from batch_normalization(d)


@recipe("FusedBatchNormV3")
def batch_normalization_3d(d):
    yield from batch_normalization(d, *NORMALIZED_3D)


def batch_normalization_gradient(d, *more):
    statistics = d.of("float32")
    for shape, channels, attrs in normalized(d, *more):
        onednn = accelerated(d.T.dtype, "FusedBatchNormGradV3") and len(shape) == 4
        if attrs["data_format"].startswith("NC") and not (attrs["is_training"] or onednn):
            continue
        call = {"y_backprop": d.T(*shape), "x": d.T(*shape), "scale": statistics(channels)}
        seen = {
            "reserve_space_1": statistics(channels),
            "reserve_space_2": statistics.positive(channels),
        }
        yield call | seen | attrs
        yield call | seen | attrs | {"epsilon": 0.01}


@recipe("FusedBatchNormGrad FusedBatchNormGradV2")
def batch_normalization_2d_gradient(d):
    yield from batch_normalization_gradient(d)


@recipe("FusedBatchNormGradV3")
def batch_normalization_3d_gradient(d):
    for call in batch_normalization_gradient(d, *NORMALIZED_3D):
        yield call | {"reserve_space_3": floats([])}


RESPONSES = (
    {},
    {"depth_radius": 0},
    {"depth_radius": 2, "bias": 2.0, "alpha": 0.5, "beta": 0.75},
    {"depth_radius": 9, "beta": 1.0},
    {"beta": 2.5, "alpha": 1e-4},
)


@recipe("LRN")
def local_response(d):
    for shape in ((1, 3, 2, 8), (2, 1, 1, 17), (1, 5, 7, 1), (0, 3, 2, 4)):
        for attrs in RESPONSES:
            yield {"input": d.T(*shape), **attrs}


@recipe("LRNGrad")
def local_response_gradient(d):
    for shape in ((1, 3, 2, 8), (2, 1, 1, 17), (1, 5, 7, 1), (0, 3, 2, 4)):
        for attrs in RESPONSES:
            tensors = ("input_grads", "input_image", "output_image")
            yield {name: d.T(*shape) for name in tensors} | attrs


# ---------------------------------------------------------------------------------------------
# Losses and rankings
# ---------------------------------------------------------------------------------------------

unary("L2Loss", "t")


@recipe("SoftmaxCrossEntropyWithLogits")
def cross_entropy(d):
    for features, labels in (
        ((3, 4), (3, 4)),
        ((1, 1), (1, 1)),
        ((5, 17), (5, 17)),
        ((0, 4), (0, 4)),
        ((3, 0), (3, 0)),
        ((3, 4), (1, 4)),
        ((1, 4), (3, 4)),
        ((3, 1), (3, 4)),
        ((3, 4), (4,)),
        *([((100, 1001), (100, 1001))] if d.thorough else ()),
    ):
        yield {"features": d.T(*features), "labels": d.T.positive(*labels)}


@recipe("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(d):
    for batch, classes in ((3, 4), (1, 1), (5, 17), (0, 4), *([(100, 1001)] if d.thorough else ())):
        yield {"features": d.T(batch, classes), "labels": d.Tlabels.below(classes, batch)}
    if d.special:
        yield {"features": d.T(2, 3), "labels": d.Tlabels(2)}


@recipe("InTopK")
def among_top(d):
    for batch, classes, k in ((3, 5, 2), (1, 1, 1), (4, 7, 0), (3, 5, 9), (0, 5, 2)):
        predictions = d.of("float32")(batch, classes)
        yield {"predictions": predictions, "targets": d.T.below(classes, batch), "k": k}
    ties = {"predictions": floats([[1, 1, 0], [0, 0, 0]]), "targets": d.T.const([1, 2])}
    yield ties | {"k": 1}
    yield ties | {"k": 2, "targets": d.T.const([7, -1])}


@recipe("InTopKV2")
def among_top_v2(d):
    for call in among_top(d):
        yield call | {"k": d.T.const(call["k"])}


@recipe("TopKV2")
def top(d):
    for shape, k in (((9,), 3), ((2, 9), 9), ((5, 7), 1), ((2, 0, 3), 2), ((2, 3, 1, 17), 5)):
        for ordered in (True, False):
            yield {"input": d.T(*shape), "k": d.Tk.const(k), "sorted": ordered}
    yield {"input": d.T(2, 3), "k": d.Tk.const(0)}
    yield {"input": d.T(3, 0), "k": d.Tk.const(0)}
    yield {"input": d.T.const([[1, 1, 0, 1], [0, 0, 0, 0]]), "k": d.Tk.const(3)}
    if d.thorough:
        yield {"input": d.T(50, 1001), "k": d.Tk.const(100)}


@recipe("ApproxTopK")
def approximate_top(d):
    for shape, k in (((9,), 3), ((2, 9), 9), ((5, 7), 1), ((2, 0, 3), 2), ((2, 3, 1, 17), 5)):
        yield {"input": d.T(*shape), "k": k}
    yield {"input": d.T(3, 9), "k": 2, "recall_target": 0.5}
    yield {"input": d.T(3, 9), "k": 2, "reduction_input_size_override": 20}
    yield {"input": d.T(3, 9), "k": 2, "aggregate_to_topk": False}


@recipe("NthElement")
def nth(d):
    for shape, n in (((1,), 0), ((9,), 4), ((3, 7), 6), ((2, 3, 1, 17), 5), ((0, 4), 1)):
        for reverse in (False, True):
            yield {"input": d.T(*shape), "n": ints(n), "reverse": reverse}
    if d.thorough:
        yield {"input": d.T(50, 1001), "n": ints(500)}


@recipe("IsotonicRegression")
def isotonic_regression(d):
    for shape in ((1, 1), (3, 7), (2, 17), (0, 4), (3, 0), *([(20, 500)] if d.thorough else ())):
        yield {"input": d.T(*shape)}
    yield {"input": d.T.const([[1, 2, 3, 4], [4, 3, 2, 1], [2, 2, 2, 2]])}


# ---------------------------------------------------------------------------------------------
# Recurrent cells
# ---------------------------------------------------------------------------------------------

CELLS = ((3, 2, 4), (1, 1, 1), (2, 5, 3), (4, 7, 17))
"""Batch sizes, sizes of the input, and numbers of cells."""

GATES = ("i", "cs", "f", "o", "ci", "co", "h")


def lstm(d, batch, inputs, cells, *time):
    """Return the arguments of an LSTM for a block of timesteps, or for one step."""
    weights = {name: d.T.unit(cells) for name in ("wci", "wcf", "wco")}
    return weights | {
        "x": d.T(*time, batch, inputs),
        "cs_prev": d.T.unit(batch, cells),
        "h_prev": d.T.unit(batch, cells),
        "w": d.T.unit(inputs + cells, 4 * cells),
        "b": d.T.unit(4 * cells),
    }


@recipe("LSTMBlockCell")
def lstm_cell(d):
    for sizes in CELLS:
        for peephole in (False, True):
            yield {**lstm(d, *sizes), "use_peephole": peephole}
    yield {**lstm(d, *CELLS[0]), "forget_bias": 0.0, "cell_clip": 0.1}
    yield {**lstm(d, *CELLS[0]), "forget_bias": 2.5, "cell_clip": -1.0}


@recipe("LSTMBlockCellGrad")
def lstm_cell_gradient(d):
    for batch, inputs, cells in CELLS:
        for peephole in (False, True):
            results = [name for name in GATES if name != "h"]
            given = {name: d.T.unit(batch, cells) for name in (*results, "cs_grad", "h_grad")}
            yield {**lstm(d, batch, inputs, cells), **given, "use_peephole": peephole}


def blocks(d):
    """Yield numbers of timesteps, sizes, and arguments for all steps."""
    for steps, *sizes in ((3, *CELLS[0]), *((2, *sizes) for sizes in CELLS), (1, 4, 3, 5)):
        for peephole in (False, True):
            call = {**lstm(d, *sizes, steps), "seq_len_max": longs(steps)}
            yield steps, sizes, call | {"use_peephole": peephole}


unstable(
    "BlockLSTM BlockLSTMV2",
    "the gates of steps after `seq_len_max` are undefined; h is zero there",
    undefined=(0, 2, 3, 4, 5),
    only=lambda outputs: not outputs[6][-1].numpy().any(),
)


@recipe("BlockLSTM")
def lstm_block(d):
    for steps, _, call in blocks(d):
        yield call
        yield call | {"seq_len_max": longs(steps - 1)}
    yield call | {"forget_bias": 0.0, "cell_clip": 0.1}
    yield call | {"forget_bias": 2.5, "cell_clip": -1.0}


@recipe("BlockLSTMV2")
def lstm_block_v2(d):
    for steps, _, call in blocks(d):
        yield call
        yield call | {"seq_len_max": longs(steps - 1)}
    yield call | {"cell_clip": 0.1}


@recipe("BlockLSTMGrad BlockLSTMGradV2")
def lstm_block_gradient(d):
    for steps, (batch, _, cells), call in blocks(d):
        given = (*GATES, "cs_grad", "h_grad")
        call |= {name: d.T.unit(steps, batch, cells) for name in given}
        yield call
        yield call | {"seq_len_max": longs(steps - 1)}


def gru(d, batch, inputs, cells):
    return {
        "x": d.T(batch, inputs),
        "h_prev": d.T.unit(batch, cells),
        "w_ru": d.T.unit(inputs + cells, 2 * cells),
        "w_c": d.T.unit(inputs + cells, cells),
        "b_ru": d.T.unit(2 * cells),
        "b_c": d.T.unit(cells),
    }


@recipe("GRUBlockCell")
def gru_cell(d):
    for sizes in CELLS:
        yield gru(d, *sizes)


@recipe("GRUBlockCellGrad")
def gru_cell_gradient(d):
    for batch, inputs, cells in CELLS:
        given = {name: d.T.unit(batch, cells) for name in ("r", "u", "c", "d_h")}
        yield gru(d, batch, inputs, cells) | given
