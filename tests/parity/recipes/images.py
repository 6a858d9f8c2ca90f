"""Images: codecs, resizing, cropping, colour, boxes."""

import base64
import itertools
import struct

import numpy as np
import tensorflow as tf

from parity.draw import floats, ints, strings
from parity.recipes import drawn, indirect, nondeterministic, recipe

BOTH = (False, True)

# ---------------------------------------------------------------------------------------------
# Codecs
# ---------------------------------------------------------------------------------------------

GIF = base64.b64decode(
    "R0lGODlhAgADAIEAAP8AAAAA/wAAAAAAACH5BAAKAAAALAAAAAACAAMAAAgGAAEIHBgQACH5BAEKAAEALAAAAAACAAMA"
    "gQAA/wAAAAAAAAAAAAAIBgABCBwYEAA7"
)
"""A GIF of two frames of 3 by 2 pixels."""

WEBP = {
    "lossless": "UklGRiQAAABXRUJQVlA4TBgAAAAvAkAAAM1lRP8DAoE0RDPOLM32lEQ0MAA=",
    "lossy": "UklGRi4AAABXRUJQVlA4ICIAAACQAQCdASoDAAIADMDOJagAApz7FAAA+uY1FbF8KY3dmAAA",
    "alpha": "UklGRioAAABXRUJQVlA4TB0AAAAvAUAAEIVAgKiRI1iOq263hECAIswxzhx3gxV/AQA=",
    "animation": (
        "UklGRoIAAABXRUJQVlA4WAoAAAASAAAAAQAAAgAAQU5JTQYAAAAAAAAAAABBTk1GKAAAAAAAAAAAAAEAAAIAAGQA"
        "AAJWUDhMDwAAAC8BgAAQAAjC/7aJ/kcBUwBBTk1GJgAAAAAAAAAAAAEAAAIAAGQAAABWUDhMDgAAAC8BgAAAuYzo"
        "f2D+IyIC"
    ),
}
"""Files of 3 by 2 and of 2 by 2 pixels, and one with two frames of 2 by 3 pixels."""

JXL = {
    1: "/woIQBAUNwIIBAEANABLGIsVCh0ng0+K8qcw",
    3: "/woIQBAJCAQBAIwASxiLFZJspZ7spSqfLArVFMUmyIoD4NYT9CTIA2bsMdDHtgY=",
    4: "/woIELASCBAQAIAASxiLFY6Su11+GLNohC8QBAAExoI1RycxHH2NQtj7yjo=",
}
"""Files by number of channels."""


def decoded(base64_text):
    return strings(base64.b64decode(base64_text))


def bmp(height, width, channels):
    """Return a BMP file. With a negative height, its rows go from top to bottom."""
    row = (channels * width + 3) // 4 * 4
    rows = bytes(i * 37 % 256 for i in range(row * abs(height)))
    fields = (54 + len(rows), 0, 0, 54, 40, width, height, 1, 8 * channels, 0, len(rows))
    return strings(b"BM" + struct.pack("<IHHIIiiHHIIiiII", *fields, 0, 0, 0, 0) + rows)


def pixels(d, *shape, dtype="uint8"):
    return d.of(dtype).below(256, *shape)


def jpeg(d, height, width, channels):
    return tf.io.encode_jpeg(pixels(d, height, width, channels))


def png(d, height, width, channels, dtype="uint8"):
    return tf.io.encode_png(pixels(d, height, width, channels, dtype=dtype))


BROKEN = (b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"RIFF0000WEBPVP8", b"plain")


def broken(d):
    """Return data that no codec accepts, for runs in which calls may fail."""
    return map(strings, BROKEN if d.special else ())


def jpeg_calls(d):
    yield {"contents": jpeg(d, 3, 5, 3)}
    yield {"contents": jpeg(d, 17, 1, 1)}
    for channels in (1, 3):
        yield {"contents": jpeg(d, 9, 8, 3), "channels": channels}
        yield {"contents": jpeg(d, 9, 8, 1), "channels": channels}
    for ratio in (2, 4, 8):
        yield {"contents": jpeg(d, 17, 16, 3), "ratio": ratio}
    for method in ("INTEGER_FAST", "INTEGER_ACCURATE"):
        yield {"contents": jpeg(d, 9, 8, 3), "dct_method": method, "fancy_upscaling": False}
    for contents in broken(d):
        yield {"contents": contents}


