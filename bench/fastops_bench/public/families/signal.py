"""`tf.signal`."""

import tensorflow as tf


def beside(world):
    return {
        "planes": tf.stack([world.zm, world.zm]),
        "frames": tf.reshape(world.wave, [-1, 16]),
        "spectra": tf.signal.stft(world.wave, 16, 8),
    }


TEXT = """
tf.signal.dct(wave)
tf.signal.fft(spectrum)
tf.signal.fft2d(zm)
tf.signal.fft3d(planes)
tf.signal.fftshift(wave)
tf.signal.frame(wave, 16, 8)
tf.signal.hamming_window(16)
tf.signal.hann_window(16)
tf.signal.idct(wave)
tf.signal.ifft(spectrum)
tf.signal.ifft2d(zm)
tf.signal.ifft3d(planes)
tf.signal.ifftshift(wave)
tf.signal.inverse_mdct(frames)
tf.signal.inverse_stft(spectra, 16, 8)
tf.signal.inverse_stft_window_fn(8)(16, tf.float32)
tf.signal.irfft(spectrum)
tf.signal.irfft2d(zm)
tf.signal.irfft3d(planes)
tf.signal.kaiser_bessel_derived_window(16)
tf.signal.kaiser_window(16)
tf.signal.linear_to_mel_weight_matrix()
tf.signal.mdct(wave, 32)
tf.signal.mfccs_from_log_mel_spectrograms(waves)
tf.signal.overlap_and_add(frames, 8)
tf.signal.rfft(wave)
tf.signal.rfft2d(m)
tf.signal.rfft3d(batch)
tf.signal.stft(wave, 16, 8)
tf.signal.vorbis_window(16)
"""
