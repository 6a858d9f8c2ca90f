"""Replayed functions are recorded once, then compared with TensorFlow's own."""

import gc
import os
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from calls import find, frames, outcome
from memory import tensors_left
from support import Failure, assert_same, difference, floats
from tensorflow.python.eager import context
from tensorflow.python.framework import config, op_callbacks
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_array_ops, gen_manip_ops
from tensorflow.python.ops.numpy_ops import np_dtypes

import fastops
from fastops._core.reasons import text_of
from fastops._core.record import OpRecord
from fastops._install.replay.functions import FUNCTIONS
from fastops._install.replay.replayed import Replayed
from fastops._specialize.recording import hooks

pytestmark = [pytest.mark.usefixtures("fresh", "installed")]


@pytest.fixture(scope="module")
def stock():
    """Return TensorFlow's own functions by name."""
    assert not fastops.is_installed()
    names = [f"{space}.{name}" for space, names in FUNCTIONS.items() for name in names.split()]
    return {name: find(name) for name in names}


@pytest.fixture(scope="module")
def installed(stock):
    with fastops.accelerated():
        yield


def t(*shape, dtype=np.float32, seed=0):
    return tf.constant(floats(*shape, dtype=dtype, seed=seed))


def learn(function, *args, **kwargs):
    """Make the calls after which later ones of this signature are replayed by kernels alone."""
    for _ in range(5):
        result = function(*args, **kwargs)
    return result


def assert_replayed(function, *args, **kwargs):
    """Assert that a call enters no Python code of TensorFlow; return its result."""
    assert frames(function, args, kwargs) == []
    return function(*args, **kwargs)


def replayed(name):
    """Return a new stand-in for a function, without recordings."""
    return Replayed(find(name).original, find(name).passed, (), find(name).settings)


# ---------------------------------------------------------------------------------------------
# The same results
# ---------------------------------------------------------------------------------------------

M, X = (2, 3), (4,)

CALLS = [
    ("tf.tensordot", lambda s: (t(*M, seed=s), t(3, 2, seed=s + 1), 1), {}),
    ("tf.einsum", lambda s: ("ij,kj->ik", t(*M, seed=s), t(*M, seed=s + 1)), {}),
    ("tf.norm", lambda s: (t(*M, seed=s),), {"axis": 1}),
    ("tf.roll", lambda s: (t(*X, seed=s), 1, 0), {}),
    ("tf.repeat", lambda s: (t(*X, seed=s), 2), {}),
    ("tf.eye", lambda s: (3,), {}),
    ("tf.meshgrid", lambda s: (t(*X, seed=s), t(3, seed=s)), {"indexing": "ij"}),
    ("tf.complex", lambda s: (t(*X, seed=s), t(*X, seed=s + 1)), {}),
    ("tf.clip_by_norm", lambda s: (t(*M, seed=s), 0.5), {}),
    ("tf.clip_by_global_norm", lambda s: ([t(*M, seed=s), t(*X, seed=s)], 0.5), {}),
    ("tf.unique", lambda s: (t(*X, seed=s, dtype=np.int32),), {}),
    ("tf.nn.moments", lambda s: (t(*M, seed=s), [0]), {}),
    ("tf.nn.silu", lambda s: (t(*M, seed=s),), {}),
    ("tf.nn.gelu", lambda s: (t(*M, seed=s),), {"approximate": True}),
    ("tf.nn.conv1d", lambda s: (t(1, 8, 2, seed=s), t(3, 2, 4, seed=s), 1, "SAME"), {}),
    (
        "tf.nn.softmax_cross_entropy_with_logits",
        lambda s: (tf.nn.softmax(t(*M, seed=s)), t(*M, seed=s + 1)),
        {},
    ),
    ("tf.linalg.expm", lambda s: (t(3, 3, seed=s),), {}),
    ("tf.linalg.normalize", lambda s: (t(*M, seed=s),), {}),
    ("tf.image.resize", lambda s: (t(4, 4, 3, seed=s), [2, 3]), {}),
    ("tf.image.flip_left_right", lambda s: (t(4, 4, 3, seed=s),), {}),
    ("tf.signal.stft", lambda s: (t(64, seed=s), 16, 8), {}),
    ("tf.signal.hann_window", lambda s: (8,), {}),
    ("tf.strings.substr", lambda s: (tf.constant(["abcd", "efgh"][s % 2]), 1, 2), {}),
    ("tf.random.stateless_normal", lambda s: ([3], tf.constant([s, 2])), {"mean": 1.0}),
    ("tf.random.split", lambda s: (tf.constant([s, 2]),), {}),
    ("tf.experimental.numpy.dot", lambda s: (t(*M, seed=s), t(3, 2, seed=s)), {}),
    ("tf.experimental.numpy.std", lambda s: (t(*M, seed=s),), {"axis": 0}),
    ("tf.experimental.numpy.add", lambda s: (t(*M, seed=s), 1.5), {}),
    ("tf.debugging.assert_near", lambda s: (t(*M, seed=s), t(*M, seed=s)), {}),
]


def test_in_the_replica_of_the_default_strategy():
    def call():
        context = tf.distribute.get_replica_context()
        return tf.norm(t(2, 3), axis=1), tf.nn.silu(t(4)), context.num_replicas_in_sync

    def run():
        return tf.distribute.get_strategy().run(lambda: frames(tf.norm, (t(2, 3),), {"axis": 1}))

    wanted = tf.distribute.get_strategy().run(call)
    learn(call)
    assert run() == []
    assert_same(tf.distribute.get_strategy().run(call), wanted)
    mirrored = tf.distribute.MirroredStrategy(["CPU:0"])
    with mirrored.scope():
        assert frames(tf.norm, (t(2, 3),), {"axis": 1}) != []
    assert_same(mirrored.run(call), wanted)


