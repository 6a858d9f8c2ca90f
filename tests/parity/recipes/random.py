"""Random numbers from seeds, states and generators."""

from itertools import product

import numpy as np
import tensorflow as tf

from parity.draw import ints, longs
from parity.recipes import (
    LARGE,
    MANY,
    SIZES,
    binary,
    drawn,
    mismatched,
    nondeterministic,
    recipe,
    rejected,
)

PHILOX, AUTO = 1, 3
"""Algorithms that the CPU's kernels support: a specific one, and the device's default."""


def sizes(d):
    return (*SIZES, *((LARGE,) if d.thorough else ()))


def bounds(dtype):
    """Yield ranges of an integer dtype, as pairs of the lowest value and the end."""
    return ((0, 1), (-7, 9), (3, 1000), (dtype.min, dtype.max))


# ---------------------------------------------------------------------------------------------
# From a seed
# ---------------------------------------------------------------------------------------------


@recipe("StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal")
@recipe("StatelessRandomUniformFullInt")
def of_seed(d):
    for shape in sizes(d):
        if not (0 in shape and d.Tseed.dtype.is_unsigned):
            yield {"shape": d.T.const(shape), "seed": d.Tseed(2)}


rejected(
    "StatelessRandomUniformFullInt",
    "the kernel does not support unsigned seeds, and ignores the seed only for an empty result",
    Tseed="uint32 uint64",
)


@recipe("StatelessRandomUniformInt")
def integers_of_seed(d):
    for shape, (low, end) in product(sizes(d), bounds(d.dtype.dtype)):
        yield {
            "shape": d.T.const(shape),
            "seed": d.Tseed(2),
            "minval": d.dtype.const(low),
            "maxval": d.dtype.const(end),
        }


TRUNCATED = (
    ((), (), (), (), ()),
    ((3,), (), (), (), ()),
    ((0,), (), (), (), ()),
    ((1, 1024, 1), (), (), (), ()),
    ((5, 3), (3,), (3,), (3,), (3,)),
    ((5, 3), (3,), (), (1,), ()),
    ((4, 2, 3), (2, 1), (3,), (2, 3), ()),
)
"""Shapes of the result, of the means and deviations, and of the smallest and largest values."""

MANY_TRUNCATED = ((MANY, (), (), (), ()), (MANY, (10,), (100, 1), (), (10,)))


@recipe("StatelessParameterizedTruncatedNormal")
def truncated_normal(d):
    rows = (*TRUNCATED, *(MANY_TRUNCATED if d.thorough else ()))
    for shape, means, deviations, low, high in rows:
        # Ranges around the mean and in both tails, which the kernel samples by different methods.
        for offset in (0, 4, -5):
            yield {
                "shape": d.S.const(shape),
                "seed": d.Tseed(2),
                "means": d.dtype.unit(*means),
                "stddevs": d.dtype.const(d.dtype.unit(*deviations).numpy() / 2 + 1),
                "minvals": d.dtype.const(d.dtype.unit(*low).numpy() + offset - 1),
                "maxvals": d.dtype.const(d.dtype.unit(*high).numpy() + offset + 2),
            }


BATCHES = (
    ((), ()),
    ((0,), ()),
    ((4,), ()),
    ((3,), (3,)),
    ((5, 2, 3), (2, 3)),
    ((0, 2), (2,)),
    ((1, 1024, 1), (1,)),
    ((2, 1, 3, 1, 2, 1, 2, 1), (2, 1)),
)
"""Shapes of the result, and of the parameter, which are the last dimensions of the result."""


def batches(d):
    return (*BATCHES, *(((MANY, ()), (MANY, (10,))) if d.thorough else ()))


def some_number(maker, *shape):
    """Draw nonnegative numbers, with 1 for each NaN, for which TensorFlow samples forever."""
    values = maker.positive(*shape).numpy()
    return maker.const(np.where(np.isnan(values), values.dtype.type(1), values))


@recipe("StatelessRandomGammaV2")
def gamma_of_seed(d):
    for shape, batch in batches(d):
        yield {
            "shape": d.T.const(shape),
            "seed": d.Tseed(2),
            "alpha": some_number(d.dtype, *batch),
        }
    for alpha in (0.1, 1.0, 30.0):
        yield {"shape": d.T.const([5]), "seed": d.Tseed(2), "alpha": d.dtype.const(alpha)}


def some_rate(maker, *shape):
    """Draw numbers of at most 1000, or infinite: with others, the kernel draws for too long."""
    values = some_number(maker, *shape).numpy()
    return maker.const(np.where(np.isfinite(values), np.minimum(values, 1000), values))


