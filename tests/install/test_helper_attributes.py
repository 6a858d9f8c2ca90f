"""Attributes of tf_keras's layers and models, if it is installed."""

import contextlib
import copy
import re
import sys

import numpy as np
import pytest
import tensorflow as tf
from calls import in_both, outcome
from support import Failure

import fastops
from fastops._install import answer

tf_keras = pytest.importorskip("tf_keras", reason="see the extra 'libraries'")

pytestmark = pytest.mark.usefixtures("fresh")

LAYERS = ["helpers"]


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()


class Plain(tf_keras.layers.Layer):
    read_only = property(lambda self: 1)
    default = 5


class Watching(tf_keras.layers.Layer):
    def __setattr__(self, name, value):
        self.__dict__.setdefault("log", []).append(name)
        super().__setattr__(name, value)


class Forgetting(tf_keras.layers.Layer):
    def __delattr__(self, name):
        self.__dict__.setdefault("log", []).append(name)
        super().__delattr__(name)


class Late:
    """A base class behind tf_keras's, whose `__setattr__` runs last."""

    def __setattr__(self, name, value):
        self.__dict__.setdefault("log", []).append(name)
        super().__setattr__(name, value)


class Mixed(tf_keras.layers.Layer, Late):
    pass


class Counting(tf_keras.layers.Layer):
    @property
    def _obj_reference_counts(self):
        self.__dict__.setdefault("log", []).append("counts")
        return super()._obj_reference_counts


class Slotted(tf_keras.layers.Layer):
    __slots__ = ("slot",)


class Answering(tf_keras.layers.Layer):
    def __getattr__(self, name):
        if name == "guessed":
            return True
        raise AttributeError(name)


class OfMeta(type):
    of_meta = 1


class WithMeta(tf_keras.layers.Layer, metaclass=OfMeta):
    pass


class Network(tf_keras.Model):
    def call(self, x):
        return x


KINDS = (Plain, Watching, Forgetting, Mixed, Counting, Slotted, Answering, WithMeta, Network)
KINDS += (tf_keras.layers.Layer, tf_keras.Sequential, tf_keras.metrics.Mean, tf_keras.Model)
VALUES = (
    *(True, False, None, 1, 2.5, "text", 1.0, 0, (1, 2), [1], {"a": 1}, (), [], np.ones(2)),
    *(tf.constant(1.0), len, tf.TensorShape([1]), b"bytes"),
)
NAMES = ("attribute", "_self_setattr_tracking", "read_only", "default", "slot", "of_meta", "name")
NAMES += ("guessed", "_obj_reference_counts_dict", "_trainable_weights", "log", "__class__", 5)


PLACES = re.compile(r"0x[0-9a-f]+|_\d+")  # addresses of objects, and numbers in unique names


def shown(value):
    if isinstance(value, Failure):
        return value.kind, PLACES.sub("", value.message)
    return type(value).__name__, PLACES.sub("", repr(value))


def state(layer):
    """Return the attributes, in order, and the reference count of each value."""
    own = vars(layer)
    counts = own.get("_obj_reference_counts_dict")
    counted = None
    if isinstance(counts, tf_keras.src.utils.object_identity.ObjectIdentityDictionary):
        counted = sorted(repr((type(k).__name__, n)) for k, n in counts.items())
    kept = [(k, shown(v)) for k, v in own.items() if type(v) in (bool, int, str, type(None), list)]
    return list(own), kept, counted


