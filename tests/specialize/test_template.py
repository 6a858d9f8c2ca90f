"""Templates: which objects have contents equal to those of another one."""

import copy
import functools
import gc
import threading
import types
import weakref
from collections import OrderedDict

import numpy as np
import pytest
import tensorflow as tf

from fastops._specialize.guards.places import Places
from fastops._specialize.guards.template import ObjectTemplate
from fastops._specialize.guards.watch import Watch

pytestmark = pytest.mark.quick


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def method(self):
        return self

    def other(self):
        return self


def scale(x):
    return 2 * x


def template(holder, names=None):
    return ObjectTemplate(Watch(Places([holder], {})), names or {})


def made(name):
    """Return a holder of a value of some kind: each call makes the objects anew."""
    shared = [1, 2]
    return Holder(
        value={
            "numbers": [1, 2.5, True, None, 3 + 4j, b"x", -0.0, float("nan")],
            "nested": {"a": [1, {"b": (2, [3])}], "c": Holder(d=[4])},
            "aliases": [shared, shared],
            "distinct": [[1, 2], [1, 2]],
            "set": {1, "b", b"c"},
            "array": np.arange(3.0),
            "partial": functools.partial(scale, [1], x=2),
            "reference": None,
            "order": OrderedDict(a=1, b=[2]),
            "shape": tf.TensorShape([2, None]),
            "dtype": tf.float32,
            "scalar": np.float32(1.5),
            "function": scale,
            "lock": threading.Lock(),
            "module": np,
            "variable": tf.Variable([1.0, 2.0]),
        }[name]
    )


KINDS = (
    *("numbers", "nested", "aliases", "distinct", "set", "array", "partial", "reference", "order"),
    *("shape", "dtype", "scalar", "function", "lock", "module"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_contents_fit(kind):
    first = made(kind)
    of_first = template(first)
    assert of_first.fits(first)
    assert of_first.fits(made(kind))
    del first
    gc.collect()
    assert of_first.fits(made(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_other_contents_do_not_fit(kind, other):
    assert template(made(kind)).fits(made(other)) is (kind == other)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", b"a"),
        ((1, 2), (1, True)),
        ((1, (2.0, 0.0)), (1, (2.0, -0.0))),
        ([1, 2], [1, 3]),
        ([1, 2], [1, 2, 3]),
        ([1, 2], (1, 2)),
        ({1}, {True}),
        ({1, 2}, {1, 3}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, OrderedDict(a=1)),
        (np.zeros(2), np.ones(2)),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), np.zeros((1, 2))),
        (np.float32(0.0), np.float32(-0.0)),
        (functools.partial(scale, 1), functools.partial(scale, 2)),
        (functools.partial(scale, 1), functools.partial(print, 1)),
        (tf.TensorShape([1]), tf.TensorShape([2])),
        (tf.TensorShape(None), tf.TensorShape([])),
        (tf.float32, tf.float64),
        ([Holder(a=1)], [Holder(b=1)]),
    ],
)
def test_values_are_compared_exactly(value, other):
    assert not template(Holder(value=value)).fits(Holder(value=other))
    assert template(Holder(value=value)).fits(Holder(value=copy.copy(value)))


def test_tensors_are_compared_by_identity():
    tensor = tf.constant(1.0)
    assert template(Holder(value=tensor)).fits(Holder(value=tensor))
    assert not template(Holder(value=tensor)).fits(Holder(value=tf.constant(1.0)))


def test_functions_are_compared_by_code_closure_and_defaults():
    def scaling(factor, default=1):
        def function(x, bias=default):
            return factor * x + bias

        return Holder(function=function)

    of_first = template(scaling(2))
    assert of_first.fits(scaling(2))
    assert not of_first.fits(scaling(3))
    assert not of_first.fits(scaling(2.0))
    assert not of_first.fits(scaling(2, default=0))
    other = scaling(2)
    other.function.note = 1
    assert not of_first.fits(other)
    assert template(scaling([2])).fits(scaling([2]))
    assert not template(scaling([2])).fits(scaling([3]))
    assert not template(Holder(value=scale)).fits(Holder(value=lambda x: 2 * x))