@pytest.mark.quick
@pytest.mark.parametrize(("name", "arguments", "options"), CALLS, ids=[call[0] for call in CALLS])
def test_other_values_of_the_same_signature(stock, name, arguments, options):
    function = find(name)
    assert type(function).__name__ != "function"
    assert isinstance(function, Replayed)
    for seed in range(5):
        args = arguments(seed)
        want = stock[name](*args, **options)
        assert_same(function(*args, **options), want)
    assert_same(assert_replayed(function, *args, **options), want)


def test_kinds_of_results(stock):
    x = t(*X, dtype=np.int32)
    for name, args in {
        "tf.unique_with_counts": (x,),
        "tf.meshgrid": (x, x),
        "tf.clip_by_global_norm": ([t(*X)], 1.0),
        "tf.debugging.assert_rank_in": (x, [1, 2]),
        "tf.nn.sufficient_statistics": (t(2, 3), [0]),
    }.items():
        function = find(name)
        want = stock[name](*args)
        learn(function, *args)
        got = assert_replayed(function, *args)
        assert type(got) is type(want), name
        if isinstance(want, tuple | list):
            assert [type(value) for value in got] == [type(value) for value in want], name
        assert not difference(got, want), name


def test_an_argument_that_is_returned_is_the_same_object():
    x = t(*X)
    learn(tf.saturate_cast, x, tf.float32)
    assert (tf.saturate_cast(x, tf.float32) is x) is (
        find("tf.saturate_cast").original(x, tf.float32) is x
    )


def test_one_tensor_twice_and_two_tensors_have_different_signatures(stock):
    x, y = t(2, 2), t(2, 2, seed=1)
    learn(tf.tensordot, x, x, 1)
    assert_same(tf.tensordot(x, y, 1), stock["tf.tensordot"](x, y, 1))
    learn(tf.tensordot, x, y, 1)
    assert_same(assert_replayed(tf.tensordot, y, x, 1), stock["tf.tensordot"](y, x, 1))


def test_other_shapes_dtypes_and_numbers(stock):
    for dtype, shape, shift in [
        (np.float32, (4,), 1),
        (np.float32, (5,), 1),
        (np.int32, (4,), 1),
        (np.float32, (4,), 2),
        (np.float32, (4,), True),
        (np.float32, (4,), -1),
    ]:
        x = t(*shape, dtype=dtype)
        want = outcome(stock["tf.roll"], (x, shift, 0), {})
        for _ in range(3):
            assert not difference(outcome(tf.roll, (x, shift, 0), {}), want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, float])
def test_classes_of_scalars_as_dtypes(stock, dtype):
    labels = tf.constant([2, 0, 1])
    for name, arguments in [
        ("tf.eye", (3,)),
        ("tf.saturate_cast", (labels,)),
        ("tf.experimental.numpy.ones_like", (labels,)),
    ]:
        function = find(name)
        want = outcome(stock[name], arguments, {"dtype": dtype})
        learn(outcome, function, arguments, {"dtype": dtype})
        got = assert_replayed(outcome, function, arguments, {"dtype": dtype})
        assert not difference(got, want)


# ---------------------------------------------------------------------------------------------
# Composite tensors
# ---------------------------------------------------------------------------------------------


def sparse(seed):
    dense = floats(3, 4, seed=seed)
    dense[:, seed % 4] = 0
    return tf.sparse.from_dense(dense)


def ragged(seed, rows=(2, 0, 1)):
    return tf.RaggedTensor.from_row_lengths(t(sum(rows), seed=seed), list(rows))


def words(seed):
    return tf.constant([["a b c", "d"], ["e", "f g h"], ["", "i j"]][seed % 3])


def state(value):
    """Return the content of a composite tensor, or of a list of composite tensors."""
    if isinstance(value, list | tuple):
        return [state(item) for item in value]
    if isinstance(value, tf.Tensor) or not hasattr(value, "__dict__"):
        return value
    return [type(value).__name__, *((name, state(item)) for name, item in vars(value).items())]


COMPOSITE = [
    ("tf.sparse.add", lambda s: (sparse(s), sparse(s + 1))),
    ("tf.sparse.transpose", lambda s: (sparse(s),)),
    ("tf.sparse.from_dense", lambda s: (tf.constant([[0, s, 2], [3, 0, 0]]),)),
    ("tf.sparse.slice", lambda s: (sparse(s), [0, 0], [2, 2])),
    ("tf.sparse.concat", lambda s: (0, [sparse(s), sparse(s + 1)])),
    ("tf.sparse.retain", lambda s: (sparse(0), tf.constant(floats(9, seed=s) > 0))),
    ("tf.sparse.eye", lambda s: (3,)),
    ("tf.sparse.sparse_dense_matmul", lambda s: (sparse(s), t(4, 2))),
    ("tf.ragged.stack", lambda s: ([ragged(s), ragged(s + 1)],)),
    ("tf.ragged.range", lambda s: (tf.constant([s, 2, 0]),)),
    ("tf.ragged.boolean_mask", lambda s: (t(2, 3, seed=s), t(2, 3, seed=s) > 0)),
    ("tf.strings.split", lambda s: (words(s),)),
    ("tf.strings.unicode_decode", lambda s: (words(s), "UTF-8")),
    ("tf.reduce_sum", lambda s: (ragged(s), 1)),
    ("tf.add", lambda s: (ragged(s), 1.5)),
    ("tf.concat", lambda s: ([ragged(s), ragged(s + 2)], 0)),
    ("tf.RaggedTensor.to_tensor", lambda s: (ragged(s, [(2, 0, 1), (1, 1, 1)][s % 2]),)),
    ("tf.RaggedTensor.__mul__", lambda s: (ragged(s), ragged(s + 1))),
    ("tf.RaggedTensor.__getitem__", lambda s: (ragged(s), 0)),
    ("tf.sets.union", lambda s: (tf.constant([[s, 2]]), tf.constant([[2, 3]]))),
]


