"""Walks over tapes that are recorded and replayed: the bytes of TensorFlow's walks."""

import gc
import threading
import weakref
from contextlib import nullcontext

import keras
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import assert_same, floats, walks_in_full
from tensorflow.python.framework import ops as framework
from tensorflow.python.ops import math_grad, nn_impl

import fastops
from fastops._autodiff import walks
from fastops._specialize.recording import recording

pytestmark = pytest.mark.usefixtures("fresh")

CALLS = 6
"""Calls of a program: the fixture `fresh` has recordings made at once."""


@pytest.fixture(autouse=True)
def installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()
    walks.forget()


def replayed(function, calls):
    """Return the results of some calls under `install`, and how many walks were replayed."""
    fastops.install()
    walks.forget()
    before = walks.describe()["replayed"]
    results = [function(call) for call in range(calls)]
    fastops.uninstall()
    return results, walks.describe()["replayed"] - before


def hold(function, calls=CALLS, least=CALLS - 3):
    """Compare the results of some calls, and check that most walks were replayed."""
    wanted = [function(call) for call in range(calls)]
    results, times = replayed(function, calls)
    for result, want in zip(results, wanted, strict=True):
        assert_same(result, want)
    assert times >= least


def gradients(target_of, *sources, **kwargs):
    with tf.GradientTape(**kwargs) as tape:
        for source in sources:
            if isinstance(source, tf.Tensor):
                tape.watch(source)
        target = target_of()
    return tape.gradient(target, sources)


W = [tf.Variable(floats(4, 4, seed=i)) for i in range(3)]
B = [tf.Variable(floats(4, seed=i + 5)) for i in range(3)]
DENSE = keras.layers.Dense(3, activation="gelu")
DENSE.build([1, 3])


def network(x, times=1):
    for _ in range(times):
        for w, b in zip(W, B, strict=True):
            x = tf.nn.relu(x @ w + b)
    return x


# ---------------------------------------------------------------------------------------------
# Programs
# ---------------------------------------------------------------------------------------------


def perceptron(call):
    x = tf.constant(floats(2, 4, seed=call))
    return gradients(lambda: tf.reduce_mean(tf.square(network(x))), *W, *B)


def shared_weights(call):
    """Gradients of variables that are used several times are sums of many terms."""
    x = tf.constant(floats(2, 4, seed=call))
    return gradients(lambda: tf.reduce_sum(tf.tanh(network(x, times=3))), *W, *B)


def penalty(call):
    x = tf.constant(floats(2, 4, seed=call))

    def loss():
        weights = tf.add_n([tf.reduce_sum(tf.square(w)) for w in W])
        return tf.reduce_mean(network(x)) + 0.01 * weights + tf.reduce_mean(network(-x))

    return gradients(loss, *W, *B)


def by_inputs(call):
    x = tf.constant(floats(3, 4, seed=call))
    y = tf.constant(floats(3, 1, seed=call + 1))
    return gradients(lambda: tf.exp(x) * y - x / (1.5 + y * y), x, y)


def recurrent(call):
    x = tf.constant(floats(2, 5, 4, seed=call))

    def loss():
        state = tf.zeros([2, 4])
        for item in tf.unstack(x, axis=1):
            state = tf.sigmoid(state @ W[0] + item @ W[1] + B[0])
        return tf.reduce_sum(state)

    return gradients(loss, *W[:2], B[0])


def slices(call):
    x = tf.constant(floats(4, 6, seed=call))

    def loss():
        left, right = tf.split(x, 2, axis=1)
        return tf.concat([left * right, x[:, 1:4], tf.transpose(left)[:, :3]], axis=0)

    return gradients(loss, x)


def embedding(call):
    rows = tf.constant([1, call % 4, 1, 0])
    found = gradients(lambda: tf.reduce_sum(tf.square(tf.gather(W[0], rows))), W[0])[0]
    return [found.values, found.indices, found.dense_shape]


def losses(call):
    x = tf.constant(floats(3, 4, seed=call))
    labels = tf.constant([call % 4, 1, 2])

    def loss():
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, network(x))
        return tf.reduce_mean(each)

    return gradients(loss, *W, *B)


def unconnected(call):
    x = tf.constant(floats(3, seed=call))
    y = tf.constant(floats(3, seed=call + 1))
    return [value is None for value in gradients(lambda: x * 2.0, x, y)]


