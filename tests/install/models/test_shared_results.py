"""Replayed calls whose results have one object in several places: it stays one object."""

import collections
import dataclasses

import keras
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, probe

X = floats(2, 3)
Pair = collections.namedtuple("Pair", "one other")


@dataclasses.dataclass
class Output:
    value: tf.Tensor
    more: object = None


def constant(y):
    value = tf.constant([1.0, 2.0])
    return y, value, value


def zeros(y):
    state = tf.zeros([4])
    return y, [state, state]


def lists(y):
    value = [y]
    return value, value


def dicts(y):
    value = {"y": y}
    return value, {"inner": value}


def tuples(y):
    value = (y, 1)
    return [value, [value]]


def named(y):
    value = Pair(y, None)
    return Pair(value, value)


def records(y):
    value = Output(y)
    return Output(value, [value])


def slices(y):
    value = tf.IndexedSlices(y, tf.constant([0, 1]))
    return value, value


def nested(y):
    inner = [y, tf.constant(3.0)]
    outer = {"inner": inner}
    return outer, inner, [outer, inner]


def tensors(y):
    return y, [y], {"y": y}


def objects_in(value):
    """Yield the objects of a result in order, with what is inside each."""
    yield value
    inside = vars(value) if isinstance(value, Output | tf.IndexedSlices) else value
    if isinstance(inside, dict):
        inside = list(inside.values())
    if isinstance(inside, list | tuple):
        for item in inside:
            yield from objects_in(item)


def described(result):
    """Return the tensors of a result, and for each of its objects where it is first."""
    objects = [value for value in objects_in(result) if not isinstance(value, int | None)]
    firsts = [next(i for i, first in enumerate(objects) if first is value) for value in objects]
    return [value for value in objects if isinstance(value, tf.Tensor)], firsts


class Model(keras.Model):
    def __init__(self, make):
        super().__init__()
        self.make = make
        self.layer = keras.layers.Dense(3)

    def call(self, x):
        return self.make(self.layer(x))


MAKERS = [constant, zeros, lists, dicts, tuples, named, records, slices, nested, tensors]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_one_object_in_several_places(make):
    def program():
        model = Model(make)
        probe(model)
        for _ in range(2 * CALLS):
            yield described(model(X))

    compare(program)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_under_a_tape(make):
    def program():
        model = Model(make)
        probe(model)
        for _ in range(2 * CALLS):
            with tf.GradientTape() as tape:
                result = model(X)
                values, firsts = described(result)
                floating = [value for value in values if value.dtype == X.dtype]
                loss = tf.add_n([tf.reduce_sum(value) for value in floating])
            yield values, firsts, tape.gradient(loss, model.trainable_variables)

    compare(program)


def test_an_assignment_in_two_places():
    class Counter(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.total = tf.Variable(tf.zeros([3]))

        def call(self, x):
            total = self.total.assign_add(x[0])
            return total, total

    def program():
        layer = Counter()
        probe(layer)
        for _ in range(2 * CALLS):
            one, other = layer(X)
            yield one, one is other, layer.total

    compare(program)


def test_a_result_is_new_in_each_call():
    """A program may change the containers of one result; the next is another."""

    def program():
        model = Model(lists)
        probe(model)
        for _ in range(2 * CALLS):
            one, other = model(X)
            one.append(1.0)
            yield len(one), len(other)

    compare(program)


def test_a_list_inside_itself():
    def program():
        model = Model(endless)
        probe(model)
        for _ in range(CALLS):
            result = model(X)
            yield result[0], result[1] is result

    def endless(y):
        result = [y]
        result.append(result)
        return result

    compare(program, replayed=False)


def test_one_list_in_two_places_of_a_function_of_tensorflow():
    def both():
        value = [X * 2.0]
        return value, value

    def program():
        for _ in range(2 * CALLS):
            one, other = tf.cond(tf.constant(True), both, lambda: ([X], [X]))
            yield one, one is other

    compare(program)
