"""Keras variables as inputs of ops: each counts as the `tf.Variable` that it contains."""

import operator
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import gradients, make, outcome
from keras.src.backend.common.variables import AutocastScope
from support import Failure, assert_same, difference, floats

import fastops

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

M, N = make("float32", 2, 3), make("int32", 2, 3)
K = keras.Variable(floats(2, 3), name="k")
SQUARE = keras.Variable(floats(3, 3), name="square")
BIAS = keras.Variable(floats(3), name="bias")
WHOLE = keras.Variable(np.arange(6).reshape(2, 3), dtype="int32", name="whole")
DOUBLE = keras.Variable(floats(2, 3), dtype="float64", name="double")
FIXED = keras.Variable(floats(2, 3), trainable=False, name="fixed")


class Subclass(keras.Variable):
    pass


OF_A_SUBCLASS = Subclass(floats(2, 3))


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()


DIRECT = {
    "split": lambda: tf.split(SQUARE, 3, axis=0),
    "squeeze": lambda: tf.squeeze(K),
    "reshape": lambda: tf.reshape(K, [3, 2]),
    "transpose": lambda: tf.transpose(K),
    "expand_dims": lambda: tf.expand_dims(K, 1),
    "slice": lambda: tf.slice(K, [0, 1], [2, 1]),
    "tile": lambda: tf.tile(BIAS, [2]),
    "gather": lambda: tf.gather(K, [1, 0]),
    "reduce_sum": lambda: tf.reduce_sum(K, axis=1),
    "square": lambda: tf.square(K),
    "tanh": lambda: tf.tanh(K),
    "relu": lambda: tf.nn.relu(FIXED),
    "exp of float64": lambda: tf.exp(DOUBLE),
    "negative of int32": lambda: tf.negative(WHOLE),
    "add": lambda: tf.add(M, BIAS),
    "add to": lambda: tf.add(BIAS, M),
    "maximum": lambda: tf.maximum(M, K),
    "where": lambda: tf.where(M > 0.0, M, K),
    "bias_add": lambda: tf.nn.bias_add(M, BIAS),
    "matmul": lambda: tf.matmul(M, SQUARE),
    "operator +": lambda: M + BIAS,
    "operator *": lambda: M * K,
    "operator @": lambda: M @ SQUARE,
    "operator /": lambda: M / K,
    "operator <": lambda: M < K,
    "operator * of a variable": lambda: K.value * BIAS,
    "a row by indices": lambda: tf.gather(M, WHOLE[0, :1]),
    "raw": lambda: tf.raw_ops.Mul(x=M, y=K),
    "raw op, arguments swapped": lambda: tf.raw_ops.Mul(x=K, y=M),
}
"""Calls that never fall back to TensorFlow."""

TENSORFLOWS = {
    "a number before it": lambda: tf.raw_ops.Mul(x=1.5, y=K),
    "a number of another dtype before it": lambda: tf.raw_ops.Mul(x=1, y=K),
    "a number after it": lambda: tf.raw_ops.Mul(x=K, y=1.5),
    "an array before it": lambda: tf.raw_ops.Mul(x=np.ones((2, 3), np.float32), y=K),
    "an array of another dtype": lambda: tf.raw_ops.Mul(x=np.ones((2, 3)), y=K),
    "a list beside it": lambda: tf.raw_ops.Mul(x=K, y=[1.0, 2.0, 3.0]),
    "two of them": lambda: tf.raw_ops.Mul(x=K, y=BIAS),
    "a tf.Variable": lambda: tf.raw_ops.Mul(x=K.value, y=BIAS),
    "another dtype": lambda: tf.raw_ops.Mul(x=M, y=DOUBLE),
    "another dtype, arguments swapped": lambda: tf.raw_ops.Mul(x=WHOLE, y=M),
    "another dtype by an operator": lambda: M + DOUBLE,
    "a dtype that the op does not support": lambda: tf.exp(WHOLE),
    "sizes of another dtype": lambda: tf.reshape(M, BIAS),
    "sizes": lambda: tf.reshape(M, WHOLE[0, 2:]),
    "an axis": lambda: tf.raw_ops.Sum(input=M, axis=WHOLE),
    "a list of variables": lambda: tf.concat([K, K], 0),
    "a list that TensorFlow rejects": lambda: tf.stack([K, K]),
    "a list with a tensor": lambda: tf.concat([M, K], 0),
    "a product of two": lambda: tf.matmul(K, SQUARE),
    "shapes that do not fit": lambda: tf.matmul(M, K),
    "shapes that do not fit by an operator": lambda: M + SQUARE,
    "a handle": lambda: tf.raw_ops.ReadVariableOp(resource=K, dtype=tf.float32),
    "its own handle": lambda: tf.raw_ops.ReadVariableOp(resource=K.handle, dtype=tf.float32),
    "text": lambda: M + "text",
    "einsum": lambda: tf.einsum("ij,jk", M, SQUARE),
    "a subclass": lambda: tf.tanh(OF_A_SUBCLASS),
    "a subclass by an operator": lambda: M * OF_A_SUBCLASS,
}


@pytest.mark.parametrize("name", [*DIRECT, *TENSORFLOWS])
def test_results_are_the_same_as_tensorflow(name):
    run = (DIRECT | TENSORFLOWS)[name]
    want = outcome(run, (), {})
    with fastops.accelerated():
        for _ in range(3):
            got = outcome(run, (), {})
            assert difference(got, want) is None
    assert isinstance(want, Failure) <= (name in TENSORFLOWS)


