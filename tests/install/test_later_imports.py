"""Keras and tf_keras are imported while fastops is installed."""

import importlib
import sys
from types import FunctionType

import numpy as np
import pytest
import tensorflow as tf

import fastops
from fastops._core.imports import ImportFollower
from fastops._install import placement, upstream
from fastops._install.models.method import RecordedMethod
from fastops._install.replacement import Replacement

tf_keras = pytest.importorskip("tf_keras")
LAYER = tf_keras.layers.Layer

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(autouse=True)
def unimported(monkeypatch):
    """Let tf_keras count as not imported. Its modules below stay, so an import is fast."""
    monkeypatch.delitem(sys.modules, "tf_keras")
    yield
    fastops.uninstall()
    upstream.begin()


def followers():
    return [finder for finder in sys.meta_path if isinstance(finder, ImportFollower)]


def methods():
    return vars(LAYER)["__call__"], vars(LAYER)["__setattr__"]


def outputs(model, x):
    return [np.asarray(model(x)).tobytes() for _ in range(6)]


def test_tf_keras_that_is_imported_later():
    originals = methods()
    assert {type(method) for method in originals} == {FunctionType}
    fastops.install()
    assert methods() == originals
    (follower,) = followers()
    assert follower.names == ("tf_keras",)
    keras = importlib.import_module("tf_keras")
    assert followers() == []
    assert isinstance(methods()[0], RecordedMethod)
    assert isinstance(methods()[1], Replacement)
    assert upstream.left_out() == {}

    model = keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2)])
    x = tf.constant(np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3))
    model(x)
    got = outputs(model, x)
    assert type(model).__call__.describe(model)["replayed"] > 0
    fastops.uninstall()
    assert all(now is before for now, before in zip(methods(), originals, strict=True))
    assert outputs(model, x) == got


def test_the_choice_counts_for_later_imports_too():
    originals = methods()
    fastops.install(exclude=["models"])
    importlib.import_module("tf_keras")
    assert methods()[0] is originals[0]
    assert isinstance(methods()[1], Replacement)


def test_verification_covers_later_imports():
    fastops.install(verify=True)
    keras = importlib.import_module("tf_keras")
    layer, x = keras.layers.Dense(2), tf.ones((2, 3))
    for _ in range(6):
        layer(x)
    assert methods()[0].describe(layer)["replayed"] > 0
    seen = fastops.verified()
    assert seen.differences == ()
    assert seen.compared["models"] > 0


def test_nothing_is_replaced_after_uninstall():
    originals = methods()
    fastops.install()
    fastops.uninstall()
    assert followers() == []
    importlib.import_module("tf_keras")
    assert all(now is before for now, before in zip(methods(), originals, strict=True))


def test_an_uninstall_during_the_import(monkeypatch):
    originals = methods()
    fastops.install()
    (follower,) = followers()
    monkeypatch.setattr(follower, "_around", _Uninstalling)
    importlib.import_module("tf_keras")
    assert all(now is before for now, before in zip(methods(), originals, strict=True))


class _Uninstalling:
    def __enter__(self):
        fastops.uninstall()

    def __exit__(self, *_):
        pass


def test_an_import_that_fails_once(monkeypatch, tmp_path):
    (tmp_path / "tf_keras.py").write_text("raise ImportError('not now')\n")
    fastops.install()
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        with pytest.raises(ImportError, match="not now"):
            importlib.import_module("tf_keras")
    assert len(followers()) == 1
    assert isinstance(methods()[0], FunctionType)
    importlib.import_module("tf_keras")
    assert isinstance(methods()[0], RecordedMethod)


def test_errors_of_fastops_do_not_reach_the_import(monkeypatch):
    fastops.install()

    def broken(package):
        raise RuntimeError(f"no targets of {package}")

    monkeypatch.setattr(placement, "targets", broken)
    keras = importlib.import_module("tf_keras")
    assert keras.layers.Layer is LAYER
    assert "no targets of tf_keras" in upstream.left_out()["models", "tf_keras"]
    assert followers() == []


def test_imports_within_an_import(tmp_path, monkeypatch):
    (tmp_path / "outer.py").write_text("import inner\n")
    (tmp_path / "inner.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    follower = ImportFollower(
        ["outer", "inner"], lambda: seen.append({"outer", "inner"} <= set(sys.modules))
    )
    follower.start()
    try:
        importlib.import_module("outer")
        assert seen == [True]
    finally:
        follower.stop()
        follower.stop()
        for name in ("outer", "inner"):
            monkeypatch.delitem(sys.modules, name)
