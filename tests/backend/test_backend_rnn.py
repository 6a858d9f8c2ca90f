"""`rnn`: how often steps run, which are replayed, and how states and structures are passed on."""

import numpy as np
import pytest
import tensorflow as tf

import fastops
from fastops import backend

X = tf.constant(np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32))
KERNEL = tf.Variable(np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32))
RECURRENT = tf.Variable(np.random.default_rng(2).normal(size=(4, 4)).astype(np.float32))
STATE = tf.zeros([2, 4])


def step(x, states):
    output = backend.tanh(backend.dot(x, KERNEL) + backend.dot(states[0], RECURRENT))
    return output, [output]


def same(one, other):
    pairs = zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_a_step_runs_once_for_each_timestep():
    calls = []

    def counted(x, states):
        calls.append(x)
        return step(x, states)

    backend.rnn(counted, X, [STATE])
    assert len(calls) == 5


def test_steps_run_only_kernels(fresh):
    def plain(x, states):
        output = backend.maximum(backend.dot(x, KERNEL), states[0])
        return output, [output]

    for _ in range(2):
        backend.rnn(plain, X, [STATE])
    fastops.reset_stats()
    backend.rnn(plain, X, [STATE])
    found = fastops.stats().ops
    assert {name: counts.direct for name, counts in found.items() if name != "ReadVariableOp"} == {
        "Unpack": 1,
        "MatMul": 5,
        "Maximum": 5,
        "Pack": 1,
    }
    assert not any(counts.reasons for counts in found.values())


def test_inputs_without_timesteps():
    empty = X[:, :0]
    assert "TensorArray" not in str(type(backend.rnn(step, X, [STATE])[1]))
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        backend.rnn(step, empty, [STATE])


def test_a_stateful_rnn_continues_from_its_last_state():
    _, outputs, states = backend.rnn(step, X, [STATE])
    _, first, between = backend.rnn(step, X[:, :2], [STATE])
    _, second, last = backend.rnn(step, X[:, 2:], between)
    assert same(outputs, tf.concat([first, second], 1))
    assert same(states, last)


@pytest.mark.parametrize("unroll", [False, True])
def test_eager_and_traced_results_are_the_same(unroll):
    mask = tf.constant(np.random.default_rng(3).integers(0, 2, (2, 5)).astype(bool))
    for options in (
        {},
        {"mask": mask},
        {"mask": mask, "zero_output_for_mask": True},
        {"go_backwards": True, "mask": mask},
        {"return_all_outputs": False},
    ):

        def call(x, options=options):
            return backend.rnn(step, x, [STATE], unroll=unroll, **options)

        eager, traced = call(X), tf.function(call)(X)
        for one, other in zip(tf.nest.flatten(eager), tf.nest.flatten(traced), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_lengths_that_are_unknown_in_the_graph():
    call = tf.function(lambda x: backend.rnn(step, x, [tf.zeros([tf.shape(x)[0], 4])])[0])
    concrete = call.get_concrete_function(tf.TensorSpec([None, None, 3]))
    np.testing.assert_allclose(concrete(X), backend.rnn(step, X, [STATE])[0], rtol=1e-6)
    with pytest.raises(ValueError, match="fixed number of timesteps"):
        tf.function(lambda x: backend.rnn(step, x, [STATE], unroll=True)).get_concrete_function(
            tf.TensorSpec([2, None, 3])
        )


def test_a_replayable_step(fresh):
    replayed = backend.replayable(step)
    expected = backend.rnn(step, X, [STATE])
    assert replayed.__name__ == "step"
    for _ in range(3):
        assert same(backend.rnn(replayed, X, [STATE]), expected)
    description = replayed.describe()
    assert (description["replayed"], description["refused"]) == (1, 0)
    assert description["native"] > 0
    KERNEL.assign(KERNEL * 2.0)
    try:
        changed = backend.rnn(step, X, [STATE])
        assert same(backend.rnn(replayed, X, [STATE]), changed)
        assert not same(changed, expected)
    finally:
        KERNEL.assign(KERNEL / 2.0)


def test_gradients_of_a_replayable_step():
    replayed = backend.replayable(step)
    gradients = []
    for function in (step, replayed, replayed, replayed):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(backend.rnn(function, X, [STATE])[1] ** 2)
        gradients.append(tape.gradient(loss, [KERNEL, RECURRENT]))
    for gradient in gradients[1:]:
        assert same(gradients[0], gradient)


def test_a_replayable_function_depends_on_the_settings():
    @backend.replayable
    def loss(target, output):
        return backend.binary_crossentropy(target, output)

    target, output = tf.constant([1.0]), tf.constant([0.0])
    for value in (1e-7, 1e-2, 1e-7):
        with backend.scope(epsilon=value):
            for _ in range(3):
                assert same(loss(target, output), backend.binary_crossentropy(target, output))


def test_a_replayable_method_finds_its_variables():
    class Cell:
        def __init__(self):
            self.weights = {"all": [tf.Variable([[2.0]])]}

        def step(self, x, states):
            output = backend.dot(x, self.weights["all"][0]) + states[0]
            return output, [output]

    cell = Cell()
    replayed = backend.replayable(cell.step)
    x, state = tf.ones([1, 4, 1]), [tf.zeros([1, 1])]
    for _ in range(3):
        assert backend.rnn(replayed, x, state)[0].numpy().tolist() == [[8.0]]
    assert replayed.describe()["replayed"] == 1
    cell.weights["all"][0].assign([[3.0]])
    assert backend.rnn(replayed, x, state)[0].numpy().tolist() == [[12.0]]


def test_a_step_that_assigns_is_not_replayed():
    count = tf.Variable(0.0)

    @backend.replayable
    def counting(x, states):
        count.assign_add(1.0)
        return x, states

    for _ in range(3):
        backend.rnn(counting, X, [STATE])
    assert count.numpy() == 15.0
    assert counting.describe()["replayed"] == 0