@recipe("DecodeJpeg")
def decode_jpeg(d):
    yield from jpeg_calls(d)
    yield {"contents": png(d, 2, 3, 3)}
    cut = tf.strings.substr(jpeg(d, 64, 64, 3), 0, 1800)
    yield {"contents": cut, "try_recover_truncated": True, "acceptable_fraction": 0.1}


@recipe("DecodeAndCropJpeg")
def decode_and_crop_jpeg(d):
    for call in jpeg_calls(d):
        yield call | {"crop_window": ints(0, 0, 1, 1)}
    for window in ((0, 0, 16, 24), (3, 5, 7, 1), (15, 23, 1, 1)):
        yield {"contents": jpeg(d, 16, 24, 3), "crop_window": ints(window)}


@recipe("ExtractJpegShape")
def extract_jpeg_shape(d):
    for shape in ((1, 1, 1), (3, 5, 3), (100, 2, 3)):
        yield {"contents": jpeg(d, *shape)}
    for contents in broken(d):
        yield {"contents": contents}


@recipe("DecodePng")
def decode_png(d):
    for channels in (1, 2, 3, 4):
        yield {"contents": png(d, 3, 5, channels)}
        yield {"contents": png(d, 3, 5, channels, dtype="uint16")}
    for channels in (1, 3, 4):
        yield {"contents": png(d, 5, 1, 3), "channels": channels}
    yield {"contents": jpeg(d, 2, 3, 3)}
    for contents in broken(d):
        yield {"contents": contents}


@recipe("DecodeGif")
def decode_gif(d):
    yield {"contents": strings(GIF)}
    yield {"contents": png(d, 2, 3, 3)}
    yield {"contents": jpeg(d, 2, 3, 3)}
    for contents in broken(d):
        yield {"contents": contents}


@recipe("DecodeBmp")
def decode_bmp(d):
    for height, channels in itertools.product((3, -3), (1, 3, 4)):
        yield {"contents": bmp(height, 5, channels)}
    yield {"contents": bmp(2, 2, 4), "channels": 3}
    yield {"contents": bmp(2, 2, 3), "channels": 4}
    for contents in broken(d):
        yield {"contents": contents}


def webp_calls():
    for text in WEBP.values():
        yield {"contents": decoded(text)}
    yield {"contents": decoded(WEBP["lossless"]), "channels": 3}
    yield {"contents": decoded(WEBP["alpha"]), "channels": 4}


@recipe("DecodeWebP")
def decode_webp(d):
    yield from webp_calls()
    for contents in broken(d):
        yield {"contents": contents}


@recipe("DecodeJxl")
def decode_jxl(d):
    for channels, text in JXL.items():
        yield {"contents": decoded(text)}
        yield {"contents": decoded(text), "channels": channels}
    for contents in broken(d):
        yield {"contents": contents}


@recipe("DecodeImage")
def decode_image(d):
    for contents in (
        jpeg(d, 3, 5, 3),
        png(d, 3, 5, 1),
        png(d, 3, 5, 4, dtype="uint16"),
        bmp(3, 5, 3),
        strings(GIF),
    ):
        yield {"contents": contents}
    for channels in (1, 3, 4):
        yield {"contents": png(d, 5, 3, 3), "channels": channels}
    yield {"contents": strings(GIF), "expand_animations": False}
    if d.types["dtype"] == tf.uint8 and hasattr(tf.raw_ops, "DecodeWebP"):
        yield from webp_calls()
        yield {"contents": decoded(WEBP["animation"]), "expand_animations": False}
    for contents in broken(d):
        yield {"contents": contents}


@recipe("EncodeJpeg")
def encode_jpeg(d):
    for shape in ((1, 1, 1), (3, 5, 3), (17, 9, 1)):
        yield {"image": pixels(d, *shape)}
    image = pixels(d, 9, 8, 3)
    yield {"image": image, "format": "rgb", "quality": 1, "progressive": True}
    yield {"image": pixels(d, 9, 8, 1), "format": "grayscale", "quality": 100}
    yield {"image": image, "optimize_size": True, "chroma_downsampling": False}
    yield {"image": image, "density_unit": "cm", "x_density": 1, "y_density": 65535}
    yield {"image": image, "xmp_metadata": "<x:xmpmeta/>"}