@pytest.mark.parametrize("name", DIRECT)
def test_calls_do_not_fall_back(name):
    with fastops.accelerated():
        for _ in range(2):
            DIRECT[name]()
        fastops.reset_stats()
        DIRECT[name]()
    seen = fastops.stats()
    assert seen.tensorflow == 0
    assert seen.direct > seen.ops.get("ReadVariableOp", seen).direct > 0


def taped(run):
    variables = [K, SQUARE, BIAS, DOUBLE]
    with tf.GradientTape(persistent=True) as tape:
        result = run()
    watched = {id(variable) for variable in tape.watched_variables()}
    slopes = outcome(tape.gradient, (result, [variable.value for variable in variables]), {})
    return result, slopes, sorted(watched)


@pytest.mark.parametrize("name", DIRECT)
def test_gradients(name):
    want = taped(DIRECT[name])
    with fastops.accelerated():
        for _ in range(2):
            assert difference(taped(DIRECT[name]), want) is None


SCOPES = {
    "autocast": lambda: AutocastScope("float16"),
    "stateless": lambda: keras.StatelessScope(state_mapping=[(K, M * 3.0), (SQUARE, SQUARE * 2.0)]),
    "device": lambda: tf.device("CPU:0"),
}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", DIRECT)
def test_scopes(name, scope):
    """In some scopes, the value of a variable is not that of its `tf.Variable`."""

    def run():
        with SCOPES[scope]():
            return outcome(DIRECT[name], (), {})

    want = run()
    with fastops.accelerated():
        for _ in range(2):
            DIRECT[name]()
            assert difference(run(), want) is None


def test_the_inner_variable_may_be_replaced():
    variable = keras.Variable(floats(3))
    with fastops.accelerated():
        for value in (1.0, 2.0):
            variable.assign([value] * 3)
            assert_same(tf.square(variable), tf.constant([value**2] * 3))
        variable._value = tf.Variable([5.0])
        assert_same(tf.square(variable), tf.constant([25.0]))
        variable._value = None
        variable._initializer = keras.initializers.Ones()
        assert_same(tf.square(variable), tf.ones([3]))


def test_each_thread_has_its_own_scopes():
    inside, done = threading.Event(), threading.Event()

    def other():
        with keras.StatelessScope(state_mapping=[(K, M * 3.0)]):
            inside.set()
            done.wait(60)

    with fastops.accelerated():
        tf.square(K)
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(60)
        try:
            assert_same(tf.square(K), tf.square(K.value))
        finally:
            done.set()
            thread.join()


def test_graphs_are_built_as_without_install():
    def program(x):
        return tf.square(K) * x + BIAS, tf.split(SQUARE, 3)

    def nodes():
        graph = tf.function(program).get_concrete_function(tf.TensorSpec([None, 3])).graph
        return [(node.name, node.op, *node.input) for node in graph.as_graph_def().node]

    want = nodes()
    with fastops.accelerated():
        program(M)
        assert nodes() == want


def test_layers_of_users_pass_variables_to_ops():
    """Layers of users call TensorFlow's own functions on their weights."""

    class Affine(keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], 4), name="kernel")
            self.bias = self.add_weight(shape=(4,), name="bias")

        def call(self, x):
            return tf.nn.tanh(tf.matmul(x, self.kernel) + self.bias) * tf.reduce_max(self.bias)

    layer = Affine()
    layer(M)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(M)))
        return loss, tape.gradient(loss, layer.trainable_variables)

    want = step()
    with fastops.accelerated():
        for _ in range(4):
            assert_same(step(), want)
        fastops.reset_stats()
        step()
        assert fastops.stats().tensorflow == 0


def test_a_reflected_method_is_called_if_the_stand_in_declines():
    """A class that inherits from `keras.Variable` may have such a method."""

    class Reflecting(keras.Variable):
        def __radd__(self, other):
            return "reflected"

    variable = Reflecting(floats(2, 3))
    want = outcome(operator.add, (M, variable), {})
    with fastops.accelerated():
        assert difference(outcome(operator.add, (M, variable), {}), want) is None


def test_gradients_of_calls_with_arguments():
    want = gradients(tf.matmul, (M, SQUARE), {})
    with fastops.accelerated():
        for _ in range(2):
            assert_same(gradients(tf.matmul, (M, SQUARE), {}), want)


def test_calls_that_are_recorded_read_variables_directly():
    """While a call is recorded, an op callback is registered, and reads stay direct."""
    model = keras.Sequential([keras.layers.Input((3, 2)), keras.layers.GRU(2)])
    x = make("float32", 1, 3, 2)
    want = model(x)
    seen = []
    with fastops.accelerated():
        for _ in range(5):
            fastops.reset_stats()
            assert_same(model(x), want)
            seen.append(fastops.stats())
    noted = seen[1]
    assert noted.ops["Split"].direct >= 6  # the bias and the gates, in each of three steps
    assert "first_call" not in noted.ops["Split"].reasons
    assert noted.ops["ReadVariableOp"].tensorflow <= noted.ops["ReadVariableOp"].direct
    assert seen[-1].methods["Layer.__call__"].replayed == 1
