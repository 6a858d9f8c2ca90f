"""Ops that draw from a generator in their kernel, and stateful ops without state of their own."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from support import DIRECT, FIRST, assert_same, difference, failure, took
from tensorflow.python.eager import context
from tensorflow.python.framework import config

import fastops
from fastops import ops, raw_ops
from fastops._core.tables import policy

pytestmark = pytest.mark.usefixtures("fresh")

SIZE = tf.constant([32])
CLASSES = tf.constant([[3], [5]], tf.int64)
SAMPLED = {"true_classes": CLASSES, "num_true": 1, "num_sampled": 20, "unique": True}
POOLED = {
    "value": tf.reshape(tf.range(900.0), [1, 30, 30, 1]),
    "pooling_ratio": [1.0, 1.4, 1.4, 1.0],
}
BOX = {
    "image_size": tf.constant([900, 900, 3]),
    "bounding_boxes": tf.constant([[[0.2, 0.2, 0.8, 0.8]]]),
    "area_range": [0.05, 1.0],
}

DRAWS = {
    "FixedUnigramCandidateSampler": SAMPLED
    | {"range_max": 900, "unigrams": [1.0] * 900, "distortion": 1.0},
    "FractionalAvgPool": POOLED,
    "FractionalMaxPool": POOLED,
    "LogUniformCandidateSampler": SAMPLED | {"range_max": 900},
    "Multinomial": {"logits": tf.zeros([1, 900]), "num_samples": 32},
    "ParameterizedTruncatedNormal": {
        "shape": SIZE, "means": 0.0, "stdevs": 1.0, "minvals": -1.0, "maxvals": 1.0,
    },
    "RandomGamma": {"shape": SIZE, "alpha": tf.constant(1.5)},
    "RandomPoissonV2": {"shape": SIZE, "rate": tf.constant(90.0)},
    "RandomShuffle": {"value": tf.range(90)},
    "RandomStandardNormal": {"shape": SIZE, "dtype": tf.float32},
    "RandomUniform": {"shape": SIZE, "dtype": tf.float32},
    "RandomUniformInt": {"shape": SIZE, "minval": tf.constant(0), "maxval": tf.constant(9999)},
    "SampleDistortedBoundingBox": BOX,
    "SampleDistortedBoundingBoxV2": BOX | {"min_object_covered": 0.1},
    "TruncatedNormal": {"shape": SIZE, "dtype": tf.float32},
    "UniformCandidateSampler": SAMPLED | {"range_max": 900},
}  # fmt: skip
"""Calls whose results differ almost always, by op."""

KEEP_NOTHING = {
    "Assert": {"condition": tf.constant(True), "data": [tf.constant(1)]},
    "CheckNumerics": {"tensor": tf.constant(1.0), "message": "m"},
    "CheckNumericsV2": {"tensor": tf.constant(1.0), "message": "m"},
    "DeepCopy": {"x": tf.constant(1.0)},
    "DeviceIndex": {"device_names": ["GPU", "CPU"]},
    "GuaranteeConst": {"input": tf.constant(1.0)},
    "NonDeterministicInts": {"shape": SIZE},
    "StatelessRandomGetAlg": {},
    "Timestamp": {},
}


def pair(op_name):
    return getattr(raw_ops, op_name), getattr(tf.raw_ops, op_name)


@pytest.fixture
def unseeded():
    """Begin without a global seed, as in a new process."""
    seed = context.context()._seed
    tf.random.set_seed(None)
    yield
    tf.random.set_seed(seed)


# ---------------------------------------------------------------------------------------------
# Without a seed
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op_name", DRAWS)
def test_unseeded_calls_are_direct_and_differ(op_name, unseeded):
    """Results differ between calls, between kernels, and from TensorFlow's."""
    op, theirs = pair(op_name)
    results = [theirs(**DRAWS[op_name])]
    for _ in range(2):
        fastops.clear_cache()
        calls = [took(op, **DRAWS[op_name]) for _ in range(3)]
        assert [path for _, path in calls] == [FIRST, DIRECT, DIRECT]
        results += [result for result, _ in calls]
    for i, one in enumerate(results):
        for other in results[:i]:
            assert difference(one, other) is not None