@recipe("StatelessRandomPoisson")
def poisson(d):
    for shape, batch in batches(d):
        yield {"shape": d.T.const(shape), "seed": d.Tseed(2), "lam": some_rate(d.Rtype, *batch)}
    for rate in (0, 1, 50):
        yield {"shape": d.T.const([5]), "seed": d.Tseed(2), "lam": d.Rtype.const(rate)}


@recipe("StatelessRandomBinomial")
def binomial(d):
    for shape, counts, probs in (
        ((), (), ()),
        ((0,), (), ()),
        ((4,), (), ()),
        ((3,), (3,), (3,)),
        ((5, 2, 3), (2, 1), (3,)),
        ((1, 1024, 1), (1,), ()),
        *(((MANY, (10,), (100, 1)),) if d.thorough else ()),
    ):
        yield {
            "shape": d.S.const(shape),
            "seed": d.Tseed(2),
            "counts": some_number(d.T, *counts),
            "probs": d.T.const(d.T.unit(*probs).numpy() / 2 + 0.5),
        }
    for count, prob in ((100, 0.5), (100, 0.9), (100, 0.01), (0, 0.5), (7, 0.0), (7, 1.0)):
        yield {
            "shape": d.S.const([5]),
            "seed": d.Tseed(2),
            "counts": d.T.const(count),
            "probs": d.T.const(prob),
        }


@recipe("StatelessMultinomial")
def multinomial(d):
    for rows, classes, samples in (
        (1, 1, 1),
        (2, 3, 4),
        (2, 3, 0),
        (0, 3, 4),
        (1, 1024, 5),
        (33, 2, 1),
        *(((1000, 100, 10),) if d.thorough else ()),
    ):
        yield {
            "logits": d.T(rows, classes),
            "num_samples": ints(samples),
            "seed": d.Tseed(2),
        }


# ---------------------------------------------------------------------------------------------
# From a key and a counter
# ---------------------------------------------------------------------------------------------


@recipe("StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg")
def key_and_counter(d):
    for _ in range(5):
        yield {"seed": d.Tseed(2)}


def state(d, alg):
    """Return the state of a generator: key, counter and algorithm."""
    words = d.of("uint64")
    return {"key": words(1), "counter": words(2), "alg": ints(alg)}


@recipe("StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2")
@recipe("StatelessRandomUniformFullIntV2")
def of_state(d):
    for shape, alg in product(sizes(d), (PHILOX, AUTO)):
        yield {"shape": d.Tshape.const(shape), **state(d, alg)}


@recipe("StatelessRandomUniformIntV2")
def integers_of_state(d):
    for shape, alg, (low, end) in product(sizes(d), (PHILOX, AUTO), bounds(d.dtype.dtype)):
        yield {
            "shape": d.Tshape.const(shape),
            **state(d, alg),
            "minval": d.dtype.const(low),
            "maxval": d.dtype.const(end),
        }


@recipe("StatelessRandomGammaV3")
def gamma_of_state(d):
    for (shape, batch), alg in product(batches(d), (PHILOX, AUTO)):
        yield {
            "shape": d.shape_dtype.const(shape),
            **state(d, alg),
            "alpha": some_number(d.dtype, *batch),
        }
    for alpha in (0.1, 1.0, 30.0):
        yield {
            "shape": d.shape_dtype.const([5]),
            **state(d, PHILOX),
            "alpha": d.dtype.const(alpha),
        }


@recipe("StatelessShuffle")
def shuffle(d):
    for shape in ((0,), (1,), (7,), (5, 3), (3, 0), (3, 2, 2), (1, 1024, 1), (1024, 1)):
        for alg in (PHILOX, AUTO):
            yield {"value": d.T(*shape), **state(d, alg)}
    if d.thorough:
        yield {"value": d.T(*LARGE), **state(d, PHILOX)}


# ---------------------------------------------------------------------------------------------
# From a generator, whose state is a variable
# ---------------------------------------------------------------------------------------------


def generator(d):
    """Make the variable of a generator, which has two words of a counter and a key."""
    return d.variable(d.of("int64")(3))


@recipe("RngReadAndSkip")
def read_and_skip(d):
    for alg, delta in product((PHILOX, AUTO), (0, 1, 256, 2**63, 2**64 - 1)):
        yield {
            "resource": generator(d),
            "alg": ints(alg),
            "delta": d.of("uint64").const(delta),
        }


