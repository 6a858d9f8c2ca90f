"""`tf.image`."""

import tensorflow as tf

BMP = (
    b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0\0\0\0\0\x04\0\0\0"
    b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\0"
)
GIF = (
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0"
    b"\x02\x02D\x01\0;"
)
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0"
"""Images of one pixel."""


def beside(world):
    boxes, scores = world.boxes, world.scores
    return {
        "jpeg": tf.io.encode_jpeg(world.pixels),
        "png": tf.io.encode_png(world.pixels),
        "bmp": tf.constant(BMP),
        "gif": tf.constant(GIF),
        "webp": tf.constant(WEBP),
        # This image is large because structural similarity is computed at five scales.
        "large": tf.ones([1, 180, 180, 1]) / 2,
        "large2": tf.ones([1, 180, 180, 1]) / 3,
        "gray": world.image[..., :1],
        "batched": boxes[tf.newaxis],
        "scores2": scores[tf.newaxis],
        "stacked": tf.stack([boxes, boxes]),
        "classed": boxes[tf.newaxis, :, tf.newaxis],
        "scored": scores[tf.newaxis, :, tf.newaxis],
        "row": world.m[0],
    }


TEXT = """
tf.image.adjust_brightness(image, 0.1)
tf.image.adjust_contrast(image, 2.0)
tf.image.adjust_gamma(image, 0.5)
tf.image.adjust_hue(image, 0.1)
tf.image.adjust_jpeg_quality(image, 75)
tf.image.adjust_saturation(image, 2.0)
tf.image.central_crop(image, 0.5)
tf.image.combined_non_max_suppression(classed, scored, 2, 2)
tf.image.convert_image_dtype(pixels, tf.float32)
tf.image.crop_and_resize(images, boxes, [0, 1, 0], [4, 4])
tf.image.crop_to_bounding_box(image, 1, 2, 4, 4)
tf.image.decode_and_crop_jpeg(jpeg, [1, 2, 4, 4])
tf.image.decode_bmp(bmp)
tf.image.decode_gif(gif)
tf.image.decode_image(png)
tf.image.decode_jpeg(jpeg)
tf.image.decode_png(png)
tf.image.decode_webp(webp)
tf.image.draw_bounding_boxes(images, stacked, [[1.0, 0.0, 0.0]])
tf.image.encode_jpeg(pixels)
tf.image.encode_png(pixels)
tf.image.extract_glimpse(images, [4, 4], [[0.1, 0.2], [0.3, 0.4]], noise="zero")
tf.image.extract_jpeg_shape(jpeg)
tf.image.extract_patches(images, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
tf.image.flip_left_right(image)
tf.image.flip_up_down(image)
tf.image.grayscale_to_rgb(gray)
tf.image.hsv_to_rgb(image)
tf.image.image_gradients(images)
tf.image.is_jpeg(jpeg)
tf.image.non_max_suppression(boxes, scores, 2)
tf.image.non_max_suppression_overlaps(spd, row, 2)
tf.image.non_max_suppression_padded(batched, scores2, 2, pad_to_max_output_size=True)
tf.image.non_max_suppression_with_scores(boxes, scores, 2)
tf.image.pad_to_bounding_box(image, 1, 1, 16, 16)
tf.image.per_image_standardization(image)
tf.image.psnr(image, image2, 1.0)
tf.image.random_brightness(image, 0.1)
tf.image.random_contrast(image, 0.2, 0.5)
tf.image.random_crop(image, [4, 4, 3])
tf.image.random_flip_left_right(image)
tf.image.random_flip_up_down(image)
tf.image.random_hue(image, 0.1)
tf.image.random_jpeg_quality(image, 75, 95)
tf.image.random_saturation(image, 0.2, 0.5)
tf.image.resize(image, [4, 4])
tf.image.resize_with_crop_or_pad(image, 10, 6)
tf.image.resize_with_pad(image, 10, 6)
tf.image.rgb_to_grayscale(image)
tf.image.rgb_to_hsv(image)
tf.image.rgb_to_yiq(image)
tf.image.rgb_to_yuv(image)
tf.image.rot90(image)
tf.image.sample_distorted_bounding_box([8, 8, 3], batched, seed=3)
tf.image.sobel_edges(images)
tf.image.ssim(image, image2, 1.0, filter_size=5)
tf.image.ssim_multiscale(large, large2, 1.0)
tf.image.stateless_random_brightness(image, 0.1, seed)
tf.image.stateless_random_contrast(image, 0.2, 0.5, seed)
tf.image.stateless_random_crop(image, [4, 4, 3], seed)
tf.image.stateless_random_flip_left_right(image, seed)
tf.image.stateless_random_flip_up_down(image, seed)
tf.image.stateless_random_hue(image, 0.1, seed)
tf.image.stateless_random_jpeg_quality(image, 75, 95, seed)
tf.image.stateless_random_saturation(image, 0.2, 0.5, seed)
tf.image.stateless_sample_distorted_bounding_box([8, 8, 3], batched, seed)
tf.image.total_variation(images)
tf.image.transpose(image)
tf.image.yiq_to_rgb(image)
tf.image.yuv_to_rgb(image)
"""
