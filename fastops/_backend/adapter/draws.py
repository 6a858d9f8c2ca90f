"""Stand-ins for functions that draw random numbers: Keras draws the seed, the rest is replayed."""

import functools
import inspect

import tensorflow as tf
from keras.src.random.seed_generator import SeedGenerator, draw_seed

_DTYPES = frozenset(["float16", "bfloat16", "float32", "float64", "int32", "int64"])


class _Drawn(SeedGenerator):
    """A seed generator that always returns one seed, which has been drawn before."""

    def __init__(self, seed):
        self._seed = seed

    def next(self, ordered=True):
        """Return the seed."""
        return self._seed


def _draws(given):
    """Tell whether Keras's function draws a seed before it reads its other arguments."""
    rate, dtype = given.get("rate", 0.5), given.get("dtype")
    return (
        type(rate) is float
        and 0.0 < rate < 1.0
        and (dtype is None or (type(dtype) is str and dtype in _DTYPES))
    )


def drawing(function, replay):
    """Return the stand-in for a function that draws random numbers.

    Parameters
    ----------
    function : callable
        Keras's function. Its last parameter is the seed.
    replay : callable
        Makes a function that is recorded and replayed.
    """
    names = list(inspect.signature(function).parameters)
    last = len(names) - 1
    if names[last] != "seed":
        raise ValueError(f"{function.__name__} has no seed as its last parameter")

    def with_seed(drawn, args, kwargs):
        return function(*args, seed=_Drawn(drawn), **kwargs)

    by_number, by_seed = replay(function), replay(with_seed)

    @functools.wraps(function)
    def call(*args, **kwargs):
        seed = args[last] if len(args) == last + 1 else kwargs.get("seed")
        if type(seed) is int:
            return by_number(*args, **kwargs)
        if (seed is not None and type(seed) is not SeedGenerator) or not tf.executing_eagerly():
            return function(*args, **kwargs)
        if not _draws(kwargs | dict(zip(names, args, strict=False))):
            return function(*args, **kwargs)
        if len(args) > last + 1 or (len(args) == last + 1 and "seed" in kwargs):
            return function(*args, **kwargs)  # it raises an error, and draws no seed
        kwargs.pop("seed", None)
        return by_seed(draw_seed(seed), args[:last], kwargs)

    return call
