"""Recordings that hold for all batch sizes: after calls of two, calls of all are replayed.

A recording holds for all sizes only if the code of the call has read none of them.
"""

import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from install.models.keras_programs import MODELS, floats, outcome, plain, told
from keras import layers as L  # noqa: N812
from tensorflow.python.framework.tensor_shape import TensorShape

import fastops
from fastops._specialize.recording.sizes import NotedSizes

SIZES = [3, 5, 1, 2, 7, 0, 5, 4, 11, 1]


def batches(x, sizes=SIZES):
    """Yield tensors like `x`, with other first sizes."""
    for size in sizes:
        rows = np.resize(x.numpy(), (size, *x.shape[1:]))
        yield tf.constant(rows)


class Reading(tf.Module):
    """A module whose calls run a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.w = tf.Variable(floats(4, 3, seed=1))

    def __call__(self, x):
        return self.function(x, self.w)


def replays(module, inputs):
    """Call a module in stock TensorFlow and with replays; return the descriptions of both.

    Results and errors must be the same.
    """
    inputs = list(inputs)
    expected = [outcome(module, x) for x in inputs]
    with fastops.accelerated():
        assert [outcome(module, x) for x in inputs] == expected
        return told_of(module), recordings_of(module)


def told_of(module):
    stand_in = stand_in_of(module)
    return stand_in.describe(module)


def recordings_of(module):
    return stand_in_of(module).recordings(module)


def stand_in_of(module):
    from fastops._install.models.method import methods

    if isinstance(module, keras.layers.Layer):
        return type(module).__call__
    (found,) = [m for m in methods() if m.original.__qualname__ == "Module.__call__"]
    return found


def holds_for_all(recordings):
    return [one["arguments"] for one in recordings if "None" in one["arguments"]]


# What these read does not depend on the batch size.
BLIND = {
    "product": lambda x, w: x @ w,
    "last_size": lambda x, w: x * float(x.shape[-1]),
    "sizes_but_first": lambda x, w: x * float(x.shape[1:][0]),
    "rank": lambda x, w: x * float(x.shape.rank) + float(len(x.shape)) + float(x.ndim),
    "shape_op": lambda x, w: tf.fill(tf.stack([tf.shape(x)[0], 3]), 2.0) + x @ w,
    "shape_op_of_product": lambda x, w: tf.ones(tf.shape(x @ w)),
    "flattened": lambda x, w: tf.reshape(x, [-1, 2]),
    "mean": lambda x, w: tf.reduce_mean(x, axis=0),
    "sum": lambda x, w: tf.reduce_sum(x),
    "columns": lambda x, w: x[:, 1:] * x[:, :1],
    "last_rows": lambda x, w: x[-2:],
    "transposed": lambda x, w: tf.matmul(x, x, transpose_b=True),
    "joined": lambda x, w: tf.concat([x, x], 0),
    "sizes_of_weights": lambda x, w: (x @ w) * float(list(w.shape)[0]),  # noqa: RUF015
    "static_shape_of_weights": lambda x, w: x @ tf.reshape(w, tuple(w.shape)),
    "constant": lambda x, w: x + tf.constant([1.0, 2.0, 3.0, 4.0]),
    "custom_gradient": lambda x, w: tf.nn.silu(x),
    "softmax": lambda x, w: tf.nn.softmax(x @ w),
    "packed_to_reshape": lambda x, w: tf.reshape(x[:1], [1, tf.minimum(tf.shape(x)[0], 2) * 2]),
    "index_of_tensor": lambda x, w: x[tf.minimum(tf.shape(x)[0], 3) - 1],
    "slice_of_tensor": lambda x, w: x[: tf.minimum(tf.shape(x)[0], 3) - 1],
    "depth_of_tensor": lambda x, w: tf.one_hot([0, 1], tf.minimum(tf.shape(x)[0], 3)),
    "first_row": lambda x, w: x[0],
}


@pytest.mark.parametrize("name", BLIND)
def test_code_that_reads_no_batch_size_is_recorded_for_all(name):
    described, recordings = replays(Reading(BLIND[name]), batches(floats(2, 4)))
    assert holds_for_all(recordings)
    # The first call is not recorded, the next two are. Some code raises for no rows.
    assert described["replayed"] >= len(SIZES) - 5


# These read the batch size, or decide by it.
READING = {
    "first_size": lambda x, w: x * float(x.shape[0]),
    "negative_axis": lambda x, w: x * float(x.shape[-2]),
    "length": lambda x, w: x * float(len(x)),
    "zeros": lambda x, w: x + tf.zeros(x.shape),
    "get_shape": lambda x, w: x * float(x.get_shape()[0]),
    "as_list": lambda x, w: x * float(x.shape.as_list()[0]),
    "tuple": lambda x, w: x * float(tuple(x.shape)[-2]),
    "unpacked": lambda x, w: x * float([*x.shape, 2][0]),
    "items": lambda x, w: x * float(next(iter(x.shape))),
    "slice": lambda x, w: x * float(x.shape[:1][0]),
    "comparison": lambda x, w: x if x.shape == (3, 4) else 2.0 * x,
    "comparison_of_shapes": lambda x, w: x if x.shape == w.shape else 2.0 * x,
    "branch": lambda x, w: x if x.shape[0] > 3 else 2.0 * x,
    "member": lambda x, w: x if 5 in tuple(x.shape) else 2.0 * x,
    "num_elements": lambda x, w: x * float(x.shape.num_elements()),
    "compatible": lambda x, w: x if x.shape.is_compatible_with([5, 4]) else 2.0 * x,
    "concatenated": lambda x, w: x * float(x.shape.concatenate([2])[0]),
    "dims": lambda x, w: x * float(x.shape.dims[0].value),
    "numpy_shape": lambda x, w: x * float(np.shape(x)[0]),
    "numpy_size": lambda x, w: x * float(x.numpy().size),
    "value_of_shape": lambda x, w: x * float(int(tf.shape(x)[0])),
    "size_op": lambda x, w: tf.cast(tf.size(x), tf.float32) * x,
    "packed": lambda x, w: tf.zeros([tf.minimum(tf.shape(x)[0], 4), 3])[:, 0] + x[0, 0],
    "range": lambda x, w: tf.add_n([x for _ in range(tf.minimum(tf.shape(x)[0], 3))] + [x]),
    "repeated": lambda x, w: tf.add_n([x] * min(x.shape[0], 3) + [x]),
    "value_of_size": lambda x, w: x if tf.size(x) > 12 else 2.0 * x,
    "truth": lambda x, w: x if tf.shape(x)[0] > 3 else 2.0 * x,
    "rows": lambda x, w: tf.stack([2.0 * row for row in x]) if len(x) else x,
    "unstacked": lambda x, w: tf.add_n([tf.unstack(x)[-1], x[0]]),
    "transposed": lambda x, w: x * float(tf.transpose(x).shape[1]),
    "product": lambda x, w: x * float(tf.matmul(x, x, transpose_b=True).shape[-1]),
    "flattened": lambda x, w: x * float(tf.reshape(x, [-1]).shape[0]),
    "rows_of_variable": lambda x, w: (
        tf.add_n([tf.nn.embedding_lookup(w, tf.range(tf.minimum(tf.shape(x)[0], 4)))] * 1)
        * float(tf.range(tf.minimum(tf.shape(x)[0], 4)).shape[0])
    ),
    "sorted": lambda x, w: x * float(sorted(x.shape.as_list())[-1]),
    "item_of_longer_list": lambda x, w: x * float([9, *x.shape][1]),
    "sliced": lambda x, w: x * float(x[:4].shape[0]),
    "joined": lambda x, w: x * float(tf.concat([x, x], 0).shape[0]),
    "row_count": lambda x, w: x * float(tf.range(tf.shape(x)[0]).shape[0]),
    "keras_shape": lambda x, w: x * float(keras.ops.shape(x)[0]),
    "equal_sizes": lambda x, w: tf.where(x > 0.0, x, x[:4] if x.shape[0] < 5 else -x),
    "copied": lambda x, w: x * float(x.cpu().shape[0]),
    "converted": lambda x, w: x * float(tf.convert_to_tensor(x).shape[0]),
    "truth_of_tensor": lambda x, w: x if tf.reduce_all(tf.shape(x) > 3) else 2.0 * x,
    "bias_by_coincidence": lambda x, w: keras.ops.add(tf.transpose(x), tf.constant([1.0] * 5)),
}


@pytest.mark.parametrize("name", READING)
def test_code_that_reads_the_batch_size_is_recorded_for_each(name):
    sizes = [2, 6, 3, 8, 5, 4, 1, 5, 7]
    _, recordings = replays(Reading(READING[name]), batches(floats(2, 4), [*sizes, *sizes]))
    assert not holds_for_all(recordings)


def slope(x, w):
    """Return gradients by an input whose first row is used by all."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x[:1] @ w)
    return tape.gradient(y, x)