@pytest.mark.parametrize(("name", "arguments"), COMPOSITE, ids=[call[0] for call in COMPOSITE])
def test_composite_tensors(name, arguments):
    function = find(name)
    for seed in (0, 1, 2, 0, 1, 2, 0, 1, 2):
        args = arguments(seed)
        want = function.original(*args)
        got = function(*args)
        assert type(got) is type(want)
        assert not difference(state(got), state(want))
    assert_same(
        tf.nest.flatten(assert_replayed(function, *args), expand_composites=True),
        tf.nest.flatten(want, expand_composites=True),
    )


def test_a_composite_with_an_unknown_attribute():
    one, other = sparse(0), sparse(0)
    learn(tf.sparse.transpose, one)
    other.remark = object()
    got = tf.sparse.transpose(other)
    assert_same(got.values, tf.sparse.transpose.original(other).values)
    with_rowids = tf.RaggedTensor.from_value_rowids(t(3), [0, 0, 2])
    for _ in range(4):
        got = tf.reduce_sum(with_rowids, 1)
        assert_same(got, tf.reduce_sum.original(with_rowids, 1))


# ---------------------------------------------------------------------------------------------
# Decisions by values
# ---------------------------------------------------------------------------------------------


def test_decisions_by_values(stock):
    for lengths in ([1, 0, 2], [1, 0, 2], [2, 1, 0], [1, 0, 2], [4, 4, 4], [0, 0, 0], [1, 3, 2]):
        lengths = tf.constant(lengths)
        assert_same(tf.sequence_mask(lengths), stock["tf.sequence_mask"](lengths))
        x, repeats = t(3), lengths
        assert_same(tf.repeat(x, repeats), stock["tf.repeat"](x, repeats))
        bins = lengths
        assert_same(tf.math.bincount(bins), stock["tf.math.bincount"](bins))


def test_assertions_that_hold_and_then_do_not():
    x, y = t(3), t(3, seed=1)
    learn(tf.debugging.assert_equal, x, x + 0)
    assert assert_replayed(tf.debugging.assert_equal, y, y + 0) is None
    want = outcome(find("tf.assert_equal").original, (x, y), {})
    assert isinstance(want, Failure)
    for _ in range(3):
        assert not difference(outcome(tf.debugging.assert_equal, (x, y), {}), want)
    assert assert_replayed(tf.debugging.assert_equal, x, x + 0) is None


def test_sizes_that_depend_on_values(stock):
    for values in ([0, 1, 0, 2], [1, 1, 0, 2], [0, 0, 0, 0], [1, 1, 1, 1], [3, 1, 0, 2]):
        x = tf.constant(values)
        for name in ("tf.experimental.numpy.nonzero", "tf.experimental.numpy.count_nonzero"):
            assert_same(find(name)(x), stock[name](x))
        condition = x > 0
        name = "tf.experimental.numpy.compress"
        assert_same(find(name)(condition, t(4)), stock[name](condition, t(4)))


def test_more_decisions_than_recordings_are_kept(stock):
    function = replayed("tf.sequence_mask")
    for longest in [*range(1, 9), *range(1, 9)]:
        lengths = tf.constant([0, longest])
        assert_same(function(lengths), stock["tf.sequence_mask"](lengths))
    assert function.describe()["replayed"] == 1


# ---------------------------------------------------------------------------------------------
# Gradients
# ---------------------------------------------------------------------------------------------

DIFFERENTIABLE = [
    "tf.tensordot", "tf.einsum", "tf.norm", "tf.roll", "tf.repeat", "tf.clip_by_norm",
    "tf.nn.moments", "tf.nn.silu", "tf.nn.gelu", "tf.nn.conv1d",
    "tf.nn.softmax_cross_entropy_with_logits", "tf.linalg.expm", "tf.image.resize",
    "tf.experimental.numpy.dot", "tf.experimental.numpy.std",
]  # fmt: skip


def _gradients(function, args, options):
    sources = [arg for arg in args if isinstance(arg, tf.Tensor)]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(sources)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = function(*args, **options)
        first = tape.gradient(result, sources)
    return first, outer.gradient(first, sources)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(stock, name):
    (arguments, options), *_ = [(a, o) for n, a, o in CALLS if n == name]
    with fastops.accelerated(exclude=["*"]):
        want = [_gradients(stock[name], arguments(seed), options) for seed in range(3)]
    for seed in range(3):
        got = _gradients(find(name), arguments(seed), options)
        assert_same(got, want[seed])


