"""The assumptions of recordings and the guards that check them, case by case."""

import datetime
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, plain, probe, told

import fastops
from guards import declared, settings

X, Y = floats(2, 4), floats(2, 4, seed=1)


def rows(count):
    return np.ones((count, 3), np.float32)


def growing(count=2):
    return tf.Variable(rows(count), shape=[None, 3])


OF_SIZES = {
    "tf.size": tf.size,
    "tf.shape": tf.shape,
    "tf.rank": tf.rank,
    "tf.eye": lambda v: tf.eye(tf.size(v)),
    "tf.zeros_like": tf.zeros_like,
    "tf.repeat": lambda v: tf.repeat(v, 2, axis=0),
    "tf.math.count_nonzero": tf.math.count_nonzero,
    "keras.ops.size": keras.ops.size,
    "keras.ops.shape": keras.ops.shape,
    "tnp.size": tf.experimental.numpy.size,
    "tnp.shape": tf.experimental.numpy.shape,
    "tnp.zeros_like": tf.experimental.numpy.zeros_like,
}


@pytest.mark.parametrize("function", OF_SIZES.values(), ids=OF_SIZES)
def test_sizes_of_a_variable_that_grows(function):
    def results():
        variable = growing()
        for count in (2, 2, 2, 2, 4, 2, 4, 5):
            variable.assign(rows(count))
            yield plain(function(variable))

    want = list(results())
    with fastops.accelerated():
        assert list(results()) == want


@pytest.mark.parametrize("function", OF_SIZES.values(), ids=OF_SIZES)
def test_a_shape_that_was_set_makes_a_new_signature(function):
    def results():
        told_more, other = growing(), growing(5)
        told_more.set_shape([2, 3])
        for variable in (*[told_more] * 5, other, told_more):
            yield plain(function(variable))

    want = list(results())
    with fastops.accelerated():
        assert list(results()) == want


def test_a_traced_function_and_a_shape_that_was_set():
    def results():
        @tf.function
        def rows_of(variable):
            return tf.constant(-1 if variable.shape[0] is None else variable.shape[0])

        variable = growing()
        for i in range(8):
            if i == 5:
                variable.set_shape([2, 3])
            yield int(rows_of(variable))

    want = list(results())
    with fastops.accelerated():
        assert list(results()) == want


class Calls(keras.Layer):
    """A layer that calls a function of itself and its input."""

    def __init__(self, function):
        super().__init__()
        self.function, self.scale, self.seen = function, 2.0, None
        self.weight = self.add_weight(shape=(4,), initializer="ones")

    def call(self, x):
        return self.function(self, x)


def layer_of(function):
    """Return a layer of a new class, since refused objects are counted by class."""
    kind = type("Calls", (Calls,), {"__module__": __name__})
    return fastops.keras.replayable(kind)(function)


def refused(function):
    """Return why calls of a layer are not recorded."""
    layer = layer_of(function)
    with fastops.accelerated():
        for _ in range(CALLS):
            layer(X)
        known = told(layer)
    assert not known["replayed"]
    return reasons_of(known)


def reasons_of(known):
    """Return the reasons why calls could not be recorded, with the particulars."""
    return "; ".join(f"{why}: {known['details'].get(why)}" for why in known["reasons"])


def keeps_its_input(layer, x):
    layer.seen = x
    return x * 2.0


def copies(layer, x):
    return x.cpu() * 2.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("function", [keeps_its_input, copies])
def test_another_input_of_the_same_signature(function):
    def program():
        layer = layer_of(function)
        for x in (*[X] * CALLS, Y, X):
            yield layer(x)
            yield layer.seen

    compare(program, replayed=None)


def test_a_call_that_keeps_its_input_is_refused():
    assert "the object or a global holds an argument after the call" in refused(keeps_its_input)


def test_a_call_that_copies_without_an_op_is_refused():
    assert "the call copies a tensor without an op" in refused(copies)


CONSTANT = tf.constant(2.0)


