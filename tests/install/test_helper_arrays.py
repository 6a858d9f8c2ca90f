"""The helper that converts values to arrays, also in functions of `tf.numpy_function`."""

import itertools
import re
import warnings

import numpy as np
import pytest
import tensorflow as tf
from calls import frames
from tensorflow.experimental import numpy as tnp
from tensorflow.python.util import numpy_compat

import fastops

LAYERS = ["helpers"]


class Shouting:
    """An object that says when it is converted."""

    def __init__(self):
        self.asked = 0

    def __array__(self, dtype=None, copy=None):
        self.asked += 1
        raise ValueError("not an array")


class OfArrays(np.ndarray):
    """A subclass of arrays."""


GRID = np.arange(6, dtype=np.float32).reshape(2, 3)
VALUES = (
    *(GRID, GRID.T, GRID[:, ::2], GRID.view(OfArrays), np.zeros((0, 2)), np.array("text")),
    *(np.float32(1.5), np.int64(7), np.bool_(True), True, 3, 2**40, 1.5, 1j, "text", b"bytes"),
    *([1, 2], (1.0, 2), [[1], [2, 3]], ["a", b"b"], [GRID, GRID], None, {"a": 1}, object),
    *(tf.constant([1.0, 2.0]), tf.constant(["a"]), tf.Variable(1.0), [tf.constant(1), 2]),
)
OPTIONS = tuple(
    itertools.product(
        (None, np.float64, np.int8, np.uint8, object, str, "nonsense"),
        (None, "C", "F"),
        (None, True, False),
    )
)


def outcome(*args, **kwargs):
    try:
        made = numpy_compat.np_asarray(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    flags = made.flags.c_contiguous, made.flags.f_contiguous, made.flags.writeable
    text = repr(made.tolist()) if made.dtype == object else made.tobytes()
    return type(made), made.dtype, made.shape, flags, made is args[0], made.base is args[0], text


def test_values_and_options():
    def outcomes():
        return [
            outcome(value, dtype=dtype, order=order, copy=copy)
            for value in VALUES
            for dtype, order, copy in OPTIONS
        ] + [outcome(), outcome(GRID, "f8"), outcome(GRID, None, "C", True, 1), outcome(a=1)]

    want = outcomes()
    with fastops.accelerated(only=LAYERS):
        assert outcomes() == want


def test_plain_values_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        assert not frames(numpy_compat.np_asarray, (GRID,), {"order": "C"})
        assert not frames(numpy_compat.np_asarray, ([1, 2],), {})


def test_an_object_of_a_user_is_converted_once():
    value = Shouting()
    with fastops.accelerated(only=LAYERS), pytest.raises(ValueError, match="not an array"):
        numpy_compat.np_asarray(value)
    assert value.asked == 1


def test_what_numpy_has_is_asked_in_each_call(monkeypatch):
    with fastops.accelerated(only=LAYERS):
        monkeypatch.setattr(np, "asarray", lambda values, **options: ("mine", options["order"]))
        assert numpy_compat.np_asarray(GRID, order="C") == ("mine", "C")


def plain(tensors):
    return [(tensor.dtype, tensor.numpy().tolist()) for tensor in tensors[:3]], tensors[3].numpy()


def of_python(function, *dtypes):
    """Return a traced function that calls a function of Python."""
    return tf.function(lambda x: tf.numpy_function(function, [x], dtypes))


def test_functions_of_numpy():
    def values(x):
        return x * 2, np.float32(x.sum()), [1, 2], "text"

    def results():
        traced = of_python(values, tf.float32, tf.float32, tf.int64, tf.string)
        return [plain(traced(tf.constant(GRID))) for _ in range(3)]

    want = results()
    with fastops.accelerated(functions=True):
        assert results() == want


def test_the_text_of_an_error():
    def ragged(x):
        return [[1], [2, 3]], x

    def text():
        traced = of_python(ragged, tf.float32, tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            traced(tf.constant(GRID))
        return re.sub(r"pyfunc_\d+|__inference_\S+|0x\w+", "-", str(caught.value))

    want = text()
    assert "np_asarray" in want
    with fastops.accelerated():
        assert text() == want


TENSORS = (tf.constant(GRID), tf.constant(1.5), tf.zeros([0, 3]), tf.constant(["a", "b"]))


@pytest.mark.parametrize("name", ["ndim", "shape", "size"])
def test_descriptions_of_tensors(name):
    def results():
        function = getattr(tnp, name)
        values = [*TENSORS, GRID, [1, 2], 3, 1.5, np.float32(1.5), tf.Variable(GRID)]
        return [described(function, value) for value in values] + [
            described(function),
            described(function, GRID, 1),
            described(function, TENSORS[0], axis=None),
            described(function, TENSORS[0], axis=1),
            described(tf.function(function), TENSORS[0]) if name == "ndim" else None,
        ]

    want = results()
    with fastops.accelerated():
        assert results() == want
        function = getattr(tnp, name)
        # `shape` is the property of the tensor.
        assert frames(function, (TENSORS[0],), {}) == (["shape"] if name == "shape" else [])


def described(function, *args, **kwargs):
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return type(result).__name__, str(result)


def test_warnings_name_the_line_of_tensorflow():
    variable = tf.Variable([1j, 2.0])

    def run():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = np.array(variable, dtype=np.float64)
        return made.tolist(), [(str(w.message), w.filename, w.lineno) for w in caught]

    want = run()
    assert want[1]
    with fastops.accelerated():
        for _ in range(3):
            assert run() == want