def test_functions_of_other_modules_do_not_fit():
    namespace = {}
    here = types.FunctionType(scale.__code__, namespace)
    assert template(Holder(function=here)).fits(
        Holder(function=types.FunctionType(scale.__code__, namespace))
    )
    assert not template(Holder(function=here)).fits(
        Holder(function=types.FunctionType(scale.__code__, {}))
    )


def test_a_part_has_one_counterpart():
    row = [1]
    aliased, distinct = Holder(a=row, b=row), Holder(a=[1], b=[1])
    assert not template(aliased).fits(distinct)
    assert not template(distinct).fits(aliased)
    assert not template(Holder(a=row, b=[1])).fits(aliased)


def test_cycles_fit():
    def ring():
        first, second = Holder(number=1), Holder(number=2)
        first.next, second.next = second, first
        return first

    first, second = Holder(number=1), Holder(number=2)
    first.next, second.next = second, second
    assert template(ring()).fits(ring())
    assert not template(ring()).fits(first)


def test_weak_references_fit():
    def referring():
        part = Holder(a=1)
        return Holder(part=part, reference=weakref.ref(part))

    other = Holder(part=Holder(a=1))
    other.reference = weakref.ref(other)
    assert template(referring()).fits(referring())
    assert not template(referring()).fits(other)


def test_another_class_does_not_fit():
    class Other(Holder):
        pass

    assert not template(Holder(a=1)).fits(Other(a=1))
    assert not template(Holder(a=Holder())).fits(Holder(a=Other()))


def test_a_changed_class_does_not_fit():
    class Changing(Holder):
        factor = 1

    of_first = template(Changing(a=1))
    assert of_first.fits(Changing(a=1))
    Changing.factor = 2
    assert not of_first.fits(Changing(a=1))


def test_a_changed_function_does_not_fit():
    def scaled(x, factor=2):
        return factor * x

    of_first = template(Holder(function=scaled))
    assert of_first.fits(Holder(function=scaled))
    scaled.__defaults__ = (3,)
    assert not of_first.fits(Holder(function=scaled))


def test_names_may_differ_where_they_are_named():
    names = {Holder: {"name"}}
    assert template(Holder(name="mean", a=1), names).fits(Holder(name="mean_1", a=1))
    assert not template(Holder(name="mean", a=1)).fits(Holder(name="mean_1", a=1))
    assert not template(Holder(name="mean", a=1), names).fits(Holder(name=1, a=1))
    assert not template(Holder(name="mean", a="x"), names).fits(Holder(name="mean", a="y"))


def test_bound_methods_fit_if_their_objects_do():
    of_first = template(Holder(method=Holder(a=1).method))
    assert of_first.fits(Holder(method=Holder(a=1).method))
    assert not of_first.fits(Holder(method=Holder(a=2).method))
    assert not of_first.fits(Holder(method=Holder(a=1).other))


def test_the_first_object_is_not_kept_alive():
    first = Holder(part=Holder(a=[1]), variable=tf.Variable([1.0]))
    parts = weakref.ref(first), weakref.ref(first.part), weakref.ref(first.variable)
    of_first = template(first, {tf.Variable: {"_handle_name", "_unique_id"}})
    del first
    gc.collect()
    assert [part() for part in parts] == [None, None, None]
    assert not of_first.fits(Holder(part=Holder(a=[1])))


def test_variables_fit_by_shape_and_dtype():
    def holder(value, dtype=tf.float32):
        return Holder(variable=tf.Variable(value, dtype=dtype))

    kind = tf.Variable([1.0]).__class__.__mro__
    names = {base: {"_handle_name", "_unique_id"} for base in kind if "Variable" in base.__name__}
    of_first = template(holder([1.0, 2.0]), names)
    assert of_first.fits(holder([3.0, 4.0]))
    assert not of_first.fits(holder([3.0]))
    assert not of_first.fits(holder([3.0, 4.0], tf.float64))
