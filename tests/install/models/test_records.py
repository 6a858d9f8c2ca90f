"""Replayed calls of users' models that return named tuples and dataclasses."""

import collections
import dataclasses
import threading
import typing
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, probe, told
from keras import layers as L  # noqa: N812

import fastops
from fastops._core.reasons import text_of
from fastops._specialize.recording.plain import is_record

X = floats(3, 4)
SAID = []

Pair = collections.namedtuple("Pair", "mean scale")


class Policy(typing.NamedTuple):
    mean: tf.Tensor
    scale: tf.Tensor
    note: str = "none"

    @property
    def width(self):
        return self.scale * 2.0


class Scaled(Policy):
    """A named tuple with another method, and a dict."""

    def total(self):
        return self.mean + self.scale


@dataclasses.dataclass
class Plain:
    mean: tf.Tensor
    scale: tf.Tensor
    note: str | None = None
    more: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    mean: tf.Tensor
    scale: tf.Tensor


@dataclasses.dataclass(eq=False, kw_only=True)
class Named(Plain):
    more: list = dataclasses.field(default_factory=lambda: [1, 2])


@dataclasses.dataclass
class Checked:
    mean: tf.Tensor
    scale: tf.Tensor

    def __post_init__(self):
        if self.mean.shape != self.scale.shape:
            raise ValueError("the shapes differ")


@dataclasses.dataclass
class Nested:
    inner: Frozen
    both: Pair


@dataclasses.dataclass
class Speaking:
    mean: tf.Tensor
    scale: tf.Tensor

    def __post_init__(self):
        SAID.append("made")


@dataclasses.dataclass(slots=True)
class Slotted:
    mean: tf.Tensor
    scale: tf.Tensor


@dataclasses.dataclass
class Changing:
    """Sets an attribute in another way than `dataclasses` does."""

    mean: tf.Tensor
    scale: tf.Tensor

    def __init__(self, mean, scale):
        self.mean, self.scale = mean, scale
        SAID.append("made")


class Dying:
    def __del__(self):
        SAID.append("dies")


@dataclasses.dataclass
class Doomed(Dying):
    mean: tf.Tensor
    scale: tf.Tensor


class Model(keras.Model):
    def __init__(self, make):
        super().__init__()
        self.hidden, self.out, self.make = L.Dense(5, activation="tanh"), L.Dense(2), make

    def call(self, x):
        mean = self.out(self.hidden(x))
        return self.make(mean=mean, scale=tf.exp(mean))


def nested(mean, scale):
    return Nested(Frozen(mean, scale), Pair(mean, scale=scale))


def listed(mean, scale):
    return [Plain(mean, scale, "a", [scale]), {"b": Policy(mean, scale, note="b")}]


MADE = {
    function.__name__: function
    for function in (Pair, Policy, Scaled, Plain, Frozen, Named, Checked, nested, listed)
}
REFUSED = {kind.__name__: kind for kind in (Speaking, Slotted, Changing, Doomed)}


def described(value):
    """Return the classes and the fields of a result, in a form for comparison."""
    if dataclasses.is_dataclass(value):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return type(value).__name__, list(getattr(value, "__dict__", ())), described(fields)
    if isinstance(value, dict):
        return described(list(value.items()))
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(described, value)]
    return value


RECORDS = (Pair, Policy, Scaled, Plain, Frozen, Named, Checked, Nested, Speaking)
OTHERS = (Slotted, Changing, Doomed, tuple, tf.TensorSpec, keras.Model, Model, SimpleNamespace)


@pytest.mark.parametrize("kind", [*RECORDS, *OTHERS])
def test_which_classes_are_records(kind):
    assert is_record(kind) is (kind in RECORDS)


def program_of(make, look=lambda value: ()):
    def program():
        SAID.clear()
        model, results = Model(make), []
        probe(model)
        for number in range(2 * CALLS):
            result = model(X * number)
            results.append(result)
            yield described(result), look(result)
        yield [one is other for one in results for other in results]
        yield SAID

    return program