@recipe("EncodeJpegVariableQuality")
def encode_jpeg_to_quality(d):
    for shape, quality in (((1, 1, 1), 95), ((3, 5, 3), 0), ((17, 9, 3), 100)):
        yield {"images": pixels(d, *shape), "quality": ints(quality)}


@recipe("EncodePng")
def encode_png(d):
    for channels in (1, 2, 3, 4):
        yield {"image": d.T(3, 5, channels)}
    for shape in ((2, 3, 1, 1), (2, 1, 2, 1, 3, 3), (0, 3, 5, 1), (1, 1, 1)):
        yield {"image": d.T(*shape)}
    for compression in (0, 9):
        yield {"image": d.T(17, 9, 3), "compression": compression}


# ---------------------------------------------------------------------------------------------
# Resizing
# ---------------------------------------------------------------------------------------------

SCALINGS = (
    ((1, 4, 4, 3), (7, 3)),
    ((2, 3, 5, 1), (3, 5)),
    ((1, 1, 1, 2), (4, 3)),
    ((1, 5, 7, 4), (1, 1)),
    ((0, 2, 3, 3), (4, 4)),
    ((1, 1, 1024, 1), (1, 513)),
)
"""Shapes of images, and their new heights and widths."""


def scalings(d):
    return (*SCALINGS, *([((1, 100, 1000, 10), (37, 421))] if d.thorough else ()))


CENTERS = ({}, {"align_corners": True}, {"half_pixel_centers": True})


@recipe("ResizeArea")
def resize_by_area(d):
    for (shape, size), align in itertools.product(scalings(d), BOTH):
        yield {"images": d.T(*shape), "size": ints(size), "align_corners": align}


@recipe("ResizeBicubic ResizeBilinear ResizeNearestNeighbor")
def resize(d):
    for (shape, size), centers in itertools.product(scalings(d), CENTERS):
        yield {"images": d.T(*shape), "size": ints(size), **centers}


@recipe("ResizeBicubicGrad ResizeBilinearGrad")
def resize_gradient(d):
    for (shape, size), centers in itertools.product(scalings(d), CENTERS):
        batch, *_, channels = shape
        grads = d.of("float32")(batch, *size, channels)
        yield {"grads": grads, "original_image": d.T(*shape), **centers}


@recipe("ResizeNearestNeighborGrad")
def resize_to_nearest_gradient(d):
    for (shape, size), centers in itertools.product(scalings(d), CENTERS):
        batch, height, width, channels = shape
        yield {"grads": d.T(batch, *size, channels), "size": ints(height, width), **centers}


SAMPLING = [
    "lanczos1",
    "lanczos3",
    "lanczos5",
    "gaussian",
    "box",
    "triangle",
    "keyscubic",
    "mitchellcubic",
]


def translations(d):
    """Yield shape, size and the rest of calls that scale and translate images."""
    for shape, size in scalings(d):
        yield shape, size, {"scale": floats(1.5, 0.75), "translation": floats(0.0, 0.0)}
    moved = {"scale": floats(0.5, 2.0), "translation": floats(-1.5, 2.25)}
    for kernel_type, antialias in itertools.product(SAMPLING, BOTH):
        yield (1, 5, 7, 2), (4, 9), moved | {"kernel_type": kernel_type, "antialias": antialias}


@recipe("ScaleAndTranslate")
def scale_and_translate(d):
    for shape, size, rest in translations(d):
        yield {"images": d.T(*shape), "size": ints(size), **rest}


@recipe("ScaleAndTranslateGrad")
def scale_and_translate_gradient(d):
    for (batch, *sides, channels), size, rest in translations(d):
        yield {
            "grads": d.T(batch, *size, channels),
            "original_image": d.T(batch, *sides, channels),
            **rest,
        }


# ---------------------------------------------------------------------------------------------
# Crops and projections
# ---------------------------------------------------------------------------------------------

BOXES = (
    [0.0, 0.0, 1.0, 1.0],
    [0.1, 0.25, 0.7, 0.9],
    [0.8, 1.0, 0.2, 0.0],
    [-0.5, 0.3, 1.5, 0.3],
    [2.0, 2.0, 3.0, 3.0],
)
"""Boxes: whole image, inside, flipped, reaching outside, outside."""