def seeded(call):
    x = tf.constant(floats(3, 4, seed=call))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) * x
    return tape.gradient(y, x, output_gradients=tf.constant(floats(3, 4, seed=call + 9)))


def doubles(call):
    x = tf.constant(floats(3, 4, seed=call), tf.float64)
    return gradients(lambda: tf.reduce_sum(tf.sqrt(x * x + 1.0), axis=[call % 2 * 0]), x)


def not_differentiable(call):
    """Return a gradient past ops that are registered without a gradient function."""
    x = tf.constant(floats(2, 4, seed=call))
    return gradients(lambda: x * x + tf.raw_ops.ZerosLike(x=x) * x, x)


def higher(x, order, **kwargs):
    """Return derivatives of a sum of terms, each taken under the tapes of all later ones."""
    with tf.GradientTape(**kwargs) as tape:
        tape.watch(x)
        if order == 1:
            y = tf.reduce_sum(tf.sin(x) * x + network(x) * tf.tanh(x))
            found = []
        else:
            found = higher(x, order - 1, **kwargs)
            y = found[-1]
    return [*found, tape.gradient(y, x)]


def third_derivative(call):
    return higher(tf.constant(floats(2, 4, seed=call)), 3)


def third_derivative_by_persistent_tapes(call):
    return higher(tf.constant(floats(2, 4, seed=call)), 3, persistent=True)


def gradient_penalty(call):
    x = tf.constant(floats(2, 4, seed=call))

    def loss():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(network(x)))
        norm = tf.sqrt(tf.reduce_sum(tf.square(tape.gradient(y, x)), axis=1))
        return tf.reduce_mean(tf.square(norm - 1.0)) + y

    return gradients(loss, *W, *B)


def walk_under_its_own_tape(call):
    x = tf.constant(floats(3, seed=call))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        g = tape.gradient(tf.exp(x) * x, x)
        h = tape.gradient(g * tf.sin(x), x)
    return [g, h, tape.gradient(h, x)]


def tape_opened_after_the_forward(call):
    """Walk while a second tape records. The first one keeps values that Python has not seen."""
    x = tf.constant(floats(3, seed=call))
    with tf.GradientTape() as first:
        first.watch(x)
        y = DENSE(x[tf.newaxis])
    with tf.GradientTape() as second:
        second.watch(y)
        g = first.gradient(y, [x, *DENSE.trainable_variables], output_gradients=tf.tanh(y))
    return [*g, second.gradient(g[0], y)]


def several_targets(call):
    """Return a gradient that is a sum in the order in which TensorFlow takes the targets."""
    x = tf.constant(floats(3, seed=call))
    return gradients(
        lambda: [tf.exp(x), tf.sin(x), x * x * x, tf.sqrt(tf.abs(x)), tf.exp(x * 0.37)], x
    )


def many_targets(call):
    x = tf.constant(floats(3, seed=call))
    return gradients(lambda: [tf.sin(x * (0.1 * i)) for i in range(1, 60)], x)


def a_target_of_a_target(call):
    x = tf.constant(floats(3, seed=call))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
        targets = [y, tf.sin(y) * x, y]
    return tape.gradient(targets, [x, y], output_gradients=[x, 2.0 * x, x])


PROGRAMS = [
    *(perceptron, shared_weights, penalty, by_inputs, recurrent, slices, embedding, losses),
    *(unconnected, seeded, doubles, not_differentiable, third_derivative),
    *(third_derivative_by_persistent_tapes, gradient_penalty, walk_under_its_own_tape),
    *(tape_opened_after_the_forward, several_targets, many_targets, a_target_of_a_target),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program):
    hold(program)


def test_training_gives_the_same_weights():
    """Each step depends on the last bit of all steps before."""

    def trained(_):
        variables = [*W, *B]
        saved = [variable.numpy() for variable in variables]
        for call in range(30):
            for variable, gradient in zip(variables, perceptron(call), strict=True):
                variable.assign_sub(0.05 * gradient)
        values = [variable.numpy() for variable in variables]
        for variable, value in zip(variables, saved, strict=True):
            variable.assign(value)
        return values

    hold(trained, calls=2, least=50)


# ---------------------------------------------------------------------------------------------
# What changes between two walks
# ---------------------------------------------------------------------------------------------


