"""Decoders of sequences, partitions, uniform quantization, and ops of no family."""

from itertools import product

import numpy as np
import tensorflow as tf

from parity.draw import floats, ints, longs
from parity.recipes import LARGE, SIZES, drawn, nondeterministic, recipe, unstable

BOTH = (False, True)

# ---------------------------------------------------------------------------------------------
# Connectionist temporal classification
# ---------------------------------------------------------------------------------------------

SEQUENCES = (
    ((5, 1, 4), [5]),
    ((5, 3, 4), [5, 2, 0]),
    ((1, 2, 3), [1, 1]),
    ((17, 2, 1), [16, 17]),
)
"""Numbers of steps, batch size, classes, and the length of each sequence of the batch."""

LONG_SEQUENCES = (((200, 9, 30), [200] * 8 + [13]),)


def sequences(d):
    return (*SEQUENCES, *(LONG_SEQUENCES if d.thorough else ()))


@recipe("CTCGreedyDecoder")
def greedy_decoder(d):
    for (shape, lengths), merge, blank in product(sequences(d), BOTH, (-1, 0)):
        yield {
            "inputs": d.T(*shape),
            "sequence_length": ints(lengths),
            "merge_repeated": merge,
            "blank_index": blank,
        }


@recipe("CTCBeamSearchDecoder")
def beam_search_decoder(d):
    for (shape, lengths), merge, (width, paths) in product(
        sequences(d)[:2], BOTH, ((1, 1), (8, 1), (8, 2))
    ):
        yield {
            "inputs": d.T.ordinary(*shape),  # beams are sorted, and NaN has no order
            "sequence_length": ints(np.maximum(lengths, 2)),
            "beam_width": width,
            "top_paths": paths,
            "merge_repeated": merge,
        }


@recipe("CTCLoss")
def temporal_loss(d):
    for (shape, lengths, indices, labels), collapse, merge, ignore in product(
        (
            ((5, 1, 4), [5], [[0, 0], [0, 1]], [2, 0]),
            ((5, 3, 4), [5, 4, 3], [[0, 0], [0, 1], [1, 0], [2, 0]], [1, 1, 0, 2]),
            ((6, 2, 3), [6, 6], [[0, 0], [1, 0], [1, 1]], [1, 0, 0]),
            *([((200, 9, 30), [200] * 9, [[i, 0] for i in range(9)], range(9))] * d.thorough),
        ),
        BOTH,
        BOTH,
        BOTH,
    ):
        yield {
            "inputs": d.T(*shape),
            "labels_indices": longs(indices),
            "labels_values": ints(labels),
            "sequence_length": ints(lengths),
            "preprocess_collapse_repeated": collapse,
            "ctc_merge_repeated": merge,
            "ignore_longer_outputs_than_inputs": ignore,
        }
    yield {
        "inputs": d.T(1, 1, 4),
        "labels_indices": longs([[0, 0], [0, 1]]),
        "labels_values": ints([2, 0]),
        "sequence_length": ints([1]),
        "ignore_longer_outputs_than_inputs": True,
    }


# ---------------------------------------------------------------------------------------------
# Partitions
# ---------------------------------------------------------------------------------------------


@recipe("DynamicPartition")
def partition(d):
    for shape, partitions, count in (
        ((), 1, 2),
        ((4,), [0, 2, 0, 1], 3),
        ((4,), [0, 0, 0, 0], 1),
        ((0,), [], 2),
        ((4, 3), [1, 0, 1, 3], 4),
        ((4, 0), [1, 0, 1, 3], 4),
        ((2, 3), [[0, 1, 0], [1, 1, 2]], 3),
        ((2, 3, 1, 2, 1, 3), [[0, 1, 0], [1, 1, 2]], 3),
        *([(LARGE, [i * 7 % 5 for i in range(100)], 5)] if d.thorough else ()),
    ):
        yield {
            "data": d.T(*shape),
            "partitions": ints(partitions),
            "num_partitions": count,
        }


STITCHES = (
    ([0], ()),
    ([[0, 1, 2]], ()),
    ([[2, 0], [1]], ()),
    ([1, [[4, 0], [2, 3]]], (3,)),
    ([[], [0]], (2,)),
    ([[1, 0], []], (0,)),
    ([[]], (2, 3)),
    ([[0, 2], 1, [[3]]], (2, 1, 3)),
)
"""The indices of the rows of each tensor, and the shape of a row. Rows without a source are
undefined."""


def stitches(d, *more):
    large = ([range(0, 100, 2), range(1, 100, 2)], LARGE[1:])
    for places, shape in (*STITCHES, *more, *([large] if d.thorough else ())):
        indices = [ints(place) for place in places]
        yield {
            "indices": indices,
            "data": [d.T(*place.shape, *shape) for place in indices],
        }


@recipe("DynamicStitch")
def stitch(d):
    yield from stitches(d, ([[0, 1], [1, 0, 1]], (2,)))


@recipe("ParallelDynamicStitch")
def parallel_stitch(d):
    yield from stitches(d)


