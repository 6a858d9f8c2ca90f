"""Draws by seeds under `install`: first draws of pairs are direct, later ones are TensorFlow's."""

import contextlib
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from support import assert_same, failure, python
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, context

import fastops
from fastops import raw_ops
from fastops._core import draws

pytestmark = pytest.mark.usefixtures("fresh")

CLASSES = tf.constant([[3], [5]], tf.int64)
SAMPLED = {"true_classes": CLASSES, "num_true": 1, "num_sampled": 20, "range_max": 900}

SIZES = [
    tf.constant(size, tf.int32)
    for size in ([], [0], [1], [3], [5, 7], [255], [256], [257], [4096], [100_003])
]

CALLS = {
    "RandomUniform": [
        {"shape": size, "dtype": dtype}
        for size in SIZES
        for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64)
    ],
    "RandomStandardNormal": [
        {"shape": size, "dtype": dtype} for size in SIZES for dtype in (tf.float16, tf.float64)
    ],
    "TruncatedNormal": [{"shape": size, "dtype": tf.float32} for size in SIZES],
    "RandomUniformInt": [
        {"shape": size, "minval": tf.constant(-7, dtype), "maxval": tf.constant(10**6, dtype)}
        for size in SIZES
        for dtype in (tf.int32, tf.int64)
    ],
    "Multinomial": [
        {"logits": tf.zeros(sizes, dtype), "num_samples": number, "output_dtype": to}
        for sizes in ([1, 2], [3, 900], [2000, 50])
        for number in (1, 5, 32)
        for dtype, to in ((tf.float32, tf.int64), (tf.float64, tf.int32))
    ],
    "RandomGamma": [
        {"shape": size, "alpha": tf.constant(alpha, dtype)}
        for size in (SIZES[0], SIZES[3], SIZES[6])
        for alpha in (0.3, [1.5, 8.0])
        for dtype in (tf.float32, tf.float64)
    ],
    "RandomPoissonV2": [
        {"shape": size, "rate": tf.constant(rate), "dtype": dtype}
        for size in (SIZES[0], SIZES[3], SIZES[6])
        for rate in (0.3, [1.5, 90.0])
        for dtype in (tf.float32, tf.int64)
    ],
    "RandomShuffle": [
        {"value": value}
        for value in (
            tf.range(90),
            tf.reshape(tf.range(600.0), [200, 3]),
            tf.constant(["a", "b", "c", "d"]),
            tf.constant([True, False, False, True, True]),
            tf.constant(1),
            tf.zeros([0, 2]),
        )
    ],
    "LogUniformCandidateSampler": [SAMPLED | {"unique": unique} for unique in (True, False)],
    "UniformCandidateSampler": [SAMPLED | {"unique": unique} for unique in (True, False)],
}
"""By op, calls whose first draws are made here."""


def started(seed=7):
    """Set a global seed, so that all sequences begin again."""
    tf.random.set_seed(seed)


def drawn(op_name, pairs, calls=None):
    """Make each call with each pair of seeds, by TensorFlow's function."""
    op = getattr(tf.raw_ops, op_name)
    return [
        op(**arguments, seed=seed, seed2=seed2)
        for seed, seed2 in pairs
        for arguments in (CALLS[op_name] if calls is None else calls)
    ]


@pytest.mark.parametrize("op_name", CALLS)
def test_first_draws_have_the_bytes_of_tensorflows_kernels(op_name):
    pairs = [(1, 2), (87654321, 0), (0, 2**31 - 1), (2**31 - 1, 5)]
    want = []
    for arguments in CALLS[op_name]:  # with one pair, each call is a first draw
        for pair in pairs:
            started()
            want += drawn(op_name, [pair], [arguments])
    got = []
    with fastops.accelerated():
        fastops.reset_stats()
        for arguments in CALLS[op_name]:
            for pair in pairs:
                started()
                got += drawn(op_name, [pair], [arguments])
        seen = fastops.stats().ops[op_name]
    assert_same(got, want)
    assert (seen.direct, seen.tensorflow) == (len(want), 0), seen


@pytest.mark.parametrize("op_name", CALLS)
def test_pairs_that_come_again_go_on_in_tensorflows_sequence(op_name):
    """Whether with the same sizes and attributes or with others."""
    pairs = [(1, 2), (1, 3), (1, 2), (1, 2), (2, 2)]
    started()
    want = drawn(op_name, pairs)
    with fastops.accelerated():
        started()
        fastops.reset_stats()
        got = drawn(op_name, pairs)
        seen = fastops.stats().ops[op_name]
        assert_same(got, want)
        assert 0 < seen.direct < len(want)
        started()  # TensorFlow has dropped its kernels
        assert draws.num_pairs() == 0
        assert_same(drawn(op_name, pairs), want)