CROPS = (
    ((1, 4, 5, 3), 5, (3, 2)),
    ((3, 5, 1, 1), 4, (1, 1)),
    ((2, 1, 1, 2), 2, (4, 3)),
    ((1, 2, 3, 1), 0, (2, 2)),
    ((1, 7, 9, 0), 1, (2, 2)),
)
"""Shape of the images, number of boxes, size of the crops."""


def crops(d):
    # One box for each image: results vary if threads add to the same image.
    more = [((5, 100, 50, 10), 5, (33, 77))] if d.thorough else []
    for shape, count, size in (*CROPS, *more):
        # Boxes are never special: the kernels turn extreme corners into indices out of bounds.
        boxes = tf.reshape(floats(BOXES[:count]), [count, 4])
        yield shape, size, {"boxes": boxes, "box_ind": ints([i % shape[0] for i in range(count)])}


indirect(
    "CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage",
    "capi:kernel",
    "the kernel is asynchronous: it ends in another thread",
)


@recipe("CropAndResize")
def crop_and_resize(d):
    for (shape, size, where), method in itertools.product(crops(d), ("bilinear", "nearest")):
        yield {"image": d.T(*shape), "crop_size": ints(size), "method": method, **where}
    shape, size, where = next(crops(d))
    for value in (-1.5, float("nan")):
        yield {
            "image": d.T(*shape), "crop_size": ints(size), "extrapolation_value": value, **where
        }  # fmt: skip


@recipe("CropAndResizeGradBoxes")
def crop_and_resize_gradient_by_boxes(d):
    for shape, size, where in crops(d):
        grads = d.of("float32")(len(where["boxes"]), *size, shape[-1])
        yield {"grads": grads, "image": d.T(*shape), "method": "bilinear", **where}


@recipe("CropAndResizeGradImage")
def crop_and_resize_gradient_by_image(d):
    for (shape, size, where), method in itertools.product(crops(d), ("bilinear", "nearest")):
        grads = d.of("float32")(len(where["boxes"]), *size, shape[-1])
        yield {"grads": grads, "image_size": ints(shape), "method": method, **where}


@recipe("ExtractGlimpse ExtractGlimpseV2")
def extract_glimpse(d):
    # Pixels outside of the image are random noise, unless they are zero.
    zero = {"uniform_noise": False, "noise": "zero"}
    for shape, size, offset in (
        ((1, 5, 7, 3), (3, 4), (0.0, 0.0)),
        ((2, 5, 7, 1), (4, 2), (0.4, -0.3)),
        ((1, 3, 3, 2), (2, 2), (-1.0, 1.0)),
        ((0, 3, 3, 2), (2, 2), (0.0, 0.0)),
        ((1, 2, 3, 1), (4, 5), (0.0, 0.0)),
    ):
        for centered, normalized in itertools.product(BOTH, BOTH):
            yield {
                "input": d.of("float32")(*shape),
                "size": ints(size),
                "offsets": tf.tile(floats([offset]), [shape[0], 1]),
                "centered": centered,
                "normalized": normalized,
                **zero,
            }
    inside = {"size": ints(1, 2), "offsets": floats([[0.0, 0.0]])}
    for noise in ({}, {"noise": "uniform"}, {"uniform_noise": False, "noise": "gaussian"}):
        yield {"input": d.of("float32")(1, 5, 7, 2), **inside, **noise}


TRANSFORMS = (
    [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]],
    [[0.0, 1.0, -1.5, -1.0, 0.5, 2.0, 0.0, 0.0], [2.0, 0.1, 0.3, 0.0, 0.7, -9.0, 0.01, -0.02]],
    [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -0.5, 0.0]],
)
"""Transforms: identity, affine, projective, and one with points at infinity."""


def projections(d):
    for interpolation, fill_mode, transforms in itertools.product(
        ("NEAREST", "BILINEAR"), ("CONSTANT", "REFLECT", "WRAP", "NEAREST"), TRANSFORMS
    ):
        yield {
            "images": d.dtype(len(transforms), 4, 5, 3),
            "transforms": floats(transforms),
            "output_shape": ints(3, 7),
            "interpolation": interpolation,
            "fill_mode": fill_mode,
        }
    for shape, size in (((0, 2, 2, 3), (2, 2)), ((3, 1, 1, 2), (1, 5)), ((1, 6, 1, 0), (2, 2))):
        yield {
            "images": d.dtype(*shape),
            "transforms": floats(TRANSFORMS[0]),
            "output_shape": ints(size),
            "interpolation": "BILINEAR",
        }


