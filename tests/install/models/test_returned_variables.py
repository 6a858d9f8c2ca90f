"""Replayed calls that return variables themselves, not tensors of them."""

import gc
import weakref

import keras
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, probe, told
from keras import layers as L  # noqa: N812

import fastops
from fastops._core.reasons import text_of

X = floats(3, 4)
GLOBAL = tf.Variable([1.0, 2.0])


class Policy(keras.Model):
    """Returns a mean and one of its weights, in several ways."""

    def __init__(self, kind="keras", form=tuple):
        super().__init__()
        self.mean, self.form = L.Dense(2), form
        if kind == "keras":
            self.log_std = self.add_weight(shape=(2,), initializer="ones", name="log_std")
        else:
            self.log_std = tf.Variable([1.0, 1.0])

    def call(self, x):
        if self.form is dict:
            return {"mean": self.mean(x), "log_std": self.log_std}
        if self.form is list:
            return [[self.mean(x), self.log_std], self.log_std]
        return self.mean(x), self.log_std


class GivesBack(keras.Model):
    """Returns a variable that is an argument."""

    def __init__(self):
        super().__init__()
        self.layer = L.Dense(2)

    def call(self, x, variable=None):
        return self.layer(x), variable


@pytest.mark.parametrize("form", [tuple, list, dict])
@pytest.mark.parametrize("kind", ["keras", "tensorflow"])
def test_weights(kind, form):
    def program():
        models = [Policy(kind, form), Policy(kind, form)]
        for model in models:
            probe(model)
        for number in range(3 * CALLS):
            model = models[number % 2]
            result = model(X)
            yield result
            yield [one is model.log_std for one in tf.nest.flatten(result)]
            model.log_std.assign(model.log_std * 0.5)
            yield result

    compare(program)


def test_gradients():
    def program():
        model = Policy()
        probe(model)
        for _ in range(3 * CALLS):
            with tf.GradientTape() as tape:
                mean, log_std = model(X)
                loss = tf.reduce_sum(mean * tf.exp(log_std))
            yield tape.gradient(loss, [*model.mean.variables, model.log_std])

    compare(program)


def test_another_variable():
    def program():
        model = Policy("tensorflow")
        probe(model)
        for value in (1.0, 2.0, 3.0):
            model.log_std = tf.Variable([value, value])
            for _ in range(2 * CALLS):
                result = model(X)
                yield result
                yield result[1] is model.log_std

    compare(program)


def test_a_global():
    def program():
        layer = L.Lambda(lambda x: (x * 2.0, GLOBAL))
        probe(layer)
        for _ in range(2 * CALLS):
            result = layer(X)
            yield result
            yield result[1] is GLOBAL

    compare(program)


@pytest.mark.parametrize("make", [tf.Variable, keras.Variable])
def test_arguments(make):
    def program():
        model = GivesBack()
        given = [make([1.0, 2.0]), make([3.0, 4.0])]
        for number in range(6 * CALLS):
            variable = given[number // 2 % 2]
            result = model(X, variable=variable)
            yield result
            yield result[1] is variable

    compare(program, replayed=None)


def test_new_variables_are_refused():
    with fastops.accelerated():
        layer = L.Lambda(lambda x: (x * 2.0, tf.Variable([1.0, 2.0])))
        results = [layer(X)[1] for _ in range(2 * CALLS)]
        known = told(layer)
    assert len({id(result) for result in results}) == len(results)
    assert not known["replayed"]


def test_later_objects_return_their_own():
    """Objects of a class share recordings once one has died, but not those of their variables."""

    def program():
        for _ in range(4):
            model = Policy()
            for _ in range(2 * CALLS):
                result = model(X)
                yield result
                yield result[1] is model.log_std
            del model, result

    compare(program, replayed=None)


def test_other_objects_are_refused():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = L.Dense(2)

        def call(self, x):
            return self.layer(x), self.layer

    with fastops.accelerated():
        model = Model()
        for _ in range(2 * CALLS):
            assert model(X)[1] is model.layer
        known = told(model)
    assert text_of("returns_type") in known["reasons"]


def test_objects_die():
    """A variable may refer to the model that returns it."""

    class Bound(Policy):
        def __init__(self):
            super().__init__()
            self.log_std = self.add_weight(shape=(2,), constraint=self.bounded, name="other")

        def bounded(self, value):
            return tf.minimum(value, 1.0)

    with fastops.accelerated():
        model = Bound()
        for _ in range(2 * CALLS):
            assert model(X)[1] is model.log_std
        assert told(model)["replayed"]
        reference = weakref.ref(model)
        del model
        gc.collect()
        assert reference() is None
