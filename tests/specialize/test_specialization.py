"""The states of a specialization, and its description."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import fastops
from fastops._specialize.specialization import Specialization

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant(np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3))


@pytest.fixture(autouse=True)
def not_installed():
    yield
    fastops.uninstall()


def test_a_new_specialization_waits():
    new = Specialization(b"key", 1)
    assert new.describe() == {"state": "waiting", "variants": [], "reason": None, "detail": None}
    assert (new.key, new.first, new.failures) == (b"key", None, 0)


def test_a_function_is_active_or_refused(due_after):
    due_after(1)
    fastops.install()
    function = tf.image.adjust_contrast
    image = tf.reshape(tf.range(12.0), [2, 2, 3])
    for _ in range(4):
        function(image, 2.0)
    (known,) = function.recordings()
    (variant,) = known["variants"]
    assert known["state"] == "active"
    assert known["reason"] is None
    assert "AdjustContrastv2" in variant["ops"]
    assert any(op == "AdjustContrastv2" for op, _, _ in variant["constants"])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda layer: setattr(layer, "units", 5), "Dense.units has changed"),
        (lambda layer: setattr(layer, "extra", 5), "Dense.extra is new"),
        (lambda layer: layer._losses.append(1), "Dense._losses has changed (a list)"),
    ],
)
def test_the_path_of_a_change_is_reported(change, expected, due_after):
    due_after(1)
    layer = keras.layers.Dense(2)
    fastops.install()
    for _ in range(6):
        layer(X)
    assert fastops.explain(layer, X).result.shape == (2, 2)
    (recording,) = keras.layers.Layer.__call__.recordings(layer)
    assert "Dense._kernel" in recording["places"]
    assert "MatMul" in recording["ops"]
    change(layer)
    assert expected in str(fastops.explain(layer, X))