def test_custom_gradients_are_kept(stock):
    # The gradient of the inner ops would differ in some bits, or not exist.
    x = t(*M)
    learn(tf.nn.silu, x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.silu(x)
    assert frames(tf.nn.silu, (x,), {}) == []
    with tf.GradientTape() as stock_tape:
        stock_tape.watch(x)
        z = stock["tf.nn.silu"](x)
    assert_same(tape.gradient(y, x), stock_tape.gradient(z, x))


def test_forward_derivatives(stock):
    x, tangent = t(*M), t(*M, seed=3)

    def derivative(function):
        with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
            y = function(x, axis=1)
        return accumulator.jvp(y)

    learn(tf.norm, x, axis=1)
    assert_same(derivative(tf.norm), derivative(stock["tf.norm"]))


# ---------------------------------------------------------------------------------------------
# Fallbacks
# ---------------------------------------------------------------------------------------------


def test_other_arguments(stock):
    v, a, s = tf.Variable(floats(2, 2)), floats(2, 2), tf.sparse.eye(2)
    r = tf.ragged.constant([[1.0], [2.0, 3.0]])
    for args in ((v, v, 1), (a, t(2, 2), 1), (s, t(2, 2), 1), (r, t(2, 2), 1), (None, 1, 2), ()):
        want = outcome(stock["tf.tensordot"], args, {})
        for _ in range(3):
            assert not difference(outcome(tf.tensordot, args, {}), want)
    first, second = floats(2, 2), floats(2, 2, seed=1)
    for array in (first, first, first, second):
        assert_same(tf.tensordot(array, t(2, 2), 1), stock["tf.tensordot"](array, t(2, 2), 1))


def test_lists_of_tensors_and_mutable_arguments(stock):
    shape = [2, 3]
    x = t(4, 4, 3)
    learn(tf.image.resize, x, shape)
    shape[0] = 3
    assert_same(tf.image.resize(x, shape), stock["tf.image.resize"](x, shape))
    axes = [0]
    learn(tf.reduce_logsumexp, t(*M), axes)
    axes[0] = 1
    assert_same(tf.reduce_logsumexp(t(*M), axes), stock["tf.reduce_logsumexp"](t(*M), axes))


def test_functions_with_effects_are_refused(stock):
    def draws(shape):
        return tf.raw_ops.RandomUniform(shape=shape, dtype=tf.float32, seed=1, seed2=2)

    def unknown(x):
        return (x + 1, object())

    for inner, argument in ((draws, tf.constant([2])), (unknown, t(2))):
        function = Replayed(inner, find("tf.roll").passed)
        for _ in range(4):
            function(argument)
        known = function.describe()
        assert (known["replayed"], known["refused"]) == (0, 1), inner.__name__
        assert list(known["reasons"].values()) == [1]


def test_code_that_a_collection_runs_is_not_recorded():
    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            tf.raw_ops.RandomUniform(shape=[2], dtype=tf.float32, seed=1, seed2=2)

    def collecting(x):
        gc.set_threshold(1)
        assert [[] for _ in range(9)]
        gc.set_threshold(*threshold)
        return x + 1

    threshold = gc.get_threshold()
    function = Replayed(collecting, find("tf.roll").passed)
    for _ in range(5):
        gc.collect()
        Garbage()
        function(t(3))
    known = function.describe()
    assert (known["replayed"], known["reasons"]) == (1, {})
    assert gc.isenabled()


def test_replays_share_prepared_ops():
    def records():
        return sum(type(one) is OpRecord for one in gc.get_objects())

    function = replayed("tf.roll")
    learn(function, t(3), 1, 0)
    before = records()
    for shift in range(2, 12):
        learn(function, t(3), shift, 0)
    assert function.describe()["replayed"] == 11
    assert records() == before


def test_a_function_that_is_refused_often_is_no_longer_recorded():
    calls = []

    def unknown(number):
        calls.append(number)
        return {number}

    function = Replayed(unknown, find("tf.roll").passed)
    for number in range(40):
        for _ in range(3):
            assert function(number) == {number}
    assert function.describe()["refused"] == 8
    assert len(calls) == 120


def test_signatures_that_never_come_back_are_dropped(stock):
    function = replayed("tf.roll")
    for shift in range(700):
        function(t(3), shift, 0)
    known = function.describe()
    assert known["replayed"] == 0
    assert known["seen"] == 256


def test_returned_constants_do_not_share_buffers(stock):
    results = [tf.signal.hann_window(4) for _ in range(5)]
    assert_same(results, [stock["tf.signal.hann_window"](4)] * 5)
    assert frames(tf.signal.hann_window, (4,), {}) == []
    assert len({id(result) for result in results}) == 5
    addresses = {tf.experimental.dlpack.to_dlpack(result) is None for result in results}
    assert addresses == {False}


def test_caches_are_not_reported_as_leaks():
    def calls():
        for _ in range(5):
            assert tf.constant(1.0, shape=[2, 5]).shape == (2, 5)  # returns a constant
            assert tf.roll(t(2, 5), 1, 0).shape == (2, 5)  # has constants as inputs
            assert tf.repeat(t(5), tf.constant(2)).shape == (10,)  # Python reads a value

    before = tensors_left()
    calls()
    assert tensors_left() == before
    assert_replayed(tf.constant, 1.0, shape=[2, 5])


def test_graphs_and_symbolic_tensors(stock):
    x = t(*M)
    learn(tf.norm, x)
    traced = tf.function(lambda x: tf.norm(x))
    assert_same(traced(x), stock["tf.norm"](x))
    assert any(op.type == "Sqrt" for op in traced.get_concrete_function(x).graph.get_operations())


# ---------------------------------------------------------------------------------------------
# Random numbers
# ---------------------------------------------------------------------------------------------


def _sequence(namespace, seed):
    """Return the numbers that a program draws, from replayed and other functions in turn."""
    x, image, images = t(4), tf.abs(t(4, 4, 3)), t(1, 9, 9, 1)
    classes, box = tf.constant([[1], [2]], tf.int64), tf.constant([[[0.1, 0.1, 0.9, 0.9]]])
    drawn = []
    if seed is not None:
        tf.random.set_seed(seed)
    for step in range(7):
        drawn.append(namespace["tf.nn.dropout"](x, 0.5))
        drawn.append(namespace["tf.random.truncated_normal"]([3], seed=None if step % 2 else 5))
        drawn.append(tf.random.normal([2]))
        drawn.append(namespace["tf.random.shuffle"](x))
        drawn.append(namespace["tf.image.random_brightness"](image, 0.2))
        drawn.append(namespace["tf.random.gamma"]([2], 0.5, seed=step % 3))
        drawn.append(namespace["tf.random.categorical"](t(2, 3), 4))
        drawn.append(namespace["tf.random.poisson"]([2], 3.0))
        drawn.append(namespace["tf.image.random_flip_left_right"](image, seed=3))
        drawn.append(namespace["tf.image.random_crop"](image, [2, 2, 3]))
        drawn.append(namespace["tf.experimental.numpy.random.randn"](3))
        for sampler in ("uniform", "log_uniform"):
            sample = namespace[f"tf.random.{sampler}_candidate_sampler"]
            drawn.append(sample(classes, 1, 4, True, 9, seed=None if step % 2 else 5))
        sample = namespace["tf.random.fixed_unigram_candidate_sampler"]
        drawn.append(sample(classes, 1, 4, True, 9, unigrams=[1.0] * 9))
        drawn.append(namespace["tf.random.all_candidate_sampler"](classes, 1, 9, True))
        # This function takes seeds but draws nothing.
        hits = namespace["tf.nn.compute_accidental_hits"]
        drawn.append(hits(classes, tf.constant([1, 3], tf.int64), 1, seed=step or None))
        for pool in ("avg", "max"):
            pooled = namespace[f"tf.nn.fractional_{pool}_pool"]
            drawn.append(pooled(images, [1.0, 1.4, 1.4, 1.0], seed=5 + step % 2))
        sample = namespace["tf.image.sample_distorted_bounding_box"]
        drawn.append(sample([90, 90, 3], box, seed=5 + step % 2))
    return drawn


@pytest.mark.parametrize("seed", [7, 0])
def test_sequences_of_random_numbers(stock, seed):
    with_install = {name: find(name) for name in stock}
    for _ in range(3):
        want = _sequence(stock, seed)
        got = _sequence(with_install, seed)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other)
    assert find("tf.nn.dropout").describe()["replayed"] > 0
    for name in (
        *("random.gamma", "random.uniform_candidate_sampler", "random.all_candidate_sampler"),
        *(
            "nn.compute_accidental_hits",
            "nn.fractional_max_pool",
            "image.sample_distorted_bounding_box",
        ),
    ):
        assert find(f"tf.{name}").describe()["replayed"] > 0, name