@pytest.mark.parametrize("name", MADE)
def test_records_are_returned(name):
    compare(program_of(MADE[name]), native=True)


@pytest.mark.parametrize("name", REFUSED)
def test_other_classes_are_refused(name):
    compare(program_of(REFUSED[name]), replayed=False)


def test_methods_of_records():
    compare(program_of(Scaled, lambda result: (result.width, result.total(), result.note)))


def test_results_are_new():
    """A change of one result is not seen in the next."""

    def change(result):
        result.note, more = "changed", result.more
        result.more.append(result.mean)
        return more

    compare(program_of(Plain, change))


def test_gradients():
    def program():
        model = Model(Plain)
        probe(model)
        for _ in range(2 * CALLS):
            with tf.GradientTape() as tape:
                result = model(X)
                loss = tf.reduce_sum(result.mean * result.scale)
            yield tape.gradient(loss, model.trainable_variables)

    compare(program)


def test_the_class_is_compared():
    """Another `__init__`, another default or another class under the name: each is seen."""

    def program():
        @dataclasses.dataclass
        class Made:
            mean: tf.Tensor
            scale: tf.Tensor
            note: str = "first"

        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.layer, self.kind = L.Dense(2), Made

            def call(self, x):
                return self.kind(self.layer(x), x)

        model = Own()
        probe(model)
        for _ in range(CALLS):
            yield described(model(X))
        Made.__init__.__defaults__ = ("second",)
        for _ in range(CALLS):
            yield described(model(X))

        def fill(self, mean, scale):
            self.mean, self.scale, self.note = scale, mean, "third"

        Made.__init__ = fill
        for _ in range(CALLS):
            yield described(model(X))
        model.kind = Policy
        for _ in range(CALLS):
            yield described(model(X))

    compare(program)


class Keeping(keras.Model):
    """Keeps a record, in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.layer, self.way = L.Dense(2), way
        self.kept = Plain(1.0, 2.0)

    def call(self, x):
        y = self.layer(x)
        if self.way == "sets":
            self.kept = Plain(y, y)
        elif self.way == "fills":
            self.kept.__init__(3.0, y)
        elif self.way == "returns":
            return self.kept
        return Plain(y, self.kept.scale)


@pytest.mark.parametrize("way", ["sets", "fills", "returns", "reads"])
def test_records_that_outlive_the_call(way):
    def program():
        model = Keeping(way)
        probe(model)
        for number in range(2 * CALLS):
            result = model(X * number)
            yield described(result), described(model.kept), result is model.kept
            if way == "reads" and number == CALLS:
                model.kept.scale = 5.0

    compare(program, replayed=way == "reads")


def test_records_with_variables():
    def program():
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.layer = L.Dense(2)
                self.scale = self.add_weight(shape=(2,), initializer="ones")

            def call(self, x):
                return Frozen(self.layer(x), self.scale)

        model = Own()
        probe(model)
        for _ in range(2 * CALLS):
            result = model(X)
            yield result.mean, result.scale, result.scale is model.scale
            model.scale.assign(model.scale * 0.5)

    compare(program)


def test_the_reason_names_the_class():
    with fastops.accelerated():
        model = Model(Slotted)
        for _ in range(2 * CALLS):
            model(X)
        known = told(model)
    assert known["refused"].startswith(text_of("foreign_code")), known


@dataclasses.dataclass
class Stamped:
    """A dataclass with a field that is made by a function written in C."""

    mean: tf.Tensor
    scale: tf.Tensor
    thread: int = dataclasses.field(default_factory=threading.get_ident)


def test_fields_that_functions_in_c_make():
    """They depend on more than the arguments."""

    def program():
        model = Model(Stamped)
        probe(model)
        for _ in range(2 * CALLS):
            results = []
            thread = threading.Thread(target=lambda results=results: results.append(model(X)))
            thread.start()
            thread.join()
            yield results[0].mean, results[0].thread == thread.ident

    compare(program, replayed=False)
