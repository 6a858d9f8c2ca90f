"""`tf.image`."""

import tensorflow as tf

noise = tf.random.stateless_uniform([16, 16, 3], [1, 2], maxval=256, dtype=tf.int32)
photo = tf.cast(noise, tf.uint8)
jpeg, png = tf.io.encode_jpeg(photo), tf.io.encode_png(photo)
bmp = tf.constant(
    b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0\0\0\0\0\x04\0\0\0"
    b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\0"
)
gif = tf.constant(
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0"
    b"\x02\x02D\x01\0;"
)
webp = tf.constant(
    b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0"
)
large, large2 = tf.ones([1, 180, 180, 1]) / 2, tf.ones([1, 180, 180, 1]) / 3

TEXT = """
tf.image.adjust_brightness(image, 0.1)
tf.image.adjust_contrast(image, 2.0)
tf.image.adjust_gamma(image, 0.5)
tf.image.adjust_hue(image, 0.1)
tf.image.adjust_jpeg_quality(image, 75)
tf.image.adjust_saturation(image, 2.0)
tf.image.central_crop(image, 0.5)
tf.image.combined_non_max_suppression(boxes[tf.newaxis, :, tf.newaxis], scores[tf.newaxis, :, \
tf.newaxis], 2, 2)
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
tf.image.draw_bounding_boxes(images, tf.stack([boxes, boxes]), [[1.0, 0.0, 0.0]])
tf.image.encode_jpeg(pixels)
tf.image.encode_png(pixels)
tf.image.extract_glimpse(images, [4, 4], [[0.1, 0.2], [0.3, 0.4]], noise="zero")
tf.image.extract_jpeg_shape(jpeg)
tf.image.extract_patches(images, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
tf.image.flip_left_right(image)
tf.image.flip_up_down(image)
tf.image.grayscale_to_rgb(image[..., :1])
tf.image.hsv_to_rgb(image)
tf.image.image_gradients(images)
tf.image.is_jpeg(jpeg)
tf.image.non_max_suppression(boxes, scores, 2)
tf.image.non_max_suppression_overlaps(spd, m[0], 2)
tf.image.non_max_suppression_padded(boxes[tf.newaxis], scores[tf.newaxis], 2, \
pad_to_max_output_size=True)
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
tf.image.sample_distorted_bounding_box([8, 8, 3], boxes[tf.newaxis], seed=3)
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
tf.image.stateless_sample_distorted_bounding_box([8, 8, 3], boxes[tf.newaxis], seed)
tf.image.total_variation(images)
tf.image.transpose(image)
tf.image.yiq_to_rgb(image)
tf.image.yuv_to_rgb(image)
"""
