"""Replays whose ops are all direct run as kernels alone, with no visible difference."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import find
from support import assert_same, floats
from tensorflow.python.eager.record import VariableWatcher

import fastops
from fastops._install.models.method import methods
from fastops._install.replay.replayed import Replayed

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(autouse=True)
def installed():
    with fastops.accelerated():
        yield


X = tf.constant(floats(3, 4))


def moments():
    """Return a new stand-in for `tf.nn.moments`, without recordings."""
    stand_in = find("tf.nn.moments")
    return Replayed(stand_in.original, stand_in.passed, (), stand_in.settings)


def learn(function, *args, **kwargs):
    """Make the calls after which replays run as kernels alone."""
    for _ in range(8):
        function(*args, **kwargs)
        if function.describe()["native"] == 1:
            return
    raise AssertionError(function.describe())


def test_ops_of_replays_are_counted():
    function = moments()
    learn(function, X, [0])
    fastops.reset_stats()
    before = function.original(X, [0])
    wanted = fastops.stats().ops
    fastops.reset_stats()
    assert_same(function(X, [0]), before)
    counted = {name: counts.direct for name, counts in fastops.stats().ops.items()}
    assert function.describe()["native"] == 2
    assert set(counted) <= set(wanted)
    assert sum(counted.values()) > 1


@pytest.mark.parametrize(
    ("options", "natively"),
    [
        ({"path": "direct"}, True),
        ({"threads": "pool"}, True),
        ({"threads": "caller"}, True),
        ({"path": "capi"}, False),
        ({"path": "tensorflow"}, False),
        ({"onednn": "off"}, False),
    ],
)
def test_settings_of_the_thread(options, natively):
    function = moments()
    learn(function, X, [0])
    with fastops.options(**options):
        got = function(X, [0])
        assert_same(got, function.original(X, [0]))
    assert function.describe()["native"] == 1 + natively


def test_profiles_see_every_op():
    function = moments()
    learn(function, X, [0])
    with fastops.profile() as profile:
        function(X, [0])
    assert sum(counts.calls for counts in profile.ops.values()) > 1
    assert function.describe()["native"] == 1


def test_other_values_and_sizes_that_depend_on_values():
    stand_in = find("tf.repeat")
    function = Replayed(stand_in.original, stand_in.passed, (), stand_in.settings)
    for counts in ([1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [2, 1], [0, 5], [1, 2]):
        counts = tf.constant(counts)
        got = function(tf.constant([3.0, 4.0]), counts)
        assert_same(got, stand_in.original(tf.constant([3.0, 4.0]), counts))


def by_value(x):
    total = tf.reduce_sum(x + 1.0)
    return x * 2.0 if float(total) > 0.0 else x * 3.0


def by_size(x):
    rows = tf.where(x > 0.0)
    return rows * 2 if rows.shape[0] == 2 else rows * 3


@pytest.mark.parametrize("function", [by_value, by_size])
def test_values_and_sizes_that_python_has_read(function):
    replayed = Replayed(function, find("tf.roll").passed)
    rows = [[1.0, -1.0, 2.0], [-9.0, -1.0, -2.0], [1.0, 1.0, 1.0]]
    learn(replayed, tf.constant(rows[0]))
    for row in (*rows, *reversed(rows)):
        assert_same(replayed(tf.constant(row)), function(tf.constant(row)))
    assert replayed.describe()["native"] > 1


def test_variables_are_read_and_tapes_watch_them():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    for _ in range(5):
        model(X)
    before = natively()
    kernel = model.layers[0].kernel
    kernel.assign(kernel * 2)
    got = model(X)
    assert natively() == before + 1
    assert_same(got, tf.matmul(X, kernel.value) + model.layers[0].bias.value)
    with VariableWatcher() as watcher:
        model(X)
    seen = watcher.watched_variables()
    assert {id(variable) for variable in seen} == {id(weight.value) for weight in model.weights}


def natively():
    return sum(method.describe()["native"] for method in methods())


def test_a_kernel_that_fails_after_an_assignment():
    """Assigned values remain, and the error is the one that Keras's own call would raise."""

    def outcome(times):
        keras.utils.set_random_seed(1)
        optimizer = keras.optimizers.SGD(0.1)
        variables = [keras.Variable(floats(2, 3)), keras.Variable(floats(4))]
        optimizer.build(variables)
        slopes = [tf.ones((2, 3)), tf.ones((4,))]
        for _ in range(times):
            optimizer.apply(slopes, variables)
        last = variables[1].value
        tf.raw_ops.AssignVariableOp(resource=last.handle, value=tf.zeros((5,)))
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            optimizer.apply(slopes, variables)
        return caught.value.message, variables[0].numpy(), optimizer.iterations.numpy()

    got = outcome(6)
    before = natively()
    assert before > 0
    with fastops.options(path="tensorflow"):
        want = outcome(6)
    assert got[0] == want[0]
    np.testing.assert_array_equal(got[1], want[1])
    assert got[2] == want[2]


def test_results_that_are_arguments():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.5), keras.layers.ReLU()])
    for _ in range(6):
        assert_same(model(X), tf.nn.relu(X))
