"""Reading the values of tensors and variables, compared with TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, make, outcome
from support import difference, floats
from tensorflow.python.framework.tensor import Tensor, _TensorIterator

import fastops

pytestmark = pytest.mark.quick

DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string"),
]
SHAPES = ((), (0,), (1,), (3,), (2, 3), (1, 4), (3, 16), (2, 0, 3), (0, 2), (2, 1, 2, 2))


def values(dtype):
    for shape in SHAPES:
        tensor = tf.strings.as_string(make("int32", *shape)) if dtype == "string" else None
        yield tf.cast(make("float32", *shape), dtype) if tensor is None else tensor


def compare(calls):
    """Compare calls, each a function with its arguments, with those of unchanged TensorFlow."""
    wants = [outcome(function, args, {}) for function, *args in calls]
    with fastops.accelerated():
        for (function, *args), want in zip(calls, wants, strict=True):
            for _ in range(2):
                differing = difference(outcome(function, args, {}), want)
                assert not differing, f"{args}: {differing}"


def unpacked(tensor):
    first, second = tensor
    return first, second


@pytest.mark.parametrize("dtype", [*DTYPES, "qint8", "float8_e5m2"])
def test_iteration(dtype):
    tensors = list(values(dtype))
    compare([(function, tensor) for tensor in tensors for function in (list, unpacked, sum)])
    compare([(lambda tensor: [list(row) for row in tensor], tensor) for tensor in tensors])


def test_an_iterator_is_the_same_as_tensorflows():
    tensor = make("float32", 3, 2)
    with fastops.accelerated():
        iterator = iter(tensor)
        assert type(iterator) is _TensorIterator
        assert iter(iterator) is iterator
        rest = [next(iterator)]
        rest += iterator
        assert len(rest) == 3
        assert not list(iterator)
        with pytest.raises(StopIteration):
            next(iterator)
        iterator = iter(tensor)
        first = next(iterator)
    again = next(iterator)  # begun with `install`, continued without
    assert not difference([first, again], [tensor[0], tensor[1]])
    assert first.device == tensor[0].device


def test_iteration_runs_no_python():
    tensor = make("float32", 8)
    with fastops.accelerated():
        unpacked(tensor[:2])
        for call in ((unpacked, tensor[:2]), (set, map(id, tensor))):
            assert not (entered := frames(call[0], call[1:], {})), entered


def test_rows_share_memory_as_in_tensorflow():
    for shape in ((4, 16), (4, 3), (1, 3), (4,)):
        tensor = make("float32", *shape)

        def shared(tensor=tensor):
            return [np.shares_memory(np.asarray(row), np.asarray(tensor)) for row in tensor]

        compare([(shared,)])


def test_tapes_see_what_is_iterated_over():
    x = make("float32", 3)

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            a, b, c = x
            y = a * 2.0 + b * c
        return tape.gradient(y, x)

    compare([(gradient,)])


def test_callbacks_see_what_is_iterated_over():
    from tensorflow.python.framework import op_callbacks

    tensor = make("float32", 3)

    def seen():
        ops = []

        def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
            ops.append(op_type)

        op_callbacks.add_op_callback(callback)
        try:
            list(tensor)
        finally:
            op_callbacks.remove_op_callback(callback)
        return ops

    compare([(seen,)])


def test_iteration_in_a_graph(monkeypatch):
    tensor = make("float32", 3)

    @tf.function(autograph=False)
    def captured():
        return sum(tensor)

    @tf.function(autograph=False)
    def symbolic(x):
        return list(x)

    compare([(captured,), (symbolic, tensor)])

    def other(self, item):
        return item

    monkeypatch.setattr(Tensor, "__getitem__", other)
    compare([(list, tensor)])


CONVERSIONS = [
    *(float, int, bool, complex, np.asarray, np.array, list, len, hash, str),
    *(lambda v: v.numpy(), lambda v: v.__index__(), lambda v: np.asarray(v, dtype="float64")),
    *(lambda v: v.shape, lambda v: v.shape.rank, lambda v: np.add(v, 1), lambda v: v.__array__()),
    lambda v: v.dtype == tf.string or bytes(memoryview(v)),
    lambda v: 1.0 in v,
]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions(dtype):
    tensors = list(values(dtype))
    compare([(function, tensor) for tensor in tensors for function in CONVERSIONS[:-1]])
    numbers = [tensor for tensor in tensors if dtype != "string"]
    variables = [tf.Variable(tensor) for tensor in numbers]
    compare([(function, variable) for variable in variables for function in CONVERSIONS[:-2]])
    compare([(CONVERSIONS[-1], tensor) for tensor in tensors if tensor.dtype == tf.float32])


def test_an_array_of_a_variable_is_a_copy():
    variable = tf.Variable(floats(3))
    with fastops.accelerated():
        for read in (lambda: variable.numpy(), lambda: np.asarray(variable)):
            array = read()
            assert array.flags.writeable
            array[:] = 7.0
            assert not (variable.numpy() == 7.0).any()


def test_variables_are_read_without_python():
    variable = tf.Variable(2.5)
    calls = {
        float: lambda: float(variable),
        int: lambda: int(variable),
        bool: lambda: bool(variable),
        "numpy": lambda: variable.numpy(),
        "array": lambda: np.asarray(variable),
    }
    with fastops.accelerated():
        for read in calls.values():
            read()
            assert not (entered := frames(read, (), {})), entered


def test_tapes_see_reads_of_variables():
    variable = tf.Variable(2.5)

    def watched():
        with tf.GradientTape() as tape:
            float(variable)
        return len(tape.watched_variables())

    compare([(watched,)])
