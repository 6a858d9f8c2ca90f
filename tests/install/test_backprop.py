"""The walk back over a tape, op by op, if it is not replayed.

Each program runs under TensorFlow and under `fastops.install`, which walks itself. The bytes, the
order in which gradient functions are called, and the errors must be the same.
"""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import Failure, assert_same, failure, floats

import fastops
from fastops._autodiff import walks
from fastops._install.gradients.gradient_function import runs_rules

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()
    walks.forget()


def hold(program, *, walked=1):
    """Compare the first call of a program, and how many of its walks were ours."""
    want = program()
    fastops.install()
    walks.forget()
    before = walk_count()
    assert_same(program(), want)
    assert walk_count() - before == walked


def walk_count():
    """Return how many walks were op by op, and not TensorFlow's."""
    counted = fastops.stats().kinds.get("GradientTape.gradient")
    reasons = {} if counted is None else counted.reasons
    return sum(
        reasons[name] for name in reasons if name not in ("walk_arguments", "walk_placement")
    )


def numbers(*shape, seed=0):
    return tf.constant(floats(*shape, seed=seed))


# ---------------------------------------------------------------------------------------------
# The order of the walk
# ---------------------------------------------------------------------------------------------


def noting(log, name):
    """Return an identity whose gradient function notes its name, and scales the gradient."""

    @tf.custom_gradient
    def identity(x):
        def grad(dy):
            log.append(name)
            return dy * np.float32(1 + len(log) / 7)

        return tf.identity(x), grad

    return identity


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_a_drawn_graph(seed):
    def program():
        draw = np.random.default_rng(seed)
        log = []
        start = [numbers(3, seed=i) for i in range(3)]
        with tf.GradientTape() as tape:
            tape.watch(start[:2])
            made = list(start)
            for i in range(25):
                left, right = (made[at] for at in draw.integers(len(made), size=2))
                made.append(noting(log, i)(left * right if i % 3 else left - right))
        targets = [made[at] for at in draw.integers(3, len(made), size=draw.integers(1, 5))]
        return tape.gradient(targets, start), log

    hold(program)


def test_the_order_of_a_call_with_two_outputs():
    """The ops of a replayed call are passed between those of other records."""
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(5, activation="tanh")(inputs)
    outputs = [keras.layers.Dense(3)(hidden), keras.layers.Dense(2)(hidden)]
    model = keras.Model(inputs, outputs)
    for i, weight in enumerate(model.weights):
        weight.assign(floats(*weight.shape, seed=i))
    weights = [weight.value for weight in model.weights]

    def program(length):
        with tf.GradientTape() as tape:
            terms = []
            x = numbers(1, 4, seed=length)
            for _ in range(length):
                left, right = model(x)
                terms += [tf.reduce_sum(left * left), tf.math.log(tf.nn.softmax(right)[0, 1])]
                x = tf.concat([left[:, :2], right], 1)
            loss = tf.add_n(terms) + 1e-2 * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
        return tape.gradient(loss, [*weights, x])

    lengths = [3, 5, 2, 7, 4, 6, 1, 9]
    wanted = [program(length) for length in lengths]
    fastops.install()
    walks.forget()
    before = walks.describe()
    for length, want in zip(lengths, wanted, strict=True):
        assert_same(program(length), want)
    after = walks.describe()
    assert after["replayed"] == before["replayed"]
    assert after["expanded"] - before["expanded"] > 20


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_an_unwatched_part_of_a_call_is_a_source(late, replayed):
    """Ops that no tape records make the source, within the call. The program may watch it later."""
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(5, activation="tanh")(inputs)
    model = keras.Model(inputs, [hidden, keras.layers.LayerNormalization()(hidden)])
    weight = model.layers[-1].gamma.value

    def program():
        found = []
        for call in range(12):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(weight)
                left, right = model(numbers(1, 4, seed=call))
                loss = tf.reduce_sum(right * right)
                if late:
                    tape.watch(left)
            found.append(tape.gradient(loss, [left, weight]))
            if not replayed:
                walks.forget()
        return found

    want = program()
    assert all((left is not None) == late for left, _ in want)
    fastops.install()
    walks.forget()
    name = "calls" if replayed else "expanded"
    before = walks.describe()[name]
    assert_same(program(), want)
    assert walks.describe()[name] - before > 2


