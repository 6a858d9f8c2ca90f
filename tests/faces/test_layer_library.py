"""The layers of `examples/layers.py` are compared with tf_keras's; other examples use the backend.

If the same ops run in the same order, the results are the same to the last bit. If tf_keras
composes a layer of other ops, they are not; the tests name these layers.
"""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from support import assert_same, python

from fastops import backend

tf_keras = pytest.importorskip("tf_keras", reason="see the extra 'libraries'")

ROOT = Path(__file__).parents[2]

SEVERAL_ROUNDINGS = {"rtol": 2e-5, "atol": 2e-6}


@pytest.fixture
def layers(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("layers")


def drawn(*sizes, seed=3):
    return np.random.default_rng(seed).normal(size=sizes).astype(np.float32)


def printed(program, *arguments):
    """Return the lines that a program prints, without the times."""
    path = ROOT / "examples" / program
    out = python(
        f"""
        import runpy, sys
        sys.path[0] = {str(path.parent)!r}
        sys.argv = {[str(path), *arguments]!r}
        runpy.run_path(sys.argv[0], run_name="__main__")
        """,
        timeout=300,
    )
    return [line for line in out.splitlines() if not line.startswith("seconds:")]


def pair(layer, like, sizes):
    """Build a layer and tf_keras's, with the same weights, none of which is zero."""
    assert layer.build(sizes, np.random.default_rng(0)) is not None
    like.build((None, *sizes))
    for number, (weight, other) in enumerate(
        zip(layer.weights, like.trainable_variables, strict=True)
    ):
        value = 0.3 * drawn(*other.shape, seed=number)
        backend.set_value(weight, value)
        other.assign(value)
    return layer, like


def gradients(layer, x, training):
    """Return the result of a layer, and its gradients with respect to inputs and weights."""
    weights = layer.weights if hasattr(layer, "seen") else layer.trainable_variables
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=training)
        loss = tf.reduce_sum(tf.square(y))
    return [y, *tape.gradient(loss, [x, *weights])]


@pytest.mark.parametrize(
    ("kind", "ours", "options", "sizes"),
    [
        ("Dense", (7,), {}, (5,)),
        ("Conv2D", (4, 3), {"padding": "same"}, (8, 8, 2)),
        ("Conv2D", (4, 3, 2), {"strides": 2}, (9, 7, 3)),
        ("Flatten", (), {}, (3, 2, 2)),
    ],
)
def test_layers_are_the_same_to_the_last_bit(layers, kind, ours, options, sizes):
    like = getattr(tf_keras.layers, kind)(*ours[:2], **options)
    padding = {"padding": options["padding"]} if "padding" in options else {}
    layer, like = pair(getattr(layers, kind)(*ours, **padding), like, sizes)
    x = drawn(6, *sizes)
    for got, want in zip(gradients(layer, x, True), gradients(like, x, True), strict=True):
        assert_same(got, want)
    assert_same(layer(tf.constant(x)), like(tf.constant(x)))
    assert tuple(like.compute_output_shape((None, *sizes)))[1:] == layer.build(
        sizes, np.random.default_rng(0)
    )


@pytest.mark.parametrize("sizes", [(6, 6, 3), (5,)])
def test_batch_normalization(layers, sizes):
    """Moving averages differ by rounding: the fused kernel of tf_keras updates them itself."""
    layer, like = pair(
        layers.BatchNormalization(0.8), tf_keras.layers.BatchNormalization(momentum=0.8), sizes
    )
    close = {"rtol": 1e-6, "atol": 1e-7}
    for batch in range(3):
        x = drawn(8, *sizes, seed=batch)
        got, want = gradients(layer, x, True), gradients(like, x, True)
        if len(sizes) == 3:
            for one, other in zip(got, want, strict=True):
                assert_same(one, other)
        else:  # with another number of axes, tf_keras has another gradient of the means
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one, other, **SEVERAL_ROUNDINGS)
        for state, value in zip(layer.states, layer.seen, strict=True):
            backend.moving_average_update(state, value, layer.momentum)
        for state, other in zip(layer.states, like.non_trainable_variables, strict=True):
            np.testing.assert_allclose(state, other, **close)
    for state, other in zip(layer.states, like.non_trainable_variables, strict=True):
        state.assign(other)
    x = tf.constant(drawn(8, *sizes, seed=9))
    assert_same(layer(x), like(x, training=False))