@recipe("RngSkip")
def skip(d):
    for alg, delta in product((PHILOX, AUTO), (0, 1, 256, -1, 2**63 - 1)):
        yield {"resource": generator(d), "algorithm": longs(alg), "delta": longs(delta)}


def no_shape(types):
    return types["shape_dtype"] not in (tf.int32, tf.int64)


def shapes(d):
    return () if no_shape(d.types) else sizes(d)


@recipe("StatefulUniform StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniformFullInt")
def of_generator(d):
    for shape, alg in product(shapes(d), (PHILOX, AUTO)):
        yield {
            "resource": generator(d),
            "algorithm": longs(alg),
            "shape": d.shape_dtype.const(shape),
        }


@recipe("StatefulUniformInt")
def integers_of_generator(d):
    for shape, (low, end) in product(shapes(d), bounds(d.dtype.dtype)):
        yield {
            "resource": generator(d),
            "algorithm": longs(AUTO),
            "shape": d.shape_dtype.const(shape),
            "minval": d.dtype.const(low),
            "maxval": d.dtype.const(end),
        }


mismatched(
    "StatefulUniform StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniformFullInt "
    "StatefulUniformInt",
    "a shape is int32 or int64, though the attribute allows more",
    no_shape,
)


# ---------------------------------------------------------------------------------------------
# Without a seed
# ---------------------------------------------------------------------------------------------


@recipe("RandomUniform RandomStandardNormal TruncatedNormal")
def unseeded(d):
    for shape in sizes(d):
        yield {"shape": d.T.const(shape)}


drawn("RandomUniform", lambda _, values: ((values >= 0) & (values < 1)).all())
drawn("RandomStandardNormal", lambda _, values: np.isfinite(values).all())
drawn("TruncatedNormal", lambda _, values: (abs(values) <= 2).all())


@recipe("RandomUniformInt")
def unseeded_integers(d):
    for shape, (low, end) in product(sizes(d), bounds(d.Tout.dtype)):
        yield {
            "shape": d.T.const(shape),
            "minval": d.Tout.const(low),
            "maxval": d.Tout.const(end),
        }


def within(arguments, values):
    return ((values >= arguments["minval"]) & (values < arguments["maxval"])).numpy().all()


drawn("RandomUniformInt", within)


@recipe("ParameterizedTruncatedNormal")
def unseeded_truncated_normal(d):
    for shape, *parameters in (
        ((3,), (), (), (), ()),
        ((0,), (), (), (), ()),
        ((5, 3), (5,), (5,), (5,), (5,)),
        ((4, 2, 3), (4,), (), (1,), ()),
        ((1, 1024, 1), (1,), (1,), (), ()),
        *((((*MANY,), (), (), (), ()),) if d.thorough else ()),
    ):
        means, deviations, low, high = (d.dtype.unit(*part).numpy() for part in parameters)
        for offset in (0, 4, -5):  # offsets as above
            yield {
                "shape": d.T.const(shape),
                "means": d.dtype.const(means),
                "stdevs": d.dtype.const(deviations / 2 + 1),
                "minvals": d.dtype.const(low + offset - 1),
                "maxvals": d.dtype.const(high + offset + 2),
            }


def between(arguments, values):
    """Tell whether values are between bounds for each first index, except for rounding."""
    low, high = (
        np.asarray(arguments[name], np.float64).reshape(-1, *[1] * (values.ndim - 1))
        for name in ("minvals", "maxvals")
    )
    slack = 0.1 if values.dtype.itemsize == 2 else 1e-4
    values = values.astype(np.float64)
    return ((values >= low - slack) & (values <= high + slack)).all()


drawn("ParameterizedTruncatedNormal", between)


PER_PARAMETER = (((), ()), ((0,), ()), ((4,), ()), ((3,), (2, 3)), ((1024,), (1,)))
"""Shapes of the numbers drawn for each parameter, and of the parameters."""


def not_negative(_, values):
    return not (values < 0).any()


@recipe("RandomGamma")
def unseeded_gamma(d):
    for shape, batch in PER_PARAMETER:
        yield {"shape": d.S.const(shape), "alpha": some_number(d.T, *batch)}
    for alpha in (0.1, 1.0, 30.0):
        yield {"shape": d.S.const([5]), "alpha": d.T.const(alpha)}


drawn("RandomGamma", not_negative)


@recipe("RandomPoissonV2")
def unseeded_poisson(d):
    for shape, batch in PER_PARAMETER:
        yield {"shape": d.S.const(shape), "rate": some_rate(d.R, *batch)}
    for rate in (0, 1, 50):
        yield {"shape": d.S.const([5]), "rate": d.R.const(rate)}