@pytest.mark.parametrize("place", ["attribute", "global"])
def test_a_tape_that_watches_a_constant(place):
    def scaled(layer, x):
        return x * tf.square(CONSTANT if place == "global" else layer.constant)

    def program():
        layer = layer_of(scaled)
        layer.constant = CONSTANT
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)
            with tf.GradientTape() as tape:
                tape.watch(CONSTANT)
                y = layer(X)
            yield tape.gradient(y, CONSTANT)

    compare(program)


def branches(layer, x):
    return x * settings.SCALE if tf.reduce_sum(x) > 100 else x * declared.FACTOR


def test_each_branch_has_its_guards(monkeypatch):
    large = X + 100.0

    def program():
        layer = layer_of(branches)
        probe(layer)
        for x in [*[X] * CALLS, *[large] * CALLS]:
            yield layer(x)
        with monkeypatch.context() as patch:
            patch.setattr(declared, "FACTOR", 5.0)
            yield layer(large)
            yield layer(X)
        with monkeypatch.context() as patch:
            patch.setattr(settings, "SCALE", 7.0)
            yield layer(X)
            yield layer(large)
        yield layer(X)

    compare(program)


def test_a_global_that_appears(monkeypatch):
    def reads(layer, x):
        try:
            return x * ABSENT
        except NameError:
            return x

    def program():
        layer = layer_of(reads)
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[__name__], "ABSENT", 3.0, raising=False)
            yield layer(X)
        yield layer(X)

    compare(program)


def test_a_builtin_that_is_shadowed(monkeypatch):
    def reads(layer, x):
        return x * float(len([1, 2]))

    def program():
        layer = layer_of(reads)
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[__name__], "len", lambda _: 7, raising=False)
            yield layer(X)
        with monkeypatch.context() as patch:
            patch.setattr("builtins.float", lambda _: 5.0)
            yield layer(X)
        yield layer(X)

    compare(program)


def test_a_function_that_caches_its_results():
    import functools

    @functools.lru_cache
    def factor():
        return settings.SCALE

    assert "holds a cache of results (functools.lru_cache)" in refused(
        lambda layer, x: x * factor()
    )


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            lambda layer, x: x * float(datetime.datetime.now().year),
            "written in C, whose effects are unknown: now",
        ),
        (lambda layer, x: x * globals()["SETTING"], "<lambda> uses globals"),
        (lambda layer, x: x * vars(settings)["SCALE"], "<lambda> uses vars"),
        (
            lambda layer, x: x + len(layer._self_unconditional_checkpoint_dependencies),
            "reads _self",
        ),
    ],
)
def test_code_that_may_read_anything_is_refused(function, reason):
    assert reason in refused(function)


SETTING = 2.0


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (iter([1.0]), "cannot be compared: Calls.held[0].value is a list_iterator"),
        (np.ones(100_000), "too large to compare in each call: Calls.held[0].value"),
        (
            np.ma.masked_array([1.0], [True]),
            "a subclass of np.ndarray: Calls.held[0].value is a MaskedArray",
        ),
        (bytearray(b"1"), "Calls.held[0].value is a bytearray"),
        (type("Odd", (bytearray,), {})(), "Calls.held[0].value is a guards.test_guards.Odd"),
        (datetime.datetime.now, "effects are unknown: Calls.held[0].value is now"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reasons_name_the_path(value, reason):
    layer = layer_of(lambda layer, x: x * layer.scale)
    layer.held = [types.SimpleNamespace(value=value)]
    with fastops.accelerated():
        for _ in range(CALLS):
            layer(X)
        assert reason in reasons_of(told(layer))


@pytest.mark.parametrize("title", sorted(declared.READS.keys() - declared.REFUSED))
def test_declared_layers_are_replayed(title):
    layer = declared.reader(title)
    with fastops.accelerated():
        for _ in range(CALLS):
            layer(X)
        assert told(layer)["replayed"], told(layer)


def test_a_function_that_gets_an_attribute():
    # The function had no attributes when it was recorded, and has one now.
    def plain_function(x):
        return x * getattr(plain_function, "scale", 2.0)

    def program():
        layer = layer_of(lambda layer, x: plain_function(x))
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)
        plain_function.scale = 5.0
        try:
            yield layer(X)
        finally:
            del plain_function.scale
        yield layer(X)

    compare(program)