@pytest.mark.parametrize("op_name", CALLS)
def test_draws_go_on_after_uninstall(op_name):
    pairs = [(1, 2), (1, 3)]
    started()
    want = drawn(op_name, pairs) + drawn(op_name, pairs)
    with fastops.accelerated():
        started()
        got = drawn(op_name, pairs)
    got += drawn(op_name, pairs)
    assert_same(got, want)
    assert draws.num_pairs() == 0


def test_the_shape_of_a_draw_is_not_kept_alive():
    tf.random.set_seed(3)
    want = [tf.random.uniform([3, 2], seed=5) for _ in range(2)]
    with fastops.accelerated():
        tf.random.set_seed(3)
        shape = tf.constant([3, 2])
        kept = weakref.ref(shape)
        got = [tf.random.uniform(shape, seed=5)]
        assert draws.num_pairs() == 1
        del shape
        assert kept() is None
    # Here TensorFlow's kernel repeats the draw from above, and goes on.
    got.append(tf.random.uniform([3, 2], seed=5))
    assert_same(got, want)


def test_draws_before_install_are_tensorflows_to_continue():
    calls = CALLS["RandomUniform"][4:6]
    started()
    want = drawn("RandomUniform", [(1, 2), (1, 2), (5, 6)], calls)
    started()
    got = drawn("RandomUniform", [(1, 2)], calls)
    with fastops.accelerated():
        fastops.reset_stats()
        got += drawn("RandomUniform", [(1, 2), (5, 6)], calls)
        assert fastops.stats().ops.get("RandomUniform") is None
    assert_same(got, want)


def test_seeds_that_tensorflow_chooses():
    def program():
        started(3)
        return [
            *(tf.random.normal([4]) for _ in range(5)),
            *(tf.random.uniform([3], maxval=9, dtype=tf.int32) for _ in range(5)),
            *(tf.random.truncated_normal([2, 2]) for _ in range(5)),
            *(tf.random.categorical([[0.5, 0.5]], 3) for _ in range(5)),
            *(tf.random.shuffle(tf.range(9)) for _ in range(5)),
            *(tf.random.gamma([2], 0.5) for _ in range(5)),
            *(tf.random.poisson([2], 3.5) for _ in range(5)),
            *(tf.nn.dropout(tf.ones([3, 5]), 0.4) for _ in range(5)),
            *(tf.random.normal([4], seed=11) for _ in range(5)),
            tf.nn.nce_loss(tf.ones([90, 4]), tf.zeros([90]), CLASSES, tf.ones([2, 4]), 8, 90),
        ]

    want = program()
    with fastops.accelerated():
        for _ in range(3):
            fastops.reset_stats()
            assert_same(program(), want)
        seen = fastops.stats().ops
        assert seen["RandomStandardNormal"].direct == 6, "one of the five with a seed"
        for op_name, number in {
            "RandomUniformInt": 5, "TruncatedNormal": 5, "Multinomial": 5, "RandomShuffle": 5,
            "RandomGamma": 5, "RandomPoissonV2": 5, "RandomUniform": 5,
            "LogUniformCandidateSampler": 1,
        }.items():  # fmt: skip
            assert seen[op_name].direct == number, op_name


@pytest.mark.parametrize(
    "draw",
    [
        lambda: tf.random.normal([2]),
        lambda: tf.random.uniform([2]),
        lambda: tf.random.uniform([2], 0, 90, tf.int32),
        lambda: tf.random.truncated_normal([2]),
    ],
)
def test_draws_in_a_device_scope_take_one_seed_each(draw):
    def drawn():
        started()
        values = []
        for number in range(6):
            with tf.device("/CPU:0" if number % 3 else None):
                values.append(draw())
        return values

    want = drawn()
    with fastops.accelerated():
        for _ in range(2):
            for got, expected in zip(drawn(), want, strict=True):
                assert_same(got, expected)


