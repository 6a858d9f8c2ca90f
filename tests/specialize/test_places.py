"""Guards of the contents of objects: each change of what code may read is seen."""

import collections
import functools
import struct
import types
import weakref

import numpy as np
import pytest
import tensorflow as tf

from fastops._specialize.guards.places import Places
from fastops._specialize.guards.watch import Watch
from fastops._specialize.recording.recording import NotReplayableError


class Holder:
    def __init__(self, held=None):
        self.held = held

    def method(self):
        return self.held


class Slope(float):
    pass


class Count(int):
    pass


class Text(str):
    __slots__ = ()


class Raw(bytes):
    pass


class Wave(complex):
    pass


def watched(held):
    holder = Holder(held)
    return holder, Watch(Places([holder], {}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: Slope(0.5), lambda: Slope(0.25)),
        (lambda: Slope(0.0), lambda: Slope(-0.0)),
        (lambda: Count(3), lambda: Count(4)),
        (lambda: Count(10**30), lambda: Count(10**30 + 1)),
        (lambda: Text("a"), lambda: Text("b")),
        (lambda: Raw(b"a"), lambda: Raw(b"b")),
        (lambda: Wave(1j), lambda: Wave(2j)),
        (lambda: slice(0, 300), lambda: slice(1, 300)),
        (lambda: slice(0, [1]), lambda: slice(0, [2])),
        (lambda: Holder(1).method, lambda: Holder(2).method),
        (lambda: Holder(1).method, lambda: Holder(1).__init__),
        (lambda: types.MappingProxyType({"a": 1}), lambda: types.MappingProxyType({"a": 2})),
        (lambda: [1], lambda: (1,)),
        (lambda: (1, [2]), lambda: [1, [2]]),
        (lambda: {"a": 1}, lambda: collections.OrderedDict(a=1)),
        (lambda: {1, 2}, lambda: {1, 3}),
        (lambda: np.ones(2), lambda: "x".ljust(63)),
        (lambda: np.ones(2), lambda: b"x".ljust(79)),
        (lambda: Holder(3), lambda: Slope(3.0)),
    ],
)
def test_another_object_is_seen(one, other):
    """Also if CPython gives it the address of the first one."""
    holder, watch = watched(one())
    assert watch.differences() == []
    for _ in range(100):
        holder.held = None
        holder.held = other()
        assert watch.differences()


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: types.MappingProxyType(shared), lambda _: shared.update(a=2)),
        (lambda: Holder([1]).method, lambda method: method.__self__.held.append(2)),
        (lambda: slice(0, [1]), lambda held: held.stop.append(2)),
        (lambda: tf.constant(1.0), lambda held: setattr(held, "flag", True)),
        (lambda: flagged(True), lambda held: setattr(held, "flag", False)),
        (lambda: flagged(None), lambda held: delattr(held, "flag")),
        (lambda: flagged([1]), lambda held: held.flag.append(2)),
    ],
)
def test_a_change_inside_is_seen(make, change):
    shared.clear()
    shared.update(a=1)
    holder, watch = watched(make())
    for _ in range(3):
        assert watch.differences() == []
    change(holder.held)
    assert watch.differences()


def flagged(value):
    tensor = tf.constant(1.0)
    tensor.flag = value
    return tensor


shared = {}


def test_a_tensor_without_attributes_stays_equal():
    holder, watch = watched([tf.constant(1.0), tf.Variable(1.0)])
    assert vars(holder.held[0]) == {}  # the read makes its dict
    assert watch.differences() == []


def test_members_of_enumerations_stay_equal():
    import enum

    class Mode(enum.IntEnum):
        ONE = 1
        TWO = 2

    holder, watch = watched(Mode.ONE)
    assert watch.differences() == []
    holder.held = Mode.TWO
    assert watch.differences()


@pytest.mark.parametrize(
    "make",
    [
        lambda: float("0.1"),
        lambda: float("nan"),
        lambda: int("12345"),
        lambda: "".join(["a", "b"]),
        lambda: (1.5, "".join(["a", "b"])),
        lambda: np.float32(0.1),
        lambda: tf.TensorShape([int("12345"), None]),
        lambda: complex("1+2j"),
        lambda: bytes([1, 2]),
    ],
)
def test_an_equal_constant_may_replace_the_first(make):
    """Programs set an attribute again and again, mostly to what it was."""
    holder, watch = watched([make(), {"key": make()}, (make(),)])
    holder.other = make()
    watch = Watch(Places([holder], {}))
    for _ in range(3):
        holder.other = holder.held[0] = holder.held[1]["key"] = make()
        assert watch.differences() == []
    holder.other = -1
    assert watch.differences()


