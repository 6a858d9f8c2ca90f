"""Signals: Fourier transforms, sound."""

import itertools

import tensorflow as tf

from parity.draw import ints, strings
from parity.recipes import mismatched, not_differentiated, recipe

# ---------------------------------------------------------------------------------------------
# Fourier transforms
# ---------------------------------------------------------------------------------------------

SIDES = {
    1: ((8,), (1,), (2,), (3,), (15,), (31,), (127,), (0,)),
    2: ((4, 8), (1, 1), (5, 3), (1, 17), (7, 2), (0, 3), (3, 0)),
    3: ((2, 4, 8), (1, 1, 1), (3, 5, 7), (2, 1, 11), (2, 0, 3)),
}
"""Sizes of the innermost dimensions: powers of 2, odd, prime, zero."""

LARGE_SIDES = {1: ((1009,), (4096,)), 2: ((101, 64),), 3: ((17, 32, 9),)}

BATCHES = ((), (3,), (0,), (2, 1, 1, 3, 1))


def transformed(d, rank):
    """Yield batch dimensions and inner dimensions."""
    yield from itertools.product(BATCHES, SIDES[rank])
    if d.thorough:
        yield from itertools.product(((), (10,)), LARGE_SIDES[rank])


def transform_complex(rank):
    def calls(d):
        for batch, sides in transformed(d, rank):
            yield {"input": d.Tcomplex(*batch, *sides)}

    return calls


def transform_real(rank):
    def calls(d):
        for batch, sides in transformed(d, rank):
            yield {"input": d.Treal(*batch, *sides), "fft_length": ints(list(sides))}
            # Only transforms that are not empty get lengths: kernels abort on a length of 0.
            if 0 not in sides:
                cut = [max(side - 1, 1) for side in sides]
                yield {"input": d.Treal(*batch, *sides), "fft_length": ints(cut)}

    return calls


def transform_to_real(rank):
    def calls(d):
        for batch, (*outer, inner) in transformed(d, rank):
            for length in (2 * inner - 2, 2 * inner - 1, inner):
                # Lengths are positive: kernels abort on a length of 0.
                if length > 0 and 0 not in outer:
                    lengths = ints([*outer, length])
                    yield {"input": d.Tcomplex(*batch, *outer, inner), "fft_length": lengths}
            if 0 in (*outer, inner):
                lengths = ints([*outer, inner])
                yield {"input": d.Tcomplex(*batch, *outer, inner), "fft_length": lengths}

    return calls


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    recipe(f"FFT{_suffix} IFFT{_suffix}")(transform_complex(_rank))
    recipe(f"RFFT{_suffix}")(transform_real(_rank))
    recipe(f"IRFFT{_suffix}")(transform_to_real(_rank))

mismatched(
    "RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D",
    "Tcomplex is the complex dtype of the precision of Treal",
    lambda types: types["Tcomplex"].real_dtype != types["Treal"],
)

not_differentiated(
    "RFFT RFFT2D",
    "the gradient makes an inverse transform, which aborts if it is empty",
    lambda arguments: 0 in arguments["input"].shape,
)

# ---------------------------------------------------------------------------------------------
# Sound
# ---------------------------------------------------------------------------------------------


@recipe("AudioSpectrogram")
def spectrogram(d):
    sound = d.of("float32")
    for shape, window_size, stride in (
        ((9, 1), 4, 2),
        ((17, 2), 5, 3),
        ((33, 3), 2, 7),
        ((4, 1), 4, 1),
        ((3, 2), 8, 2),
        ((0, 2), 4, 2),
        ((9, 0), 4, 2),
        *([((16000, 2), 400, 160)] if d.thorough else ()),
    ):
        for squared in (False, True):
            yield {
                "input": sound(*shape),
                "window_size": window_size,
                "stride": stride,
                "magnitude_squared": squared,
            }


@recipe("Mfcc")
def mel_cepstrum(d):
    # There is a bin for each frequency up to the limit, which is at most half the rate.
    for shape, rate, attrs in (
        ((1, 1, 129), 8000, {}),
        ((2, 3, 257), 16000, {}),
        ((1, 2, 129), 16000, {"upper_frequency_limit": 8000.0, "lower_frequency_limit": 0.0}),
        ((1, 2, 65), 8000, {"filterbank_channel_count": 10, "dct_coefficient_count": 10}),
        ((3, 1, 65), 8000, {"filterbank_channel_count": 5, "dct_coefficient_count": 1}),
        ((0, 3, 129), 8000, {}),
        ((2, 0, 129), 8000, {}),
    ):
        spectrum = d.of("float32").positive(*shape)
        yield {"spectrogram": spectrum, "sample_rate": ints(rate), **attrs}


SOUNDS = ((1, 1), (17, 2), (5, 3), (0, 2))
"""Numbers of samples and of channels."""


@recipe("EncodeWav")
def encode_wav(d):
    for shape, rate in itertools.product(SOUNDS, (1, 44100)):
        yield {"audio": d.of("float32")(*shape), "sample_rate": ints(rate)}


@recipe("DecodeWav")
def decode_wav(d):
    for shape in SOUNDS:
        contents = tf.audio.encode_wav(d.of("float32").unit(*shape), 8000)
        yield {"contents": contents}
        for channels, samples in ((1, -1), (5, -1), (-1, 3), (2, 40)):
            yield {
                "contents": contents,
                "desired_channels": channels,
                "desired_samples": samples,
            }
    for broken in (b"", b"RIFF", b"RIFF\x24\0\0\0WAVEfmt ") if d.special else ():
        yield {"contents": strings(broken)}