@pytest.mark.parametrize("scopes", [(None, "/CPU:0"), ("/CPU:0", None), ("/device:CPU:0",)])
@pytest.mark.parametrize("op_name", CALLS)
def test_sequences_go_on_in_the_scope_of_the_only_device(op_name, scopes):
    def program():
        started()
        out = []
        for number in range(8):
            with tf.device(scopes[number % len(scopes)]):
                out += drawn(op_name, [(1, 2), (3, number), (4, number % 3)], CALLS[op_name][-2:])
        return out

    want = program()
    with fastops.accelerated():
        for _ in range(2):
            fastops.reset_stats()
            for got, expected in zip(program(), want, strict=True):
                assert_same(got, expected)
            seen = fastops.stats().ops[op_name]
            assert seen.direct >= 8, "the first draws of most pairs"
        with tf.device("/CPU:0"):
            later = drawn(op_name, [(1, 2), (3, 1), (9, 9)], CALLS[op_name][-2:])
    program()
    with tf.device("/CPU:0"):
        assert_same(later, drawn(op_name, [(1, 2), (3, 1), (9, 9)], CALLS[op_name][-2:]))


@pytest.mark.parametrize("way", ["tensorflow", "capi", "device", "tape", "callback", "async"])
def test_draws_on_other_paths_are_not_made_twice(way):
    """A draw that TensorFlow makes for another reason is its first, or goes on from one of ours."""
    arguments = {"shape": [3], "alpha": tf.constant([0.5, 2.0])}

    def elsewhere(pair):
        (seed, seed2), op = pair, tf.raw_ops.RandomGamma
        if way in ("tensorflow", "capi"):
            with fastops.options(path=way):
                return raw_ops.RandomGamma(**arguments, seed=seed, seed2=seed2)
        if way == "device":
            with tf.device("/CPU:0"):
                return op(**arguments, seed=seed, seed2=seed2)
        if way == "tape":
            with tf.GradientTape() as tape:
                tape.watch(arguments["alpha"])
                return op(**arguments, seed=seed, seed2=seed2)
        if way == "callback":
            context.context().add_op_callback(_ignore)
            try:
                return op(**arguments, seed=seed, seed2=seed2)
            finally:
                context.context().remove_op_callback(_ignore)
        before = context.context().executor
        context.context().executor = context.executor.new_executor(enable_async=True)
        try:
            drawn = op(**arguments, seed=seed, seed2=seed2)
            context.context().executor.wait()
            return drawn
        finally:
            context.context().executor = before

    def program():
        started()
        op = tf.raw_ops.RandomGamma
        return [
            op(**arguments, seed=1, seed2=2),
            elsewhere((1, 2)),
            op(**arguments, seed=1, seed2=2),
            elsewhere((3, 4)),
            op(**arguments, seed=3, seed2=4),
            op(**arguments, seed=5, seed2=6),
            op(**arguments, seed=5, seed2=6),
        ]

    want = program()
    with fastops.accelerated():
        for _ in range(2):
            assert_same(program(), want)


def _ignore(*_, **__):
    return None


OF_FLOATS = {
    "Multinomial": {"logits": tf.constant([[0.5, -1.0, 2.0]]), "num_samples": 4},
    "RandomGamma": {"shape": [3], "alpha": tf.constant([0.5, 2.0])},
    "RandomPoissonV2": {"shape": tf.constant([3]), "rate": tf.constant([0.5, 2.0])},
    "RandomShuffle": {"value": tf.constant([1.0, 2.0, 3.0, 4.0])},
}
"""By op with float inputs, which a tape may record: the arguments of a call."""


@pytest.mark.parametrize("op_name", OF_FLOATS)
@pytest.mark.parametrize("persistent", [False, True])
def test_draws_that_a_tape_records(op_name, persistent):
    arguments = OF_FLOATS[op_name]
    watched = [
        value for value in arguments.values() if tf.is_tensor(value) and value.dtype.is_floating
    ]

    def program():
        started()
        for seed2 in (1, 2, 3, 1, 4, 3):
            with tf.GradientTape(persistent) as tape:
                tape.watch(watched)
                drawn = getattr(tf.raw_ops, op_name)(**arguments, seed=7, seed2=seed2)
                scaled = tf.cast(drawn, tf.float32) * watched[0][..., :1] + watched[0][..., :1]
            yield drawn
            yield tape.gradient(scaled, watched)

    want = list(program())
    with fastops.accelerated():
        list(program())
        fastops.reset_stats()
        assert_same(list(program()), want)
        seen = fastops.stats().ops[op_name]
        assert (seen.direct, seen.tensorflow) == (4, 2), "two of six draws are of earlier pairs"