def test_unseeded_numbers_differ():
    tf.random.set_seed(1)
    context.context()._seed = None  # as in a new process
    classes, box = tf.constant([[1], [2]], tf.int64), tf.constant([[[0.1, 0.1, 0.9, 0.9]]])
    for function, *args in (
        (tf.nn.dropout, tf.ones([64]), 0.5),
        (tf.random.shuffle, tf.range(64)),
        (tf.random.categorical, tf.zeros([1, 64]), 64),
        (tf.random.uniform_candidate_sampler, classes, 1, 64, True, 900),
        (tf.nn.fractional_max_pool, tf.random.normal([1, 64, 64, 1]), [1.0, 1.4, 1.4, 1.0]),
        (tf.image.sample_distorted_bounding_box, tf.constant([900, 900, 3]), box),
    ):
        drawn = [tf.nest.flatten(function(*args))[0].numpy().tobytes() for _ in range(8)]
        assert len(set(drawn)) == 8
        assert frames(function, tuple(args), {}) == []


FLIPS = ["tf.image.random_flip_left_right", "tf.image.random_flip_up_down"]


def learn_branches(function, *args, **kwargs):
    """Make calls until all branches of this signature are recorded."""
    before = function.describe()["replayed"]
    tf.random.set_seed(1)
    for _ in range(200):
        function(*args, **kwargs)
        if function.describe()["replayed"] > before:
            return
    raise AssertionError("a branch is missing")


def _drawn(function, *args, seed=7, times=24, **kwargs):
    tf.random.set_seed(seed)
    return [function(*args, **kwargs) for _ in range(times)]


