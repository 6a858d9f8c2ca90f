"""Layers that users declare as pure: their calls are replayed, and what is compared."""

import contextlib
import random
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, plain, probe, told
from keras import layers as L  # noqa: N812

import fastops
from fastops._core.reasons import text_of

FACTOR = 2.0
TABLE = {"shift": 1.0}
WEIGHTS = np.ones(4, np.float32)


def helper(x):
    return x * FACTOR + TABLE["shift"] + WEIGHTS


@fastops.keras.replayable
class Declared(keras.Layer):
    def __init__(self, inner=None):
        super().__init__()
        self.inner, self.scale, self.before = inner, 3.0, None

    def call(self, x, training=None):
        if self.before is not None:
            self.before(self)
        x = helper(x) * self.scale
        return x if self.inner is None else self.inner(x)


class Undeclared(keras.Layer):
    def call(self, x):
        return helper(x)


class Printing(keras.Layer):
    def call(self, x):
        print(end="")
        return helper(x)


def calls(layer, x=None):
    return [layer(floats(2, 4) if x is None else x) for _ in range(CALLS)]


X = tf.constant(floats(2, 4))


def test_declared_layers_are_replayed():
    def program():
        layer = Declared(L.Dense(3))
        probe(layer)
        yield calls(layer, X)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(X))
        yield tape.gradient(loss, layer.trainable_variables)

    compare(program, native=True)


def test_keras_models_around_them_are_replayed():
    def program():
        model = keras.Sequential([keras.Input((4,)), Declared(), L.Dense(2)])
        probe(model)
        yield calls(model, X)

    compare(program, native=True)


def test_an_undeclared_layer_inside_of_a_declared_layer():
    # Functions of its own module that a declared layer calls are declared with it.
    def program():
        layer = Declared(Undeclared())
        probe(layer)
        yield calls(layer, X)

    compare(program)


def test_undeclared_layers_whose_code_is_pure_are_replayed():
    def program():
        layer = Undeclared()
        model = keras.Sequential([keras.Input((4,)), Undeclared(), L.Dense(2)])
        probe(layer)
        probe(model)
        yield calls(model, X)
        yield calls(layer, X)

    compare(program, native=True)


def test_undeclared_layers_run():
    def program():
        model = keras.Sequential([keras.Input((4,)), Printing(), L.Dense(2)])
        probe(model)
        yield calls(model, X)

    compare(program, replayed=False)


def test_subclasses_are_not_declared():
    class Derived(Declared):
        def call(self, x):
            print(end="")
            return super().call(x)

    def program():
        layer = Derived()
        probe(layer)
        yield calls(layer, X)

    compare(program, replayed=False)


@pytest.mark.parametrize("change", ["global", "container", "array", "attribute", "method"])
def test_changes_are_seen(change, monkeypatch):
    def program():
        layer = Declared(L.Dense(3))
        probe(layer)
        yield calls(layer, X)
        with monkeypatch.context() as patch:
            if change == "global":
                patch.setitem(globals(), "FACTOR", 5.0)
            elif change == "container":
                patch.setitem(TABLE, "shift", 7.0)
            elif change == "array":
                patch.setitem(globals(), "WEIGHTS", WEIGHTS * 2)
            elif change == "attribute":
                layer.scale = 4.0
            else:
                patch.setattr(Declared, "call", lambda self, x: x * 9.0)
            yield calls(layer, X)
        yield calls(layer, X)

    compare(program)


def test_arrays_that_are_written_to_are_seen():
    def program():
        layer = Declared()
        probe(layer)
        yield calls(layer, X)
        WEIGHTS[1] = 6.0
        try:
            yield calls(layer, X)
        finally:
            WEIGHTS[1] = 1.0
        yield calls(layer, X)

    compare(program)


def counted(layer):
    layer.count = getattr(layer, "count", 0) + 1


IMPURE = {
    "prints": lambda _: print(end=""),
    "asks for the time": lambda _: time.time(),
    "draws": lambda _: random.random(),
    "draws by NumPy": lambda _: np.random.rand(),  # noqa: NPY002
    "counts": counted,
}


@pytest.mark.parametrize("before", IMPURE.values(), ids=IMPURE)
def test_calls_that_are_found_to_be_impure_are_refused(before):
    layer = Declared()
    layer.before = before
    with fastops.accelerated():
        calls(layer, X)
        known = told(layer)
    assert not known["replayed"]
    assert known["reasons"]


READS_OF_TRAINING = {
    "metrics": lambda model: len(model.metrics),
    "metrics_names": lambda model: len(model.metrics_names),
    "metrics_variables": lambda model: len(model.metrics_variables),
    "run_eagerly": lambda model: model.run_eagerly,
    "jit_compile": lambda model: model.jit_compile,
    "get_compile_config": lambda model: model.get_compile_config() is not None,
}


@pytest.mark.parametrize("name", READS_OF_TRAINING)
def test_reads_of_what_compile_sets(name):
    """Properties of Keras read attributes that no guard compares."""

    @fastops.keras.replayable
    class Model(keras.Model):
        def call(self, x):
            return x + float(read(self))

    read = READS_OF_TRAINING[name]
    model = Model()
    model.compile("sgd", "mse", jit_compile=False)
    with fastops.accelerated():
        for _ in range(CALLS):
            model(X)
        model.compile("sgd", "mse", metrics=["mae"], run_eagerly=True)
        assert told(model)["replayed"] == 0
        reasons = {text_of("reads_uncompared"), text_of("holds_keys")}
        assert not reasons.isdisjoint(told(model)["reasons"])
        changed = plain(model(X))
    assert changed == plain(model(X))


def test_custom_objects_of_keras():
    @fastops.keras.replayable
    class Layer(keras.Layer):
        def call(self, x):
            return keras.saving.get_registered_object("chosen")(x)

    layer = Layer()
    with fastops.accelerated():
        with keras.saving.CustomObjectScope({"chosen": keras.activations.relu}):
            for _ in range(CALLS):
                layer(X)
        with keras.saving.CustomObjectScope({"chosen": keras.activations.tanh}):
            assert plain(layer(X)) == plain(tf.tanh(X))


def test_a_model_and_its_parts():
    class Inner(keras.Layer):
        def call(self, x):
            with contextlib.nullcontext():
                return x + 1.0

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.out = Inner(), L.Dense(2)

        def call(self, x):
            return self.out(self.inner(x))

    model = Model()
    with fastops.accelerated():
        want = calls(model, X)
        assert not told(model)["replayed"]
        assert fastops.keras.replay(model) is model
        got = calls(model, X)
        assert told(model)["replayed"]
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"subclass of keras\.Layer"):
        fastops.keras.replayable(helper)
    with pytest.raises(TypeError, match=r"subclass of keras\.Layer"):
        fastops.keras.replayable(dict)
    with pytest.raises(TypeError, match="a layer, not int"):
        fastops.keras.replay(3)