drawn("RandomPoissonV2", not_negative)


@recipe("RandomShuffle")
def unseeded_shuffle(d):
    for shape in ((), (0,), (1,), (7,), (5, 3), (3, 0), (3, 2, 2), (1, 1024, 1), (1024, 1)):
        yield {"value": d.T(*shape)}
    if d.thorough:
        yield {"value": d.T(*LARGE)}


def rows(array):
    """Return the rows of an array, sorted."""
    return sorted(
        row.tobytes()
        if isinstance(row, (np.ndarray, np.generic)) and row.dtype != object
        else repr(row)
        for row in np.atleast_1d(np.asarray(array))
    )


drawn("RandomShuffle", lambda arguments, values: True, arrange=rows)


@recipe("Multinomial")
def unseeded_classes(d):
    for batch, classes, samples in (
        (1, 1, 1),
        (2, 3, 4),
        (2, 3, 0),
        (0, 3, 4),
        (1, 1024, 5),
        (33, 2, 1),
        *(((1000, 100, 10),) if d.thorough else ()),
    ):
        yield {"logits": d.T.ordinary(batch, classes), "num_samples": ints(samples)}


def classes(arguments, values):
    return ((values >= 0) & (values < arguments["logits"].shape[1])).all()


drawn("Multinomial", classes)


@recipe("NonDeterministicInts")
def unseeded_words(d):
    for shape in shapes(d):
        yield {"shape": d.shape_dtype.const(shape)}


drawn("NonDeterministicInts", lambda *_: True)
mismatched(
    "NonDeterministicInts", "a shape is int32 or int64, though the attribute allows more", no_shape
)

CANDIDATES = (
    ([[1], [2]], 8, True),
    ([[0, 9]], 5, False),
    ([[3]], 10, True),
    (np.zeros([0, 2]), 3, False),
)
"""True classes, the number of sampled candidates out of 10, and whether they are unique."""


def candidates(extra=None):
    for true, sampled, unique in CANDIDATES:
        yield {
            "true_classes": longs(true),
            "num_true": np.shape(true)[1],
            "num_sampled": sampled,
            "unique": unique,
            **(extra or {}),
        }


@recipe("UniformCandidateSampler LogUniformCandidateSampler")
def unseeded_candidates(d):
    yield from candidates({"range_max": 10})


@recipe("FixedUnigramCandidateSampler")
def unseeded_unigrams(d):
    for weights in ([1.0] * 10, [float(i + 1) for i in range(10)]):
        yield from candidates({"range_max": 10, "unigrams": weights})
    for call in candidates({"range_max": 10, "num_reserved_ids": 2, "unigrams": [0.5] * 8}):
        if call["num_sampled"] <= 8:  # there are no more candidates
            yield call


@recipe("AllCandidateSampler")
def all_candidates(d):
    for call in candidates():
        yield call | {"num_sampled": 10}


def sampled(arguments, candidates, of_true, of_sampled):
    """Tell whether candidates are in range, and unique if required."""
    repeated = len(set(candidates.tolist())) < len(candidates)
    return (
        ((candidates >= 0) & (candidates < 10)).all()
        and not (repeated and arguments["unique"])
        and (of_true >= 0).all()
        and (of_sampled > 0).all()
    )


drawn(
    "UniformCandidateSampler LogUniformCandidateSampler FixedUnigramCandidateSampler",
    sampled,
    outputs=(0, 1, 2),
)

nondeterministic(
    "RandomUniform RandomStandardNormal TruncatedNormal RandomUniformInt RandomGamma Multinomial "
    "ParameterizedTruncatedNormal RandomPoissonV2 RandomShuffle UniformCandidateSampler "
    "LogUniformCandidateSampler FixedUnigramCandidateSampler AllCandidateSampler",
    "op determinism requires a seed",
)

# ---------------------------------------------------------------------------------------------
# Others
# ---------------------------------------------------------------------------------------------


@recipe("StatelessRandomGetAlg")
def algorithm(d):
    yield {}


@recipe("RandomIndexShuffle")
def shuffled_index(d):
    for indices, seeds, ends in (((), (), ()), ((5,), (), ()), ((5,), (5,), (5,)), ((), (4,), ())):
        for rounds in (4, 8):
            yield {
                "index": d.dtype.below(10, *indices),
                "seed": d.Tseed(*seeds, 3),
                "max_index": d.dtype.const(d.dtype.below(100, *ends).numpy() + 9),
                "rounds": rounds,
            }


binary("RandomGammaGrad", "alpha sample", "positive")
