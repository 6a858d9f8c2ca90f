"""Draw the tensors of recipes: reproducible values of every dtype."""

import math

import ml_dtypes
import numpy as np
import tensorflow as tf

PLAIN, SPECIAL = "plain", "special"
"""Kinds of values: "plain" are ordinary values, "special" are those at the edges of a dtype.

Special values are NaN, infinities, zeros of both signs, denormals and the largest numbers; the
smallest and largest integers; strings that are empty, binary, or not UTF-8.
"""

WORDS = (b"a", b"bc", b"1.5", b"word", b"\xc3\xbc", b"two words", b"", b"-7")
ODD_WORDS = (b"", b"\0", b"a\0b", b"\xff\xfe", b" ", b"x" * 300, "🙂".encode(), b"nan")


class Draw:
    """The source of tensors for one run of a recipe.

    Parameters
    ----------
    types : dict of str to tf.DType
        The type attributes of the op, for this run.
    mode : {"plain", "special"}
        The kind of values.
    thorough : bool
        Whether a recipe may also yield its large and slow calls.

    Attributes
    ----------
    variables : list of tf.Variable
        The variables that the recipe has made. Their values after a call are compared, too.
    tables : list of tf.lookup.experimental.MutableHashTable
        The tables that the recipe has made. Their content after a call is compared, too.
    queues : list of tf.queue.QueueBase
        The queues that the recipe has made, which have to stay alive.

    Notes
    -----
    ``d.T`` is the `Maker` of tensors of the type attribute ``T``. Each tensor has different values,
    and two runs of a recipe draw the same values.
    """

    def __init__(self, types, mode=PLAIN, thorough=False):
        self.types = types
        self.mode = mode
        self.thorough = thorough
        self.variables = []
        self.tables = []
        self.queues = []
        self._drawn = 0

    def __getattr__(self, attr):
        if attr not in self.types:
            raise AttributeError(f"{attr!r} is not a type attribute, as {', '.join(self.types)}")
        return Maker(self, self.types[attr])

    @property
    def special(self):
        """Whether values are special. Then, a recipe may leave out calls that make no sense."""
        return self.mode == SPECIAL

    def of(self, dtype):
        """Return the `Maker` of a fixed dtype."""
        return Maker(self, tf.as_dtype(dtype))

    def variable(self, value):
        """Make a variable with a value, and return its handle."""
        self.variables.append(tf.Variable(value))
        return self.variables[-1].handle

    def table(self, keys, values):
        """Make a hash table of two vectors, keys and values, and return its handle."""
        table = tf.lookup.experimental.MutableHashTable(
            keys.dtype, values.dtype, tf.zeros(values.shape[1:], values.dtype)
        )
        table.insert(keys, values)
        self.tables.append(table)
        return table.resource_handle

    def generator(self):
        """Return a new random generator. Each call gets another one, each run the same ones."""
        self._drawn += 1
        return np.random.default_rng(self._drawn)