def test_in_the_replica_of_the_default_strategy():
    """Steps by `strategy.run`, as in Keras's `fit(run_eagerly=True)`, are replayed like others."""
    strategy = tf.distribute.get_strategy()
    hold(lambda call: strategy.run(perceptron, (call,)))
    hold(lambda call: strategy.run(losses, (call,)))
    with strategy.scope():
        wanted = losses(0)
    assert_same(losses(0), wanted)


def test_other_wiring():
    """The same ops on other tensors are another walk."""

    def program(call):
        x, y = tf.constant(floats(3, seed=call)), tf.constant(floats(3, seed=call + 1))
        first, second = (x, y) if call % 2 else (y, x)
        return gradients(lambda: tf.exp(first) * second * first, x, y)

    hold(program, calls=12, least=8)


def test_other_sources_and_targets():
    x = tf.constant(floats(3, seed=1))
    y = tf.constant(floats(3, seed=2))

    def program(call):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            a = tf.exp(x) * y
            b = tf.sin(a)
        targets = [a, b][call % 2]
        sources = [[x], [y], [x, y], [y, x], [x, x]][call % 5]
        return tape.gradient(targets, sources)

    hold(program, calls=40, least=20)


def test_other_shapes():
    def program(call):
        x = tf.constant(floats(2 + call % 3, 4, seed=call))
        return gradients(lambda: tf.reduce_mean(network(x)), *W, *B)

    hold(program, calls=15, least=8)


def test_other_attributes():
    def program(call):
        x = tf.constant(floats(3, 4, seed=call))
        alpha = 0.1 + call % 2
        return gradients(lambda: tf.nn.leaky_relu(x, alpha=alpha), x)

    hold(program, calls=12, least=8)


def test_values_that_python_reads():
    """The gradient of a sum reads its axes."""

    def program(call):
        x = tf.constant(floats(3, 3, seed=call))
        axis = tf.constant([call % 2])
        return gradients(lambda: tf.raw_ops.Sum(input=x * x, axis=axis, keep_dims=False), x)

    hold(program, calls=12, least=4)


def test_what_is_watched():
    x, y = tf.constant(floats(3, seed=1)), tf.constant(floats(3, seed=2))

    def program(call):
        with tf.GradientTape() as tape:
            tape.watch(x)
            if call % 2:
                tape.watch(y)
            z = x * y
            if call % 3 == 0:
                tape.watch(z)
            z = z * x + y
        return [g for g in tape.gradient(z, [x, y]) if g is not None]

    hold(program, calls=24, least=12)


def test_other_numbers_of_records():
    """The order of several targets depends on how many ops the tape has recorded between them."""

    def program(call, seed):
        x = tf.constant(floats(30, seed=seed))

        def targets():
            found = []
            for i in range(1, 6):
                found.append(tf.sin(x * (0.3 * i)))
                for _ in range([0, 5, 7, 8][call % 4]):
                    tf.exp(x)  # nobody needs this record
            return found

        return gradients(targets, x)

    assert len({program(call, 0)[0].numpy().tobytes() for call in range(4)}) == 4
    hold(lambda call: program(call, call), calls=24, least=8)


def test_a_replaced_gradient_function():
    """Another function in TensorFlow's registry, and a patched function that a gradient calls."""
    x = tf.constant(floats(3, seed=1))

    def program():
        return gradients(lambda: tf.sin(tf.exp(x)), x)[0]

    wanted = program()
    fastops.install()
    for _ in range(CALLS):
        assert_same(program(), wanted)
    assert walks.describe()["active"] == 1
    entry = framework._gradient_registry._registry["Exp"]
    original = entry["type"]
    entry["type"] = lambda op, grad: 2.0 * grad
    try:
        changed = program()
    finally:
        entry["type"] = original
    assert_same(changed, 2.0 * tf.cos(tf.exp(x)))
    before = walks.describe()["replayed"]
    assert_same(program(), wanted)
    assert walks.describe()["replayed"] == before + 1


def test_a_patched_function(monkeypatch):
    x, y = tf.constant(floats(3, 1, seed=1)), tf.constant(floats(1, 4, seed=2))

    def program():
        return gradients(lambda: x * y, x, y)

    wanted = program()
    fastops.install()
    for _ in range(CALLS):
        assert_same(program(), wanted)
    assert walks.describe()["active"] == 1
    called = []

    def reduce_sum(*args, **kwargs):
        called.append(args)
        return original(*args, **kwargs)

    original = math_grad.math_ops.reduce_sum
    with monkeypatch.context() as patch:
        patch.setattr(math_grad.math_ops, "reduce_sum", reduce_sum)
        before = walks.describe()["replayed"]
        program()
        assert walks.describe()["replayed"] == before


