"""NumPy arrays as inputs: values, dtypes and errors are TensorFlow's."""

import operator

import numpy as np
import pytest
import tensorflow as tf
from calls import find, frames, outcome
from support import Failure, assert_same, difference, floats, took

import fastops
from fastops import ops

pytestmark = pytest.mark.quick

DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


def matrix(dtype):
    """Make a matrix of a dtype, with negative numbers.

    What a negative float becomes in an unsigned dtype depends on the processor.
    """
    values = floats(4, 6)
    return (values.astype("int64") if np.dtype(dtype).kind == "u" else values).astype(dtype)


def arrays(dtype):
    """Yield arrays of a dtype with all kinds of shapes and memory layouts."""
    array = matrix(dtype)
    for shape in ((), (0,), (3,), (2, 3), (1, 2, 3, 1), (2, 0, 3), (1,) * 9):
        yield np.resize(array, shape).astype(dtype)
    yield array.T
    yield array[::2, ::-1]
    yield np.asfortranarray(array)
    yield np.broadcast_to(array[0], (3, 6))
    yield array.astype(array.dtype.newbyteorder())
    yield np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(dtype)  # not aligned
    frozen = array.copy()
    frozen.flags.writeable = False
    yield frozen
    yield array.view(np.matrix)
    yield np.ma.masked_array(array)
    yield np.resize(array, (300, 300)).astype(dtype)


ODD = [
    np.float64([1e300, -1e300, 1e-320, 1e-40, 3.1, -0.0, np.nan, np.inf, 0.1 + 2**-30]),
    np.array(["a", "b"]),
    np.array([b"a", b"bc"]),
    np.array([1, 2.0, None], object),
    np.array([[1, 2], [3, 4]], object),
    np.array(["2020-01-01"], "datetime64[D]"),
    np.longdouble([1.0, 2.0]),
    np.longlong([1, 2]),
    np.zeros(2, [("a", "i4")]),
    np.float32(2.5),
    np.float64(2.5),
    np.int64(3),
    np.bool_(True),
]
ALL = [array for dtype in DTYPES for array in arrays(dtype)] + ODD


def compare(calls):
    """Compare calls, each a function with its arguments, with those of unchanged TensorFlow."""
    calls = [(function, args, kwargs) for function, *args, kwargs in calls]
    wants = [outcome(*call) for call in calls]
    with fastops.accelerated():
        for (function, args, kwargs), want in zip(calls, wants, strict=True):
            for _ in range(2):
                differing = difference(outcome(function, args, kwargs), want)
                assert not differing, f"{args} {kwargs}: {differing}"


@pytest.mark.parametrize("name", ["constant", "convert_to_tensor"])
@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_tensors_of_arrays(name, dtype):
    def function(*args, **kwargs):
        return getattr(tf, name)(*args, **kwargs)

    compare([(function, array, {"dtype": dtype}) for array in ALL])


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_python_of_tensorflow_runs(dtype):
    array = np.resize(matrix(dtype), (2, 3))
    with fastops.accelerated():
        for name in ("tf.constant", "tf.convert_to_tensor"):
            assert not frames(find(name), (array,), {})
            assert not frames(find(name), (array,), {"dtype": tf.as_dtype(dtype)})


MATRIX = floats(4, 6)
IN_C = [
    *((array, None) for array in (MATRIX.T, MATRIX[::2, ::-1], np.asfortranarray(MATRIX))),
    *((MATRIX.astype(">f4"), None), (np.broadcast_to(MATRIX[0], (3, 6)), None)),
    *((np.array(1.5), None), (np.float32(1.5), None), (np.int8(3), None)),
    *((np.array(["a", "\u00e4b"]), None), (np.array([b"a\0", b"b"]), None)),
    *((np.array([["a", b"b"]], object), None), (MATRIX.astype(tf.bfloat16.as_numpy_dtype), None)),
    *((MATRIX, "float64"), (MATRIX.astype("float64"), "float32"), (np.arange(3), "float32")),
    *((np.arange(3), "int8"), (np.float32([1, 2]), "int64"), (MATRIX > 0, "float32")),
    *((MATRIX, "bfloat16"), (np.float32([1.5, 2.0]), "float16"), (MATRIX, "complex64")),
    *((np.float64(0.1), "float32"), (np.arange(6)[::-2], "float64")),
]


@pytest.mark.parametrize(("array", "dtype"), IN_C)
def test_every_layout_is_copied_without_python(array, dtype):
    dtype = None if dtype is None else tf.as_dtype(dtype)
    compare([(lambda: tf.constant(array, dtype), {})])
    with fastops.accelerated():
        for name in ("tf.constant", "tf.convert_to_tensor"):
            assert not frames(find(name), (array, dtype), {})