class Maker:
    """Makes tensors of one dtype."""

    def __init__(self, draw, dtype):
        self._draw = draw
        self.dtype = dtype

    def __call__(self, *shape):
        """Draw any values: floats around 0, integers from -9 to 9, booleans, words."""
        if self._draw.special:
            return self._specials(shape)
        return self._any(shape)

    def positive(self, *shape):
        """Draw floats from 1 to 3 or integers from 1 to 7; absolute values of special ones."""
        if self._draw.special:
            values = self._specials(shape)
            return values if self.dtype.is_bool else self.const(np.abs(values.numpy()))
        generator = self._draw.generator()
        if self.dtype.is_integer or self.dtype.is_quantized:
            return self.const(generator.integers(1, min(7, self._largest()) + 1, shape))
        return self.const(1 + 2 * generator.random(shape))

    def nonzero(self, *shape):
        """Draw any values, with 1 for each 0, so that integers can be divided by them."""
        values = self(*shape).numpy()
        return self.const(np.where(values == 0, values.dtype.type(1), values))

    def unit(self, *shape):
        """Draw floats from -0.9 to 0.9, in both modes."""
        return self.const(self._draw.generator().uniform(-0.9, 0.9, shape))

    def below(self, limit, *shape):
        """Draw whole numbers from 0 to less than `limit`, in both modes."""
        return self.const(self._draw.generator().integers(0, limit, shape))

    def ordinary(self, *shape):
        """Draw plain values, in both modes."""
        return self._any(shape)

    def const(self, values):
        """Make a tensor of given values."""
        return constant(values, self.dtype)

    def _largest(self):
        return int(self.dtype.max) if self.dtype.is_integer else 7

    def _any(self, shape):
        generator, dtype = self._draw.generator(), self.dtype
        if dtype.is_bool:
            return self.const(generator.random(shape) < 0.5)
        if dtype == tf.string:
            return self.const(_pick(WORDS, shape, generator))
        if dtype.is_quantized:
            return self.const(generator.integers(0, 8, shape))
        if dtype.is_integer:
            low = -min(9, self._largest()) if dtype.min < 0 else 0
            return self.const(generator.integers(low, min(9, self._largest()) + 1, shape))
        if dtype.is_complex:
            return self.const(generator.normal(size=shape) + 1j * generator.normal(size=shape))
        return self.const(generator.normal(size=shape))

    def _specials(self, shape):
        generator, dtype = self._draw.generator(), self.dtype
        if dtype == tf.string:
            return self.const(_pick(ODD_WORDS, shape, generator))
        if dtype.is_integer:
            extremes = [int(dtype.min), int(dtype.max), 0, 1, -1 if dtype.min < 0 else 2]
            extremes = np.array(extremes, dtype.as_numpy_dtype)
            return self.const(_pick(extremes, shape, generator))
        if dtype.is_floating or dtype.is_complex:
            part = dtype.real_dtype.as_numpy_dtype
            values = _pick(_edges(part), shape, generator)
            if dtype.is_complex:
                both = np.empty(shape, dtype.as_numpy_dtype)
                both.real, both.imag = values, _pick(_edges(part), shape, generator)
                values = both
            return self.const(values)
        return self._any(shape)


def _edges(part):
    """Return the special values of a NumPy float dtype, in this dtype if it has them."""
    info = ml_dtypes.finfo(part)
    tiny, big = info.smallest_subnormal, info.max
    numbers = [0.0, -0.0, tiny, -tiny, info.smallest_normal, big, -big, 1.0, -1.0, 0.5, 3.0]
    with np.errstate(all="ignore"):
        return np.array([*map(float, numbers), np.inf, -np.inf, np.nan, -np.nan]).astype(part)


def _pick(values, shape, generator):
    """Fill a shape with values, each once before any is repeated."""
    size = math.prod(shape)
    rounds = np.tile(np.arange(len(values)), (size // len(values) + 1, 1))
    order = generator.permuted(rounds, axis=1).ravel()[:size]
    if not isinstance(values, np.ndarray):
        values = np.array(values, object)
    return values[order].reshape(shape)


CONTAINERS = {
    tf.qint8: np.int8,
    tf.quint8: np.uint8,
    tf.qint16: np.int16,
    tf.quint16: np.uint16,
    tf.qint32: np.int32,
}
"""The integer dtypes that store quantized dtypes."""


def constant(values, dtype):
    """Make an eager tensor of any dtype from nested lists or arrays of numbers or strings."""
    dtype = tf.as_dtype(dtype)
    if dtype == tf.string:
        values = np.asarray(values, object)
        return tf.constant(values, tf.string, values.shape)
    if dtype in CONTAINERS:
        return tf.bitcast(tf.constant(np.asarray(values).astype(CONTAINERS[dtype])), dtype)
    with np.errstate(all="ignore"):
        return tf.constant(np.asarray(values).astype(dtype.as_numpy_dtype), dtype)


def ints(*values):
    """Return an int32 tensor: ``ints(3)`` a scalar, ``ints(3, 4)`` and ``ints([3])`` a vector."""
    return constant(values[0] if len(values) == 1 else values, tf.int32)


def longs(*values):
    """Return an int64 tensor: ``longs(3)`` a scalar, ``longs(3, 4)`` a vector."""
    return constant(values[0] if len(values) == 1 else values, tf.int64)


def floats(*values):
    """Return a float32 tensor: ``floats(3)`` a scalar, ``floats(3, 4)`` a vector."""
    return constant(values[0] if len(values) == 1 else values, tf.float32)


def strings(*values):
    """Return a string tensor: ``strings("a")`` a scalar, ``strings("a", "b")`` a vector."""
    return constant(values[0] if len(values) == 1 else values, tf.string)
