"""Functions by their code and by what their cells hold."""

import gc
import types
import weakref

import pytest
import tensorflow as tf
from tensorflow.python.ops import nn_impl

from fastops._specialize.recording.closures import NotClosedError, closure_of


def of_library(function):
    """Return a function with the globals of a module of TensorFlow."""
    return types.FunctionType(
        function.__code__,
        vars(nn_impl),
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def scaled(x, factor, more=()):
    def inner(value):
        return value + x

    inner = of_library(inner)

    def outer(value, shift=2.0):
        return inner(value) * factor + shift + (sum(more) if more else 0.0) + x

    return of_library(outer)


X, Y = tf.constant(3.0), tf.constant(5.0)


def test_a_closure_is_made_again_with_other_tensors():
    closure, tensors = closure_of(scaled(X, 4, (1.0, X)))
    assert [tensor is X for tensor in tensors] == [True]
    assert closure.made(tensors)(Y) == scaled(X, 4, (1.0, X))(Y)
    assert closure.made([Y])(X) == scaled(Y, 4, (1.0, Y))(X)


def test_functions_of_users():
    closure, tensors = closure_of(of_a_user())
    assert closure.of_users
    assert closure.made(tensors)(Y) == of_a_user()(Y)
    assert closure_of(of_a_user())[0] is closure
    assert closure_of(of_a_user(3.0))[0] is not closure
    assert not closure_of(scaled(X, 4))[0].of_users


def test_equal_functions_have_the_same_closure():
    assert closure_of(scaled(X, 4))[0] is closure_of(scaled(Y, 4))[0]
    others = [scaled(X, 4.0), scaled(X, 5), scaled(X, 4, [0.0]), scaled(X, -0.0), scaled(X, 0.0)]
    closures = [closure_of(function)[0] for function in others]
    assert len(set(map(id, closures))) == len(closures)


def test_the_wiring_of_tensors_counts():
    same, other = scaled(X, 4, (X,)), scaled(X, 4, (Y,))
    assert closure_of(same)[0] is not closure_of(other)[0]
    assert len(closure_of(same)[1]) == 1
    assert len(closure_of(other)[1]) == 2


def test_closures_keep_no_tensor():
    x = tf.constant([1.0])
    function = scaled(x, 4)
    closure, tensors = closure_of(function)
    reference = weakref.ref(x)
    del x, function, tensors
    gc.collect()
    assert reference() is None
    assert closure.made([Y])(X) == scaled(Y, 4)(X)


def of_a_user(factor=2.0):
    return lambda x: x * factor + X


def of_a_user_with_a_list():
    return of_a_user([2.0])


def of_a_user_with_a_list_as_default():
    return lambda x, more=(1.0, [2.0]): x + more[0] + X


def of_no_module():
    return types.FunctionType(of_a_user().__code__, {}, "function", None, of_a_user().__closure__)


def assigning():
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x

    return of_library(function)


def assigning_inside():
    count = 0

    def function(x):
        def step():
            nonlocal count
            count += 1

        step()
        return x

    return of_library(function)


def with_attributes():
    function = scaled(X, 4)
    function.note = 1
    return function


def with_object():
    return scaled(X, object())


def with_empty_cell():
    def function(x):
        return later + x

    function = of_library(function)
    if function is None:
        later = 1
    return function


def recursive():
    def function(x):
        return function(x)

    function = of_library(function)
    return function


@pytest.mark.parametrize(
    "make",
    [
        of_a_user_with_a_list,
        of_a_user_with_a_list_as_default,
        of_no_module,
        assigning,
        assigning_inside,
        with_attributes,
        with_object,
        with_empty_cell,
        recursive,
        lambda: tf.nn.relu,
        lambda: 1,
        lambda: len,
    ],
)
def test_functions_without_a_closure(make):
    with pytest.raises(NotClosedError):
        closure_of(make())