@pytest.mark.parametrize("name", ["constant", "convert_to_tensor"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4"])
def test_dtypes_that_numpy_does_not_have(name, dtype):
    array = np.arange(6).reshape(2, 3).astype(tf.as_dtype(dtype).as_numpy_dtype)

    def function(*args, **kwargs):
        return tf.cast(getattr(tf, name)(*args, **kwargs), tf.float32)

    targets = (None, dtype, "float32", "bfloat16", "float16", "int32", "complex64", "bool")
    compare(
        [
            (function, value, {"dtype": target})
            for value in (array, array.T, array[:, ::2], array[0, 1])
            for target in targets
        ]
    )


SCALARS = [np.float32(0.1), np.float64(0.1), np.float64(-0.0), np.int64(3), np.int32(3)]
SCALARS += [np.float16(0.5), np.complex64(1j), np.bool_(True), np.uint8(3)]


@pytest.mark.parametrize("name", ["add", "mul", "truediv", "pow", "lt", "eq", "ne", "and_"])
def test_operators_with_scalars(name):
    function = getattr(operator, name)
    calls = []
    for dtype in ("bool", "int32", "int64", "float16", "float32", "float64", "complex64"):
        tensor = tf.cast(floats(2, 2), dtype)
        for value in SCALARS:
            calls += [(function, tensor, value, {}), (function, value, tensor, {})]
    compare(calls)


def test_operators_with_scalars_are_fast():
    x = tf.constant(floats(3))
    with fastops.accelerated():
        for value in (np.float32(2.0), np.float64(2.0)):
            for _ in range(3):
                x * value
            assert not (entered := frames(operator.mul, (x, value), {})), entered


def at(offset, array):
    """Return a copy of an array whose memory begins that many bytes after a multiple of 64."""
    space = np.empty(array.nbytes + 128, np.uint8)
    begin = -space.ctypes.data % 64 + offset
    copy = space[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("name", ["constant", "convert_to_tensor"])
@pytest.mark.parametrize("offset", [0, 16])
def test_a_tensor_does_not_share_memory_with_its_array(name, offset):
    for size in (4, 5_000, 100_000, 2_000_000):
        array = at(offset, np.zeros(size, np.float32))
        with fastops.accelerated():
            tensor = getattr(tf, name)(array)
        array[:] = 1.0
        assert not tensor.numpy().any()
        assert tensor.device == tf.constant(0.0).device


LARGE = [floats(300, 16), floats(300, 20, dtype="float64"), np.arange(5_000), floats(700, 700)]
LARGE += [floats(300, 100) > 0, np.arange(20_000, dtype=np.uint8), np.float16(floats(90, 100))]
NOT_COPIED = [floats(300, 16).T, floats(600, 16)[::2], floats(300, 16).astype(">f4")]
NOT_COPIED += [np.broadcast_to(floats(16), (300, 16)), floats(1_100, 1_000)]


@pytest.mark.parametrize("name", ["constant", "convert_to_tensor"])
def test_large_arrays(name):
    def function(*args, **kwargs):
        return getattr(tf, name)(*args, **kwargs)

    compare(
        [
            (function, array, {"dtype": dtype})
            for array in (*LARGE, *(at(0, array) for array in LARGE), *NOT_COPIED)
            for dtype in (None, "float32", "float64", "int32", "bool")
        ]
    )
    with fastops.accelerated():
        for array in LARGE:
            assert not frames(find(f"tf.{name}"), (array,), {})


def test_large_arrays_as_arguments():
    traced, double = tf.function(lambda x: x), tf.function(lambda x: x * 2)
    variable = tf.Variable(floats(300, 16))
    x = tf.constant(floats(300, 16))
    for offset in (0, 16):
        array = at(offset, floats(300, 16, seed=1))
        compare(
            [
                (traced, array, {}),
                (double, array, {}),
                (tf.raw_ops.AddV2, {"x": x, "y": array}),
                (lambda array=array: variable.assign(array).numpy(), {}),
                (lambda array=array: variable.assign_add(array).numpy() - variable.numpy(), {}),
            ]
        )
        with fastops.accelerated():
            for _ in range(5):
                result = traced(array)
            variable.assign(array)
            array[:] = 0.0
            assert result.numpy().any()
            assert variable.numpy().any()


# By function, calls with arrays, which it converts without asking for a dtype.
CONVERTED = {
    "tf.gather": lambda array: (tf.Variable(floats(7, 3)), np.abs(array.astype("int64")) % 7),
    "tf.gather_nd": lambda array: (
        tf.Variable(floats(7, 3)),
        np.abs(array.astype("int32")).reshape(-1, 1) % 7,
    ),
    "tf.linalg.matvec": lambda array: (array, array[0]),
    "tf.math.reduce_std": lambda array: (array,),
    "tf.math.reduce_variance": lambda array: (array, 0),
    "tf.nn.l2_normalize": lambda array: (array, 1),
    "tf.norm": lambda array: (array,),
    "tf.tensordot": lambda array: (array, array, 2),
}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("name", CONVERTED)
def test_functions_that_convert_arrays(name):
    made = CONVERTED[name]

    def function(*args):
        return find(name)(*args)

    calls = [
        (function, *made(matrix(dtype)), {})
        for dtype in DTYPES
        if not (dtype.startswith("complex") and name.startswith("tf.gather"))
    ]
    calls += [
        (function, *made(layout), {})
        for array in [floats(4, 6, seed=1)]
        for layout in (array.T, array[::2, ::-1], np.asfortranarray(array), array.astype(">f4"))
    ]
    compare(calls)
    arguments = made(floats(4, 6, seed=2))
    with fastops.accelerated():
        for _ in range(60):
            find(name)(*arguments)
        assert not (entered := frames(find(name), arguments, {})), entered


OPERATORS = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "xor"),
]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    function, calls = getattr(operator, name), []
    for dtype in ("bool", "int32", "int64", "float16", "float32", "float64", "complex64"):
        array = np.abs(floats(3, 3)).astype(dtype) + np.ones((), dtype)
        variable = tf.Variable(array)
        for other in ("int32", "int64", "float32", "float64"):
            beside = array.real.astype(other)
            for value in (beside, beside[:1], beside.T):
                calls.append((function, tf.constant(array), value, {}))
                calls.append((function, value, tf.constant(array), {}))
                calls.append((function, variable, value, {}))
        calls += [(function, tf.constant(array), value, {}) for value in ODD]
    compare(calls)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "matmul"])