@pytest.mark.parametrize("nothing", [{}, {"seed": None}, {"seed": 0, "seed2": 0}])
def test_seeds_of_none_and_zero_are_no_seed(nothing):
    for _ in range(2):
        took(ops.random_uniform, shape=SIZE, dtype=tf.float32, **nothing)
    assert took(ops.random_uniform, shape=SIZE, dtype=tf.float32, **nothing)[1] == DIRECT


def test_a_kernel_gives_each_thread_different_numbers():
    drawn = []

    def draw():
        for _ in range(50):
            drawn.append(ops.random_uniform(shape=tf.constant([500]), dtype=tf.float64).numpy())

    draw()
    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = np.stack(drawn)
    assert len(np.unique(values)) == values.size == 5 * 50 * 500
    assert fastops.stats().ops["RandomUniform"].direct == 249


def test_gradients_of_drawn_numbers():
    """The tape records the call's outputs, so its gradient uses the numbers that were drawn."""
    for _ in range(2):
        with tf.GradientTape() as tape:
            alpha = tf.constant([0.5, 2.0])
            tape.watch(alpha)
            drawn, path = took(raw_ops.RandomGamma, shape=SIZE, alpha=alpha)
        got = tape.gradient(drawn, alpha)
    assert path == DIRECT
    partial = tf.raw_ops.RandomGammaGrad(alpha=tf.broadcast_to(alpha, drawn.shape), sample=drawn)
    assert_same(got, tf.reduce_sum(partial, 0))


# ---------------------------------------------------------------------------------------------
# With a seed
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op_name", [*DRAWS, "AllCandidateSampler"])
@pytest.mark.parametrize("seeds", [{"seed": 3}, {"seed2": 4}, {"seed": -1, "seed2": 7}])
def test_seeded_calls_share_one_sequence_with_tensorflow(op_name, seeds):
    op, theirs = pair(op_name)
    arguments = DRAWS.get(op_name, SAMPLED) | seeds
    if op_name.startswith("Fractional"):
        arguments["deterministic"] = True

    def sequence(ours):
        context.context().clear_kernel_cache()
        return [(op if mine else theirs)(**arguments) for mine in ours]

    want = sequence([False] * 6)
    assert_same(sequence([True] * 6), want)
    assert_same(sequence([True, False, True, True, False, True]), want)
    assert_same(sequence([False, True, True, False, True, True]), want)
    seen = fastops.stats().ops[op_name]
    assert (seen.direct, seen.tensorflow, seen.capi) == (0, 1, 13)
    assert seen.reasons == {"first_call": 1, "op": 13}
    (detour,) = fastops.explain(op, **arguments).ops[op_name].detours
    assert detour.detail == op.record.bound
    assert op.never_direct is None


@pytest.mark.parametrize("layer", ["functions", "dispatch"])
def test_seeded_calls_of_unchanged_programs_go_on_in_one_sequence(layer):
    """With the dispatch call replaced, the first draw of a pair of seeds is direct for some ops."""

    def program(by_turns):
        context.context().clear_kernel_cache()
        drawn = []
        for _ in range(3):
            for op_name, arguments in DRAWS.items():
                seeded = arguments | {"seed": np.int64(3), "seed2": 5}
                if op_name.startswith("Fractional"):
                    seeded["deterministic"] = True
                drawn.append(getattr(tf.raw_ops, op_name)(**seeded))
                if by_turns:
                    drawn.append(getattr(raw_ops, op_name)(**seeded | {"seed": 3}))
                else:
                    drawn.append(getattr(tf.raw_ops, op_name)(**seeded))
                getattr(tf.raw_ops, op_name)(**arguments)
        return drawn

    want = program(False)
    with fastops.accelerated(only=[layer]):
        assert_same(program(False), want)
        fastops.reset_stats()
        assert_same(program(True), want)
        seen = fastops.stats().ops
        for op_name in DRAWS:
            paths = (4, 0) if layer == "dispatch" and op_name in policy.SEEDED else (3, 2)
            assert (seen[op_name].direct, seen[op_name].capi) == paths, op_name


def test_alternating_seeded_and_unseeded_calls():
    def sequence(m, between):
        context.context().clear_kernel_cache()
        drawn = []
        for _ in range(5):
            drawn.append(m.RandomUniform(shape=SIZE, dtype=tf.float32, seed=1))
            between(shape=SIZE, dtype=tf.float32)
        return drawn

    want = sequence(tf.raw_ops, tf.raw_ops.RandomUniform)
    assert_same(sequence(raw_ops, raw_ops.RandomUniform), want)
    assert fastops.stats().ops["RandomUniform"].direct == 4