@pytest.mark.parametrize("sequences", [False, True])
def test_lstm(layers, sequences):
    """The LSTM of tf_keras is a traced loop, whose ops TensorFlow's optimizer fuses and moves."""
    layer, like = pair(
        layers.LSTM(6, sequences), tf_keras.layers.LSTM(6, return_sequences=sequences), (7, 4)
    )
    for batch in range(4):  # the first batches are recorded, later ones replayed
        x = drawn(3, 7, 4, seed=batch)
        got, want = gradients(layer, x, True), gradients(like, x, True)
        assert got[0].shape == want[0].shape
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, **SEVERAL_ROUNDINGS)
    assert layer.step.describe()["replayed"] >= 1


def test_adam(layers):
    values = [drawn(4, 3), drawn(3, seed=5)]
    ours = [backend.variable(value) for value in values]
    theirs = [tf.Variable(value) for value in values]
    adam = layers.Adam(ours, 0.01)
    like = tf_keras.optimizers.Adam(0.01)
    for step in range(6):
        slopes = [tf.constant(drawn(*value.shape, seed=step)) for value in values]
        adam.apply(slopes)
        like.apply_gradients(zip(slopes, theirs, strict=True))
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one.read_value(), other.read_value())
    assert adam.next.describe()["replayed"] == 1


def test_steps_are_replayed_and_see_what_is_changed(layers):
    """The losses are the same as those of a network whose steps run as Python."""

    def losses(again):
        network = layers.Network(
            [layers.Dense(8, backend.tanh), layers.BatchNormalization(), layers.Dense(3)], (5,)
        )
        if again:
            network.assess = network._assess
        adam = layers.Adam(network.weights)
        x, y = tf.constant(drawn(9, 5)), tf.constant([0, 1, 2] * 3)
        history = [network.train(adam, x, y).numpy() for _ in range(6)]
        network.weights[0].assign_add(network.weights[0])
        history += [network.train(adam, x, y).numpy(), *network(x).numpy().ravel()]
        return network, history

    network, history = losses(again=False)
    assert network.assess.describe()["replayed"] == 1
    assert history == losses(again=True)[1]
    assert len(set(history)) == len(history)


def test_training_on_the_digits_is_the_same_as_with_tf_keras():
    """The weights are the same to the last bit after 96 steps."""
    got = printed("digits_conv.py", "--epochs=2")
    want = printed("digits_conv.py", "--epochs=2", "--library=tf_keras")
    assert [line.split(":")[0] for line in got][0::2] == ["losses", "weights"]
    first, second = map(float, got[0].split()[1:])
    assert second < 0.3 < first
    assert got == want


def test_kalman_filter():
    """NumPy, TensorFlow and fastops find the same estimates as statsmodels."""
    statsmodels = pytest.importorskip("statsmodels.tsa.statespace.kalman_filter")
    from statsmodels.datasets import nile

    model = statsmodels.KalmanFilter(
        k_endog=1,
        k_states=2,
        design=np.array([[1.0, 0.0]]),
        transition=np.array([[1.0, 1.0], [0.0, 1.0]]),
        selection=np.eye(2),
        obs_cov=np.array([[15099.0]]),
        state_cov=np.diag([1469.1, 4.0]),
    )
    model.bind(nile.load_pandas().data["volume"].to_numpy(float))
    model.initialize_known(np.array([1000.0, 0.0]), np.diag([1e6, 1e4]))
    want = model.filter()
    level, slope = want.predicted_state[:, -1]
    deviation = want.predicted_state_cov[0, 0, -1] ** 0.5
    head, *lines = printed("kalman.py", "--repeat=3")
    assert head == "100 years, 20 small ops in each step"
    assert [line.split(":")[0] for line in lines] == ["numpy", "tensorflow", "replayed", "fastops"]
    for line in lines:
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", line)]
        assert numbers == pytest.approx([want.llf, level, deviation, slope], rel=1e-6, abs=1e-4)


def test_a_kalman_step_computes_the_same_as_numpy(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    kalman = importlib.import_module("kalman")
    flows = np.random.default_rng(1).normal(1000, 150, 40)
    likelihood, *want, _ = kalman.estimate("numpy", flows, 1)
    for kind in ("tensorflow", "replayed"):
        found, *got, _ = kalman.estimate(kind, flows, 1)
        assert found == pytest.approx(likelihood, rel=1e-12)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-9)