# Sizes that depend on the batch size, of arguments and of other tensors.
SIZES_READ = {
    "argument": lambda x, w: x.shape[0],
    "elements": lambda x, w: x.numpy().size // 4,
    "copied": lambda x, w: np.array(x).shape[0],
    "copied_product": lambda x, w: np.array(x @ w).shape[0],
    "value": lambda x, w: int(tf.shape(x)[0]),
    "product": lambda x, w: (x @ w).shape[0],
    "length": lambda x, w: len(x @ w),
    "transposed": lambda x, w: tf.transpose(x).shape[1],
    "outer_product": lambda x, w: tf.matmul(x, x, transpose_b=True).shape[-1],
    "flattened": lambda x, w: tf.reshape(x, [-1]).shape[0] // 4,
    "joined": lambda x, w: tf.concat([x, x], 0).shape[0] // 2,
    "range": lambda x, w: tf.range(tf.shape(x)[0]).shape[0],
    "sliced": lambda x, w: x[1:].shape[0],
    "converted": lambda x, w: tf.convert_to_tensor(x).shape[0],
    "gradient": lambda x, w: slope(x, w).shape[0],
    "rows": lambda x, w: len(tf.unstack(x)),
    "iterated": lambda x, w: sum(1 for _ in x),
    "keras": lambda x, w: keras.ops.shape(x)[0],
    "filled": lambda x, w: tf.fill([tf.shape(x)[0]], 1.0).shape[0],
    "packed": lambda x, w: tf.zeros([tf.shape(x)[0], 3]).shape[0],
    "depth": lambda x, w: tf.one_hot([0], tf.shape(x)[0]).shape[1],
    "reshaped": lambda x, w: tf.reshape(x, [tf.shape(x)[0], 4]).shape[0],
    "tiled": lambda x, w: tf.tile(x[:1], [tf.shape(x)[0], 1]).shape[0],
    "padded": lambda x, w: tf.pad(w, [[0, tf.shape(x)[0]], [0, 0]]).shape[0] - 4,
    "range_of_tensor": lambda x, w: len(range(tf.shape(x)[0])),
    "index": lambda x, w: list(range(1000))[tf.shape(x)[0]],
    "limit": lambda x, w: tf.range(1000)[: tf.shape(x)[0]].shape[0],
    "split": lambda x, w: tf.split(x, [1, tf.shape(x)[0] - 1])[1].shape[0],
    "broadcast": lambda x, w: tf.broadcast_to(x[:1], tf.shape(x)).shape[0],
    "gathered": lambda x, w: tf.gather(x, tf.range(tf.shape(x)[0])).shape[0],
}


