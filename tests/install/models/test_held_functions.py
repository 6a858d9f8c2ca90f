"""Functions that objects hold: public functions of TensorFlow and NumPy, and partial functions."""

import functools
import gc
import types
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, outcome, probe, told
from keras import layers as L  # noqa: N812
from support import assert_same, python
from tensorflow.python.ops import gen_nn_ops, nn_impl, nn_ops

import fastops

X = floats(2, 4)

FUNCTIONS = {
    "tf.nn.relu": lambda: tf.nn.relu,
    "tf.nn.relu6": lambda: tf.nn.relu6,
    "tf.nn.elu": lambda: tf.nn.elu,
    "tf.nn.selu": lambda: tf.nn.selu,
    "tf.nn.gelu": lambda: tf.nn.gelu,
    "tf.nn.silu": lambda: tf.nn.silu,
    "tf.nn.swish": lambda: tf.nn.swish,
    "tf.nn.leaky_relu": lambda: tf.nn.leaky_relu,
    "tf.nn.softmax": lambda: tf.nn.softmax,
    "tf.nn.log_softmax": lambda: tf.nn.log_softmax,
    "tf.nn.softplus": lambda: tf.nn.softplus,
    "tf.nn.tanh": lambda: tf.nn.tanh,
    "tf.nn.sigmoid": lambda: tf.nn.sigmoid,
    "tf.tanh": lambda: tf.tanh,
    "tf.sigmoid": lambda: tf.sigmoid,
    "tf.square": lambda: tf.square,
    "tf.abs": lambda: tf.abs,
    "tf.exp": lambda: tf.exp,
    "tf.identity": lambda: tf.identity,
    "tf.math.softplus": lambda: tf.math.softplus,
    "tf.keras.activations.relu": lambda: tf.keras.activations.relu,
    "keras.ops.relu": lambda: keras.ops.relu,
    "a partial function": lambda: functools.partial(tf.nn.leaky_relu, alpha=0.4),
    "a partial function of one": lambda: functools.partial(
        functools.partial(tf.nn.softmax, name="s"), axis=0
    ),
    "a bound method": lambda: L.ReLU(max_value=0.5).call,
}
"""By title, a function that returns a function to hold."""


def dense(function):
    """Return a built layer with an activation."""
    layer = L.Dense(8, activation=function)
    layer.build((None, 4))
    return layer


@pytest.mark.parametrize("title", FUNCTIONS)
def test_an_activation_is_replayed(title):
    def program():
        layer = dense(FUNCTIONS[title]())
        probe(layer)
        for number in range(CALLS):
            yield layer(X + number)
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(layer(X) ** 2)
            yield tape.gradient(loss, layer.trainable_variables)

    compare(program, native=True)


@pytest.mark.parametrize("title", FUNCTIONS)
def test_a_function_from_before_install(title):
    function = FUNCTIONS[title]()

    def program():
        layer = dense(function)
        probe(layer)
        for number in range(CALLS):
            yield layer(X + number)

    compare(program)


def test_a_model_and_its_training_step():
    def program():
        units = [L.Dense(8, activation=tf.nn.relu), L.Dense(8, activation=tf.tanh), L.Dense(3)]
        model = keras.Sequential([keras.Input((4,)), *units])
        optimizer, loss = keras.optimizers.Adam(0.1), keras.losses.MeanSquaredError()
        model(X)
        optimizer.build(model.trainable_variables)
        probe(model)
        probe(optimizer, "apply")
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                value = loss(tf.ones((2, 3)), model(X))
            slopes = tape.gradient(value, model.trainable_variables)
            optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            yield value
            yield model.trainable_variables

    compare(program, native=True)


def changed(layer, change, undo=None):
    """Yield results of a layer before, during and after a change."""
    probe(layer)
    for _ in range(CALLS):
        yield outcome(layer, X)
    change()
    try:
        for _ in range(CALLS):
            yield outcome(layer, X)
    finally:
        if undo is not None:
            undo()
    for _ in range(2):
        yield outcome(layer, X)


@pytest.mark.parametrize(
    "pair",
    [
        (lambda: tf.nn.relu, lambda: tf.nn.elu),
        (lambda: tf.nn.relu, lambda: keras.activations.tanh),
        (lambda: functools.partial(tf.nn.leaky_relu, alpha=0.4), lambda: tf.nn.leaky_relu),
    ],
)
def test_another_function(pair):
    def program():
        layer = dense(pair[0]())
        yield from changed(layer, lambda: setattr(layer, "activation", pair[1]()))

    compare(program)


def test_keywords_of_a_partial_function():
    def program():
        function = functools.partial(tf.nn.leaky_relu, alpha=0.4)
        layer = dense(function)
        yield from changed(
            layer,
            lambda: function.keywords.update(alpha=0.1),
            lambda: function.keywords.update(alpha=0.4),
        )

    compare(program)


def test_a_list_among_the_arguments_of_a_partial_function():
    def program():
        sizes = [2, 8]
        function = functools.partial(tf.broadcast_to, shape=sizes)
        layer = dense(function)
        yield from changed(layer, lambda: sizes.__setitem__(0, 3))

    compare(program)


def test_a_partial_function_that_is_set_anew():
    def program():
        function = functools.partial(tf.nn.leaky_relu, alpha=0.4)
        layer = dense(function)
        state = (tf.nn.softmax, (), {"axis": 0}, None)
        yield from changed(layer, lambda: function.__setstate__(state))

    compare(program)


def test_the_object_of_a_bound_method():
    def program():
        inner = L.ReLU(max_value=0.5)
        layer = dense(inner.call)
        yield from changed(layer, lambda: setattr(inner, "max_value", 0.25))

    compare(program)


class Meters(tf.experimental.ExtensionType):
    """A type for which handlers are registered."""

    value: tf.Tensor