@pytest.mark.parametrize(
    ("one", "other"),
    [(0.0, -0.0), (1, True), (1, 1.0), (1.0, np.float64(1.0)), ("a", b"a"), ((1,), (True,))],
)
def test_equal_constants_of_other_kinds_are_seen(one, other):
    holder, watch = watched(one)
    holder.held = other
    assert watch.differences()


def test_functions_of_the_same_code_with_other_globals():
    code = (lambda x: x * FACTOR).__code__  # noqa: F821
    holder, watch = watched(types.FunctionType(code, {"FACTOR": 0}))
    for factor in range(50):
        holder.held = None
        holder.held = types.FunctionType(code, {"FACTOR": factor})
        assert watch.differences()


class Reference(weakref.ref):
    pass


def partial():
    return functools.partial(max, 1)


@pytest.mark.parametrize("make", [partial, lambda: Reference(Holder)])
def test_attributes_of_partial_functions_and_references(make):
    holder, watch = watched(make())
    assert watch.differences() == []
    holder.held.flag = 1
    assert watch.differences()
    watch = Watch(Places([holder], {}))
    assert watch.differences() == []
    holder.held.flag = 2
    assert watch.differences()


def test_keys_that_are_equal_but_not_the_same():
    holder, watch = watched({0.0: 1})
    holder.held.clear()
    holder.held[-0.0] = 1
    assert watch.differences()


def test_bits_of_nan():
    other = struct.unpack("d", struct.pack("Q", 0xFFF8000000000001))[0]
    holder, watch = watched(float("nan"))
    holder.held = -float("-nan")
    assert watch.differences() == []
    holder.held = other
    assert watch.differences()


def test_a_constant_that_is_returned_is_compared_by_identity():
    holder, watch = watched(float("0.1"))
    watch.require([holder.held])
    assert watch.differences() == []
    holder.held = float("0.1")
    assert watch.differences()


def test_a_closure_variable_that_is_deleted():
    value = None

    def function():
        return value

    _, watch = watched(function)
    assert watch.differences() == []
    del value
    assert watch.differences()
    _, watch = watched(function)
    assert watch.differences() == []
    value = None
    assert watch.differences()


def test_arrays_with_fields_are_refused():
    with pytest.raises(NotReplayableError, match="has fields"):
        watched(np.zeros(2, [("x", np.float32), ("y", np.float32)]))


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda: np.array([1.0, 2.0]), lambda i: "x" * (20 + i % 80)),
        (lambda: functools.partial(max, 1), lambda i: weakref.ref(Holder, lambda _: i)),
        (lambda: weakref.ref(Holder, lambda _: None), lambda i: functools.partial(max, i)),
        (lambda: weakref.ref(Holder, lambda _: None), lambda i: tuple(range(i % 12))),
    ],
    ids=["array", "partial", "reference", "reference and tuple"],
)
def test_an_object_of_another_type_at_the_same_address(make, other):
    """CPython gives most of these the address of the object before."""
    for i in range(200):
        holder, watch = watched(make())
        assert watch.differences() == []
        holder.held = None
        holder.held = other(i)
        assert watch.differences()


class Config:
    def __init__(self):
        self.scale, self.table, self.parts = 2.0, {"a": 1.0}, [1.0]


class Keeper:
    config = Config()


class OtherKeeper(Keeper):
    config = Config()


def replace_in_a_dict(holder):
    holder.own = Config()


def replace_in_a_class(holder):
    type(holder).config = Config()


def replace_the_class(holder):
    holder.__class__ = OtherKeeper


def replace_in_a_list(holder):
    holder.row[0] = Config()


def add_to_a_dict(holder):
    holder.table["b"] = Config()


CHANGES_MEANWHILE = [replace_in_a_dict, replace_in_a_class, replace_the_class, replace_in_a_list]
CHANGES_MEANWHILE += [add_to_a_dict]


@pytest.mark.parametrize("change", CHANGES_MEANWHILE)
def test_a_change_by_another_thread_after_the_list(change, monkeypatch):
    """A watch is made of a list of places. Another thread may run in between."""
    monkeypatch.setattr(Keeper, "config", Keeper.config)
    holder = Keeper()
    holder.own, holder.row, holder.table = Config(), [Config()], {"a": Config()}
    places = Places([holder], {})
    change(holder)
    watch = Watch(places)
    assert watch.differences()
    assert watch.differences()