def test_the_record_of_a_draw_has_the_seeds_of_the_call():
    told = []

    def tell(op_name, attrs, num_inputs, *rest):
        told.append((op_name, dict(zip(attrs[::2], attrs[1::2], strict=True))))
        return [None] * num_inputs

    def program():
        started()
        told.clear()
        for seeds in ({"seed": 7, "seed2": 2}, {"seed": np.int64(3), "seed2": 1}, {"seed2": 5}):
            with tf.GradientTape() as tape:
                alpha = tf.constant([0.5, 2.0])
                tape.watch(alpha)
                drawn = tf.raw_ops.RandomGamma(shape=[3], alpha=alpha, **seeds)
            tape.gradient(drawn, alpha)
        return list(told)

    pywrap_tfe.TFE_Py_RegisterGradientFunction(tell)
    try:
        want = program()
        with fastops.accelerated(exclude=["gradients"]):
            program()
            assert program() == want
            assert fastops.stats().ops["RandomGamma"].direct
    finally:
        pywrap_tfe.TFE_Py_RegisterGradientFunction(backprop._gradient_function)
    assert [attrs["seed2"] for _, attrs in want] == [2, 1, 5]


def test_categorical_of_a_policy_is_direct_within_a_tape():
    weights = tf.Variable(tf.ones([3, 4]))

    def program():
        started()
        for step in range(6):
            with tf.GradientTape() as tape:
                logits = tf.nn.log_softmax(tf.fill([2, 3], float(step)) @ weights)
                action = tf.random.categorical(logits, 1)[:, 0]
                loss = tf.reduce_sum(tf.gather(logits, action, axis=1, batch_dims=1))
            yield action
            yield tape.gradient(loss, weights)

    want = list(program())
    with fastops.accelerated():
        list(program())
        fastops.reset_stats()
        assert_same(list(program()), want)
        assert fastops.stats().ops["Multinomial"].direct == 6


def test_errors_are_tensorflows_and_use_up_no_draw():
    bad = [
        ("RandomUniform", {"shape": [-1], "dtype": tf.float32}),
        ("RandomUniform", {"shape": [[1]], "dtype": tf.float32}),
        ("RandomUniformInt", {"shape": [3], "minval": 5, "maxval": 5}),
        ("Multinomial", {"logits": tf.zeros([3]), "num_samples": 3}),
        ("LogUniformCandidateSampler", SAMPLED | {"unique": True, "num_sampled": 901}),
        ("RandomUniform", {"shape": [3], "dtype": tf.int32}),
    ]

    def program():
        started()
        out = []
        for op_name, arguments in bad:
            op = getattr(tf.raw_ops, op_name)
            out.append(str(failure(op, **arguments, seed=1, seed2=2)))
            out += drawn(op_name, [(1, 2), (1, 2)], CALLS[op_name][:2])
        return out

    want = program()
    with fastops.accelerated():
        assert_same(program(), want)


def test_a_new_context_begins_all_sequences_again():
    code = """
import tensorflow as tf, fastops
from fastops._core import draws
from tensorflow.python.eager import context

def program():
    out = []
    for _ in range(2):
        op = tf.raw_ops.RandomUniform
        for seed2 in (1, 2, 1, 3):
            out.append(op(shape=[3], dtype=tf.float32, seed=1, seed2=seed2).numpy().tolist())
        context._reset_context()
    return out

want = program()
fastops.install()
assert program() == want
assert program() == want
fastops.uninstall()
assert program() == want
print("the same")
"""
    assert python(code).splitlines()[-1] == "the same"


def test_variables_and_numbers_as_inputs():
    logits, value = tf.Variable([[0.5, 0.5], [0.1, 3.0]]), tf.Variable(tf.range(9.0))
    numbers = {"shape": [3], "minval": 2, "maxval": tf.Variable(900)}

    def program():
        started()
        return [
            op(**arguments, seed=seed, seed2=1)
            for seed in (1, 2, 1, 3)
            for op, arguments in (
                (tf.raw_ops.Multinomial, {"logits": logits, "num_samples": 4}),
                (tf.raw_ops.RandomShuffle, {"value": value}),
                (tf.raw_ops.RandomUniformInt, numbers),
                (raw_ops.Multinomial, {"logits": logits, "num_samples": 4}),
            )
        ]

    want = program()
    with fastops.accelerated():
        fastops.reset_stats()
        assert_same(program(), want)
        seen = fastops.stats().ops
        assert seen["RandomShuffle"].direct == seen["Multinomial"].direct == 3


def test_seeds_that_are_not_plain_ints():
    seeds = [np.int64(3), np.int32(4), True, 2**31, -1, 2**40]

    def program():
        started()
        op = tf.raw_ops.RandomUniform
        return [op(shape=[3], dtype=tf.float32, seed=seed, seed2=1) for seed in seeds * 2]

    want = program()
    with fastops.accelerated():
        assert_same(program(), want)