# ---------------------------------------------------------------------------------------------
# Uniform quantization
# ---------------------------------------------------------------------------------------------

BOUNDS = {
    tf.qint8: (-128, 127),
    tf.quint8: (0, 255),
    tf.qint32: (-(2**31), 2**31 - 1),
}

CHANNELS = (
    ((), -1),
    ((5, 7), -1),
    ((2, 0, 3), -1),
    ((4,), 0),
    ((2, 3, 4), 1),
    ((2, 3, 4), 2),
    ((0, 3), 1),
)
"""Shapes, and the axis of the channels, each with its own scale; -1: one scale for all."""


def scales(d, shape, axis):
    """Return scales and zero points of channels."""
    channels = () if axis == -1 else (shape[axis],)
    scale = floats(d.generator().uniform(0.02, 1.5, channels))
    return scale, d.of("int32").below(9, *channels)


@recipe("UniformQuantize")
def uniform_quantize(d):
    low, high = BOUNDS[d.Tout.dtype]
    for (shape, axis), bounds in product(CHANNELS, ((low, high), (low + 1, high), (3, 5))):
        scale, zero = scales(d, shape, axis)
        yield {
            "input": d.Tin(*shape),
            "scales": scale,
            "zero_points": zero,
            "quantization_axis": axis,
            "quantization_min_val": bounds[0],
            "quantization_max_val": bounds[1],
        }


@recipe("UniformDequantize")
def uniform_dequantize(d):
    low, high = BOUNDS[d.Tin.dtype]
    for shape, axis in CHANNELS:
        scale, zero = scales(d, shape, axis)
        yield {
            "input": d.Tin(*shape),
            "scales": scale,
            "zero_points": zero,
            "quantization_axis": axis,
            "quantization_min_val": low,
            "quantization_max_val": high,
        }


@recipe("UniformRequantize")
def uniform_requantize(d):
    low, high = BOUNDS[d.Tin.dtype]
    out_low, out_high = BOUNDS[d.Tout.dtype]
    for shape, axis in CHANNELS:
        for one, other in sorted({(-1, -1), (axis, -1), (-1, axis), (axis, axis)}):
            scale, zero = scales(d, shape, one)
            out_scale, out_zero = scales(d, shape, other)
            yield {
                "input": d.Tin(*shape),
                "input_scales": scale,
                "input_zero_points": zero,
                "output_scales": out_scale,
                "output_zero_points": out_zero,
                "input_quantization_axis": one,
                "input_quantization_min_val": low,
                "input_quantization_max_val": high,
                "output_quantization_axis": other,
                "output_quantization_min_val": out_low,
                "output_quantization_max_val": out_high,
            }


# ---------------------------------------------------------------------------------------------
# Others
# ---------------------------------------------------------------------------------------------


@recipe("ComputeAccidentalHits")
def accidental_hits(d):
    for batch, num_true, sampled in ((3, 2, 5), (1, 1, 1), (0, 2, 3), (2, 3, 0), (17, 4, 9)):
        yield {
            "true_classes": d.of("int64").below(7, batch, num_true),
            "sampled_candidates": d.of("int64").below(7, sampled),
            "num_true": num_true,
            "seed": 3,
            "seed2": 4,
        }


@recipe("StochasticCastToInt")
def stochastic_cast(d):
    seed = d.of("uint64")
    shapes = (*SIZES, *((LARGE,) if d.thorough else ()))
    for shape, alg in (*zip(shapes, [1] * len(shapes), strict=True), ((5, 7), 3)):
        yield {
            "input": d.Tin(*shape),
            "key": seed.below(2**40, 1),
            "counter": seed.below(2**40, 2),
            "alg": ints(alg),
        }


@recipe("ToBool")
def to_bool(d):
    scalars = tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.int64, tf.bool
    for shape in ((0,), (1,), (2, 0), (2, 3)):
        yield {"input": d.T(*shape)}
    if d.special or d.T.dtype in (*scalars, tf.string):
        for _ in range(3):
            yield {"input": d.T()}


@recipe("SdcaFprint")
def fingerprint(d):
    for shape in ((0,), (1,), (23,)):
        yield {"input": d.of("string")(*shape)}


@recipe("Fact")
def fact(d):
    yield {}


unstable("Fact", "the clock determines the result", undefined=(0,))


@recipe("Timestamp")
def timestamp(d):
    yield {}


drawn("Timestamp", lambda _, seconds: seconds > 0)
nondeterministic("Timestamp", "TensorFlow rejects reading the clock under op determinism")


@recipe("DeviceIndex")
def device_index(d):
    for names in (["CPU"], ["GPU", "CPU"], ["GPU"], ["TPU", "GPU"]):
        yield {"device_names": names}


@recipe("Assert")
def assertion(d):
    strings, numbers = d.of("string"), d.of("float32")
    for holds in (True, False) if d.special else (True,):
        for data in (
            [strings(3)],
            [numbers(2, 3), numbers(), strings(), longs(5)],
            [ints([]), numbers(1024)],
        ):
            for summarize in (3, 1, -1):
                yield {"condition": tf.constant(holds), "data": data, "summarize": summarize}