# ---------------------------------------------------------------------------------------------
# Custom gradients of libraries
# ---------------------------------------------------------------------------------------------

SILU = keras.layers.Dense(4, activation="silu")
SILU.build([1, 4])


def silu_network(x):
    for w, b in zip(W, B, strict=True):
        x = tf.nn.silu(x @ w + b)
    return SILU(x)


@pytest.mark.parametrize("beta", [1.0, 0.5, "tensor"])
def test_silu(beta):
    def program(call):
        x = tf.constant(floats(3, 4, seed=call))
        scale = tf.constant(0.25 * call) if beta == "tensor" else beta
        sources = [x, scale] if beta == "tensor" else [x]
        return gradients(lambda: tf.nn.silu(x, scale) * tf.exp(x), *sources)

    hold(program, 12, 6)


@pytest.mark.parametrize("persistent", [False, True])
def test_silu_in_networks(persistent):
    def program(call):
        x = tf.constant(floats(2, 4, seed=call))
        variables = [*W, *B, *SILU.variables]
        return gradients(
            lambda: tf.reduce_sum(silu_network(x) ** 2), *variables, x, persistent=persistent
        )

    hold(program, 12, 6)


def test_second_derivatives_of_silu():
    def program(call):
        x = tf.constant(floats(3, 4, seed=call))
        with tf.GradientTape() as outer:
            outer.watch(x)
            first = gradients(lambda: silu_network(x), x)[0]
        return first, outer.gradient(first, [x, W[0]])

    hold(program, 12, 6)


def test_an_accumulator_around_silu():
    def program(call):
        x = tf.constant(floats(3, 4, seed=call))
        forward = tf.autodiff.ForwardAccumulator(x, tf.ones_like(x))
        with forward, tf.GradientTape() as tape:
            tape.watch(x)
            y = silu_network(x)
        return y, forward.jvp(y), tape.gradient(y, x)

    wanted = [program(call) for call in range(12)]
    assert_same(replayed(program, 12)[0], wanted)


def test_stopped_silu():
    def program(call):
        x = tf.constant(floats(3, 4, seed=call))
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tape.stop_recording():
                stopped = tf.nn.silu(x)
            y = tf.nn.silu(x) * stopped
        return tape.gradient(y, x)

    hold(program, 12, 6)


def test_records_of_silu_after_uninstall():
    """A tape that has been filled while fastops was installed is used afterwards."""
    x = tf.constant(floats(3, 4))
    want = gradients(lambda: silu_network(x), x, W[1])
    fastops.install()
    for _ in range(12):
        gradients(lambda: silu_network(x), x, W[1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = silu_network(x)
    fastops.uninstall()
    assert_same(tuple(tape.gradient(y, [x, W[1]])), want)


def test_a_replaced_function_of_silu():
    """The gradient function of silu looks up names: later replays must see what is there."""

    def program(call):
        x = tf.constant(floats(3, 4, seed=call))
        return gradients(lambda: tf.nn.silu(x), x)

    def sigmoid(x, name=None):
        return tf.tanh(x)

    with pytest.MonkeyPatch.context() as patch:
        fastops.install()
        for call in range(12):
            program(call)
        fastops.uninstall()
        patch.setattr(nn_impl.math_ops, "sigmoid", sigmoid)
        want = program(1)
        fastops.install()
        got = program(1)
        fastops.uninstall()
    assert_same(got, want)


# ---------------------------------------------------------------------------------------------
# Walks that are not replayed
# ---------------------------------------------------------------------------------------------


def never(program, calls=CALLS):
    wanted = [program(call) for call in range(calls)]
    results, times = replayed(program, calls)
    for result, want in zip(results, wanted, strict=True):
        assert_same(result, want)
    assert times == 0


def test_custom_gradients_of_users():
    @tf.custom_gradient
    def double(x):
        return 2.0 * x, lambda grad: 3.0 * grad

    x = tf.constant(floats(3, seed=1))
    never(lambda call: gradients(lambda: tf.exp(double(x)), x))


def test_long_walks():
    """A walk may run as many ops as a call of a model does."""

    def program(call):
        x = tf.constant(floats(2, 4, seed=call))

        def loss():
            state = x
            for _ in range(150):
                state = tf.tanh(state @ W[0] + x @ W[1] + B[0]) * state
            return tf.reduce_sum(state)

        return gradients(loss, *W[:2], B[0])

    hold(program)


def test_recurrent_layers_with_masks():
    keras.utils.set_random_seed(0)
    layer = keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True))
    layer.build((None, 16, 2))

    def program(call):
        x = tf.constant(floats(4, 16, 2, seed=call))
        mask = tf.sequence_mask([16, 1 + call % 16, 7, 16])
        sources = [variable.value for variable in layer.trainable_variables]
        return gradients(lambda: tf.reduce_mean(layer(x, mask=mask) ** 2), x, *sources)

    hold(program, calls=12, least=6)


