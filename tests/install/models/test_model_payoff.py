"""When calls of Keras's objects are recorded, tested with a fake clock and given costs."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import find
from install.models.keras_programs import floats, told
from keras import layers as L  # noqa: N812
from support import assert_same

import fastops
from fastops._install.models.method import methods
from fastops._install.replay.replayed import Replayed
from fastops._specialize import policy

RECORDED = "this call was used to make a recording"


def perceptron():
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((4,)), L.Dense(3), L.Dense(2)])


def recorded_calls():
    return sum(method.reasons.get(RECORDED, 0) for method in methods())


def test_nothing_is_recorded_before_calls_have_cost_enough(due_after):
    model, x = perceptron(), floats(2, 4)
    want = model(x)
    with fastops.accelerated():
        due_after(5)
        before = recorded_calls()
        for _ in range(5):
            assert_same(model(x), want)
        assert recorded_calls() == before
        for _ in range(2):
            assert_same(model(x), want)
        assert recorded_calls() == before + 2
        for _ in range(3):
            assert_same(model(x), want)
        assert (told(model)["recorded"], told(model)["replayed"]) == (1, 3)


def test_parts_of_a_waiting_object_are_not_recorded(due_after):
    model, x = perceptron(), floats(2, 4)
    with fastops.accelerated():
        due_after(20)
        for _ in range(30):
            model(x)
        assert told(model)["recorded"] == 1
        assert all(told(layer)["recorded"] == 0 for layer in model.layers)


def test_parts_are_recorded_if_the_whole_waits_too_long(due_after):
    model, x = perceptron(), floats(2, 4)
    want = model(x)
    with fastops.accelerated():
        due_after(3)
        for number in range(80):
            model.note = number  # this change invalidates the model's recordings
            assert_same(model(x), want)
        assert told(model)["replayed"] == 0
        assert all(told(layer)["replayed"] > 0 for layer in model.layers)


class Counting(keras.Model):
    """A model that is given another number, or a longer tensor, in each call."""

    def __init__(self):
        super().__init__()
        self.parts = [L.Dense(3), L.Dense(2)]

    def call(self, x, number=0, rows=None):
        for part in self.parts:
            x = part(x)
        if rows is not None:
            x = x + tf.reduce_sum(rows) / float(len(rows))
        return x * float(number)


@pytest.mark.parametrize("longer", [False, True])
def test_parts_are_recorded_if_each_call_of_the_whole_is_new(due_after, longer):
    keras.utils.set_random_seed(1)
    model, x = Counting(), floats(2, 4)

    def call(number):
        return model(x, rows=tf.ones([number])) if longer else model(x, number=number)

    wants = [call(number) for number in range(60)]
    with fastops.accelerated():
        due_after(3)
        for number, want in enumerate(wants):
            assert_same(call(number), want)
        assert told(model)["replayed"] == 0
        assert all(told(part)["replayed"] > 30 for part in model.parts)


def test_parts_are_not_recorded_in_the_first_calls_of_a_few_signatures(due_after):
    model, x = Counting(), floats(2, 4)
    with fastops.accelerated():
        due_after(20)
        for number in range(3):
            model(x, number=number)
        for _ in range(30):
            model(x)
        assert told(model)["recorded"] == 1
        assert all(told(part)["recorded"] == 0 for part in model.parts)


def test_an_object_that_changes_is_recorded_less_and_less_often(due_after):
    layer, x = L.Dense(3), floats(2, 4)
    want = layer(x)
    with fastops.accelerated():
        due_after(3)
        before, attempts = recorded_calls(), []
        for number in range(100):
            layer.note = number
            assert_same(layer(x), want)
            if recorded_calls() > before + len(attempts):
                attempts.append(number)
        gaps = np.diff(attempts)
        assert len(gaps) >= 3
        assert all(later == 2 * sooner - 1 for sooner, later in itertools.pairwise(gaps))


def test_the_bar_stays_if_recordings_have_saved_their_cost(due_after):
    layer, x = L.Dense(3), floats(2, 4)
    layer(x)
    with fastops.accelerated():
        due_after(3)
        for number in range(4):
            layer.note = number
            for _ in range(20):
                layer(x)
        known = told(layer)
        assert (known["recorded"], known["replayed"]) == (4, 15 + 3 * 16)


def test_functions_are_recorded_when_calls_have_cost_enough(due_after):
    x = tf.constant(floats(2, 4))
    with fastops.accelerated():
        function = find("tf.norm")
        function(x, axis=1)  # what is done once in a process would advance the fake clock
        function = Replayed(function.original, function.passed, (), function.settings)
        due_after(4)
        for _ in range(4):
            function(x, axis=1)
            assert function.describe()["replayed"] == 0
        want = function(x, axis=1)  # this call is recorded
        assert function.describe()["replayed"] == 1
        assert_same(function(x, axis=1), want)


@pytest.mark.parametrize("per_unit", [1.0, 7.0])
def test_the_bar_is_in_proportion_to_the_cost_of_recordings(due_after, monkeypatch, per_unit):
    model, x = perceptron(), floats(2, 4)
    with fastops.accelerated():
        due_after(2)
        for estimate in policy.estimates().values():
            monkeypatch.setattr(estimate, "per_unit", per_unit)
        for _ in range(1 + int(per_unit)):
            model(x)
            assert told(model)["recorded"] == 0
        model(x)
        model(x)
        assert told(model)["recorded"] == 1