@recipe("ImageProjectiveTransformV2")
def project(d):
    yield from projections(d)


@recipe("ImageProjectiveTransformV3")
def project_and_fill(d):
    for value, call in zip(itertools.cycle((0.0, 3.0)), projections(d)):
        yield call | {"fill_value": floats(value)}


# ---------------------------------------------------------------------------------------------
# Colour
# ---------------------------------------------------------------------------------------------

PICTURES = ((1, 1, 3), (5, 7, 3), (0, 4, 3), (2, 0, 5, 3), (2, 1, 2, 1, 2, 3), (1, 1024, 3))


def pictures(d):
    return (*PICTURES, *([(10, 100, 100, 3)] if d.thorough else ()))


def adjusted(d, amount):
    """Yield calls with images and amounts, never special: a huge hue takes forever."""
    for shape, value in zip(pictures(d), itertools.cycle((0.5, -0.25, 0.0, 1.0, 2.5))):
        yield {"images": d.T(*shape), amount: floats(value)}


@recipe("AdjustContrastv2")
def adjust_contrast(d):
    yield from adjusted(d, "contrast_factor")
    for channels in (1, 5, 0):
        yield {"images": d.T(2, 3, 4, channels), "contrast_factor": d.of("float32")()}


@recipe("AdjustHue")
def adjust_hue(d):
    yield from adjusted(d, "delta")


@recipe("AdjustSaturation")
def adjust_saturation(d):
    yield from adjusted(d, "scale")


@recipe("RGBToHSV HSVToRGB")
def colour_space(d):
    for shape in ((3,), (0, 3), *pictures(d)):
        yield {"images": d.T.positive(*shape)}
    yield {"images": d.T(4, 3)}


# ---------------------------------------------------------------------------------------------
# Boxes
# ---------------------------------------------------------------------------------------------


def drawings(d):
    for shape, count in (
        ((1, 5, 7, 3), 5),
        ((2, 9, 4, 1), 2),
        ((1, 1, 1, 4), 1),
        ((2, 3, 3, 3), 0),
        ((0, 3, 3, 3), 2),
        ((1, 0, 3, 3), 2),
    ):
        boxes = tf.reshape(floats(BOXES[:count]), [1, count, 4])
        yield {"images": d.T(*shape), "boxes": tf.tile(boxes, [shape[0], 1, 1])}
    yield {"images": d.T(1, 5, 7, 3), "boxes": d.of("float32")(1, 6, 4)}


@recipe("DrawBoundingBoxes")
def draw_boxes(d):
    yield from drawings(d)


@recipe("DrawBoundingBoxesV2")
def draw_boxes_in_colours(d):
    for count, call in zip(itertools.cycle((1, 3, 0)), drawings(d)):
        yield call | {"colors": d.of("float32")(count, 4)}


def candidates(boxes, scores):
    """Yield boxes to select from, and how many of them."""
    for count, most in ((1, 1), (5, 3), (9, 0), (40, 100), (0, 3)):
        yield {"boxes": boxes(count, 4), "scores": scores(count), "max_output_size": ints(most)}


@recipe("NonMaxSuppression")
def select_boxes(d):
    for threshold in (0.0, 0.5, 1.0):
        for call in candidates(d.of("float32"), d.of("float32")):
            yield call | {"iou_threshold": threshold}


@recipe("NonMaxSuppressionV2")
def select_boxes_v2(d):
    for threshold in (0.0, 0.5, 1.0):
        for call in candidates(d.T, d.T):
            yield call | {"iou_threshold": d.T_threshold.const(threshold)}


THRESHOLDS = ((0.0, -10.0), (0.3, 0.0), (1.0, 0.5))
"""Thresholds for overlap and score."""


def above(d, make):
    """Yield candidates and thresholds, which have a dtype."""
    for overlap, score in THRESHOLDS:
        for call in candidates(d.T, d.T):
            yield call | {"iou_threshold": make(overlap), "score_threshold": make(score)}


