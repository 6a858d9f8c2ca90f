"""Layers and models of users of tf_keras, if it is installed: they are proven, and replayed."""

import enum

import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, floats, outcome, probe, told
from install.models.tf_keras_programs import OBJECTION, L, compare, tf_keras

import fastops

pytestmark = pytest.mark.skipif(OBJECTION is not None, reason=str(OBJECTION))

K = tf_keras.backend
X = floats(2, 4)


class Mode(enum.Enum):
    PLAIN = "plain"
    SCALED = "scaled"


class Scaled(L.Layer):
    def __init__(self, mode=Mode.SCALED, **kwargs):
        super().__init__(**kwargs)
        self.mode, self.table = mode, {"scale": 2.0, "limits": [0.5, 1.5]}

    def build(self, shape):
        self.w = self.add_weight("w", shape=(shape[-1],), initializer="ones")
        super().build(shape)

    def call(self, x):
        if self.mode is Mode.SCALED:
            x = x * self.table["scale"]
        return K.sum(x * self.w, axis=-1, keepdims=True) + self.table["limits"][0] * x


class Sampling(L.Layer):
    def call(self, inputs):
        mean, log_var = inputs
        epsilon = tf.random.normal(shape=(tf.shape(mean)[0], tf.shape(mean)[1]))
        return mean + tf.exp(0.5 * log_var) * epsilon


class Doubled(L.Dense):
    def call(self, inputs):
        return super().call(inputs) * 2.0


class Network(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [Scaled(), Scaled(Mode.PLAIN)]
        penalty = tf_keras.regularizers.L2(0.01)
        self.hidden = Doubled(4, activation="relu", kernel_regularizer=penalty)
        self.dropout, self.out, self.sampling = L.Dropout(0.4), L.Dense(3), Sampling()

    def call(self, x, training=False):
        for block in self.blocks:
            x = block(x)
        x = self.dropout(self.hidden(x), training=training)
        if isinstance(self.out, L.Dense) and training:
            return self.sampling((self.out(x), self.out(x)))
        return self.out(x)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("make", [Network, Scaled, lambda: Doubled(4)])
def test_calls_are_replayed(make, training):
    def program():
        model = make()
        probe(model)
        tf.random.set_seed(4)
        given = {"training": training} if isinstance(model, Network) else {}
        for number in range(2 * CALLS):
            yield outcome(model, X * float(number), **given)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(X, **given)) + sum(model.losses)
        yield tape.gradient(loss, model.trainable_variables)

    compare(program)


CHANGES = {
    "a member of an enumeration": lambda model: setattr(model.blocks[0], "mode", Mode.PLAIN),
    "an item of a dict": lambda model: model.blocks[0].table.update(scale=5.0),
    "an item of a list": lambda model: model.blocks[1].table["limits"].__setitem__(0, 7.0),
    "a rate": lambda model: setattr(model.dropout, "rate", 0.9),
    "a layer": lambda model: setattr(model, "out", L.Dense(3, kernel_initializer="ones")),
    "a layer of another class": lambda model: setattr(model, "out", Scaled()),
    "a block": lambda model: model.blocks.append(Scaled()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(change):
    def program():
        model = Network()
        probe(model)
        tf.random.set_seed(4)
        for _ in range(CALLS):
            yield outcome(model, X, training=True)
            yield outcome(model, X)
        CHANGES[change](model)
        for _ in range(CALLS):
            yield outcome(model, X, training=True)
            yield outcome(model, X)

    compare(program)


def test_changes_of_classes_are_seen(monkeypatch):
    def program():
        model = Network()
        probe(model)
        yield [outcome(model, X) for _ in range(CALLS)]
        with monkeypatch.context() as patch:
            patch.setattr(Doubled, "call", lambda self, x: L.Dense.call(self, x) * 5.0)
            yield [outcome(model, X) for _ in range(CALLS)]
        with monkeypatch.context() as patch:
            patch.setattr(L.Dense, "call", lambda self, x: x[:, :3] * 7.0)
            yield [outcome(model, X) for _ in range(CALLS)]
        yield [outcome(model, X) for _ in range(CALLS)]

    compare(program)


def test_a_seed_that_counts_is_refused():
    """A layer with a seed of its own adds one to it in each call."""
    layer = L.Dropout(0.5, seed=3)
    with fastops.accelerated():
        values = {outcome(layer, X, training=True)[2] for _ in range(CALLS)}
        known = told(layer)
    assert len(values) > 1
    assert not known["replayed"]
    assert "_seed" in str(known["details"])
