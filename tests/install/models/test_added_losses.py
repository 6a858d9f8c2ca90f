"""Replayed calls of Keras's layers and models that add losses."""

import gc
import weakref
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, begin, compare, floats, plain, probe, told
from keras import layers as L  # noqa: N812

import fastops
from fastops._core.reasons import text_of
from fastops._install.verify.results import RESULTS

X = floats(3, 4)


def stack(*layers):
    return keras.Sequential([keras.Input((4,)), *layers, L.Dense(2)])


class Sampling(L.Layer):
    """Adds the loss of a variational encoder."""

    def __init__(self, times=1):
        super().__init__()
        self.times, self.seeds = times, keras.random.SeedGenerator(3)

    def call(self, x, training=False):
        mean, log_scale = x[:, :2], x[:, 2:]
        for _ in range(self.times):
            self.add_loss(-0.5 * tf.reduce_mean(1 + log_scale - mean**2 - tf.exp(log_scale)))
        if not training:
            return mean
        return mean + tf.exp(0.5 * log_scale) * keras.random.normal((3, 2), seed=self.seeds)


class Outer(keras.Model):
    """Adds a loss beside those of a layer that it holds."""

    def __init__(self):
        super().__init__()
        self.one, self.sampling, self.two = L.Dense(4), Sampling(), L.Dense(4)

    def call(self, x, training=False):
        z = self.sampling(self.one(x), training=training)
        y = self.two(z)
        self.add_loss([tf.reduce_sum(y), 0.1 * tf.reduce_mean(y * y)])
        return y


def functional():
    inputs = keras.Input((4,))
    hidden = L.Dense(4, activity_regularizer="l2")(inputs)
    return keras.Model(inputs, L.Dense(2)(L.ActivityRegularization(0.5)(hidden)))


MODELS = {
    "functional": functional,
    "regularization": lambda: stack(L.Dense(4), L.ActivityRegularization(0.5, 0.1)),
    "regularizer": lambda: stack(L.Dense(4, activity_regularizer="l2", kernel_regularizer="l1")),
    "sampling": lambda: stack(Sampling()),
    "two": lambda: stack(Sampling(2), L.Dense(4, activity_regularizer="l1")),
    "none": lambda: stack(Sampling(0)),
    "outer": Outer,
    "nested": lambda: stack(Outer()),
    "layer": lambda: L.Dense(4, activity_regularizer="l2"),
}


def inner_losses(model):
    return [list(layer._losses) for layer in model._flatten_layers()]


@pytest.mark.parametrize("name", MODELS)
def test_losses(name):
    def program():
        model = MODELS[name]()
        probe(model)
        for number in range(2 * CALLS):
            yield model(X * number)
            yield model.losses, inner_losses(model)
            yield model(X, training=True), model.losses
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(X, training=True)) + tf.add_n(model.losses or [0.0])
            yield loss, tape.gradient(loss, model.trainable_variables)

    compare(program, native=name not in ("sampling", "two", "outer", "nested", "none"))


@pytest.mark.parametrize("name", ["regularizer", "outer"])
def test_losses_of_other_calls(name):
    """A call clears the losses of earlier ones, whoever has added them."""

    def program():
        model, other = MODELS[name](), MODELS[name]()
        probe(model)
        for number in range(3 * CALLS):
            yield model(X), model.losses
            if number % 3 == 0:
                model.layers[-1].add_loss(tf.constant(5.0))
                yield model.losses
            if number % 4 == 0:
                yield model.layers[0](X), model.losses
            yield other(X), other.losses, model.losses
            kept = model.losses
            yield model(X * 2.0), kept, inner_losses(model)

    compare(program)


class Counting(keras.Model):
    """Changes an attribute in each call, so that only its parts are replayed."""

    def __init__(self):
        super().__init__()
        self.parts = [Outer(), L.Dense(4, activity_regularizer="l2"), Sampling()]
        self.count = 0

    def call(self, x):
        self.count += 1
        for part in (*self.parts, self.parts[1]):
            y = part(x)
        return y * self.count