@pytest.mark.parametrize("name", FLIPS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int64", "bool"])
def test_flips_of_images(stock, name, dtype):
    function = replayed(name)
    for shape in ((3, 5, 3), (1, 1, 1), (4, 2, 2)):
        image = tf.cast(t(*shape) * 9, dtype)
        learn_branches(function, image)
        for seed in (7, 0, 12345):
            want = _drawn(stock[name], image, seed=seed)
            assert_same(_drawn(function, image, seed=seed), want)
        assert frames(function, (image,), {}) == []
        other = tf.cast(t(*shape, seed=1) * 9, dtype)
        assert_same(_drawn(function, other), _drawn(stock[name], other))


@pytest.mark.parametrize("name", FLIPS)
def test_flips_with_seeds_of_their_own(stock, name):
    function, image = replayed(name), t(3, 5, 3)
    learn_branches(function, image, seed=3)
    # TensorFlow makes later draws of a pair of seeds.
    assert frames(function, (image,), {"seed": 3}) == ["wrapper", "random_uniform"]
    learn_branches(function, image)

    def draw(one):  # other random functions go on in the same sequences
        tf.random.set_seed(2)
        return [(one(image, seed=3), tf.random.normal([2]), one(image)) for _ in range(24)]

    assert_same(draw(function), draw(stock[name]))


def test_a_flip_returns_its_argument_or_a_new_tensor():
    function, image = replayed(FLIPS[0]), t(3, 5, 3)
    learn_branches(function, image)
    results = [function(image) for _ in range(600)]
    kept = sum(result is image for result in results)
    assert 200 < kept < 400  # without a seed, too, half of the images are flipped


@pytest.mark.parametrize("name", FLIPS)
@pytest.mark.parametrize("persistent", [False, True])
def test_gradients_of_flips(stock, name, persistent):
    def derive(function):
        gradients = []
        tf.random.set_seed(5)
        for _ in range(12):
            with tf.GradientTape(persistent=persistent) as tape:
                tape.watch(image)
                result = function(image) * weights
            gradients.append((result, tape.gradient(result, image)))
            with tf.GradientTape() as tape:
                result = function(variable)
            gradients.append((result, tape.gradient(result, variable)))
        return gradients

    image, weights, variable = t(3, 4, 1), t(3, 4, 1, seed=1), tf.Variable(t(3, 4, 1))
    function = replayed(name)
    learn_branches(function, image)
    for _ in range(12):
        derive(function)
    assert function.describe()["replayed"] == 2
    assert_same(derive(function), derive(stock[name]))


def test_flips_in_traced_functions_and_errors(stock):
    name = FLIPS[0]
    function, image = replayed(name), t(3, 4, 1)
    learn_branches(function, image)
    traced = [tf.function(lambda image, one=one: one(image)) for one in (function, stock[name])]
    tf.random.set_seed(4)
    got = [traced[0](image) for _ in range(9)]
    tf.random.set_seed(4)
    assert_same(got, [traced[1](image) for _ in range(9)])
    for bad in (t(3), tf.constant("a"), None, t(2, 2, 2, 2, 2)):
        want = outcome(stock[name], (bad,), {})
        got = outcome(function, (bad,), {})
        assert isinstance(want, Failure)
        assert got == want


def _walk(x):
    """Draw until a number is large: three branches, with one to three draws."""
    steps = [tf.random.uniform([])]
    if steps[-1] < 0.4:
        return x + steps[-1]
    steps.append(tf.random.normal([]))
    if steps[-1] > 0.1:
        return tf.negative(x) * steps[0], steps[1]
    return [x, tf.random.truncated_normal([2])]


def _nested(x):
    first = tf.random.uniform([]) < 0.5
    second = tf.random.uniform([]) < 0.5
    if second:
        return (x + 1 if first else x + 2), tf.random.normal([1])
    return (x + 3 if first else x + 4) if first else x + 5


@pytest.mark.parametrize("walk", [_walk, _nested])
def test_several_branches(walk):
    function = Replayed(walk, find("tf.roll").passed)
    x = t(3)
    learn_branches(function, x)
    (recording,) = function.recordings()
    assert recording["state"] == "active"
    assert len(recording["variants"]) == (3 if walk is _walk else 4)
    for seed in range(4):
        want = _drawn(walk, x, seed=seed, times=40)
        assert_same(_drawn(function, x, seed=seed, times=40), want)
    assert frames(function, (x,), {}) == []
    x = t(3, seed=5)
    assert_same(_drawn(function, x, times=40), _drawn(walk, x, times=40))


def test_branches_behind_a_value(stock):
    """The values that Python reads before it draws are compared as ever."""

    def walk(x):
        if x[0] > 0:
            return x if tf.random.uniform([]) < 0.5 else -x
        return tf.exp(x)

    function, up, down = Replayed(walk, find("tf.roll").passed), tf.ones([2]), -tf.ones([2])
    learn_branches(function, up)
    for x in (up, down, up, down, up):
        want = _drawn(walk, x)
        assert_same(_drawn(function, x), want)
    assert frames(function, (up,), {}) == []
    assert frames(function, (down,), {}) == []


def test_branches_that_never_come(stock):
    def walk(x):
        return x + 1 if tf.random.uniform([]) < 2.0 else x

    function, x = Replayed(walk, find("tf.roll").passed), t(3)
    want = _drawn(walk, x, times=40)
    assert_same(_drawn(function, x, times=40), want)
    known = function.describe()
    assert (known["replayed"], known["refused"]) == (0, 1)
    assert known["reasons"] == {text_of("branch_missing"): 1}
    assert function.recordings()[0]["reason"] == text_of("branch_missing")


def test_too_many_branches():
    def walk(x):
        for place in range(4):
            if tf.random.uniform([]) < 0.5:
                x = x + float(place)
        return x

    function, x = Replayed(walk, find("tf.roll").passed), t(3)
    want = _drawn(walk, x, times=60)
    assert_same(_drawn(function, x, times=60), want)
    assert function.describe()["replayed"] == 0


@pytest.mark.parametrize(
    "read",
    [
        lambda drawn: bool(tf.cast(drawn * 2, tf.int32) > 0) if drawn.numpy() > 0 else None,
        lambda drawn: bool(tf.cast(drawn * 2, tf.bool)),
        lambda drawn: float(drawn) < 0.5,
        lambda drawn: bool(tf.reduce_all(drawn < 0.5)),
        lambda drawn: (tf.stack([drawn, drawn]) < 0.5).numpy().any(),
    ],
)
def test_other_values_that_follow_random_numbers_are_refused(read):
    def walk(x):
        return x + 1 if read(tf.random.uniform([])) else x

    function, x = Replayed(walk, find("tf.roll").passed), t(3)
    want = _drawn(walk, x)
    assert_same(_drawn(function, x), want)
    known = function.describe()
    assert (known["replayed"], list(known["reasons"])) == (0, [text_of("read_after_effect")])


def test_a_branch_whose_code_changes_draws_once(monkeypatch, stock):
    name = FLIPS[0]
    function, image = replayed(name), t(3, 4, 1)
    learn_branches(function, image)
    reverse = gen_array_ops.reverse_v2
    monkeypatch.setattr(
        gen_array_ops, "reverse_v2", lambda *args, **kwargs: reverse(*args, **kwargs)
    )
    want = _drawn(stock[name], image)
    assert_same(_drawn(function, image), want)
    monkeypatch.undo()
    assert_same(_drawn(function, image), want)
    assert frames(function, (image,), {}) == []


def test_errors_in_branches():
    def walk(x, rows):
        drawn = tf.random.uniform([])
        if drawn < 0.5:
            return tf.nn.embedding_lookup(x, rows)
        return x * drawn

    function = Replayed(walk, find("tf.roll").passed)
    x, rows, bad = t(3), tf.constant([0, 1]), tf.constant([0, 9])
    learn_branches(function, x, rows)

    def draw(one):
        tf.random.set_seed(3)
        return [outcome(one, (x, choice), {}) for choice in (rows, bad) * 12]

    want, got = draw(walk), draw(function)
    assert [type(one) for one in got] == [type(one) for one in want]
    assert any(isinstance(one, Failure) for one in want)
    for one, other in zip(got, want, strict=True):
        if isinstance(other, Failure):
            assert one.kind == other.kind
        else:
            assert_same(one, other)


def test_stateful_ops_run_in_each_call():
    """Stateful ops run whatever their inputs are, and even if their results are not used."""
    raw, size = tf.raw_ops, tf.constant([32])

    def look(x):
        raw.Assert(condition=tf.constant(True), data=[x])
        raw.CheckNumerics(tensor=tf.constant(1.0), message="constant")
        drawn = (
            raw.RandomUniform(shape=size, dtype=tf.float32),
            raw.RandomShuffle(value=tf.range(64)),
            raw.NonDeterministicInts(shape=size),
            raw.FractionalMaxPool(
                value=tf.ones([1, 64, 64, 1]), pooling_ratio=[1.0, 1.4, 1.4, 1.0]
            )[1],
        )
        return drawn, raw.GuaranteeConst(input=x), raw.Timestamp()

    function = Replayed(look, find("tf.roll").passed)
    results = [function(t(2, seed=seed)) for seed in range(6)]
    assert function.describe()["replayed"] == 1
    for place in range(4):
        assert len({drawn[place].numpy().tobytes() for drawn, _, _ in results}) == 6
    for seed, (_, same, _) in enumerate(results):
        assert_same(same, t(2, seed=seed))
    times = [time.numpy() for _, _, time in results]
    assert times == sorted(times)
    fastops.reset_stats()
    function(t(2))
    seen = fastops.stats().ops
    assert {seen[name].direct for name in ("Assert", "CheckNumerics", "RandomShuffle")} == {1}


def test_errors_after_random_numbers(stock):
    def draw(bad):
        x = tf.random.truncated_normal([2])
        return tf.nn.embedding_lookup(x, bad)

    function, rows = Replayed(draw, find("tf.roll").passed), tf.constant([0, 1])
    learn(function, rows)
    assert function.describe()["replayed"] == 1
    tf.random.set_seed(3)
    want = [draw(rows), outcome(draw, (rows + 5,), {}), draw(rows)]
    tf.random.set_seed(3)
    got = [function(rows), outcome(function, (rows + 5,), {}), function(rows)]
    assert isinstance(want[1], Failure)
    assert [type(value) for value in got] == [type(value) for value in want]
    assert got[1].kind == want[1].kind
    assert_same([got[0], got[2]], [want[0], want[2]])


# ---------------------------------------------------------------------------------------------
# Changes between two calls
# ---------------------------------------------------------------------------------------------


def test_op_callbacks_see_every_op():
    x = t(*M)
    learn(tf.norm, x)
    seen = []

    def watch(op_type, *_, **__):
        seen.append(op_type)

    op_callbacks.add_op_callback(watch)
    try:
        tf.norm(x)
    finally:
        op_callbacks.remove_op_callback(watch)
    assert b"Sqrt" in seen or "Sqrt" in seen


def test_settings_of_numpys_functions(stock):
    name = "tf.experimental.numpy.array"
    learn(find(name), 1.5)
    try:
        np_dtypes.set_prefer_float32(True)
        want = stock[name](1.5)
        assert want.dtype == tf.float32
        assert_same(find(name)(1.5), want)
    finally:
        np_dtypes.set_prefer_float32(False)
    assert find(name)(1.5).dtype == tf.float64


def test_a_mock_that_replaces_an_op(monkeypatch):
    x = t(4)
    learn(tf.roll, x, 1, 0)
    calls = []

    def roll(*args, **kwargs):
        calls.append(args)
        return x

    monkeypatch.setattr(gen_manip_ops, "roll", roll)
    assert tf.roll(x, 1, 0) is x
    assert len(calls) == 1
    monkeypatch.undo()
    assert tf.roll(x, 1, 0) is not x


def test_a_handler_registered_later(stock):
    class Meters(tf.experimental.ExtensionType):
        value: tf.Tensor

    x = t(4)
    learn(tf.roll, x, 1, 0)

    def handler(input: Meters, shift, axis, name=None):  # noqa: A002
        return "handled"

    public = stock["tf.roll"]
    tf.experimental.dispatch_for_api(public)(handler)
    try:
        assert tf.roll(Meters(x), 1, 0) == "handled"
        assert_same(tf.roll(x, 1, 0), public(x, 1, 0))
    finally:
        tf.experimental.unregister_dispatch_for(handler)


def test_determinism_and_contexts(stock):
    x, y = t(*M), t(3, 2)
    for _ in range(2):
        learn(tf.tensordot, x, y, 1)
        assert_same(assert_replayed(tf.tensordot, x, y, 1), stock["tf.tensordot"](x, y, 1))
        config.enable_op_determinism()
        try:
            learn(tf.tensordot, x, y, 1)
            assert_same(tf.tensordot(x, y, 1), stock["tf.tensordot"](x, y, 1))
        finally:
            config.disable_op_determinism()


def test_errors_of_kernels_are_tensorflows(stock):
    good, bad = t(3), tf.constant([1.0, np.nan, 2.0])
    learn(tf.debugging.assert_all_finite, good, "here")
    assert_replayed(tf.debugging.assert_all_finite, good, "here")
    want = outcome(stock["tf.debugging.assert_all_finite"], (bad, "here"), {})
    assert isinstance(want, Failure)
    assert not difference(outcome(tf.debugging.assert_all_finite, (bad, "here"), {}), want)


def test_a_call_that_fails_while_it_is_recorded():
    x = t(3)
    function = replayed("tf.roll")
    for _ in range(3):
        got = outcome(function, (x, "nowhere", 0), {})
        assert isinstance(got, Failure)
    assert_hooks_are_down()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_every_exception_ends_the_turn(error):
    raises = []

    def inner(x):
        for one in raises:
            raise one
        return x + 1

    function, x = Replayed(inner, find("tf.roll").passed), t(3)
    function(x)
    raises.append(error)
    with pytest.raises(error):
        function(x)
    raises.clear()
    assert_hooks_are_down()
    learn(function, x)
    assert_replayed(function, x)


@pytest.mark.parametrize("name", ["add_op_callback", "remove_op_callback"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_interrupt_while_hooks_change_ends_the_turn(name, after, monkeypatch):
    original = getattr(op_callbacks, name)
    interrupts = []

    def interrupted(callback):
        if not after and interrupts:
            raise interrupts.pop()
        original(callback)
        if interrupts:
            raise interrupts.pop()

    function, x = Replayed(lambda x: x + 1, find("tf.roll").passed), t(3)
    function(x)
    monkeypatch.setattr(op_callbacks, name, interrupted)
    interrupts.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        function(x)
    assert not interrupts
    assert_hooks_are_down()
    learn(function, x)
    assert_replayed(function, x)


def assert_hooks_are_down():
    assert vars(EagerTensor)["_numpy_internal"] is METHOD
    assert not context.context().op_callbacks
    assert gc.isenabled()
    assert hooks.hang(*[print] * 6)
    assert hooks.take_down(print)


METHOD = vars(EagerTensor)["_numpy_internal"]


def test_the_recorded_call_may_be_the_first(stock):
    function, x = replayed("tf.norm"), t(*M)
    with fastops.options(on_fallback="raise"):
        for _ in range(5):
            assert_same(function(x), stock["tf.norm"](x))
    assert all("callbacks" not in counts.reasons for counts in fastops.stats().ops.values())


# ---------------------------------------------------------------------------------------------
# Threads, memory
# ---------------------------------------------------------------------------------------------


def test_eight_threads(stock):
    inputs = [t(*M, seed=seed) for seed in range(8)]
    wants = [stock["tf.norm"](x, axis=1) for x in inputs]
    masks = [tf.constant([seed, 1]) for seed in range(8)]
    want_masks = [stock["tf.sequence_mask"](x) for x in masks]
    function, mask = replayed("tf.norm"), replayed("tf.sequence_mask")
    problems = []

    def work(i):
        for _ in range(50):
            if difference(function(inputs[i], axis=1), wants[i]):
                problems.append(i)
            if difference(mask(masks[i]), want_masks[i]):
                problems.append(-i)

    threads = [threading.Thread(target=work, args=[i]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert vars(EagerTensor)["_numpy_internal"] is METHOD


def test_several_threads_may_resolve_kernels():
    inputs = [t(*M, seed=seed) for seed in range(8)]

    def work(function, i):
        for _ in range(10):
            function(inputs[i], axis=1)

    for _ in range(100):
        function = replayed("tf.norm")
        threads = [threading.Thread(target=work, args=[function, i]) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_one_call_is_recorded_at_a_time(stock):
    recording, go_on = threading.Event(), threading.Event()

    def slow(x):
        recording.set()
        go_on.wait()
        return x + 1

    go_on.set()
    function, other, x = Replayed(slow, find("tf.roll").passed), replayed("tf.norm"), t(*M)
    function(x)
    recording.clear()
    go_on.clear()
    thread = threading.Thread(target=function, args=[x])
    thread.start()
    try:
        assert recording.wait(60)
        for _ in range(5):
            assert_same(other(x), stock["tf.norm"](x))
        told = other.describe()
        assert (told["replayed"], told["refused"]) == (0, 0)
    finally:
        go_on.set()
        thread.join()
    learn(other, x)
    assert_replayed(other, x)


def test_a_fork_while_another_thread_records():
    recording, forked = threading.Event(), threading.Event()

    def slow(x):
        recording.set()
        forked.wait()
        return x + 1

    function = Replayed(slow, find("tf.roll").passed)
    forked.set()
    function(t(3))
    forked.clear()
    recording.clear()
    thread = threading.Thread(target=function, args=[t(3)])
    thread.start()
    recording.wait()
    assert vars(EagerTensor)["_numpy_internal"] is not METHOD
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = (
                vars(EagerTensor)["_numpy_internal"] is METHOD
                and gc.isenabled()
                and hooks.hang(*[print] * 6)
            )
        finally:  # the child must not continue with the code of the parent
            os._exit(0 if good else 1)
    forked.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert vars(EagerTensor)["_numpy_internal"] is METHOD


def test_replays_keep_no_argument_and_no_result():
    x = t(*M)
    result = learn(tf.norm, x, axis=0)
    gone = [weakref.ref(x), weakref.ref(result)]
    result = tf.norm(x, axis=0)
    gone.append(weakref.ref(result))
    del x, result
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None]