@pytest.mark.parametrize("op_name", ["FractionalAvgPool", "FractionalMaxPool"])
def test_deterministic_fractional_pools_run_in_tensorflows_kernel(op_name):
    """Each kernel draws its own numbers once, so all calls must run in TensorFlow's kernel."""
    op, theirs = pair(op_name)
    want = theirs(**POOLED, deterministic=True)
    for _ in range(3):
        got, path = took(op, **POOLED, deterministic=True)
        assert_same(got, want)
    assert path == "capi:op"


def test_a_file_of_candidates_is_read_once(tmp_path):
    file = tmp_path / "vocabulary"
    file.write_text("a,1\nb,0\nc,0\n")
    arguments = {"true_classes": tf.constant([[0]], tf.int64), "num_true": 1, "num_sampled": 20}
    arguments |= {"unique": False, "range_max": 3, "vocab_file": str(file)}
    for weights in ("1 0 0", "0 1 0", "0 0 1"):
        got, path = took(ops.fixed_unigram_candidate_sampler, **arguments)
        assert set(got.sampled_candidates.numpy()) == {0}
        file.write_text("".join(f"x,{weight}\n" for weight in weights.split()))
    assert path == "capi:op"


# ---------------------------------------------------------------------------------------------
# Op determinism
# ---------------------------------------------------------------------------------------------


def test_op_determinism_rejects_the_same_calls_as_in_tensorflow():
    """A kernel that was made before still runs; one that is made later needs a seed."""

    def program(m):
        arguments = {"shape": SIZE, "dtype": tf.float32}
        for _ in range(3):
            m.RandomUniform(**arguments)
            m.Timestamp()
        tf.config.experimental.enable_op_determinism()
        try:
            for _ in range(3):
                m.RandomUniform(**arguments)
            late = [failure(m.Timestamp) for _ in range(3)]
            context.context().clear_kernel_cache()
            late += [failure(m.RandomUniform, **arguments) for _ in range(3)]
        finally:
            config.disable_op_determinism()
        for _ in range(3):
            m.RandomUniform(**arguments)
            m.Timestamp()
        return late

    want = program(tf.raw_ops)
    context.context().clear_kernel_cache()
    assert program(raw_ops) == want
    assert took(raw_ops.RandomUniform, shape=SIZE, dtype=tf.float32)[1] == DIRECT
    assert took(raw_ops.Timestamp)[1] == DIRECT


# ---------------------------------------------------------------------------------------------
# Stateful ops without state of their own
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op_name", KEEP_NOTHING)
def test_stateful_ops_without_state_of_their_own_are_direct(op_name):
    op, _ = pair(op_name)
    paths = [took(op, **KEEP_NOTHING[op_name])[1] for _ in range(3)]
    assert paths == [FIRST, DIRECT, DIRECT]
    assert op.record.op_def.stateful


def test_each_call_reads_the_clock_and_the_systems_randomness():
    before = ops.timestamp()
    assert any(ops.timestamp() != before for _ in range(10**6))
    drawn = [ops.non_deterministic_ints(shape=SIZE).numpy() for _ in range(5)]
    assert len(np.unique(drawn)) == 5 * 32
    seen = fastops.stats().ops
    assert (seen["Timestamp"].tensorflow, seen["NonDeterministicInts"].direct) == (1, 4)


def test_failed_checks_raise_tensorflows_errors():
    number = tf.constant(1.0)
    for op_name, right, wrong in (
        ("CheckNumerics", {"tensor": number, "message": "m"}, {"tensor": number / 0}),
        ("CheckNumericsV2", {"tensor": number, "message": "m"}, {"tensor": -number / 0}),
        ("Assert", {"condition": number > 0, "data": [number, SIZE]}, {"condition": number < 0}),
        ("RandomUniform", {"shape": SIZE, "dtype": tf.float32}, {"shape": tf.constant([-1])}),
    ):
        op, theirs = pair(op_name)
        for _ in range(3):
            op(**right)
        for name in (None, "here"):
            want = failure(theirs, **right | wrong, name=name)
            assert failure(op, **right | wrong, name=name) == want
        assert fastops.stats().ops[op_name].reasons["kernel_error"] == 2