def test_threads_draw_from_pairs_of_their_own():
    def program():
        started()
        out = {}

        def work(number):
            out[number] = [
                tf.raw_ops.RandomUniform(shape=[70_000], dtype=tf.float32, seed=number, seed2=i)
                for i in (*range(1, 30), 5)
            ]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [out[number] for number in sorted(out)]

    want = program()
    with fastops.accelerated():
        assert_same(program(), want)


def test_functions_have_generators_of_their_own():
    def program():
        started()
        traced = tf.function(lambda: tf.random.normal([3], seed=4))
        eager = [tf.random.normal([3], seed=4)]
        return [*eager, traced(), traced(), tf.random.normal([3], seed=4), traced()]

    want = program()
    with fastops.accelerated():
        assert_same(program(), want)


def test_draws_under_verification_are_tensorflows():
    def program():
        started()
        return [tf.random.normal([3]) for _ in range(4)]

    want = program()
    with fastops.accelerated(verify="raise"):
        assert_same(program(), want)
        assert draws.num_pairs() == 0


def test_pairs_that_may_come_again_are_handed_over_among_many():
    def program(during):
        with during:
            started(5)
            many = [tf.random.uniform([1]) for _ in range(200)]
            chosen = tf.random.uniform([1], seed=9)
        return [many[-1], chosen, tf.random.uniform([1], seed=9), tf.random.uniform([1])]

    want = program(threading.Lock())  # any context manager
    got = program(fastops.accelerated())
    assert_same(got, want)


FUNCTIONS = {
    "normal": lambda: tf.random.normal([3], 1.0, 2.0),
    "normal of a list": lambda: tf.random.normal([tf.constant(2), 3]),
    "uniform": lambda: tf.random.uniform((2, 2)),
    "uniform in a range": lambda: tf.random.uniform([3], -1.0, 5.0),
    "integers": lambda: tf.random.uniform([3], 0, 1000, tf.int32),
    "truncated normal": lambda: tf.random.truncated_normal([3]),
    "categorical": lambda: tf.random.categorical(tf.zeros([2, 900]), 3),
    "shuffle": lambda: tf.random.shuffle(tf.range(50)),
    "gamma": lambda: tf.random.gamma([2], 0.7),
    "Poisson": lambda: tf.random.poisson([2], 30.0),
    "dropout": lambda: tf.nn.dropout(tf.ones([40]), 0.5),
    "initializer": lambda: tf.keras.initializers.GlorotUniform(seed=3)((3, 2)),
    "a negative size": lambda: tf.random.normal([-1]),
    "an empty range": lambda: tf.random.uniform([2], 5, 5, tf.int32),
    "a dtype without normal numbers": lambda: tf.random.normal([2], dtype=tf.int32),
}

SURROUNDINGS = {
    "nothing": contextlib.nullcontext,
    "device": lambda: tf.device("/CPU:0"),
    "no device": lambda: tf.device(None),
    "names": lambda: tf.name_scope("scope"),
    "tape": tf.GradientTape,
    "init_scope": tf.init_scope,
    "strategy": lambda: tf.distribute.get_strategy().scope(),
    "control": lambda: tf.control_dependencies([]),
}


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
def test_functions_draw_one_seed_each(surrounding):
    def program():
        tf.random.set_seed(11)
        outcomes = []
        with SURROUNDINGS[surrounding]():
            for _ in range(5):
                for function in FUNCTIONS.values():
                    try:
                        outcomes.append(function().numpy().tobytes())
                    except Exception as error:
                        outcomes.append((type(error), str(error)))
        outcomes.append(tf.random.normal([2]).numpy().tobytes())
        return outcomes

    want = program()
    with fastops.accelerated():
        assert program() == want
        assert program() == want


def test_a_function_that_decides_by_what_it_draws_draws_once():
    def choose(x):
        drawn = tf.nn.dropout(x, 0.5)
        if drawn[0] > 0:
            return drawn * 2.0
        return drawn

    def program():
        tf.random.set_seed(5)
        return [choose(tf.ones([4])).numpy().tolist() for _ in range(20)]

    want = program()
    with fastops.accelerated():
        assert program() == want


def test_a_profile_shows_draws_as_they_are():
    def program():
        started()
        return [tf.random.normal([3]) for _ in range(4)]

    want = program()
    with fastops.accelerated():
        program()
        with fastops.profile() as report:
            assert_same(program(), want)
    row = report.ops["RandomStandardNormal"]
    assert (row.direct, row.tensorflow) == (4, 0)
    assert row.kernel_ns > 0
    assert row.tensorflow_ns == 0