@pytest.mark.parametrize("kind", KINDS)
def test_assignments(kind):
    def run():
        seen = []
        for value in VALUES:
            for name in NAMES:
                layer, value = kind(), copy.copy(value)  # a layer may change the value
                for given in (value, value, True, True, value, False):
                    seen.append(shown(outcome(setattr, (layer, name, given), {})))
                    seen.append(state(layer))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_assignments_while_nothing_is_tracked():
    def run():
        seen = []
        for kind in KINDS:
            layer = kind()
            for tracking in (False, None, 0, True):
                layer._self_setattr_tracking = tracking
                for value in VALUES:
                    for name in ("attribute", "other", "read_only", "default", "attribute"):
                        given = copy.copy(value)
                        seen.append(shown(outcome(setattr, (layer, name, given), {})))
                seen.append(state(layer))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_tracked_values_stay_tracked():
    def run():
        layer = Plain()
        layer.flag = layer.other = True
        for _ in range(3):
            layer.flag = True
            layer.weight = tf.Variable(1.0)
            layer.inner = tf_keras.layers.Dense(2)
        seen = [len(layer.weights), len(layer._self_tracked_trackables), state(layer)[1:]]
        del layer.flag, layer.inner
        layer.other = None
        layer.weight = True
        layer.weight = True
        seen += [len(layer.weights), len(layer._self_tracked_trackables), state(layer)[1:]]
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_methods_that_are_patched():
    def run():
        seen = []
        for holder, name in (
            (tf_keras.layers.Layer, "__delattr__"),
            (tf_keras.layers.Layer, "_track_variables"),
            (tf_keras.layers.Layer, "_maybe_create_attribute"),
            (tf.Module, "__setattr__"),
            (Plain, "__setattr__"),
            (Plain, "__delattr__"),
        ):
            layer = Plain()
            layer.flag = True
            with contextlib.ExitStack() as stack:
                stack.callback(lambda h=holder, n=name: restore(h, n))
                patch(holder, name, seen)
                layer.flag = True
                layer.flag = True
            layer.flag = True
            seen.append(state(layer))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got
    assert "_track_variables" in want


_KEPT = {}


def patch(holder, name, seen):
    original = getattr(holder, name)
    _KEPT[holder, name] = vars(holder).get(name)

    def noting(self, *args, **kwargs):
        seen.append(name)
        return original(self, *args, **kwargs)

    setattr(holder, name, noting)


def restore(holder, name):
    delattr(holder, name)
    if _KEPT[holder, name] is not None:
        setattr(holder, name, _KEPT[holder, name])


def entered(function):
    """Return the functions of tf_keras that a call enters."""
    names = []

    def profile(frame, event, arg):
        if event == "call" and "tf_keras" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("kind", [Plain, Network, tf_keras.layers.Dense])
def test_the_same_value_enters_no_python(kind):
    layer = kind(2) if kind is tf_keras.layers.Dense else kind()
    layer.flag = True
    with fastops.accelerated(only=LAYERS):
        layer.flag = True
        assert not entered(lambda: setattr(layer, "flag", True))
        assert not entered(lambda: setattr(layer, "_self_setattr_tracking", True))
    assert "__delattr__" in entered(lambda: setattr(layer, "flag", True))


def test_models():
    def run():
        tf_keras.utils.set_random_seed(0)
        model = tf_keras.Sequential(
            [
                tf_keras.layers.Dense(4, "relu"),
                tf_keras.layers.Dropout(0.5),
                tf_keras.layers.Dense(1),
            ]
        )
        model.compile("adam", "mse", run_eagerly=True)
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        history = model.fit(x, x[:, :1], epochs=2, verbose=0).history
        return history, model(x).numpy().tolist(), [state(layer) for layer in model.layers]

    want, got = in_both(run)
    assert want == got


def test_uninstall_restores_the_originals():
    before = vars(tf_keras.layers.Layer)["__setattr__"], vars(tf_keras.Model)["__setattr__"]
    with fastops.accelerated(only=LAYERS):
        assert isinstance(vars(tf_keras.layers.Layer)["__setattr__"], answer.Answer)
        assert isinstance(vars(tf_keras.Model)["__setattr__"], answer.Answer)
    assert vars(tf_keras.layers.Layer)["__setattr__"] is before[0]
    assert vars(tf_keras.Model)["__setattr__"] is before[1]


def test_other_mocks_than_these_are_seen_when_installing(monkeypatch):
    monkeypatch.setattr(tf_keras.layers.Layer, "__delattr__", lambda self, name: None)

    def run():
        layer = Plain()
        layer.flag = True
        layer.flag = True
        return state(layer)

    want, got = in_both(run, only=LAYERS)
    assert want == got