def test_large_tensors():
    x = tf.ones([3000, 2000])
    never(lambda call: gradients(lambda: tf.exp(tf.sin(x)), x), calls=4)


def test_an_accumulator():
    x = tf.constant(floats(3, seed=1))

    def program(call):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
            g = gradients(lambda: tf.sin(x) * x, x)[0]
        return [g, forward.jvp(g)]

    never(program)


def test_an_accumulator_around_the_walk():
    """An accumulator calls gradient functions while a walk is recorded. Later it is told of ops."""

    def program(call, accumulated):
        x, y = (tf.constant(floats(3, seed=call + i)) for i in range(2))
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.sin(x) * y
        if not accumulated:
            return tape.gradient(z, x, output_gradients=tf.exp(y))
        with tf.autodiff.ForwardAccumulator(y, tf.ones_like(y)) as forward:
            g = tape.gradient(z, x, output_gradients=tf.exp(y))
        return [g, forward.jvp(g)]

    never(lambda call: program(call, True))
    hold(lambda call: program(call, call > 2))


def test_an_op_without_registration():
    images = tf.constant(floats(1, 2, 2, 3, seed=1))

    def program(call):
        with pytest.raises(LookupError) as raised:
            gradients(lambda: tf.raw_ops.AdjustHue(images=images, delta=0.1), images)
        return [tf.constant(str(raised.value))]

    never(program)


def test_gradient_functions_of_users():
    x = tf.constant(floats(3, seed=1))
    entry = framework._gradient_registry._registry["Exp"]
    original = entry["type"]
    entry["type"] = lambda op, grad: grad * op.outputs[0] * 2.0
    try:
        never(lambda call: gradients(lambda: tf.sin(tf.exp(x)), x))
    finally:
        entry["type"] = original


# ---------------------------------------------------------------------------------------------
# What surrounds walks
# ---------------------------------------------------------------------------------------------


def test_persistent_tapes():
    def program(call):
        x = tf.constant(floats(3, seed=call))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.exp(x)
            z = y * x
        return [tape.gradient(z, x), tape.gradient(y, x), tape.gradient(z, [x, y])]

    hold(program, least=3)


def test_a_tape_is_used_up():
    x = tf.constant(floats(3, seed=1))
    fastops.install()
    for _ in range(CALLS):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.exp(x) * x
        tape.gradient(y, x)
        with pytest.raises(RuntimeError, match="can only be used"):
            tape.gradient(y, x)
    assert walks.describe()["replayed"] > 0


def test_records_are_freed():
    """Nothing is left to the garbage collector: neither by a recording, nor by what it learns."""
    recording._statics.clear()
    fastops.install()

    def alive():
        x = tf.constant(floats(3, seed=1))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.exp(x)
            inner = weakref.ref(y)
            z = y * x
        tape.gradient(z, x)
        del y, z
        return inner

    gc.disable()
    try:
        assert [alive()() for _ in range(CALLS)] == [None] * CALLS
    finally:
        gc.enable()


