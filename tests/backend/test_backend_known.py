"""`replayed_if_pure`: which steps fastops finds to be pure from their code, and guards of names."""

import gc
import time
import weakref

import numpy as np
import pytest
import tensorflow as tf

from fastops import backend
from fastops._backend.known import replayed_if_pure
from fastops._backend.pure import Pure

K = backend
WEIGHTS = tf.Variable([[2.0]])
LIST = [WEIGHTS, 1.5]
SCALE = 3.0
COUNT = 0
ARRAY = np.ones(1, np.float32)


def helper(x, factor=SCALE):
    return K.relu(x) * factor


def makes_impure(x):
    print(x)
    return x


def pure_functions():
    kernel, parts = tf.constant([[1.0]]), (tf.Variable(1.0), "same")

    def of_the_backend(x, states):
        return K.dot(x, WEIGHTS) + states[0], [K.tanh(x)]

    def of_tensorflow(x, states):
        first, second = tf.split(tf.concat([x, x], 1), 2, axis=1)
        return tf.nn.relu(first) * tf.cast(second, x.dtype), states

    def of_closures(x, states):
        return x @ kernel + parts[0], [state * SCALE for state in states]

    def of_helpers(x, states):
        return helper(x), list(map(helper, states))

    def of_loops(x, states):
        total = x
        for i, state in enumerate(states):
            total += state * float(i)
        return total if len(states) > 1 else sum(states), states

    def of_lists(x, states):
        return x * LIST[1] + LIST[0], states

    def of_lists_that_it_makes(x, states):
        made = []
        for state in states:
            made.append(state + x)
        return x, made

    def of_inner_functions(x, states):
        def inner(state):
            return state + x

        return inner(x), [inner(state) for state in states]

    return [value for value in locals().values() if callable(value)]


def impure_functions():
    count, kept = 0, []

    def assigns_to_globals(x, states):
        global COUNT
        COUNT += 1
        return x, states

    def assigns_to_closures(x, states):
        nonlocal count
        count += 1
        return x, states

    def assigns_to_lists(x, states):
        global kept
        return x, [states[0], *kept.append(x)]

    def adds_to_lists(x, states):
        held = LIST
        held += [x]
        return x, states

    def appends_to_lists(x, states):
        held = LIST
        held.append(x)
        return x, states

    def appends_to_what_may_be_another_list(x, states):
        held = []
        if x.dtype == tf.float32:
            held = LIST
        held.append(x)
        return x, states

    def appends_to_arguments(x, states):
        states.append(x)
        return x, states

    def assigns_to_variables(x, states):
        WEIGHTS.assign(x)
        return x, states

    def asks_for_the_time(x, states):
        return x * time.time(), states

    def asks_for_values(x, states):
        return x * float(x.numpy()), states

    def prints(x, states):
        print(x)
        return x, states

    def calls_what_prints(x, states):
        return makes_impure(x), states

    def draws(x, states):
        return x + K.random_normal((1, 1)), states

    def drops(x, states):
        return K.dropout(x, 0.5), states

    def draws_of_tensorflow(x, states):
        return x + tf.random.normal((1, 1)), states

    def asks_for_the_phase(x, states):
        return K.in_train_phase(x, -x), states

    def names_arrays(x, states):
        return x + ARRAY, states

    def imports(x, states):
        import math

        return x * math.pi, states

    def opens(x, states):
        with tf.name_scope("a"):
            return x + 1.0, states

    def hands_modules_on(x, states):
        return getattr(K, "relu")(x), states  # noqa: B009

    def sets(x, states):
        x.attribute = 1
        return x, states

    return [value for value in locals().values() if callable(value)]


@pytest.mark.parametrize("function", pure_functions(), ids=lambda function: function.__name__)
def test_pure_steps_are_replayed(function):
    x, states = tf.constant([[0.5]]), (tf.constant([[0.25]]),)
    # The code of a function is read only when the function comes a second time.
    assert replayed_if_pure(function) is function
    wrapped = replayed_if_pure(function)
    assert type(wrapped) is Pure
    assert replayed_if_pure(function) is wrapped
    for _ in range(4):
        expected, result = function(x, states), wrapped(x, states)
        for one, other in zip(*map(tf.nest.flatten, (expected, result)), strict=True):
            assert one.numpy().tobytes() == other.numpy().tobytes()
    assert wrapped.describe()["replayed"] == 1


@pytest.mark.parametrize("function", impure_functions(), ids=lambda function: function.__name__)
def test_impure_steps_are_not_replayed(function):
    for _ in range(3):
        assert replayed_if_pure(function) is function


def test_objects_that_are_not_functions_are_returned_unchanged():
    for value in (print, K.exp, Pure(helper), type("A", (), {})(), object().__str__):
        for _ in range(3):
            assert replayed_if_pure(value) is value


def test_a_changed_global_of_a_step_is_noticed(monkeypatch):
    weights = [tf.Variable([[1.0]]), tf.Variable([[5.0]])]
    kernel = weights[0]

    def step(x, states):
        output = K.dot(x, kernel) * SCALE + weights[1]
        return output, [output]

    x, state = tf.ones([1, 4, 1]), [tf.zeros([1, 1])]

    def last():
        return [backend.rnn(step, x, state)[0].numpy().item() for _ in range(3)]

    assert last() == [8.0] * 3
    assert type(replayed_if_pure(step)) is Pure
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert last() == [7.0] * 3
    kernel = tf.Variable([[10.0]])
    assert last() == [25.0] * 3
    kernel.assign([[20.0]])
    assert last() == [45.0] * 3
    weights[1] = tf.Variable([[6.0]])
    assert last() == [46.0] * 3
    monkeypatch.setattr(backend, "dot", lambda x, y: x + 0.0 * y)
    assert last() == [8.0] * 3


def test_knowledge_of_steps_keeps_nothing_alive():
    def make():
        kernel = tf.Variable([[1.0]])

        def step(x, states):
            output = K.dot(x, kernel)
            return output, [output]

        return step, weakref.ref(kernel)

    step, kernel = make()
    for _ in range(3):
        backend.rnn(step, tf.ones([1, 4, 1]), [tf.zeros([1, 1])])
    assert type(replayed_if_pure(step)) is Pure
    function = weakref.ref(step)
    del step
    gc.collect()
    assert function() is None
    assert kernel() is None