def test_one_output_of_a_call_is_used():
    inputs = keras.Input((4,))
    model = keras.Model(inputs, [keras.layers.Dense(3)(inputs), keras.layers.Dense(2)(inputs)])
    weights = [weight.value for weight in model.weights]

    def program():
        found = []
        for call in range(6):
            with tf.GradientTape() as tape:
                left, _ = model(numbers(1, 4, seed=call))
                loss = tf.reduce_sum(left * (call + 1))
                del left
            found.append(tape.gradient([loss] * (1 + call % 2), [*weights, weights[0]]))
        return found

    want = program()
    fastops.install()
    assert_same(program(), want)


def test_many_terms_of_one_tensor():
    """TensorFlow adds up the gradients of a large tensor before it has all."""
    size = 8 << 20  # five gradients take more than 128 MiB

    def program():
        x = tf.random.stateless_uniform((size,), (1, 2))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.add_n([tf.reduce_sum(x * float(np.float32(1 / (i + 3)))) for i in range(8)])
        return tape.gradient(y, x)

    hold(program)


def test_rows_and_tensors_are_added():
    def program():
        table = numbers(5, 3)
        with tf.GradientTape() as tape:
            tape.watch(table)
            y = tf.reduce_sum(tf.gather(table, [1, 1, 4]) ** 2) + tf.reduce_sum(table[2] * 3.0)
            y += tf.reduce_sum(tf.gather(table, [0, 4]))
        return tape.gradient(y, table)

    hold(program)


def test_rows_of_a_variable():
    table = tf.Variable(floats(5, 3))

    def program():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, [1, 1, 4]) ** 2)
        found = tape.gradient(y, table)
        return found.values, found.indices

    hold(program)


# ---------------------------------------------------------------------------------------------
# Targets, sources and outputs without gradients
# ---------------------------------------------------------------------------------------------


def test_targets_are_sources():
    def program():
        x = numbers(2, 3)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            z = tf.exp(y)
        return tape.gradient([z, y, y], [y, x, z, y])

    hold(program)


def test_what_is_not_connected():
    def program():
        x, other, constant = numbers(2, 3), numbers(2, 3, seed=1), numbers(2, 3, seed=2)
        with tf.GradientTape() as tape:
            tape.watch([x, other])
            y = x * constant
            unused = tf.exp(other)
        return tape.gradient([y, constant], [other, x, constant, unused])

    hold(program)


def test_a_target_that_no_tape_has():
    def program():
        x = numbers(2, 3)
        with tf.GradientTape() as tape:
            pass
        return tape.gradient(x, x)

    hold(program)


def test_outputs_without_gradients():
    def program():
        x = numbers(2, 6)
        with tf.GradientTape() as tape:
            tape.watch(x)
            left, _, right = tf.split(x, 3, 1)
            _, second = tf.unstack(left * right)
            values, _ = tf.math.top_k(x, 2)
            y = tf.reduce_sum(second) + tf.reduce_sum(values)
        return tape.gradient(y, x)

    hold(program)


def test_outputs_for_which_none_is_passed():
    def program():
        x, scale, offset = numbers(2, 3, 3, 2), numbers(2, seed=1), numbers(2, seed=2)
        labels = tf.nn.softmax(numbers(2, 3, seed=3))
        with tf.GradientTape() as tape:
            tape.watch([x, scale, offset])
            y, _, _ = tf.compat.v1.nn.fused_batch_norm(x, scale, offset)
            logits = tf.reduce_sum(y, [1, 2]) @ numbers(2, 3, seed=4)
            loss = tf.nn.softmax_cross_entropy_with_logits(labels, logits)
        return tape.gradient(loss, [x, scale, offset])

    hold(program)