def test_layers_inside_of_calls_that_are_not_replayed():
    """The losses are added to those of the layers that ran before in the same outer call."""

    def program():
        model = Counting()
        for part in model.parts:
            probe(part)
        for _ in range(3 * CALLS):
            yield model(X), model.losses, inner_losses(model)

    compare(program)


@pytest.mark.parametrize("make", [MODELS["regularizer"], MODELS["outer"], Counting])
def test_losses_are_verified(make):
    """Under `verify`, a call is made twice, and the losses are those of one call."""

    def losses():
        begin()
        model = make()
        return [plain((model(X * number), model.losses)) for number in range(2 * CALLS)]

    expected = losses()
    fastops.install(verify=True)
    try:
        assert losses() == expected
    finally:
        fastops.uninstall()
        RESULTS.reset()


def test_changes_of_what_is_added():
    def program():
        sampling = Sampling()
        model = stack(sampling)
        probe(model)
        for times in (1, 3, 0, 1):
            sampling.times = times
            for _ in range(CALLS):
                yield model(X), model.losses
        layer = model.layers[-1]
        layer.activity_regularizer = keras.regularizers.L2(0.5)
        for _ in range(CALLS):
            yield model(X), model.losses

    compare(program)


def test_training():
    def program():
        model = MODELS["outer"]()
        model.compile("adam", "mse", run_eagerly=True)
        yield model.fit(X, X, epochs=6, batch_size=3, verbose=0).history
        yield model.get_weights(), model.losses

    compare(program)


def test_calls_that_read_losses_are_refused():
    @fastops.keras.replayable
    class Reading(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = L.Dense(4, activity_regularizer="l2")

        def call(self, x):
            return self.layer(x) + tf.add_n(self.layer.losses)

    def program():
        model = Reading()
        probe(model)
        for _ in range(2 * CALLS):
            yield model(X), model.losses

    compare(program, replayed=False)
    with fastops.accelerated():
        model = Reading()
        for _ in range(2 * CALLS):
            model(X)
        assert text_of("adds_losses") in told(model)["reasons"]


def test_overridden_methods_are_refused():
    class Silent(L.Dense):
        def add_loss(self, loss):
            """Add nothing."""

    class Keeping(L.Dense):
        def _clear_losses(self):
            """Clear nothing."""

    def program():
        for kind in (Silent, Keeping):
            model = stack(kind(4, activity_regularizer="l2"))
            for _ in range(2 * CALLS):
                yield model(X), model.losses

    compare(program)


def test_objects_made_anew():
    """Objects of a class share recordings, but not the layers to which losses are added."""

    def program():
        for _ in range(6):
            model = stack(L.Dense(4, activity_regularizer="l2"))
            for _ in range(CALLS):
                yield model(X), model.losses
            del model

    compare(program)


def test_losses_of_layers_that_are_not_tracked():
    """Keras does not clear the losses of such a layer, so they grow with each call."""

    class Hiding(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = L.Dense(4, activity_regularizer="l2")
            self.hidden = SimpleNamespace(layer=L.Dense(4, activity_regularizer="l1"))

        def call(self, x):
            return self.layer(x) + self.hidden.layer(x)

    def program():
        model = Hiding()
        probe(model)
        for _ in range(2 * CALLS):
            yield model(X), model.losses, list(model.hidden.layer._losses)

    compare(program, replayed=False)


def test_global_layers():
    outer = L.Dense(4, activity_regularizer="l1")

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = L.Dense(4, activity_regularizer="l2")

        def call(self, x):
            return outer(self.layer(x))

    def program():
        outer._losses.clear()
        model = Own()
        for _ in range(2 * CALLS):
            yield model(X), model.losses, list(outer._losses)

    compare(program)


@pytest.mark.parametrize("name", ["regularizer", "outer"])
def test_objects_die(name):
    with fastops.accelerated():
        model = MODELS[name]()
        for _ in range(2 * CALLS):
            model(X)
        assert told(model)["replayed"]
        reference = weakref.ref(model)
        del model
        gc.collect()
        assert reference() is None