def test_a_dropped_tape_leaves_nothing():
    fastops.install()
    x = tf.constant(floats(3, seed=1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        inner = [weakref.ref(tf.exp(x)) for _ in range(5)]
        kept = tf.exp(x)
        last = weakref.ref(kept)
        del kept
    assert all(ref() is not None for ref in inner)  # the gradient of an exponential needs it
    del tape
    assert all(ref() is None for ref in (*inner, last))


def test_a_record_that_is_not_needed_is_dropped_at_once():
    fastops.install()
    x = tf.constant(floats(3, seed=1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.square(x)
        other = tf.constant(floats(3, seed=2))
        held = weakref.ref(other)
        z = other * x  # its gradient needs `other`
        del other
        assert held() is not None
        del z  # nobody needs this record any more
        assert held() is None
    assert_same(tape.gradient(y, x), 2.0 * x)


@pytest.mark.parametrize("way", ["replayed", "in full", "by TensorFlow"])
def test_values_that_only_records_keep(way):
    """A replay under one tape makes no EagerTensors of what Python does not see."""
    model = keras.Sequential([keras.layers.Dense(3, "gelu"), keras.layers.Dense(2, "softmax")])
    model.build((None, 4))
    variables = [variable.value for variable in model.trainable_variables]

    def program(call):
        x = tf.constant(floats(2, 4, seed=call))
        with tf.GradientTape() as tape:
            y = model(x)
        kind = "zero" if way == "by TensorFlow" else "none"
        return tape.gradient(y, variables, unconnected_gradients=kind)

    wanted = [program(call) for call in range(30)]
    with walks_in_full() if way == "in full" else nullcontext():
        results, times = replayed(program, 30)
    for result, want in zip(results, wanted, strict=True):
        assert_same(result, want)
    assert (times > 0) == (way == "replayed")


def test_threads():
    def program(call):
        x = tf.constant(floats(2, 4, seed=call))
        return gradients(lambda: tf.reduce_mean(network(x)), *W, *B)

    wanted = [program(call) for call in range(8)]
    failures = []

    def work(call):
        try:
            for _ in range(30):
                for result, want in zip(program(call), wanted[call], strict=True):
                    assert_same(result, want)
        except BaseException as failure:
            failures.append(failure)

    fastops.install()
    threads = [threading.Thread(target=work, args=(call,)) for call in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert walks.describe()["replayed"] > 0


def test_uninstalled_between_record_and_walk():
    x = tf.constant(floats(3, seed=1))
    wanted = gradients(lambda: tf.exp(x) * x, x)[0]
    fastops.install()
    for change in (lambda: None, fastops.uninstall, fastops.install, fastops.uninstall):
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.exp(x) * x
            change()
            assert_same(tape.gradient(y, x), wanted)


def test_other_gradients_excluded():
    x = tf.constant(floats(3, seed=1))
    with fastops.accelerated(exclude=["gradients"]):
        before = walks.describe()["replayed"]
        for _ in range(CALLS):
            gradients(lambda: tf.exp(x) * x, x)
        assert walks.describe()["replayed"] == before


# ---------------------------------------------------------------------------------------------
# Programs that are drawn
# ---------------------------------------------------------------------------------------------

UNARY = [tf.exp, tf.sin, tf.tanh, tf.sigmoid, tf.square, tf.nn.relu, tf.abs, tf.negative]
BINARY = [tf.add, tf.multiply, tf.subtract, tf.maximum, tf.math.squared_difference]
SHAPES = [(3, 4), (1, 4), (3, 1), ()]

STEP = st.tuples(st.integers(0, 12), st.integers(0, 99), st.integers(0, 99))


def run(steps, call, sources, targets, order):
    """Run a program of steps, and differentiate it.

    Each step takes values that there are, and makes one. The targets are the last values, or the
    sum of their means. There are as many tapes as the order.
    """
    inputs = [tf.constant(floats(*shape, seed=call + i)) for i, shape in enumerate(SHAPES)]

    def derivative(order):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            made = list(inputs) if order == 1 else derivative(order - 1)
            for kind, left, right in steps:
                x, y = made[left % len(made)], made[right % len(made)]
                if kind < len(UNARY):
                    made.append(UNARY[kind](x))
                else:
                    made.append(BINARY[kind - len(UNARY)](x, y))
            target = made[-3:]
            if targets == "sum":
                target = tf.reduce_sum(tf.stack([tf.reduce_mean(value) for value in target]))
        found = tape.gradient(target, [made[i % len(made)] for i in sources])
        return [*inputs, *(value for value in found if value is not None)]

    return derivative(order)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(STEP, min_size=1, max_size=30),
    st.lists(st.integers(0, 33), min_size=1, max_size=4),
    st.sampled_from(["sum", "several"]),
    st.integers(1, 2),
)
def test_drawn_programs(steps, sources, targets, order):
    fastops.uninstall()
    hold(lambda call: run(steps, call, sources, targets, order), calls=4, least=1)