def test_a_persistent_tape():
    def program():
        x = numbers(2, 3)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            z = tf.reduce_sum(tf.exp(y) * y)
        return [tape.gradient(z, x), tape.gradient(z, y), tape.gradient(y, x), tape.gradient(z, x)]

    hold(program, walked=4)


# ---------------------------------------------------------------------------------------------
# What gradient functions do
# ---------------------------------------------------------------------------------------------


def with_gradient(function):
    """Return the gradient of an op whose gradient function is given, between other ops."""

    @tf.custom_gradient
    def op(x, y):
        return x * y, function

    x, y = numbers(2, 3), numbers(2, 3, seed=1)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.reduce_sum(op(tf.exp(x), y) * y)
    return tape.gradient(z, [x, y])


class StrangeError(Exception):
    pass


def raises(dy):
    raise StrangeError(f"{dy.shape}")


@pytest.mark.parametrize(
    "function",
    [raises, lambda dy: dy, lambda dy: (dy, dy, dy)],
    ids=["raises", "too few", "too many"],
)
def test_a_gradient_function_fails(function):
    want = failure(lambda: with_gradient(function))
    fastops.install()
    before = walk_count()
    assert isinstance(want, Failure)
    assert failure(lambda: with_gradient(function)) == want
    assert walk_count() == before + 1


def test_a_gradient_function_walks():
    """A walk begins within a walk."""

    def inner(dy):
        x = tf.identity(dy)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x) * x)
        return tape.gradient(y, x), None

    hold(lambda: with_gradient(inner), walked=2)


def test_a_failed_walk_lets_go_of_all():
    fastops.install()
    kept = []

    def program():
        x = numbers(2, 3)
        with tf.GradientTape() as tape:
            tape.watch(x)
            hidden = [tf.exp(x)]
            hidden.append(hidden[0] * x)
            kept.extend(weakref.ref(value) for value in hidden)

            @tf.custom_gradient
            def op(y):
                return tf.identity(y), raises

            z = tf.reduce_sum(op(hidden[1]) * x)
        hidden.clear()
        with pytest.raises(StrangeError):
            tape.gradient(z, x)

    program()
    gc.collect()
    assert [reference() for reference in kept] == [None, None]


def test_a_walk_lets_go_of_each_record():
    """A gradient function runs when the tensors of records that were passed are gone."""
    fastops.install()
    alive = []

    @tf.custom_gradient
    def noting_life(y):
        def grad(dy):
            alive.append(later() is not None)
            return dy

        return tf.identity(y), grad

    x = numbers(2, 3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = tf.exp(noting_life(tf.exp(x)))
        later = weakref.ref(z)
        target = tf.reduce_sum(z * 2.0)
        del z
    assert later() is not None
    tape.gradient(target, x)
    assert alive == [False]


# ---------------------------------------------------------------------------------------------
# Which code runs
# ---------------------------------------------------------------------------------------------


def test_rules_run_without_the_stand_in():
    assert not runs_rules()
    fastops.install()
    assert runs_rules()
    fastops.uninstall()
    fastops.install(verify="raise")
    assert not runs_rules()


@pytest.mark.parametrize(
    ("left", "right", "sums"),
    [((1, 3), (3,), 0), ((2, 3), (3,), 1), ((4, 1, 2), (4, 1, 1), 1), ((1, 1), (), 0)],
)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.complex64])
def test_sums_along_sizes_of_one_are_left_out(left, right, sums, dtype):
    """They copy all bits, also those of zeros and of what is not a number."""
    strange = np.array([-0.0, np.nan, -np.inf, 1e-45, 0.0, 1.0, -np.nan, 2.0], np.float32)

    def program():
        x, y = tf.cast(numbers(*left), dtype), tf.cast(numbers(*right, seed=1), dtype)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = x + y
        seed = tf.cast(tf.reshape(strange[: z.shape.num_elements()], z.shape), dtype)
        return tape.gradient(z, [x, y], output_gradients=seed)

    want = program()
    fastops.install()
    fastops.reset_stats()
    assert_same(program(), want)
    counted = fastops.stats().ops.get("Sum")
    assert (0 if counted is None else counted.direct) == sums