@pytest.mark.parametrize("name", ["tf.nn.relu", "tf.nn.gelu", "tf.nn.softmax"])
def test_a_handler_that_is_registered_later(name):
    """No call is replayed by a recording from before; new recordings are made."""
    parameter = "logits" if name == "tf.nn.softmax" else "features"
    with fastops.accelerated():
        function = FUNCTIONS[name]()
        layer = dense(function)
        want = [layer(X) for _ in range(CALLS)][-1]
        replayed = told(layer)["replayed"]
        assert replayed

        def handler(*args, **kwargs):
            return "handled"

        tf.experimental.dispatch_for_api(function, {parameter: Meters})(handler)
        try:
            assert_same(layer(X), want)
            assert told(layer)["replayed"] == replayed
            assert function(Meters(X)) == "handled"
            for _ in range(CALLS):
                assert_same(layer(X), want)
            replayed, before = told(layer)["replayed"], replayed
            assert replayed > before
            # The same handler for more arguments
            tf.experimental.dispatch_for_api(function, {parameter: int})(handler)
            assert_same(layer(X), want)
            assert told(layer)["replayed"] == replayed
        finally:
            tf.experimental.unregister_dispatch_for(handler)
        dead = weakref.ref(handler)
        del handler
        gc.collect()
        assert dead() is None
        for _ in range(CALLS):
            assert_same(layer(X), want)


def test_a_handler_of_tensors():
    """TensorFlow calls a handler of tensors if tensors are registered as a type to dispatch."""
    assert (
        python("""
        import keras, tensorflow as tf, fastops
        from tensorflow.python.util import dispatch

        def handler(features, approximate=False, name=None):
            return tf.zeros_like(features) - 7.0

        def program():
            layer = keras.layers.Dense(3, activation=tf.nn.gelu, kernel_initializer="ones")
            x = tf.ones((1, 2))
            values = [layer(x).numpy().tolist() for _ in range(8)]
            register = tf.experimental.dispatch_for_api(tf.nn.gelu, {"features": tf.Tensor})
            register(handler)
            values += [layer(x).numpy().tolist() for _ in range(8)]
            tf.experimental.unregister_dispatch_for(handler)
            return values + [layer(x).numpy().tolist() for _ in range(8)]

        dispatch.register_dispatchable_type(tf.Tensor)
        want = program()
        assert len(set(map(str, want))) == 2, want
        with fastops.accelerated():
            got = program()
            method = keras.layers.Dense.__call__
            assert method.replayed, method.reasons
        print(got == want)
    """).strip()
        == "True"
    )


def scaled(x, scale=2.0):
    return x * scale


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(scaled_twin, "__defaults__", (3.0,)),
        lambda patch: patch.setattr(scaled_twin, "__code__", (lambda x, scale: x).__code__),
    ],
)
def test_the_code_and_defaults_of_a_function(change, monkeypatch):
    """A function of TensorFlow that no stand-in replaces; a test may change it in place."""

    def program():
        layer = dense(scaled_twin)
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)
        with monkeypatch.context() as patch:
            change(patch)
            yield layer(X)
        yield layer(X)

    compare(program)


def _twin():
    """Return a function like `scaled` that belongs to a module of TensorFlow."""
    function = types.FunctionType(scaled.__code__, vars(nn_impl), "scaled", (2.0,))
    function.__module__ = nn_impl.__name__
    return function


scaled_twin = _twin()


@pytest.mark.parametrize(
    ("title", "module", "name"),
    [
        ("tf.nn.relu", gen_nn_ops, "pywrap_tfe"),
        ("tf.nn.gelu", nn_ops, "math_ops"),
        ("tf.nn.silu", nn_impl, "math_ops"),
        ("tf.nn.swish", nn_impl.math_ops, "sigmoid"),
        ("tf.nn.softmax", nn_ops, "_wrap_2d_function"),
        ("tf.nn.leaky_relu", nn_ops.gen_nn_ops, "leaky_relu"),
    ],
)
@pytest.mark.parametrize("early", [False, True])
def test_a_function_whose_globals_are_replaced(title, module, name, early, monkeypatch):
    """The function is from before `install` if `early`."""
    function = FUNCTIONS[title]()
    entered = []

    def program():
        layer = dense(function if early else FUNCTIONS[title]())
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)
        with monkeypatch.context() as patch:
            patch.setattr(module, name, _spy(getattr(module, name), entered))
            entered.clear()
            yield layer(X)
            assert entered
        yield layer(X)

    compare(program)


def _spy(value, entered):
    """Return a callable, or an object with the same attributes, that notes its use."""

    class Spied:
        def __getattr__(self, name):
            entered.append(name)
            return getattr(value, name)

        def __call__(self, *args, **kwargs):
            entered.append("")
            return value(*args, **kwargs)

    return Spied()


def test_functions_of_numpy():
    class Holds(L.Dense):
        """A layer of a user that holds functions and calls one of them on numbers."""

        def call(self, x):
            return super().call(x) * float(self.scale(4.0)) + float(self.other([0.5], 1.0)[0])

    fastops.keras.replayable(Holds)

    def program():
        layer = Holds(8)
        layer.scale, layer.other = np.sqrt, np.append
        layer.build((None, 4))
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)
        layer.scale = np.square
        for _ in range(CALLS):
            yield layer(X)

    compare(program)


def test_a_function_that_numpy_makes_of_one_of_a_user():
    def program():
        layer = dense("relu")
        layer.held = np.frompyfunc(lambda x: x, 1, 1)
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)

    compare(program, replayed=False)


def test_a_bound_function_of_an_array_is_refused():
    def program():
        layer = dense("relu")
        layer.held = np.ones(3).sum
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)

    compare(program, replayed=False)