@pytest.mark.parametrize("name", SIZES_READ)
def test_two_sizes_that_give_the_same_do_not_stand_for_a_third(name):
    """Both are below the size by which the code decides."""

    @fastops.keras.replayable  # some of the functions would not be recorded otherwise
    class Few(tf.Module):
        size = staticmethod(SIZES_READ[name])

        def __init__(self):
            super().__init__()
            self.w = tf.Variable(floats(4, 3, seed=1))

        def __call__(self, x):
            return x @ self.w if self.size(x, self.w) < 20 else x

    # Code that runs once in a process may be in the second call of a size: then a third is needed.
    sizes = [2, 3, 2, 3, 2, 3, 2, 3, 4, 100, 101, 4, 100, 100, 100]
    _, recordings = replays(Few(), batches(floats(2, 4), sizes))
    assert not holds_for_all(recordings)
    assert recordings


BLIND_MODELS = ("perceptron", "nested", "embedding", "mixed")


@pytest.mark.parametrize("tape", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_models_of_keras(name, tape):
    model, x = MODELS[name]()

    def run(batch):
        with tf.GradientTape(persistent=True) as recorded:
            y = model(batch)
            total = tf.add_n(
                [tf.reduce_sum(tf.cast(part, tf.float32)) for part in tf.nest.flatten(y)]
            )
        if not tape or not batch.dtype.is_floating:
            return y
        return y, recorded.gradient(total, model.trainable_weights)

    inputs = list(batches(x, [3, 5, 1, 2, 7, 5, 4, 11, 1]))
    keras.utils.set_random_seed(1)
    expected = [outcome(run, batch) for batch in inputs]
    with fastops.accelerated():
        keras.utils.set_random_seed(1)
        made = [outcome(run, batch) for batch in inputs]
        found = holds_for_all(recordings_of(model))
        described = told(model)
    if name in ("noisy", "attention", "convolutional"):  # they draw, so the next run differs
        return
    assert made == expected
    if name in BLIND_MODELS:
        assert found
        assert described["replayed"] >= len(inputs) - 4


def test_arguments_have_sizes_of_their_own():
    class Pair(tf.Module):
        def __call__(self, x, y, scale=1.0):
            return tf.matmul(x, y, transpose_b=True) * scale

    pair = Pair()
    sizes = [(2, 3), (4, 5), (6, 6), (1, 9), (8, 1), (0, 2), (3, 3)]
    inputs = [(floats(a, 4), floats(b, 4, seed=1)) for a, b in sizes]
    expected = [outcome(pair, x, y) for x, y in inputs]
    with fastops.accelerated():
        assert [outcome(pair, x, y) for x, y in inputs] == expected
        assert told_of(pair)["replayed"] >= len(sizes) - 4
        # Other values of other arguments are other calls.
        assert plain(pair(*inputs[0], scale=2.0)) == plain(2.0 * pair(*inputs[0]))
        (arguments,) = holds_for_all(recordings_of(pair))
    assert arguments.count("None") == 2


def test_errors_are_those_of_the_size():
    """The op that raises for some sizes has no result that is used."""

    def checked(x, w):
        tf.ensure_shape(x + tf.ones([1, 4]), [None, 4])
        tf.reshape(x, [3, -1])
        return x @ w

    described, recordings = replays(
        Reading(checked), batches(floats(2, 4), [3, 6, 9, 12, 2, 15, 5])
    )
    assert holds_for_all(recordings)
    assert described["replayed"] >= 1  # of the size 15, at least


def test_the_object_and_the_variables_are_guarded():
    def scaled(module, x):
        return x @ module.w * module.scale

    class Scaled(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.scale = tf.Variable(floats(4, 3)), 2.0

        def __call__(self, x):
            return scaled(self, x)

    def program(module):
        for x in batches(floats(2, 4)):
            yield plain(module(x))
        module.scale = 3.0
        for x in batches(floats(2, 4)):
            yield plain(module(x))
        module.w.assign(-module.w)
        for x in batches(floats(2, 4)):
            yield plain(module(x))
        module.w = tf.Variable(floats(4, 2, seed=3))
        for x in batches(floats(2, 4)):
            yield plain(module(x))

    expected = list(program(Scaled()))
    with fastops.accelerated():
        module = Scaled()
        assert list(program(module)) == expected
        assert told_of(module)["replayed"] >= 4 * (len(SIZES) - 4)


def test_tapes_record_the_replays():
    module = Reading(lambda x, w: tf.nn.silu(x @ w) + tf.reduce_sum(x, axis=0)[:3])

    def gradients(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = module(x)
        return y, tape.gradient(y, [x, module.w])

    inputs = list(batches(floats(2, 4)))
    expected = [plain(gradients(x)) for x in inputs]
    with fastops.accelerated():
        assert [plain(gradients(x)) for x in inputs] == expected
        assert told_of(module)["replayed"] >= len(inputs) - 5


def test_gradients_in_a_call_read_sizes():
    """The gradient of the first row is a sum, unless there is but one row."""

    @fastops.keras.replayable
    class Sloping(tf.Module):
        slope = staticmethod(slope)

        def __init__(self):
            super().__init__()
            self.w = tf.Variable(floats(4, 3, seed=1))

        def __call__(self, x):
            return self.slope(x, self.w)

    sizes = [2, 3, 2, 3, 2, 3, 2, 3, 1, 4, 1]
    _, recordings = replays(Sloping(), batches(floats(2, 4), sizes))
    assert not holds_for_all(recordings)
    assert recordings


def test_shapes_that_a_recorded_call_has_made_are_usual_ones():
    class Keeping(tf.Module):
        def __call__(self, x):
            return x * float(x.shape[-1]), x.shape

    with fastops.accelerated():
        keeping = Keeping()
        for x in batches(floats(2, 4), [2, 3, 2, 3, 2]):
            _, shape = keeping(x)
            assert type(shape) is TensorShape
            assert type(shape._dims) is tuple
            assert shape == x.shape


def test_sizes_are_a_tuple():
    sizes = tuple.__new__(NotedSizes, (2, 3))
    assert sizes == (2, 3)
    assert (2, 3) == sizes  # noqa: SIM300
    assert sizes + (4,) == (2, 3, 4)  # noqa: RUF005
    assert (4,) + sizes == (4, 2, 3)  # noqa: RUF005
    assert [*sizes] == [2, 3]
    assert sizes[1:] == (3,)
    assert 3 in sizes
    assert hash(sizes) == hash((2, 3))
    assert isinstance(sizes, tuple)
    assert len(sizes) == 2
    assert repr(sizes) == "(2, 3)"


STATEMENTS = (
    # These do not read the number of rows of `a`; `b` has as many rows or others.
    *("a = a @ self.w + self.b", "a = tf.nn.silu(a)", "a = a * 2.0", "a = a + b", "a = -a"),
    *("a = a - tf.reduce_mean(a, 0)", "a = a - tf.reduce_mean(a)", "a = tf.nn.softmax(a)"),
    *(
        "a = a * float(a.shape[-1])",
        "a = a[:3]",
        "a = a[-2:]",
        "a = a[1:]",
        "a = tf.tile(a, [2, 1])",
    ),
    *("a = tf.concat([a, b], 0)", "a = tf.reshape(a, tf.shape(a))", "a = a + tf.zeros_like(a)"),
    *("a = a / tf.cast(tf.shape(a)[0], tf.float32)", "a = a + tf.ones(tf.shape(a))"),
    *("a = tf.where(a > 0.0, a, b[:1])", "a = tf.where(a > 0.0, a, -a)", "a = tf.cumsum(a)"),
    *("a = tf.reverse(a, [0])", "a = tf.pad(a, [[0, 1], [0, 0]])", "a = tf.gather(a, [0])"),
    *("a = tf.matmul(a, b, transpose_b=True) @ b", "a = tf.boolean_mask(a, a[:, 0] > 0.0)"),
    *("a = keras.ops.add(a, self.b)", "a = keras.ops.add(a, b)", "a = self.dense(a)"),
    *("a = self.norm(a)", "a = a[: tf.minimum(tf.shape(a)[0], 2)]", "a = tf.sort(a, axis=0)"),
    *(
        "a = a * float(a.shape.rank)",
        "a = tf.eye(tf.shape(a)[0]) @ a",
        "a = tf.expand_dims(a, 1)[:, 0]",
    ),
    "a = tf.nn.embedding_lookup(self.w, tf.range(tf.minimum(tf.shape(a)[0], 4)))",
    "a = tf.math.unsorted_segment_sum(a, tf.zeros(tf.shape(a)[:1], tf.int32), 2)",
    # These do.
    *("a = a * float(a.shape[0])", "a = a if a.shape[0] > 3 else -a", "a = tf.reshape(a, a.shape)"),
    *("a = a if a.shape == b.shape else -a", "a = a if len(a) != 2 else a * 3.0"),
    *("a = a + tf.zeros(a.shape)", "a = tf.add_n([a] * (min(a.shape[0], 3) + 1))"),
    *("a = tf.stack([row * 2.0 for row in a]) if len(a) else a", "a = tf.eye(a.shape[0]) @ a"),
    *("a = a * float([9, *a.shape][1])", "a = a * float(sorted(a.shape.as_list())[-1])"),
    *("a = a * float(tf.transpose(a).shape[1])", "a = a * float(a.shape.num_elements())"),
    *("a = tf.tile(a, [int(min(a.shape[0], 2)), 1])", "a = tf.unstack(a)[-1] + b"),
)
"""Statements of a call with the arguments `a` and `b`, of four columns each."""


def class_of(base, statements):
    """Return a class of a user's module whose calls run statements."""
    module = types.ModuleType("of_a_user_with_batches")
    vars(module).update(base=base, tf=tf, np=np, keras=keras, __file__="of_a_user.py")
    sys.modules[module.__name__] = module
    lines = [
        "class Drawn(base):",
        "    def __init__(self):",
        "        super().__init__()",
        "        values = np.linspace(-1.0, 1.0, 16, dtype=np.float32).reshape(4, 4)",
        "        self.w, self.b = tf.Variable(values), tf.Variable(values[0])",
        "        self.dense = keras.layers.Dense(4, activation='tanh')",
        "        self.norm = keras.layers.LayerNormalization()",
        "        self.dense.build((None, 4))",
        "        self.norm.build((None, 4))",
        f"    def {'__call__' if base is tf.Module else 'call'}(self, a, b):",
        *(f"        {statement}" for statement in statements),
        "        return a",
    ]
    exec(compile("\n".join(lines), module.__file__, "exec"), vars(module))
    return module.Drawn


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.sampled_from([tf.Module, L.Layer]),
    st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from([None, 1, 2, 5])), min_size=8, max_size=8
    ),
    st.booleans(),
)
def test_any_code(base, statements, sizes, tape):
    keras.utils.set_random_seed(1)
    drawn = class_of(base, statements)()

    def call(size, other):
        a, b = floats(size, 4), floats(size if other is None else other, 4, seed=1)
        if not tape:
            return drawn(a, b)
        with tf.GradientTape() as recorded:
            recorded.watch(a)
            y = drawn(a, b)
        slopes = recorded.gradient(y, [a, drawn.w, drawn.b])
        return y, [None if slope is None else tf.convert_to_tensor(slope) for slope in slopes]

    wants = [outcome(call, *pair) for pair in sizes]
    with fastops.accelerated():
        assert [outcome(call, *pair) for pair in sizes] == wants
