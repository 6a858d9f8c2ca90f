"""`tf.bitwise` and `tf.quantization`."""

import tensorflow as tf


def beside(world):
    return {
        "q1": tf.quantization.quantize([1.0, 2.0], 0.0, 3.0, tf.quint8).output,
        "q2": tf.quantization.quantize([2.0, 0.5], 0.0, 3.0, tf.quint8).output,
        "low": world.m[0] - 9.0,
        "high": world.m[0] + 9.0,
    }


TEXT = """
tf.bitwise.bitwise_and(i, j)
tf.bitwise.bitwise_or(i, j)
tf.bitwise.bitwise_xor(i, j)
tf.bitwise.invert(i)
tf.bitwise.left_shift(i, j)
tf.bitwise.right_shift(i, j)
tf.quantization.dequantize(q1, 0.0, 3.0)
tf.quantization.fake_quant_with_min_max_args(t)
tf.quantization.fake_quant_with_min_max_args_gradient(t, x)
tf.quantization.fake_quant_with_min_max_vars(t, -1.0, 1.0)
tf.quantization.fake_quant_with_min_max_vars_gradient(t, x, -1.0, 1.0)
tf.quantization.fake_quant_with_min_max_vars_per_channel(m, low, high)
tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient(m, n, low, high)
tf.quantization.quantize(t, -3.0, 3.0, tf.quint8)
tf.quantization.quantize_and_dequantize(t, -3.0, 3.0)
tf.quantization.quantize_and_dequantize_v2(t, -3.0, 3.0)
tf.quantization.quantized_concat(0, [q1, q2], [0.0, 0.0], [3.0, 3.0])
"""
