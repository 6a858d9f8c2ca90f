"""Lists and tuples as inputs: results and errors are TensorFlow's."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from calls import find, frames, outcome
from support import difference, floats

import fastops

pytestmark = pytest.mark.quick

DTYPES = [
    None,
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string"),
    *("qint8", "float8_e5m2", "resource"),
]
LEAVES = [
    *(0, 1, -1, 300, 70_000, 2**24 + 1, 2**31, -(2**31)),
    *(2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**70)),
    *(0.0, -0.0, 0.5, -1.5, 0.1, 1e-40, 1e-320, 65_520.0, 1e39, 1e300),
    *(float("inf"), float("-inf"), float("nan"), True, False, 1j),
    *("a", "\u00e4\0", b"b\xff", "\ud800"),
    *(np.float32(0.1), np.float64(0.1), np.float64(0.0), np.float16(0.1), np.longdouble(1)),
    *(np.int8(-3), np.uint8(200), np.int64(2**40), np.uint64(2**64 - 1), np.longlong(3)),
    *(np.bool_(True), np.complex64(1 + 2j), np.str_("c"), np.bytes_(b"d"), np.float32("nan")),
    *(np.array(1.5), np.array(3), None, object, tf.constant(1.0), tf.constant(2)),
]
MIXED = [list(pair) for pair in itertools.product(LEAVES[::3], LEAVES[::2] + LEAVES[1::4])]
ARRAYS = [np.arange(3), floats(3), floats(3, dtype="float64"), np.float16([1, 2, 3])]
ARRAYS += [np.array([True, False, True]), np.array(["a", "b", "c"]), np.arange(6)[::2]]
ARRAYS += [np.zeros(0), np.ones((1, 3)), np.uint64([2**63, 1, 2]), np.complex64([1, 2, 3])]
SHAPES = [
    [],
    (),
    [[]],
    [[], []],
    [[[]], [[]]],
    [[[]], []],
    [[], [1]],
    [[1], []],
    [[], 1],
    [1, []],
    [[1, 2], [3]],
    [[1], [2, 3]],
    [[1, 2], (3, 4)],
    ([1, 2], [3, 4.5]),
    ((1.5, 2), [3, True]),
    [[[[[[[[1]]]]]]]],
    [[[[[[[[[1]]]]]]]]],
    [[1.0, 2.0], [3.0, 4.0]],
    [list(range(100))] * 50,
    [1.0] * 5000,
    range(3),
    {1: 2},
    [range(3)],
    ["ab", "c"],
    [["ab"], [b"c"]],
    ["a", ["b"]],
    "text",
    b"bytes",
    "",
    "\ud800",
]


def compare(calls):
    """Compare calls, each a function with its arguments, with those of unchanged TensorFlow."""
    wants = [outcome(*call) for call in calls]
    with fastops.accelerated():
        for (function, args, kwargs), want in zip(calls, wants, strict=True):
            differing = difference(outcome(function, args, kwargs), want)
            assert not differing, f"{args} {kwargs}: {differing}"


@pytest.mark.parametrize("name", ["constant", "convert_to_tensor"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_lists(name, dtype):
    def function(*args, **kwargs):
        return getattr(tf, name)(*args, **kwargs)

    values = [[leaf] for leaf in LEAVES] + SHAPES
    # TensorFlow raises for a number out of range once, and then finds it in its cache.
    cached = dtype == "uint64"
    values += [leaf for leaf in LEAVES if not cached or type(leaf) is not int]
    values += [pair for pair in MIXED if not cached or not any(map(tf.is_tensor, pair))]
    values += [list(pair) for pair in itertools.product([*ARRAYS, 1, [1, 2, 3]], repeat=2)]
    compare([(function, (value,), {"dtype": dtype}) for value in values])


FRAMES = [floats(40, 40, seed=seed) for seed in range(8)]
LARGE = [
    FRAMES,
    tuple(FRAMES),
    [FRAMES, FRAMES],
    [frame.tolist() for frame in FRAMES],
    [*FRAMES[:7], FRAMES[7].tolist()],
    [frame.astype("float64") for frame in FRAMES],
    [*FRAMES[:7], FRAMES[7].astype("float64")],
    [frame.astype("uint8") for frame in FRAMES],
    [frame > 0 for frame in FRAMES],
    [*FRAMES[:7], FRAMES[7] > 0],
    [frame.T for frame in FRAMES],
    [*FRAMES[:7], floats(40, 39)],
    [*FRAMES[:7], floats(40)],
    list(range(20_000)),
    [*range(20_000), 2**40],
    [*range(20_000), 0.5],
    [*range(20_000), "a"],
    [str(number) for number in range(20_000)],
    [np.arange(20_000), np.arange(20_000)],
]


@pytest.mark.parametrize("name", ["constant", "convert_to_tensor", "stack"])
def test_large_sequences(name):
    def function(*args, **kwargs):
        return getattr(tf, name)(*args, **kwargs)

    options = [{}] if name == "stack" else [{}, {"dtype": "float32"}, {"dtype": "int64"}]
    compare([(function, (value,), option) for value in LARGE for option in options])


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        (1.0, 2.0),
        [[True, False], (False, True)],
        [1, 2.5],
        ["a", b"b"],
        [np.float32(1.0), 2],
        [np.arange(3), np.arange(3)],
        [2**40],
        FRAMES,
        list(range(20_000)),
    ],
)
def test_no_python_of_tensorflow_runs(value):
    with fastops.accelerated():
        for name in ("tf.constant", "tf.convert_to_tensor"):
            assert not frames(find(name), (value,), {})


def test_lists_of_tensors():
    a, b = tf.constant(floats(2, 3)), tf.constant(floats(2, 3, seed=1))
    whole, wide = tf.constant([1, 2]), tf.constant(floats(3, 2))
    lists = [[a], [a, b], (a, b), [a, whole], [a, wide], [[a, b], [b, a]], [a, 1.0], [a, a.numpy()]]
    lists += [[tf.Variable(floats(2, 3)), a]]
    calls = [
        (lambda *args, **kwargs: tf.convert_to_tensor(*args, **kwargs), (value,), {"dtype": dtype})
        for value in lists
        for dtype in (None, "float32", "float64", "int32")
    ]
    compare(calls * 2)
    with fastops.accelerated():
        tf.convert_to_tensor([a, b])
        assert not frames(find("tf.convert_to_tensor"), ([a, b],), {})


def test_conversions_that_users_register():
    class Pair(tuple):
        __slots__ = ()

    def converted(value, dtype=None, name=None, as_ref=False):
        return tf.constant(-1.0)

    from tensorflow.python.framework import tensor_conversion_registry as registry

    with fastops.accelerated():
        assert tf.convert_to_tensor([1, 2]).shape == [2]
        before = list(registry._tensor_conversion_func_registry[50])
        tf.register_tensor_conversion_function((list, Pair), converted, priority=50)
        try:
            assert tf.convert_to_tensor([1, 2]).numpy() == -1.0
            assert tf.convert_to_tensor(Pair((1, 2))).numpy() == -1.0
            variable = tf.Variable(3.0)
            assert variable.assign([1.0]).numpy() == -1.0
        finally:
            registry._tensor_conversion_func_registry[50] = before
            registry._tensor_conversion_func_cache.clear()
        assert tf.convert_to_tensor([1, 2]).shape == [2]