def test_operators_are_fast(name):
    function = getattr(operator, name)
    x, array = tf.constant(floats(3, 3)), floats(3, 3, seed=1)
    with fastops.accelerated():
        for pair in ((x, array), (array, x), (x, array.astype("float64"))):
            for _ in range(3):
                function(*pair)
            entered = [frame for frame in frames(function, pair, {}) if frame != "__array__"]
            assert not entered, entered


def test_gradients():
    x, array = tf.constant(floats(3, 3)), floats(3, 3, seed=1)

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum((x * array + array) @ array - array @ x)
        return tape.gradient(y, x)

    compare([(gradient, {})])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_assignments(dtype):
    def assigned(method, array):
        variable = tf.Variable(tf.zeros([4, 6], dtype))
        result = getattr(variable, method)(array)
        return variable.numpy(), tf.convert_to_tensor(result)

    compare(
        [
            (assigned, method, array, {})
            for method in ("assign", "assign_add", "assign_sub")
            for array in (*arrays(dtype), *arrays("float64"), *arrays("int64"), *ODD)
        ]
    )


def test_assignments_are_fast():
    variable, array = tf.Variable(floats(3)), floats(3, seed=1)
    assigned = variable.assign.__func__
    with fastops.accelerated():
        for _ in range(3):
            variable.assign(array, read_value=False)
        entered = frames(lambda: variable.assign(array, read_value=False), (), {})
    assert "convert_to_tensor" not in entered
    assert assigned is variable.assign.__func__


def test_ops_of_arrays():
    x = tf.constant(floats(3, 3))
    for array in (floats(3, 3, seed=1), floats(3, 3, seed=1).T, floats(3, 3, dtype="float64")):
        want = outcome(tf.raw_ops.AddV2, (), {"x": x, "y": array})
        for _ in range(2):
            got, path = took(ops.add_v2, x=x, y=array)
            assert_same(got, want)
        assert path == "direct"
    for array in (floats(3, 3).astype("int32"), np.ones((3, 3), np.complex64)):
        want = outcome(tf.raw_ops.AddV2, (), {"x": x, "y": array})
        got = outcome(ops.add_v2, (), {"x": x, "y": array})
        assert isinstance(want, Failure) == isinstance(got, Failure)
        assert not difference(got, want)


def test_arrays_that_public_functions_cast():
    """The functions cast them to the op's dtype; no kernel may get the arrays uncast."""
    x, ones = tf.constant(floats(2, 2)), np.ones([2, 2])
    compare(
        [
            (tf.reduce_any, ones, {}),
            (tf.reduce_all, ones, {}),
            (tf.add, ones, x, {}),
            (tf.add, x, ones, {}),
            (tf.matmul, ones, x, {}),
            (tf.where, ones, x, x, {}),
            (tf.where, ones > 0, ones, x, {}),
            (tf.gather, ones, np.array([0, 1]), {}),
            (tf.reduce_sum, ones, {}),
            (tf.reduce_sum, x, np.array([0]), {}),
        ]
    )


def test_inside_a_graph_and_a_device_scope():
    array = floats(3)

    @tf.function
    def graph():
        return tf.convert_to_tensor(array) + tf.constant(array) * array

    compare([(graph, {})])

    def scoped():
        with tf.device("CPU:0"):
            return tf.constant(array), tf.convert_to_tensor(array), tf.constant(1.0) + array

    compare([(scoped, {})])