def padded(calls):
    for pad, call in zip(itertools.cycle(BOTH), calls):
        yield call | {"pad_to_max_output_size": pad}


@recipe("NonMaxSuppressionV3")
def select_boxes_above(d):
    yield from above(d, d.T_threshold.const)


@recipe("NonMaxSuppressionV4")
def select_boxes_and_pad(d):
    yield from padded(above(d, d.T_threshold.const))


@recipe("NonMaxSuppressionV5")
def select_boxes_softly(d):
    for sigma in (0.0, 0.5):
        for call in padded(above(d, d.T.const)):
            yield call | {"soft_nms_sigma": d.T.const(sigma)}


@recipe("NonMaxSuppressionWithOverlaps")
def select_boxes_by_overlap(d):
    maker = d.of("float32")
    for (overlap, score), (count, most) in itertools.product(
        THRESHOLDS, ((1, 1), (5, 3), (9, 0), (40, 100), (0, 3))
    ):
        yield {
            "overlaps": maker(count, count),
            "scores": maker(count),
            "max_output_size": ints(most),
            "overlap_threshold": floats(overlap),
            "score_threshold": floats(score),
        }


@recipe("CombinedNonMaxSuppression")
def select_boxes_of_classes(d):
    maker = d.of("float32")
    for (batch, count, shared, classes), (overlap, score), (pad, clip) in itertools.product(
        ((1, 1, 1, 1), (2, 9, 1, 3), (1, 20, 4, 4), (0, 3, 1, 2), (2, 0, 1, 3)),
        THRESHOLDS,
        itertools.product(BOTH, BOTH),
    ):
        yield {
            "boxes": maker(batch, count, shared, 4),
            "scores": maker(batch, count, classes),
            "max_output_size_per_class": ints(3),
            "max_total_size": ints(7),
            "iou_threshold": floats(overlap),
            "score_threshold": floats(score),
            "pad_per_class": pad,
            "clip_boxes": clip,
        }


@recipe("StatelessSampleDistortedBoundingBox")
def sample_box(d):
    yield from samples(d, seed=d.Tseed.const([1, 2]))


@recipe("SampleDistortedBoundingBoxV2")
def sample_box_unseeded(d):
    yield from samples(d)


@recipe("SampleDistortedBoundingBox")
def sample_box_of_attributes(d):
    for call in samples(d):
        yield call | {"min_object_covered": float(call["min_object_covered"])}


def is_sampled(arguments, begin, size, box):
    """Tell whether a box lies within its image, in pixels, and as fractions of its sides."""
    sides = arguments["image_size"].numpy()[:2].astype(int)
    first, last = begin[:2].astype(int), (begin + size)[:2].astype(int)
    corners = np.float32([first / sides, last / sides])
    return (
        (first >= 0).all()
        and (first < last).all()
        and (last <= sides).all()
        and abs(box.reshape(2, 2) - corners).max() < 1e-6
    )


drawn("SampleDistortedBoundingBox SampleDistortedBoundingBoxV2", is_sampled, outputs=(0, 1, 2))
nondeterministic(
    "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2", "op determinism requires a seed"
)


def samples(d, **seed):
    wholes = {"image_size": d.T.const([100, 64, 3]), **seed}
    boxes = floats([BOXES[:2]])
    for covered in (0.0, 0.1, 1.0):
        yield wholes | {"bounding_boxes": boxes, "min_object_covered": floats(covered)}
    for attrs in (
        {"aspect_ratio_range": [0.5, 2.0], "area_range": [0.1, 0.2]},
        {"aspect_ratio_range": [1.0, 1.0], "max_attempts": 1},
        {"area_range": [1.0, 1.0], "use_image_if_no_bounding_boxes": True},
    ):
        yield wholes | {"bounding_boxes": boxes, "min_object_covered": floats(0.5)} | attrs
    nothing = {"bounding_boxes": tf.zeros([1, 0, 4]), "min_object_covered": floats(0.1)}
    yield wholes | nothing | {"use_image_if_no_bounding_boxes": True}
    if d.special:
        yield wholes | nothing
        yield wholes | nothing | {"bounding_boxes": d.of("float32")(1, 2, 4)}
