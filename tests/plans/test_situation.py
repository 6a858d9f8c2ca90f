"""Conditions on what surrounds a call: the reason names the one that does not hold."""

import contextlib

import keras
import pytest
import tensorflow as tf
from support import assert_same
from tensorflow.python.eager import cancellation, context
from tensorflow.python.framework import ops as tf_ops
from tensorflow.python.saved_model import save_context

import fastops

X = tf.constant([[1.0, 2.0]])


@contextlib.contextmanager
def calling_back():
    def callback(*_, **__):
        return None

    context.context().add_op_callback(callback)
    try:
        yield
    finally:
        context.context().remove_op_callback(callback)


@contextlib.contextmanager
def cancellable():
    with cancellation.CancellationManagerContext(cancellation.CancellationManager()):
        yield


@contextlib.contextmanager
def eager_in_a_graph():
    with tf.Graph().as_default(), context.eager_mode():
        yield


@contextlib.contextmanager
def promoting():
    tf_ops.set_dtype_conversion_mode("legacy")
    try:
        yield
    finally:
        tf_ops.set_dtype_conversion_mode("off")


@contextlib.contextmanager
def running_functions_eagerly():
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


SURROUNDINGS = {
    "callbacks": calling_back,
    "cancellation": cancellable,
    "device_scope": lambda: tf.device("/CPU:0"),
    "dtype_promotion": promoting,
    "export": lambda: save_context.save_context(tf.saved_model.SaveOptions()),
    "functions_run_eagerly": running_functions_eagerly,
    "graph_scope": eager_in_a_graph,
    "strategy_scope": lambda: tf.distribute.OneDeviceStrategy("/CPU:0").scope(),
    "tape_open": tf.GradientTape,
}
"""By the id of a reason, what surrounds a call."""

ALLOWED_AROUND_FUNCTIONS = {"device_scope", "dtype_promotion"}
ALLOWED_AROUND_METHODS = {"device_scope", "tape_open"}


@pytest.mark.parametrize("id_", SURROUNDINGS)
def test_functions(id_):
    fast = fastops.function(lambda x: x * 2.0 + 1.0, executor="plan", autograph=False)
    want = fast(X)
    fastops.reset_stats()
    with SURROUNDINGS[id_]():
        assert_same(fast(X), want)
    assert_same(fast(X), want)
    (seen,) = fastops.stats().functions.values()
    if id_ in ALLOWED_AROUND_FUNCTIONS:
        assert (seen.plan, seen.tensorflow) == (2, 0)
    else:
        assert (seen.plan, seen.tensorflow) == (1, 1)
        assert seen.reasons == {id_: 1}


@pytest.mark.parametrize("id_", SURROUNDINGS)
def test_methods_of_keras(id_):
    layer = keras.layers.Dense(3, "tanh")
    want = layer(X)
    with fastops.accelerated():
        for _ in range(4):
            layer(X)
        fastops.reset_stats()
        with SURROUNDINGS[id_]():
            assert_same(layer(X), want)
        assert_same(layer(X), want)
        seen = fastops.stats().methods["Layer.__call__"]
    if id_ in ALLOWED_AROUND_METHODS:
        assert id_ not in seen.reasons
    else:
        assert (seen.replayed, seen.keras) == (1, 1)
        assert seen.reasons == {id_: 1}
